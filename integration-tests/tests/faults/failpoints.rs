//! Every process dies on either side of every external effect, and at every recorded step.
//!
//! No list of the points exists: an undisturbed session shows them, and a point that is passed only during a recovery
//! gets its own crash as soon as it shows.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    time::Duration,
};

use integration_tests::{bos::Bos, failpoints::Failpoints, processes::Processes};
use proto::simulation::{ListTransitionsRequest, fleet_service_client::FleetServiceClient};
use reqwest::Method;
use serde_json::json;
use tokio::time::{Instant, sleep};
use upstreams::{MachinePlan, NodePace, Upstreams};

use crate::{
    history::{HistoryMark, is_safe},
    stage::{attempted_once_replacing, furnish, replacing, see_through},
};

const NODES: u32 = 3;

/// Number of times that a reboot passes each point of a power action: once for off and once for on. Later passes repeat
/// the same situations.
const TIMES: u32 = 2;

/// Longer than a part usually takes to restart and to look up its open transitions; power services give up soon after.
const SLOW: Duration = Duration::from_secs(2);

/// Limit for background work to pass a point that the session did not pass.
const BESIDE: Duration = Duration::from_secs(1);

/// Pause between two checks of a point.
const PAUSE: Duration = Duration::from_millis(20);

/// Passed many times in each transaction; commits have points of their own, and so have migrations in another test.
const STATEMENT: &str = "database.statement";

/// Set to run with only the points that are named, `NAME` or `NAME@TIME`, separated by commas, all at once.
const ONLY: &str = "REVEILLE_TEST_FAILPOINTS";

/// The end of a process at a point, the next time that it is passed or a later time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCrash {
    point: String,
    time: u32,
}

impl fmt::Display for PlannedCrash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.point, self.time)
    }
}

impl PlannedCrash {
    fn parse(text: &str) -> Self {
        let (point, time) = text.split_once('@').unwrap_or((text, "1"));
        Self { point: point.to_owned(), time: time.parse().unwrap() }
    }
}

pub fn shown(crashes: &[PlannedCrash]) -> String {
    crashes.iter().map(PlannedCrash::to_string).collect::<Vec<_>>().join(" and ")
}

/// Most time for a started part to pass every point of a start: as long as the pauses after failed connections, on a
/// busy machine.
const AFTER_A_START: Duration = Duration::from_secs(20);

/// A mesh of processes in which points can be armed.
pub struct FailpointScene {
    pub mesh: Processes,
    points: Failpoints,
    rounds: usize,
    /// Crashes so far.
    planned: usize,
    /// Crashes whose point was not passed again.
    missed: usize,
}

impl FailpointScene {
    fn prepare() -> Self {
        let mut scene = Self::with_every_part();
        // There is no host, no fleet and no question, so these only listen, and their points are those of any part.
        scene.mesh.leave_out("host_provisioner");
        scene.mesh.leave_out("fleet_manager");
        scene.mesh.leave_out("insight");
        scene
    }

    pub fn with_every_part() -> Self {
        let (mut mesh, points) = (Processes::prepare(), Failpoints::new());
        mesh.set_variable(chassis::process::failpoint::DIRECTORY, points.variable());
        Self { mesh, points, rounds: 0, planned: 0, missed: 0 }
    }

    async fn begin(&mut self, nodes: usize) {
        self.mesh.begin().await;
        furnish(&self.mesh.bos, nodes).await;
    }

    pub fn passed(&self) -> BTreeMap<String, u32> {
        let mut passed = self.points.passed();
        passed.remove(STATEMENT);
        passed
    }

    /// Reboots everything with `crashes` to come, and sees to it that each of them ends a process.
    async fn reboot(&mut self, crashes: &[PlannedCrash]) {
        self.rounds += 1;
        let (bos, name) = (self.mesh.bos.clone(), format!("round-{}", self.rounds));
        self.survive(crashes, see_through(&bos, "reboot", &name)).await;
    }

    /// Does `work` with `crashes` to come, and sees to it that each of them ends a process, if its point comes up again.
    pub async fn survive(&mut self, crashes: &[PlannedCrash], work: impl Future<Output = ()>) {
        let bos = self.mesh.bos.clone();
        self.planned += crashes.len();
        crashes.iter().for_each(|crash| self.points.arm(&crash.point, crash.time));
        replacing(&mut self.mesh, work).await;
        let until = Instant::now() + BESIDE;
        while self.armed(crashes).is_some() && Instant::now() < until {
            replacing(&mut self.mesh, ask(&bos)).await;
            replacing(&mut self.mesh, sleep(PAUSE)).await;
        }
        self.restart_until_hit(crashes).await;
        replacing(&mut self.mesh, bos.ready()).await;
    }

    /// Checks that almost every crash happened.
    pub fn met_its_crashes(&self) {
        let Self { planned, missed, .. } = self;
        assert!(missed * 10 <= *planned, "{missed} of {planned} crashes did not come up");
    }

    fn armed<'a>(&self, crashes: &'a [PlannedCrash]) -> Option<&'a PlannedCrash> {
        crashes.iter().find(|crash| self.points.is_armed(&crash.point))
    }

    /// Restarts parts to reach the points that are passed only at a start. The hardware continues.
    async fn restart_until_hit(&mut self, crashes: &[PlannedCrash]) {
        for part in self.mesh.parts().into_iter().filter(|part| *part != "simulator") {
            if self.armed(crashes).is_none() {
                return;
            }
            self.mesh.replace_aborted();
            self.mesh.kill_part(part).await;
            self.mesh.start_part(part);
            let bos = self.mesh.bos.clone();
            replacing(&mut self.mesh, bos.ready()).await;
        }
        // A ready part may still be on its way to the point.
        let until = Instant::now() + AFTER_A_START;
        while self.armed(crashes).is_some_and(|crash| crash.time == 1) && Instant::now() < until {
            replacing(&mut self.mesh, sleep(PAUSE)).await;
        }
        if let Some(crash) = self.armed(crashes) {
            // Nodes that are handled together at one time are handled apart at another, and a point may have been passed
            // because a call was late.
            eprintln!("{crash} did not come up this time");
            self.missed += 1;
            assert!(self.points.disarm(&crash.point));
        }
    }
}

/// Repeats the requests that were made beside the session when the points were listed. The answering part may be
/// aborting.
async fn ask(bos: &Bos) {
    let template = json!({"boot_sets": {"compute": {
        "type": "s3", "path": "s3://boot-images/other/manifest.json", "node_roles_groups": ["Compute"],
    }}});
    for (method, path, body) in [
        (Method::GET, "/v2/components", None),
        (Method::PATCH, "/v2/options", Some(json!({"default_retry_policy": 1}))),
        (Method::PUT, "/v2/sessiontemplates/other", Some(template)),
    ] {
        if let Err(error) = bos.try_send(method, path, body.as_ref()).await {
            eprintln!("{path}: {error}");
        }
    }
}

/// The crashes to survive: one at each point for each of its times, and for each point that only comes up after one
/// of them, both together.
pub struct CrashPlan {
    pub due: VecDeque<Vec<PlannedCrash>>,
    pub known: BTreeSet<String>,
}

impl CrashPlan {
    /// The crashes of a shard. `start` counts passes before a session began, `end` those at its end.
    pub fn new(
        start: &BTreeMap<String, u32>,
        end: &BTreeMap<String, u32>,
        own: impl Fn(usize) -> bool,
    ) -> Self {
        let times = end.iter().flat_map(|(point, last)| {
            let in_session = last - start.get(point).unwrap_or(&0);
            (1..=in_session.clamp(1, TIMES))
                .map(move |time| vec![PlannedCrash { point: point.clone(), time }])
        });
        let due = times.enumerate().filter(|(index, _)| own(*index)).map(|(_, crash)| crash).collect();
        Self { due, known: end.keys().cloned().collect() }
    }

    fn found(&mut self, passed: BTreeMap<String, u32>, after: &[PlannedCrash]) {
        for point in passed.into_keys() {
            if self.known.insert(point.clone()) {
                eprintln!("{point} comes up after {}", shown(after));
                self.due.push_back([after, &[PlannedCrash { point, time: 1 }]].concat());
            }
        }
    }
}

/// Survives the crashes of one in `shards`.
async fn survives(shard: usize, shards: usize) {
    let mut scene = FailpointScene::prepare();
    let upstreams = scene.mesh.among(MachinePlan { up: true, ..MachinePlan::quick(NODES) }).await;
    scene.begin(upstreams.ids().len()).await;
    let start = scene.passed();
    round(&mut scene, &upstreams, &[]).await;
    let mut crashes = CrashPlan::new(&start, &scene.passed(), |index| index % shards == shard);
    assert!(crashes.known.contains("PCS.transitions_create.after"), "release builds have no points");
    if let Ok(only) = std::env::var(ONLY) {
        crashes.due = [only.split(',').map(PlannedCrash::parse).collect()].into();
    }
    eprintln!("{} points, {} crashes here", crashes.known.len(), crashes.due.len());
    while let Some(crash) = crashes.due.pop_front() {
        let began = Instant::now();
        round(&mut scene, &upstreams, &crash).await;
        eprintln!("{:6.2} s", began.elapsed().as_secs_f64());
        crashes.found(scene.passed(), &crash);
    }
    scene.met_its_crashes();
}

/// Reboots all nodes under these crashes.
async fn round(scene: &mut FailpointScene, upstreams: &Upstreams, crashes: &[PlannedCrash]) {
    eprintln!("crash at {}", shown(crashes));
    let mark = HistoryMark::now(upstreams);
    scene.reboot(crashes).await;
    is_safe(upstreams, &mark, &["Soft-Off", "On"]);
    attempted_once_replacing(&mut scene.mesh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_at_any_point_repeats_nothing_first_third() {
    survives(0, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_at_any_point_repeats_nothing_second_third() {
    survives(1, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_at_any_point_repeats_nothing_last_third() {
    survives(2, 3).await;
}

/// Where power changes at once, a poll after the crash shows the result. On slow hardware only the power service's
/// transitions show that the action was requested.
#[tokio::test(flavor = "multi_thread")]
async fn crash_after_an_accepted_slow_power_action_repeats_nothing() {
    let mut scene = FailpointScene::prepare();
    let pace = NodePace { soft_off: SLOW, power_on: SLOW, ..NodePace::default() };
    let plan = MachinePlan { up: true, pace: Some(pace), ..MachinePlan::quick(NODES) };
    let upstreams = scene.mesh.among(plan).await;
    scene.begin(upstreams.ids().len()).await;
    for time in 1..=TIMES {
        let crash = PlannedCrash { point: "PCS.transitions_create.after".to_owned(), time };
        round(&mut scene, &upstreams, &[crash]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_at_any_simulated_upstream_call_repeats_nothing() {
    let mut scene = FailpointScene::prepare();
    scene.mesh.set(&format!("[simulator]\nnodes = {NODES}\nspeed = 0.0\n"));
    scene.begin(NODES as usize).await;
    let start = scene.passed();
    scene.reboot(&[]).await;
    let mut end = scene.passed();
    end.retain(|point, _| point.starts_with("FleetService."));
    assert!(end.contains_key("FleetService.CreateTransition.after"), "{end:?}");
    let mut asked = transitions_of_nodes(&scene.mesh).await;
    for crash in CrashPlan::new(&start, &end, |_| true).due {
        eprintln!("crash at {}", shown(&crash));
        scene.reboot(&crash).await;
        let now = transitions_of_nodes(&scene.mesh).await;
        for (id, before) in asked {
            assert_eq!(now[&id][before.len()..], ["SoftOff", "On"], "{id}");
        }
        asked = now;
        attempted_once_replacing(&mut scene.mesh).await;
    }
}

/// Transitions that the simulated hardware performed, by node, in order.
async fn transitions_of_nodes(mesh: &Processes) -> BTreeMap<String, Vec<String>> {
    let mut fleet = FleetServiceClient::new(chassis::plain_channel(&mesh.url("simulator")).unwrap());
    let answer = fleet.list_transitions(ListTransitionsRequest { since: None }).await.unwrap();
    let mut by_node: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for transition in answer.into_inner().transitions {
        let operation = format!("{:?}", transition.operation());
        for id in &transition.ids {
            by_node.entry(id.clone()).or_default().push(operation.clone());
        }
    }
    by_node
}
