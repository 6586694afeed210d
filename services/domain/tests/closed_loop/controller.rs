//! The power controller and its upstream.

use domain::{
    boot::{
        component::{Action, report},
        power::{self, PowerDecision, PowerObservation, PowerReading},
    },
    core::time::Timestamp,
};
use rand::Rng;

use crate::{
    fault::Fault,
    mesh::{DEADLINE, MESSAGE, Mesh, POLL},
    registry::action_report,
    world::{Event, Service, Transition},
};

impl Mesh {
    pub(crate) fn act(&mut self, node: usize) {
        let known = &mut self.nodes[node];
        let component = &known.controller;
        let power = known.power.map_or(PowerObservation::Unknown, |(reading, error, generation, ..)| {
            PowerObservation::of(reading, error, generation, component.generation)
        });
        match power::decide(component, &power, &self.options, Timestamp(self.now)) {
            PowerDecision::Act { action, attempt } => {
                let (generation, rests_on) = (component.generation, known.power);
                let transition = Transition { generation, action, attempt, rests_on };
                if known.transition.is_none() && known.begun.insert(transition.key()) {
                    known.transition = Some(transition.clone());
                    self.after(node, MESSAGE, Event::ActionReported(transition));
                }
            }
            PowerDecision::Wait { until } => self.at(node, until.0, Event::Decide(Service::Controller)),
            PowerDecision::Nothing { .. } => {}
        }
    }

    pub(crate) fn deliver(&mut self, node: usize, transition: Transition) {
        let hardware = &mut self.nodes[node].hardware;
        if hardware.refuses() {
            return self.refused(node, transition);
        }
        if hardware.fault == Fault::RequestLost && self.rng.random_bool(0.5) {
            // The controller searches, finds nothing and sends again: the same attempt, unless it is outdated.
            let resend = transition.generation == self.nodes[node].controller.generation;
            let next = if resend { Event::Deliver(transition) } else { Event::Resolved(transition) };
            return self.after(node, 20_000..40_000, next);
        }
        self.take(node, transition);
    }

    pub(crate) fn refused(&mut self, node: usize, transition: Transition) {
        let stored = &self.nodes[node].stored;
        let statement = action_report(stored, &transition, "refused by the upstream");
        if let Ok(Some(changed)) = report::record(stored, &statement, self.time()) {
            self.store(node, changed);
        }
        self.after(node, MESSAGE, Event::Resolved(transition));
    }

    /// Lets the power upstream take an action.
    pub(crate) fn take(&mut self, node: usize, transition: Transition) {
        check_caution(&transition);
        let known = &mut self.nodes[node];
        assert!(known.taken.insert(transition.key()), "{transition:?} was taken before");
        assert_eq!(known.hardware.changing, None, "{transition:?} crosses another action");
        if transition.action == Action::PoweringOn {
            let prepared = known.prepared.contains(&(transition.generation, transition.attempt));
            assert!(prepared, "{transition:?} was not prepared");
        }
        let takes = match transition.action {
            Action::PoweringOn => 2_000..20_000,
            Action::PoweringOffGracefully => 5_000..55_000,
            _ => 1_000..3_000,
        };
        let mut known_after = DEADLINE;
        if known.hardware.obeys(transition.action) {
            known.hardware.changing = Some(transition.action);
            let cycle = known.hardware.cycle;
            known_after = self.rng.random_range(takes);
            self.at(node, self.now + known_after, Event::PowerChanges { cycle });
        }
        if self.nodes[node].hardware.fault == Fault::AnswerLost {
            known_after = DEADLINE;
        }
        self.at(node, self.now + known_after, Event::Resolved(transition));
    }

    pub(crate) fn resolved(&mut self, node: usize, transition: &Transition) {
        let current = self.nodes[node].transition.take();
        assert_eq!(current.as_ref().map(Transition::key), Some(transition.key()));
        self.ask_power(node);
        self.act(node);
    }

    pub(crate) fn poll(&mut self, node: usize) {
        let known = &mut self.nodes[node];
        known.polling = known.controller.is_enabled() || known.coordinator.is_enabled();
        if known.polling {
            if self.rng.random_bool(0.02) {
                // The controller restarts: its earlier reading is out of date for every service.
                let known = &mut self.nodes[node];
                (known.power, known.power_seen) = (None, None);
            }
            self.ask_power(node);
            self.ask_configuration(node);
            self.at(node, self.now + POLL, Event::Poll);
        }
    }

    /// Requests the power. No reading for a generation is taken while an action of an older one may still have its
    /// effect.
    pub(crate) fn ask_power(&mut self, node: usize) {
        let known = &self.nodes[node];
        let generation = known.controller.generation;
        if known.transition.as_ref().is_some_and(|transition| transition.generation != generation) {
            return;
        }
        let (reading, error) = known.hardware.power(self.now);
        let answer = (
            reading,
            error,
            generation,
            known.controller.spent_power_ons(),
            known.controller.begun_actions(),
        );
        self.after(node, 5..500, Event::PowerAnswer { asked_at: self.now, answer });
    }
}

/// Checks that an action is taken only after its opposite was read for its generation. The check uses the upstream's
/// answer, not the domain's view of it.
fn check_caution(transition: &Transition) {
    let opposite = match transition.action {
        Action::PoweringOn => PowerReading::Off,
        _ => PowerReading::On,
    };
    let read = transition.rests_on.map(|(reading, error, generation, ..)| (reading, error, generation));
    assert_eq!(read, Some((opposite, "", transition.generation)), "{transition:?}");
}
