//! Processes that are killed, or stopped in order, at any time while nodes are under way.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use integration_tests::{bos::Bos, eventually_shown, processes::Processes};
use tokio::time::{Instant, sleep};
use upstreams::{MachinePlan, NodePace, Upstreams};

use crate::{
    history::{HistoryMark, is_safe},
    stage::{SteadyWriter, attempted_once, create, furnish, see_through},
};

/// Variables that override the defaults below, and the seed, which otherwise differs between runs.
const NODES_VARIABLE: &str = "REVEILLE_TEST_NODES";
const KILLS_VARIABLE: &str = "REVEILLE_TEST_KILLS";
const BETWEEN_VARIABLE: &str = "REVEILLE_TEST_BETWEEN_KILLS";
const STEP_VARIABLE: &str = "REVEILLE_TEST_STEP";
const SEED_VARIABLE: &str = "REVEILLE_TEST_SEED";

const NODES: u64 = 60;

const KILLS: u64 = 20;

/// Milliseconds between two kills at most; at least it is a fortieth of that.
const BETWEEN: u64 = 800;

/// Milliseconds that a node takes to boot, and to be configured, so that all of it lasts about as long as all the kills.
const STEP: u64 = 2000;

/// Duration of a power change. The power service gives up after little more.
const POWER: Duration = Duration::from_secs(2);

/// A source of numbers that anybody can repeat (SplitMix64).
struct SeededNumbers(u64);

impl SeededNumbers {
    fn next(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

fn nodes() -> u32 {
    number(NODES_VARIABLE, NODES).try_into().unwrap()
}

/// Nodes that are up, with slow steps.
fn plan() -> MachinePlan {
    let step = Duration::from_millis(number(STEP_VARIABLE, STEP));
    let pace =
        NodePace { soft_off: POWER, power_on: POWER, boot: step, configuration: step, ..NodePace::default() };
    MachinePlan { up: true, pace: Some(pace), ..MachinePlan::quick(nodes()) }
}

async fn prepared() -> (Processes, Upstreams) {
    let mut mesh = Processes::prepare();
    let upstreams = mesh.among(plan()).await;
    mesh.begin().await;
    furnish(&mesh.bos, nodes() as usize).await;
    (mesh, upstreams)
}

/// Reboots everything, and gives how long that took.
async fn reboot(bos: &Bos, upstreams: &Upstreams, name: &str) -> Duration {
    let (began, mark) = (Instant::now(), HistoryMark::now(upstreams));
    see_through(bos, "reboot", name).await;
    let took = began.elapsed();
    is_safe(upstreams, &mark, &["Soft-Off", "On"]);
    took
}

/// Kills parts by chance, and starts each again at once.
async fn kill(mesh: &mut Processes, kills: u64, mut random: SeededNumbers) {
    let (parts, most) = (mesh.parts(), number(BETWEEN_VARIABLE, BETWEEN));
    for _ in 0..kills {
        sleep(Duration::from_millis(most / 40 + random.next((most - most / 40).max(1)))).await;
        let part = parts[random.next(parts.len() as u64) as usize];
        mesh.kill_part(part).await;
        mesh.start_part(part);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_killed_at_random_repeat_and_lose_nothing() {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seed = number(SEED_VARIABLE, since_epoch.as_nanos() as u64);
    let kills = number(KILLS_VARIABLE, KILLS);
    eprintln!("{SEED_VARIABLE}={seed}");
    let (mut mesh, upstreams) = prepared().await;
    let bos = mesh.bos.clone();
    let undisturbed = reboot(&bos, &upstreams, "undisturbed").await;

    let writer = SteadyWriter::start(&bos);
    let over = AtomicBool::new(false);
    let killing = async {
        kill(&mut mesh, kills, SeededNumbers(seed)).await;
        over.store(true, Ordering::Relaxed);
    };
    let rebooting = async {
        let mut disturbed = Vec::new();
        while !over.load(Ordering::Relaxed) {
            disturbed.push(reboot(&bos, &upstreams, &format!("disturbed-{}", disturbed.len())).await);
        }
        disturbed
    };
    let ((), disturbed) = tokio::join!(killing, rebooting);
    bos.ready().await;
    writer.stop().await.is_kept(&bos).await;
    attempted_once(&mesh).await;
    eprintln!("{} nodes: {undisturbed:.1?} without kills, {disturbed:.1?} with {kills}", nodes());
}

#[tokio::test(flavor = "multi_thread")]
async fn rolling_restart_is_hidden_from_clients_that_retry() {
    let (mut mesh, upstreams) = prepared().await;
    let bos = mesh.bos.clone();
    let (mark, writer) = (HistoryMark::now(&upstreams), SteadyWriter::start(&bos));
    create(&bos, "reboot", "rolling").await;
    for part in mesh.parts() {
        mesh.stop_part(part).await;
        mesh.start_part(part);
        bos.ready().await;
    }
    see_through(&bos, "reboot", "rolling").await;
    writer.stop().await.is_kept(&bos).await;
    is_safe(&upstreams, &mark, &["Soft-Off", "On"]);
    attempted_once(&mesh).await;
}

/// Kills a part before a session begins, waits until every node of it names that part, and starts it again.
async fn is_named_while_away(part: &'static str, name: &str) {
    let (mut mesh, upstreams) = prepared().await;
    mesh.kill_part(part).await;
    let mark = HistoryMark::now(&upstreams);
    create(&mesh.bos, "reboot", "without-a-part").await;
    let named = format!("waiting for {name} (failing since ");
    eventually_shown(&named, async || {
        let components = mesh.bos.get("/v2/components").await;
        let errors =
            components.as_array().unwrap().iter().map(|one| one["error"].as_str().unwrap_or_default());
        let other = errors.into_iter().find(|error| !error.starts_with(&named)).map(str::to_owned);
        other.map_or(Ok(()), Err)
    })
    .await;
    mesh.start_part(part);
    see_through(&mesh.bos, "reboot", "without-a-part").await;
    is_safe(&upstreams, &mark, &["Soft-Off", "On"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_name_a_power_controller_that_is_away() {
    is_named_while_away("power_controller", "the power controller").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_name_a_config_coordinator_that_is_away() {
    is_named_while_away("config_coordinator", "the config coordinator").await;
}
