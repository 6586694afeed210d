//! Sets configurations and reads the results back.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use domain::core::id::ComponentId;
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use crate::{
    groups::ConfigurationGroup,
    isolate::isolate,
    observe::{ConfigurationObserver, ObserveError},
    step::PlacingStep,
    trouble::StepTrouble,
    upstream::{
        Failure, FailureKind,
        configuration::{ConfigurationMode, ConfigurationOrder},
    },
    verdicts::StepVerdicts,
};

/// Concurrent calls of one round: enough to hide the latency, few enough that a session of ten thousand nodes does not
/// occupy the whole service.
const CALLS: usize = 8;

/// Sets configurations upstream.
pub(crate) struct NodeConfigurator {
    observer: Arc<ConfigurationObserver>,
    verdicts: StepVerdicts<ComponentId>,
}

impl NodeConfigurator {
    pub(crate) fn new(observer: Arc<ConfigurationObserver>) -> Self {
        Self { observer, verdicts: StepVerdicts::new(PlacingStep::Configuration) }
    }

    /// Returns the most components in one group.
    pub(crate) fn most_nodes(&self) -> usize {
        self.observer.options.in_force().batch_size(self.observer.upstream.most_nodes())
    }

    /// Sets the configuration of every group. Returns the troubles of exactly those components for which it failed.
    ///
    /// When this returns without trouble for a component, its known state is newer than the setting: the results of an
    /// earlier boot are not taken for the outcome of this one.
    pub(crate) async fn set(
        &self,
        groups: Vec<ConfigurationGroup>,
        mode: ConfigurationMode,
    ) -> HashMap<ComponentId, StepTrouble> {
        let round = self.verdicts.next_round();
        let calls = groups.into_iter().map(|group| async move {
            let order =
                ConfigurationOrder { configuration: &group.configuration, session: &group.session, mode };
            let set = |ids: Arc<[ComponentId]>| async move { self.set_some(&ids, order).await };
            isolate(group.ids.clone(), round, set).await
        });
        let groups: Vec<_> = stream::iter(calls).buffer_unordered(CALLS).collect().await;
        let mut troubles = self.verdicts.troubles(&groups, |id| self.generation(id), Instant::now());
        let taken = groups.into_iter().flatten().filter_map(|part| part.outcome.ok());
        troubles.extend(self.doubts(taken.flatten().collect()).await);
        troubles
    }

    /// Forgets components that no longer exist.
    pub(crate) fn forget(&self, ids: &[ComponentId]) {
        self.verdicts.forget(ids);
    }

    fn generation(&self, id: &ComponentId) -> u64 {
        self.observer.components.get(id.as_str()).map_or(0, |component| component.generation)
    }

    /// Returns the troubles of those of `unconfirmed` whose state cannot be read, or that the upstream does not have.
    /// Before a boot, this may be the first request for these components.
    async fn doubts(&self, unconfirmed: Vec<ComponentId>) -> Vec<(ComponentId, StepTrouble)> {
        let Err(error) = self.observer.look(&unconfirmed).await else {
            let missing = unconfirmed.into_iter().filter(|id| self.observer.is_missing(id));
            return missing.map(|id| (id, StepTrouble::Missing)).collect();
        };
        error.log();
        let trouble = StepTrouble::awaited(&error);
        unconfirmed.into_iter().map(|id| (id, trouble.clone())).collect()
    }

    /// Sets a configuration and stores the upstream's confirmations. Returns the components that were not confirmed.
    async fn set_some(
        &self,
        ids: &[ComponentId],
        order: ConfigurationOrder<'_>,
    ) -> Result<Vec<ComponentId>, Failure> {
        let before = self.observer.query_about(ids);
        // A call cannot be fenced: after the end of the lease it is left to the holder of the role.
        if before.about.len() < ids.len() || !self.observer.term.is_current() {
            return Err(term_is_over());
        }
        let said = self.observer.upstream.set(ids, order, self.observer.deadline()).await?;
        let confirmed: HashSet<_> = said.iter().map(|(id, _)| id.clone()).collect();
        self.observer
            .keep_confirmation(&before, said)
            .await
            .map_err(|fault| not_kept(&ObserveError::Store(fault)))?;
        Ok(ids.iter().filter(|id| !confirmed.contains(id.as_str())).cloned().collect())
    }
}

/// Returns the failure of a call that was not made because the term is over, or a component is gone. It is never shown:
/// the caller cannot write any more, or has no record to write to.
pub(crate) fn term_is_over() -> Failure {
    let text = "another replica goes on".to_owned();
    Failure { kind: FailureKind::Unreachable, status: None, text }
}

/// Returns the failure of a call that the upstream took and whose confirmation could not be stored.
fn not_kept(error: &ObserveError) -> Failure {
    Failure { kind: FailureKind::Ambiguous, status: None, text: error.to_string() }
}
