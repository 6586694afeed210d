//! Events of power transitions.

use crate::{boot::power::transition::PowerTransition, core::event::EventContent};

/// Returns the event of a change: an operator has abandoned the transition. What else happens to a transition are events
/// of its nodes.
pub fn event(before: Option<&PowerTransition>, after: Option<&PowerTransition>) -> Option<EventContent> {
    let (before, after) = before.zip(after)?;
    (before.abandoned_at.is_none() && after.abandoned_at.is_some()).then(|| abandoned(after))
}

fn abandoned(transition: &PowerTransition) -> EventContent {
    let nodes: Vec<_> = transition.members.iter().map(|member| member.id.as_str()).collect();
    EventContent::of("transition_abandoned")
        .because(transition.action.map_or("", |action| action.word()))
        .with("nodes", nodes.join(","))
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
        let member = |id: &str| TransitionMember { id: id.to_owned(), ..TransitionMember::default() };
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
        let over = PowerTransition { delivery: TransitionDelivery::Finished, ..abandoned.clone() };
        let content = EventContent::of("transition_abandoned")
            .because("powering_on")
            .with("nodes", "x1,x2")
            .with("request", "r")
            .with("upstream_id", "u");
        for (name, before, after, expected) in [
            ("begin", None, Some(&open), None),
            ("abandonment", Some(&open), Some(&abandoned), Some(content)),
            ("end", Some(&abandoned), Some(&over), None),
            ("deletion", Some(&over), None, None),
        ] {
            assert_eq!(event(before, after), expected, "{name}");
        }
    }
}
