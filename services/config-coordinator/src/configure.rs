//! Setting configurations, and seeing for ourselves what that did.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use domain::id::ComponentId;
use futures_util::{StreamExt, stream};

use crate::{
    groups::ConfigurationGroup,
    isolate::{Part, isolate},
    observe::{ObserveError, Observer},
    trouble::{Step, Trouble},
    upstream::{
        Failure, FailureKind,
        configuration::{Mode, Order},
    },
};

/// Calls of one round at the same time: enough to hide the way there and back, few enough that a session of
/// ten thousand nodes does not take the whole service for itself.
const CALLS: usize = 8;

/// Sets configurations upstream.
pub(crate) struct Configurator {
    observer: Arc<Observer>,
}

impl Configurator {
    pub(crate) fn new(observer: Arc<Observer>) -> Self {
        Self { observer }
    }

    /// Most components in one group.
    pub(crate) fn most_nodes(&self) -> usize {
        self.observer.options.in_force().batch_size(self.observer.upstream.most_nodes())
    }

    /// Sets the configuration of every group. Gives what went wrong, for exactly the components that it went
    /// wrong for.
    ///
    /// When this returns without trouble for a component, what is known about it was learnt after the
    /// configuration was set: what an earlier boot left behind is not taken for the outcome of this one.
    pub(crate) async fn set(
        &self,
        groups: Vec<ConfigurationGroup>,
        mode: Mode,
    ) -> HashMap<ComponentId, Trouble> {
        let calls = groups.into_iter().map(|group| async move {
            let order = Order { configuration: &group.configuration, session: &group.session, mode };
            let set = |ids: Arc<[ComponentId]>| async move { self.set_some(&ids, order).await };
            let parts = isolate(group.ids.clone(), set).await;
            (group, parts)
        });
        let mut calls = stream::iter(calls).buffer_unordered(CALLS);
        let (mut troubles, mut unconfirmed) = (HashMap::new(), Vec::new());
        while let Some((group, parts)) = calls.next().await {
            for Part { items, outcome } in parts {
                match outcome {
                    Ok(left_out) => unconfirmed.extend(left_out),
                    Err(failure) => {
                        let ConfigurationGroup { configuration, session, .. } = &group;
                        let components = items.len();
                        tracing::warn!(%failure, configuration, session, components, "configuration not set");
                        let trouble = Trouble::of(Step::Configuration, &failure);
                        troubles.extend(items.iter().map(|id| (id.clone(), trouble.clone())));
                    }
                }
            }
        }
        troubles.extend(self.doubts(unconfirmed).await);
        troubles
    }

    /// What is wrong with those of `unconfirmed` for which nobody says what became of their configuration, or that the
    /// upstream does not have. Before they boot, this may be the first time that it is asked for them.
    async fn doubts(&self, unconfirmed: Vec<ComponentId>) -> Vec<(ComponentId, Trouble)> {
        let Err(error) = self.observer.look(&unconfirmed).await else {
            let missing = unconfirmed.into_iter().filter(|id| self.observer.is_missing(id));
            return missing.map(|id| (id, Trouble::Missing)).collect();
        };
        tracing::warn!(%error, components = unconfirmed.len(), "what became of configurations is not known");
        let trouble = Trouble::awaited(&error);
        unconfirmed.into_iter().map(|id| (id, trouble.clone())).collect()
    }

    /// Sets a configuration and keeps what the upstream confirmed. Gives those that it did not.
    async fn set_some(&self, ids: &[ComponentId], order: Order<'_>) -> Result<Vec<ComponentId>, Failure> {
        let before = self.observer.inquire(ids);
        // A call cannot be fenced: whoever slept leaves it to the replica that has the components now.
        if before.about.len() < ids.len() {
            return Err(another_has_them());
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

/// Nothing was done for components of which some are another replica's by now, or gone. That is never seen: who asked
/// for it cannot write any more.
pub(crate) fn another_has_them() -> Failure {
    let text = "another replica goes on".to_owned();
    Failure { kind: FailureKind::Unreachable, status: None, text }
}

/// The upstream took it, and that could not be written down.
fn not_kept(error: &ObserveError) -> Failure {
    Failure { kind: FailureKind::Ambiguous, status: None, text: error.to_string() }
}
