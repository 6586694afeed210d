//! Events of changes: recorded while a change is computed, numbered with it, and stored in its transaction.
//!
//! A row holds the events of consecutive changes of one commit. Resources that change alike share the encoded events,
//! so that a change of a fleet costs one row for some hundred components and little more than their keys. There is no
//! index by key: each change names the revision of the previous change of its resource that has events, and the
//! resource names the latest one.

use std::{collections::HashMap, ops::Range, sync::Arc};

use domain::core::{
    event::{Actor, EventContent},
    time::Timestamp,
};
use proto::{Message, event as wire};
use sea_orm::{
    ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbErr, QueryFilter, QueryOrder, QuerySelect,
    entity::prelude::*, sea_query::OnConflict,
};

/// Rule that gives the events of a change by an actor, from the resource before and after. The text is the word for the
/// rule that decided the change, or empty.
pub type EventRule<R> = fn(Option<&R>, Option<&R>, Actor, &str) -> Vec<EventContent>;

/// Changes in one row: a list of one resource reads a row for each change.
const CHANGES: usize = 256;

/// Rows in one statement.
const ROWS: usize = 100;

/// Revisions between two deletions of old events.
const PRUNED_EVERY: u64 = 4096;

/// Rows that are looked at for their age in each deletion: more than revisions can have made since the one before.
const AGED_ROWS: u64 = 2 * PRUNED_EVERY;

/// Age at which events are forgotten: some months would serve nobody, and a weekly maintenance has to be comparable.
pub(super) const KEPT_FOR: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);

/// Changes with events that are kept for each resource on average, and of which a list reads so many of each wanted
/// resource. A boot has about eight.
pub(super) const KEPT_EACH: usize = 64;

/// Fewest revisions whose events are kept: a small fleet has room for a long story.
const KEPT_LEAST: u64 = 1 << 16;

/// Every time.
pub(super) const ANY_TIME: Range<Timestamp> = Timestamp(i64::MIN)..Timestamp(i64::MAX);

/// Longest text of an event, in characters: the record of the resource has the whole text.
const LONGEST_TEXT: usize = 1000;

/// Number of revisions whose events are kept of a collection of so many resources.
pub(super) fn kept_revisions(resources: usize) -> u64 {
    (resources.saturating_mul(KEPT_EACH) as u64).max(KEPT_LEAST)
}

mod event {
    use super::*;

    /// Events of consecutive changes of one commit.
    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "events")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub kind: String,
        /// Revision of the last of the changes.
        #[sea_orm(primary_key, auto_increment = false)]
        pub revision: i64,
        /// Time of the commit, in milliseconds.
        pub time: i64,
        pub record: Vec<u8>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Author of a change, and the request that made it.
pub(super) struct ChangeOrigin {
    pub(super) actor: Actor,
    /// Name of the client on whose behalf the change was made, where it is known.
    pub(super) client: Option<String>,
    /// Id of the request; empty: none.
    pub(super) request_id: String,
}

/// Letter between the word for clients and the name of one. No word of a service has it.
const NAME_FOLLOWS: char = ':';

impl ChangeOrigin {
    /// Returns the word for the author, with the name of the client if a client is the author.
    fn author(&self) -> String {
        let word = self.actor.word();
        match (self.actor, &self.client) {
            (Actor::Client, Some(name)) => format!("{word}{NAME_FOLLOWS}{name}"),
            (Actor::Client, None) | (Actor::Service(_), _) => word.to_owned(),
        }
    }

    fn encode(&self, events: Vec<EventContent>) -> Arc<[u8]> {
        let stored = wire::StoredEvents {
            events: events.into_iter().map(body).collect(),
            actor: self.author(),
            request_id: self.request_id.clone(),
        };
        stored.encode_to_vec().into()
    }
}

/// Returns the word for the kind of an author, without the name of the client.
pub(super) fn author_kind(author: &str) -> &str {
    author.split_once(NAME_FOLLOWS).map_or(author, |(kind, _)| kind)
}

fn body(event: EventContent) -> wire::EventBody {
    let details = event.details.into_iter();
    let details =
        details.map(|(name, value)| wire::EventDetail { name: name.to_owned(), value: shortened(&value) });
    let session = event.session.as_ref();
    wire::EventBody {
        kind: event.kind.to_owned(),
        reason: event.reason.into_owned(),
        text: shortened(&event.text),
        details: details.collect(),
        session: session.map(|session| session.name.to_string()).unwrap_or_default(),
        session_tenant: session.map(|session| session.tenant.to_string()).unwrap_or_default(),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}

/// Events of one change on their way to a transaction.
pub(super) struct RecordedEvents {
    pub(super) key: Arc<str>,
    /// Revision of the previous change of the resource that has events; 0: there is none.
    previous: u64,
    /// Revision of the change; 0 until its commit.
    pub(super) revision: u64,
    encoded: Arc<[u8]>,
}

/// Events that one command records.
pub(super) struct EventRecorder<R> {
    rule: Option<EventRule<R>>,
    origin: ChangeOrigin,
    pub(super) recorded: Vec<RecordedEvents>,
    /// Events of the last change: the next one is often of the same kind.
    last: Option<(Vec<EventContent>, Arc<[u8]>)>,
}

impl<R> EventRecorder<R> {
    pub(super) fn new(rule: Option<EventRule<R>>, origin: ChangeOrigin) -> Self {
        Self { rule, origin, recorded: Vec::new(), last: None }
    }

    /// Whether changes of the kind have events.
    pub(super) fn is_on(&self) -> bool {
        self.rule.is_some()
    }

    /// Records the events of a change from `before` to `after`, whose previous events are of the revision `previous`:
    /// those of the rule, and further ones.
    pub(super) fn record(
        &mut self,
        key: &Arc<str>,
        (before, after): (Option<&R>, Option<&R>),
        previous: u64,
        (reason, further): (&str, Vec<EventContent>),
    ) {
        let Some(rule) = self.rule else { return };
        let mut events = rule(before, after, self.origin.actor, reason);
        events.extend(further);
        if events.is_empty() {
            return;
        }
        let encoded = match &self.last {
            Some((last, encoded)) if *last == events => Arc::clone(encoded),
            _ => {
                let encoded = self.origin.encode(events.clone());
                self.last = Some((events, Arc::clone(&encoded)));
                encoded
            }
        };
        self.recorded.push(RecordedEvents { key: Arc::clone(key), previous, revision: 0, encoded });
    }
}

/// Row of events before its insertion.
pub(super) struct EventRow {
    revision: u64,
    time: Timestamp,
    record: Vec<u8>,
}

/// Makes rows of numbered events, which are in the order of their revisions.
pub(super) fn rows(recorded: &[RecordedEvents], time: Timestamp) -> Vec<EventRow> {
    let mut rows = Vec::new();
    let mut rest = recorded;
    while let Some(last) = rest.get(..CHANGES).unwrap_or(rest).last() {
        let end = rest.len().min(CHANGES);
        // All events of one revision are in one row.
        let end = end + rest[end..].iter().take_while(|events| events.revision == last.revision).count();
        let (row, later) = rest.split_at(end);
        rows.push(EventRow { revision: last.revision, time, record: block(row).encode_to_vec() });
        rest = later;
    }
    rows
}

fn block(recorded: &[RecordedEvents]) -> wire::StoredEventBlock {
    let mut block = wire::StoredEventBlock::default();
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    let mut last: Option<(&Arc<[u8]>, usize)> = None;
    for RecordedEvents { key, previous, revision, encoded } in recorded {
        let place = match last {
            Some((last, place)) if Arc::ptr_eq(last, encoded) => place,
            _ => *places.entry(encoded).or_insert_with(|| {
                block.groups.push(wire::StoredEventGroup { events: encoded.to_vec(), changes: Vec::new() });
                block.groups.len() - 1
            }),
        };
        last = Some((encoded, place));
        block.groups[place].changes.push(wire::StoredEventChange {
            key: key.to_string(),
            revision: *revision,
            previous: *previous,
        });
    }
    block
}

/// Inserts rows.
pub(super) async fn insert(on: &DatabaseTransaction, kind: &str, rows: &[EventRow]) -> Result<(), DbErr> {
    for chunk in rows.chunks(ROWS) {
        let rows = chunk.iter().map(|row| event::ActiveModel {
            kind: Set(kind.to_owned()),
            revision: Set(row.revision.cast_signed()),
            time: Set(row.time.0),
            record: Set(row.record.clone()),
        });
        // Tables that were restored one by one may hold events of commits that the others have lost.
        let overwrite = OnConflict::columns([event::Column::Kind, event::Column::Revision])
            .update_columns([event::Column::Time, event::Column::Record])
            .to_owned();
        event::Entity::insert_many(rows).on_conflict(overwrite).exec_without_returning(on).await?;
    }
    Ok(())
}

/// Deletes old events, once in [`PRUNED_EVERY`] revisions: those of revisions before the last `kept` ones, and of the
/// oldest rows those that have passed their age. The work is in proportion to the changes since the last deletion.
pub(super) async fn prune(
    on: &DatabaseTransaction,
    kind: &str,
    (from, to): (u64, u64),
    kept: u64,
    now: Timestamp,
) -> Result<(), DbErr> {
    if from / PRUNED_EVERY == to / PRUNED_EVERY {
        return Ok(());
    }
    delete_up_to(on, kind, to.saturating_sub(kept)).await?;
    let aged = event::Entity::find()
        .select_only()
        .columns([event::Column::Revision, event::Column::Time])
        .filter(event::Column::Kind.eq(kind))
        .order_by_asc(event::Column::Revision)
        .limit(AGED_ROWS)
        .into_tuple::<(i64, i64)>();
    let earliest = now.0.saturating_sub(KEPT_FOR.as_millis().try_into().unwrap_or(i64::MAX));
    let aged = aged.all(on).await?.into_iter().take_while(|(_, time)| *time < earliest).last();
    match aged {
        Some((revision, _)) => delete_up_to(on, kind, revision.cast_unsigned()).await,
        None => Ok(()),
    }
}

async fn delete_up_to(on: &DatabaseTransaction, kind: &str, revision: u64) -> Result<(), DbErr> {
    event::Entity::delete_many()
        .filter(event::Column::Kind.eq(kind))
        .filter(event::Column::Revision.lte(revision.cast_signed()))
        .exec(on)
        .await
        .map(drop)
}

/// Row of events as it is stored.
pub(super) struct StoredRow {
    pub(super) revision: u64,
    pub(super) time: Timestamp,
    groups: Vec<(wire::StoredEvents, Vec<wire::StoredEventChange>)>,
}

/// Change of one resource with its events.
pub(super) struct StoredChange<'a> {
    pub(super) change: &'a wire::StoredEventChange,
    pub(super) events: &'a wire::StoredEvents,
}

impl StoredRow {
    fn read(row: event::Model) -> Result<Self, DbErr> {
        let unreadable = |error| DbErr::Custom(format!("events of revision {}: {error}", row.revision));
        let block = wire::StoredEventBlock::decode(row.record.as_slice()).map_err(unreadable)?;
        let groups = block.groups.into_iter().map(|group| {
            Ok((wire::StoredEvents::decode(group.events.as_slice()).map_err(unreadable)?, group.changes))
        });
        let groups = groups.collect::<Result<_, DbErr>>()?;
        Ok(Self { revision: row.revision.cast_unsigned(), time: Timestamp(row.time), groups })
    }

    /// Returns the lowest revision of a change.
    pub(super) fn first(&self) -> u64 {
        let changes = self.groups.iter().flat_map(|(_, changes)| changes);
        changes.map(|change| change.revision).min().unwrap_or(self.revision)
    }

    /// The changes that `wanted` picks, in the order of their revisions.
    pub(super) fn changes(&self, wanted: impl Fn(&wire::StoredEventChange) -> bool) -> Vec<StoredChange<'_>> {
        let all = self
            .groups
            .iter()
            .flat_map(|(events, changes)| changes.iter().map(move |change| StoredChange { change, events }));
        let mut picked: Vec<_> = all.filter(|one| wanted(one.change)).collect();
        picked.sort_by_key(|one| one.change.revision);
        picked
    }
}

/// The row that holds the change of `revision`, or a later one if that is forgotten.
pub(super) async fn row_of(
    on: &impl ConnectionTrait,
    kind: &str,
    revision: u64,
) -> Result<Option<StoredRow>, DbErr> {
    Ok(rows_after(on, kind, revision.saturating_sub(1), ANY_TIME.start, 1).await?.pop())
}

/// Up to `most` rows after a revision that are not older than `since`, the oldest first.
pub(super) async fn rows_after(
    on: &impl ConnectionTrait,
    kind: &str,
    revision: u64,
    since: Timestamp,
    most: u64,
) -> Result<Vec<StoredRow>, DbErr> {
    let rows = event::Entity::find()
        .filter(event::Column::Kind.eq(kind))
        .filter(event::Column::Revision.gt(revision.cast_signed()))
        .filter(event::Column::Time.gte(since.0))
        .order_by_asc(event::Column::Revision)
        .limit(most);
    rows.all(on).await?.into_iter().map(StoredRow::read).collect()
}

/// Up to `most` rows before a revision that are older than `until`, the newest first. The database passes over later
/// rows without reading their records.
pub(super) async fn rows_before(
    on: &impl ConnectionTrait,
    kind: &str,
    revision: u64,
    until: Timestamp,
    most: u64,
) -> Result<Vec<StoredRow>, DbErr> {
    let rows = event::Entity::find()
        .filter(event::Column::Kind.eq(kind))
        .filter(event::Column::Revision.lt(revision.cast_signed()))
        .filter(event::Column::Time.lt(until.0))
        .order_by_desc(event::Column::Revision)
        .limit(most);
    rows.all(on).await?.into_iter().map(StoredRow::read).collect()
}

#[cfg(test)]
mod tests {
    use sea_orm::{DatabaseConnection, TransactionTrait};
    use sea_orm_migration::MigratorTrait;
    use test_databases::EmptyDatabase;

    use super::*;
    use crate::store::database::{self, LedgerTables};

    struct Migrator;

    impl MigratorTrait for Migrator {
        fn migrations() -> Vec<Box<dyn sea_orm_migration::MigrationTrait>> {
            vec![Box::new(LedgerTables)]
        }
    }

    /// A database with a row of each revision, whose times are the revisions.
    async fn stored(empty: &EmptyDatabase, revisions: std::ops::Range<u64>) -> DatabaseConnection {
        let database = database::connect::<Migrator>(&empty.url).await.unwrap();
        let transaction = database.begin().await.unwrap();
        let row = |revision: u64| EventRow {
            revision,
            time: Timestamp(revision.cast_signed()),
            record: Vec::new(),
        };
        let rows: Vec<_> = revisions.map(row).collect();
        insert(&transaction, "note", &rows).await.unwrap();
        transaction.commit().await.unwrap();
        database
    }

    async fn left_after(
        database: &DatabaseConnection,
        moved: (u64, u64),
        kept: u64,
        now: Timestamp,
    ) -> Vec<u64> {
        let transaction = database.begin().await.unwrap();
        prune(&transaction, "note", moved, kept, now).await.unwrap();
        let left = rows_after(&transaction, "note", 0, ANY_TIME.start, 1000).await.unwrap();
        transaction.rollback().await.unwrap();
        left.iter().map(|row| row.revision).collect()
    }

    #[tokio::test]
    async fn old_events_are_deleted_by_count_and_by_age() {
        for empty in test_databases::every_kind().await {
            let database = stored(&empty, 1..10).await;
            let age = i64::try_from(KEPT_FOR.as_millis()).unwrap();
            let young = Timestamp(0);
            let all: Vec<u64> = (1..10).collect();
            let (few, many) = ((1, 9), (1, PRUNED_EVERY));
            for (name, moved, kept, now, left) in [
                ("too few changes", few, 3, Timestamp(age + 5), &all[..]),
                ("all are kept", many, PRUNED_EVERY, young, &all),
                ("too many", many, PRUNED_EVERY - 4, young, &all[4..]),
                ("too old", many, PRUNED_EVERY, Timestamp(age + 7), &all[6..]),
                ("both", many, PRUNED_EVERY - 4, Timestamp(age + 7), &all[6..]),
            ] {
                assert_eq!(left_after(&database, moved, kept, now).await, left, "{name} {}", empty.kind);
            }
        }
    }

    #[test]
    fn large_collections_keep_more() {
        assert_eq!(kept_revisions(0), KEPT_LEAST);
        assert_eq!(kept_revisions(100_000), 6_400_000);
    }
}
