//! Bare-metal hosts: what people write, what is decided, and who reads secrets.

use std::collections::BTreeMap;

use chassis::mesh::call_class::{self, CallClass};
use futures_util::{FutureExt as _, TryStreamExt as _, future::BoxFuture};
use proto::{
    component::{Action, ActionReport, ReportActionsRequest, report_service_client::ReportServiceClient},
    event::{EventBody, EventFilter, ListEventsRequest, event_service_client::EventServiceClient},
    host::{
        AbortHostRequest, BmcDetails, ClaimedHost, CompanionChange, CreateHostDocumentRequest,
        CreateHostRequest, CreateHostSecretRequest, CredentialsRecord, DeleteHostRequest, DocumentKind,
        DocumentName, DriverCall, GetHostDocumentRequest, GetHostRequest, GetHostSecretRequest, Host,
        HostDecision, HostDocument, HostImage, HostInventory, HostName, HostProgress, HostSecret, HostSpec,
        HostStatus, HostWork, LabelCondition, LabelOperator, ListHostsRequest, NodeClaim, ObjectFilter,
        ObjectMeta, PowerOnCall, Precondition, ProvisioningStatus, ReadSecretValuesRequest,
        RebootHostRequest, ReleaseNodesRequest, ReplaceHostRequest, ReplaceHostSecretRequest,
        ReplaceHostStatusRequest, ReportHostDecisionsRequest, RetryHostRequest, SecretName,
        SetHostPowerRequest, WatchHostDocumentsRequest, WatchHostSecretsRequest, WatchHostsRequest,
        companion_change::Change, driver_call::Operation,
        host_document_service_client::HostDocumentServiceClient,
        host_report_service_client::HostReportServiceClient,
        host_secret_service_client::HostSecretServiceClient, host_service_client::HostServiceClient,
    },
};
use tonic::Code;

use super::{Channel, InventoryDriver, N0, N1, Site, eventually, smd::Smd};

pub(super) const FINALIZER: &str = "baremetalhost.metal3.io";

pub(super) async fn site() -> Site {
    let smd = Smd::start().await;
    Box::pin(Site::with_smd(&smd, |_| {})).await
}

pub(super) fn meta(name: &str) -> ObjectMeta {
    ObjectMeta { namespace: "m".to_owned(), name: name.to_owned(), ..ObjectMeta::default() }
}

pub(super) fn name(name: &str) -> Option<HostName> {
    Some(HostName { namespace: "m".to_owned(), name: name.to_owned() })
}

pub(super) fn host(name: &str, address: &str) -> Host {
    let bmc = BmcDetails {
        address: address.to_owned(),
        credentials_name: "login".to_owned(),
        ..BmcDetails::default()
    };
    let spec = HostSpec { bmc: Some(bmc), online: true, ..HostSpec::default() };
    Host { meta: Some(meta(name)), spec: Some(spec), ..Host::default() }
}

/// Returns the numbers of a host: generation and change.
fn numbers(host: &Host) -> (u64, u64) {
    (host.meta.as_ref().unwrap().generation, host.change)
}

/// Futures with hosts are large, so those that tests have many of are on the heap.
impl Site {
    pub(super) fn hosts(&self) -> HostServiceClient<Channel> {
        HostServiceClient::new(self.channel.clone())
    }

    pub(super) fn secrets(&self) -> HostSecretServiceClient<Channel> {
        HostSecretServiceClient::new(self.channel.clone())
    }

    pub(super) fn make(&self, host: Host) -> BoxFuture<'_, Host> {
        let request = CreateHostRequest { host: Some(host), validate_only: false };
        async move { self.hosts().create_host(request).await.unwrap().into_inner().host.unwrap() }.boxed()
    }

    pub(super) fn host(&self, of: &str) -> BoxFuture<'_, Option<Host>> {
        let request = GetHostRequest { name: name(of) };
        let answer = async move { self.hosts().get_host(request).await };
        answer.map(|answer| answer.ok().and_then(|answer| answer.into_inner().host)).boxed()
    }

    pub(super) fn put(&self, host: Host, revision: u64) -> BoxFuture<'_, Result<Host, Code>> {
        let precondition = Some(Precondition { revision, uid: String::new() });
        let request = ReplaceHostRequest { host: Some(host), precondition, validate_only: false };
        let answer = async move { self.hosts().replace_host(request).await };
        answer
            .map(|answer| {
                answer.map(|answer| answer.into_inner().host.unwrap()).map_err(|status| status.code())
            })
            .boxed()
    }

    /// Makes a host on which a system is installed.
    pub(super) async fn install(&self, of: &str) {
        let image = Some(HostImage { url: "oci://images/os".to_owned(), ..HostImage::default() });
        let mut wanted = host(of, "");
        wanted.meta.as_mut().unwrap().finalizers = vec![FINALIZER.to_owned()];
        wanted.spec.as_mut().unwrap().image.clone_from(&image);
        self.make(wanted).await;
        let provisioning = Some(ProvisioningStatus {
            state: "provisioned".to_owned(),
            image,
            ..ProvisioningStatus::default()
        });
        let status = Some(HostStatus { provisioning, ..HostStatus::default() });
        let request =
            ReplaceHostStatusRequest { name: name(of), status, ..ReplaceHostStatusRequest::default() };
        self.hosts().replace_host_status(request).await.unwrap();
    }

    pub(super) async fn make_secret(&self, name: &str) {
        let host_secret = Some(HostSecret { meta: Some(meta(name)), ..HostSecret::default() });
        let request = CreateHostSecretRequest { host_secret, ..CreateHostSecretRequest::default() };
        self.secrets().create_host_secret(request).await.unwrap();
    }

    /// Returns the number of claims on a secret.
    async fn claims(&self, name: &str) -> usize {
        let name = SecretName { namespace: "m".to_owned(), name: name.to_owned() };
        let answer = self.secrets().get_host_secret(GetHostSecretRequest { name: Some(name) }).await;
        answer.unwrap().into_inner().host_secret.unwrap().meta.unwrap().finalizers.len()
    }

    /// Reports a decision; returns whether it was stale.
    async fn decided(&self, decision: HostDecision) -> bool {
        let request = ReportHostDecisionsRequest { decisions: vec![decision] };
        let mut reports = HostReportServiceClient::new(self.channel.clone());
        !reports.report_host_decisions(request).await.unwrap().into_inner().stale_names.is_empty()
    }

    async fn listed(&self, filter: Option<ObjectFilter>) -> Vec<String> {
        let request = ListHostsRequest { filter, ..ListHostsRequest::default() };
        let answer = self.hosts().list_hosts(request).await.unwrap().into_inner();
        let parts: Vec<_> = answer.try_collect().await.unwrap();
        let hosts = parts.into_iter().flat_map(|part| part.hosts);
        hosts.map(|host| host.meta.unwrap().name).collect()
    }

    async fn host_story(&self, of: &str) -> Vec<String> {
        let (keys, resource) = (vec![format!("m/{of}")], "host".to_owned());
        let filter = Some(EventFilter { keys, resource, ..EventFilter::default() });
        let mut client = EventServiceClient::new(self.channel.clone());
        let request = ListEventsRequest { filter, ..ListEventsRequest::default() };
        let events = client.list_events(request).await.unwrap().into_inner().events;
        let lines = events.into_iter().map(|event| {
            let body = event.body.unwrap_or_default();
            let words = [event.actor, body.kind, body.reason, body.text];
            words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        });
        lines.collect()
    }
}

fn decision(host: &Host, state: &str) -> HostDecision {
    let provisioning = ProvisioningStatus { state: state.to_owned(), ..ProvisioningStatus::default() };
    let status = HostStatus { provisioning: Some(provisioning), ..HostStatus::default() };
    HostDecision {
        name: name(&host.meta.as_ref().unwrap().name),
        revision: host.revision,
        status: Some(status),
        has_finalizer: true,
        ..HostDecision::default()
    }
}

#[tokio::test]
async fn hosts_are_made_once_and_read() {
    let site = site().await;
    let made = site.make(host("h1", "redfish://bmc1")).await;
    assert_eq!(numbers(&made), (1, 1));
    assert!(made.revision > 0 && !made.meta.as_ref().unwrap().uid.is_empty());
    let again = CreateHostRequest { host: Some(host("h1", "")), validate_only: false };
    assert_eq!(site.hosts().create_host(again).await.unwrap_err().code(), Code::AlreadyExists);
    let tried = CreateHostRequest { host: Some(host("h2", "")), validate_only: true };
    site.hosts().create_host(tried).await.unwrap();
    assert_eq!(site.host("h2").await, None);
    site.stop().await;
}

#[tokio::test]
async fn hosts_are_replaced_by_revision() {
    let site = site().await;
    let made = site.make(host("h1", "redfish://bmc1")).await;
    assert_eq!(site.put(made.clone(), made.revision).await, Ok(made.clone()), "nothing changes");
    let mut wanted = made.clone();
    wanted.spec.as_mut().unwrap().description = "rack 1".to_owned();
    let changed = site.put(wanted.clone(), made.revision).await.unwrap();
    assert_eq!(numbers(&changed), (2, 2));
    assert_eq!(site.put(wanted.clone(), made.revision).await, Err(Code::Aborted));
    wanted.meta.as_mut().unwrap().labels = [("row".to_owned(), "a".to_owned())].into();
    assert_eq!(numbers(&site.put(wanted, 0).await.unwrap()), (2, 2), "a label wakes nobody");
    site.stop().await;
}

#[tokio::test]
async fn every_violation_is_named() {
    let site = site().await;
    let mut wrong = host("h1", "ilo4://bmc");
    wrong.spec.as_mut().unwrap().boot_mac_address = "00:11".to_owned();
    let request = CreateHostRequest { host: Some(wrong), validate_only: false };
    let refused = site.hosts().create_host(request).await.unwrap_err();
    let fields = match chassis::Fault::from(refused) {
        chassis::Fault::Violations(found) => found.into_iter().map(|one| one.field).collect(),
        other => vec![other.to_string()],
    };
    assert_eq!(fields, ["spec.bmc.address", "spec.bootMACAddress"]);
    site.stop().await;
}

#[tokio::test]
async fn lists_and_watches_pick_hosts() {
    let site = site().await;
    for (one, row) in [("h1", "a"), ("h2", "b"), ("h3", "a")] {
        let mut wanted = host(one, "");
        wanted.meta.as_mut().unwrap().labels = [("row".to_owned(), row.to_owned())].into();
        site.make(wanted).await;
    }
    let mut elsewhere = host("h9", "");
    elsewhere.meta.as_mut().unwrap().namespace = "other".to_owned();
    let made = site.make(elsewhere).await;
    let labels = |operator: LabelOperator, values: &[&str]| {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let condition = LabelCondition { key: "row".to_owned(), operator: operator.into(), values };
        Some(ObjectFilter { namespace: Some("m".to_owned()), labels: vec![condition] })
    };
    assert_eq!(site.listed(None).await, ["h1", "h2", "h3", "h9"]);
    assert_eq!(site.listed(labels(LabelOperator::In, &["a"])).await, ["h1", "h3"]);
    assert_eq!(site.listed(labels(LabelOperator::NotIn, &["a"])).await, ["h2"]);
    assert_eq!(site.listed(labels(LabelOperator::DoesNotExist, &[])).await, Vec::<String>::new());

    let request = WatchHostsRequest { resume_revision: 0, filter: labels(LabelOperator::In, &["b"]) };
    let mut watch = site.hosts().watch_hosts(request).await.unwrap().into_inner();
    let first = watch.message().await.unwrap().unwrap();
    assert_eq!(first.hosts.len(), 1);
    let mut moved = site.host("h2").await.unwrap();
    moved.meta.as_mut().unwrap().labels.clear();
    site.put(moved, 0).await.unwrap();
    let gone = loop {
        let part = watch.message().await.unwrap().unwrap();
        if let Some(deletion) = part.deletions.into_iter().next() {
            break deletion.key;
        }
    };
    assert_eq!(gone, "m/h2");
    drop(watch);

    // A watch with a filter resumes, and names what the filter leaves out as gone.
    let filter = labels(LabelOperator::In, &["a"]);
    let resume_revision = made.revision;
    site.make(host("h4", "")).await;
    let mut moved = site.host("h1").await.unwrap();
    moved.spec.as_mut().unwrap().online = false;
    site.put(moved, 0).await.unwrap();
    let request = WatchHostsRequest { resume_revision, filter };
    let mut watch = site.hosts().watch_hosts(request).await.unwrap().into_inner();
    let (mut hosts, mut deletions) = (Vec::new(), Vec::new());
    while hosts.is_empty() {
        let part = watch.message().await.unwrap().unwrap();
        hosts.extend(part.hosts.into_iter().map(|host| host.meta.unwrap().name));
        deletions.extend(part.deletions.into_iter().map(|deletion| deletion.key));
    }
    assert_eq!((hosts, deletions), (vec!["h1".to_owned()], vec!["m/h2".to_owned(), "m/h4".to_owned()]));
    site.stop().await;
}

#[tokio::test]
async fn watches_of_documents_and_secrets_pick_too() {
    let site = site().await;
    for name in ["s1", "s2"] {
        site.make_secret(name).await;
    }
    let named = |namespace: &str| {
        Some(ObjectFilter { namespace: Some(namespace.to_owned()), ..ObjectFilter::default() })
    };
    for (namespace, expected) in [("m", 2), ("other", 0)] {
        let request = WatchHostSecretsRequest { resume_revision: 0, filter: named(namespace) };
        let mut watch = site.secrets().watch_host_secrets(request).await.unwrap().into_inner();
        let first = watch.message().await.unwrap().unwrap();
        assert_eq!((first.host_secrets.len(), first.synced), (expected, true), "{namespace}");
    }
    let mut documents = HostDocumentServiceClient::new(site.channel.clone());
    for kind in [DocumentKind::DataImage, DocumentKind::UpdatePolicy] {
        let document = HostDocument { kind: kind.into(), meta: Some(meta("d")), ..HostDocument::default() };
        let request = CreateHostDocumentRequest { host_document: Some(document), validate_only: false };
        documents.create_host_document(request).await.unwrap();
    }
    for (kind, namespace, expected) in [
        (DocumentKind::DataImage, "m", 1),
        (DocumentKind::Unspecified, "m", 2),
        (DocumentKind::UpdatePolicy, "other", 0),
    ] {
        let request =
            WatchHostDocumentsRequest { resume_revision: 0, kind: kind.into(), filter: named(namespace) };
        let mut watch = documents.watch_host_documents(request).await.unwrap().into_inner();
        let first = watch.message().await.unwrap().unwrap();
        assert_eq!((first.host_documents.len(), first.synced), (expected, true), "{kind:?} {namespace}");
    }
    site.stop().await;
}

#[tokio::test]
async fn decisions_are_stored_about_the_record_they_were_made_on() {
    let site = site().await;
    let made = site.make(host("h1", "redfish://bmc1")).await;
    let inventory = HostInventory {
        architecture: "x86_64".to_owned(),
        details_json: r#"{"cpu":{"arch":"x86_64"}}"#.to_owned(),
    };
    let wanted = HostDecision {
        companions: vec![CompanionChange { change: Some(Change::StoreHardwareData(inventory)) }],
        events: vec![EventBody { reason: "InspectionComplete".to_owned(), ..EventBody::default() }],
        architecture: "x86_64".to_owned(),
        ..decision(&made, "preparing")
    };
    assert!(!site.decided(wanted.clone()).await);
    assert!(site.decided(wanted).await, "the host is another one now");
    let stored = site.host("h1").await.unwrap();
    assert_eq!(stored.meta.as_ref().unwrap().finalizers, [FINALIZER]);
    assert_eq!((numbers(&stored), stored.spec.unwrap().architecture.as_str()), ((2, 1), "x86_64"));
    let named = DocumentName {
        kind: DocumentKind::HardwareData.into(),
        namespace: "m".to_owned(),
        name: "h1".to_owned(),
    };
    let mut documents = HostDocumentServiceClient::new(site.channel.clone());
    let data = documents.get_host_document(GetHostDocumentRequest { name: Some(named) }).await.unwrap();
    let data = data.into_inner().host_document.unwrap();
    assert_eq!(data.spec_json, r#"{"hardware":{"cpu":{"arch":"x86_64"}}}"#);
    assert_eq!(
        site.host_story("h1").await,
        [
            "client created",
            "status-evaluator spec_changed",
            "status-evaluator state_changed preparing",
            "status-evaluator life_cycle InspectionComplete",
        ]
    );
    site.stop().await;
}

#[tokio::test]
async fn secret_is_claimed_while_a_host_uses_it() {
    let site = site().await;
    site.make_secret("login").await;
    site.make_secret("other").await;
    let made = site.make(host("h1", "redfish://bmc1")).await;
    let uses = |host: &Host, tried: &str, good: &str| {
        let login = |name: &str| CredentialsRecord { name: name.to_owned(), version: "1".to_owned() };
        let mut wanted = decision(host, "registering");
        let status = wanted.status.as_mut().unwrap();
        status.tried_credentials = Some(login(tried));
        status.good_credentials = Some(login(good));
        wanted
    };
    let claims = async || [site.claims("login").await, site.claims("other").await];
    site.decided(uses(&made, "login", "login")).await;
    assert_eq!(claims().await, [1, 0]);
    let mut moved = site.host("h1").await.unwrap();
    moved.spec.as_mut().unwrap().bmc.as_mut().unwrap().credentials_name = "other".to_owned();
    let moved = site.put(moved, 0).await.unwrap();
    site.decided(uses(&moved, "other", "login")).await;
    assert_eq!(claims().await, [1, 1], "the new login is not known to work");
    let tried = site.host("h1").await.unwrap();
    site.decided(uses(&tried, "other", "other")).await;
    assert_eq!(claims().await, [0, 1]);
    site.stop().await;
}

#[tokio::test]
async fn deleted_host_goes_with_its_last_finalizer() {
    let site = site().await;
    let made = site.make(host("h1", "redfish://bmc1")).await;
    site.decided(decision(&made, "available")).await;
    let delete = async |forced| {
        let request = DeleteHostRequest { name: name("h1"), forced, ..DeleteHostRequest::default() };
        site.hosts().delete_host(request).await.unwrap().into_inner()
    };
    let first = delete(false).await;
    assert!(!first.gone);
    assert_eq!(numbers(&first.host.unwrap()), (2, 2));
    let forced = delete(true).await.host.unwrap();
    assert_eq!((numbers(&forced), forced.deletion().as_str_name()), ((2, 3), "DELETION_KIND_FORCED"));
    assert_eq!(delete(false).await.host.unwrap().revision, forced.revision, "a repetition is no news");
    let last = HostDecision { has_finalizer: false, ..decision(&forced, "deleting") };
    assert!(!site.decided(last).await);
    assert_eq!(site.host("h1").await, None);
    site.stop().await;
}

#[tokio::test]
async fn calls_of_people_change_what_the_life_cycle_reads() {
    let site = site().await;
    let made = site.make(host("h1", "redfish://bmc1")).await;
    let reboot = RebootHostRequest { name: name("h1"), hard: true, force: false };
    let rebooted = site.hosts().reboot_host(reboot).await.unwrap().into_inner().host.unwrap();
    let annotations = &rebooted.meta.as_ref().unwrap().annotations;
    assert_eq!(annotations["reboot.metal3.io"], r#"{"force":false,"mode":"hard"}"#);
    assert_eq!(numbers(&rebooted), (1, 2));
    let retry = RetryHostRequest { name: name("h1") };
    let retried = site.hosts().retry_host(retry).await.unwrap().into_inner().host.unwrap();
    assert_eq!((numbers(&retried), retried.spec), ((1, 3), made.spec));
    let abort = AbortHostRequest { name: name("h1") };
    assert_eq!(site.hosts().abort_host(abort).await.unwrap_err().code(), Code::FailedPrecondition);
    assert_eq!(
        site.host_story("h1").await,
        ["client created", "client requested reboot", "client requested retry_now"]
    );
    site.stop().await;
}

#[tokio::test]
async fn values_of_secrets_leave_for_parts_of_the_mesh_alone() {
    let site = site().await;
    let values = |of: &[(&str, &str)]| -> BTreeMap<String, Vec<u8>> {
        of.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect()
    };
    let secret = HostSecret { meta: Some(meta("login")), ..HostSecret::default() };
    let request = CreateHostSecretRequest {
        host_secret: Some(secret.clone()),
        values: values(&[("username", "root"), ("password", "s3cret")]),
        validate_only: false,
    };
    let made = site.secrets().create_host_secret(request).await.unwrap().into_inner().host_secret.unwrap();
    assert_eq!((made.data_keys.join(" ").as_str(), made.data_version), ("password username", 1));
    let read = async || {
        let named = SecretName { namespace: "m".to_owned(), name: "login".to_owned() };
        site.secrets().read_secret_values(ReadSecretValuesRequest { name: Some(named) }).await
    };
    let refused = call_class::scope(CallClass::Operator, read()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let request = ReplaceHostSecretRequest {
        host_secret: Some(secret),
        values: values(&[("password", "other")]),
        keep_other_values: true,
        ..ReplaceHostSecretRequest::default()
    };
    site.secrets().replace_host_secret(request).await.unwrap();
    let answer = read().await.unwrap().into_inner();
    assert_eq!(answer.values, values(&[("username", "root"), ("password", "other")]));
    assert_eq!(answer.data_version, 2);
    for entry in std::fs::read_dir(site.directory.path()).unwrap() {
        let file = entry.unwrap().path();
        let bytes = std::fs::read(&file).unwrap_or_default();
        assert!(!bytes.windows(6).any(|window| window == b"s3cret"), "{}", file.display());
    }
    site.stop().await;
}

#[tokio::test]
async fn available_hosts_become_components() {
    let site = Site::start(|settings, _| settings.inventory.driver = InventoryDriver::Hosts).await;
    let make = async |of: &str, xname: &str, state: &str| {
        let mut wanted = host(of, "redfish://bmc1");
        let meta = wanted.meta.as_mut().unwrap();
        meta.annotations = [("reveille.io/xname".to_owned(), xname.to_owned())].into();
        let made = site.make(wanted).await;
        assert!(!site.decided(decision(&made, state)).await);
    };
    make("h1", N0, "available").await;
    make("h2", N0, "available").await;
    make("h3", N1, "inspecting").await;
    site.discovered(N0).await;
    assert_eq!(site.hardware().await.unwrap(), [N0], "h2 has the id of h1, h3 is not ready");

    assert!(!site.decided(decision(&site.host("h3").await.unwrap(), "available")).await);
    site.discovered(N1).await;
    let request = DeleteHostRequest { name: name("h1"), ..DeleteHostRequest::default() };
    site.hosts().delete_host(request).await.unwrap();
    eventually(async || site.hardware().await.unwrap() == [N0, N1]).await;
    let meta = site.host("h1").await.unwrap().meta.unwrap();
    assert!(meta.deleted_at.is_some(), "the node is that of h2 now");
    site.stop().await;
}

#[tokio::test]
async fn systems_beyond_the_limit_are_kept_until_confirmed() {
    let site = Box::pin(Site::start(|settings, _| settings.hosts.discards = 1)).await;
    for one in ["h1", "h2"] {
        site.install(one).await;
    }
    let delete = async |of: &str| {
        let request = DeleteHostRequest { name: name(of), ..DeleteHostRequest::default() };
        site.hosts().delete_host(request).await.map(|_| ()).map_err(chassis::Fault::from)
    };
    delete("h1").await.unwrap();
    delete("h1").await.expect("a host is counted once");
    let refused = delete("h2").await.unwrap_err().to_string();
    assert!(refused.starts_with("metadata.annotations[reveille.io/discard-until]: "), "{refused}");
    let mut cleared = site.host("h2").await.unwrap();
    cleared.spec.as_mut().unwrap().image = None;
    assert_eq!(site.put(cleared.clone(), 0).await, Err(Code::InvalidArgument));
    let until = ("reveille.io/discard-until".to_owned(), "9999-01-01T00:00:00Z".to_owned());
    cleared.meta.as_mut().unwrap().annotations.extend([until]);
    site.put(cleared, 0).await.expect("the loss is confirmed");
    site.stop().await;
}

#[tokio::test]
async fn a_machine_is_switched_as_node_or_as_host() {
    let site = Site::start(|settings, _| settings.inventory.driver = InventoryDriver::Hosts).await;
    let mut wanted = host("h1", "redfish://bmc1");
    let xname = ("reveille.io/xname".to_owned(), N0.to_owned());
    wanted.meta.as_mut().unwrap().annotations = [xname].into();
    let made = site.make(wanted).await;
    assert!(!site.decided(decision(&made, "available")).await);
    site.discovered(N0).await;
    let ready = site.host("h1").await.unwrap();
    let switch = async |attempt: u32| {
        let action = Action::PoweringOn.into();
        let generation = site.component(N0).await.unwrap().generation;
        let begun =
            ActionReport { id: N0.to_owned(), generation, action, attempt, ..ActionReport::default() };
        let mut reports = ReportServiceClient::new(site.channel.clone());
        let request = ReportActionsRequest { reports: vec![begun] };
        reports.report_actions(request).await.unwrap();
        site.host("h1").await.unwrap()
    };
    let work = |host: &Host| {
        let call = DriverCall { operation: Some(Operation::PowerOn(PowerOnCall::default())) };
        let work = HostWork { number: 1, call: Some(call), ..HostWork::default() };
        let progress = HostProgress { work: Some(work), ..HostProgress::default() };
        HostDecision { progress: Some(progress), ..decision(host, "available") }
    };

    let claimed = switch(1).await;
    let claim = claimed.node_claim.clone().unwrap();
    assert_eq!((claim.component_id.as_str(), claim.attempt, claim.released), (N0, 1, false));
    assert_eq!(switch(1).await.revision, claimed.revision, "a repetition is no news");
    assert!(site.decided(work(&ready)).await, "the host was claimed since");
    let later = switch(2).await;
    let release = async |claim: NodeClaim| {
        let hosts = vec![ClaimedHost { name: name("h1"), claim: Some(claim) }];
        let mut reports = HostReportServiceClient::new(site.channel.clone());
        reports.release_nodes(ReleaseNodesRequest { hosts }).await.unwrap();
        site.host("h1").await.unwrap()
    };
    assert_eq!(release(claim).await.revision, later.revision, "another attempt has begun since");
    let released = release(later.node_claim.clone().unwrap()).await;
    assert!(released.node_claim.as_ref().unwrap().released);

    assert!(!site.decided(work(&released)).await);
    let busy = site.host("h1").await.unwrap();
    assert_eq!(switch(3).await, busy, "an operation on the host is under way");
    assert!(site.is_locked(N0).await);
    let power = SetHostPowerRequest { name: name("h1"), online: false };
    let told = site.hosts().set_host_power(power).await.unwrap().into_inner().host.unwrap();
    assert_eq!(told.node_claim, None, "a person decides about the power again");
    site.stop().await;
}
