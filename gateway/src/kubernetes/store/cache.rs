//! The copy of one kind, and its latest changes.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
    time::Duration,
};

use chassis::process::packed::SimilarBytes;
use parking_lot::RwLock;
use tokio::sync::watch;

use super::{
    super::{failure::ApiFailure, object::ApiObject},
    record::{CachedRecord, key},
    version::VersionBase,
};

/// Most changes that are kept: several minutes at ten changes a second.
const MOST_CHANGES: usize = 8192;

/// Bytes of changes that are kept of any collection. Those of a larger one may take as much as its objects, up to
/// [`MOST_BYTES`].
const LEAST_BYTES: usize = 1 << 20;

/// Most bytes of changes that are kept. Packed, these are about as many as [`MOST_CHANGES`] changes of hosts.
const MOST_BYTES: usize = 4 << 20;

/// Time for which a client waits that has seen a version which is not here yet.
const PATIENCE: Duration = Duration::from_secs(3);

/// Change of an object.
#[derive(Debug, Clone)]
pub(crate) struct CachedChange {
    pub version: u64,
    pub before: Option<Arc<CachedRecord>>,
    pub after: Option<Arc<CachedRecord>>,
}

impl CachedChange {
    /// Bytes of the record that the change keeps.
    fn held(&self) -> usize {
        let record = self.after.as_ref().or(self.before.as_ref());
        size_of::<Self>() + record.map_or(0, |record| record.held())
    }
}

/// Objects at one version.
#[derive(Debug)]
pub(crate) struct CacheSnapshot {
    pub version: u64,
    pub records: Vec<Arc<CachedRecord>>,
    /// Place after the last change that the objects include.
    pub position: WatchPosition,
}

/// Place in the sequence of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WatchPosition {
    /// Number of the set of objects that the sequence began with.
    epoch: u64,
    next: u64,
}

/// Copy of one kind. Changes are visible at once, and in the order of their versions.
#[derive(Debug)]
pub(crate) struct RecordCache {
    state: RwLock<CacheState>,
    similar: SimilarBytes,
    /// Version up to which everything is here; 0: the first set is not complete.
    advanced: watch::Sender<u64>,
}

/// Objects by their keys.
type CachedRecords = BTreeMap<Arc<str>, Arc<CachedRecord>>;

#[derive(Debug, Default)]
struct CacheState {
    base: VersionBase,
    version: u64,
    records: CachedRecords,
    /// Bytes of `records`.
    record_bytes: usize,
    changes: VecDeque<CachedChange>,
    /// Bytes of `changes`.
    change_bytes: usize,
    /// Number of the first change that is kept.
    first: u64,
    /// Version that every kept change is above.
    oldest: u64,
    epoch: u64,
}

impl Default for RecordCache {
    fn default() -> Self {
        Self { state: RwLock::default(), similar: SimilarBytes::default(), advanced: watch::Sender::new(0) }
    }
}

impl RecordCache {
    /// Makes the record of an object for this copy.
    pub(crate) fn record(&self, object: &ApiObject, version: u64) -> CachedRecord {
        CachedRecord::new(object, version, &self.similar)
    }

    /// Replaces everything: the history before is lost.
    pub(crate) fn replace(&self, base: VersionBase, records: Vec<CachedRecord>, revision: u64) {
        let version = base.version(revision);
        {
            let mut state = self.state.write();
            let record_bytes = records.iter().map(CachedRecord::held).sum();
            let records = records.into_iter().map(|record| (Arc::clone(&record.key), Arc::new(record)));
            let first = state.first + state.changes.len() as u64;
            *state = CacheState {
                base,
                version,
                records: records.collect(),
                record_bytes,
                changes: VecDeque::new(),
                first,
                oldest: version,
                change_bytes: 0,
                epoch: state.epoch + 1,
            };
        }
        self.advanced.send_replace(version);
    }

    /// Applies changed and deleted objects; a deletion has the key and its revision.
    pub(crate) fn apply(&self, changed: Vec<CachedRecord>, deleted: Vec<(String, u64)>, revision: u64) {
        let version = {
            let mut state = self.state.write();
            let base = state.base;
            let deleted = deleted.into_iter().map(|(key, revision)| (base.version(revision), key, None));
            let changed =
                changed.into_iter().map(|record| (record.version, record.key.to_string(), Some(record)));
            let mut news: Vec<_> = deleted.chain(changed).collect();
            news.sort_by_key(|(version, ..)| *version);
            for (version, key, record) in news {
                state.note(version, &key, record);
            }
            state.version = state.version.max(base.version(revision));
            state.version
        };
        self.advanced.send_replace(version);
    }

    /// Returns the base of versions; none before the first set is complete.
    pub(crate) fn base(&self) -> Option<VersionBase> {
        let state = self.state.read();
        (state.version > 0).then_some(state.base)
    }

    /// Returns the object of that key as it is here.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<CachedRecord>> {
        self.state.read().records.get(key(namespace, name).as_str()).cloned()
    }

    /// Waits until everything up to a version is here.
    ///
    /// # Errors
    /// When it does not arrive in time.
    pub(crate) async fn reach(&self, version: u64) -> Result<(), ApiFailure> {
        let mut advanced = self.advanced.subscribe();
        let reached = advanced.wait_for(|now| *now >= version.max(1));
        match tokio::time::timeout(PATIENCE, reached).await {
            Ok(_) => Ok(()),
            Err(_) if *self.advanced.borrow() == 0 => {
                Err(ApiFailure::unavailable("the component registry has not answered yet"))
            }
            Err(_) => {
                Err(ApiFailure::timeout("Too large resource version: the server has not reached it yet"))
            }
        }
    }

    /// Returns the objects of a namespace, or all, at a version; `None`: as they are.
    ///
    /// # Errors
    /// When the version is too old.
    pub(crate) fn snapshot(
        &self,
        namespace: Option<&str>,
        at: Option<u64>,
    ) -> Result<CacheSnapshot, ApiFailure> {
        let state = self.state.read();
        let at = at.unwrap_or(state.version);
        if at < state.oldest {
            return Err(expired(at, state.oldest));
        }
        let position = state.position_after(at);
        let records = match at >= state.version {
            true => within(&state.records, namespace),
            false => within(&state.records_at(at), namespace),
        };
        Ok(CacheSnapshot { version: at, records, position })
    }

    /// Returns the place of the first change after a version.
    ///
    /// # Errors
    /// When the version is too old.
    pub(crate) fn position_after(&self, version: u64) -> Result<WatchPosition, ApiFailure> {
        let state = self.state.read();
        match version < state.oldest {
            true => Err(expired(version, state.oldest)),
            false => Ok(state.position_after(version)),
        }
    }

    /// Returns the changes from a place on, the place after them, and the version up to which they are complete.
    ///
    /// # Errors
    /// When they are no longer kept.
    pub(crate) fn changes(
        &self,
        position: WatchPosition,
    ) -> Result<(Vec<CachedChange>, WatchPosition, u64), ApiFailure> {
        let state = self.state.read();
        if position.epoch != state.epoch || position.next < state.first {
            return Err(expired(0, state.oldest));
        }
        let skipped = usize::try_from(position.next - state.first).unwrap_or(usize::MAX);
        let changes: Vec<_> = state.changes.iter().skip(skipped).cloned().collect();
        let next = state.first + state.changes.len() as u64;
        Ok((changes, WatchPosition { next, ..position }, state.version))
    }

    /// Returns the receiver of the version up to which everything is here.
    pub(crate) fn advances(&self) -> watch::Receiver<u64> {
        self.advanced.subscribe()
    }
}

impl CacheState {
    fn note(&mut self, version: u64, key: &str, after: Option<CachedRecord>) {
        let before = self.records.remove(key);
        let after = after.map(|mut record| {
            before.iter().for_each(|before| record.share(before));
            Arc::new(record)
        });
        self.record_bytes -= before.as_ref().map_or(0, |record| record.held());
        self.record_bytes += after.as_ref().map_or(0, |record| record.held());
        self.records.extend(after.iter().map(|record| (Arc::clone(&record.key), Arc::clone(record))));
        if before.as_ref().is_some_and(|before| before.version >= version) && after.is_some() {
            // Delivered again after a gap.
            return;
        }
        let is_another = matches!((&before, &after), (Some(before), Some(after)) if before.uid != after.uid);
        if is_another {
            self.push(CachedChange { version, before, after: None });
            self.push(CachedChange { version, before: None, after });
        } else if before.is_some() || after.is_some() {
            self.push(CachedChange { version, before, after });
        }
    }

    fn push(&mut self, change: CachedChange) {
        self.change_bytes += change.held();
        self.changes.push_back(change);
        let most_bytes = self.record_bytes.clamp(LEAST_BYTES, MOST_BYTES);
        while self.changes.len() > MOST_CHANGES || self.change_bytes > most_bytes {
            let Some(forgotten) = self.changes.pop_front() else { break };
            self.change_bytes -= forgotten.held();
            self.first += 1;
            self.oldest = forgotten.version;
        }
    }

    fn position_after(&self, version: u64) -> WatchPosition {
        let earlier = self.changes.partition_point(|change| change.version <= version);
        WatchPosition { epoch: self.epoch, next: self.first + earlier as u64 }
    }

    /// Returns the objects at an earlier version, by undoing the changes since.
    fn records_at(&self, version: u64) -> CachedRecords {
        let mut records = self.records.clone();
        for change in self.changes.iter().rev().take_while(|change| change.version > version) {
            if let Some(after) = &change.after {
                records.remove(&after.key);
            }
            if let Some(before) = &change.before {
                records.insert(Arc::clone(&before.key), Arc::clone(before));
            }
        }
        records
    }
}

fn within(records: &CachedRecords, namespace: Option<&str>) -> Vec<Arc<CachedRecord>> {
    let Some(namespace) = namespace else { return records.values().cloned().collect() };
    let from = key(namespace, "");
    let range = records.range::<str, _>((Bound::Included(from.as_str()), Bound::Unbounded));
    let range = range.take_while(|(_, record)| record.namespace() == namespace);
    range.map(|(_, record)| Arc::clone(record)).collect()
}

fn expired(version: u64, oldest: u64) -> ApiFailure {
    ApiFailure::expired(format!("too old resource version: {version} ({oldest})"))
}
