//! Setting configurations, and seeing for ourselves what that did.

use std::{collections::HashMap, sync::Arc};

use domain::id::ComponentId;
use futures_util::{StreamExt, stream};

use crate::{
    groups::ConfigurationGroup,
    observe::{ObserveError, Observer},
    upstream::{
        Failure,
        configuration::{Driver, Mode},
    },
};

/// Calls of one round at the same time: enough to hide the way there and back, few enough that a session of
/// ten thousand nodes does not take the whole service for itself.
const CALLS: usize = 8;

/// Sets configurations upstream.
pub(crate) struct Configurator {
    upstream: Driver,
    observer: Arc<Observer>,
}

/// Why a configuration is not known to be set.
#[derive(Debug, thiserror::Error)]
enum SetError {
    #[error("configuration was not accepted: {0}")]
    Refused(#[from] Failure),
    #[error("configuration {0}")]
    Unseen(#[from] ObserveError),
}

impl Configurator {
    pub(crate) fn new(upstream: Driver, observer: Arc<Observer>) -> Self {
        Self { upstream, observer }
    }

    /// Sets the configuration of every group. Gives what went wrong, for exactly the components of the
    /// groups that it went wrong for.
    ///
    /// When this returns without an error for a component, what is known about it was asked for after the
    /// configuration was set: what an earlier boot left behind is not taken for the outcome of this one.
    pub(crate) async fn set(
        &self,
        groups: Vec<ConfigurationGroup>,
        mode: Mode,
    ) -> HashMap<ComponentId, Arc<str>> {
        let calls = groups.into_iter().map(|group| async move {
            let outcome = self.set_one(&group, mode).await;
            (group, outcome)
        });
        let mut calls = stream::iter(calls).buffer_unordered(CALLS);
        let mut errors = HashMap::new();
        while let Some((group, outcome)) = calls.next().await {
            let Err(error) = outcome else { continue };
            let ConfigurationGroup { configuration, session, ids } = group;
            tracing::warn!(%error, configuration, session, components = ids.len(), "configuration not set");
            let text: Arc<str> = error.to_string().into();
            errors.extend(ids.into_iter().map(|id| (id, Arc::clone(&text))));
        }
        errors
    }

    async fn set_one(&self, group: &ConfigurationGroup, mode: Mode) -> Result<(), SetError> {
        let ConfigurationGroup { configuration, session, ids } = group;
        self.upstream.set(ids, configuration, session, mode).await?;
        Ok(self.observer.look(ids).await?)
    }
}
