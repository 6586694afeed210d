//! The times of faults. Each seed has its own selection of faults: with all of them at once, no work would get far.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chassis::{simulation::NetworkPath, store::resource::Resource};
use domain::boot::{
    component::Component,
    power::transition::{PowerTransition, TransitionDelivery},
};
use proto::{
    component::{
        DecisionVersion, GetComponentRequest, Phase, ReportStatusesRequest, StatusReport,
        component_service_client::ComponentServiceClient, report_service_client::ReportServiceClient,
    },
    power::{AbandonTransitionRequest, power_service_client::PowerServiceClient},
    simulation::{CreateTransitionRequest, TransitionOperation, fleet_service_client::FleetServiceClient},
};
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use tonic::{Request, metadata::MetadataValue};

use crate::{
    host,
    machine::FOREIGN,
    trace,
    trouble::{CONCERNS, ODDITIES, Oddity, Odds},
    world::{OPERATOR, Part, Replica, SERVICES, World},
};

/// Way to disturb the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// A host dies and comes back.
    Crash,
    /// Commits fail, or are made without an answer.
    Commits,
    /// Hosts die before and after commits.
    DeathAtCommits,
    /// Hosts die when an upstream has carried out their calls.
    DeathAtCalls,
    /// An upstream misbehaves.
    Upstream,
    /// An upstream gives wrong answers about some nodes.
    Oddity,
    /// Boot data of one image are refused.
    Kernel,
    /// Messages between hosts are lost.
    Partition,
    /// Connections break.
    Cut,
    /// The network is slow.
    Slow,
    /// A wall clock is wrong, within the error of clocks of one site.
    Clock,
    /// A wall clock is wrong by hours.
    ClockJump,
    /// A database is unreachable.
    Database,
    /// A database, or the shared one of all parts, is unreachable for a moment and returns without its last commits.
    Failover,
    /// Replicas are added and removed, in order or not.
    Replicas,
    /// A replica is paused for longer than its leases last, and then continues.
    Pause,
    /// A replica is paused right before or right after commits.
    PauseAtCommits,
    /// Stored rows cannot be read any more.
    Rows,
    /// A backup of the registry, of the session manager, of both or of all parts is restored under running services; one of
    /// files is restored while all of them are stopped.
    Restore,
    /// The inventory lists fewer nodes for a while.
    Shrink,
    /// The clients of all watches read nothing for a while, and streams hold little in all of the run.
    Stall,
    /// Another client has nodes switched by the power service.
    Foreign,
    /// The power service takes actions on a node and performs them later.
    LateWorkers,
    /// The power service returns the ids of transitions to the wrong callers.
    SwappedReplies,
    /// Reports of a node are delivered again, even after its next boot, and in another order.
    OldReports,
    /// A status evaluator of older rules decides the opposite.
    OldRules,
}

impl Fault {
    /// Returns whether the fault needs parts that may have several replicas: a database of one process has no standby
    /// either.
    pub fn needs_replicas(self) -> bool {
        matches!(self, Self::Failover | Self::Replicas | Self::Pause | Self::PauseAtCommits)
    }
}

/// Faults from which seeds choose. A clock that is wrong by hours hides many effects of other faults, and is tested
/// alone.
const FAULTS: [Fault; 17] = [
    Fault::Crash,
    Fault::Commits,
    Fault::DeathAtCommits,
    Fault::DeathAtCalls,
    Fault::Upstream,
    Fault::Oddity,
    Fault::Kernel,
    Fault::Partition,
    Fault::Cut,
    Fault::Slow,
    Fault::Clock,
    Fault::Database,
    Fault::Failover,
    Fault::Replicas,
    Fault::Pause,
    Fault::PauseAtCommits,
    Fault::Rows,
];

/// Faults that fewer seeds choose, so that others still get far. They are drawn apart, so that the seeds without them
/// do not change.
const RARE_FAULTS: [Fault; 8] = [
    Fault::Restore,
    Fault::Shrink,
    Fault::Stall,
    Fault::Foreign,
    Fault::LateWorkers,
    Fault::SwappedReplies,
    Fault::OldReports,
    Fault::OldRules,
];

/// Returns the rare faults that the seed chooses.
fn rare(seed: u64) -> Vec<Fault> {
    let mut chance = SmallRng::seed_from_u64(seed ^ 0x7261_7265);
    RARE_FAULTS.into_iter().filter(|_| chance.random_bool(0.15)).collect()
}

/// Returns whether watches are unread at times in a run of this seed with the faults of `only`.
pub fn has_stalls(seed: u64, only: &[Fault]) -> bool {
    if only.is_empty() { rare(seed).contains(&Fault::Stall) } else { only.contains(&Fault::Stall) }
}

/// Disturbs `world`, which has these `nodes`, until this future is dropped: by the faults of `only`, or, where there
/// are none, by those that the seed chooses.
pub async fn disturb(world: Arc<World>, seed: u64, nodes: Vec<String>, only: Vec<Fault>) {
    let mut chosen: Vec<Fault> =
        world.trouble.draw(|chance| FAULTS.into_iter().filter(|_| chance.random_bool(0.4)).collect());
    chosen.extend(rare(seed));
    let chosen = chosen.into_iter().filter(|fault| world.is_shared() || !fault.needs_replicas()).collect();
    let chosen = if only.is_empty() { chosen } else { only };
    trace::note(|| format!("faults of this seed: {chosen:?}"));
    loop {
        let pause = world.trouble.draw(|chance| chance.random_range(500..25_000));
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let Some(fault) = world.trouble.draw(|chance| chosen.choose(chance).copied()) else { continue };
        let lasts = world.trouble.draw(|chance| match chance.random_range(0..5) {
            0 => chance.random_range(100..2_000),
            1..=3 => chance.random_range(2_000..20_000),
            _ => chance.random_range(20_000..60_000),
        });
        start(&world, fault, Duration::from_millis(lasts), &nodes);
    }
}

/// Starts a fault that ends by itself. Its end is meant for this fault and not for another one of the same kind, as far
/// as they can be distinguished; it does no harm if both end early.
fn start(world: &Arc<World>, fault: Fault, lasts: Duration, nodes: &[String]) {
    match fault {
        Fault::Crash => {
            let replica = any_service(world);
            world.trouble.count("crash");
            world.crash(replica, world.trouble.downtime());
        }
        Fault::Commits => odds(world, lasts, Odds { fails: 0.05, unheard: 0.05, ..Odds::default() }),
        Fault::DeathAtCommits => {
            odds(world, lasts, Odds { dies_before: 0.01, dies_after: 0.02, ..Odds::default() })
        }
        Fault::DeathAtCalls => odds(world, lasts, Odds { caller_dies: 0.3, ..Odds::default() }),
        Fault::Upstream => {
            let (concern, mood) = (any(world, &CONCERNS), world.trouble.any_mood());
            trace::note(|| format!("{concern:?} is {mood:?} for {lasts:?}"));
            world.trouble.set_mood(concern, Some(mood));
            later(world, lasts, move |world| world.trouble.set_mood(concern, None));
        }
        Fault::Oddity => {
            let (node, oddity) = (any(world, nodes), any(world, &ODDITIES));
            trace::note(|| format!("{node} is {oddity:?} for {lasts:?}"));
            world.trouble.set_odd(&node, oddity, true);
            later(world, lasts, move |world| world.trouble.set_odd(&node, oddity, false));
        }
        Fault::Kernel => {
            let image = any(world, &["alpha", "beta", "gamma"]);
            trace::note(|| format!("boot data of {image} are refused for {lasts:?}"));
            world.trouble.refuse_kernel(Some(image));
            later(world, lasts, |world| world.trouble.refuse_kernel(None));
        }
        Fault::Partition => partition(world, lasts.min(Duration::from_secs(20))),
        Fault::Cut => {
            let (one, other) = (any_host(world), any_host(world));
            trace::note(|| format!("connections between {one} and {other} break"));
            world.trouble.count("connections cut");
            world.network.cut(&one, &other);
        }
        Fault::Slow => {
            let (one, other) = (any_host(world), any_host(world));
            world.trouble.count("network slow");
            let way = NetworkPath { most: Duration::from_millis(800), ..NetworkPath::default() };
            trace::note(|| format!("slow from {one} to {other} for {lasts:?}"));
            world.network.set_way(&one, &other, way);
            later(world, lasts, move |world| world.network.set_way(&one, &other, NetworkPath::default()));
        }
        Fault::Clock | Fault::ClockJump => {
            let replica = any(world, &world.replicas());
            let by: &[i64] =
                if fault == Fault::Clock { &[2, 1, -1, -2] } else { &[3600, -3600, 30, -30, 7200] };
            let ahead = any(world, by);
            trace::note(|| format!("clock of {} is ahead by {ahead} s for {lasts:?}", replica.name()));
            world.trouble.count(format!("wall clock wrong by {ahead} s"));
            host::set_ahead(replica.host(), ahead);
            later(world, lasts, move |_| host::set_ahead(replica.host(), 0));
        }
        Fault::Failover => {
            let lost = Duration::from_millis(world.trouble.draw(|chance| chance.random_range(1..200)));
            // The parts often share one server.
            if world.trouble.draw(|chance| chance.random_bool(0.5)) {
                world.trouble.count("failover of all");
                SERVICES.into_iter().for_each(|part| fail_over(world, part, lost));
            } else {
                world.trouble.count("failover");
                fail_over(world, any(world, &SERVICES), lost);
            }
        }
        Fault::Database => {
            let part = any(world, &SERVICES);
            trace::note(|| format!("database of {} is away for {lasts:?}", part.name()));
            world.trouble.count("database away");
            set_away(world, part, true);
            later(world, lasts, move |world| set_away(world, part, false));
        }
        Fault::Replicas => come_and_go(world),
        Fault::Pause => {
            let replica = any_service(world);
            world.trouble.count("replica stopped for a while");
            world.pause(replica, world.trouble.pause());
        }
        Fault::Rows => spoil(world),
        Fault::Restore => {
            let lost = Duration::from_millis(world.trouble.draw(|chance| chance.random_range(200..60_000)));
            if !world.is_shared() {
                return restore_files(world, lost);
            }
            let restored: &[Part] = match world.trouble.draw(|chance| chance.random_range(0..4)) {
                0 => &[Part::Registry],
                1 => &[Part::Sessions],
                2 => &[Part::Sessions, Part::Registry],
                _ => &SERVICES,
            };
            world.trouble.count_restore(restored);
            restored.iter().for_each(|part| fail_over(world, *part, lost));
        }
        Fault::Shrink => {
            let node = any(world, nodes);
            trace::note(|| format!("{node} is not listed for {lasts:?}"));
            world.trouble.set_odd(&node, Oddity::Unlisted, true);
            later(world, lasts, move |world| world.trouble.set_odd(&node, Oddity::Unlisted, false));
        }
        Fault::Foreign => {
            world.trouble.set_rivalled(nodes);
            later(world, lasts, |world| world.trouble.set_rivalled(&[]));
            switch(world, nodes);
        }
        Fault::LateWorkers => odd(world, any(world, nodes), Oddity::Late, lasts * 4),
        Fault::OldReports => odd(world, any(world, nodes), Oddity::Echoes, lasts * 4),
        Fault::OldRules => {
            let node = any(world, nodes);
            trace::note(|| format!("older rules decide about {node} for {lasts:?}"));
            world.trouble.count("evaluator of older rules");
            let decide = decide_by_old_rules(Arc::clone(world), node);
            // The timeout is the regular end.
            tokio::spawn(async move { tokio::time::timeout(lasts * 2, decide).await.is_err() });
        }
        Fault::SwappedReplies => {
            world.trouble.set_swaps(true);
            later(world, lasts, |world| world.trouble.set_swaps(false));
        }
        Fault::Stall => {
            trace::note(|| format!("nobody reads the watches for {lasts:?}"));
            world.trouble.count("watches that nobody reads for a while");
            world.trouble.set_unread(true);
            later(world, lasts, |world| world.trouble.set_unread(false));
        }
        Fault::PauseAtCommits => {
            odds(world, lasts, Odds { pauses_before: 0.01, pauses_after: 0.02, ..Odds::default() })
        }
    }
}

fn odd(world: &Arc<World>, node: String, oddity: Oddity, lasts: Duration) {
    trace::note(|| format!("{node} is {oddity:?} for {lasts:?}"));
    world.trouble.count(format!("{oddity:?} node"));
    world.trouble.set_odd(&node, oddity, true);
    later(world, lasts, move |world| world.trouble.set_odd(&node, oddity, false));
}

/// Decides about a node repeatedly as an evaluator of older rules with the opposite policy.
async fn decide_by_old_rules(world: Arc<World>, node: String) {
    let Ok(registry) = world.channel(Part::Registry) else { return };
    let mut components = ComponentServiceClient::new(registry.clone());
    let mut reports = ReportServiceClient::new(registry);
    loop {
        let get = GetComponentRequest { id: node.clone(), ..Default::default() };
        if let Ok(answer) = components.get_component(get).await
            && let Some(component) = answer.into_inner().component
        {
            let phase = component.status.as_ref().map(|status| status.phase());
            let opposite = match phase {
                Some(Phase::PoweringOn | Phase::Configuring) => Phase::PoweringOff,
                _ => Phase::PoweringOn,
            };
            let report = StatusReport {
                id: node.clone(),
                revision: component.revision,
                phase: opposite.into(),
                decided_by: Some(DecisionVersion { rules: 0, options_revision: 1 }),
                ..Default::default()
            };
            let reported = reports.report_statuses(ReportStatusesRequest { reports: vec![report] }).await;
            let is_taken = reported.is_ok_and(|answer| answer.get_ref().stale_ids.is_empty());
            trace::note(|| format!("older rules: {node} is {opposite:?}, taken: {is_taken}"));
            if is_taken && component.decided_by.is_some_and(|by| by.rules > 0) {
                world
                    .journal
                    .violated("I10", format!("{node}: older rules decide after {:?}", component.decided_by));
            }
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

/// Requests an action on a node from the power service as another client.
fn switch(world: &Arc<World>, nodes: &[String]) {
    let operations = [TransitionOperation::On, TransitionOperation::SoftOff, TransitionOperation::ForceOff];
    let (node, operation) = (any(world, nodes), any(world, &operations));
    let abandoned_after = world.trouble.draw(|chance| match chance.random_range(0..3) {
        0 => Some(Duration::from_millis(chance.random_range(500..15_000))),
        _ => None,
    });
    let Ok(channel) = world.channel(Part::Machine) else { return };
    let Ok(controller) = world.channel(Part::Power) else { return };
    let world = Arc::clone(world);
    tokio::spawn(async move {
        let wish = CreateTransitionRequest { operation: operation.into(), ids: vec![node] };
        let mut request = Request::new(wish);
        request.metadata_mut().insert(FOREIGN, MetadataValue::from_static("true"));
        let answer = FleetServiceClient::new(channel).create_transition(request).await?;
        if let Some(pause) = abandoned_after {
            tokio::time::sleep(pause).await;
            let id = answer.into_inner().transition_id;
            trace::note(|| format!("an operator abandons {id}"));
            world.trouble.count("foreign transition abandoned");
            let request_id = format!("abandon-{id}");
            let request = AbandonTransitionRequest { id: id.clone(), request_id, ..Default::default() };
            PowerServiceClient::new(controller).abandon_transition(request).await?;
            world.journal.abandoned(&id);
        }
        Ok::<_, tonic::Status>(())
    });
}

/// Makes the database of a part unreachable for a moment, and removes the commits of the last `lost`.
fn fail_over(world: &Arc<World>, part: Part, lost: Duration) {
    if world.disk(part).is_none() {
        return;
    }
    set_away(world, part, true);
    set_back(world, part, lost);
    let away = Duration::from_millis(world.trouble.draw(|chance| chance.random_range(500..15_000)));
    later(world, away, move |world| set_away(world, part, false));
}

/// Stops every service, and removes the commits of the last `lost` from all databases before they start again.
fn restore_files(world: &Arc<World>, lost: Duration) {
    world.trouble.count_restore(&SERVICES);
    let services = world.replicas().into_iter().filter(|replica| SERVICES.contains(&replica.part));
    services.for_each(|replica| world.crash(replica, world.trouble.downtime()));
    SERVICES.into_iter().for_each(|part| set_back(world, part, lost));
}

/// Removes the commits of the last `lost` from the database of a part.
fn set_back(world: &Arc<World>, part: Part, lost: Duration) {
    let Some(disk) = world.disk(part) else { return };
    trace::note(|| format!("database of {} loses the last {lost:?}", part.name()));
    disk.set_back(lost);
    world.journal.set_back(part);
    if part == Part::Registry {
        disk.look(|kept: &BTreeMap<Arc<str>, Arc<Component>>| world.journal.restored(kept));
    }
    if part == Part::Power {
        world.journal.forget_lost(&disk.keys(PowerTransition::KIND).into_iter().collect());
    }
}

/// Makes a row unreadable, and restarts a reader: a replica with the row in memory would not notice.
fn spoil(world: &Arc<World>) {
    let part = any(world, &SERVICES);
    let Some(disk) = world.disk(part) else { return };
    let Some(kind) = world.trouble.draw(|chance| disk.kinds().choose(chance).copied()) else { return };
    // An open action stays readable: without it the fate of its nodes cannot be known.
    let is_open = |key: &str| {
        disk.look(|kept: &BTreeMap<_, Arc<PowerTransition>>| {
            kind == PowerTransition::KIND && kept.get(key).is_some_and(|transition| is_open(transition))
        })
    };
    let keys: Vec<_> = disk.keys(kind).into_iter().filter(|key| !is_open(key)).collect();
    let Some(key) = world.trouble.draw(|chance| keys.choose(chance).cloned()) else { return };
    trace::note(|| format!("the row of {kind} {key:?} is spoilt"));
    world.trouble.count(format!("row of {kind} spoilt"));
    if kind == PowerTransition::KIND {
        let id = |kept: &BTreeMap<Arc<str>, Arc<PowerTransition>>| {
            kept.get(&*key).map(|transition| transition.upstream_id.clone())
        };
        disk.look(id).into_iter().for_each(|id| world.journal.forget_abandonment(&id));
    }
    if part == Part::Power {
        world.journal.forget_shutdowns();
    }
    disk.spoil(kind, key);
    let of_part = world.replicas().into_iter().filter(|replica| replica.part == part);
    world.crash(any(world, &of_part.collect::<Vec<_>>()), world.trouble.downtime());
}

fn is_open(transition: &PowerTransition) -> bool {
    !matches!(transition.delivery, TransitionDelivery::Refused | TransitionDelivery::Finished)
}

/// Adds or removes one replica of a part.
fn come_and_go(world: &World) {
    let replica = any_service(world);
    let what = match world.trouble.draw(|chance| chance.random_range(0..4)) {
        0 | 1 => world.add(replica.part).map(|_| "replica added"),
        2 => world.remove(replica, true).then_some("replica stopped in order"),
        _ => world.remove(replica, false).then_some("replica killed for good"),
    };
    if let Some(what) = what {
        world.trouble.count(what);
    }
}

fn set_away(world: &World, part: Part, away: bool) {
    if let Some(disk) = world.disk(part) {
        disk.set_away(away);
        world.stir(part);
    }
}

fn any_service(world: &World) -> Replica {
    let replicas = world.replicas().into_iter().filter(|replica| replica.part != Part::Machine);
    any(world, &replicas.collect::<Vec<_>>())
}

fn any_host(world: &World) -> String {
    any(world, &world.replicas()).name()
}

fn any<T: Clone>(world: &World, all: &[T]) -> T {
    let chosen = world.trouble.draw(|chance| all.choose(chance).cloned());
    chosen.unwrap_or_else(|| all[0].clone())
}

fn odds(world: &Arc<World>, lasts: Duration, odds: Odds) {
    trace::note(|| format!("{odds:?} for {lasts:?}"));
    world.trouble.set_odds(odds);
    later(world, lasts, |world| world.trouble.set_odds(Odds::default()));
}

/// Cuts one host off, from all others or from one, in one direction or in both.
fn partition(world: &Arc<World>, lasts: Duration) {
    let one = any_host(world);
    let hosts = world.replicas().into_iter().map(Replica::name).chain([OPERATOR.to_owned()]);
    let mut others: Vec<String> = hosts.filter(|name| *name != one).collect();
    if world.trouble.draw(|chance| chance.random_bool(0.6)) {
        others = vec![any(world, &others)];
    }
    let (there, back) = world.trouble.draw(|chance| match chance.random_range(0..3) {
        0 => (true, false),
        1 => (false, true),
        _ => (true, true),
    });
    trace::note(|| format!("partition of {one} from {others:?}, there {there}, back {back}, for {lasts:?}"));
    world.trouble.count(if there && back { "partition" } else { "partition of one direction" });
    let set = move |world: &World, blocked: bool| {
        // Whoever starts meanwhile may wait for the records of the registry.
        world.stir(Part::Registry);
        let way = NetworkPath { blocked, ..NetworkPath::default() };
        for other in &others {
            if there {
                world.network.set_way(&one, other, way);
            }
            if back {
                world.network.set_way(other, &one, way);
            }
        }
    };
    set(world, true);
    later(world, lasts, move |world| set(world, false));
}

fn later(world: &World, after: Duration, end: impl FnOnce(&World) + Send + 'static) {
    world.later(after, end);
}

/// Ends all faults, and starts all replicas that do not run.
pub fn clear(world: &World) {
    world.trouble.end();
    world.network.heal();
    for part in SERVICES {
        set_away(world, part, false);
    }
    for replica in world.replicas() {
        host::set_ahead(replica.host(), 0);
        world.start(replica);
    }
}
