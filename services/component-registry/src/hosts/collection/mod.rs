//! Deletion of records that go with others: dependents with their owners, and the content of a namespace
//! (`domain::core::ownership`).
//!
//! A task looks at each record that has changed, and at its dependents. It takes one step at a time: a write that holds only
//! for the unique id of the record, so that it can be repeated. The change that a step makes leads to the next step.

mod index;

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use chassis::{
    Fault,
    kinds::host::OpenDocument,
    observe::work::WorkQueue,
    process::clock,
    store::{
        ledger::{Ledger, Table},
        resource::{Batch, Resource as _},
    },
};
use domain::core::{
    bos_time,
    event::Actor,
    ownership::{
        CollectionReason, CollectionStep, OwnedRecord, OwnerSight, Propagation, RecordOwner, next_step,
    },
};
use futures_util::StreamExt as _;
use proto::host::{ObjectMeta, Precondition};
use serde_json::json;
use tokio::time::Instant;

use super::{
    ledgers::{self, HostLedgers, ObjectWrite},
    object::{self, DeletionRequest, HeldRecord, ObjectRecord},
};
use index::{DependentIndex, RecordId};

/// Records that are taken from the queue at a time.
const MOST_RECORDS: usize = 256;

/// Time until a step is tried again that was refused or could not be written.
const AFTER_FAULT: Duration = Duration::from_secs(10);

/// Author of the writes.
const REGISTRY: Actor = Actor::Service("component-registry");

/// Condition of a namespace with content whose deletion is refused.
const CONTENT_FAILURE: &str = "NamespaceDeletionContentFailure";

/// Collector of records that go with others.
struct RecordCollector {
    ledgers: Arc<HostLedgers>,
    queue: WorkQueue<RecordId>,
    index: DependentIndex,
    /// Names of namespaces that are being deleted.
    deleted_namespaces: BTreeSet<String>,
    /// Refusals of deletions in these namespaces.
    refusals: BTreeMap<RecordId, String>,
    /// Ledgers that were read once.
    read: BTreeSet<&'static str>,
}

/// Deletes records that go with others, without end.
///
/// # Errors
/// The records cannot be followed.
pub(crate) async fn collect(ledgers: Arc<HostLedgers>) -> anyhow::Result<Infallible> {
    let mut hosts = pin!(ledgers.hosts.follow());
    let mut documents = pin!(ledgers.documents.follow());
    let mut secrets = pin!(ledgers.secrets.follow());
    let mut collector = RecordCollector {
        ledgers,
        queue: WorkQueue::default(),
        index: DependentIndex::default(),
        deleted_namespaces: BTreeSet::new(),
        refusals: BTreeMap::new(),
        read: BTreeSet::new(),
    };
    let queue = collector.queue.clone();
    loop {
        // Before everything was read once, records that others depend on look like ones without dependents.
        let is_complete = collector.read.len() == 3;
        tokio::select! {
            Some(batch) = hosts.next() => collector.note(&batch, RecordId::Host),
            Some(batch) = documents.next() => collector.note(&batch, RecordId::Document),
            Some(batch) = secrets.next() => collector.note(&batch, RecordId::Secret),
            records = queue.next(MOST_RECORDS), if is_complete => collector.attend(records).await,
            else => anyhow::bail!("the records cannot be followed any more"),
        }
    }
}

impl RecordCollector {
    /// Notes changes, and queues the records that they may concern.
    fn note<R: HeldRecord>(&mut self, batch: &Batch<R>, id: fn(Arc<str>) -> RecordId) {
        for record in &batch.changed {
            self.note_record(id(record.shared_key()), record.open().meta());
        }
        for deletion in &batch.deleted {
            self.note_deletion(&id(Arc::clone(&deletion.key)));
        }
        if batch.synced {
            self.read.insert(R::KIND);
            // Deletions may have been missed, of owners as well.
            self.queue.mark(self.index.owned().cloned());
        }
    }

    fn note_record(&mut self, id: RecordId, meta: &ObjectMeta) {
        let references = meta.owner_references.iter();
        let owners = references.filter_map(|owner| RecordId::of_owner(owner, &meta.namespace)).collect();
        self.queue.mark(self.index.note(&id, owners));
        let is_deleted = meta.deleted_at.is_some();
        if is_deleted {
            self.queue.mark(self.index.dependents(&id).cloned());
        }
        if let Some(namespace) = id.as_namespace().filter(|_| is_deleted)
            && self.deleted_namespaces.insert(namespace.to_owned())
        {
            self.queue.mark(self.ledgers.content(namespace));
        }
        let is_content = self.deleted_namespaces.contains(id.namespace());
        if is_deleted || is_content || !meta.owner_references.is_empty() {
            self.queue.mark([id]);
        }
    }

    fn note_deletion(&mut self, id: &RecordId) {
        self.queue.mark(self.index.note(id, BTreeSet::new()));
        self.queue.mark(self.index.dependents(id).cloned());
        self.refusals.remove(id);
        if let Some(namespace) = id.as_namespace() {
            self.deleted_namespaces.remove(namespace);
        }
        let namespace = id.namespace();
        if self.deleted_namespaces.contains(namespace) {
            self.queue.mark([RecordId::of_namespace(namespace)]);
        }
    }

    async fn attend(&mut self, records: Vec<RecordId>) {
        let is_fresh = self.ledgers.are_fresh().await;
        for record in records {
            let outcome = match &is_fresh {
                Ok(()) => self.take_step(&record).await,
                Err(fault) => Err(fault.clone()),
            };
            self.settle(record, outcome).await;
        }
    }

    /// Notes the outcome of a step. One that failed is taken again later; a refusal shows at the namespace.
    async fn settle(&mut self, record: RecordId, outcome: Result<(), Fault>) {
        let namespace = record.namespace().to_owned();
        let refusal = match outcome {
            // Another write was first, and leads to the next step.
            Ok(()) | Err(Fault::NotFound { .. } | Fault::Conflict { .. }) => None,
            Err(fault) => {
                tracing::debug!(record = record.key(), %fault, "a record that goes with others stays for now");
                self.queue.mark_at(record.clone(), Instant::now() + AFTER_FAULT);
                matches!(fault, Fault::Invalid(_) | Fault::Locked { .. }).then(|| fault.to_string())
            }
        };
        if !self.deleted_namespaces.contains(&namespace) {
            return;
        }
        let before = match refusal.clone() {
            Some(refusal) => self.refusals.insert(record.clone(), refusal),
            None => self.refusals.remove(&record),
        };
        if before != refusal {
            self.show_refusals(&namespace).await;
        }
    }

    /// Shows in the status of a namespace which deletions of its content are refused.
    async fn show_refusals(&self, namespace: &str) {
        let refusals = self.refusals.iter().filter(|(record, _)| record.namespace() == namespace);
        let refusals: Vec<_> =
            refusals.map(|(record, refusal)| format!("{}: {refusal}", record.key())).collect();
        let status = json!({ "conditions": [{
            "type": CONTENT_FAILURE,
            "status": if refusals.is_empty() { "False" } else { "True" },
            "reason": if refusals.is_empty() { "ContentDeleted" } else { "ContentDeletionFailed" },
            "message": refusals.join("; "),
            "lastTransitionTime": format!("{}Z", bos_time::text(clock::now())),
        }]});
        let write = write_of(&RecordId::of_namespace(namespace));
        let key = write.key.clone();
        let show = move |current: Option<&OpenDocument>| {
            let mut record = object::expected(&key, current, &Precondition::default())?.clone();
            record.message.status_json = status.to_string();
            Ok(object::settle(current, record))
        };
        if let Err(fault) = ledgers::write(&self.ledgers.documents, write, show).await {
            tracing::warn!(namespace, %fault, "the status of the namespace could not be written");
        }
    }

    async fn take_step(&self, record: &RecordId) -> Result<(), Fault> {
        let Some(meta) = self.ledgers.meta(record) else { return Ok(()) };
        let uid = meta.uid.clone();
        match next_step(&self.owned_record(record, meta)) {
            CollectionStep::Rest => Ok(()),
            CollectionStep::Delete(reason, propagation) => {
                self.ledgers.delete_record(record, uid, reason, propagation).await
            }
            CollectionStep::DropOwners(uids) => {
                let edit = move |meta: &mut ObjectMeta| {
                    meta.owner_references.retain(|owner| !uids.contains(owner.uid.as_str()));
                };
                self.ledgers.edit_meta(record, uid, edit).await
            }
            CollectionStep::RemoveFinalizer(finalizer) => {
                let edit = move |meta: &mut ObjectMeta| meta.finalizers.retain(|name| name != finalizer);
                self.ledgers.edit_meta(record, uid, edit).await
            }
        }
    }

    fn owned_record(&self, record: &RecordId, meta: ObjectMeta) -> OwnedRecord {
        let references = self.index.dependents(record).filter_map(|one| self.ledgers.meta(one));
        let references: Vec<_> = references
            .filter_map(|one| one.owner_references.into_iter().find(|owner| owner.uid == meta.uid))
            .collect();
        let owners = meta.owner_references.iter().map(|owner| RecordOwner {
            uid: owner.uid.as_str().into(),
            sight: self.sight(&owner.uid, RecordId::of_owner(owner, &meta.namespace)),
        });
        let content = record.as_namespace().map_or(0, |namespace| self.ledgers.content(namespace).count());
        OwnedRecord {
            owners: owners.collect(),
            is_deleted: meta.deleted_at.is_some(),
            dependents: references.len(),
            blocking: references.iter().filter(|owner| owner.block_owner_deletion()).count(),
            content,
            is_in_deleted_namespace: self.deleted_namespaces.contains(record.namespace()),
            finalizers: meta.finalizers,
        }
    }

    fn sight(&self, uid: &str, owner: Option<RecordId>) -> OwnerSight {
        let Some(owner) = owner else { return OwnerSight::Elsewhere };
        match self.ledgers.meta(&owner).filter(|meta| meta.uid == uid) {
            Some(meta) => RecordOwner::sight_of_present(meta.deleted_at.is_some(), &meta.finalizers),
            None => OwnerSight::Absent,
        }
    }
}

/// Returns the write of a record by the collector.
fn write_of(record: &RecordId) -> ObjectWrite {
    ObjectWrite { actor: REGISTRY, ..ObjectWrite::of(record.key().to_owned(), false) }
}

impl HostLedgers {
    /// Waits until the ledgers have every write that was acknowledged before.
    async fn are_fresh(&self) -> Result<(), Fault> {
        self.hosts.fresh().await?;
        self.documents.fresh().await?;
        self.secrets.fresh().await
    }

    /// Returns the facts about a record; `None`: there is none.
    fn meta(&self, record: &RecordId) -> Option<ObjectMeta> {
        match record {
            RecordId::Host(key) => self.hosts.view().get(key).map(|held| held.open().meta().clone()),
            RecordId::Document(key) => self.documents.view().get(key).map(|held| held.open().meta().clone()),
            RecordId::Secret(key) => self.secrets.view().get(key).map(|held| held.open().meta().clone()),
        }
    }

    /// Returns every record in a namespace.
    fn content(&self, namespace: &str) -> impl Iterator<Item = RecordId> {
        let hosts = self.hosts.view().all().into_iter().map(|held| RecordId::Host(held.shared_key()));
        let documents = self.documents.view().all().into_iter();
        let documents = documents.map(|held| RecordId::Document(held.shared_key()));
        let secrets = self.secrets.view().all().into_iter().map(|held| RecordId::Secret(held.shared_key()));
        hosts.chain(documents).chain(secrets).filter(move |id| id.namespace() == namespace)
    }

    /// Requests the deletion of a record with that unique id.
    async fn delete_record(
        &self,
        record: &RecordId,
        uid: String,
        reason: CollectionReason,
        propagation: Propagation,
    ) -> Result<(), Fault> {
        let write = ObjectWrite { reason: reason.word(), ..write_of(record) };
        let precondition = Precondition { revision: 0, uid };
        let request = DeletionRequest { precondition, propagation: Some(propagation) };
        match record {
            RecordId::Host(_) => self.delete_host_record(write, request, false).await.map(drop),
            RecordId::Document(_) => self.delete_document(write, request).await.map(drop),
            RecordId::Secret(_) => self.delete_secret(write, request).await.map(drop),
        }
    }

    /// Changes the facts about a record with that unique id.
    async fn edit_meta(
        &self,
        record: &RecordId,
        uid: String,
        edit: impl FnOnce(&mut ObjectMeta) + Send + 'static,
    ) -> Result<(), Fault> {
        match record {
            RecordId::Host(_) => edit_meta_in(&self.hosts, record, uid, edit).await,
            RecordId::Document(_) => edit_meta_in(&self.documents, record, uid, edit).await,
            RecordId::Secret(_) => edit_meta_in(&self.secrets, record, uid, edit).await,
        }
    }
}

async fn edit_meta_in<T: Table<Kind: HeldRecord>>(
    ledger: &Ledger<T>,
    record: &RecordId,
    uid: String,
    edit: impl FnOnce(&mut ObjectMeta) + Send + 'static,
) -> Result<(), Fault> {
    let write = write_of(record);
    let key = write.key.clone();
    let change = move |current: Option<&<T::Kind as HeldRecord>::Open>| {
        let precondition = Precondition { revision: 0, uid };
        let mut wanted = object::expected(&key, current, &precondition)?.clone();
        edit(wanted.meta_mut());
        Ok(object::settle(current, wanted))
    };
    ledgers::write(ledger, write, change).await.map(drop)
}
