//! Copies of the evidence, which say what has to be decided again.

use std::sync::Arc;

use chassis::{
    Context,
    kinds::OptionsRecord,
    mirror::{Change, Mirror},
    resource::Resource,
    work::WorkQueue,
};
use domain::{
    component::Component,
    evaluation::{DecisionVersion, Evidence},
    id::ComponentId,
    options::Options,
};
use proto::{configuration::ConfigurationState, power::PowerState};

use crate::convert;

/// Everything that a decision looks at. Clones share the copies.
#[derive(Clone)]
pub(crate) struct Mirrors {
    components: Mirror<Component>,
    options: Mirror<OptionsRecord>,
    power_states: Mirror<PowerState>,
    configuration_states: Mirror<ConfigurationState>,
}

impl Mirrors {
    /// Starts copying; every change marks in `queue` the components that it may concern.
    pub(crate) fn start(context: &Context, queue: &WorkQueue<ComponentId>) -> anyhow::Result<Self> {
        let settings = &context.settings;
        let registry = chassis::channel(&settings.component_registry.url)?;
        let power = chassis::channel(&settings.power_controller.url)?;
        let configuration = chassis::channel(&settings.config_coordinator.url)?;

        let marked = queue.clone();
        let components = Mirror::start(context, registry.clone(), move |changes: &[Change<Component>]| {
            marked.mark(changes.iter().filter_map(|one| one.newest()).map(|component| component.id.clone()));
        });
        let (marked, concerned) = (queue.clone(), components.clone());
        let options = Mirror::of_options(context, registry, move || marked.mark(concerned.enabled()));
        let power_states = Mirror::start(context, power, about(&components, queue));
        let configuration_states = Mirror::start(context, configuration, about(&components, queue));
        let (marked, concerned) = (queue.clone(), components.clone());
        power_states.on_current(move || marked.mark(concerned.enabled()));
        let (marked, concerned) = (queue.clone(), components.clone());
        configuration_states.on_current(move || marked.mark(concerned.enabled()));
        Ok(Self { power_states, configuration_states, components, options })
    }

    /// Waits until every copy is complete.
    pub(crate) async fn reached(&self) {
        tokio::join!(
            self.components.reached(1),
            self.options.reached(1),
            self.power_states.reached(1),
            self.configuration_states.reached(1),
        );
    }

    /// Which copy is not complete yet, if any.
    pub(crate) fn lacking(&self) -> Option<&'static str> {
        let copies = [
            (Component::KIND, self.components.revision()),
            (OptionsRecord::KIND, self.options.revision()),
            (PowerState::KIND, self.power_states.revision()),
            (ConfigurationState::KIND, self.configuration_states.revision()),
        ];
        copies.into_iter().find(|(_, revision)| *revision == 0).map(|(kind, _)| kind)
    }

    /// Ids of the components that are enabled.
    pub(crate) fn enabled(&self) -> impl Iterator<Item = ComponentId> {
        self.components.enabled()
    }

    pub(crate) fn component(&self, id: &str) -> Option<Arc<Component>> {
        self.components.get(id)
    }

    pub(crate) fn power_state(&self, id: &str) -> Option<Arc<PowerState>> {
        self.power_states.get(id)
    }

    pub(crate) fn configuration_state(&self, id: &str) -> Option<Arc<ConfigurationState>> {
        self.configuration_states.get(id)
    }

    /// The options in force; the defaults until somebody changes one.
    pub(crate) fn options(&self) -> Options {
        self.options.in_force()
    }

    /// Version of the decisions that are made now.
    pub(crate) fn version(&self) -> DecisionVersion {
        DecisionVersion::current(self.options.get(OptionsRecord::KEY).map_or(0, |record| record.revision))
    }

    /// Evidence about `component` besides its record. A reading counts as long as its author is heard, who withdraws
    /// it when it is not known any more; without the author nobody would.
    pub(crate) fn evidence(&self, component: &Component) -> Evidence {
        let id = component.id.as_str();
        let power = self.power_state(id).filter(|_| self.power_states.is_current());
        let configuration = self.configuration_state(id).filter(|_| self.configuration_states.is_current());
        convert::evidence(power.as_deref(), configuration.as_deref(), component.generation)
    }
}

/// Marks the components that observations are about. One that is not known yet is marked when it comes.
fn about<R: Resource>(
    components: &Mirror<Component>,
    queue: &WorkQueue<ComponentId>,
) -> impl Fn(&[Change<R>]) + Send + Sync + 'static {
    let (components, queue) = (components.clone(), queue.clone());
    move |changes: &[Change<R>]| {
        let concerned = changes.iter().filter_map(|change| components.get(change.key()));
        queue.mark(concerned.map(|component| component.id.clone()));
    }
}
