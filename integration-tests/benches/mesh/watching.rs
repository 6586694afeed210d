//! Waiting for components and sessions on their watches, so that waiting costs the mesh nothing.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use proto::{
    component::{Component, WatchComponentsRequest, WatchComponentsResponse},
    session::{
        Progress, WatchSessionsRequest, WatchSessionsResponse, session_service_client::SessionServiceClient,
    },
};
use tonic::Streaming;

use crate::stage::Server;

/// Limit of any wait: only a hang takes as long.
const PATIENCE: Duration = Duration::from_secs(900);

/// Waits until the mesh has so many components.
///
/// # Panics
/// When that does not happen.
pub async fn discovered(server: &Server, count: usize) {
    let mut seen = HashSet::new();
    let mut batches = components(server, 0).await;
    while seen.len() < count {
        let batch = within(batches.message()).await;
        seen.extend(batch.components.into_iter().map(|component| component.id));
    }
}

/// Waits until every component is as `wanted`, and gives for each id when that was seen first. `count` is how many
/// there are.
///
/// # Panics
/// When that does not happen.
pub async fn all_are(
    server: &Server,
    count: usize,
    wanted: impl Fn(&Component) -> bool,
) -> HashMap<String, Instant> {
    let mut seen = HashMap::new();
    let mut batches = components(server, 0).await;
    while seen.len() < count {
        let batch = within(batches.message()).await;
        let now = Instant::now();
        for component in batch.components.into_iter().filter(|component| wanted(component)) {
            seen.entry(component.id).or_insert(now);
        }
    }
    seen
}

/// A watch of components from a revision on.
///
/// # Panics
/// When it is refused.
pub async fn components(server: &Server, resume_revision: u64) -> Streaming<WatchComponentsResponse> {
    let mut registry = server.registry();
    let request = WatchComponentsRequest { resume_revision };
    registry.watch_components(request).await.expect("a watch").into_inner()
}

/// A watch of sessions.
pub struct SessionWatch(Streaming<WatchSessionsResponse>);

impl SessionWatch {
    /// Begins to watch.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn of(server: &Server) -> Self {
        let channel = chassis::plain_channel(&server.settings.session_manager.url).expect("an address");
        let mut client = SessionServiceClient::new(channel).max_decoding_message_size(usize::MAX);
        Self(client.watch_sessions(WatchSessionsRequest::default()).await.expect("a watch").into_inner())
    }

    /// Waits until a session is as far as that.
    ///
    /// # Panics
    /// When it does not get there.
    pub async fn reach(&mut self, name: &str, progress: Progress) {
        loop {
            let batch = within(self.0.message()).await;
            if batch.sessions.iter().any(|session| session.name == name && session.progress() >= progress) {
                return;
            }
        }
    }
}

async fn within<M>(message: impl Future<Output = Result<Option<M>, tonic::Status>>) -> M {
    let message = tokio::time::timeout(PATIENCE, message).await.expect("a change in time");
    message.expect("a batch").expect("no end")
}
