//! Ledgers of hosts, companions and secrets, and writes to any of them.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chassis::{
    Context, Fault,
    kinds::host::{NAMESPACE, document_key},
    settings::HostSettings,
    store::{
        database::is_shared,
        ledger::{EventHistories, Ledger, Selection, Table},
        resource::Resource,
    },
};
use domain::{core::event::Actor, host::guard::DiscardLimit};
use proto::host::{DocumentKind, ObjectFilter};
use sea_orm::DatabaseConnection;

use super::{
    object::{self, HeldRecord, ObjectChange, ObjectRecord as _},
    vault::SecretVault,
};
use crate::store::{DocumentTable, HostTable, SecretTable};

/// Word for namespaces in refusals.
const NAMESPACE_KIND: &str = "namespace";

/// Ledgers of hosts, companions and secrets.
pub(crate) struct HostLedgers {
    pub(crate) hosts: Ledger<HostTable>,
    pub(super) documents: Ledger<DocumentTable>,
    pub(super) secrets: Ledger<SecretTable>,
    pub(super) vault: SecretVault,
    /// Limit on hosts that give up their systems.
    pub(super) discards: DiscardLimit,
}

/// Write to one record.
pub(super) struct ObjectWrite {
    /// Key of the record.
    pub(super) key: String,
    /// Whether nothing is stored.
    pub(super) validate_only: bool,
    /// Word for the reason, for events.
    pub(super) reason: &'static str,
    /// Author of the write.
    pub(super) actor: Actor,
}

impl ObjectWrite {
    /// A write of a person or a tool.
    pub(super) fn of(key: String, validate_only: bool) -> Self {
        Self { key, validate_only, reason: "", actor: Actor::Client }
    }
}

impl HostLedgers {
    /// Opens the ledgers, and encrypts values again that an earlier key has encrypted.
    ///
    /// # Errors
    /// A table cannot be read, or the keys cannot be used.
    pub(crate) async fn open(context: &Context, database: DatabaseConnection) -> anyhow::Result<Arc<Self>> {
        let is_shared = is_shared(&database);
        let ledgers = Self {
            hosts: Ledger::open(context, database.clone()).await?,
            documents: Ledger::open(context, database.clone()).await?,
            secrets: Ledger::open(context, database).await?,
            vault: SecretVault::open(&context.settings, is_shared)?,
            discards: discards(&context.settings.hosts)?,
        };
        ledgers.seal_again().await?;
        Ok(Arc::new(ledgers))
    }

    /// Checks that records can be made in a namespace. One that is not on record takes every record.
    ///
    /// # Errors
    /// The namespace is being deleted, as far as this replica knows. What another replica makes meanwhile is deleted.
    pub(super) fn check_namespace(&self, namespace: &str) -> Result<(), Fault> {
        if !self.is_deleted_namespace(namespace) {
            return Ok(());
        }
        let reason =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        Err(Fault::Locked { kind: NAMESPACE_KIND.into(), name: namespace.into(), reason })
    }

    /// Returns whether the deletion of a namespace was requested and is not over.
    pub(super) fn is_deleted_namespace(&self, namespace: &str) -> bool {
        let record = self.documents.view().get(&document_key(DocumentKind::Namespace, "", namespace));
        record.is_some_and(|record| record.open().meta().deleted_at.is_some())
    }

    /// Adds the events of hosts, companions and secrets.
    pub(crate) fn with_events(&self, histories: EventHistories) -> EventHistories {
        histories.with(&self.hosts).with(&self.documents).with(&self.secrets)
    }
}

fn discards(settings: &HostSettings) -> anyhow::Result<DiscardLimit> {
    let window = Duration::from_secs(settings.discard_seconds.into());
    Ok(DiscardLimit { most: usize::try_from(settings.discards)?, window })
}

/// Condition on a record.
type RecordCondition<'a, R> = dyn Fn(&R) -> bool + 'a;

/// Other records of a ledger, as a rule sees them.
pub(super) struct OtherRecords<'a, R>(&'a dyn Fn(&RecordCondition<'_, R>) -> usize);

impl<R> OtherRecords<'_, R> {
    /// Returns the number of records, with the one that is written, that a condition holds for.
    pub(super) fn count(&self, holds: impl Fn(&R) -> bool) -> usize {
        (self.0)(&holds)
    }
}

/// Form of the records of a table that rules read and change.
type OpenOf<T> = <<T as Table>::Kind as HeldRecord>::Open;

/// Writes one record by a rule; returns it as stored, or as it last was, and whether it is gone.
pub(super) async fn write<T>(
    ledger: &Ledger<T>,
    write: ObjectWrite,
    rule: impl FnOnce(Option<&OpenOf<T>>) -> Result<ObjectChange<OpenOf<T>>, Fault> + Send + 'static,
) -> Result<(OpenOf<T>, bool), Fault>
where
    T: Table<Kind: HeldRecord>,
{
    write_among(ledger, write, |current, _| rule(current)).await
}

/// Writes one record as [`write()`] does, by a rule that also sees the other records.
pub(super) async fn write_among<T>(
    ledger: &Ledger<T>,
    write: ObjectWrite,
    rule: impl FnOnce(Option<&OpenOf<T>>, &OtherRecords<'_, OpenOf<T>>) -> Result<ObjectChange<OpenOf<T>>, Fault>
    + Send
    + 'static,
) -> Result<(OpenOf<T>, bool), Fault>
where
    T: Table<Kind: HeldRecord>,
{
    let ObjectWrite { key, validate_only, reason, actor } = write;
    if validate_only {
        ledger.fresh().await?;
        let count = |holds: &RecordCondition<'_, OpenOf<T>>| {
            ledger.view().all().iter().filter(|record| holds(&record.open())).count()
        };
        let current = ledger.view().get(&key).map(|record| record.open());
        return Ok(judged(rule(current.as_ref(), &OtherRecords(&count))?));
    }
    let written = key.clone();
    let change = ledger.write_by(actor, move |draft| {
        let count =
            |holds: &RecordCondition<'_, OpenOf<T>>| draft.select(|record| holds(&record.open())).len();
        let current = draft.get(&key).map(|record| record.open());
        let change = rule(current.as_ref(), &OtherRecords(&count))?;
        match &change {
            ObjectChange::Stored(record) => draft.put_because(T::Kind::close(record.clone()), reason),
            ObjectChange::Gone(record) => {
                draft.put_because(T::Kind::close(record.clone()), reason);
                draft.delete(&key);
            }
            ObjectChange::Unchanged(_) => {}
        }
        Ok(judged(change))
    });
    let ((record, is_gone), _) = change.await?;
    // The record in memory has its revision.
    let stored = ledger.view().get(&written).filter(|_| !is_gone);
    Ok((stored.map_or(record, |stored| stored.open()), is_gone))
}

fn judged<R>(change: ObjectChange<R>) -> (R, bool) {
    match change {
        ObjectChange::Stored(record) | ObjectChange::Unchanged(record) => (record, false),
        ObjectChange::Gone(record) => (record, true),
    }
}

/// Returns the record of that key, with every write that was acknowledged before.
pub(super) async fn read<T: Table>(ledger: &Ledger<T>, key: &str) -> Result<Arc<T::Kind>, Fault> {
    ledger.fresh().await?;
    ledger.view().get(key).ok_or_else(|| Fault::not_found(T::Kind::KIND, key))
}

/// Returns the selection of a list.
pub(super) fn selection<R: HeldRecord>(
    filter: Option<ObjectFilter>,
    after: String,
    page_size: u32,
    wanted: impl Fn(&R) -> bool + Send + 'static,
) -> Selection<R> {
    let filter = filter.unwrap_or_default();
    let conditions = filter.namespace.iter().map(|namespace| vec![(NAMESPACE, namespace.clone())]).collect();
    Selection {
        keys: BTreeSet::new(),
        after,
        most: if page_size == 0 { usize::MAX } else { page_size as usize },
        conditions,
        wanted: Box::new(move |record| wanted(record) && object::passes(record, &filter)),
    }
}
