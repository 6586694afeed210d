//! Claims of nodes on the hosts that they are: a claim lasts until nothing more is done to the node.

use super::{Course, Outlook, PowerObservation, outlook as outlook_of_action};
use crate::{
    boot::{bos::options::Options, component::Component},
    core::time::Timestamp,
};

/// Judges whether anything is still done to a `node` that has claimed its host; `None`: there is no such component.
/// `is_switched`: a transition of the node is under way. `power` is an observation from after the last action.
pub fn outlook(
    node: Option<&Component>,
    is_switched: bool,
    power: &PowerObservation,
    options: &Options,
    now: Timestamp,
) -> Outlook {
    if is_switched || node.is_some_and(Component::is_enabled) {
        return Outlook::Pending { until: None };
    }
    let last = node.and_then(|node| Some((node.last_action()?, node.last_action_at()?)));
    match last {
        Some((action, begun)) => outlook_of_action(action, Course::Taken(begun), power, options, now),
        None => Outlook::Settled,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::boot::component::{Action, ComponentPower, ComponentWish, LastAction, view::bare};

    const NOW: Timestamp = Timestamp(1_000_000_000);

    fn node(enabled: bool, last: Option<(Action, i64)>) -> Component {
        let last_action = last.map(|(action, age)| LastAction {
            action: Some(action),
            failed: Some(false),
            last_updated: Some(Timestamp(NOW.0 - age)),
        });
        Component {
            wish: ComponentWish { enabled: Some(enabled), ..ComponentWish::default() }.into(),
            power: ComponentPower { last_action, ..ComponentPower::default() }.into(),
            ..bare()
        }
    }

    #[test]
    fn claim_lasts_while_something_is_done_to_the_node() {
        let (on, off) = (Action::PoweringOn, Action::PoweringOffForcefully);
        let idle = |last| Some(node(false, last));
        let (unknown, is_on) = (PowerObservation::Unknown, PowerObservation::On);
        let rows = [
            ("gone", None, false, &unknown),
            ("gone, switched", None, true, &unknown),
            ("enabled", Some(node(true, None)), false, &unknown),
            ("never switched", idle(None), false, &unknown),
            ("switched", idle(None), true, &is_on),
            ("set up", idle(Some((Action::SessionSetup, 0))), false, &unknown),
            ("on, not seen", idle(Some((on, 0))), false, &unknown),
            ("on, seen", idle(Some((on, 0))), false, &is_on),
            ("off, not yet", idle(Some((off, 0))), false, &is_on),
            ("on, long ago", idle(Some((on, 400_000_000))), false, &unknown),
        ];
        let rows = rows.map(|(name, node, is_switched, power)| {
            let outlook = match outlook(node.as_ref(), is_switched, power, &Options::default(), NOW) {
                Outlook::Settled => "over".to_owned(),
                Outlook::Pending { until: None } => "lasts".to_owned(),
                Outlook::Pending { until: Some(until) } => format!("lasts for {:?}", until.since(NOW)),
            };
            format!("{name}: {outlook}\n")
        });
        expect![[r#"
            gone: over
            gone, switched: lasts
            enabled: lasts
            never switched: over
            switched: lasts
            set up: over
            on, not seen: lasts for 120s
            on, seen: over
            off, not yet: lasts for 300s
            on, long ago: over
        "#]]
        .assert_eq(&rows.concat());
    }
}
