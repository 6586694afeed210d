//! Watches of events.

use std::{collections::BTreeSet, time::Duration};

use futures_util::{Stream, stream};
use proto::event::WatchEventsResponse;
use tonic::Status;
use uuid::Uuid;

use super::{EventHistory, ROWS, WantedEvents};
use crate::{
    Fault,
    store::{
        ledger::events::{self, ANY_TIME},
        resource::Resource,
    },
};

/// Least time between two queries of a watch, within which the events of many commits come together.
const PACE: Duration = Duration::from_millis(200);

/// Watch in progress.
pub(super) struct EventWatch<R> {
    history: EventHistory<R>,
    filter: WantedEvents,
    after: u64,
    is_first: bool,
    incarnation: Uuid,
}

impl<R: Resource> EventWatch<R> {
    /// Begins a watch after a revision of an incarnation.
    pub(super) fn new(history: EventHistory<R>, filter: WantedEvents, after: u64, incarnation: Uuid) -> Self {
        Self { history, filter, after, is_first: true, incarnation }
    }

    /// Returns the responses of the watch: a bookmark or events, and then events.
    pub(super) fn responses(self) -> impl Stream<Item = Result<WatchEventsResponse, Status>> {
        stream::unfold(Some(self), Self::next)
    }

    async fn next(watch: Option<Self>) -> Option<(Result<WatchEventsResponse, Status>, Option<Self>)> {
        let mut watch = watch?;
        match watch.response().await {
            Ok(response) => Some((Ok(response), Some(watch))),
            Err(fault) => Some((Err(fault.into()), None)),
        }
    }

    /// The next events that the filter wants, or a bookmark at first.
    async fn response(&mut self) -> Result<WatchEventsResponse, Fault> {
        loop {
            if !self.is_first {
                self.history.view.reached(self.after + 1).await;
                tokio::time::sleep(PACE).await;
            }
            let (newest, id) = self.history.view.read(|state| (state.revision, state.incarnation.id));
            if id != self.incarnation {
                return Err(Fault::ResumeExpired(self.after));
            }
            let rows =
                events::rows_after(&self.history.database, R::KIND, self.after, ANY_TIME.start, ROWS).await?;
            // A commit that is not shown yet may still be lost to watchers of the resources.
            let rows: Vec<_> = rows.into_iter().take_while(|row| row.revision <= newest).collect();
            self.after = match rows.last() {
                Some(last) if rows.len() as u64 == ROWS => last.revision,
                Some(_) | None => newest,
            };
            let wanted = rows.iter().flat_map(|row| self.filter.of_row(row, R::KIND, &BTreeSet::new()));
            let events: Vec<_> = wanted.collect();
            if self.is_first || !events.is_empty() {
                self.is_first = false;
                return Ok(WatchEventsResponse { events, revision: self.after });
            }
        }
    }
}
