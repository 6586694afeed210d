//! Knowledge of the power controller: components, options, and stored readings of power.

use std::time::Duration;

use chassis::{
    Fault,
    kinds::{NodeState, observation, options::OptionsRecord},
    lease::Term,
    observe::{freshness::ReadingFreshness, mirror::Mirror},
    process::pause,
    store::ledger::Ledger,
};
use domain::{
    boot::{component::Component, power::PowerObservation},
    core::id::ComponentId,
};
use proto::power::{PowerReading, PowerState};
use tokio::time::Instant;

use crate::{convert, store::PowerStateTable};

/// Data that decisions rest on. Clones share it.
#[derive(Clone)]
pub(crate) struct DecisionData {
    pub(crate) components: Mirror<Component>,
    pub(crate) options: Mirror<OptionsRecord>,
    pub(crate) states: Ledger<PowerStateTable>,
    /// Term in which this replica acts.
    pub(crate) term: Term,
    /// Whether readings are kept current.
    pub(crate) freshness: ReadingFreshness,
}

/// Waits until components and options are complete. Before that, a component that has not arrived yet would look
/// deleted.
pub(crate) async fn complete(components: &Mirror<Component>, options: &Mirror<OptionsRecord>) {
    components.reached(1).await;
    options.reached(1).await;
}

impl DecisionData {
    /// Waits until components and options are complete.
    pub(crate) async fn complete(&self) {
        complete(&self.components, &self.options).await;
    }

    /// Returns the power state of a node on record.
    pub(crate) fn state(&self, id: &str) -> Option<PowerState> {
        self.states.view().get(id).map(|state| state.message())
    }

    /// Returns the known power of a component in its generation; unknown while readings are out of date.
    pub(crate) fn power(&self, component: &Component) -> PowerObservation {
        if self.is_out_of_date() {
            return PowerObservation::Unknown;
        }
        observation::power_of(component, self.state(component.id.as_str()).as_ref())
    }

    /// Returns the enabled nodes, and deleted nodes whose power state is still stored.
    pub(crate) fn nodes(&self) -> Vec<ComponentId> {
        let enabled = self.components.enabled();
        let states = self.states.view().all();
        let gone = states.iter().filter(|state| self.components.get(state.id()).is_none());
        let gone = gone.filter_map(|state| ComponentId::parse(state.id()).ok());
        enabled.chain(gone).collect()
    }

    /// Whether readings are out of date, so that all of them have to be withdrawn.
    pub(crate) fn is_out_of_date(&self) -> bool {
        self.freshness.has_lapsed(self.states.view().since_loss())
    }

    /// Stores power states, each with the moment at which its node was last seen off.
    ///
    /// # Errors
    /// When the term is over, or the write is not taken or may not have been.
    pub(crate) async fn store(&self, states: Vec<PowerState>) -> Result<(), Fault> {
        let put = self.states.write_fenced(self.term.fence(), move |draft| {
            for state in states {
                let before = draft.get(&state.id).map(|before| before.message());
                draft.put(NodeState::of(convert::with_seen_off(state, before.as_ref())));
            }
            Ok(())
        });
        put.await.map(drop)
    }

    /// Withdraws the readings of these nodes: their power is unknown until they are read again.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub(crate) async fn withdraw(&self, ids: &[ComponentId]) -> Result<(), Fault> {
        let began = Instant::now();
        let withdrawn = self.withdrawn(ids.iter());
        if !withdrawn.is_empty() {
            self.store(withdrawn).await?;
        }
        self.freshness.withdrew(began);
        Ok(())
    }

    /// Withdraws readings from before the term, including those of this process: a node may have changed since. Its
    /// power is unknown before any decision here rests on it, and before any watch shows it. The write is retried until
    /// it is on record.
    ///
    /// `is_told`: the registry has reported which components are enabled now, and the readings of others may stay.
    /// Otherwise all readings are withdrawn: the last holder may have read a node whose enabling has not arrived here.
    pub(crate) async fn withdraw_inherited(&self, is_told: bool) {
        let withdraw = || async {
            let ids: Vec<_> = match is_told {
                true => self.components.enabled().collect(),
                false => self.read_before(),
            };
            self.withdraw(&ids).await
        };
        let note =
            |fault, _| tracing::warn!(%fault, "power states of before are not withdrawn, trying again");
        pause::until_done(withdraw, note).await;
    }

    /// Returns the nodes with a stored power state.
    fn read_before(&self) -> Vec<ComponentId> {
        let states = self.states.view().all();
        states.iter().filter_map(|state| ComponentId::parse(state.id()).ok()).collect()
    }

    /// Returns the states of those of `ids` with a reading on record, without the reading.
    fn withdrawn<'a>(&self, ids: impl Iterator<Item = &'a ComponentId>) -> Vec<PowerState> {
        let view = self.states.view();
        let read = ids.filter_map(|id| Some(view.get(id.as_str())?.message()));
        let read = read.filter(|state| state.reading() != PowerReading::Unspecified);
        let unknown = PowerReading::Unspecified.into();
        read.map(|state| PowerState { reading: unknown, error: String::new(), ..state }).collect()
    }

    /// Deletes the states of components that are gone.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub(crate) async fn forget(&self, ids: Vec<ComponentId>) -> Result<(), Fault> {
        let delete = self.states.write_fenced(self.term.fence(), move |draft| {
            ids.iter().for_each(|id| draft.delete(id.as_str()));
            Ok(())
        });
        delete.await.map(drop)
    }

    /// Returns a check whether the term still lasts: for calls to the upstream, which cannot be fenced.
    pub(crate) fn still_ours(&self) -> impl Fn() -> bool + Send + Sync + 'static + use<> {
        let term = self.term.clone();
        move || term.is_current()
    }

    /// Returns the deadline for answers of the upstream (BOS reference 4, `pcs_read_timeout`).
    pub(crate) fn upstream_deadline(&self) -> Duration {
        Duration::from_secs(self.options.in_force().pcs_read_timeout.into())
    }
}
