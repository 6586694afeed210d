//! Conversions between the domain and the wire: power states, transitions and reports.

use std::collections::HashSet;

use chassis::{
    kinds::{component, power::delivery_to_wire, trouble},
    mesh::time,
};
use domain::{
    boot::{
        component::{Action, Component},
        power::{
            self, OrphanedWait, Reach, Shown,
            transition::{NO_GENERATION, PowerTransition, TaskOutcome, TransitionDelivery, TransitionMember},
        },
    },
    core::{
        bos_time,
        id::ComponentId,
        time::Timestamp,
        trouble::{Trouble, TroubleKind},
    },
};
use proto::{
    component::ActionReport,
    power::{PowerReading, PowerState, SeenOff},
};
use uuid::Uuid;

use crate::{
    driver::{DriverFailure, NodeReading},
    outcome,
};

/// Returns a reading as it is stored and shown.
pub(crate) fn power_state(
    id: &ComponentId,
    reading: NodeReading,
    asked_for: AskedFor,
    observed_at: Timestamp,
) -> PowerState {
    PowerState {
        id: id.as_str().to_owned(),
        reading: reading.reading.into(),
        error: reading.error,
        observed_at: Some(time::to_wire(observed_at)),
        generation: asked_for.generation,
        revision: 0,
        spent_power_ons: asked_for.spent_power_ons,
        begun_actions: asked_for.begun_actions,
        action_waits_for: String::new(),
        newer_than_report: None,
        seen_off: None,
    }
}

/// State of a component, at the moment of a request to the upstream, that the reading is evidence for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AskedFor {
    pub(crate) generation: u64,
    /// Power-on attempts of the generation that were over.
    pub(crate) spent_power_ons: u32,
    /// Power actions of the generation that had begun.
    pub(crate) begun_actions: u32,
}

impl AskedFor {
    /// Returns the state that a request made now is for.
    pub(crate) fn of(component: &Component) -> Self {
        Self {
            generation: component.generation,
            spent_power_ons: component.spent_power_ons(),
            begun_actions: component.begun_actions(),
        }
    }

    /// Returns the state that a stored reading was requested for.
    pub(crate) fn by(state: &PowerState) -> Self {
        Self {
            generation: state.generation,
            spent_power_ons: state.spent_power_ons,
            begun_actions: state.begun_actions,
        }
    }

    /// Returns whether a reading for `self` is evidence for the attempt that comes next in `other`.
    pub(crate) fn is_same_attempt(self, other: Self) -> bool {
        (self.generation, self.spent_power_ons) == (other.generation, other.spent_power_ons)
    }
}

/// Returns the state as one that was requested from the upstream before the last action began.
pub(crate) fn read_before_action(state: PowerState) -> PowerState {
    PowerState { begun_actions: state.begun_actions.saturating_sub(1), ..state }
}

/// Returns the name of an action in rows and logs.
pub(crate) fn action_name(action: Option<Action>) -> &'static str {
    action.map_or(proto::component::Action::Unspecified, component::action_to_wire).as_str_name()
}

/// Returns the name of a delivery in rows and failpoints.
pub(crate) fn delivery_name(delivery: TransitionDelivery) -> &'static str {
    delivery_to_wire(delivery).as_str_name()
}

/// Returns a new id for a transition.
pub(crate) fn new_id() -> String {
    Uuid::new_v4().to_string()
}

/// Returns a transition that was not sent to the upstream yet.
pub(crate) fn prepared(action: Action, members: Vec<TransitionMember>, now: Timestamp) -> PowerTransition {
    PowerTransition {
        id: new_id(),
        action: Some(action),
        members,
        delivery: TransitionDelivery::Prepared,
        created_at: Some(now),
        ..PowerTransition::default()
    }
}

/// Returns the transitions that continue `transition` after its end: the same attempts on members that other
/// transitions held, made once those have ended, and on members with an unknown holder, made after a pause.
pub(crate) fn continuations(transition: &PowerTransition, now: Timestamp) -> Vec<PowerTransition> {
    let held = transition.members.iter().filter(|member| outcome::is_held(member));
    let (unknown, known): (Vec<_>, Vec<_>) = held.partition(|member| member.held_by.is_empty());
    [known, unknown].into_iter().filter_map(|members| goes_on(transition, &members, now)).collect()
}

/// Returns the transition that makes the attempts on held `members` of `transition`; `None`: there are none.
fn goes_on(
    transition: &PowerTransition,
    members: &[&TransitionMember],
    now: Timestamp,
) -> Option<PowerTransition> {
    let holder = &members.first()?.held_by;
    let anew = |member: &&TransitionMember| TransitionMember {
        outcome: TaskOutcome::Unspecified,
        error: String::new(),
        ..TransitionMember::clone(member)
    };
    let held = PowerTransition {
        id: new_id(),
        action: transition.action,
        members: members.iter().map(anew).collect(),
        delivery: TransitionDelivery::Prepared,
        created_at: Some(now),
        ..PowerTransition::default()
    };
    Some(with_trouble(held, Some(&waiting_for_holder(holder))))
}

/// Returns the wait on the record of a transition; `None`: it does not wait, as far as is recorded.
pub(crate) fn wait(transition: &PowerTransition) -> Option<Trouble> {
    transition.trouble.clone().filter(is_wait)
}

/// Returns whether a trouble is a wait.
pub(crate) fn is_wait(trouble: &Trouble) -> bool {
    trouble.kind() == TroubleKind::Waiting
}

/// Returns the transition as one in doubt: the upstream may have taken it or not.
pub(crate) fn in_doubt(transition: &PowerTransition, error: &str) -> PowerTransition {
    let in_doubt = PowerTransition { delivery: TransitionDelivery::Unknown, ..transition.clone() };
    with_trouble(in_doubt, Trouble::failed(error).as_ref())
}

/// Returns the transition with `trouble` as the only trouble on its record.
pub(crate) fn with_trouble(transition: PowerTransition, trouble: Option<&Trouble>) -> PowerTransition {
    PowerTransition { trouble: trouble.cloned(), ..transition }
}

/// Returns the trouble that members show when the time of their transition is over. `aborts`: the upstream can end
/// transitions, and was asked to.
pub(crate) fn waiting_for_end(transition: &PowerTransition, aborts: bool) -> Trouble {
    let since = transition.withdrawn_at.unwrap_or_default();
    let (id, since) = (&transition.upstream_id, bos_time::text(since));
    let waiting = match aborts {
        true => format!("its withdrawal was requested at {since}Z, and it is not known to have ended"),
        false => {
            format!(
                "its time was over at {since}Z, it cannot be withdrawn, and it is not known to have ended"
            )
        }
    };
    Trouble::no_results_from(format_args!("transition {id} of the power upstream: {waiting}"))
}

/// Returns the trouble that members show when the upstream does not take the withdrawal of their transition.
pub(crate) fn not_withdrawn(transition: &PowerTransition, failure: &DriverFailure) -> Trouble {
    let id = &transition.upstream_id;
    Trouble::no_results_from(format_args!(
        "transition {id} of the power upstream: it is not known to have ended, and it is not withdrawn: {failure}"
    ))
}

/// Returns the trouble of a node whose power is open until a transition of this service has ended. `withdrawn_at`: time at
/// which the transition had outlasted its time; `aborts`: the upstream was asked to end it then; `silence`: the reason why
/// the upstream does not answer about the transition.
pub(crate) fn waiting_for_transition(
    upstream_id: &str,
    withdrawn_at: Option<Timestamp>,
    aborts: bool,
    silence: Option<&str>,
) -> Trouble {
    let overdue = withdrawn_at.map(|since| match aborts {
        true => format!("; its withdrawal was requested at {}Z", bos_time::text(since)),
        false => format!("; its time was over at {}Z", bos_time::text(since)),
    });
    let overdue = overdue.unwrap_or_default();
    let silence = silence.map(|why| format!("; there is no answer about it: {why}")).unwrap_or_default();
    Trouble::waiting_for(format_args!(
        "transition {upstream_id} of the power upstream to end{overdue}{silence}"
    ))
}

/// Returns the trouble of a node whose power is open until a transition has ended that is not on record, and that is open
/// `since` this time.
pub(crate) fn waiting_for_another(upstream_id: &str, since: &str) -> Trouble {
    Trouble::waiting_for(format_args!(
        "transition {upstream_id} of the power upstream to end, which is not on record here and began at {since}"
    ))
}

/// Returns the trouble of a node whose last transition ended `at` this time, without a word about its power.
pub(crate) fn waiting_for_reading(at: Timestamp) -> Trouble {
    let at = bos_time::text(at);
    Trouble::waiting_for(format_args!(
        "a power reading from after {at}Z, when the last transition of the node ended or was given up; \
         the power upstream has one within {} s",
        power::SAMPLED.as_secs()
    ))
}

/// Returns the trouble of a node that another transition of the upstream holds; an empty `holder`: the holder is
/// unknown, or an operator has abandoned it.
pub(crate) fn waiting_for_holder(holder: &str) -> Trouble {
    if holder.is_empty() {
        return Trouble::waiting_for(
            "the end of a reservation of the node at the power upstream; its holder is unknown or was given up",
        );
    }
    Trouble::waiting_for(format_args!("transition {holder} of the power upstream, which holds the node"))
}

/// Returns the time at which the transition was sent; the epoch if it was not sent.
pub(crate) fn sent_at(transition: &PowerTransition) -> Timestamp {
    transition.sent_at.unwrap_or_default()
}

/// Returns the ids of the members, sorted for comparison with those of upstreams.
pub(crate) fn sorted_ids(transition: &PowerTransition) -> Vec<&str> {
    let mut ids: Vec<_> = transition.members.iter().map(|member| member.id.as_str()).collect();
    ids.sort_unstable();
    ids
}

/// Returns the best known time at which the upstream began with an accepted transition.
pub(crate) fn begun_at(transition: &PowerTransition) -> Timestamp {
    let begun = transition.accepted_at.or(transition.sent_at).or(transition.created_at);
    begun.unwrap_or_default()
}

/// Returns the earliest time at which the upstream can have taken a transition. If the time of the call is lost, the
/// call was made after the intent was recorded.
pub(crate) fn earliest(transition: &PowerTransition) -> Timestamp {
    transition.sent_at.or(transition.created_at).unwrap_or_default()
}

/// Returns the components of a transition. Their ids were component ids when the transition was made.
pub(crate) fn component_ids(members: &[TransitionMember]) -> impl Iterator<Item = ComponentId> {
    members.iter().filter_map(|member| ComponentId::parse(&member.id).ok())
}

/// Returns reports about every member of a transition under way. Without a `trouble` the attempt begins or continues.
pub(crate) fn reports<'a>(
    transition: &'a PowerTransition,
    trouble: Option<&'a Trouble>,
) -> impl Iterator<Item = ActionReport> + 'a {
    transition.members.iter().map(move |member| report(transition.action, member, trouble, false))
}

/// Returns a report about a member that has not failed.
pub(crate) fn told(
    transition: &PowerTransition,
    member: &TransitionMember,
    trouble: Option<&Trouble>,
) -> ActionReport {
    report(transition.action, member, trouble, false)
}

/// Returns reports about members whose action began and ended without the effect; `asked` has the members whose node
/// was asked. An attempt that has not failed yet only shows the upstream's words.
pub(crate) fn ended_without_effect<'a>(
    transition: &'a PowerTransition,
    failed: impl Iterator<Item = &'a TransitionMember>,
    asked: &'a HashSet<String>,
) -> impl Iterator<Item = ActionReport> {
    let action = transition.action;
    failed.map(move |member| {
        let reach = if asked.contains(&member.id) { Reach::Node } else { Reach::Bmc };
        let has_failed = action.is_none_or(|action| power::has_failed(action, reach));
        report(transition.action, member, Trouble::failed(&member.error).as_ref(), has_failed)
    })
}

/// Returns whether a failed member of a graceful power-off is not among the members that were `asked` to shut down.
pub(crate) fn is_unasked_shutdown(
    transition: &PowerTransition,
    member: &TransitionMember,
    asked: &HashSet<String>,
) -> bool {
    transition.action == Some(Action::PoweringOffGracefully) && !asked.contains(&member.id)
}

/// Returns reports about members that failed, with the upstream's words.
pub(crate) fn failures<'a>(
    transition: &'a PowerTransition,
    failed: impl IntoIterator<Item = (&'a TransitionMember, &'a str)>,
) -> Vec<ActionReport> {
    let failed = failed.into_iter().map(|(member, error)| (member, Trouble::failed(error)));
    failed.map(|(member, trouble)| report(transition.action, member, trouble.as_ref(), true)).collect()
}

/// Returns the report that an attempt was given up of which nobody knows that it was sent.
pub(crate) fn unsent(transition: &PowerTransition, member: &TransitionMember) -> ActionReport {
    report(transition.action, member, None, true)
}

/// Returns the report that ends a `wait` which the component shows.
pub(crate) fn end_of_wait(component: &Component, wait: OrphanedWait) -> ActionReport {
    let member = TransitionMember {
        id: component.id.as_str().to_owned(),
        generation: component.generation,
        attempt: wait.attempt,
        ..TransitionMember::default()
    };
    report(Some(wait.action), &member, None, wait.has_failed)
}

fn report(
    action: Option<Action>,
    member: &TransitionMember,
    trouble: Option<&Trouble>,
    failed: bool,
) -> ActionReport {
    ActionReport {
        id: member.id.clone(),
        generation: member.generation,
        action: action.map_or(0, |action| component::action_to_wire(action).into()),
        attempt: member.attempt,
        error: trouble::text_to_wire(trouble),
        error_kind: trouble::kind_to_wire(trouble).into(),
        failed,
    }
}

/// Returns the power state that success of an action on a member shows. `None`: the action has nothing to do with
/// power.
pub(crate) fn shown(action: Action, member: &TransitionMember, at: Timestamp) -> Option<PowerState> {
    let reading = match action {
        Action::PoweringOn => PowerReading::On,
        Action::PoweringOffGracefully | Action::PoweringOffForcefully => PowerReading::Off,
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            return None;
        }
    };
    Some(PowerState {
        id: member.id.clone(),
        reading: reading.into(),
        error: String::new(),
        observed_at: Some(time::to_wire(at)),
        generation: member.generation,
        ..PowerState::default()
    })
}

/// Returns the state with the last moment at which the node was seen off: by the state itself, as it says, or before it.
pub(crate) fn with_seen_off(state: PowerState, before: Option<&PowerState>) -> PowerState {
    let PowerState { generation, begun_actions, .. } = state;
    let is_off = state.reading() == PowerReading::Off && generation != NO_GENERATION && begun_actions > 0;
    let now = is_off.then_some(SeenOff { generation, begun_actions });
    let seen = [now, state.seen_off, before.and_then(|before| before.seen_off)].into_iter().flatten();
    let seen_off = seen.max_by_key(|seen| (seen.generation, seen.begun_actions));
    PowerState { seen_off, ..state }
}

/// Returns the state in the form of the rules.
pub(crate) fn as_shown(state: &PowerState) -> Shown {
    Shown { power: rule_reading(state.reading()), at: observed_at(state) }
}

/// Returns the time at which a state was read.
pub(crate) fn observed_at(state: &PowerState) -> Timestamp {
    state.observed_at.map(time::from_wire).unwrap_or_default()
}

/// Returns a reading in the form of the rules.
pub(crate) fn rule_reading(reading: PowerReading) -> power::PowerReading {
    match reading {
        PowerReading::Unspecified => power::PowerReading::Unknown,
        PowerReading::On => power::PowerReading::On,
        PowerReading::Off => power::PowerReading::Off,
        PowerReading::Undefined => power::PowerReading::Undefined,
        PowerReading::Missing => power::PowerReading::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_time_off_stays_until_a_later_one() {
        let state = |reading: PowerReading, generation, begun_actions| PowerState {
            reading: reading.into(),
            generation,
            begun_actions,
            ..PowerState::default()
        };
        let seen = |generation, begun_actions| Some(SeenOff { generation, begun_actions });
        let known = PowerState { seen_off: seen(7, 1), ..state(PowerReading::Off, 7, 1) };
        let rows = [
            ("on", state(PowerReading::On, 7, 1), seen(7, 1)),
            (
                "withdrawn",
                PowerState { reading: PowerReading::Unspecified.into(), ..known.clone() },
                seen(7, 1),
            ),
            ("off after another action", state(PowerReading::Off, 7, 2), seen(7, 2)),
            ("off in the next generation, before any action", state(PowerReading::Off, 8, 0), seen(7, 1)),
            ("off in the next generation", state(PowerReading::Off, 8, 1), seen(8, 1)),
            ("off by an older reading", state(PowerReading::Off, 6, 9), seen(7, 1)),
            ("off for no generation", state(PowerReading::Off, NO_GENERATION, 0), seen(7, 1)),
            (
                "was off, by a result",
                PowerState { seen_off: seen(7, 2), ..state(PowerReading::On, 7, 2) },
                seen(7, 2),
            ),
        ];
        for (name, state, expected) in rows {
            assert_eq!(with_seen_off(state, Some(&known)).seen_off, expected, "{name}");
        }
        assert_eq!(with_seen_off(state(PowerReading::On, 7, 1), None).seen_off, None);
    }

    #[test]
    fn words_of_the_upstream_are_no_wait() {
        let member = TransitionMember { error: "waiting for the BMC".into(), ..Default::default() };
        let transition = PowerTransition {
            action: Some(Action::PoweringOn),
            members: vec![member],
            ..PowerTransition::default()
        };
        let nobody = HashSet::new();
        let told = ended_without_effect(&transition, transition.members.iter(), &nobody)
            .chain(failures(&transition, [(&transition.members[0], "waiting for the BMC")]));
        for report in told {
            assert!(report.failed);
            assert_eq!(
                trouble::from_wire(report.error_kind, report.error),
                Trouble::failed("waiting for the BMC")
            );
        }
        let refused = with_trouble(transition, Trouble::failed("waiting for the BMC").as_ref());
        assert_eq!(refused.trouble.unwrap().kind(), TroubleKind::Failed);
    }
}
