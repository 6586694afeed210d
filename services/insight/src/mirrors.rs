//! Mirrors of the evidence about nodes.

use std::sync::Arc;

use crate::{convert, traces::NodeTraces};
use chassis::{
    Context,
    kinds::{
        configuration::ConfigurationStateRecord, observation, options::OptionsRecord, power::PowerStateRecord,
    },
    observe::mirror::{Change, Mirror},
    store::resource::Resource,
};
use domain::{
    boot::{
        component::Component,
        evaluation::Evidence,
        explanation::{
            ComponentEvidence, ConfigurationSight, Explanation, PowerSight, SiteTools, explain_component,
        },
    },
    core::time::Timestamp,
};

/// Evidence about nodes. Clones share the mirrors.
#[derive(Clone)]
pub(crate) struct InsightMirrors {
    components: Mirror<Component>,
    options: Mirror<OptionsRecord>,
    power_states: Mirror<PowerStateRecord>,
    configuration_states: Mirror<ConfigurationStateRecord>,
}

/// Evidence about one node from the mirrors.
struct NodeSights {
    evaluated: Evidence,
    power: Option<PowerSight>,
    configuration: Option<ConfigurationSight>,
}

impl InsightMirrors {
    pub(crate) fn start(context: &Context) -> anyhow::Result<Self> {
        let settings = &context.settings;
        let registry = chassis::channel(&settings.tls, &settings.component_registry.url)?;
        let power = chassis::channel(&settings.tls, &settings.power_controller.url)?;
        let configuration = chassis::channel(&settings.tls, &settings.config_coordinator.url)?;
        Ok(Self {
            components: Mirror::start(context, registry.clone(), |_: &[Change<Component>]| {}),
            options: Mirror::of_options(context, registry, || {}),
            power_states: Mirror::start(context, power, |_: &[Change<PowerStateRecord>]| {}),
            configuration_states: Mirror::start(
                context,
                configuration,
                |_: &[Change<ConfigurationStateRecord>]| {},
            ),
        })
    }

    /// Waits until every mirror is complete.
    pub(crate) async fn reached(&self) {
        tokio::join!(
            self.components.reached(1),
            self.options.reached(1),
            self.power_states.reached(1),
            self.configuration_states.reached(1)
        );
    }

    /// Waits until the mirrors are complete without which nothing can be explained.
    pub(crate) async fn subjects_reached(&self) {
        tokio::join!(self.components.reached(1), self.options.reached(1));
    }

    /// Returns the kind of an incomplete mirror without which nothing can be explained.
    pub(crate) fn lacking(&self) -> Option<&'static str> {
        let copies =
            [(Component::KIND, self.components.revision()), (OptionsRecord::KIND, self.options.revision())];
        copies.into_iter().find(|(_, revision)| *revision == 0).map(|(kind, _)| kind)
    }

    pub(crate) fn component(&self, id: &str) -> Option<Arc<Component>> {
        self.components.get(id)
    }

    /// Returns whether the power of a component is waited for, at the power service or elsewhere.
    pub(crate) fn waits_for_power(&self, component: &Component) -> bool {
        component.power.trouble.is_some() || self.sights(component).evaluated.power_trouble.is_some()
    }

    /// Explains a component at `now` by the mirrors and its `traces`.
    pub(crate) fn explain(
        &self,
        component: &Component,
        traces: &NodeTraces,
        tools: SiteTools,
        now: Timestamp,
    ) -> Explanation {
        let sights = self.sights(component);
        let evidence = ComponentEvidence {
            component,
            evaluated: &sights.evaluated,
            options: &self.options.in_force(),
            power: sights.power,
            configuration: sights.configuration,
            history: traces.history.as_deref(),
            transitions: traces.transitions.as_deref(),
            holder: traces.holder.as_ref(),
            script: &traces.script,
            batch: traces.batch.as_ref(),
            tools,
        };
        explain_component(&evidence, now)
    }

    /// Returns the evidence about `component` besides its record. A reading counts while its author is connected; an
    /// older one is shown all the same, with its age.
    fn sights(&self, component: &Component) -> NodeSights {
        let id = component.id.as_str();
        let power = self.power_states.get(id).map(|state| state.message());
        let configuration = self.configuration_states.get(id).map(|state| state.message());
        let current_power = power.as_ref().filter(|_| self.power_states.is_current());
        let current_configuration = configuration.as_ref().filter(|_| self.configuration_states.is_current());
        let evaluated = observation::evidence(current_power, current_configuration, component);
        let power_outage = self.power_states.outage();
        let configuration_outage = self.configuration_states.outage();
        let evaluated = Evidence {
            power_trouble: observation::outage_trouble(observation::POWER_CONTROLLER, power_outage)
                .or(evaluated.power_trouble),
            configuration_trouble: observation::outage_trouble(
                observation::CONFIG_COORDINATOR,
                configuration_outage,
            )
            .or(evaluated.configuration_trouble),
            ..evaluated
        };
        NodeSights {
            evaluated,
            power: power
                .as_ref()
                .map(|state| convert::power_sight(state, component.generation, current_power.is_some())),
            configuration: configuration.as_ref().map(|state| {
                convert::configuration_sight(state, component.generation, current_configuration.is_some())
            }),
        }
    }
}
