//! The registry: takes reports, and publishes to its watchers.

use std::rc::Rc;

use domain::{
    boot::component::{
        Action, Component, InventoryPresence,
        report::{self, ActionReport, Assignment, PreparationReport},
    },
    core::trouble::Trouble,
};

use crate::{
    mesh::{MESSAGE, Mesh, POLL},
    world::{Event, Service, Transition},
};

impl Mesh {
    pub(crate) fn assign(&mut self, node: usize, assignment: Assignment) {
        let changed =
            report::record(&self.nodes[node].stored, &assignment, self.time()).expect("never stale");
        let assigned = changed.expect("each session comes once");
        self.nodes[node].boots_before = self.nodes[node].hardware.boots;
        self.nodes[node].assigned = Some(assignment);
        self.store(node, assigned);
    }

    pub(crate) fn store(&mut self, node: usize, mut changed: Component) {
        let stored = &mut self.nodes[node].stored;
        changed.revision = stored.revision + 1;
        // The inventory lists every node of this world.
        changed.inventory.presence = InventoryPresence::Listed;
        assert!(changed.generation >= stored.generation);
        for action in [Action::PoweringOn, Action::PoweringOffGracefully, Action::PoweringOffForcefully] {
            assert!(changed.attempts(action) <= changed.retry_limit(&self.options), "{changed:?}");
        }
        *stored = changed.clone();
        let snapshot = Rc::new(changed);
        for service in [Service::Evaluator, Service::Controller, Service::Coordinator] {
            self.after(node, MESSAGE, Event::Seen(service, snapshot.clone()));
        }
    }

    pub(crate) fn begin(&mut self, node: usize, transition: Transition) {
        let stored = &self.nodes[node].stored;
        let statement = action_report(stored, &transition, "");
        let Ok(changed) = report::record(stored, &statement, self.time()) else {
            self.nodes[node].transition = None;
            self.nodes[node].begun.remove(&transition.key());
            return self.after(node, MESSAGE, Event::Decide(Service::Controller));
        };
        assert!(stored.is_enabled() && stored.status_override().is_empty(), "{stored:?}");
        let changed = changed.expect("the controller states the begin of an attempt once");
        self.store(node, changed);
        self.after(node, MESSAGE, Event::Deliver(transition));
    }

    pub(crate) fn preparation_reported(&mut self, node: usize, statement: &PreparationReport) {
        if let Ok(Some(changed)) = report::record(&self.nodes[node].stored, statement, self.time()) {
            self.store(node, changed);
        }
        self.nodes[node].preparing = false;
        // The delay is longer than any message, so that the coordinator sees its own report.
        self.after(node, 100..200, Event::Decide(Service::Coordinator));
    }

    pub(crate) fn seen(&mut self, node: usize, service: Service, component: Rc<Component>) {
        let known = &mut self.nodes[node];
        let mirror = match service {
            Service::Evaluator => &mut known.evaluator,
            Service::Controller => &mut known.controller,
            Service::Coordinator => &mut known.coordinator,
        };
        if component.revision <= mirror.revision {
            return;
        }
        let asked_for = |component: &Component| (component.generation, component.spent_power_ons());
        let renewed = asked_for(&component) != asked_for(mirror);
        *mirror = component;
        match service {
            Service::Evaluator => {}
            Service::Controller => {
                if renewed {
                    self.ask_power(node);
                }
                if !std::mem::replace(&mut self.nodes[node].polling, true) {
                    self.after(node, 0..POLL, Event::Poll);
                }
            }
            Service::Coordinator => {
                if renewed {
                    self.ask_configuration(node);
                }
            }
        }
        self.decide(node, service);
    }

    pub(crate) fn decide(&mut self, node: usize, service: Service) {
        match service {
            Service::Evaluator => self.evaluate(node),
            Service::Controller => self.act(node),
            Service::Coordinator => {
                self.want_preparation(node);
                self.configure(node);
            }
        }
    }
}

pub(crate) fn action_report(component: &Component, transition: &Transition, error: &str) -> ActionReport {
    ActionReport {
        id: component.id.clone(),
        generation: transition.generation,
        action: transition.action,
        attempt: transition.attempt,
        trouble: Trouble::failed(error).map(Into::into),
        failed: !error.is_empty(),
    }
}
