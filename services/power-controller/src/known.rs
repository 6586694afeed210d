//! What the power controller knows: the components, the options, and what was read of power.

use std::time::Duration;

use chassis::{
    Fault,
    convert::observation,
    kinds::OptionsRecord,
    lease::{Custody, Fence},
    ledger::Ledger,
    mirror::Mirror,
    resource::Resource,
};
use domain::{component::Component, evaluation::PowerObservation, id::ComponentId};
use proto::power::PowerState;

use crate::store::PowerStates;

/// Everything that decisions rest on. Clones share it.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) components: Mirror<Component>,
    pub(crate) options: Mirror<OptionsRecord>,
    pub(crate) states: Ledger<PowerStates>,
    /// Which nodes and transitions are this replica's.
    pub(crate) custody: Custody,
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

    /// The nodes among `wanted` shards of which something is to be known, or is known without need.
    pub(crate) fn nodes(&self, wanted: impl Fn(&str) -> bool) -> Vec<ComponentId> {
        let enabled = self.components.enabled();
        let states = self.states.view().all();
        let gone = states.iter().filter(|state| self.components.get(&state.id).is_none());
        let gone = gone.filter_map(|state| ComponentId::parse(&state.id).ok());
        enabled.chain(gone).filter(|id| wanted(id.as_str())).collect()
    }

    /// Stores power states, or nothing of them if a node is another replica's by now.
    ///
    /// # Errors
    /// When that is so, or the write is not taken or may not have been.
    pub(crate) async fn store(&self, states: Vec<PowerState>) -> Result<(), Fault> {
        let Some(fence) = self.custody.fence(states.iter().map(|state| state.id.as_str())) else {
            return Err(elsewhere());
        };
        let put = self.states.write_fenced(fence, move |draft| {
            states.into_iter().for_each(|state| draft.put(state));
            Ok(())
        });
        put.await.map(drop)
    }

    /// Deletes the states of components that are gone.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub(crate) async fn forget(&self, ids: Vec<String>) -> Result<(), Fault> {
        let Some(fence) = self.custody.fence(ids.iter().map(String::as_str)) else { return Err(elsewhere()) };
        let delete = self.states.write_fenced(fence, move |draft| {
            ids.iter().for_each(|id| draft.delete(id));
            Ok(())
        });
        delete.await.map(drop)
    }

    /// Tells at any later time whether nothing was handed over since `fence` was given: for calls to the upstream, which
    /// cannot be fenced.
    pub(crate) fn still_ours(&self, fence: &Fence) -> impl Fn() -> bool + Send + Sync + 'static + use<> {
        let (custody, fence) = (self.custody.clone(), fence.clone());
        move || custody.is_current(&fence)
    }

    /// How long an answer of the upstream may take (BOS reference 4, `pcs_read_timeout`).
    pub(crate) fn upstream_deadline(&self) -> Duration {
        Duration::from_secs(self.options.in_force().pcs_read_timeout.into())
    }
}

fn elsewhere() -> Fault {
    Fault::unavailable(PowerState::KIND, "the nodes are another replica's")
}
