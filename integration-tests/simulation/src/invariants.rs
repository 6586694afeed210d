//! The invariants, each as a function of observations. A test shows for each that it can fail.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chassis::kinds::component::action_to_wire;
use domain::{
    boot::{
        component::{Component, InventoryPresence, Phase, status},
        evaluation::RULES_VERSION,
        power::transition::{PowerTransition, TransitionDelivery},
    },
    core::decision::DecisionVersion,
};
use proto::{
    component::Action,
    power::{PowerReading, PowerState},
};
use tokio::time::Instant;

/// Kinds that only the holder of the role writes.
const FENCED: [&str; 4] = ["transition", "power_state", "configuration_state", "boot_preparation"];

/// Violation of an invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the invariant.
    pub invariant: &'static str,
    /// Milliseconds of virtual time since the beginning.
    pub at: u64,
    /// Event that violates it.
    pub what: String,
}

/// Attempt of an action on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// Id of the node.
    pub node: String,
    /// Generation of its component for which the attempt is made.
    pub generation: u64,
    /// Action, by its number on the wire.
    pub action: i32,
    /// Number of the attempt, counted from 1.
    pub attempt: u32,
}

/// Recorded transition of the power controller, as far as it is about one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// Action of the transition.
    pub action: Action,
    /// Progress of the transition.
    pub delivery: Stage,
    /// Generation of the component for which it is made.
    pub generation: u64,
    /// Number of the attempt, counted from 1.
    pub attempt: u32,
}

/// Progress of a transition that is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The upstream was not called.
    Prepared,
    /// The call is under way, or was made without a known answer.
    Asked,
    /// The upstream works on the transition.
    Accepted,
}

impl Stage {
    /// Returns whether the upstream may be called in this state.
    pub fn may_be_asked(self) -> bool {
        self == Self::Asked
    }
}

impl Open {
    /// Returns the part of `transition` for `node`; `None` if it is over.
    pub fn of(transition: &PowerTransition, node: &str) -> Option<Self> {
        let delivery = match transition.delivery {
            TransitionDelivery::Prepared => Stage::Prepared,
            TransitionDelivery::Sent | TransitionDelivery::Unknown => Stage::Asked,
            TransitionDelivery::Accepted => Stage::Accepted,
            TransitionDelivery::Unspecified | TransitionDelivery::Refused | TransitionDelivery::Finished => {
                return None;
            }
        };
        let member = transition.members.iter().find(|member| member.id == node)?;
        let (generation, attempt) = (member.generation, member.attempt);
        Some(Self { action: wire_action(transition), delivery, generation, attempt })
    }

    /// Returns the attempt of the transition.
    pub fn asked(&self, node: &str) -> Asked {
        let (generation, attempt) = (self.generation, self.attempt);
        Asked { node: node.to_owned(), generation, action: self.action as i32, attempt }
    }
}

/// Boot data that the boot script server took for a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// Path of the kernel.
    pub kernel: Arc<str>,
    /// Kernel command line.
    pub params: Arc<str>,
    /// Token of the data.
    pub token: Arc<str>,
}

/// Facts about an action that the machine has taken for a node. Records are those between the earliest time of the
/// decision and now, oldest first.
#[derive(Debug, Clone)]
pub struct Acceptance {
    /// Id of the node.
    pub node: String,
    /// Action that was taken.
    pub action: Action,
    /// Attempt that the action belongs to, if any.
    pub asked: Option<Asked>,
    /// Transitions of the node that are not over.
    pub open: Vec<Open>,
    /// Records of its component.
    pub records: Vec<Arc<Component>>,
    /// Power states at the power controller.
    pub powers: Vec<PowerState>,
    /// Boot data for its next boot.
    pub boot: Vec<Prepared>,
    /// Configurations that were set for it.
    pub configured: Vec<String>,
}

/// Judges an action that the machine takes, and that took the same attempt `times` times.
pub fn of_acceptance(seen: &Acceptance, times: usize) -> [(&'static str, Result<(), String>); 7] {
    [
        ("I0", written_down(seen)),
        ("I1", no_double_act(seen, times)),
        ("I2", no_crossing(seen)),
        ("I3", on_the_right_node(seen)),
        ("I4", in_order(seen)),
        ("I5", fresh(seen)),
        ("I15", known(seen)),
    ]
}

/// I0: the upstream is called only for a recorded attempt.
pub fn written_down(seen: &Acceptance) -> Result<(), String> {
    match seen.asked {
        Some(_) => Ok(()),
        None => {
            Err(format!("{}: {:?} without a record of it; open: {:?}", seen.node, seen.action, seen.open))
        }
    }
}

/// I1: the upstream takes each attempt on each node once.
pub fn no_double_act(seen: &Acceptance, times: usize) -> Result<(), String> {
    match &seen.asked {
        Some(asked) if times > 1 => {
            Err(format!("{}: {:?} was taken {times} times: {asked:?}", seen.node, seen.action))
        }
        Some(_) | None => Ok(()),
    }
}

/// I2: no action is requested while an opposite action is on its way.
pub fn no_crossing(seen: &Acceptance) -> Result<(), String> {
    let opposite = |open: &&Open| (open.action == Action::PoweringOn) != (seen.action == Action::PoweringOn);
    match seen.open.iter().find(opposite) {
        Some(open) => Err(format!("{}: {:?} while {open:?}", seen.node, seen.action)),
        None => Ok(()),
    }
}

/// I2: no action is requested for nodes with an opposite transition at the power service.
pub fn nothing_held(id: &str, action: Action, other: &str, pending: &[String]) -> Result<(), String> {
    match pending.first() {
        Some(node) => Err(format!("{node}: {action:?} as {id} while the opposite {other} is open")),
        None => Ok(()),
    }
}

/// I2: no action is requested for a node while its holder is open, once the holder was found. `known` are the
/// transitions recorded as holders of the node.
pub fn holder_not_known(
    node: &str,
    action: Action,
    holder: &str,
    known: &BTreeSet<String>,
) -> Result<(), String> {
    if known.contains(holder) {
        return Err(format!("{node}: {action:?} while {holder}, which is known to hold it, is open"));
    }
    Ok(())
}

/// Longest time until the power controller has learnt of a transition of another client.
const LEARNS: Duration = Duration::from_secs(45);

/// I2: the power state of a node that is enabled names the transition of another client that has held it for long. `powers`
/// and `components` are those within that time, oldest first.
pub fn holder_is_learnt(
    holder: &str,
    held_for: Duration,
    powers: &[PowerState],
    components: &[Arc<Component>],
) -> Result<(), String> {
    let is_enabled = !components.is_empty() && components.iter().all(|one| one.is_enabled());
    let names = |power: &PowerState| power.error.contains(holder) || power.action_waits_for.contains(holder);
    if held_for <= LEARNS || !is_enabled || powers.iter().any(names) {
        return Ok(());
    }
    Err(format!("{holder} is not learnt for {held_for:?}: {:?}", powers.last()))
}

/// I2: nobody waits for a transition that an operator has abandoned. `abandoned` are the ids of those.
pub fn abandoned_not_awaited<'a>(
    node: &str,
    power: &PowerState,
    mut abandoned: impl Iterator<Item = &'a str>,
) -> Result<(), String> {
    match abandoned.find(|id| power.error.contains(*id)) {
        Some(id) => Err(format!("{node}: '{}', and {id} is abandoned", power.error)),
        None => Ok(()),
    }
}

/// I4: a node is forced off only after it was asked to shut down since it was last switched on.
pub fn asked_before_cut(
    node: &str,
    asked: Option<Instant>,
    switched_on: Option<Instant>,
) -> Result<(), String> {
    if asked.is_some() && asked >= switched_on {
        return Ok(());
    }
    let ago = |at: Option<Instant>| at.map(|at| at.elapsed());
    Err(format!("{node}: forced off, asked {:?} ago, on since {:?}", ago(asked), ago(switched_on)))
}

/// I5: a node is stable only after it has reported the boot that was prepared for it last. `booted` are the tokens of
/// its boots so far.
pub fn stable_by_own_report(component: &Component, booted: &BTreeSet<String>) -> Result<(), String> {
    let desired = component.wish.desired_state.as_ref().and_then(|desired| desired.bss_token.as_deref());
    let Some(token) = desired.filter(|token| !token.is_empty()) else { return Ok(()) };
    let is_stable =
        component.evaluation.status.as_ref().is_some_and(|status| status.phase == Some(Phase::None))
            && status::computed_status(component) == status::ComponentStatus::STABLE;
    if is_stable && !booted.contains(token) {
        return Err(format!("{} is stable before it has booted {token}", component.id.as_str()));
    }
    Ok(())
}

/// I3: no action is taken on a node that is disabled, held, locked, not listed, or does not want it.
pub fn on_the_right_node(seen: &Acceptance) -> Result<(), String> {
    let may_be = |record: &&Arc<Component>| {
        let held = record.evaluation.status.as_ref().and_then(|status| status.status_override.as_deref())
            == Some("on_hold");
        record.is_enabled() && !held && record.may_be_switched()
    };
    match seen.records.iter().find(may_be) {
        Some(_) => Ok(()),
        None => Err(format!("{}: {:?} although it was {:?}", seen.node, seen.action, seen.records.last())),
    }
}

/// I4: a node is switched on only with the boot data and the configuration of this very generation.
pub fn in_order(seen: &Acceptance) -> Result<(), String> {
    if seen.action != Action::PoweringOn {
        return Ok(());
    }
    let Some(asked) = &seen.asked else { return Ok(()) };
    let mut of_generation =
        seen.records.iter().filter(|record| record.generation == asked.generation).peekable();
    if of_generation.peek().is_none() {
        return Err(format!("{}: on for generation {}, which is over", seen.node, asked.generation));
    }
    let prepared = |record: &&Arc<Component>| {
        let Some(desired) = &record.wish.desired_state else { return false };
        let token = desired.bss_token.as_deref().unwrap_or_default();
        let booted = seen.boot.iter().any(|boot| *boot.token == *token);
        let configuration = desired.configuration.as_deref().unwrap_or_default();
        let configured = configuration.is_empty() || seen.configured.iter().any(|name| name == configuration);
        let reported = record.preparation.outcome.as_ref().is_some_and(|preparation| {
            preparation.generation == asked.generation && preparation.trouble.is_none()
        });
        booted && configured && reported
    };
    match of_generation.find(prepared) {
        Some(_) => Ok(()),
        None => Err(format!(
            "{}: on without what belongs to it; record {:?}, boot data {:?}, configurations {:?}",
            seen.node,
            seen.records.last(),
            seen.boot,
            seen.configured
        )),
    }
}

/// I4: a node is switched off only after its configuration was read in the generation of the action. `read` are the
/// generations in which it was; `older` are the nodes and generations that older rules have decided about.
pub fn off_after_configuration(
    seen: &Acceptance,
    read: &BTreeSet<u64>,
    older: &BTreeSet<(String, u64)>,
) -> Result<(), String> {
    let Some(asked) = seen.asked.as_ref().filter(|_| seen.action != Action::PoweringOn) else {
        return Ok(());
    };
    let is_read = read.range(asked.generation..).next().is_some();
    if is_read || older.contains(&(seen.node.clone(), asked.generation)) {
        return Ok(());
    }
    Err(format!(
        "{}: {:?} for generation {} although its configuration was read for {read:?}",
        seen.node, seen.action, asked.generation
    ))
}

/// Returns whether rules older than those of this version decided about the component last.
pub fn is_decided_by_older_rules(component: &Component) -> bool {
    let by = component.evaluation.decided_by;
    by != DecisionVersion::default() && by.rules < RULES_VERSION
}

/// I5: an action rests on a reading of the node in the generation of the action.
pub fn fresh(seen: &Acceptance) -> Result<(), String> {
    let Some(asked) = &seen.asked else { return Ok(()) };
    match seen.powers.iter().find(|power| power.generation >= asked.generation) {
        Some(_) => Ok(()),
        None => Err(format!(
            "{}: {:?} for generation {} upon {:?}",
            seen.node, seen.action, asked.generation, seen.powers
        )),
    }
}

/// I15: no action is taken on a node with an unknown power.
pub fn known(seen: &Acceptance) -> Result<(), String> {
    let known = |power: &&PowerState| matches!(power.reading(), PowerReading::On | PowerReading::Off);
    match seen.powers.iter().find(known) {
        Some(_) => Ok(()),
        None => Err(format!("{}: {:?} upon {:?}", seen.node, seen.action, seen.powers)),
    }
}

/// I1: a transition ends with the one that was taken for it. `took` is the power service's record under its id.
pub fn own_end(
    transition: &PowerTransition,
    took: Option<&(Action, BTreeSet<String>)>,
) -> Result<(), String> {
    let Some((action, nodes)) = took.filter(|_| transition.delivery == TransitionDelivery::Finished) else {
        return Ok(());
    };
    if *action == wire_action(transition) && transition.members.iter().any(|one| nodes.contains(&one.id)) {
        return Ok(());
    }
    let (id, other) = (&transition.id, &transition.upstream_id);
    Err(format!("{id} ended with {other}, which is {action:?} of {nodes:?}"))
}

fn wire_action(transition: &PowerTransition) -> Action {
    transition.action.map_or(Action::Unspecified, action_to_wire)
}

/// I5: an action rests on a reading of the acting replica since its start. `readers` are the starts that have read the
/// power of the node.
pub fn read_by_actor(node: &str, actor: u64, readers: &BTreeSet<u64>) -> Result<(), String> {
    if readers.contains(&actor) {
        return Ok(());
    }
    Err(format!("{node}: start {actor} acts on readings of {readers:?}"))
}

/// I10: a decision of older rules replaces none of newer rules about the same wish.
pub fn newest_rules_decide(before: Option<&Component>, after: &Component) -> Result<(), String> {
    let (by, id) = (after.evaluation.decided_by, after.id.as_str());
    match before.map(|before| before.evaluation.decided_by) {
        Some(before) if by != DecisionVersion::default() && by.rules < before.rules => {
            Err(format!("{id}: decided by {by:?} after {before:?}"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Time for which an inventory has to lack a node before its absence counts, with clocks that are wrong by seconds.
const LACKS: Duration = Duration::from_secs(5);

/// I15: a node counts as absent only after the inventory lacked it for a while. `lacked` are the ages of its answers
/// without the node.
pub fn absence_is_confirmed(component: &Component, lacked: &[Duration]) -> Result<(), String> {
    let is_absent = matches!(component.inventory.presence, InventoryPresence::Absent { .. });
    if is_absent && !lacked.iter().any(|age| *age >= LACKS) {
        return Err(format!(
            "{} is absent, and the inventory lacked it {lacked:?} ago",
            component.id.as_str()
        ));
    }
    Ok(())
}

/// I7: no attempt beyond the retry policy.
pub fn attempts_within_policy(transition: &PowerTransition, policy: u32) -> Result<(), String> {
    match transition.members.iter().find(|member| member.attempt > policy) {
        Some(member) => Err(format!("{}: attempt {} of {policy}", member.id, member.attempt)),
        None => Ok(()),
    }
}

/// Beginning of the power service's text about a failure on one node; the node follows.
const FAILED_ON: &str = "no route to the BMC of ";

/// I17: a failure on one node of an action is shown by that node and by no other.
pub fn own_failures(component: &Component) -> Result<(), String> {
    let id = component.id.as_str();
    let foreign = |text: &&str| text.strip_prefix(FAILED_ON).is_some_and(|node| node != id);
    match [component.error_text(), component.power_error()].into_iter().find(foreign) {
        Some(text) => Err(format!("{id} shows {text:?}")),
        None => Ok(()),
    }
}

/// I8: a commit takes the revisions that follow the one before it, each once.
pub fn revisions_without_gap(last: u64, newest: u64, mut revisions: Vec<u64>) -> Result<(), String> {
    revisions.sort_unstable();
    let follow = (last + 1..=newest).eq(revisions.iter().copied());
    if follow { Ok(()) } else { Err(format!("after {last} came {revisions:?} up to {newest}")) }
}

/// I8: the revisions of a watch increase.
pub fn watch_moves_on(delivered: u64, revision: u64, changed: &[u64]) -> Result<(), String> {
    let backwards = revision < delivered;
    let outside = changed.iter().find(|one| **one > revision || (**one <= delivered));
    match outside {
        _ if backwards => Err(format!("after {delivered} came {revision}")),
        Some(one) => Err(format!("revision {one} between {delivered} and {revision}")),
        None => Ok(()),
    }
}

/// I9: a session that is complete stays so.
pub fn completion_stays(was_complete: bool, is_complete: bool, name: &str) -> Result<(), String> {
    if was_complete && !is_complete { Err(format!("session {name} was complete and is not")) } else { Ok(()) }
}

/// I9: a session completes only when it has no enabled node. `history` has the states of one component within the
/// grace.
pub fn completed_without_nodes(name: &str, id: &str, history: &[Arc<Component>]) -> Result<(), String> {
    let is_kept = |record: &Arc<Component>| record.is_enabled() && *record.wish.assignment == *id;
    match history.last().filter(|_| history.iter().all(is_kept)) {
        Some(record) => Err(format!("session {name} is complete although it has {}", in_short(record))),
        None => Ok(()),
    }
}

/// I10: fenced kinds are written by the holder of the role: the previous holder changes nothing any more. `foreign` are
/// the keys that a replica wrote after another one had acquired the role.
pub fn written_by_who_holds_it(kind: &str, foreign: &[String]) -> Result<(), String> {
    match foreign.first() {
        Some(key) if FENCED.contains(&kind) => Err(format!("{kind} {key} was written without the role")),
        Some(_) | None => Ok(()),
    }
}

/// Facts about a role after replicas and their database were undisturbed for a while.
#[derive(Debug, Clone, Default)]
pub struct RoleScene {
    /// Number of the holder's start.
    pub holder: Option<u64>,
    /// Starts of the replicas that run.
    pub able: BTreeSet<u64>,
    /// Whether the peers that a replica needs before it takes part have answered for a while. A replica that has started
    /// without them waits for them.
    pub has_peers: bool,
}

/// I10: once replicas and their database were undisturbed for a while, the role is held by one of those that can take
/// part.
pub fn role_is_held(scene: &RoleScene) -> Result<(), String> {
    let RoleScene { holder, able, has_peers } = scene;
    match holder {
        Some(holder) if able.contains(holder) => Ok(()),
        Some(_) | None if able.is_empty() || !has_peers => Ok(()),
        Some(_) | None => Err(format!("{holder:?} holds the role, and not one of {able:?}")),
    }
}

/// I14: once the disturbances are over, every node settles and every session completes.
pub fn settled(components: &[Arc<Component>], running: &[String]) -> Result<(), String> {
    let unsettled: Vec<_> =
        components.iter().filter(|component| component.is_enabled()).map(in_short).collect();
    match (unsettled.first(), running.first()) {
        (None, None) => Ok(()),
        _ => Err(format!("sessions {running:?}; nodes {unsettled:?}")),
    }
}

fn in_short(component: &Arc<Component>) -> String {
    let phase = component.evaluation.status.as_ref().and_then(|status| status.phase);
    let word = component
        .evaluation
        .status
        .as_ref()
        .and_then(|status| status.status_override.as_deref())
        .unwrap_or_default();
    let error = component.evaluation.error.as_deref().unwrap_or_default();
    let action = component.power.last_action.as_ref().and_then(|last| last.action);
    format!("{} {phase:?} {word:?} after {action:?}: {error:?}", component.id.as_str())
}

#[cfg(test)]
mod tests;
