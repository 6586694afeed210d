//! What the power controller knows: the components, the options, and what was read of power.

use std::{sync::Arc, time::Duration};

use chassis::{
    Fault,
    convert::observation,
    kinds::OptionsRecord,
    lease::{Custody, Fence, Takeover},
    ledger::Ledger,
    mirror::Mirror,
    pause,
    resource::Resource,
};
use domain::{
    boot::{component::Component, power::PowerObservation},
    core::id::ComponentId,
};
use parking_lot::Mutex;
use proto::power::{PowerReading, PowerState};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::store::PowerStates;

/// Everything that decisions rest on. Clones share it.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) components: Mirror<Component>,
    pub(crate) options: Mirror<OptionsRecord>,
    pub(crate) states: Ledger<PowerStates>,
    /// Which nodes and transitions are this replica's.
    pub(crate) custody: Custody,
    /// Whether readings are kept current.
    pub(crate) pulse: Pulse,
    /// Told once what was read before the start counts as unknown.
    pub(crate) taken_over: watch::Sender<bool>,
}

/// For how long readings may not have been attended to before they are history: the process slept, or the database
/// took none.
const LAPSE: Duration = Duration::from_secs(10);

/// When the task that reads power was last seen to go on, by the monotonic clock. Clones share it.
#[derive(Clone)]
pub(crate) struct Pulse(Arc<Mutex<Instant>>);

impl Default for Pulse {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Pulse {
    pub(crate) fn beat(&self) {
        *self.0.lock() = Instant::now();
    }

    pub(crate) fn lapsed(&self) -> bool {
        self.0.lock().elapsed() >= LAPSE
    }
}

impl Known {
    /// Waits until nothing is missing. Without all components, one that was not seen yet would look as if it had
    /// been deleted.
    pub(crate) async fn complete(&self) {
        self.components.reached(1).await;
        self.options.reached(1).await;
    }

    /// The power of a component in its generation as far as it is known; unknown while readings are not attended to.
    pub(crate) fn power(&self, component: &Component) -> PowerObservation {
        if self.pulse.lapsed() {
            return PowerObservation::Unknown;
        }
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

    /// Withdraws the readings of these nodes: their power is unknown until they are read again.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub(crate) async fn withdraw(&self, ids: &[ComponentId]) -> Result<(), Fault> {
        let ours = ids.iter().filter(|id| self.custody.has(id.as_str()));
        let withdrawn = self.withdrawn(ours);
        if withdrawn.is_empty() { Ok(()) } else { self.store(withdrawn).await }
    }

    /// Withdraws readings from before nodes came to this replica, also those that this process made: a node may have
    /// changed since. Its power is unknown before anything is decided by it here, and before any watch shows it. The write
    /// is retried until it is on record, or the nodes are another replica's again.
    ///
    /// `is_told`: the registry has said which components are enabled now, and the readings of others may stay. Otherwise
    /// all are withdrawn: a node may have been enabled and read by the last holder without any word of it here.
    pub(crate) async fn withdraw_inherited(&self, takeover: &Takeover, is_told: bool) {
        let mut failures = 0;
        loop {
            let rest = self.custody.rest_of(takeover);
            if !rest.gains_any() {
                break;
            }
            let ids: Vec<_> = match is_told {
                true => self.components.enabled().collect(),
                false => self.read_before(),
            };
            let withdrawn = self.withdrawn(ids.iter().filter(|id| rest.gains(id.as_str())));
            let Some(fence) = rest.fence(withdrawn.iter().map(|state| state.id.as_str())) else { break };
            let put = self.states.write_fenced(fence, move |draft| {
                withdrawn.into_iter().for_each(|state| draft.put(state));
                Ok(())
            });
            let Err(fault) = put.await else { break };
            tracing::warn!(%fault, "power states of before are not withdrawn, trying again");
            failures += 1;
            sleep(pause::after(failures)).await;
        }
        // Where nothing came, others read the nodes, or their leases have yet to end.
        if takeover.gains_any() {
            self.taken_over.send_replace(true);
        }
    }

    /// The nodes of which anything is on record.
    fn read_before(&self) -> Vec<ComponentId> {
        let states = self.states.view().all();
        states.iter().filter_map(|state| ComponentId::parse(&state.id).ok()).collect()
    }

    /// The states of those of `ids` of which a reading is on record, without it.
    fn withdrawn<'a>(&self, ids: impl Iterator<Item = &'a ComponentId>) -> Vec<PowerState> {
        let view = self.states.view();
        let read = ids.filter_map(|id| view.get(id.as_str()));
        let read = read.filter(|state| state.reading() != PowerReading::Unspecified);
        let unknown = PowerReading::Unspecified.into();
        read.map(|state| PowerState { reading: unknown, error: String::new(), ..PowerState::clone(&state) })
            .collect()
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
