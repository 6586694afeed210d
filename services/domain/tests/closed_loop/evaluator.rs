//! The status evaluator: decides where nodes stand.

use domain::boot::{
    component::{Phase, status::ComponentStatus},
    configuration::ConfigurationObservation,
    evaluation::{Decision, Evidence, current_version, evaluate},
    power::{PowerObservation, PowerReading},
};

use crate::{
    mesh::{MESSAGE, Mesh},
    world::{Event, Node, Service},
};

impl Mesh {
    pub(crate) fn evaluate(&mut self, node: usize) {
        let known = &self.nodes[node];
        let component = known.evaluator.clone();
        let power = known.power_seen.map_or(PowerObservation::Unknown, |(reading, error, generation, ..)| {
            PowerObservation::of(reading, error, generation, component.generation)
        });
        let configuration = match known.configuration_seen.clone() {
            Some((reading, generation)) => reading.of(generation, component.generation),
            None => ConfigurationObservation::Unknown,
        };
        let begun_actions = known.power_seen.map_or(0, |(.., begun)| begun);
        let evidence = Evidence {
            power,
            begun_actions,
            configuration,
            power_trouble: None,
            configuration_trouble: None,
        };
        let decision = evaluate(&component, &evidence, &self.options, self.time());
        check_caution(known, &decision);
        if let Some(until) = decision.until {
            assert!(until > self.time(), "a wait ends in the future");
            self.at(node, until.0, Event::Decide(Service::Evaluator));
        }
        if let Some(report) = decision.report(&component, current_version(1)) {
            self.after(node, MESSAGE, Event::StatusReported(report));
        }
    }
}

/// Checks that without a usable reading of its generation a component stays where it is. The check uses the messages of
/// the watches, not the domain's view of them.
fn check_caution(node: &Node, decision: &Decision) {
    let component = &node.evaluator;
    let power_known = node.power_seen.is_some_and(|(reading, error, generation, ..)| {
        let level = matches!(reading, PowerReading::On | PowerReading::Off) && error.is_empty();
        level && generation == component.generation
    });
    let power_known = power_known || component.has_reported_attempt();
    let (configuration_known, left_out) = match &node.configuration_seen {
        Some((reading, generation)) if *generation == component.generation => {
            (*reading != ConfigurationObservation::Unknown, *reading == ConfigurationObservation::Missing)
        }
        _ => (false, false),
    };
    if !power_known || left_out {
        assert_eq!(decision.phase, component.phase(), "{component:?} {decision:?}");
        assert!(!decision.settled && !decision.action_failed, "{component:?} {decision:?}");
    }
    if !configuration_known && decision.phase == Phase::PoweringOff {
        assert_eq!(component.phase(), Phase::PoweringOff, "{component:?} {decision:?}");
    }
    if !configuration_known && decision.settled {
        let about_power =
            !component.kernel_wanted() || decision.status_override == ComponentStatus::Failed.word();
        assert!(about_power, "{component:?} {decision:?}");
    }
}
