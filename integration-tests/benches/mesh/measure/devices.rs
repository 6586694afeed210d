//! Edge devices of one fleet: signs of life, reports and polls of their agents, lists, and a new template for all of them.
//!
//! Agents are played over gRPC, as the gateway passes them on; status documents also over REST.

use std::{
    collections::{BTreeMap, HashSet},
    time::{Duration, Instant},
};

use chassis::mesh::call_class::{CallClass, scope};
use proto::{
    device::{
        AgentReport, ApplicationReport, CreateDeviceRequest, DeviceFilter, DeviceSpec, ListDevicesRequest,
        PollRenderedDeviceRequest, ReportDeviceStatusRequest, ReportHeartbeatsRequest, RunningOs,
        StatusDocument, StatusEntry, SystemInfo, WatchDevicesRequest,
        device_agent_service_client::DeviceAgentServiceClient, device_service_client::DeviceServiceClient,
    },
    fleet::{
        CreateFleetRequest, FleetSelector, FleetSpec, ReplaceFleetRequest,
        fleet_service_client::FleetServiceClient,
    },
};
use serde_json::json;
use tokio::time::{sleep, timeout};
use tonic::Code;

use super::{BenchRun, LASTING};
use crate::{
    load,
    samples::{milliseconds, percentile, timed},
    stage::Server,
};

/// Fleets by the scale of the bench.
const SOME: usize = 5_000;
const MANY: usize = 100_000;

/// Devices that report an error of an application.
const BROKEN: usize = 1_000;

/// Callers and their connections.
const CALLERS: usize = 256;
const CONNECTIONS: usize = 8;

/// Period in which each agent polls.
const POLL_PERIOD: u32 = 120;

/// Time for which polls are made, and lists with a selector.
const POLLED: Duration = Duration::from_secs(10);
const ASKED: usize = 100;

/// Time for devices to come to rest.
const REST: Duration = Duration::from_secs(5);

/// Codes after which an agent repeats its report: the registry is busy, or the connection broke.
const PASSING: [Code; 4] = [Code::Unavailable, Code::ResourceExhausted, Code::Unknown, Code::Cancelled];

/// Pause of an agent whose report was refused.
const PAUSE: Duration = Duration::from_millis(500);

/// Limit of any wait.
const PATIENCE: Duration = Duration::from_secs(300);

const FLEET: &str = "edge";

const ROWS: [&str; 11] = ["D1", "D1.commits", "D2", "D3", "D3.p99", "D4.first", "D4", "D5", "D6", "D7", "D8"];

type DeviceClient = DeviceServiceClient<chassis::Channel>;
type AgentClient = DeviceAgentServiceClient<chassis::Channel>;

/// Measures devices.
pub async fn measure(bench: &mut BenchRun<'_>) {
    let count = bench.command.scale.of(SOME, MANY);
    let enrolled = async |bench: &mut BenchRun<'_>| enrolled(bench, count).await;
    let Some(server) = bench.attempt("devices that have reported", &ROWS, 5, enrolled).await else { return };
    let devices = &PlayedDevices { server: &server, count };
    bench.attempt("signs of life", &["D1", "D1.commits"], 3, async |b| heartbeats(b, devices).await).await;
    bench.attempt("polls", &["D2"], 3, async |bench| polls(bench, devices).await).await;
    bench.attempt("reports", &["D3", "D3.p99"], 3, async |bench| reports(bench, devices).await).await;
    bench.attempt("lists of devices", &["D4", "D5"], 3, async |bench| lists(bench, devices).await).await;
    bench.attempt("a new template", &["D6"], 5, async |bench| template(bench, devices).await).await;
    bench.attempt("return of half of them", &["D7"], 5, async |bench| crowd(bench, devices).await).await;
    server.stop().await;
}

/// Devices of a running mesh.
struct PlayedDevices<'a> {
    server: &'a Server,
    count: usize,
}

impl PlayedDevices<'_> {
    fn devices(&self) -> DeviceClient {
        let channel = chassis::plain_channel(&self.server.settings.component_registry.url);
        DeviceServiceClient::new(channel.expect("an address")).max_decoding_message_size(usize::MAX)
    }

    /// Clients of agents, each with a connection of its own.
    fn agents(&self) -> Vec<AgentClient> {
        let url = &self.server.settings.component_registry.url;
        let client = |_| DeviceAgentServiceClient::new(chassis::plain_channel(url).expect("an address"));
        (0..CONNECTIONS).map(client).collect()
    }

    fn fleets(&self) -> FleetServiceClient<chassis::Channel> {
        let channel = chassis::plain_channel(&self.server.settings.fleet_manager.url);
        FleetServiceClient::new(channel.expect("an address"))
    }

    /// Waits until every device was rendered with this image.
    async fn rendered(&self, image: &str) {
        let request = WatchDevicesRequest::default();
        let mut watch = self.devices().watch_devices(request).await.expect("a watch").into_inner();
        let mut seen = HashSet::new();
        while seen.len() < self.count {
            let batch = timeout(PATIENCE, watch.message()).await.expect("devices in time");
            for device in batch.expect("a batch").expect("no end").devices {
                let meta = device.meta.unwrap_or_default();
                let annotations = meta.annotations.unwrap_or_default();
                let wanted = device.spec.is_some_and(|spec| spec.document_json.contains(image));
                let is_rendered = annotations.template_version == annotations.rendered_template_version;
                if wanted && is_rendered && annotations.rendered_version > 0 {
                    seen.insert(meta.name);
                }
            }
        }
    }
}

/// A mesh with a fleet whose devices were rendered and have reported.
async fn enrolled(bench: &mut BenchRun<'_>, count: usize) -> Server {
    let server = Server::empty(bench.stage).await;
    sleep(REST).await;
    let empty = server.memory();
    let devices = PlayedDevices { server: &server, count };
    let request =
        CreateFleetRequest { name: FLEET.to_owned(), spec: Some(fleet("v1")), ..Default::default() };
    devices.fleets().create_fleet(request).await.expect("a fleet");
    let client = devices.devices();
    let create = |number: usize| {
        let mut client = client.clone();
        let request =
            CreateDeviceRequest { name: name(number), labels: labels(), spec: Some(DeviceSpec::default()) };
        async move { drop(client.create_device(request).await.expect("a device")) }
    };
    load::burst(CALLERS, (0..count).map(create)).await;
    devices.rendered("v1").await;
    let agents = devices.agents();
    load::burst(CALLERS, (0..count).map(|number| report(&agents, number))).await;
    sleep(REST).await;
    let spec = template_document("v1").len();
    let used = (server.memory() - empty) / count as f64 - spec as f64;
    bench.note("D8", count, used / 1024.0);
    server
}

async fn heartbeats(bench: &mut BenchRun<'_>, devices: &PlayedDevices<'_>) {
    let (agents, count) = (devices.agents(), devices.count);
    let beat = move |number: usize| {
        let mut agent = agents[number % CONNECTIONS].clone();
        let request = ReportHeartbeatsRequest { names: vec![name(number % count)] };
        scope(CallClass::Report, async move {
            agent.report_heartbeats(request).await.expect("a sign of life");
        })
    };
    for _ in 0..bench.runs() {
        let before = bench.commits().await;
        let load = load::callers(CALLERS, 3 * LASTING, beat.clone()).await;
        bench.note("D1", count, load.rate());
        if let Some((before, after)) = before.zip(bench.commits().await) {
            bench.note("D1.commits", count, (after - before) as f64 / load.took.as_secs_f64());
        }
    }
    if bench.commits().await.is_none() {
        bench.leave(&["D1.commits"], "SQLite does not count transactions");
    }
}

/// Measures the CPU of polls that find nothing new, as many as all agents make.
async fn polls(bench: &mut BenchRun<'_>, devices: &PlayedDevices<'_>) {
    let (agents, count) = (devices.agents(), devices.count);
    let a_second = u32::try_from(count).expect("a small number").div_ceil(POLL_PERIOD);
    let mut known = agents[0].clone();
    let first = PollRenderedDeviceRequest { name: name(0), is_onlooker: true, ..Default::default() };
    let answer = known.poll_rendered_device(first).await.expect("an answer").into_inner();
    let annotations = answer.device.and_then(|device| device.meta).and_then(|meta| meta.annotations);
    let version = annotations.map(|annotations| annotations.rendered_version.to_string());
    let poll = |number: usize| {
        let mut agent = agents[number % CONNECTIONS].clone();
        let request = PollRenderedDeviceRequest {
            name: name(number % count),
            known_version: version.clone(),
            longest_wait: Some(prost_types::Duration { seconds: 2, nanos: 0 }),
            is_onlooker: false,
        };
        scope(CallClass::Report, async move {
            agent.poll_rendered_device(request).await.expect("an answer");
        })
    };
    for _ in 0..bench.few_runs() {
        let before = devices.server.cpu();
        let load = load::pace(a_second, POLLED, poll).await;
        let used = devices.server.cpu() - before;
        bench.note("D2", count, 100.0 * used.as_secs_f64() / load.took.as_secs_f64());
    }
}

/// Measures status documents over REST, each with a change.
async fn reports(bench: &mut BenchRun<'_>, devices: &PlayedDevices<'_>) {
    let (client, count) = (reqwest::Client::new(), devices.count);
    let url = format!("{}/flightctl/api/v1/devices", devices.server.settings.gateway.url);
    for run in 0..bench.runs() {
        let (client, url) = (client.clone(), url.clone());
        let put = move |number: usize| {
            let name = name(number % count);
            let body = status_document(&name, &format!("boot-{run}-{number}"));
            load::taken(client.put(format!("{url}/{name}/status")).json(&body))
        };
        let load = load::callers(CALLERS / 4, LASTING, put).await;
        bench.note("D3", count, load.rate());
        bench.note("D3.p99", count, percentile(&mut load.times(), 99.0));
    }
}

async fn lists(bench: &mut BenchRun<'_>, devices: &PlayedDevices<'_>) {
    let (agents, broken) = (devices.agents(), BROKEN.min(devices.count / 5));
    load::burst(CALLERS, (0..broken).map(|number| broken_report(&agents, number))).await;
    let client = devices.devices();
    for _ in 0..bench.runs() {
        let (first, total) = list(&client, ListDevicesRequest::default(), devices.count).await;
        bench.note("D4.first", devices.count, milliseconds(first));
        bench.note("D4", devices.count, total.as_secs_f64());
        let field_selector = "status.applicationsSummary.status=Error".to_owned();
        let filter = Some(DeviceFilter { field_selector, ..DeviceFilter::default() });
        let mut times = Vec::new();
        for _ in 0..ASKED {
            let request = ListDevicesRequest { filter: filter.clone(), ..ListDevicesRequest::default() };
            times.push(milliseconds(list(&client, request, broken).await.1));
        }
        bench.note("D5", devices.count, percentile(&mut times, 99.0));
    }
}

async fn template(bench: &mut BenchRun<'_>, devices: &PlayedDevices<'_>) {
    for run in 0..bench.few_runs() {
        let image = format!("new-{run}");
        let request =
            ReplaceFleetRequest { name: FLEET.to_owned(), spec: Some(fleet(&image)), ..Default::default() };
        let change = async { drop(devices.fleets().replace_fleet(request).await.expect("a fleet")) };
        let (_, took) = timed(async { tokio::join!(change, devices.rendered(&image)) }).await;
        bench.note("D6", devices.count, took.as_secs_f64());
    }
}

/// Measures reports of half of the devices at once. An agent whose report was not taken repeats it a little later.
async fn crowd(bench: &mut BenchRun<'_>, devices: &PlayedDevices<'_>) {
    let (agents, half) = (devices.agents(), devices.count / 2);
    for run in 0..bench.few_runs() {
        let insist = |number: usize| {
            let mut agent = agents[number % CONNECTIONS].clone();
            let request = agent_report(number, &format!("back-{run}"));
            async move {
                while let Err(status) =
                    scope(CallClass::Report, agent.report_device_status(request.clone())).await
                {
                    assert!(PASSING.contains(&status.code()), "a report was refused: {status}");
                    sleep(PAUSE).await;
                }
            }
        };
        bench.note("D7", half, load::burst(half, (0..half).map(insist)).await.as_secs_f64());
    }
}

/// Lists over gRPC; returns the times of the first and the last message.
async fn list(client: &DeviceClient, request: ListDevicesRequest, count: usize) -> (Duration, Duration) {
    let mut client = client.clone();
    let began = Instant::now();
    let listed = scope(CallClass::List, client.list_devices(request)).await;
    let mut pages = listed.expect("a list").into_inner();
    let (mut first, mut listed) = (None, 0);
    while let Some(page) = pages.message().await.expect("a page") {
        first.get_or_insert_with(|| began.elapsed());
        listed += page.devices.len();
    }
    assert_eq!(listed, count, "devices in a list");
    (first.unwrap_or_default(), began.elapsed())
}

fn report(agents: &[AgentClient], number: usize) -> impl Future<Output = ()> + Send + use<> {
    taken(agents, number, agent_report(number, "boot-1"))
}

fn broken_report(agents: &[AgentClient], number: usize) -> impl Future<Output = ()> + Send + use<> {
    let mut request = agent_report(number, "boot-1");
    let report = request.document.as_mut().and_then(|document| document.report.as_mut()).expect("a report");
    report.applications_verdict = Some(status("Error"));
    report.applications[0].status = "Error".to_owned();
    taken(agents, number, request)
}

fn taken(
    agents: &[AgentClient],
    number: usize,
    request: ReportDeviceStatusRequest,
) -> impl Future<Output = ()> + Send + use<> {
    let mut agent = agents[number % CONNECTIONS].clone();
    scope(CallClass::Report, async move {
        agent.report_device_status(request).await.expect("a report taken");
    })
}

fn agent_report(number: usize, boot: &str) -> ReportDeviceStatusRequest {
    let application = ApplicationReport {
        name: "kiosk".to_owned(),
        status: "Running".to_owned(),
        ready: "1/1".to_owned(),
        app_type: "container".to_owned(),
        ..ApplicationReport::default()
    };
    let system = SystemInfo {
        architecture: "arm64".to_owned(),
        boot_id: boot.to_owned(),
        operating_system: "linux".to_owned(),
        agent_version: "1".to_owned(),
        ..SystemInfo::default()
    };
    let report = AgentReport {
        system_info: Some(system),
        applications: vec![application],
        applications_verdict: Some(status("Healthy")),
        rendered_version: "1".to_owned(),
        os: Some(RunningOs { image: "quay.example/edge:v1".to_owned(), ..RunningOs::default() }),
        ..AgentReport::default()
    };
    let document = StatusDocument { report: Some(report), lifecycle: None };
    ReportDeviceStatusRequest { name: name(number), document: Some(document), ..Default::default() }
}

fn status(word: &str) -> StatusEntry {
    StatusEntry { status: word.to_owned(), ..StatusEntry::default() }
}

/// Status document over REST, as an agent writes it (device reference 1.3).
fn status_document(name: &str, boot: &str) -> serde_json::Value {
    json!({
        "apiVersion": "flightctl.io/v1beta1", "kind": "Device", "metadata": { "name": name },
        "status": {
            "conditions": [],
            "applications": [{
                "name": "kiosk", "ready": "1/1", "restarts": 0, "status": "Running", "embedded": false,
                "appType": "container",
            }],
            "applicationsSummary": { "status": "Healthy" },
            "systemInfo": {
                "architecture": "arm64", "bootID": boot, "operatingSystem": "linux", "agentVersion": "1",
            },
            "resources": { "cpu": "Healthy", "memory": "Healthy", "disk": "Healthy" },
            "integrity": { "status": "Unsupported" },
            "config": { "renderedVersion": "1" },
            "os": { "image": "quay.example/edge:v1", "imageDigest": "" },
            "updated": { "status": "Unknown" }, "summary": { "status": "Unknown" },
            "lifecycle": { "status": "Unknown" },
        },
    })
}

fn name(number: usize) -> String {
    format!("edge-{number:06}")
}

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([("fleet".to_owned(), FLEET.to_owned())])
}

fn fleet(image: &str) -> FleetSpec {
    let template = DeviceSpec { document_json: template_document(image), ..DeviceSpec::default() };
    let selector = FleetSelector { match_labels: labels(), ..FleetSelector::default() };
    FleetSpec { selector: Some(selector), template: Some(template), ..FleetSpec::default() }
}

fn template_document(image: &str) -> String {
    let content = format!("image: {image}\nname: {{{{ .metadata.name }}}}\n");
    json!({ "config": [{ "name": "motd", "inline": [{ "path": "/etc/motd", "content": content }] }] })
        .to_string()
}
