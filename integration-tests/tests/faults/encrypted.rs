//! A mesh that speaks TLS while its authority and all certificates are replaced, and callers that it refuses.

use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use chassis::{
    mesh::tls::{CertificateIssuer, IssuedCertificate},
    settings::TlsSettings,
    within,
};
use domain::core::workload::WorkloadIdentity;
use expect_test::expect;
use integration_tests::{
    PATIENCE,
    bos::Bos,
    processes::{PARTS, Processes},
};
use proto::component::{
    DeleteComponentRequest, ListComponentsRequest, ReportStatusesRequest,
    component_service_client::ComponentServiceClient, report_service_client::ReportServiceClient,
};
use reqwest::{Certificate, Client, ClientBuilder, Identity, StatusCode};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::stage::{SteadyWriter, TEMPLATE, furnish};

const NODES: u32 = 40;

/// Hardware slow enough that a boot sees some authorities.
const SPEED: f64 = 0.05;

/// Time between two replacements of all certificates; every second one also replaces the authority.
const ROTATION: Duration = Duration::from_secs(1);

/// Fewest replacements during a boot.
const FEWEST: usize = 10;

/// Authorities, used in turn. Clients of the gateway trust all of them, parts only two at a time.
const AUTHORITIES: usize = 8;

/// Caller that is no part.
const OPERATOR: &str = "operator";

/// Refused connections, as parts count them.
const REFUSED: &str = "reveille_tls_handshakes_refused_total";

/// Calls that rules about methods refused, as parts count them.
const DENIED: &str = "reveille_calls_denied_total{";

/// Status of gRPC for a caller without a certificate.
const UNAUTHENTICATED: &str = "16";

/// Certificates of all parts and of an operator.
struct MeshCertificates {
    directory: PathBuf,
    authorities: Vec<CertificateIssuer>,
    generation: usize,
}

impl MeshCertificates {
    fn new(directory: PathBuf) -> Self {
        let authorities = (0..AUTHORITIES).map(|_| CertificateIssuer::new(1).unwrap()).collect();
        let certificates = Self { directory, authorities, generation: 0 };
        certificates.publish();
        certificates
    }

    /// Directory with the files of the current generation.
    fn current(&self) -> PathBuf {
        self.directory.join("current")
    }

    /// Certificates of all authorities, as PEM.
    fn authorities(&self) -> String {
        self.authorities.iter().map(CertificateIssuer::pem).collect()
    }

    fn authority(&self, number: usize) -> &CertificateIssuer {
        &self.authorities[number % AUTHORITIES]
    }

    fn replace(&mut self) {
        self.generation += 1;
        self.publish();
    }

    /// Replaces all files at once, as Kubernetes does with those of a Secret. Even generations are signed by a new
    /// authority, which the previous generation already trusted; odd ones trust the next authority instead of the
    /// previous one.
    fn publish(&self) {
        let issuer = self.authority(self.generation / 2);
        let other = match self.generation.is_multiple_of(2) {
            true => self.authority(self.generation / 2 + AUTHORITIES - 1),
            false => self.authority(self.generation / 2 + 1),
        };
        let directory = self.directory.join(self.generation.to_string());
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("ca.pem"), issuer.pem() + &other.pem()).unwrap();
        for holder in PARTS.map(|(part, _)| part).into_iter().chain([OPERATOR]) {
            let IssuedCertificate { certificate, key } = issue(issuer, holder);
            fs::write(directory.join(format!("{holder}.pem")), certificate).unwrap();
            fs::write(directory.join(format!("{holder}-key.pem")), key).unwrap();
        }
        let next = self.directory.join("next");
        symlink(&directory, &next).unwrap();
        fs::rename(next, self.current()).unwrap();
    }

    fn operator(&self) -> TlsSettings {
        self.holder(OPERATOR)
    }

    /// Settings of a caller with the certificate of this part.
    fn holder(&self, holder: &str) -> TlsSettings {
        let file = |name: &str| self.current().join(name);
        TlsSettings {
            certificate: file(&format!("{holder}.pem")),
            key: file(&format!("{holder}-key.pem")),
            ca_file: file("ca.pem"),
            ..TlsSettings::default()
        }
    }

    fn client(&self) -> ClientBuilder {
        let authorities = Certificate::from_pem_bundle(self.authorities().as_bytes()).unwrap();
        Client::builder().tls_certs_only(authorities).timeout(PATIENCE)
    }

    fn client_of_operator(&self) -> Client {
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let TlsSettings { certificate, key, .. } = self.operator();
        let both = read(&key) + &read(&certificate);
        self.client().identity(Identity::from_pem(both.as_bytes()).unwrap()).build().unwrap()
    }
}

fn issue(issuer: &CertificateIssuer, holder: &str) -> IssuedCertificate {
    let identity = format!("spiffe://reveille/{}", holder.replace('_', "-"));
    let identity = WorkloadIdentity::parse(&identity).unwrap();
    issuer.issue(&identity, &["127.0.0.1".to_owned()]).unwrap()
}

/// Parts that speak gRPC.
fn callees(mesh: &Processes) -> Vec<&'static str> {
    mesh.parts().into_iter().filter(|part| *part != "gateway").collect()
}

/// Calls every part over new connections for the time between two replacements.
async fn call_all(mesh: &Processes, certificates: &MeshCertificates) {
    let until = Instant::now() + ROTATION;
    while Instant::now() < until {
        for part in callees(mesh) {
            let channel = chassis::channel(&certificates.operator(), &mesh.url(part)).unwrap();
            let whole = HealthCheckRequest { service: String::new() };
            chassis::within(PATIENCE, HealthClient::new(channel).check(whole)).await.unwrap();
        }
        let bos = Bos::trusting(&certificates.authorities(), &mesh.url("gateway"));
        bos.get("/v2/options").await;
        sleep(Duration::from_millis(20)).await;
    }
}

/// Replaces certificates again and again until a session has succeeded on all nodes.
async fn replace_until_complete(mesh: &Processes, certificates: &mut MeshCertificates, session: &str) {
    let (fewest, until) = (certificates.generation + FEWEST, Instant::now() + PATIENCE);
    let path = format!("/v2/sessions/{session}");
    while certificates.generation < fewest
        || mesh.bos.get(&path).await["status"]["status"] != json!("complete")
    {
        assert!(Instant::now() < until, "{session} does not complete");
        certificates.replace();
        call_all(mesh, certificates).await;
    }
    succeeded(&mesh.bos, session).await;
}

async fn succeeded(bos: &Bos, session: &str) {
    let status = bos.get(&format!("/v2/sessions/{session}/status")).await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status}");
}

/// Returns the counts of refused connections and calls of all parts.
async fn refusals(mesh: &Processes, certificates: &MeshCertificates) -> Vec<String> {
    let client = certificates.client_of_operator();
    let mut found = Vec::new();
    for part in mesh.parts() {
        let answer = client.get(format!("{}/metrics", mesh.url(part))).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{part}");
        let metrics = answer.text().await.unwrap();
        let counts = metrics.lines().filter(|line| line.starts_with(REFUSED) || line.starts_with(DENIED));
        found.extend(counts.map(|line| format!("{part}: {line}")));
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn boots_go_on_while_certificates_and_authorities_are_replaced() {
    let mut mesh = Processes::prepare();
    let mut certificates = MeshCertificates::new(mesh.directory.path().join("certificates"));
    mesh.encrypt(&certificates.current(), &certificates.authorities());
    mesh.set(&format!("[simulator]\nnodes = {NODES}\nspeed = {SPEED:?}\n"));
    mesh.begin().await;
    furnish(&mesh.bos, NODES as usize).await;
    let writer = SteadyWriter::start(&mesh.bos);
    let session = mesh.bos.session(TEMPLATE, "boot").await;
    replace_until_complete(&mesh, &mut certificates, &session).await;
    let written = writer.stop().await;
    written.is_kept(&mesh.bos).await;
    assert_eq!(written.repeated, 0, "writes were not answered");
    assert_eq!(refusals(&mesh, &certificates).await, Vec::<String>::new());

    let session = mesh.bos.session(TEMPLATE, "reboot").await;
    for part in callees(&mesh).into_iter().filter(|part| *part != "simulator") {
        mesh.stop_part(part).await;
        mesh.start_part(part);
        certificates.replace();
    }
    mesh.bos.ready().await;
    replace_until_complete(&mesh, &mut certificates, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_without_a_certificate_of_the_mesh_learn_readiness_at_most() {
    let mut mesh = Processes::prepare();
    let certificates = MeshCertificates::new(mesh.directory.path().join("certificates"));
    mesh.encrypt(&certificates.current(), &certificates.authorities());
    mesh.set("[simulator]\nnodes = 1\n");
    mesh.begin().await;
    let nobody = certificates.client().build().unwrap();
    let IssuedCertificate { certificate, key } = issue(&CertificateIssuer::new(1).unwrap(), OPERATOR);
    let both = Identity::from_pem((key + &certificate).as_bytes()).unwrap();
    let foreign = certificates.client().identity(both).build().unwrap();
    for part in callees(&mesh) {
        let url = mesh.url(part);
        for (path, expected) in [
            ("/readyz", StatusCode::OK),
            ("/startz", StatusCode::OK),
            ("/metrics", StatusCode::UNAUTHORIZED),
            ("/", StatusCode::UNAUTHORIZED),
        ] {
            let answer = nobody.get(format!("{url}{path}")).send().await.unwrap();
            assert_eq!(answer.status(), expected, "{part}{path}");
        }
        let call = nobody.post(format!("{url}/grpc.health.v1.Health/Check"));
        let answer = call.header("content-type", "application/grpc").send().await.unwrap();
        assert_eq!(answer.headers()["grpc-status"], UNAUTHENTICATED, "{part}");
        assert!(foreign.get(format!("{url}/readyz")).send().await.is_err(), "{part}");
    }
    parts_take_calls_of_the_callers_in_their_rules(&mesh, &certificates).await;
}

/// Calls the component registry with valid certificates, some of them of the wrong part.
async fn parts_take_calls_of_the_callers_in_their_rules(mesh: &Processes, certificates: &MeshCertificates) {
    let url = mesh.url("component_registry");
    let mut rows = String::new();
    for holder in ["status_evaluator", "insight", "simulator", OPERATOR] {
        let channel = chassis::channel(&certificates.holder(holder), &url).unwrap();
        let mut reports = ReportServiceClient::new(channel.clone());
        let reported = within(PATIENCE, reports.report_statuses(ReportStatusesRequest::default())).await;
        let mut components = ComponentServiceClient::new(channel);
        let read = within(PATIENCE, components.list_components(ListComponentsRequest::default())).await;
        let delete = DeleteComponentRequest { id: "x9c0s0b0n0".into(), ..Default::default() };
        let deleted = within(PATIENCE, components.delete_component(delete)).await;
        let outcomes = [reported.err(), read.err(), deleted.err()].map(|refused| match refused {
            None => "answered".to_owned(),
            Some(status) => format!("{:?}: {}", status.code(), status.message()),
        });
        writeln!(rows, "{holder}\n    {}", outcomes.join("\n    ")).unwrap();
    }
    expect![[r#"
        status_evaluator
            answered
            answered
            PermissionDenied: spiffe://reveille/status-evaluator (status-evaluator) may not call reveille.component.v1.ComponentService/DeleteComponent, which takes calls of gateway, administrator; call with the certificate of one of them, or name the identity in tls.names of the called part
        insight
            PermissionDenied: spiffe://reveille/insight (insight) may not call reveille.component.v1.ReportService/ReportStatuses, which takes calls of status-evaluator; call with the certificate of one of them, or name the identity in tls.names of the called part
            answered
            PermissionDenied: spiffe://reveille/insight (insight) may not call reveille.component.v1.ComponentService/DeleteComponent, which takes calls of gateway, administrator; call with the certificate of one of them, or name the identity in tls.names of the called part
        simulator
            PermissionDenied: spiffe://reveille/simulator, which is no caller by name, may not call reveille.component.v1.ReportService/ReportStatuses, which takes calls of status-evaluator; call with the certificate of one of them, or name the identity in tls.names of the called part
            PermissionDenied: spiffe://reveille/simulator, which is no caller by name, may not call reveille.component.v1.ComponentService/ListComponents, which takes calls of component-registry, session-manager, status-evaluator, power-controller, config-coordinator, host-provisioner, fleet-manager, insight, gateway, operator, administrator; call with the certificate of one of them, or name the identity in tls.names of the called part
            PermissionDenied: spiffe://reveille/simulator, which is no caller by name, may not call reveille.component.v1.ComponentService/DeleteComponent, which takes calls of gateway, administrator; call with the certificate of one of them, or name the identity in tls.names of the called part
        operator
            PermissionDenied: spiffe://reveille/operator (operator) may not call reveille.component.v1.ReportService/ReportStatuses, which takes calls of status-evaluator; call with the certificate of one of them, or name the identity in tls.names of the called part
            answered
            PermissionDenied: spiffe://reveille/operator (operator) may not call reveille.component.v1.ComponentService/DeleteComponent, which takes calls of gateway, administrator; call with the certificate of one of them, or name the identity in tls.names of the called part
    "#]].assert_eq(&rows);
    let metrics = certificates.client_of_operator().get(format!("{url}/metrics")).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    let mut denied: Vec<_> = metrics.lines().filter(|line| line.starts_with(DENIED)).collect();
    denied.sort_unstable();
    expect![[r#"
        reveille_calls_denied_total{caller="insight",service="reveille.component.v1.ComponentService",method="DeleteComponent"} 1
        reveille_calls_denied_total{caller="insight",service="reveille.component.v1.ReportService",method="ReportStatuses"} 1
        reveille_calls_denied_total{caller="operator",service="reveille.component.v1.ComponentService",method="DeleteComponent"} 1
        reveille_calls_denied_total{caller="operator",service="reveille.component.v1.ReportService",method="ReportStatuses"} 1
        reveille_calls_denied_total{caller="status-evaluator",service="reveille.component.v1.ComponentService",method="DeleteComponent"} 1
        reveille_calls_denied_total{caller="unknown",service="reveille.component.v1.ComponentService",method="DeleteComponent"} 1
        reveille_calls_denied_total{caller="unknown",service="reveille.component.v1.ComponentService",method="ListComponents"} 1
        reveille_calls_denied_total{caller="unknown",service="reveille.component.v1.ReportService",method="ReportStatuses"} 1"#]].assert_eq(&denied.join("\n"));
}
