//! The port of agents in front of a fleet manager and a registry, and agents that use it.

use std::{collections::BTreeMap, fs, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::{body::Body, extract::Request};
use chassis::{Context, Settings, process::capacity::ProcessCapacity};
use http::header::CONTENT_TYPE;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    PublicKeyData as _, SerialNumber,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use test_registry::TestRegistry;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    },
};
use tower::ServiceExt as _;

use crate::{http::admission::AdmissionPlaces, mesh::MeshHandle};

/// Longest wait for any event, far longer than it takes on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(150);

/// Call that a poll of an agent becomes.
pub(super) const POLL: &str = "PollRenderedDevice";

/// Registry, fleet manager, and the gateway's port of agents.
pub(super) struct AgentWorld {
    settings: Settings,
    registry: TestRegistry,
    gateway: Context,
    fleets: Context,
    address: SocketAddr,
    _directory: TempDir,
}

impl AgentWorld {
    pub(super) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let registry = TestRegistry::start().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
        settings.component_registry.url = registry.url();
        settings.fleet_manager.url = format!("http://{}", listener.local_addr().unwrap());
        settings.gateway.agents.listen = "127.0.0.1:0".to_owned();
        let fleets = Context::new(settings.clone());
        fleet_manager::start(fleets.clone(), listener.into()).await.unwrap();
        let gateway = Context::new(settings.clone());
        let places = AdmissionPlaces::new(&settings.gateway, &ProcessCapacity::of_process(&settings));
        let mesh = MeshHandle::new(&settings, gateway.tasks.shutdown()).unwrap();
        let address = crate::agents(&gateway, mesh, &places).await.unwrap().expect("a port");
        let world = Self { settings, registry, gateway, fleets, address, _directory: directory };
        world.until_certificates_count(&world.enrolling()).await;
        world
    }

    /// Stops the fleet manager, and starts it at its address with a new authority.
    pub(super) async fn replace_authority(&mut self) {
        stop(&self.fleets).await;
        fs::remove_file(self.file("device-authority.pem")).unwrap();
        let address = self.settings.fleet_manager.url.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind(address).await.unwrap();
        self.fleets = Context::new(self.settings.clone());
        fleet_manager::start(self.fleets.clone(), listener.into()).await.unwrap();
    }

    pub(super) async fn end(self) {
        stop(&self.gateway).await;
        stop(&self.fleets).await;
        self.registry.stop().await;
    }

    pub(super) fn registry(&self) -> &TestRegistry {
        &self.registry
    }

    /// Returns the number of polls that have reached the registry.
    pub(super) fn polls(&self) -> usize {
        self.registry.proxy.count(POLL)
    }

    /// Waits until that many polls have reached the registry.
    pub(super) async fn polls_open(&self, count: usize) {
        self.registry.proxy.called(POLL, count).await;
    }

    fn file(&self, name: &str) -> PathBuf {
        self.settings.data_dir.join(name)
    }

    /// The certificate with which agents enrol.
    pub(super) fn enrolling(&self) -> AgentCertificate {
        let pem = fs::read_to_string(self.file("device-enrolment.pem")).unwrap();
        AgentCertificate { chain: pem.clone(), key: pem }
    }

    /// Waits until the gateway has the authority of a certificate.
    pub(super) async fn until_certificates_count(&self, certificate: &AgentCertificate) {
        let counted = async {
            loop {
                match self.ask(Some(certificate), "GET", "/nothing", None).await {
                    Ok((404, _)) => return,
                    _ => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        timeout(PATIENCE, counted).await.expect("the authority counts");
    }

    /// Waits until requests with a certificate get an answer with that status.
    pub(super) async fn until_answered(&self, agent: &TestAgent, status: u16) -> Value {
        let path = agent.path("");
        let answered = async {
            loop {
                match self.ask(Some(&agent.certificate), "GET", &path, None).await.unwrap() {
                    (found, answer) if found == status => return answer,
                    _ => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        timeout(PATIENCE, answered).await.expect("the answer changes")
    }

    /// Asks over a connection of its own.
    pub(super) async fn ask(
        &self,
        certificate: Option<&AgentCertificate>,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<(u16, Value), String> {
        self.connect(certificate).await?.ask(method, path, body).await
    }

    /// Returns the status and the message of an answer in one line.
    pub(super) async fn line(
        &self,
        certificate: Option<&AgentCertificate>,
        (method, path, body): (&str, &str, Option<Value>),
    ) -> String {
        match self.ask(certificate, method, path, body).await {
            Ok((status, answer)) => format!("{status} {}", answer["message"].as_str().unwrap_or("-")),
            Err(_) => "no connection".to_owned(),
        }
    }

    pub(super) async fn connect(
        &self,
        certificate: Option<&AgentCertificate>,
    ) -> Result<AgentConnection, String> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.file("agents-certificate.pem")).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match certificate {
            None => config.with_no_client_auth(),
            Some(AgentCertificate { chain, key }) => {
                let chain = vec![CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                config.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        connected.map(|stream| AgentConnection(BufReader::new(stream))).map_err(|error| error.to_string())
    }

    /// Asks the face for people.
    pub(super) async fn person(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = Request::builder().method(method).uri(format!("/flightctl/api/v1{path}"));
        let request = match body {
            Some(body) => request.header(CONTENT_TYPE, "application/json").body(body.to_string().into()),
            None => request.body(Body::empty()),
        };
        let Ok(response) = super::super::app(&self.settings).oneshot(request.unwrap()).await;
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Returns an agent whose device a person has approved.
    pub(super) async fn enrolled(&self) -> TestAgent {
        let mut agent = TestAgent::new();
        self.enrol(&mut agent).await;
        agent
    }

    /// Enrols an agent, which gets its certificate.
    pub(super) async fn enrol(&self, agent: &mut TestAgent) {
        let enrolling = Some(self.enrolling());
        let asked =
            self.ask(enrolling.as_ref(), "POST", "/enrollmentrequests", Some(agent.enrolment())).await;
        assert_eq!(asked.unwrap().0, 201);
        let path = format!("/enrollmentrequests/{}", agent.name);
        let approval = json!({ "approved": true });
        let approved = self.person("PUT", &format!("{path}/approval"), Some(approval)).await;
        assert_eq!(approved.0, 200, "{approved:?}");
        let (status, request) = self.ask(enrolling.as_ref(), "GET", &path, None).await.unwrap();
        assert_eq!(status, 200, "{request}");
        agent.certificate.chain =
            request["status"]["certificate"].as_str().expect("a certificate").to_owned();
    }

    /// Signs a certificate with the authority, as an operator could by mistake.
    pub(super) fn signed_by_hand(
        &self,
        name: &str,
        adjust: impl FnOnce(&mut CertificateParams),
    ) -> AgentCertificate {
        let pem = fs::read_to_string(self.file("device-authority.pem")).unwrap();
        let authority = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let issuer = Issuer::from_ca_cert_der(&authority, KeyPair::from_pem(&pem).unwrap()).unwrap();
        signed(&issuer, name, adjust)
    }
}

/// Signs a certificate by an authority that nobody here knows.
pub(super) fn signed_elsewhere(name: &str) -> AgentCertificate {
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    signed(&Issuer::new(authority, key), name, |_| {})
}

fn signed(
    issuer: &Issuer<'_, KeyPair>,
    name: &str,
    adjust: impl FnOnce(&mut CertificateParams),
) -> AgentCertificate {
    let key = KeyPair::generate().unwrap();
    let mut parameters = subject(name);
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    parameters.serial_number = Some(SerialNumber::from_slice(&[4, 2]));
    adjust(&mut parameters);
    let certificate = parameters.signed_by(&key, issuer).unwrap();
    AgentCertificate { chain: certificate.pem(), key: key.serialize_pem() }
}

fn subject(name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters
}

async fn stop(context: &Context) {
    context.tasks.shutdown().cancel();
    context.tasks.finished(PATIENCE).await.unwrap();
}

/// Certificate and key in PEM.
#[derive(Clone)]
pub(super) struct AgentCertificate {
    pub(super) chain: String,
    pub(super) key: String,
}

/// Agent with a key, and the certificate that it has got.
pub(super) struct TestAgent {
    key: KeyPair,
    pub(super) name: String,
    pub(super) certificate: AgentCertificate,
}

impl TestAgent {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let without_zeros =
            |number: &[u8]| number.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<_>>();
        let (x, y) = key.der_bytes()[1..].split_at(32);
        let name = base_32(&Sha256::digest([without_zeros(x), without_zeros(y)].concat()));
        let certificate = AgentCertificate { chain: String::new(), key: key.serialize_pem() };
        Self { key, name, certificate }
    }

    pub(super) fn csr(&self, key: &KeyPair) -> String {
        subject(&self.name).serialize_request(key).unwrap().pem().unwrap()
    }

    pub(super) fn enrolment(&self) -> Value {
        json!({
            "apiVersion": "v1beta1", "kind": "EnrollmentRequest", "metadata": { "name": self.name },
            "spec": { "csr": self.csr(&self.key), "osMode": "image" },
        })
    }

    /// Path of the device, or of a part of it.
    pub(super) fn path(&self, part: &str) -> String {
        format!("/devices/{}{part}", self.name)
    }

    /// Document of the device that runs a version.
    pub(super) fn report(&self, version: &str, conditions: Value) -> Value {
        json!({
            "apiVersion": "v1beta1", "kind": "Device", "metadata": { "name": self.name }, "status": {
                "conditions": conditions, "applications": [], "applicationsSummary": { "status": "Healthy" },
                "systemInfo": { "architecture": "arm64", "bootID": "b", "operatingSystem": "linux", "agentVersion": "1" },
                "resources": { "cpu": "Healthy", "memory": "Healthy", "disk": "Healthy" },
                "integrity": { "status": "Unknown" }, "config": { "renderedVersion": version },
                "os": { "image": "", "imageDigest": "" }, "updated": { "status": "Unknown" },
                "summary": { "status": "Unknown" }, "lifecycle": { "status": "Unknown" },
            },
        })
    }
}

/// Returns bytes in base 32 with extended hexadecimal digits, without padding.
fn base_32(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1)).collect();
    let groups = bits.chunks(5).map(|group| (0..5).fold(0, |all, at| all * 2 + group.get(at).unwrap_or(&0)));
    groups.map(|group| char::from(SYMBOLS[usize::from(group)])).collect()
}

/// Connection over which requests follow each other.
pub(super) struct AgentConnection(BufReader<TlsStream<TcpStream>>);

impl AgentConnection {
    /// Sends a request and returns status and body of the answer; the error when the connection ends before.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<(u16, Value), String> {
        timeout(PATIENCE, self.exchange(method, path, body))
            .await
            .expect("an answer")
            .map_err(|error| error.to_string())
    }

    /// Sends a request without the second half of its body.
    pub(super) async fn send_half(&mut self, method: &str, path: &str, body: &Value) -> std::io::Result<()> {
        let request = request(method, path, &body.to_string());
        self.0.write_all(&request.as_bytes()[..request.len() - body.to_string().len() / 2]).await?;
        self.0.flush().await
    }

    async fn exchange(
        &mut self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> std::io::Result<(u16, Value)> {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.0.write_all(request(method, path, &body).as_bytes()).await?;
        let (status, headers) = self.head().await?;
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    async fn head(&mut self) -> std::io::Result<(u16, BTreeMap<String, String>)> {
        let mut first = String::new();
        if self.0.read_line(&mut first).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).await?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.to_owned()),
                None => return Ok((status, headers)),
            };
        }
    }
}

fn request(method: &str, path: &str, body: &str) -> String {
    let kind = if method == "PATCH" { "application/json-patch+json" } else { "application/json" };
    format!(
        "{method} /api/v1{path} HTTP/1.1\r\nHost: here\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len(),
    )
}
