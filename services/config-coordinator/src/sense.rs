//! Learning what the configuration upstream says: by asking, and by listening.

use std::sync::Arc;

use chassis::{mirror::Mirror, pause, work::WorkQueue};
use domain::{component::Component, id::ComponentId};
use futures_util::{Stream, StreamExt};
use tokio::time::{Instant, sleep};

use crate::{
    claims::{Answer, Claims},
    observe::{ObserveError, Observer},
    rounds,
    upstream::{
        Failure,
        configuration::{Driver, MOST_NODES, Said},
    },
};

/// Messages that are stored together when they come faster than they can be stored. A message has one node
/// as a rule, and a commit takes as long for a thousand as for one.
const MESSAGES: usize = 1000;

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
            if let Err(error) = self.listen_once(&mut failures).await {
                tracing::warn!(%error, failures, "configuration changes are not heard of, listening again");
            }
            failures += 1;
            sleep(pause::after(failures)).await;
        }
    }

    async fn listen_once(&self, failures: &mut u32) -> Result<(), ObserveError> {
        let messages = self.upstream.watch().await?;
        self.observer.may_have_missed();
        self.queue.mark(self.components.enabled());
        self.take(messages, failures).await
    }

    /// Keeps what is heard until the stream breaks, or until something could not be kept: that is a gap too.
    async fn take(
        &self,
        messages: impl Stream<Item = Result<Vec<Said>, Failure>> + Unpin,
        failures: &mut u32,
    ) -> Result<(), ObserveError> {
        let mut messages = messages.ready_chunks(MESSAGES);
        while let Some(together) = messages.next().await {
            let said = together.into_iter().collect::<Result<Vec<_>, _>>()?;
            self.observer.told(said.into_iter().flatten().collect()).await?;
            *failures = 0;
        }
        Ok(())
    }

    async fn round(&self, ids: Vec<ComponentId>) {
        let due = self.due(ids);
        if due.is_empty() {
            return;
        }
        if let Err(error) = self.observer.look(&due).await {
            tracing::warn!(%error, components = due.len(), "configuration states are not known");
        }
        let (lacking, known): (Vec<_>, Vec<_>) =
            due.iter().partition(|id| self.observer.wanted(id).is_some());
        known.into_iter().for_each(|id| self.claims.release(id));
        self.claims.again(lacking, Instant::now());
        self.queue.mark(due);
    }

    /// Those of `ids` that have to be asked about now. The others need nothing, or are marked for later.
    fn due(&self, ids: Vec<ComponentId>) -> Vec<ComponentId> {
        let now = Instant::now();
        let mut due = Vec::new();
        for id in ids {
            let Some(generation) = self.observer.wanted(&id) else {
                self.claims.idle(&id);
                self.queue.unmark(&id);
                continue;
            };
            match self.claims.claim(&id, generation, now) {
                Answer::Granted => due.push(id),
                Answer::Early(at) => self.queue.mark_at(id, at),
                // The round that is at it marks the component when it ends.
                Answer::Busy | Answer::Done => {}
            }
        }
        due
    }
}
