//! Parts that call each other over TLS: who is let in, and certificates that are replaced.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use chassis::{
    Context, Server, Settings,
    mesh::tls::{CertificateIssuer, ServerTls, write_private},
    settings::TlsSettings,
};
use domain::core::{
    call_rules::{CallTable, CallerName, DefaultNaming, MethodRule},
    workload::WorkloadIdentity,
};
use expect_test::expect;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};
use tonic::{Code, Status, body::Body};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tower::{Service as _, ServiceExt as _};

/// Bound of every wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// Certificate of a part, in a directory of its own.
struct PartFiles(tempfile::TempDir);

impl PartFiles {
    fn new(issuer: &CertificateIssuer, identity: &str) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.trust(&[issuer]);
        files.renew(issuer, identity);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn trust(&self, issuers: &[&CertificateIssuer]) {
        let all: String = issuers.iter().map(|issuer| issuer.pem()).collect();
        write_private(&self.path("ca.pem"), &all).unwrap();
    }

    fn renew(&self, issuer: &CertificateIssuer, identity: &str) {
        let identity = WorkloadIdentity::parse(identity).unwrap();
        let issued = issuer.issue(&identity, &["127.0.0.1".to_owned()]).unwrap();
        write_private(&self.path("key.pem"), &issued.key).unwrap();
        write_private(&self.path("certificate.pem"), &issued.certificate).unwrap();
    }

    fn settings(&self) -> TlsSettings {
        TlsSettings {
            certificate: self.path("certificate.pem"),
            key: self.path("key.pem"),
            ca_file: self.path("ca.pem"),
            ..TlsSettings::default()
        }
    }
}

async fn serve(tls: TlsSettings) -> (Context, SocketAddr) {
    serve_with(tls, Server::default()).await
}

async fn serve_with(tls: TlsSettings, server: Server) -> (Context, SocketAddr) {
    let context = Context::new(Settings { tls, ..Settings::default() });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    chassis::serve(&context, "part", listener, server).await.unwrap().now();
    (context, address)
}

/// Asks for the health of a part over a connection of its own.
async fn call(tls: &TlsSettings, address: SocketAddr) -> Result<(), Status> {
    let channel = chassis::channel(tls, &format!("https://{address}")).unwrap();
    let whole = HealthCheckRequest { service: String::new() };
    chassis::within(PATIENCE, HealthClient::new(channel).check(whole)).await.map(|_| ())
}

/// Checks that the connection ended before a call was answered. With TLS 1.3 a server refuses a client after the client has
/// finished its handshake, so a call may be under way by then.
fn is_cut_off(outcome: Result<(), Status>) {
    let code = outcome.unwrap_err().code();
    assert!(matches!(code, Code::Unavailable | Code::Cancelled | Code::Unknown), "{code:?}");
}

async fn get(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: part\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A refused client is cut off.
    if let Err(error) = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap() {
        return format!("cut off: {error}");
    }
    String::from_utf8_lossy(&answer).into_owned()
}

async fn without_certificate(authorities: &Path, address: SocketAddr, path: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authorities).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    get(TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap(), path).await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_parts_of_the_mesh_may_call() {
    let (ours, other) = (CertificateIssuer::new(1).unwrap(), CertificateIssuer::new(1).unwrap());
    let served = PartFiles::new(&ours, "spiffe://reveille/registry");
    let (_context, address) = serve(served.settings()).await;
    let caller = PartFiles::new(&ours, "spiffe://reveille/gateway");
    call(&caller.settings(), address).await.unwrap();
    let foreign = PartFiles::new(&other, "spiffe://reveille/gateway");
    foreign.trust(&[&ours]);
    is_cut_off(call(&foreign.settings(), address).await);
    let stranger = PartFiles::new(&ours, "spiffe://elsewhere/gateway");
    let lenient = TlsSettings { callers: "spiffe://reveille/*".into(), ..stranger.settings() };
    let refused = call(&lenient, address).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert_eq!(refused.message(), "spiffe://elsewhere/gateway is not among the identities that may call");
    let authorities = served.path("ca.pem");
    for (path, answer) in
        [("/readyz", "HTTP/1.1 200"), ("/startz", "HTTP/1.1 200"), ("/metrics", "HTTP/1.1 401")]
    {
        let told = without_certificate(&authorities, address, path).await;
        assert!(told.starts_with(answer), "{path}: {told}");
    }
    let plain = get(TcpStream::connect(address).await.unwrap(), "/readyz").await;
    assert!(!plain.contains("HTTP"), "{plain}");
    call(&caller.settings(), address).await.unwrap();
}

/// Rules about a service that is not there: an allowed call finds that nobody implements it.
const RULES: CallTable = CallTable {
    names: &[
        CallerName { name: "gateway", naming: DefaultNaming::Sibling },
        CallerName { name: "power", naming: DefaultNaming::Sibling },
    ],
    rules: &[MethodRule { service: "note.v1.NoteService", methods: &["PutNote"], callers: &["gateway"] }],
};

/// Calls a method without a message.
async fn call_method(tls: &TlsSettings, address: SocketAddr, path: &'static str) -> Status {
    let mut channel = chassis::channel(tls, &format!("https://{address}")).unwrap();
    let request = http::Request::post(path).header("content-type", "application/grpc").body(Body::empty());
    channel.ready().await.unwrap();
    let answer = tokio::time::timeout(PATIENCE, channel.call(request.unwrap())).await.unwrap().unwrap();
    Status::from_header_map(answer.headers()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_take_calls_of_the_callers_in_their_rules() {
    let issuer = CertificateIssuer::new(1).unwrap();
    let served = PartFiles::new(&issuer, "spiffe://reveille/registry");
    let (_context, address) = serve_with(served.settings(), Server::with_rules(RULES)).await;
    let mut rows = String::new();
    for caller in ["registry", "gateway", "power", "other"] {
        let files = PartFiles::new(&issuer, &format!("spiffe://reveille/{caller}"));
        for path in ["/note.v1.NoteService/PutNote", "/note.v1.NoteService/GetNote"] {
            let status = call_method(&files.settings(), address, path).await;
            rows += &format!("{caller} {path}: {:?} '{}'\n", status.code(), status.message());
        }
        call(&files.settings(), address).await.unwrap();
    }
    expect![[r#"
        registry /note.v1.NoteService/PutNote: Unimplemented ''
        registry /note.v1.NoteService/GetNote: Unimplemented 'spiffe://reveille/registry, which is no caller by name, may not call note.v1.NoteService/GetNote: no rule of this part is about the method; run the same version of both parts'
        gateway /note.v1.NoteService/PutNote: Unimplemented ''
        gateway /note.v1.NoteService/GetNote: Unimplemented 'spiffe://reveille/gateway (gateway) may not call note.v1.NoteService/GetNote: no rule of this part is about the method; run the same version of both parts'
        power /note.v1.NoteService/PutNote: PermissionDenied 'spiffe://reveille/power (power) may not call note.v1.NoteService/PutNote, which takes calls of gateway; call with the certificate of one of them, or name the identity in tls.names of the called part'
        power /note.v1.NoteService/GetNote: Unimplemented 'spiffe://reveille/power (power) may not call note.v1.NoteService/GetNote: no rule of this part is about the method; run the same version of both parts'
        other /note.v1.NoteService/PutNote: PermissionDenied 'spiffe://reveille/other, which is no caller by name, may not call note.v1.NoteService/PutNote, which takes calls of gateway; call with the certificate of one of them, or name the identity in tls.names of the called part'
        other /note.v1.NoteService/GetNote: Unimplemented 'spiffe://reveille/other, which is no caller by name, may not call note.v1.NoteService/GetNote: no rule of this part is about the method; run the same version of both parts'
    "#]].assert_eq(&rows);

    let names = BTreeMap::from([("gateway".to_owned(), "spiffe://reveille/power".to_owned())]);
    let settings = TlsSettings { names, ..served.settings() };
    let (_context, renamed) = serve_with(settings, Server::with_rules(RULES)).await;
    let power = PartFiles::new(&issuer, "spiffe://reveille/power");
    let allowed = call_method(&power.settings(), renamed, "/note.v1.NoteService/PutNote").await;
    assert_eq!(allowed.code(), Code::Unimplemented);
    assert_eq!(allowed.message(), "");

    let names = BTreeMap::from([("king".to_owned(), "spiffe://reveille/power".to_owned())]);
    let refused = ServerTls::for_parts(&TlsSettings { names, ..served.settings() }, RULES).err().unwrap();
    assert_eq!(format!("{refused:#}"), "tls.names.king: is no name of a caller; there are gateway, power");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_call_only_parts_of_the_mesh() {
    let ours = CertificateIssuer::new(1).unwrap();
    let served = PartFiles::new(&ours, "spiffe://reveille/registry");
    let (_context, address) = serve(served.settings()).await;
    let caller = PartFiles::new(&ours, "spiffe://reveille/gateway");
    let only = TlsSettings { callers: "spiffe://reveille/power".into(), ..caller.settings() };
    is_cut_off(call(&only, address).await);
    let refused = chassis::plain_channel(&format!("https://{address}")).unwrap_err().to_string();
    assert!(refused.contains("tls.ca_file"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_outlive_the_replacement_of_everything() {
    const SERVED: &str = "spiffe://reveille/registry";
    const CALLER: &str = "spiffe://reveille/gateway";
    let (old, new) = (CertificateIssuer::new(1).unwrap(), CertificateIssuer::new(1).unwrap());
    let (served, caller) = (PartFiles::new(&old, SERVED), PartFiles::new(&old, CALLER));
    let outdated = PartFiles::new(&old, CALLER);
    outdated.trust(&[&old, &new]);
    let (context, address) = serve(served.settings()).await;
    let channel = chassis::channel(&caller.settings(), &format!("https://{address}")).unwrap();
    let watched = HealthCheckRequest { service: String::new() };
    let mut stream = HealthClient::new(channel).watch(watched).await.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());
    for files in [&served, &caller] {
        files.trust(&[&old, &new]);
    }
    caller.renew(&new, CALLER);
    call(&caller.settings(), address).await.unwrap();
    call(&outdated.settings(), address).await.unwrap();
    served.renew(&new, SERVED);
    for files in [&served, &caller] {
        files.trust(&[&new]);
    }
    call(&caller.settings(), address).await.unwrap();
    is_cut_off(call(&outdated.settings(), address).await);
    // The stream of the first certificates still brings changes.
    context.tasks.shutdown().cancel();
    let next = tokio::time::timeout(PATIENCE, stream.message()).await.unwrap().unwrap();
    assert!(next.is_some(), "the end of service is the next change");
}

#[test]
fn ports_of_other_machines_are_encrypted_or_meant_not_to_be() {
    let files = PartFiles::new(&CertificateIssuer::new(1).unwrap(), "spiffe://reveille/gateway");
    let encrypted = ServerTls::for_parts(&files.settings(), CallTable::default()).unwrap();
    for (address, tls, insecure, is_refused) in [
        ("127.0.0.1:1", None, false, false),
        ("[::1]:1", None, false, false),
        ("[::ffff:127.0.0.1]:1", None, false, false),
        ("0.0.0.0:1", None, false, true),
        ("[::]:1", None, false, true),
        ("192.0.2.1:1", None, false, true),
        ("192.0.2.1:1", None, true, false),
        ("192.0.2.1:1", encrypted.as_ref(), false, false),
    ] {
        let checked = ServerTls::check_exposure(address.parse().unwrap(), tls, "tls.certificate", insecure);
        assert_eq!(checked.is_err(), is_refused, "{address} {insecure}: {checked:?}");
    }
}
