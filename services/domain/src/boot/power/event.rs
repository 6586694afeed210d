//! Events of power transitions.

use crate::{boot::power::transition::PowerTransition, core::event::EventContent};

/// Words for the kinds of events of a transition.
pub const KINDS: [&str; 1] = [ABANDONED];

/// Detail with the ids of the nodes of a transition, separated by commas.
pub const NODES: &str = "nodes";

const ABANDONED: &str = "transition_abandoned";

/// Returns the event of a change: an operator has abandoned the transition. What else happens to a transition are events
/// of its nodes. A transition of another client is on record only from then on.
pub fn event(before: Option<&PowerTransition>, after: Option<&PowerTransition>) -> Option<EventContent> {
    let after = after.filter(|after| after.abandoned_at.is_some())?;
    let is_new = before.map_or(after.is_of_another(), |before| before.abandoned_at.is_none());
    is_new.then(|| abandoned(after))
}

fn abandoned(transition: &PowerTransition) -> EventContent {
    let nodes: Vec<_> = transition.members.iter().map(|member| member.id.as_str()).collect();
    EventContent::of(ABANDONED)
        .because(transition.action.map_or("", |action| action.word()))
        .with(NODES, nodes.join(","))
        .with("request", transition.abandoned_by.as_str())
        .with("upstream_id", transition.upstream_id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        boot::{
            component::Action,
            power::transition::{TransitionDelivery, TransitionMember},
        },
        core::time::Timestamp,
    };

    #[test]
    fn only_an_abandonment_is_an_event() {
        let member =
            |id: &str| TransitionMember { id: id.to_owned(), generation: 1, ..TransitionMember::default() };
        let open = PowerTransition {
            id: "t".to_owned(),
            action: Some(Action::PoweringOn),
            members: vec![member("x1"), member("x2")],
            upstream_id: "u".to_owned(),
            ..PowerTransition::default()
        };
        let abandoned = PowerTransition {
            abandoned_at: Some(Timestamp(7)),
            abandoned_by: "r".to_owned(),
            ..open.clone()
        };
        let part = PowerTransition { id: "t2".to_owned(), ..abandoned.clone() };
        let nodes = vec!["x1".to_owned(), "x2".to_owned()];
        let of_another = PowerTransition {
            abandoned_at: Some(Timestamp(7)),
            abandoned_by: "r".to_owned(),
            ..PowerTransition::of_another(Some(Action::PoweringOn), "u", nodes)
        };
        let over = PowerTransition { delivery: TransitionDelivery::Finished, ..abandoned.clone() };
        let content = EventContent::of("transition_abandoned")
            .because("powering_on")
            .with("nodes", "x1,x2")
            .with("request", "r")
            .with("upstream_id", "u");
        for (name, before, after, expected) in [
            ("begin", None, Some(&open), None),
            ("abandonment", Some(&open), Some(&abandoned), Some(content.clone())),
            ("end", Some(&abandoned), Some(&over), None),
            ("part of an abandoned one", None, Some(&part), None),
            ("abandonment of another client's", None, Some(&of_another), Some(content.clone())),
            ("deletion", Some(&over), None, None),
        ] {
            assert_eq!(event(before, after), expected, "{name}");
        }
    }
}
