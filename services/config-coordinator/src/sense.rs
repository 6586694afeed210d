//! Learning what the configuration upstream says: by asking, and by listening.

use std::{sync::Arc, time::Duration};

use chassis::{mirror::Mirror, work::WorkQueue};
use domain::{component::Component, id::ComponentId};
use futures_util::{Stream, StreamExt};
use tokio::time::{Instant, sleep};

use crate::{
    claims::{Answer, Claims},
    observe::Observer,
    pause, rounds,
    upstream::{
        Failure,
        configuration::{Driver, MOST_NODES, Said},
    },
};

/// Messages that are stored together when they come faster than they can be stored. A message has one node
/// as a rule, and a commit takes as long for a thousand as for one.
const MESSAGES: usize = 1000;

/// Pause before a message that could not be stored is tried again.
const STORE_PAUSE: Duration = Duration::from_millis(500);

/// Keeps what is known about the configuration of enabled components fresh.
pub(crate) struct Sensor {
    observer: Arc<Observer>,
    components: Mirror<Component>,
    upstream: Driver,
    /// Components that may have to be asked about.
    queue: WorkQueue<ComponentId>,
    /// By the generation that is being asked for.
    claims: Claims<u64>,
}

impl Sensor {
    pub(crate) fn new(
        observer: Arc<Observer>,
        components: Mirror<Component>,
        upstream: Driver,
        queue: WorkQueue<ComponentId>,
    ) -> Self {
        Self { observer, components, upstream, queue, claims: Claims::default() }
    }

    /// Asks about components as they are marked, without end.
    pub(crate) async fn ask(&self) {
        rounds::run(&self.queue, MOST_NODES, |ids| self.round(ids)).await;
    }

    /// Listens for changes without end. After every gap everything is asked for once.
    pub(crate) async fn listen(&self) {
        let mut failures = 0;
        loop {
            let failure = match self.upstream.watch().await {
                Ok(messages) => {
                    self.observer.may_have_missed();
                    self.queue.mark(self.enabled());
                    self.take(messages, &mut failures).await
                }
                Err(failure) => failure,
            };
            failures += 1;
            tracing::warn!(%failure, failures, "configuration changes are not heard of, listening again");
            sleep(pause::after(failures, pause::chance())).await;
        }
    }

    fn enabled(&self) -> impl Iterator<Item = ComponentId> {
        let enabled = self.components.all().into_iter().filter(|component| component.is_enabled());
        enabled.map(|component| component.id.clone())
    }

    /// Stores messages until the stream breaks.
    async fn take(
        &self,
        messages: impl Stream<Item = Result<Vec<Said>, Failure>> + Unpin,
        failures: &mut u32,
    ) -> Option<Failure> {
        let mut messages = messages.ready_chunks(MESSAGES);
        while let Some(together) = messages.next().await {
            let mut said = Vec::new();
            for message in together {
                match message {
                    Ok(nodes) => said.extend(nodes),
                    Err(failure) => return Some(failure),
                }
            }
            *failures = 0;
            self.store(said).await;
        }
        None
    }
}
