//! Lists and watches of the events of a ledger.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
    time::Duration,
};

use domain::core::{invalid::Invalid, time::Timestamp};
use futures_util::{StreamExt, stream};
use proto::event::{
    Event, EventFilter, ListEventsRequest, ListEventsResponse, WatchEventsRequest, WatchEventsResponse,
    event_service_server::{EventService, EventServiceServer},
};
use sea_orm::{DatabaseConnection, DbErr};
use tonic::{Request, Response, Status, async_trait};
use uuid::Uuid;

use super::{
    Ledger, Responses, ResumeToken, Table,
    events::{self, KEPT_EACH, KEPT_FOR, StoredChange, StoredRow, kept_revisions},
    incarnation,
    view::LedgerView,
};
use crate::{Fault, mesh::time, process::clock, store::resource::Resource};

/// Most events of a list.
const MOST: usize = 1000;

/// Most keys of a filter: the story of each is read by itself.
const MOST_KEYS: usize = 100;

/// Rows in one query.
const ROWS: u64 = 32;

/// Rows that a list examines for resources that do not exist any more, or for kinds of event: some hundred milliseconds.
const EXAMINED: usize = 2_000;

/// Least time between two queries of a watch, within which the events of many commits come together.
const PACE: Duration = Duration::from_millis(200);

/// Events of a ledger over gRPC.
pub struct EventRpc<T: Table>(Ledger<T>);

impl<T: Table> Ledger<T> {
    /// Lists and watches the events of this ledger.
    pub fn events(&self) -> EventRpc<T> {
        EventRpc(self.clone())
    }

    /// As [`Self::events`], to be served.
    pub fn event_service(&self) -> EventServiceServer<EventRpc<T>> {
        EventServiceServer::new(self.events())
    }
}

#[async_trait]
impl<T: Table> EventService for EventRpc<T> {
    async fn list_events(
        &self,
        request: Request<ListEventsRequest>,
    ) -> Result<Response<ListEventsResponse>, Status> {
        let ListEventsRequest { filter, page_size } = request.into_inner();
        let filter = WantedEvents::read(filter.unwrap_or_default())?;
        let most = if page_size == 0 { MOST } else { MOST.min(page_size as usize) };
        self.0.fresh().await?;
        let history = EventHistory::of(&self.0);
        let revision = self.0.view.revision();
        let events = history.list(&filter, most).await.map_err(Fault::from)?;
        Ok(Response::new(ListEventsResponse { events, revision }))
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
        let watch = EventWatch { history, filter, after, is_first: true, incarnation: began.id };
        let responses = stream::unfold(Some(watch), EventWatch::next);
        let responses = responses.take_until(self.0.shutdown.clone().cancelled_owned());
        let mut response = Response::new(responses.boxed());
        incarnation::name(response.metadata_mut(), began.id);
        Ok(response)
    }
}

/// Filter of a request.
struct WantedEvents {
    keys: BTreeSet<String>,
    key_prefix: String,
    kinds: BTreeSet<String>,
    since: Timestamp,
}

impl WantedEvents {
    fn read(filter: EventFilter) -> Result<Self, Fault> {
        if filter.keys.len() > MOST_KEYS {
            return Err(Invalid::new("filter.keys", format!("has more than {MOST_KEYS} keys")).into());
        }
        let age = i64::try_from(KEPT_FOR.as_millis()).unwrap_or(i64::MAX);
        let earliest = Timestamp(clock::now().0.saturating_sub(age));
        Ok(Self {
            keys: filter.keys.into_iter().collect(),
            key_prefix: filter.key_prefix,
            kinds: filter.kinds.into_iter().collect(),
            since: filter.since.map_or(earliest, |since| time::from_wire(since).max(earliest)),
        })
    }

    /// Whether a resource is wanted.
    fn is_about(&self, key: &str) -> bool {
        (self.keys.is_empty() || self.keys.contains(key)) && key.starts_with(&self.key_prefix)
    }

    /// The wanted events of a row that are about resources outside `told`.
    fn of_row(&self, row: &StoredRow, kind: &str, told: &BTreeSet<String>) -> Vec<Event> {
        if row.time < self.since {
            return Vec::new();
        }
        let changes = row.changes(|change| self.is_about(&change.key) && !told.contains(&change.key));
        changes.iter().flat_map(|change| self.of_change(change, row, kind)).collect()
    }

    fn of_change(&self, one: &StoredChange<'_>, row: &StoredRow, kind: &str) -> Vec<Event> {
        let wanted =
            one.events.events.iter().filter(|body| self.kinds.is_empty() || self.kinds.contains(&body.kind));
        let events = wanted.map(|body| Event {
            key: one.change.key.clone(),
            resource: kind.to_owned(),
            revision: one.change.revision,
            time: Some(time::to_wire(row.time)),
            actor: one.events.actor.clone(),
            request_id: one.events.request_id.clone(),
            body: Some(body.clone()),
        });
        events.collect()
    }
}

/// Stored events of a ledger.
struct EventHistory<R> {
    view: Arc<LedgerView<R>>,
    database: DatabaseConnection,
}

impl<R: Resource> EventHistory<R> {
    fn of<T: Table<Kind = R>>(ledger: &Ledger<T>) -> Self {
        Self { view: Arc::clone(&ledger.view), database: ledger.database.clone() }
    }

    /// The newest of the wanted events, the oldest first.
    async fn list(&self, filter: &WantedEvents, most: usize) -> Result<Vec<Event>, DbErr> {
        let mut events = Vec::new();
        let mut told = BTreeSet::new();
        let mut rows = BTreeMap::new();
        for key in self.few_keys(filter) {
            if let Some(resource) = self.view.get(&key).filter(|_| filter.is_about(&key)) {
                events.extend(self.story(filter, &key, resource.last_event(), &mut rows).await?);
                told.insert(key);
            }
        }
        if filter.keys.is_empty() || told.len() < filter.keys.len() {
            events.extend(self.newest(filter, &told, most).await?);
        }
        // Stable, so that the events of one change stay in their order.
        events.sort_by_key(|event| event.revision);
        events.drain(..events.len().saturating_sub(most));
        Ok(events)
    }

    /// The keys of a filter, or those that begin as it wants if they are few: the events of a quiet namespace would not be
    /// among the newest of all.
    fn few_keys(&self, filter: &WantedEvents) -> Vec<String> {
        let prefix = &*filter.key_prefix;
        if !filter.keys.is_empty() || prefix.is_empty() {
            return filter.keys.iter().cloned().collect();
        }
        let keys: Vec<_> = self.view.read(|state| {
            let following = state.resources.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
            let keys = following.map(|held| held.0.key()).take_while(|key| key.starts_with(prefix));
            keys.take(MOST_KEYS + 1).map(str::to_owned).collect()
        });
        if keys.len() > MOST_KEYS { Vec::new() } else { keys }
    }

    /// The latest events of one resource, from change to change. `rows` keeps the rows that were read: a fleet changes
    /// together.
    async fn story(
        &self,
        filter: &WantedEvents,
        key: &str,
        latest: u64,
        rows: &mut BTreeMap<u64, StoredRow>,
    ) -> Result<Vec<Event>, DbErr> {
        let mut events = Vec::new();
        let mut revision = latest;
        for _ in 0..KEPT_EACH {
            if revision == 0 {
                break;
            }
            if !rows.range(revision..).next().is_some_and(|(_, row)| holds(row, key, revision))
                && let Some(row) = events::row_of(&self.database, R::KIND, revision).await?
            {
                rows.insert(row.revision, row);
            }
            let Some((_, row)) = rows.range(revision..).next() else { break };
            let changes = row.changes(|change| change.key == key && change.revision == revision);
            let Some(first) = changes.first().filter(|_| row.time >= filter.since) else { break };
            events.extend(changes.iter().flat_map(|change| filter.of_change(change, row, R::KIND)));
            revision = first.change.previous;
        }
        Ok(events)
    }

    /// The newest of the wanted events that are about resources outside `told`.
    async fn newest(
        &self,
        filter: &WantedEvents,
        told: &BTreeSet<String>,
        most: usize,
    ) -> Result<Vec<Event>, DbErr> {
        let mut events = Vec::new();
        let (mut before, mut examined) = (u64::MAX >> 1, 0);
        while events.len() < most && examined < EXAMINED {
            let rows = events::rows_before(&self.database, R::KIND, before, ROWS).await?;
            let Some(last) = rows.last() else { break };
            before = last.revision;
            let is_past = last.time < filter.since;
            examined += rows.len();
            events.extend(rows.iter().flat_map(|row| filter.of_row(row, R::KIND, told)));
            if is_past {
                break;
            }
        }
        Ok(events)
    }
}

/// Whether the row holds that change.
fn holds(row: &StoredRow, key: &str, revision: u64) -> bool {
    !row.changes(|change| change.key == key && change.revision == revision).is_empty()
}

/// Watch in progress.
struct EventWatch<R> {
    history: EventHistory<R>,
    filter: WantedEvents,
    after: u64,
    is_first: bool,
    incarnation: Uuid,
}

impl<R: Resource> EventWatch<R> {
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
            let rows = events::rows_after(&self.history.database, R::KIND, self.after, ROWS).await?;
            // A commit that is not shown yet may still be lost to watchers of the resources.
            let rows: Vec<_> = rows.into_iter().take_while(|row| row.revision <= newest).collect();
            self.after = match rows.last() {
                Some(last) if rows.len() as u64 == ROWS => last.revision,
                Some(_) | None => newest,
            };
            let none = BTreeSet::new();
            let wanted = rows.iter().flat_map(|row| self.filter.of_row(row, R::KIND, &none));
            let events: Vec<_> = wanted.collect();
            if self.is_first || !events.is_empty() {
                self.is_first = false;
                return Ok(WatchEventsResponse { events, revision: self.after });
            }
        }
    }
}
