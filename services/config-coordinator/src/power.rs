//! The power of nodes, as the power controller reports it.

use chassis::{
    Channel, Context,
    kinds::{observation, power::PowerStateRecord},
    observe::{
        mirror::{Change, Mirror},
        work::WorkQueue,
    },
};
use domain::{
    boot::{component::Component, configuration::preparation::PowerEvidence},
    core::id::ComponentId,
};
use proto::power::PowerReading;

/// Mirror of the power states that counts only while it and the mirror of the components are current.
#[derive(Clone)]
pub(crate) struct PowerMirror {
    states: Mirror<PowerStateRecord>,
    components: Mirror<Component>,
}

impl PowerMirror {
    /// Starts the mirror behind `power`. Nodes are added to `queues` when their known power changes: it decides whether
    /// they are prepared, and whether their configuration has to be known first.
    pub(crate) fn start(
        context: &Context,
        power: Channel,
        components: &Mirror<Component>,
        queues: [WorkQueue<ComponentId>; 2],
    ) -> Self {
        let marked = (queues.clone(), components.clone());
        let states = Mirror::start(context, power, move |changes: &[Change<PowerStateRecord>]| {
            let (queues, components) = &marked;
            let told = changes.iter().filter_map(|change| change.current.as_ref());
            let read = told.filter(|state| state.content().reading() != PowerReading::Unspecified);
            let concerned = read.filter_map(|state| components.get(state.id()));
            let ids: Vec<_> = concerned
                .filter(|component| component.is_enabled())
                .map(|component| component.id.clone())
                .collect();
            queues.iter().for_each(|queue| queue.mark(ids.iter().cloned()));
        });
        let (marked, concerned) = (queues.clone(), components.clone());
        states
            .on_availability_change(move || marked.iter().for_each(|queue| queue.mark(concerned.enabled())));
        let concerned = components.clone();
        components
            .on_availability_change(move || queues.iter().for_each(|queue| queue.mark(concerned.enabled())));
        Self { states, components: components.clone() }
    }

    /// Returns the evidence about the power of `component` now.
    pub(crate) fn of(&self, component: &Component) -> PowerEvidence {
        if !self.states.is_current() || !self.components.is_current() {
            return PowerEvidence::UNKNOWN;
        }
        let state = self.states.get(component.id.as_str()).map(|state| state.message());
        observation::power_evidence(component, state.as_ref())
    }
}
