//! Watches the fleet and the session over gRPC, each with one stream.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use chassis::{Context, mesh::channel::LARGEST_MESSAGE, observe::mirror::Mirror};
use domain::{boot::component::Component, core::id::ComponentId};
use proto::session::{Progress, Session, WatchSessionsRequest, session_service_client::SessionServiceClient};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::progress::SessionTally;

/// Longest lag of the mirror of components behind the session; usually milliseconds.
const LAG: Duration = Duration::from_secs(10);

/// Longest discovery of the largest fleet.
const DISCOVERY: Duration = Duration::from_secs(120);

/// Tally that is kept current.
pub(crate) struct ProgressWatch {
    tally: Arc<watch::Sender<SessionTally>>,
}

impl ProgressWatch {
    /// Follows the components of the registry, and waits for the nodes in `fleet`.
    ///
    /// # Errors
    /// When the address of the registry cannot be read.
    pub(crate) fn start(context: &Context, fleet: Vec<ComponentId>) -> anyhow::Result<Self> {
        let tally = Arc::new(watch::Sender::new(SessionTally::new(fleet)));
        let shared = tally.clone();
        let registry = context.channel(&context.settings.component_registry.url)?;
        let _mirror = Mirror::<Component>::start(context, registry, move |changes| {
            let at = Instant::now().into_std();
            let components = changes.iter().filter_map(|change| change.current.as_deref());
            shared.send_modify(|tally| components.for_each(|component| tally.note(component, at)));
        });
        Ok(Self { tally })
    }

    /// Subscribes to the tally.
    pub(crate) fn tally(&self) -> watch::Receiver<SessionTally> {
        self.tally.subscribe()
    }

    /// Waits until every node of the fleet is a component.
    ///
    /// # Errors
    /// When that takes too long.
    pub(crate) async fn all_discovered(&self) -> anyhow::Result<()> {
        let mut tally = self.tally();
        let discovered = timeout(DISCOVERY, tally.wait_for(SessionTally::is_discovered)).await;
        discovered.context("the registry does not have all nodes of the inventory")?.context("tally")?;
        Ok(())
    }

    /// Begins to count the components of `session`.
    pub(crate) fn begin(&self, session: &str) {
        self.tally.send_modify(|tally| tally.begin(session, Instant::now().into_std()));
    }

    /// Time since the session began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.tally.borrow().elapsed(Instant::now().into_std())
    }

    /// Waits until the session of that name is complete.
    ///
    /// # Errors
    /// When the session manager ends the watch.
    pub(crate) async fn complete(&self, context: &Context, name: &str) -> anyhow::Result<Session> {
        let sessions = context.channel(&context.settings.session_manager.url)?;
        let mut client = SessionServiceClient::new(sessions).max_decoding_message_size(LARGEST_MESSAGE);
        let request = WatchSessionsRequest { resume_revision: 0 };
        let mut batches = client.watch_sessions(request).await.context("watch of sessions")?.into_inner();
        while let Some(batch) = batches.message().await.context("watch of sessions")? {
            // The key ends with the name; no tenant follows.
            if batch.deletions.iter().any(|deletion| deletion.key.ends_with(name)) {
                bail!("session {name} was deleted");
            }
            let Some(session) = batch.sessions.into_iter().rfind(|session| session.name == name) else {
                continue;
            };
            let members = (session.progress() != Progress::Pending).then_some(session.components.len());
            self.tally.send_modify(|tally| tally.session(members, &session.waiting_for));
            if session.progress() == Progress::Complete {
                return Ok(session);
            }
        }
        bail!("the watch of sessions ended")
    }

    /// Waits until the tally shows a complete session. Members that another session has taken over never settle here,
    /// so the wait has a limit.
    pub(crate) async fn caught_up(&self) {
        let mut tally = self.tally();
        let settled = |tally: &SessionTally| tally.members().is_none_or(|members| tally.settled() >= members);
        if timeout(LAG, tally.wait_for(settled)).await.is_err() {
            tracing::warn!("the session is complete, but not every member of it has settled");
        }
    }
}
