//! Edge devices: what people and agents write, who is seen, and what other parts report.

mod polls;

use std::collections::BTreeMap;

use chassis::{Fault, mesh::time};
use futures_util::TryStreamExt as _;
use proto::{
    device::{
        AgentReport, ApplicationReport, CountDevicesRequest, CreateDeviceRequest, DecommissionDeviceRequest,
        DeleteDeviceRequest, Device, DeviceAnnotations, DeviceCondition, DeviceFilter, DeviceFleetDecision,
        DeviceMeta, DeviceRendering, DeviceResources, DeviceRollout, DeviceSpec, DeviceStatus,
        DeviceStatusDecision, GetDeviceLastSeenRequest, GetDeviceRequest, ListDeviceLabelsRequest,
        ListDevicesRequest, MarkDevicesRestoredRequest, OsTarget, PollRenderedDeviceRequest,
        ReplaceDeviceRequest, ReplaceDeviceStatusRequest, ReportDeviceEnrolmentRequest,
        ReportDeviceFleetDecisionsRequest, ReportDeviceStatusRequest, ReportDeviceStatusesRequest,
        ReportHeartbeatsRequest, RestoreMark, ResumeDevicesRequest, StatusDocument, StatusEntry,
        WatchDeviceSightsRequest, WatchDevicesRequest, device_agent_service_client::DeviceAgentServiceClient,
        device_report_service_client::DeviceReportServiceClient, device_rollout::Outcome,
        device_service_client::DeviceServiceClient, os_target::Target,
    },
    event::{EventFilter, ListEventsRequest, event_service_client::EventServiceClient},
};
use sea_orm::{ConnectionTrait as _, Database};
use test_databases::EmptyDatabase;
use tonic::{Code, Status, Streaming};

use super::{Channel, Site, eventually, smd::Smd};

/// Runs a test on every kind of database.
async fn on_each_database(test: impl AsyncFn(Site, &EmptyDatabase)) {
    for database in test_databases::every_kind().await {
        test(site(&database).await, &database).await;
    }
}

async fn site(database: &EmptyDatabase) -> Site {
    let smd = Smd::start().await;
    let url = database.url.clone();
    Box::pin(Site::with_smd(&smd, |settings| settings.component_registry.database_url = url)).await
}

fn labels(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn spec(image: &str) -> Option<DeviceSpec> {
    let os = Some(OsTarget { target: Some(Target::Image(image.to_owned())) });
    Some(DeviceSpec { os, ..DeviceSpec::default() })
}

fn filter(labels: &str, fields: &str) -> Option<DeviceFilter> {
    Some(DeviceFilter { label_selector: labels.to_owned(), field_selector: fields.to_owned() })
}

/// Document of an agent that runs that version.
fn document(version: &str) -> Option<StatusDocument> {
    let resources = Some(DeviceResources { cpu: "Healthy".to_owned(), ..DeviceResources::default() });
    let report = AgentReport { rendered_version: version.to_owned(), resources, ..AgentReport::default() };
    Some(StatusDocument { report: Some(report), lifecycle: None })
}

fn status_report(name: &str, document: Option<StatusDocument>) -> ReportDeviceStatusRequest {
    ReportDeviceStatusRequest { name: name.to_owned(), document, ..ReportDeviceStatusRequest::default() }
}

/// Returns the summary, the updated status, and the status of applications.
fn statuses(device: &Device) -> String {
    let status = device.status.clone().unwrap_or_default();
    let words = [status.summary, status.updated, status.applications];
    words.map(|entry| entry.unwrap_or_default().status).join(" ")
}

fn mark(device: &Device) -> RestoreMark {
    device.meta.clone().unwrap().annotations.unwrap_or_default().restore_mark()
}

/// Returns the code of a refusal and the field that it names.
fn refusal(status: &Status) -> String {
    match Fault::from(status.clone()) {
        Fault::Invalid(invalid) => format!("{:?} {}", status.code(), invalid.field),
        _ => format!("{:?}", status.code()),
    }
}

impl Site {
    fn devices(&self) -> DeviceServiceClient<Channel> {
        DeviceServiceClient::new(self.channel.clone())
    }

    fn agents(&self) -> DeviceAgentServiceClient<Channel> {
        DeviceAgentServiceClient::new(self.channel.clone())
    }

    fn parts(&self) -> DeviceReportServiceClient<Channel> {
        DeviceReportServiceClient::new(self.channel.clone())
    }

    async fn create_device(&self, name: &str, with: &[(&str, &str)]) -> Device {
        let request = CreateDeviceRequest { name: name.to_owned(), labels: labels(with), spec: spec("os:1") };
        self.devices().create_device(request).await.unwrap().into_inner().device.unwrap()
    }

    async fn device(&self, name: &str) -> Device {
        let request = GetDeviceRequest { name: name.to_owned() };
        self.devices().get_device(request).await.unwrap().into_inner().device.unwrap()
    }

    async fn last_seen(&self, name: &str) -> Option<i64> {
        let request = GetDeviceLastSeenRequest { name: name.to_owned() };
        let answer = self.devices().get_device_last_seen(request).await.unwrap().into_inner();
        answer.last_seen.map(|seen| time::from_wire(seen).0)
    }

    async fn report_status(&self, name: &str, version: &str) -> Device {
        let request = status_report(name, document(version));
        self.agents().report_device_status(request).await.unwrap().into_inner().device.unwrap()
    }

    async fn heartbeats(&self, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.agents().report_heartbeats(ReportHeartbeatsRequest { names }).await.unwrap();
    }

    /// Polls without a wait; returns the version that was delivered.
    async fn poll(&self, name: &str, known: Option<&str>) -> Result<Option<Device>, Status> {
        let request = PollRenderedDeviceRequest {
            name: name.to_owned(),
            known_version: known.map(str::to_owned),
            longest_wait: Some(Default::default()),
            is_onlooker: false,
        };
        Ok(self.agents().poll_rendered_device(request).await?.into_inner().device)
    }

    /// Reports decisions of the fleet manager about the present device; returns whether they were stale.
    async fn decide_fleet(&self, name: &str, decision: DeviceFleetDecision) -> bool {
        let revision = self.device(name).await.revision;
        let decision = DeviceFleetDecision { name: name.to_owned(), revision, ..decision };
        let request = ReportDeviceFleetDecisionsRequest { decisions: vec![decision] };
        let answer = self.parts().report_device_fleet_decisions(request).await.unwrap().into_inner();
        !answer.stale_names.is_empty()
    }

    async fn render(&self, name: &str, version: u64) {
        let rendering = Some(DeviceRendering {
            spec_hash: format!("hash {version}"),
            version,
            ..DeviceRendering::default()
        });
        let is_stale =
            self.decide_fleet(name, DeviceFleetDecision { rendering, ..DeviceFleetDecision::default() });
        assert!(!is_stale.await);
    }

    async fn mark_restored(&self) -> u64 {
        let request = MarkDevicesRestoredRequest { filter: None };
        self.devices().mark_devices_restored(request).await.unwrap().into_inner().marked_devices
    }

    async fn resume(&self, filter: Option<DeviceFilter>) -> Result<u64, String> {
        let answer = self.devices().resume_devices(ResumeDevicesRequest { filter }).await;
        answer.map(|answer| answer.into_inner().resumed_devices).map_err(|status| refusal(&status))
    }

    async fn names(&self, filter: Option<DeviceFilter>, after: &str, most: u32) -> Vec<String> {
        let request = ListDevicesRequest { filter, start_after: after.to_owned(), page_size: most };
        let pages: Vec<_> =
            self.devices().list_devices(request).await.unwrap().into_inner().try_collect().await.unwrap();
        pages.into_iter().flat_map(|page| page.devices).map(|device| device.meta.unwrap().name).collect()
    }

    async fn device_story(&self, name: &str) -> Vec<String> {
        let (keys, resource) = (vec![name.to_owned()], "device".to_owned());
        let filter = Some(EventFilter { keys, resource, ..EventFilter::default() });
        let request = ListEventsRequest { filter, ..ListEventsRequest::default() };
        let mut client = EventServiceClient::new(self.channel.clone());
        let events = client.list_events(request).await.unwrap().into_inner().events;
        events.into_iter().filter_map(|event| event.body).map(|body| body.kind).collect()
    }
}

#[tokio::test]
async fn devices_are_created_once_read_and_deleted() {
    on_each_database(async |site, _| {
        let made = site.create_device("a", &[("site", "north")]).await;
        assert_eq!(statuses(&made), "Unknown UpToDate Unknown");
        assert_eq!(site.device("a").await, made);
        let again = CreateDeviceRequest { name: "a".to_owned(), ..CreateDeviceRequest::default() };
        assert_eq!(site.devices().create_device(again).await.unwrap_err().code(), Code::AlreadyExists);
        let delete = || DeleteDeviceRequest { name: "a".to_owned() };
        site.devices().delete_device(delete()).await.unwrap();
        assert_eq!(site.devices().delete_device(delete()).await.unwrap_err().code(), Code::NotFound);
        let get = GetDeviceRequest { name: "a".to_owned() };
        assert_eq!(site.devices().get_device(get).await.unwrap_err().code(), Code::NotFound);
        site.stop().await;
    })
    .await;
}

#[tokio::test]
async fn every_refusal_of_a_write_names_its_field() {
    on_each_database(async |site, _| {
        let create = async |name: &str, with: &[(&str, &str)], spec: Option<DeviceSpec>| {
            let request = CreateDeviceRequest { name: name.to_owned(), labels: labels(with), spec };
            refusal(&site.devices().create_device(request).await.unwrap_err())
        };
        assert_eq!(create("No", &[], None).await, "InvalidArgument metadata.name");
        assert_eq!(create("a", &[("-", "x")], None).await, "InvalidArgument metadata.labels");
        assert_eq!(create("a", &[("x", "-")], None).await, "InvalidArgument metadata.labels[x]");
        let ending = DeviceSpec { decommissioning: "Unenroll".to_owned(), ..DeviceSpec::default() };
        assert_eq!(create("a", &[], Some(ending)).await, "InvalidArgument spec.decommissioning");
        let unreadable = DeviceSpec { document_json: "[1".to_owned(), ..DeviceSpec::default() };
        assert_eq!(create("a", &[], Some(unreadable)).await, "InvalidArgument spec");
        assert_eq!(create("a", &[], spec("")).await, "InvalidArgument spec.os.image");

        site.create_device("a", &[]).await;
        let list = ListDevicesRequest { filter: filter("((", ""), ..ListDevicesRequest::default() };
        let refused = site.devices().list_devices(list).await.unwrap_err();
        assert_eq!(refusal(&refused), "InvalidArgument labelSelector");
        let count = CountDevicesRequest { filter: filter("", "spec.os=1") };
        let refused = site.devices().count_devices(count).await.unwrap_err();
        assert_eq!(refusal(&refused), "InvalidArgument fieldSelector");
        assert_eq!(site.resume(None).await, Err("InvalidArgument filter".to_owned()));
        assert_eq!(site.resume(filter("a in", "")).await, Err("InvalidArgument labelSelector".to_owned()));
        let end = DecommissionDeviceRequest { name: "a".to_owned(), target: "Explode".to_owned() };
        let refused = site.devices().decommission_device(end).await.unwrap_err();
        assert_eq!(refusal(&refused), "InvalidArgument target");
        let report = AgentReport { os_mode: "tape".to_owned(), ..AgentReport::default() };
        let wrong = Some(StatusDocument { report: Some(report), lifecycle: None });
        let report = status_report("a", wrong);
        let refused = site.agents().report_device_status(report).await.unwrap_err();
        assert_eq!(refusal(&refused), "InvalidArgument status.capabilities.osMode");
        let report = status_report("b", document("1"));
        assert_eq!(site.agents().report_device_status(report).await.unwrap_err().code(), Code::NotFound);
        assert_eq!(site.poll("b", None).await.unwrap_err().code(), Code::NotFound);
        assert_eq!(site.poll("a", None).await.unwrap_err().code(), Code::FailedPrecondition);
        site.stop().await;
    })
    .await;
}

#[tokio::test]
async fn agents_report_about_the_revision_they_have_seen() {
    on_each_database(async |site, _| {
        let made = site.create_device("a", &[]).await;
        let report = async |expected_revision: u64, is_patch: bool, version: &str| {
            let base = status_report("a", document(version));
            let request = ReportDeviceStatusRequest { expected_revision, is_patch, ..base };
            site.agents().report_device_status(request).await.map(drop).map_err(|status| status.code())
        };
        assert_eq!(report(made.revision, true, "1").await, Ok(()));
        assert_eq!(report(made.revision, true, "2").await, Err(Code::Aborted));
        assert_eq!(report(0, true, "2").await, Ok(()));
        let end = DecommissionDeviceRequest { name: "a".to_owned(), target: "Unenroll".to_owned() };
        site.devices().decommission_device(end).await.unwrap();
        assert_eq!(report(0, true, "3").await, Err(Code::FailedPrecondition));
        assert_eq!(report(0, false, "3").await, Ok(()));
        site.stop().await;
    })
    .await;
}

#[tokio::test]
async fn devices_are_replaced_by_revision_unless_their_state_forbids_it() {
    on_each_database(async |site, _| {
        let made = site.create_device("a", &[]).await;
        let replace = async |image: &str, with: &[(&str, &str)], expected_revision: u64| {
            let (labels, spec) = (labels(with), spec(image));
            let request = ReplaceDeviceRequest { name: "a".to_owned(), labels, spec, expected_revision };
            let answer = site.devices().replace_device(request).await;
            answer.map(|answer| answer.into_inner().device.unwrap()).map_err(|status| status.code())
        };
        assert_eq!(replace("os:1", &[], made.revision).await, Ok(made.clone()), "nothing changes");
        let changed = replace("os:2", &[("site", "north")], made.revision).await.unwrap();
        assert_eq!(changed.meta.as_ref().unwrap().generation, 2);
        assert_eq!(replace("os:3", &[], made.revision).await, Err(Code::Aborted));
        let labelled = replace("os:2", &[("site", "south")], 0).await.unwrap();
        assert_eq!(labelled.meta.unwrap().generation, 2, "a label is no spec");

        let owner_fleet = Some("kiosk".to_owned());
        assert!(
            !site
                .decide_fleet("a", DeviceFleetDecision { owner_fleet, ..DeviceFleetDecision::default() })
                .await
        );
        assert_eq!(replace("os:3", &[("site", "south")], 0).await, Err(Code::FailedPrecondition));
        assert!(replace("os:2", &[("site", "east")], 0).await.is_ok());

        let end = || DecommissionDeviceRequest { name: "a".to_owned(), target: "FactoryReset".to_owned() };
        let ended = site.devices().decommission_device(end()).await.unwrap().into_inner().device.unwrap();
        let meta = ended.meta.unwrap();
        assert_eq!((meta.owner_fleet.as_str(), meta.labels.len(), meta.generation), ("", 0, 2));
        assert_eq!(ended.status.unwrap().lifecycle.unwrap().status, "Decommissioning");
        let again = site.devices().decommission_device(end()).await.unwrap_err();
        assert_eq!(again.code(), Code::FailedPrecondition);
        assert_eq!(replace("os:3", &[], 0).await, Err(Code::FailedPrecondition));
        let patch = ReplaceDeviceStatusRequest {
            name: "a".to_owned(),
            document: document("1"),
            is_patch: true,
            ..ReplaceDeviceStatusRequest::default()
        };
        let whole = ReplaceDeviceStatusRequest { is_patch: false, ..patch.clone() };
        let refused = site.devices().replace_device_status(patch).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert!(site.devices().replace_device_status(whole).await.is_ok());
        assert_eq!(
            site.device_story("a").await,
            [
                "ResourceCreated",
                "ResourceUpdated",
                "ResourceUpdated",
                "ResourceUpdated",
                "ResourceUpdated",
                "ResourceUpdated",
                "DeviceDecommissioned"
            ]
        );
        site.stop().await;
    })
    .await;
}

#[tokio::test]
async fn lists_select_by_labels_and_fields_page_by_page() {
    on_each_database(async |site, _| {
        for (name, place) in [("a", "north"), ("b", "south"), ("c", "north"), ("d", "east")] {
            site.create_device(name, &[("site", place), ("alias", &format!("{name}-alias"))]).await;
        }
        site.report_status("c", "").await;
        assert_eq!(site.names(None, "", 0).await, ["a", "b", "c", "d"]);
        assert_eq!(site.names(None, "", 3).await, ["a", "b", "c"]);
        assert_eq!(site.names(None, "c", 3).await, ["d"]);
        assert_eq!(site.names(filter("site=north", ""), "", 0).await, ["a", "c"]);
        assert_eq!(site.names(filter("site in (north,east)", ""), "a", 1).await, ["c"]);
        assert_eq!(site.names(filter("site!=north", ""), "", 0).await, ["b", "d"]);
        assert_eq!(site.names(filter("", "metadata.name in (d, b, x)"), "", 0).await, ["b", "d"]);
        assert_eq!(site.names(filter("", "metadata.alias=b-alias"), "", 0).await, ["b"]);
        assert_eq!(site.names(filter("site", "status.summary.status=Online"), "", 0).await, ["c"]);
        assert!(site.names(filter("", "metadata.owner=Fleet/kiosk"), "", 0).await.is_empty());
        let count = CountDevicesRequest { filter: filter("site=north", "") };
        let counts = site.devices().count_devices(count).await.unwrap().into_inner().counts.unwrap();
        let summaries = [("Online".to_owned(), 1), ("Unknown".to_owned(), 1)];
        assert_eq!((counts.total, counts.summary), (2, summaries.into()));
        assert_eq!(counts.os_mode, [("unknown".to_owned(), 2)].into());
        let wanted = ListDeviceLabelsRequest { filter: filter("site=north", "") };
        let found = site.devices().list_device_labels(wanted).await.unwrap().into_inner().labels;
        assert_eq!(found, ["alias=a-alias", "alias=c-alias", "site=north"]);
        site.stop().await;
    })
    .await;
}

/// Reads a watch until its initial list is complete; returns the last revision.
async fn synced(watch: &mut Streaming<proto::device::WatchDevicesResponse>) -> (Vec<String>, u64) {
    let mut names = Vec::new();
    loop {
        let part = watch.message().await.unwrap().unwrap();
        names.extend(part.devices.into_iter().map(|device| device.meta.unwrap().name));
        if part.synced {
            return (names, part.revision);
        }
    }
}

#[tokio::test]
async fn watches_resume_and_deliver_what_no_longer_matches_as_gone() {
    on_each_database(async |site, _| {
        site.create_device("a", &[("site", "north")]).await;
        site.create_device("b", &[]).await;
        let watch = async |resume_revision: u64, filter| {
            let request = WatchDevicesRequest { resume_revision, filter };
            site.devices().watch_devices(request).await.unwrap().into_inner()
        };
        let (mut names, revision) = synced(&mut watch(0, None).await).await;
        names.sort();
        assert_eq!(names, ["a", "b"]);
        let mut north = watch(0, filter("site=north", "")).await;
        assert_eq!(synced(&mut north).await.0, ["a"]);
        let replace = ReplaceDeviceRequest { name: "a".to_owned(), ..ReplaceDeviceRequest::default() };
        site.devices().replace_device(replace).await.unwrap();
        let part = north.message().await.unwrap().unwrap();
        assert_eq!((part.devices.len(), part.deletions[0].key.as_str()), (0, "a"));
        assert_eq!(synced(&mut watch(revision, None).await).await.0, ["a"], "only what has changed since");
        site.stop().await;
    })
    .await;
}

#[tokio::test]
async fn report_of_an_agent_is_evaluated_in_its_write() {
    on_each_database(async |site, _| {
        site.create_device("a", &[]).await;
        assert_eq!(site.last_seen("a").await, None);
        let reported = site.report_status("a", "").await;
        assert_eq!(statuses(&reported), "Online UpToDate NoApplications");
        assert_eq!(site.device("a").await, reported, "the next read shows it");
        assert!(site.last_seen("a").await.is_some());
        site.render("a", 1).await;
        assert_eq!(statuses(&site.device("a").await), "Online OutOfDate NoApplications");
        assert_eq!(statuses(&site.report_status("a", "1").await), "Online UpToDate NoApplications");

        let application = ApplicationReport {
            name: "till".to_owned(),
            app_type: "vm".to_owned(),
            ..ApplicationReport::default()
        };
        let report = AgentReport {
            applications: vec![application],
            applications_verdict: Some(StatusEntry { status: "Error".to_owned(), info: String::new() }),
            resources: Some(DeviceResources { disk: "Critical".to_owned(), ..DeviceResources::default() }),
            rendered_version: "1".to_owned(),
            ..AgentReport::default()
        };
        let lifecycle = Some(StatusEntry { status: "Enrolled".to_owned(), info: String::new() });
        let document = Some(StatusDocument { report: Some(report), lifecycle });
        let request = ReplaceDeviceStatusRequest {
            name: "a".to_owned(),
            document,
            ..ReplaceDeviceStatusRequest::default()
        };
        let by_person =
            site.devices().replace_device_status(request).await.unwrap().into_inner().device.unwrap();
        assert_eq!(statuses(&by_person), "Error UpToDate Error");
        let revision = site.device("a").await.revision;
        site.heartbeats(&["a", "unknown"]).await;
        assert_eq!(site.device("a").await.revision, revision, "a heartbeat is no revision");
        assert_eq!(
            site.device_story("a").await,
            [
                "ResourceCreated",
                "DeviceConnected",
                "DeviceApplicationHealthy",
                "DeviceContentOutOfDate",
                "DeviceContentUpToDate",
                "DeviceApplicationError",
                "DeviceCPUNormal",
                "DeviceDiskCritical"
            ]
        );
        site.stop().await;
    })
    .await;
}

#[tokio::test]
async fn restored_devices_await_their_agents_pause_and_resume() {
    on_each_database(async |site, _| {
        for name in ["ahead", "behind", "ending"] {
            site.create_device(name, &[("site", "north")]).await;
            site.render(name, 3).await;
            site.report_status(name, "3").await;
        }
        let end = DecommissionDeviceRequest { name: "ending".to_owned(), target: "Unenroll".to_owned() };
        site.devices().decommission_device(end).await.unwrap();
        assert_eq!(site.mark_restored().await, 2);
        assert_eq!(site.mark_restored().await, 0);
        assert_eq!(mark(&site.device("ending").await), RestoreMark::Unspecified);
        let marked = site.device("ahead").await;
        assert_eq!(statuses(&marked), "AwaitingReconnect Unknown Unknown");
        assert_eq!(site.last_seen("ahead").await, None);
        assert_eq!(statuses(&site.report_status("ahead", "5").await), "AwaitingReconnect Unknown Unknown");

        let paused = site.poll("ahead", Some("5")).await.unwrap().unwrap();
        assert_eq!(
            (mark(&paused), statuses(&paused)),
            (RestoreMark::ConflictPaused, "ConflictPaused OutOfDate NoApplications".to_owned())
        );
        assert!(site.last_seen("ahead").await.is_some());
        assert_eq!(site.poll("ahead", Some("5")).await.unwrap(), None, "a paused agent does not spin");
        let back = site.poll("behind", Some("2")).await.unwrap().unwrap();
        assert_eq!(
            (mark(&back), statuses(&back)),
            (RestoreMark::Unspecified, "Online OutOfDate NoApplications".to_owned())
        );
        assert_eq!(back.reported.unwrap().rendered_version, "2");

        assert_eq!(site.resume(filter("", "metadata.name=missing")).await, Ok(0));
        assert_eq!(site.resume(filter("site=north", "")).await, Ok(1));
        assert_eq!(site.resume(filter("site=north", "")).await, Ok(0));
        let resumed = site.device("ahead").await;
        assert_eq!(mark(&resumed), RestoreMark::Unspecified);
        assert_eq!(resumed.meta.unwrap().annotations.unwrap().rendered_spec_hash, "", "it is rendered again");
        site.stop().await;
    })
    .await;
}

#[tokio::test]
async fn reports_of_parts_are_stale_about_another_revision() {
    on_each_database(async |site, _| {
        let made = site.create_device("a", &[]).await;
        let status = |summary: &str| {
            let mut status = made.status.clone().unwrap();
            status.summary = Some(StatusEntry { status: summary.to_owned(), info: String::new() });
            Some(status)
        };
        let decide = async |revision: u64, summary: &str, last_seen: Option<i64>| {
            let last_seen = last_seen.map(|seen| time::to_wire(domain::core::time::Timestamp(seen)));
            let decision =
                DeviceStatusDecision { name: "a".to_owned(), revision, status: status(summary), last_seen };
            let request = ReportDeviceStatusesRequest { decisions: vec![decision] };
            site.parts().report_device_statuses(request).await.unwrap().into_inner().stale_names.len()
        };
        assert_eq!(decide(made.revision + 1, "Online", None).await, 1);
        assert_eq!(decide(made.revision, "Degraded", None).await, 0);
        assert_eq!(site.device("a").await.status.unwrap().summary.unwrap().status, "Degraded");
        let online = site.report_status("a", "").await;
        assert_eq!(decide(online.revision, "Unknown", None).await, 1, "the agent was seen since");
        let seen = site.last_seen("a").await;
        assert_eq!(decide(online.revision, "Degraded", seen).await, 0);
        site.stop().await;
    })
    .await;
}

#[tokio::test]
async fn decisions_of_fleets_are_applied_and_evaluated() {
    on_each_database(async |site, _| {
        site.create_device("a", &[]).await;
        let rollout = |outcome| DeviceRollout { outcome: Some(outcome), template_version: "v2".to_owned() };
        let decision = DeviceFleetDecision {
            owner_fleet: Some("kiosk".to_owned()),
            conditions: vec![DeviceCondition {
                r#type: "SpecValid".to_owned(),
                status: "True".to_owned(),
                reason: "Valid".to_owned(),
                ..DeviceCondition::default()
            }],
            rollout: Some(rollout(Outcome::Spec(spec("os:9").unwrap()))),
            rendering: Some(DeviceRendering {
                spec_hash: "hash".to_owned(),
                version: 1,
                template_version: "v2".to_owned(),
            }),
            ..DeviceFleetDecision::default()
        };
        assert!(!site.decide_fleet("a", decision).await);
        let device = site.device("a").await;
        let meta = device.meta.clone().unwrap();
        let annotations = meta.annotations.unwrap();
        assert_eq!((meta.owner_fleet.as_str(), meta.generation), ("kiosk", 2));
        assert_eq!(annotations.template_version, "v2");
        assert_eq!((annotations.rendered_template_version.as_str(), annotations.rendered_version), ("v2", 1));
        assert_eq!((device.spec, device.conditions.len()), (spec("os:9"), 1));
        assert_eq!(site.names(filter("", "metadata.owner=Fleet/kiosk"), "", 0).await, ["a"]);

        let failed = Some(rollout(Outcome::Error("no label".to_owned())));
        site.decide_fleet("a", DeviceFleetDecision { rollout: failed, ..DeviceFleetDecision::default() })
            .await;
        let annotations = site.device("a").await.meta.unwrap().annotations.unwrap();
        assert_eq!(annotations.last_rollout_error, "no label");
        let owner_fleet = Some("till".to_owned());
        site.decide_fleet("a", DeviceFleetDecision { owner_fleet, ..DeviceFleetDecision::default() }).await;
        let annotations = site.device("a").await.meta.unwrap().annotations.unwrap();
        assert_eq!(
            (annotations.template_version, annotations.last_rollout_error),
            (String::new(), String::new())
        );
        site.stop().await;
    })
    .await;
}

#[tokio::test]
async fn many_signs_are_stored_at_once_and_survive_a_restart() {
    on_each_database(async |first, database| {
        let names: Vec<_> = (0..50).map(|number| format!("d{number:02}")).collect();
        for name in &names {
            first.create_device(name, &[]).await;
        }
        let watch =
            first.devices().watch_device_sights(WatchDeviceSightsRequest { resume_revision: 0 }).await;
        let mut watch = watch.unwrap().into_inner();
        let begun = watch.message().await.unwrap().unwrap();
        assert!(begun.synced && begun.device_sights.is_empty());
        first.heartbeats(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let stored = watch.message().await.unwrap().unwrap();
        assert_eq!(stored.device_sights.len(), names.len(), "one transaction");
        let (seen, device) = (first.last_seen("d07").await, first.device("d07").await);
        first.stop().await;

        let second = site(database).await;
        assert_eq!((second.last_seen("d07").await, second.device("d07").await), (seen, device));
        let delete = DeleteDeviceRequest { name: "d07".to_owned() };
        second.devices().delete_device(delete).await.unwrap();
        second.create_device("d07", &[]).await;
        assert_eq!(second.last_seen("d07").await, None, "another device of that name");
        second.stop().await;
    })
    .await;
}

/// Lets the registry's database lose its last commit about devices.
async fn lose_last_commit(database: &EmptyDatabase, name: &str) {
    let connection = Database::connect(&database.url).await.unwrap();
    let sql = format!(
        "BEGIN; UPDATE revisions SET revision = revision - 1 WHERE kind = 'device'; \
         DELETE FROM devices WHERE id = '{name}'; COMMIT"
    );
    connection.execute_unprepared(&sql).await.unwrap();
}

#[tokio::test]
async fn lost_commits_mark_devices_by_themselves() {
    on_each_database(async |site, database| {
        if database.kind == "postgresql" {
            site.create_device("a", &[]).await;
            site.report_status("a", "").await;
            site.create_device("lost", &[]).await;
            lose_last_commit(database, "lost").await;
            eventually(async || mark(&site.device("a").await) == RestoreMark::AwaitingReconnect).await;
            assert_eq!(statuses(&site.device("a").await), "AwaitingReconnect Unknown Unknown");
            assert_eq!(site.last_seen("a").await, None);
            let back = site.poll("a", Some("7")).await.unwrap().unwrap();
            assert_eq!(mark(&back), RestoreMark::ConflictPaused);
        }
        site.stop().await;
    })
    .await;
}

#[tokio::test]
async fn enrolled_devices_are_created_once() {
    on_each_database(async |site, _| {
        let enrolled = |mark: RestoreMark| {
            let annotations = DeviceAnnotations { restore_mark: mark.into(), ..DeviceAnnotations::default() };
            let meta = DeviceMeta {
                name: "d1".to_owned(),
                labels: labels(&[("site", "north")]),
                annotations: Some(annotations),
                // The registry sets it.
                generation: 7,
                ..DeviceMeta::default()
            };
            let lifecycle = Some(StatusEntry { status: "Enrolled".to_owned(), info: String::new() });
            Device {
                meta: Some(meta),
                reported: Some(AgentReport { os_mode: "image".to_owned(), ..AgentReport::default() }),
                status: Some(DeviceStatus { lifecycle, ..DeviceStatus::default() }),
                ..Device::default()
            }
        };
        let report = |mark| ReportDeviceEnrolmentRequest { device: Some(enrolled(mark)) };
        let made = site.parts().report_device_enrolment(report(RestoreMark::Unspecified)).await.unwrap();
        let device = made.into_inner().device.unwrap();
        assert_eq!(device, site.device("d1").await);
        assert_eq!(statuses(&device), "Unknown UpToDate Unknown");
        let meta = device.meta.unwrap();
        assert_eq!((meta.generation, meta.labels), (1, labels(&[("site", "north")])));
        assert_eq!(device.status.unwrap().lifecycle.unwrap().status, "Enrolled");
        let again = site.parts().report_device_enrolment(report(RestoreMark::Unspecified)).await;
        assert_eq!(refusal(&again.unwrap_err()), "AlreadyExists");

        // A29.
        site.devices().delete_device(DeleteDeviceRequest { name: "d1".to_owned() }).await.unwrap();
        let made =
            site.parts().report_device_enrolment(report(RestoreMark::AwaitingReconnect)).await.unwrap();
        assert_eq!(statuses(&made.into_inner().device.unwrap()), "AwaitingReconnect Unknown Unknown");
    })
    .await;
}
