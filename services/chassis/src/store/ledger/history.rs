//! Lists and watches of the events of a ledger.

mod later;
mod page;
mod served;
mod stream;
mod wanted;

use std::sync::Arc;

use domain::core::time::Timestamp;
use futures_util::StreamExt;
use proto::event::{
    ListEventsRequest, ListEventsResponse, WatchEventsRequest, WatchEventsResponse,
    event_service_server::EventService,
};
use sea_orm::DatabaseConnection;
use tonic::{Request, Response, Status, async_trait};

use self::{
    page::{EventPage, EventPlace},
    stream::EventWatch,
    wanted::WantedEvents,
};
use super::{Ledger, Responses, ResumeToken, Table, events::kept_revisions, incarnation, view::LedgerView};
use crate::{Fault, mesh::time};

pub use served::EventHistories;

/// Most events of a list.
const MOST: usize = 1000;

/// Rows in one query.
const ROWS: u64 = 32;

/// Events of a ledger over gRPC.
struct EventRpc<T: Table>(Ledger<T>);

#[async_trait]
impl<T: Table> EventService for EventRpc<T> {
    async fn list_events(
        &self,
        request: Request<ListEventsRequest>,
    ) -> Result<Response<ListEventsResponse>, Status> {
        let ListEventsRequest { filter, page_size, newest_first, before, from } = request.into_inner();
        let filter = WantedEvents::read(filter.unwrap_or_default())?;
        let most = if page_size == 0 { MOST } else { MOST.min(page_size as usize) };
        let before = before.map(EventPlace::from);
        self.0.fresh().await?;
        let revision = self.0.view.revision();
        let history = EventHistory::of(&self.0);
        if let Some(from) = from {
            let page = history.later_page(&filter, from.into(), most).await.map_err(Fault::from)?;
            return Ok(Response::new(later_answer(page, revision, newest_first)));
        }
        let EventPage { mut events, rest } =
            history.page(&filter, before, most).await.map_err(Fault::from)?;
        if !newest_first {
            events.reverse();
        }
        Ok(Response::new(ListEventsResponse {
            events,
            revision,
            older: rest.map(|rest| rest.place.into()),
            examined_from: rest.map(|rest| time::to_wire(rest.time)),
            ..ListEventsResponse::default()
        }))
    }

    type WatchEventsStream = Responses<WatchEventsResponse>;

    async fn watch_events(
        &self,
        request: Request<WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let token = ResumeToken::received(&request, |request| request.resume_revision.unwrap_or_default());
        let WatchEventsRequest { filter, resume_revision } = request.into_inner();
        let filter = WantedEvents::read(filter.unwrap_or_default())?;
        self.0.fresh().await?;
        let history = EventHistory::of(&self.0);
        let (newest, began) = history.view.read(|state| (state.revision, state.incarnation));
        let after = resume_revision.unwrap_or(newest);
        let oldest = newest.saturating_sub(kept_revisions(history.view.len()));
        if after > newest || after < oldest || !began.includes(token) {
            return Err(Fault::ResumeExpired(after).into());
        }
        let responses = EventWatch::new(history, filter, after, began.id).responses();
        let responses = responses.take_until(self.0.shutdown.clone().cancelled_owned());
        let mut response = Response::new(responses.boxed());
        incarnation::name(response.metadata_mut(), began.id);
        Ok(response)
    }
}

/// Returns the answer with a page of later events, which are the oldest first.
fn later_answer(page: EventPage, revision: u64, newest_first: bool) -> ListEventsResponse {
    let EventPage { mut events, rest } = page;
    if newest_first {
        events.reverse();
    }
    ListEventsResponse {
        events,
        revision,
        newer: rest.map(|rest| rest.place.into()),
        examined_to: rest.map(|rest| time::to_wire(rest.time)),
        ..ListEventsResponse::default()
    }
}

/// Stored events of a ledger.
struct EventHistory<R> {
    view: Arc<LedgerView<R>>,
    database: DatabaseConnection,
}

impl<R> EventHistory<R> {
    fn of<T: Table<Kind = R>>(ledger: &Ledger<T>) -> Self {
        Self { view: Arc::clone(&ledger.view), database: ledger.database.clone() }
    }
}

/// Events that a page leaves to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageRest {
    /// Position before which they are; of a later page: from which they are.
    place: EventPlace,
    /// Time of the last change that was examined.
    time: Timestamp,
}
