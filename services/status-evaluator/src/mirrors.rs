//! Mirrors of the evidence, which queue the components to decide again.

use std::sync::Arc;

use chassis::{
    Context,
    kinds::{
        configuration::ConfigurationStateRecord,
        observation::{self, CONFIG_COORDINATOR, POWER_CONTROLLER},
        options::OptionsRecord,
        power::PowerStateRecord,
    },
    observe::{
        mirror::{Change, Mirror},
        work::WorkQueue,
    },
    store::resource::Resource,
};
use domain::{
    boot::{
        bos::options::Options,
        component::Component,
        evaluation::{Evidence, current_version},
    },
    core::{decision::DecisionVersion, id::ComponentId},
};
use proto::{configuration::ConfigurationState, power::PowerState};

/// Evidence of all decisions. Clones share the mirrors.
#[derive(Clone)]
pub(crate) struct EvidenceMirrors {
    components: Mirror<Component>,
    options: Mirror<OptionsRecord>,
    power_states: Mirror<PowerStateRecord>,
    configuration_states: Mirror<ConfigurationStateRecord>,
}

impl EvidenceMirrors {
    /// Starts the mirrors; every change queues the components that it may affect.
    pub(crate) fn start(context: &Context, queue: &WorkQueue<ComponentId>) -> anyhow::Result<Self> {
        let settings = &context.settings;
        let registry = context.channel(&settings.component_registry.url)?;
        let power = context.channel(&settings.power_controller.url)?;
        let configuration = context.channel(&settings.config_coordinator.url)?;

        let marked = queue.clone();
        let components = Mirror::start(context, registry.clone(), move |changes: &[Change<Component>]| {
            marked.mark(changes.iter().filter_map(|one| one.newest()).map(|component| component.id.clone()));
        });
        let marked = queue.clone();
        let concerned = components.clone();
        let options = Mirror::of_options(context, registry, move || marked.mark(concerned.enabled()));
        let power_states = Mirror::start(context, power, about(&components, queue));
        let configuration_states = Mirror::start(context, configuration, about(&components, queue));
        let marked = queue.clone();
        let concerned = components.clone();
        power_states.on_availability_change(move || marked.mark(concerned.enabled()));
        let marked = queue.clone();
        let concerned = components.clone();
        configuration_states.on_availability_change(move || marked.mark(concerned.enabled()));
        Ok(Self { power_states, configuration_states, components, options })
    }

    /// Waits until every mirror is complete.
    pub(crate) async fn reached(&self) {
        let observations =
            async { tokio::join!(self.power_states.reached(1), self.configuration_states.reached(1)) };
        tokio::join!(self.subjects_reached(), observations);
    }

    /// Waits until components and options are complete. Incomplete observations count as unknown.
    pub(crate) async fn subjects_reached(&self) {
        tokio::join!(self.components.reached(1), self.options.reached(1));
    }

    /// Returns the kind of an incomplete mirror, if there is one.
    pub(crate) fn lacking(&self) -> Option<&'static str> {
        let copies = [
            (Component::KIND, self.components.revision()),
            (OptionsRecord::KIND, self.options.revision()),
            (PowerStateRecord::KIND, self.power_states.revision()),
            (ConfigurationStateRecord::KIND, self.configuration_states.revision()),
        ];
        copies.into_iter().find(|(_, revision)| *revision == 0).map(|(kind, _)| kind)
    }

    /// Returns the ids of enabled components.
    pub(crate) fn enabled(&self) -> impl Iterator<Item = ComponentId> {
        self.components.enabled()
    }

    pub(crate) fn component(&self, id: &str) -> Option<Arc<Component>> {
        self.components.get(id)
    }

    pub(crate) fn power_state(&self, id: &str) -> Option<PowerState> {
        self.power_states.get(id).map(|state| state.message())
    }

    pub(crate) fn configuration_state(&self, id: &str) -> Option<ConfigurationState> {
        self.configuration_states.get(id).map(|state| state.message())
    }

    /// Returns the options in force, or the defaults before the first change.
    pub(crate) fn options(&self) -> Options {
        self.options.in_force()
    }

    /// Returns the version of current decisions.
    pub(crate) fn version(&self) -> DecisionVersion {
        current_version(self.options.get(OptionsRecord::KEY).map_or(0, |record| record.revision))
    }

    /// Returns the evidence about `component` besides its record. An observation counts while its mirror is
    /// connected: its author withdraws an observation that is no longer known, and without a connection a withdrawal
    /// would not arrive. The outage of an author is a trouble of the component.
    pub(crate) fn evidence(&self, component: &Component) -> Evidence {
        let id = component.id.as_str();
        let power = self.power_state(id).filter(|_| self.power_states.is_current());
        let configuration = self.configuration_state(id).filter(|_| self.configuration_states.is_current());
        let evidence = observation::evidence(power.as_ref(), configuration.as_ref(), component);
        let power_outage = self.power_states.outage();
        let configuration_outage = self.configuration_states.outage();
        Evidence {
            power_trouble: observation::outage_trouble(POWER_CONTROLLER, power_outage)
                .or(evidence.power_trouble),
            configuration_trouble: observation::outage_trouble(CONFIG_COORDINATOR, configuration_outage)
                .or(evidence.configuration_trouble),
            ..evidence
        }
    }
}

/// Queues the components of changed observations. An unknown component is queued when it arrives.
fn about<R: Resource>(
    components: &Mirror<Component>,
    queue: &WorkQueue<ComponentId>,
) -> impl Fn(&[Change<R>]) + Send + Sync + 'static {
    let components = components.clone();
    let queue = queue.clone();
    move |changes: &[Change<R>]| {
        let concerned = changes.iter().filter_map(|change| components.get(change.key()));
        queue.mark(concerned.map(|component| component.id.clone()));
    }
}
