//! Enrolment beside the real registry.

use std::{collections::BTreeMap, time::Duration};

use chassis::{Channel, Context, Settings};
use proto::{
    device::{
        AgentReport, DecommissionDeviceRequest, DeleteDeviceRequest, Device, DeviceCondition,
        GetDeviceRequest, ReportDeviceStatusRequest, StatusDocument,
        device_agent_service_client::DeviceAgentServiceClient, device_service_client::DeviceServiceClient,
    },
    event::{EventFilter, ListEventsRequest, event_service_client::EventServiceClient},
    fleet::{
        ApproveEnrolmentRequestRequest, CertificateRevocation, DeleteEnrolmentRequestRequest,
        EnrolmentRequest, GetEnrolmentRequestRequest, ListEnrolmentRequestsRequest, RenewCertificateRequest,
        SubmitEnrolmentRequestRequest, WatchCertificateAuthoritiesRequest,
        WatchCertificateRevocationsRequest, certificate_service_client::CertificateServiceClient,
        enrolment_service_client::EnrolmentServiceClient,
    },
};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData as _};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use test_registry::{CallFault, TestRegistry};
use tokio::{net::TcpListener, time::timeout};
use tonic::{Code, Status};

use domain::device::record::name::DeviceName;

/// Longest wait for any event, far longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Registry, and a fleet manager in front of which it stands.
struct EnrolmentWorld {
    registry: TestRegistry,
    settings: Settings,
    running: Option<(Context, Channel)>,
    _directory: TempDir,
}

impl EnrolmentWorld {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let registry = TestRegistry::start().await;
        let mut settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
        settings.component_registry.url = registry.url();
        let mut world = Self { registry, settings, running: None, _directory: directory };
        world.resume().await;
        world
    }

    async fn resume(&mut self) {
        let context = Context::new(self.settings.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        crate::start(context.clone(), listener.into()).await.unwrap();
        self.running = Some((context, chassis::plain_channel(&url).unwrap()));
    }

    async fn stop(&mut self) {
        let (context, _) = self.running.take().unwrap();
        context.tasks.shutdown().cancel();
        context.tasks.finished(PATIENCE).await.unwrap();
    }

    fn channel(&self) -> Channel {
        self.running.as_ref().unwrap().1.clone()
    }

    fn requests(&self) -> EnrolmentServiceClient<Channel> {
        EnrolmentServiceClient::new(self.channel())
    }

    async fn submit(&self, agent: &TestAgent, labels: &[(&str, &str)]) -> Result<EnrolmentRequest, Status> {
        let request = EnrolmentRequest {
            name: agent.name.clone(),
            csr: agent.csr(&agent.name),
            labels: words(labels),
            os_mode: "image".to_owned(),
            ..EnrolmentRequest::default()
        };
        self.submit_as(request).await
    }

    async fn submit_as(&self, request: EnrolmentRequest) -> Result<EnrolmentRequest, Status> {
        let mut client = self.requests();
        let request = SubmitEnrolmentRequestRequest { request: Some(request) };
        Ok(client.submit_enrolment_request(request).await?.into_inner().request.unwrap())
    }

    async fn approve(&self, name: &str, labels: &[(&str, &str)]) -> Result<EnrolmentRequest, Status> {
        let mut client = self.requests();
        let request = ApproveEnrolmentRequestRequest {
            name: name.to_owned(),
            approved: true,
            labels: words(labels),
            replace_labels: false,
            approved_by: "me".to_owned(),
        };
        Ok(client.approve_enrolment_request(request).await?.into_inner().request.unwrap())
    }

    async fn get(&self, name: &str) -> Result<EnrolmentRequest, Status> {
        let request = GetEnrolmentRequestRequest { name: name.to_owned() };
        Ok(self.requests().get_enrolment_request(request).await?.into_inner().request.unwrap())
    }

    async fn renew(&self, name: &str, renewal: &str, csr: String) -> Result<EnrolmentRequest, Status> {
        let renewal_name = renewal.to_owned();
        let request = RenewCertificateRequest { name: name.to_owned(), renewal_name, csr };
        Ok(self.requests().renew_certificate(request).await?.into_inner().request.unwrap())
    }

    async fn delete(&self, name: &str) -> Result<(), Status> {
        let request = DeleteEnrolmentRequestRequest { name: name.to_owned() };
        self.requests().delete_enrolment_request(request).await.map(drop)
    }

    fn devices(&self) -> DeviceServiceClient<Channel> {
        DeviceServiceClient::new(self.registry.channel())
    }

    async fn device(&self, name: &str) -> Option<Device> {
        let answer = self.devices().get_device(GetDeviceRequest { name: name.to_owned() }).await;
        answer.ok().and_then(|answer| answer.into_inner().device)
    }

    async fn delete_device(&self, name: &str) {
        self.devices().delete_device(DeleteDeviceRequest { name: name.to_owned() }).await.unwrap();
    }

    /// Reports a stage of the end of a device, as its agent does.
    async fn report_end(&self, name: &str, reason: &str) {
        let condition = DeviceCondition {
            r#type: "DeviceDecommissioning".to_owned(),
            status: "True".to_owned(),
            reason: reason.to_owned(),
            ..DeviceCondition::default()
        };
        let report = AgentReport { conditions: vec![condition], ..AgentReport::default() };
        let document = StatusDocument { report: Some(report), lifecycle: None };
        let request = ReportDeviceStatusRequest {
            name: name.to_owned(),
            document: Some(document),
            ..ReportDeviceStatusRequest::default()
        };
        let mut agents = DeviceAgentServiceClient::new(self.registry.channel());
        agents.report_device_status(request).await.unwrap();
    }

    /// Waits for the revocation of the certificates of a device.
    async fn revocation(&self, name: &str, reason: &str) -> CertificateRevocation {
        let mut certificates = CertificateServiceClient::new(self.channel());
        let request = WatchCertificateRevocationsRequest { resume_revision: 0 };
        let mut stream = certificates.watch_certificate_revocations(request).await.unwrap().into_inner();
        let found = async {
            loop {
                let batch = stream.message().await.unwrap().expect("the watch goes on");
                let mut revocations = batch.certificate_revocations.into_iter();
                if let Some(found) = revocations.find(|found| found.name == name && found.reason == reason) {
                    return found;
                }
            }
        };
        timeout(PATIENCE, found).await.expect("a revocation")
    }

    async fn authorities(&self) -> usize {
        let mut certificates = CertificateServiceClient::new(self.channel());
        let request = WatchCertificateAuthoritiesRequest { resume_revision: 0 };
        let mut stream = certificates.watch_certificate_authorities(request).await.unwrap().into_inner();
        let mut count = 0;
        loop {
            let batch = stream.message().await.unwrap().expect("the watch goes on");
            count += batch.certificate_authorities.len();
            if batch.synced {
                return count;
            }
        }
    }

    /// Waits until a request is as it should be.
    async fn until(&self, name: &str, is_so: impl Fn(&Result<EnrolmentRequest, Status>) -> bool) {
        let reached = async {
            while !is_so(&self.get(name).await) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, reached).await.expect("the request changes");
    }

    async fn end(mut self) {
        self.stop().await;
        self.registry.stop().await;
    }
}

/// Agent with a key.
struct TestAgent {
    key: KeyPair,
    name: String,
}

impl TestAgent {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let without_zeros =
            |number: &[u8]| number.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<_>>();
        let (x, y) = key.der_bytes()[1..].split_at(32);
        let digest = Sha256::digest([without_zeros(x), without_zeros(y)].concat());
        let name = DeviceName::of_key(&digest.into()).to_string();
        Self { key, name }
    }

    fn csr(&self, name: &str) -> String {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.serialize_request(&self.key).unwrap().pem().unwrap()
    }
}

fn words(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn code<T: std::fmt::Debug>(answer: Result<T, Status>) -> Code {
    answer.expect_err("a refusal").code()
}

#[tokio::test]
async fn approved_agents_have_devices_and_certificates() {
    let world = EnrolmentWorld::start().await;
    let agent = TestAgent::new();
    let submitted = world.submit(&agent, &[("a", "1"), ("b", "1")]).await.unwrap();
    assert!(submitted.certificate.is_empty() && submitted.approval.is_none());
    assert_eq!(world.device(&agent.name).await, None);

    let approved = world.approve(&agent.name, &[("b", "2")]).await.unwrap();
    assert!(approved.certificate.starts_with("-----BEGIN CERTIFICATE-----"), "{}", approved.certificate);
    let device = world.device(&agent.name).await.expect("a device");
    let (meta, status) = (device.meta.unwrap(), device.status.unwrap());
    assert_eq!(meta.labels, words(&[("a", "1"), ("b", "2")]));
    assert_eq!(status.lifecycle.unwrap().status, "Enrolled");
    let reported = device.reported.unwrap();
    assert_eq!(reported.os_mode, "image");
    assert_eq!(reported.integrity.unwrap().overall.unwrap().status, "Unsupported");

    // A31.
    assert_eq!(code(world.approve(&agent.name, &[]).await), Code::InvalidArgument);
    assert_eq!(code(world.delete(&agent.name).await), Code::FailedPrecondition);
    assert_eq!(code(world.submit(&agent, &[]).await), Code::InvalidArgument);

    let list = ListEnrolmentRequestsRequest {
        field_selector: "status.approval.approved=true".to_owned(),
        ..ListEnrolmentRequestsRequest::default()
    };
    let mut pages = world.requests().list_enrolment_requests(list).await.unwrap().into_inner();
    let page = pages.message().await.unwrap().unwrap();
    assert_eq!(page.requests, [world.get(&agent.name).await.unwrap()]);

    let filter = EventFilter { resource: "enrolment_request".to_owned(), ..EventFilter::default() };
    let events = ListEventsRequest { filter: Some(filter), ..ListEventsRequest::default() };
    let events = EventServiceClient::new(world.channel()).list_events(events).await.unwrap().into_inner();
    let kinds: Vec<_> =
        events.events.iter().map(|event| event.body.as_ref().unwrap().kind.as_str()).collect();
    assert_eq!(kinds, ["ResourceCreated", "EnrollmentRequestApproved"]);
    world.end().await;
}

#[tokio::test]
async fn requests_of_liars_are_refused_by_field() {
    let world = EnrolmentWorld::start().await;
    let (agent, other) = (TestAgent::new(), TestAgent::new());
    let lie = |name: &TestAgent, csr: String| EnrolmentRequest {
        name: name.name.clone(),
        csr,
        ..Default::default()
    };
    for request in [
        lie(&other, agent.csr(&other.name)),
        lie(&agent, agent.csr(&other.name)),
        lie(&agent, "csr".to_owned()),
    ] {
        assert_eq!(code(world.submit_as(request).await), Code::InvalidArgument);
    }
    assert_eq!(code(world.get(&agent.name).await), Code::NotFound);
    world.end().await;
}

#[tokio::test]
async fn interrupted_approval_is_completed_after_a_restart() {
    let mut world = EnrolmentWorld::start().await;
    let agent = TestAgent::new();
    world.submit(&agent, &[]).await.unwrap();
    world.registry.proxy.fault("ReportDeviceEnrolment", CallFault::Refused);
    assert_eq!(code(world.approve(&agent.name, &[]).await), Code::Unavailable);
    let pending = world.get(&agent.name).await.unwrap();
    assert!(pending.approval.is_some() && pending.certificate.is_empty());
    assert_eq!(code(world.delete(&agent.name).await), Code::FailedPrecondition);
    world.stop().await;
    assert_eq!(world.device(&agent.name).await, None);

    world.registry.proxy.mend("ReportDeviceEnrolment");
    world.resume().await;
    world
        .until(&agent.name, |request| request.as_ref().is_ok_and(|found| !found.certificate.is_empty()))
        .await;
    assert!(world.device(&agent.name).await.is_some());
    world.end().await;
}

#[tokio::test]
async fn deleted_devices_lose_requests_and_certificates() {
    let mut world = EnrolmentWorld::start().await;
    let agent = TestAgent::new();
    world.submit(&agent, &[]).await.unwrap();
    let first = world.approve(&agent.name, &[]).await.unwrap().issued_at.unwrap();
    // The deletion is found after a restart too.
    world.stop().await;
    world.delete_device(&agent.name).await;
    world.resume().await;
    world
        .until(&agent.name, |request| request.as_ref().is_err_and(|status| status.code() == Code::NotFound))
        .await;
    let revoked = world.revocation(&agent.name, "Deleted").await.issued_until.unwrap();
    assert!((revoked.seconds, revoked.nanos) >= (first.seconds, first.nanos));

    world.submit(&agent, &[]).await.unwrap();
    let second = world.approve(&agent.name, &[]).await.unwrap().issued_at.unwrap();
    assert!((second.seconds, second.nanos) > (revoked.seconds, revoked.nanos));
    world.end().await;
}

#[tokio::test]
async fn certificates_are_renewed_until_the_device_ends() {
    let world = EnrolmentWorld::start().await;
    let (agent, next) = (TestAgent::new(), TestAgent::new());
    world.submit(&agent, &[]).await.unwrap();
    assert_eq!(code(world.renew(&agent.name, "r1", next.csr(&agent.name)).await), Code::NotFound);
    let first = world.approve(&agent.name, &[]).await.unwrap();

    let csr = next.csr(&agent.name);
    let renewed = world.renew(&agent.name, "r1", csr.clone()).await.unwrap();
    assert_ne!(renewed.certificate, first.certificate);
    assert_eq!(world.renew(&agent.name, "r1", csr).await.unwrap(), renewed);
    assert_eq!(code(world.renew(&agent.name, "r1", agent.csr(&agent.name)).await), Code::AlreadyExists);
    assert_eq!(code(world.renew(&agent.name, "r2", next.csr(&next.name)).await), Code::InvalidArgument);

    let end = DecommissionDeviceRequest { name: agent.name.clone(), target: "Unenroll".to_owned() };
    world.devices().decommission_device(end).await.unwrap();
    world.renew(&agent.name, "r2", agent.csr(&agent.name)).await.unwrap();
    world.report_end(&agent.name, "Started").await;
    assert_eq!(code(world.renew(&agent.name, "r3", agent.csr(&agent.name)).await), Code::FailedPrecondition);
    world.report_end(&agent.name, "Completed").await;
    let latest = world.get(&agent.name).await.unwrap().issued_at.unwrap();
    let revoked = world.revocation(&agent.name, "Decommissioned").await.issued_until.unwrap();
    assert!((revoked.seconds, revoked.nanos) >= (latest.seconds, latest.nanos));
    world.end().await;
}

#[tokio::test]
async fn replaced_authority_stays_on_record() {
    let mut world = EnrolmentWorld::start().await;
    assert_eq!(world.authorities().await, 1);
    world.stop().await;
    std::fs::remove_file(world.settings.data_dir.join("device-authority.pem")).unwrap();
    world.resume().await;
    assert_eq!(world.authorities().await, 2);
    world.end().await;
}
