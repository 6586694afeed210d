//! A ledger in memory: revisions, generations, preconditions, finalizers, and a watch.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use chassis::Fault;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use proto::{
    Encoded, Message, WatchBatch,
    host::{Host, HostDocument, HostSecret, ObjectMeta, Precondition},
    watch::Deletion,
};
use tokio::sync::watch;
use tonic::Status;

/// Record of the ledger.
pub(crate) trait FakeRecord: Clone + Send + Sync + 'static {
    const KIND: &'static str;
    fn meta(&mut self) -> &mut ObjectMeta;
    fn key(&self) -> String;
    fn revision(&mut self) -> &mut u64;
    /// Wishes, for the generation.
    fn wishes(&self) -> String;
}

impl FakeRecord for Host {
    const KIND: &'static str = "host";

    fn meta(&mut self) -> &mut ObjectMeta {
        self.meta.get_or_insert_default()
    }

    fn key(&self) -> String {
        let meta = self.meta.clone().unwrap_or_default();
        format!("{}/{}", meta.namespace, meta.name)
    }

    fn revision(&mut self) -> &mut u64 {
        &mut self.revision
    }

    fn wishes(&self) -> String {
        format!("{:?}", self.spec)
    }
}

impl FakeRecord for HostSecret {
    const KIND: &'static str = "secret";

    fn meta(&mut self) -> &mut ObjectMeta {
        self.meta.get_or_insert_default()
    }

    fn key(&self) -> String {
        let meta = self.meta.clone().unwrap_or_default();
        format!("{}/{}", meta.namespace, meta.name)
    }

    fn revision(&mut self) -> &mut u64 {
        &mut self.revision
    }

    fn wishes(&self) -> String {
        format!("{:?}{:?}", self.data_keys, self.r#type)
    }
}

pub(crate) fn document_key(kind: i32, namespace: &str, name: &str) -> String {
    let word = match kind {
        1 => "hardwaredata",
        2 => "hostfirmwaresettings",
        3 => "firmwareschemas",
        4 => "hostfirmwarecomponents",
        5 => "hostupdatepolicies",
        6 => "dataimages",
        7 => "preprovisioningimages",
        8 => "bmceventsubscriptions",
        _ => "namespaces",
    };
    format!("{word}/{namespace}/{name}")
}

impl FakeRecord for HostDocument {
    const KIND: &'static str = "document";

    fn meta(&mut self) -> &mut ObjectMeta {
        self.meta.get_or_insert_default()
    }

    fn key(&self) -> String {
        let meta = self.meta.clone().unwrap_or_default();
        document_key(self.kind, &meta.namespace, &meta.name)
    }

    fn revision(&mut self) -> &mut u64 {
        &mut self.revision
    }

    fn wishes(&self) -> String {
        self.spec_json.clone()
    }
}

/// Ledger of one kind. Clones share it.
#[derive(Clone)]
pub(crate) struct FakeLedger<M> {
    state: Arc<Mutex<LedgerState<M>>>,
    revision: watch::Sender<u64>,
}

struct LedgerState<M> {
    records: BTreeMap<String, M>,
    gone: Vec<Deletion>,
    revision: u64,
}

impl<M: FakeRecord> Default for FakeLedger<M> {
    fn default() -> Self {
        let state = LedgerState { records: BTreeMap::new(), gone: Vec::new(), revision: 1 };
        Self { state: Arc::new(Mutex::new(state)), revision: watch::Sender::new(1) }
    }
}

fn now() -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 }
}

impl<M: FakeRecord> FakeLedger<M> {
    pub(crate) fn get(&self, key: &str) -> Result<M, Status> {
        let found = self.state.lock().unwrap().records.get(key).cloned();
        found.ok_or_else(|| Fault::not_found(M::KIND, key).into())
    }

    /// Returns every record, and the revision.
    pub(crate) fn all(&self) -> (Vec<M>, u64) {
        let state = self.state.lock().unwrap();
        (state.records.values().cloned().collect(), state.revision)
    }

    pub(crate) fn create(&self, mut record: M, validate_only: bool) -> Result<M, Status> {
        let key = record.key();
        let mut state = self.state.lock().unwrap();
        if state.records.contains_key(&key) {
            return Err(Fault::AlreadyExists { kind: M::KIND.to_owned(), name: key }.into());
        }
        let next = state.revision + 1;
        let meta = record.meta();
        meta.uid = format!("00000000-0000-4000-8000-{next:012}");
        meta.generation = 1;
        meta.created_at = Some(now());
        meta.deleted_at = None;
        *record.revision() = next;
        if !validate_only {
            state.revision = next;
            state.records.insert(key, record.clone());
            self.revision.send_replace(next);
        }
        Ok(record)
    }

    /// Replaces a record by what `change` makes of the present one.
    pub(crate) fn change(
        &self,
        key: &str,
        precondition: Option<Precondition>,
        validate_only: bool,
        change: impl FnOnce(&mut M),
    ) -> Result<M, Status> {
        let mut state = self.state.lock().unwrap();
        let Some(before) = state.records.get(key).cloned() else {
            return Err(Fault::not_found(M::KIND, key).into());
        };
        check(&mut before.clone(), precondition)?;
        let mut record = before.clone();
        change(&mut record);
        let next = state.revision + 1;
        let (old, new) = (before.clone().meta().clone(), record.meta().clone());
        let is_changed = before.wishes() != record.wishes() || old.deleted_at != new.deleted_at;
        let meta = record.meta();
        meta.uid = old.uid;
        meta.created_at = old.created_at;
        meta.generation = old.generation + u64::from(is_changed);
        *record.revision() = next;
        if validate_only {
            return Ok(record);
        }
        state.revision = next;
        let is_gone = new.deleted_at.is_some() && new.finalizers.is_empty();
        if is_gone {
            state.records.remove(key);
            state.gone.push(Deletion { key: key.to_owned(), revision: next });
        } else {
            state.records.insert(key.to_owned(), record.clone());
        }
        self.revision.send_replace(next);
        Ok(record)
    }

    /// Requests the deletion of a record, and returns whether it is gone.
    pub(crate) fn delete(
        &self,
        key: &str,
        precondition: Option<Precondition>,
        validate_only: bool,
    ) -> Result<(M, bool), Status> {
        let mut present = self.get(key)?;
        if present.meta().deleted_at.is_some() {
            return Ok((present, false));
        }
        let deleted =
            self.change(key, precondition, validate_only, |record| record.meta().deleted_at = Some(now()));
        let mut record = deleted?;
        let is_gone = record.meta().finalizers.is_empty();
        Ok((record, is_gone))
    }

    /// Watches changes after a revision.
    pub(crate) fn watch<W: From<WatchBatch<M>> + Message + 'static>(
        &self,
        resume: u64,
    ) -> BoxStream<'static, Result<Encoded<W>, Status>> {
        let ledger = self.clone();
        let advances = self.revision.subscribe();
        let watch = stream::unfold(
            (ledger, advances, resume, true),
            |(ledger, mut advances, from, is_first)| async move {
                if !is_first {
                    advances.wait_for(|revision| *revision > from).await.ok()?;
                }
                let batch = ledger.since(from, is_first);
                let revision = batch.revision;
                Some((Ok(Encoded::from(W::from(batch))), (ledger, advances, revision, false)))
            },
        );
        watch.boxed()
    }

    fn since(&self, from: u64, synced: bool) -> WatchBatch<M> {
        let state = self.state.lock().unwrap();
        let changed = state.records.values().filter(|record| *M::clone(record).revision() > from).cloned();
        let deletions = state.gone.iter().filter(|gone| from > 0 && gone.revision > from).cloned();
        WatchBatch {
            changed: changed.collect(),
            deletions: deletions.collect(),
            revision: state.revision,
            synced,
        }
    }
}

fn check<M: FakeRecord>(record: &mut M, precondition: Option<Precondition>) -> Result<(), Status> {
    let Precondition { revision, uid } = precondition.unwrap_or_default();
    let is_other =
        revision > 0 && revision != *record.revision() || !uid.is_empty() && uid != record.meta().uid;
    match is_other {
        true => Err(Fault::Conflict { kind: M::KIND.to_owned(), name: record.key() }.into()),
        false => Ok(()),
    }
}
