//! What the power controller knows: the components, the options, and what was read of power.

use std::time::Duration;

use chassis::{convert::observation, kinds::OptionsRecord, ledger::Ledger, mirror::Mirror};
use domain::{component::Component, evaluation::PowerObservation};

use crate::store::PowerStates;

/// Everything that decisions rest on. Clones share it.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) components: Mirror<Component>,
    pub(crate) options: Mirror<OptionsRecord>,
    pub(crate) states: Ledger<PowerStates>,
}

impl Known {
    /// Waits until nothing is missing. Without all components, one that was not seen yet would look as if it had
    /// been deleted.
    pub(crate) async fn complete(&self) {
        self.components.reached(1).await;
        self.options.reached(1).await;
    }

    /// What is known about the power of a component in its generation.
    pub(crate) fn power(&self, component: &Component) -> PowerObservation {
        observation::power(self.states.view().get(component.id.as_str()).as_deref(), component.generation)
    }

    /// How long an answer of the upstream may take (BOS reference 4, `pcs_read_timeout`).
    pub(crate) fn upstream_deadline(&self) -> Duration {
        Duration::from_secs(self.options.in_force().pcs_read_timeout.into())
    }
}
