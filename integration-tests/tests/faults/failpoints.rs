//! Every process dies on either side of everything that has an effect outside of it, and where a step was recorded.
//!
//! Nobody lists the points: a session that is not disturbed shows which there are, and what is passed only while
//! something is taken up again is found as it comes up, and gets its own crash then.

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
use upstreams::{Pace, Plan, Upstreams};

use crate::{
    history::{Mark, is_safe},
    stage::{attempted_once_replacing, furnish, replacing, see_through},
};

const NODES: u32 = 3;

/// How often a reboot passes what it does for each power action: once for off and once for on. What it passes more
/// often is passed in the same situations.
const TIMES: u32 = 2;

/// Longer than a part mostly takes to be started again and to look at what it had asked for; power services give up soon
/// after.
const SLOW: Duration = Duration::from_secs(2);

/// How long a point that a session left out may take to be passed by what goes on beside it.
const BESIDE: Duration = Duration::from_secs(1);

/// Between two looks whether it was.
const PAUSE: Duration = Duration::from_millis(20);

/// Passed many times in each transaction; commits have points of their own, and so have migrations in another test.
const STATEMENT: &str = "database.statement";

/// Set to run with only the points that are named, `NAME` or `NAME@TIME`, separated by commas, all at once.
const ONLY: &str = "REVEILLE_TEST_FAILPOINTS";

/// The end of a process at a point, the next time that it is passed or a later time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Crash {
    point: String,
    time: u32,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.point, self.time)
    }
}

impl Crash {
    fn parse(text: &str) -> Self {
        let (point, time) = text.split_once('@').unwrap_or((text, "1"));
        Self { point: point.to_owned(), time: time.parse().unwrap() }
    }
}

fn shown(crashes: &[Crash]) -> String {
    crashes.iter().map(Crash::to_string).collect::<Vec<_>>().join(" and ")
}

/// How long a part that was started may take until it has passed every point of a start: as long as the pauses after
/// failed connections, on a machine that is busy.
const AFTER_A_START: Duration = Duration::from_secs(20);

/// A mesh of processes in which points can be armed.
struct Scene {
    mesh: Processes,
    points: Failpoints,
    rounds: usize,
    /// Rounds with two crashes of which the second did not come up.
    missed: usize,
}

impl Scene {
    fn prepare() -> Self {
        let (mut mesh, points) = (Processes::prepare(), Failpoints::new());
        mesh.set_variable(chassis::failpoint::DIRECTORY, points.variable());
        Self { mesh, points, rounds: 0, missed: 0 }
    }

    async fn begin(&mut self, nodes: usize) {
        self.mesh.begin().await;
        furnish(&self.mesh.bos, nodes).await;
    }

    fn passed(&self) -> BTreeMap<String, u32> {
        let mut passed = self.points.passed();
        passed.remove(STATEMENT);
        passed
    }

    /// Reboots everything with `crashes` to come, and sees to it that each of them ends a process.
    async fn reboot(&mut self, crashes: &[Crash]) {
        self.rounds += 1;
        let (bos, name) = (self.mesh.bos.clone(), format!("round-{}", self.rounds));
        crashes.iter().for_each(|crash| self.points.arm(&crash.point, crash.time));
        replacing(&mut self.mesh, see_through(&bos, "reboot", &name)).await;
        let until = Instant::now() + BESIDE;
        while self.armed(crashes).is_some() && Instant::now() < until {
            replacing(&mut self.mesh, ask(&bos)).await;
            replacing(&mut self.mesh, sleep(PAUSE)).await;
        }
        self.restart_until_hit(crashes).await;
        replacing(&mut self.mesh, bos.ready()).await;
    }

    fn armed<'a>(&self, crashes: &'a [Crash]) -> Option<&'a Crash> {
        crashes.iter().find(|crash| self.points.is_armed(&crash.point))
    }

    /// What is passed only at a start is reached by one. The hardware goes on.
    async fn restart_until_hit(&mut self, crashes: &[Crash]) {
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
        // Who is ready may still be on its way to the point.
        let until = Instant::now() + AFTER_A_START;
        while self.armed(crashes).is_some_and(|crash| crash.time == 1) && Instant::now() < until {
            replacing(&mut self.mesh, sleep(PAUSE)).await;
        }
        if let Some(crash) = self.armed(crashes) {
            // Nodes that are handled together at one time are handled apart at another, and a point that was found after
            // a crash may have been passed because a call was late.
            let depends_on_timing = crash.time > 1 || crashes.len() > 1;
            assert!(depends_on_timing, "{crash} was passed before, and is not any more; {}", shown(crashes));
            eprintln!("{crash} did not come up this time");
            self.missed += usize::from(crashes.len() > 1);
            assert!(self.points.disarm(&crash.point));
        }
    }
}

/// Asks for what was asked for when the points were listed, beside the session. Whoever answers may be aborting.
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
struct Crashes {
    due: VecDeque<Vec<Crash>>,
    known: BTreeSet<String>,
}

impl Crashes {
    /// The crashes of a shard. `start` is what was passed until a session began, `end` until it ended.
    fn new(start: &BTreeMap<String, u32>, end: &BTreeMap<String, u32>, own: impl Fn(usize) -> bool) -> Self {
        let times = end.iter().flat_map(|(point, last)| {
            let in_session = last - start.get(point).unwrap_or(&0);
            (1..=in_session.clamp(1, TIMES)).map(move |time| vec![Crash { point: point.clone(), time }])
        });
        let due = times.enumerate().filter(|(index, _)| own(*index)).map(|(_, crash)| crash).collect();
        Self { due, known: end.keys().cloned().collect() }
    }

    fn found(&mut self, passed: BTreeMap<String, u32>, after: &[Crash]) {
        for point in passed.into_keys() {
            if self.known.insert(point.clone()) {
                eprintln!("{point} comes up after {}", shown(after));
                self.due.push_back([after, &[Crash { point, time: 1 }]].concat());
            }
        }
    }
}

/// Survives the crashes of one in `shards`.
async fn survives(shard: usize, shards: usize) {
    let mut scene = Scene::prepare();
    let upstreams = scene.mesh.among(Plan { up: true, ..Plan::quick(NODES) }).await;
    scene.begin(upstreams.ids().len()).await;
    let start = scene.passed();
    round(&mut scene, &upstreams, &[]).await;
    let mut crashes = Crashes::new(&start, &scene.passed(), |index| index % shards == shard);
    assert!(crashes.known.contains("PCS.transitions_create.after"), "release builds have no points");
    if let Ok(only) = std::env::var(ONLY) {
        crashes.due = [only.split(',').map(Crash::parse).collect()].into();
    }
    eprintln!("{} points, {} crashes here", crashes.known.len(), crashes.due.len());
    let mut pairs = 0;
    while let Some(crash) = crashes.due.pop_front() {
        pairs += usize::from(crash.len() > 1);
        let began = Instant::now();
        round(&mut scene, &upstreams, &crash).await;
        eprintln!("{:6.2} s", began.elapsed().as_secs_f64());
        crashes.found(scene.passed(), &crash);
    }
    assert!(pairs == 0 || scene.missed < pairs, "none of {pairs} second crashes came up");
}

/// One reboot of everything, with these crashes.
async fn round(scene: &mut Scene, upstreams: &Upstreams, crashes: &[Crash]) {
    eprintln!("crash at {}", shown(crashes));
    let mark = Mark::now(upstreams);
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

/// Where power changes at once, a look at it after the crash shows that nothing is left to ask for. Where it does not, only
/// a look at the transitions shows that it was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_a_slow_power_action_was_taken_repeats_nothing() {
    let mut scene = Scene::prepare();
    let pace = Pace { soft_off: SLOW, power_on: SLOW, ..Pace::default() };
    let plan = Plan { up: true, pace: Some(pace), ..Plan::quick(NODES) };
    let upstreams = scene.mesh.among(plan).await;
    scene.begin(upstreams.ids().len()).await;
    for time in 1..=TIMES {
        let crash = Crash { point: "PCS.transitions_create.after".to_owned(), time };
        round(&mut scene, &upstreams, &[crash]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_at_any_call_of_simulated_upstreams_repeats_nothing() {
    let mut scene = Scene::prepare();
    scene.mesh.set(&format!("[simulator]\nnodes = {NODES}\nspeed = 0.0\n"));
    scene.begin(NODES as usize).await;
    let start = scene.passed();
    scene.reboot(&[]).await;
    let mut end = scene.passed();
    end.retain(|point, _| point.starts_with("FleetService."));
    assert!(end.contains_key("FleetService.CreateTransition.after"), "{end:?}");
    let mut asked = transitions_of_nodes(&scene.mesh).await;
    for crash in Crashes::new(&start, &end, |_| true).due {
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

/// What the simulated hardware was told, by node, in order.
async fn transitions_of_nodes(mesh: &Processes) -> BTreeMap<String, Vec<String>> {
    let mut fleet = FleetServiceClient::new(chassis::channel(&mesh.url("simulator")).unwrap());
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
