//! A run of one seed: a mesh, its people and its faults, from the start until everything has settled.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chassis::{
    Settings,
    kinds::{options::OptionsRecord, power::PowerStateRecord},
    simulation::narrow_streams,
};
use domain::boot::component::Component;
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::{
    chance, host,
    invariants::{self, RoleScene, Violation},
    replica::{self, Replicas},
    story::People,
    trace,
    trouble::Trouble,
    watcher::Watcher,
    weather::{self, Fault},
    world::{Part, SERVICES, World},
};

/// Most time for everything to settle once the faults are over: three attempts each of switching off, by force too,
/// switching on and booting, and the time of the hardware.
const SETTLES: Duration = Duration::from_secs(20 * 60);

/// Time to settle after a restore, which may remove the options that people set: three boots without a report are
/// awaited by their default, 20 minutes each.
const SETTLES_AFTER_RESTORE: Duration = Duration::from_secs(80 * 60);

/// Outcome of a seed.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Violated invariants.
    pub violations: Vec<Violation>,
    /// Digest of everything that happened.
    pub digest: u64,
    /// Number of events.
    pub steps: u64,
    /// Milliseconds of virtual time.
    pub took: u64,
    /// Number of injections of each fault.
    pub faults: BTreeMap<String, u64>,
}

/// Runs a seed on this thread, which runs no other afterwards in this process. Only the faults `only` are injected, or,
/// where that is empty, those that the seed selects. `shown` prints all events.
///
/// # Errors
/// When the seed cannot be run at all.
pub fn run(seed: u64, only: Vec<Fault>, shown: bool) -> anyhow::Result<Outcome> {
    chance::begin(seed);
    // The call measures the speed of clocks, which takes time where time passes.
    chassis::process::telemetry::record_metrics();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let outcome = runtime.block_on(async {
        chance::start_clock();
        trace::begin(shown);
        host::watch(shown);
        chassis::process::clock::set_clocks(host::clock);
        live(seed, only).await
    });
    chance::end();
    // Waiting tasks have no more effect, and take longer to end than the process.
    std::mem::forget(runtime);
    outcome
}

async fn live(seed: u64, only: Vec<Fault>) -> anyhow::Result<Outcome> {
    let mut chance = SmallRng::seed_from_u64(seed);
    let settings = settings(&mut chance);
    let disturbed = Duration::from_secs(chance.random_range(60..300));
    let nodes: Vec<String> =
        simulator::topology::generate(settings.simulator.nodes).into_iter().map(|node| node.id).collect();
    trace::note(|| {
        format!(
            "seed {seed}: {} nodes, speed {:.3}, faults {:?}, disturbed for {disturbed:?}",
            nodes.len(),
            settings.simulator.speed,
            settings.simulator.faults
        )
    });
    let replicas = replicas(&mut chance, &only);
    trace::note(|| format!("replicas {replicas:?}"));
    narrow_streams(weather::has_stalls(seed, &only));
    let world = World::new(seed, settings, Arc::new(Trouble::new(seed)), &replicas);
    let is_calm = only.iter().all(|fault| matches!(fault, Fault::Foreign | Fault::LateWorkers));
    if is_calm && !only.is_empty() {
        world.journal.expect_learning();
    }
    world.replicas().into_iter().for_each(|replica| world.start(replica));
    let people = People::new(Arc::clone(&world), nodes.clone());
    let components = Watcher::<Component>::new(&world, Part::Registry);
    let options = Watcher::<OptionsRecord>::new(&world, Part::Registry);
    let powers = Watcher::<PowerStateRecord>::new(&world, Part::Power);
    let story = async {
        people.set_up().await?;
        let trouble =
            async { tokio::join!(people.act(), weather::disturb(Arc::clone(&world), seed, nodes, only)).0 };
        // The end of the time is the regular end.
        let _over = tokio::time::timeout(disturbed, trouble).await;
        trace::note(|| "nothing goes wrong any more".to_owned());
        weather::clear(&world);
        settle(&world, &people).await?;
        people.check_promises().await?;
        components.check().await;
        options.check().await;
        powers.check().await;
        anyhow::Ok(())
    };
    tokio::select! {
        biased;
        () = world.journal.bad() => {}
        told = story => told?,
        () = watch_roles(&world) => {}
        Err(error) = components.watch() => return Err(error),
        Err(error) = options.watch() => return Err(error),
        Err(error) = powers.watch() => return Err(error),
        Err(error) = people.follow_sessions() => return Err(error),
    }
    let (digest, steps) = trace::digest();
    Ok(Outcome {
        violations: world.journal.violations(),
        digest,
        steps,
        took: trace::now(),
        faults: world.trouble.counted(),
    })
}

/// Draws the number of replicas: parts share their databases in every other seed.
fn replicas(chance: &mut SmallRng, only: &[Fault]) -> Replicas {
    let (shared, drawn) = (chance.random(), replica::draw(chance));
    let needed = only.iter().any(|fault| fault.needs_replicas());
    (shared && only.is_empty() || needed).then_some(drawn)
}

/// I10: most time until every role is held again.
const TAKEOVER: Duration = Duration::from_secs(10);

/// I10: checks the holders of all roles, without end.
async fn watch_roles(world: &World) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if world.trouble.commits_well_for() > TAKEOVER {
            roles_are_held(world);
        }
    }
}

/// I10: judges that every role is held after long enough without events.
fn roles_are_held(world: &World) {
    for part in SERVICES.into_iter().filter(|_| world.is_shared()) {
        let Some(disk) = world.disk(part).filter(|disk| !disk.is_away()) else { continue };
        if world.at_rest(part) < TAKEOVER {
            continue;
        }
        let able = world.able(part).into_keys().collect();
        let scene = RoleScene { holder: disk.held_by(), able, has_peers: has_peers(world, part) };
        if let Err(what) = invariants::role_is_held(&scene) {
            world.journal.violated("I10", format!("{}: {what}", part.name()));
        }
    }
}

/// Returns whether a replica of `part` that starts finds its peers: all but the registry take part only with its records.
/// The registry needs as long as any part after an event, and a replica that has started needs that time once more. One
/// that asks a paused replica of the registry waits until it notices.
fn has_peers(world: &World, part: Part) -> bool {
    let registry = Part::Registry;
    let is_there =
        world.disk(registry).is_some_and(|disk| !disk.is_away()) && !world.able(registry).is_empty();
    let answers = is_there && !world.has_paused(registry);
    part == registry || answers && world.at_rest(registry) >= TAKEOVER * 2
}

/// Returns every component as it is stored.
fn components(world: &World) -> Vec<Arc<Component>> {
    let look = |kept: &BTreeMap<Arc<str>, Arc<Component>>| kept.values().cloned().collect();
    world.disk(Part::Registry).map(|disk| disk.look(look)).unwrap_or_default()
}

fn settings(chance: &mut SmallRng) -> Settings {
    let mut settings = Settings::default();
    settings.simulator.nodes = chance.random_range(2..=8);
    settings.simulator.seed = chance.random();
    settings.simulator.speed = chance.random_range(0.02..0.15);
    settings.simulator.faults = match chance.random_range(0..3) {
        0 => "stuck-off=1,ignores-graceful-off=1".to_owned(),
        1 => "0".to_owned(),
        _ => "never-reports=1,configuration-fails=1".to_owned(),
    };
    settings.simulator.initial_power = if chance.random() { "on" } else { "off" }.to_owned();
    settings.simulator.results = chance.random();
    settings.inventory.lock_poll_seconds = 10.0;
    settings
}

/// I14: waits until every node has settled and every session is complete.
async fn settle(world: &World, people: &People) -> anyhow::Result<()> {
    let began = tokio::time::Instant::now();
    let most = if world.trouble.has_restored() { SETTLES_AFTER_RESTORE } else { SETTLES };
    loop {
        people.mend().await?;
        // While nodes have not settled, sessions wait for them and need no request.
        let overdue = began.elapsed() > most;
        let settled = match invariants::settled(&components(world), &[]) {
            Err(what) if !overdue => Err(what),
            Ok(()) | Err(_) => invariants::settled(&components(world), &running(people).await),
        };
        match settled {
            Ok(()) => {
                // The end includes the delivery of pending changes to watches.
                tokio::time::sleep(Duration::from_secs(5)).await;
                trace::note(|| format!("settled after {:?}", began.elapsed()));
                return Ok(());
            }
            Err(what) if overdue => {
                world.journal.violated("I14", what);
                return Ok(());
            }
            Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
}

async fn running(people: &People) -> Vec<String> {
    people.running().await.unwrap_or_else(|| vec!["nobody knows".to_owned()])
}
