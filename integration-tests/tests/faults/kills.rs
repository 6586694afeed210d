//! Processes that are killed, or stopped in order, at any time while nodes are under way.

use std::time::{Duration, SystemTime};

use integration_tests::processes::Processes;
use tokio::time::{Instant, sleep};
use upstreams::{Pace, Plan, Upstreams};

use crate::{
    history::{Mark, is_safe},
    stage::{Writer, attempted_once, create, furnish, see_through},
};

const NODES: u32 = 60;

/// Kills, unless the environment says otherwise.
const KILLS: u64 = 20;
const KILLS_VARIABLE: &str = "REVEILLE_TEST_KILLS";

/// Where the randomness begins, unless the environment says otherwise: anew each time.
const SEED_VARIABLE: &str = "REVEILLE_TEST_SEED";

/// Milliseconds between two kills.
const BETWEEN: std::ops::Range<u64> = 20..800;

/// How long each step of a node takes, so that a boot lasts about as long as all the kills.
const STEP: Duration = Duration::from_secs(2);

/// A source of numbers that anybody can repeat (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// Nodes that are up, each of whose steps takes a while.
fn plan() -> Plan {
    let pace = Pace { soft_off: STEP, power_on: STEP, boot: STEP, configuration: STEP, ..Pace::default() };
    Plan { up: true, pace: Some(pace), ..Plan::generated(NODES) }
}

async fn prepared() -> (Processes, Upstreams) {
    let mut mesh = Processes::prepare();
    let upstreams = mesh.among(plan()).await;
    mesh.begin().await;
    furnish(&mesh.bos, NODES as usize).await;
    (mesh, upstreams)
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_are_killed_at_random_repeat_nothing_and_lose_nothing() {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seed = number(SEED_VARIABLE).unwrap_or(since_epoch.as_nanos() as u64);
    let kills = number(KILLS_VARIABLE).unwrap_or(KILLS);
    eprintln!("{SEED_VARIABLE}={seed}");
    let mut random = Random(seed);
    let (mut mesh, upstreams) = prepared().await;
    let (bos, parts) = (mesh.bos.clone(), mesh.parts());

    let began = Instant::now();
    let mark = Mark::now(&upstreams);
    see_through(&bos, "reboot", "undisturbed").await;
    let undisturbed = began.elapsed();
    is_safe(&upstreams, &mark, &["Soft-Off", "On"]);

    let (began, mark, writer) = (Instant::now(), Mark::now(&upstreams), Writer::start(&bos));
    create(&bos, "reboot", "disturbed").await;
    for _ in 0..kills {
        sleep(Duration::from_millis(BETWEEN.start + random.next(BETWEEN.end - BETWEEN.start))).await;
        let part = parts[random.next(parts.len() as u64) as usize];
        mesh.kill_part(part).await;
        mesh.start_part(part);
    }
    see_through(&bos, "reboot", "disturbed").await;
    let disturbed = began.elapsed();
    bos.ready().await;
    writer.stop().await.is_kept(&bos).await;
    is_safe(&upstreams, &mark, &["Soft-Off", "On"]);
    attempted_once(&mesh).await;
    eprintln!("{undisturbed:.1?} without kills, {disturbed:.1?} with {kills}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_of_every_part_is_no_trouble_for_clients_that_try_again() {
    let (mut mesh, upstreams) = prepared().await;
    let bos = mesh.bos.clone();
    let (mark, writer) = (Mark::now(&upstreams), Writer::start(&bos));
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
