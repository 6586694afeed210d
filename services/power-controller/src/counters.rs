//! Counters of power actions.

use domain::{
    boot::{
        component::Action,
        power::transition::{PowerTransition, TaskOutcome, TransitionDelivery, TransitionMember},
    },
    core::time::Timestamp,
};
use metrics::{Unit, counter, histogram};

use crate::outcome;

/// Power actions that ended.
const ACTIONS: &str = "reveille_power_actions_total";

/// Time from the call of an action to its end.
const SECONDS: &str = "reveille_power_action_duration_seconds";

/// Describes the counters.
pub(crate) fn describe() {
    metrics::describe_counter!(ACTIONS, "Power actions on nodes that ended by action and outcome");
    metrics::describe_histogram!(SECONDS, Unit::Seconds, "Time from the call of a power action to its end");
}

/// Counts the power actions of a transition that has ended and is on record.
pub(crate) fn count(transition: &PowerTransition, now: Timestamp) {
    let action = transition.action.map_or("unknown", Action::word);
    for member in &transition.members {
        let outcome = outcome_word(transition.delivery, member);
        counter!(ACTIONS, "action" => action, "outcome" => outcome).increment(1);
    }
    if let Some(sent) = transition.sent_at {
        let took = now.since(sent).as_secs_f64();
        histogram!(SECONDS, "action" => action).record_many(took, transition.members.len());
    }
}

/// Returns whether the transition has ended, so that it is counted once: nothing is recorded of it afterwards.
pub(crate) fn has_ended(transition: &PowerTransition) -> bool {
    match transition.delivery {
        TransitionDelivery::Refused | TransitionDelivery::Finished => !transition.is_of_another(),
        TransitionDelivery::Unspecified
        | TransitionDelivery::Prepared
        | TransitionDelivery::Sent
        | TransitionDelivery::Accepted
        | TransitionDelivery::Unknown => false,
    }
}

fn outcome_word(delivery: TransitionDelivery, member: &TransitionMember) -> &'static str {
    if outcome::is_held(member) {
        return "held";
    }
    match (delivery, member.outcome) {
        (TransitionDelivery::Refused, _) | (_, TaskOutcome::Refused) => "refused",
        (_, TaskOutcome::Succeeded) => "succeeded",
        (_, TaskOutcome::Failed) => "failed",
        (_, TaskOutcome::Unspecified) => "unknown",
    }
}
