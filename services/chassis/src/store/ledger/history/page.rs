//! Pages of events, the newest first, and later pages.
//!
//! The story of a resource is read from change to change. Where that is not possible, rows are examined one after the
//! other: for all resources, for one whose record is gone or began later than the story, and for several resources
//! before a position.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use proto::event::{Event, EventPosition};
use sea_orm::DbErr;

use super::{EventHistory, PageRest, ROWS, WantedEvents, wanted::MOST_KEYS};
use crate::store::{
    ledger::events::{self, KEPT_EACH, StoredRow},
    resource::Resource,
};

/// Rows that a page examines: some hundred milliseconds. Stories of several resources share it.
pub(super) const EXAMINED: usize = 2_000;

/// Position in the history of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventPlace {
    revision: u64,
    index: u32,
}

impl EventPlace {
    /// Position after every event. The database has signed numbers.
    const END: Self = Self::at(u64::MAX >> 1);

    /// Position before the events of a revision.
    pub(super) const fn at(revision: u64) -> Self {
        Self { revision, index: 0 }
    }

    pub(super) fn of(event: &Event) -> Self {
        Self { revision: event.revision, index: event.index }
    }

    /// Returns the position after the event at this one.
    pub(super) fn next(self) -> Self {
        Self { index: self.index + 1, ..self }
    }

    /// Returns the last revision before this one.
    pub(super) fn before_revision(self) -> u64 {
        self.revision.saturating_sub(1)
    }
}

impl From<EventPosition> for EventPlace {
    fn from(position: EventPosition) -> Self {
        Self { revision: position.revision, index: position.index }.min(Self::END)
    }
}

impl From<EventPlace> for EventPosition {
    fn from(place: EventPlace) -> Self {
        Self { revision: place.revision, index: place.index }
    }
}

/// Page of events.
#[derive(Default)]
pub(super) struct EventPage {
    /// The wanted events, the newest first.
    pub(super) events: Vec<Event>,
    /// Older events that may be wanted; `None`: there are none.
    pub(super) rest: Option<PageRest>,
}

impl EventPage {
    /// Adds events of other resources. What only one of both has examined belongs to the next page.
    fn add(&mut self, other: Self) {
        self.events.extend(other.events);
        self.rest = self.rest.into_iter().chain(other.rest).max_by_key(|rest| rest.place);
    }

    /// Orders the events and leaves all but `most` to the next page.
    fn cut(mut self, most: usize) -> Self {
        if let Some(rest) = self.rest {
            self.events.retain(|event| EventPlace::of(event) >= rest.place);
        }
        self.events.sort_by_key(|event| std::cmp::Reverse(EventPlace::of(event)));
        if self.events.len() > most {
            self.events.truncate(most);
            self.rest = self.events.last().map(|last| PageRest {
                place: EventPlace::of(last),
                time: last.time.map(crate::mesh::time::from_wire).unwrap_or_default(),
            });
        }
        self
    }
}

impl<R: Resource> EventHistory<R> {
    /// Returns the newest of the wanted events, or the newest before a place.
    pub(super) async fn page(
        &self,
        filter: &WantedEvents,
        before: Option<EventPlace>,
        most: usize,
    ) -> Result<EventPage, DbErr> {
        let mut page = EventPage::default();
        let mut told = BTreeSet::new();
        let mut rows = BTreeMap::new();
        let keys = self.few_keys(filter);
        let end = before.unwrap_or(EventPlace::END);
        for key in &keys {
            if let Some(latest) = self.latest(key, keys.len(), before).await? {
                let story = StoryRequest { key, of: keys.len(), latest, before: end, most };
                page.add(self.story(filter, &story, &mut rows).await?);
                told.insert(key.clone());
            }
        }
        if filter.keys.is_empty() || told.len() < filter.keys.len() {
            let examined = self.examine(filter, &told, end, most).await?;
            // Stories of a quiet namespace are older than the rows that one page examines.
            let is_told = filter.keys.is_empty() && !told.is_empty();
            page.add(if is_told { EventPage { rest: None, ..examined } } else { examined });
        }
        Ok(page.cut(most))
    }

    /// Returns the keys of a filter, or those that begin as it wants if they are few: the events of a quiet namespace
    /// would not be among the newest of all.
    fn few_keys(&self, filter: &WantedEvents) -> BTreeSet<String> {
        let prefix = &*filter.key_prefix;
        if !filter.keys.is_empty() || prefix.is_empty() {
            return filter.keys.iter().filter(|key| filter.is_about(key)).cloned().collect();
        }
        let keys: BTreeSet<_> = self.view.read(|state| {
            let following = state.resources.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
            let keys = following.map(|held| held.0.key()).take_while(|key| key.starts_with(prefix));
            keys.take(MOST_KEYS + 1).map(str::to_owned).collect()
        });
        if keys.len() > MOST_KEYS { BTreeSet::new() } else { keys }
    }

    /// Returns the revision of the latest change in the story of one `of` so many resources; `None`: the story has to be
    /// searched for.
    async fn latest(&self, key: &str, of: usize, before: Option<EventPlace>) -> Result<Option<u64>, DbErr> {
        let Some(before) = before else {
            let latest = self.view.get(key).map(|resource| resource.last_event());
            return Ok(latest.filter(|latest| *latest > 0));
        };
        if of > 1 {
            return Ok(None);
        }
        let row = events::row_of(&self.database, R::KIND, before.revision).await?;
        // Before the first change of a record there may be a record of the same name.
        Ok(row
            .and_then(|row| previous(&row, key, before.revision))
            .filter(|previous| *previous > 0)
            .map(|previous| if before.index > 0 { before.revision } else { previous }))
    }

    /// Reads the story of one resource from change to change. Before its record there may be one of the same name, for
    /// which a later page examines rows; of several resources none is, since that would hide the older events of the
    /// others. `rows` keeps the rows that were read: a fleet changes together.
    async fn story(
        &self,
        filter: &WantedEvents,
        StoryRequest { key, of, latest, before, most }: &StoryRequest<'_>,
        rows: &mut BTreeMap<u64, StoredRow>,
    ) -> Result<EventPage, DbErr> {
        let mut page = EventPage::default();
        let mut revision = *latest;
        for _ in 0..KEPT_EACH.max(EXAMINED / of) {
            let is_read =
                rows.range(revision..).next().is_some_and(|(_, row)| previous(row, key, revision).is_some());
            if !is_read && let Some(row) = events::row_of(&self.database, R::KIND, revision).await? {
                rows.insert(row.revision, row);
            }
            let Some((_, row)) = rows.range(revision..).next() else {
                return Ok(EventPage { rest: None, ..page });
            };
            let Some(previous) = previous(row, key, revision).filter(|_| row.time >= filter.since) else {
                return Ok(EventPage { rest: None, ..page });
            };
            let changes = row.changes(|change| change.key == *key && change.revision == revision);
            let events = filter.of_changes(&changes, row, R::KIND).into_iter();
            page.events.extend(events.filter(|event| EventPlace::of(event) < *before));
            page.rest = Some(PageRest { place: EventPlace::at(revision), time: row.time });
            if previous == 0 && *of > 1 {
                return Ok(EventPage { rest: None, ..page });
            }
            if previous == 0 || page.events.len() > *most {
                break;
            }
            revision = previous;
        }
        Ok(page)
    }

    /// Examines rows for the newest events before a place about wanted resources outside `told`.
    async fn examine(
        &self,
        filter: &WantedEvents,
        told: &BTreeSet<String>,
        before: EventPlace,
        most: usize,
    ) -> Result<EventPage, DbErr> {
        let mut page = EventPage::default();
        let first = events::row_of(&self.database, R::KIND, before.revision).await?;
        let mut below = first.map_or(EventPlace::END.revision, |row| row.revision + 1);
        let mut examined = 0;
        while page.events.len() <= most && examined < EXAMINED {
            let rows = events::rows_before(&self.database, R::KIND, below, filter.until, ROWS).await?;
            let recent = rows.iter().take_while(|row| row.time >= filter.since);
            let events = recent.clone().flat_map(|row| filter.of_row(row, R::KIND, told));
            page.events.extend(events.filter(|event| EventPlace::of(event) < before));
            let Some(last) = recent.clone().last().filter(|_| recent.count() as u64 == ROWS) else {
                return Ok(EventPage { rest: None, ..page });
            };
            examined += rows.len();
            below = last.revision;
            page.rest = Some(PageRest { place: EventPlace::at(last.first()), time: last.time });
        }
        Ok(page)
    }
}

/// Request for the story of one resource.
struct StoryRequest<'a> {
    key: &'a str,
    /// Number of resources whose stories are wanted.
    of: usize,
    /// Revision of the change to begin with.
    latest: u64,
    /// Position before which events are wanted.
    before: EventPlace,
    most: usize,
}

/// Returns the revision of the change of a resource before the one of `revision`, 0 for none; `None`: the row does not
/// hold the change of `revision`.
fn previous(row: &StoredRow, key: &str, revision: u64) -> Option<u64> {
    let changes = row.changes(|change| change.key == key && change.revision == revision);
    changes.first().map(|first| first.change.previous)
}
