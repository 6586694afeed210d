//! Upkeep of the records about the firmware of hosts: values are read by the driver, and the wishes are judged by them.
//!
//! A record is read and written by itself, so nothing is kept but the time of the last attempt. While an operation works
//! on a host, its records stay as they are: they tell what was before.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use chassis::{
    kinds::host::{HostRecord, annotations, firmware, key, parse_key},
    observe::mirror::Change,
    process::clock,
    store::resource::Resource as _,
};
use domain::{
    core::time::Timestamp,
    host::firmware::{
        judgement::{judge_settings, judge_updates},
        reading::{FirmwareReading, FirmwareWishes, SettingRule},
        upkeep::{FirmwareUpkeep, next_reading},
    },
};
use proto::host::{DocumentKind, Host, HostDocument};
use tokio::time::{Instant, sleep};
use tonic::Status;

use host_calls::{HostIdentity, HostTasks};

use crate::{engine::HostEngine, firmware_records::HostFirmware};

/// Hosts whose firmware is read at the same time.
const READINGS: usize = 8;

/// Time until the registry is asked again that did not answer, or a host is looked at again that is being read.
const SOON: Duration = Duration::from_secs(1);

/// Kinds of records about firmware.
const KINDS: [DocumentKind; 2] = [DocumentKind::FirmwareSettings, DocumentKind::FirmwareComponents];

/// Last attempt to read the firmware of a host.
#[derive(Debug, Clone, Copy)]
struct ReadAttempt {
    at: Timestamp,
    has_failed: bool,
}

/// Result of a task: the latest attempt, and the time of the next look at the host.
type ReadOutcome = (Option<ReadAttempt>, Option<Timestamp>);

impl HostEngine {
    /// Keeps the records about the firmware of all hosts, without end.
    pub(crate) async fn keep_firmware(self: Arc<Self>) {
        let _open = self.sources.firmware_queue.open();
        self.sources.firmware_queue.mark(self.sources.hosts.all().into_iter().map(|host| host.shared_key()));
        let follow = KINDS.map(|kind| self.follow_records(kind));
        tokio::join!(futures_util::future::join_all(follow), Arc::clone(&self).read_firmware());
    }

    /// Queues the hosts whose records change, without end.
    async fn follow_records(&self, kind: DocumentKind) {
        loop {
            if let Err(status) = self.follow_once(kind).await {
                tracing::debug!(error = status.message(), "records about firmware not watched, trying again");
            }
            sleep(SOON).await;
        }
    }

    async fn follow_once(&self, kind: DocumentKind) -> Result<(), Status> {
        let mut changes = self.sources.firmware.watch(kind).await?;
        while let Some(batch) = changes.message().await? {
            let changed = batch.host_documents.iter().filter_map(|document| document.meta.as_ref());
            let hosts = changed.map(|meta| key(&meta.namespace, &meta.name).into());
            self.sources.firmware_queue.mark(hosts.collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Reads the firmware of hosts that are queued, without end.
    async fn read_firmware(self: Arc<Self>) {
        let queue = &self.sources.firmware_queue;
        let mut tasks = HostTasks::default();
        let mut attempts = HashMap::new();
        loop {
            tokio::select! {
                keys = queue.next(1), if tasks.count() < READINGS => {
                    for key in keys {
                        if tasks.contains(&key) {
                            queue.mark_at(key, Instant::now() + SOON);
                        } else {
                            let last = attempts.get(&key).copied();
                            tasks.spawn(Arc::clone(&key), Arc::clone(&self).refresh(key, last));
                        }
                    }
                }
                (key, (attempt, next)) = tasks.ended() => {
                    match attempt {
                        Some(attempt) => attempts.insert(Arc::clone(&key), attempt),
                        None => attempts.remove(&key),
                    };
                    if let Some(next) = next {
                        queue.mark_at(key, Instant::now() + next.since(clock::now()));
                    }
                }
            }
        }
    }

    /// Reads the firmware of a host if it is time, and brings its records up to date.
    async fn refresh(self: Arc<Self>, key: Arc<str>, last: Option<ReadAttempt>) -> ReadOutcome {
        let host = self.sources.hosts.get(&key).map(|host| host.message());
        let Some(host) = host.filter(is_readable) else { return (None, None) };
        let identity = HostIdentity::of(Arc::clone(&key), &host);
        let now = clock::now();
        match self.refresh_host(&identity, &host, last, now).await {
            Ok(outcome) => outcome,
            Err(reason) => {
                tracing::debug!(host = %key, %reason, "firmware not read, trying again");
                let attempt = ReadAttempt { at: now, has_failed: true };
                let upkeep = upkeep(&host, &[], Some(attempt));
                (Some(attempt), Some(next_reading(upkeep)))
            }
        }
    }

    async fn refresh_host(
        &self,
        identity: &HostIdentity,
        host: &Host,
        last: Option<ReadAttempt>,
        now: Timestamp,
    ) -> Result<ReadOutcome, String> {
        let words = |status: Status| status.message().to_owned();
        let records = self.sources.firmware.of(&parse_key(&identity.key)).await.map_err(words)?;
        let documents: Vec<_> = [&records.settings, &records.components].into_iter().flatten().collect();
        if documents.is_empty() {
            return Ok((last, None));
        }
        let due = next_reading(upkeep(host, &documents, last));
        if due > now {
            return Ok((last, Some(due)));
        }
        let rules = self.known_rules(&records).await.map_err(words)?;
        let target = self.sources.target(identity, host).await.map_err(words)?;
        let reading = self.sources.driver.read_firmware(&target, rules.is_none()).await;
        let reading = reading.map_err(|outage| outage.to_string())?;
        self.record_firmware(host, &records, reading, rules, now).await.map_err(words)?;
        let attempt = ReadAttempt { at: now, has_failed: false };
        // The records as they are now queue the host again, with the time of the next reading.
        Ok((Some(attempt), Some(next_reading(upkeep(host, &documents, Some(attempt))))))
    }

    /// Returns the rules on record; `None`: there are none, or they do not cover a wish.
    async fn known_rules(&self, records: &HostFirmware) -> Result<Option<Rules>, Status> {
        let Some(settings) = &records.settings else { return Ok(Some(Rules::default())) };
        let Some(schema) = firmware::schema_of(settings) else { return Ok(None) };
        let namespace = settings.meta.as_ref().map_or("", |meta| &meta.namespace);
        let Some(rules) = self.sources.firmware.rules(namespace, &schema).await? else { return Ok(None) };
        let wishes = firmware::wishes(Some(settings), None).settings;
        let is_covered = wishes.keys().all(|name| rules.contains_key(name));
        Ok(is_covered.then_some(Rules { schema: Some(schema), rules }))
    }

    async fn record_firmware(
        &self,
        host: &Host,
        records: &HostFirmware,
        reading: FirmwareReading,
        known: Option<Rules>,
        read_at: Timestamp,
    ) -> Result<(), Status> {
        let wishes = firmware::wishes(records.settings.as_ref(), records.components.as_ref());
        let changed_at = firmware_changed_at(host);
        if let Some(document) = &records.settings {
            let read = reading.settings.map(|settings| settings.without_passwords());
            let told = read.as_ref().and_then(|read| read.rules.as_ref());
            let Rules { schema, rules } = match (known, told) {
                (Some(known), _) => known,
                (None, Some(rules)) => self.make_schema(host, rules).await?,
                (None, None) => Rules::default(),
            };
            let values = read.as_ref().map(|read| &read.values);
            let judgement = &judge_settings(&wishes, values, &rules);
            let note = firmware::ReadingNote { judgement, read_at, changed_at };
            if let Some(status) = firmware::settings_status(document, values, schema.as_deref(), note) {
                self.sources.firmware.replace_status(document, status).await?;
            }
        }
        if let Some(document) = &records.components {
            self.record_components(document, &wishes, &reading.components, read_at, changed_at).await?;
        }
        Ok(())
    }

    async fn make_schema(
        &self,
        host: &Host,
        rules: &BTreeMap<Arc<str>, SettingRule>,
    ) -> Result<Rules, Status> {
        let namespace = host.meta.as_ref().map_or("", |meta| &meta.namespace);
        let inventory = host.status.as_ref().and_then(|status| status.hardware.as_ref());
        let details = inventory.and_then(|inventory| serde_json::from_str(&inventory.details_json).ok());
        let details: serde_json::Value = details.unwrap_or_default();
        let vendor = |name: &str| details["systemVendor"][name].as_str().unwrap_or_default().to_owned();
        let spec = firmware::schema_spec(rules, &vendor("manufacturer"), &vendor("productName"));
        let schema = self.sources.firmware.make_schema(namespace, spec).await?;
        Ok(Rules { schema: Some(schema), rules: rules.clone() })
    }

    async fn record_components(
        &self,
        document: &HostDocument,
        wishes: &FirmwareWishes,
        read: &Option<Vec<domain::host::firmware::reading::FirmwareComponent>>,
        read_at: Timestamp,
        changed_at: Option<Timestamp>,
    ) -> Result<(), Status> {
        let begun = firmware::begun_updates(document);
        let judgement = &judge_updates(&wishes.updates, read.as_deref(), &begun);
        let note = firmware::ReadingNote { judgement, read_at, changed_at };
        match firmware::components_status(document, read.as_deref(), note) {
            Some(status) => self.sources.firmware.replace_status(document, status).await,
            None => Ok(()),
        }
    }
}

/// Rules for settings, and the name of their schema.
#[derive(Debug, Default)]
struct Rules {
    schema: Option<String>,
    rules: BTreeMap<Arc<str>, SettingRule>,
}

/// Returns the hosts whose firmware may be read from now on, or has to be read again.
pub(crate) fn concerned(changes: &[Change<HostRecord>]) -> Vec<Arc<str>> {
    let facts = |host: &Option<Arc<HostRecord>>| {
        let host = host.as_ref()?.message();
        is_readable(&host).then(|| firmware_changed_at(&host))
    };
    let is_concerned = |change: &&Change<HostRecord>| {
        let now = facts(&change.current);
        now != facts(&change.previous)
    };
    changes.iter().filter(is_concerned).map(|change| change.key().into()).collect()
}

/// Returns whether the firmware of a host may be read: the backend knows the host and does not work on it.
fn is_readable(host: &Host) -> bool {
    let (Some(meta), Some(status), Some(progress)) = (&host.meta, &host.status, &host.progress) else {
        return false;
    };
    let is_known = status.provisioning.as_ref().is_some_and(|provisioning| !provisioning.id.is_empty());
    let is_left_alone =
        [annotations::PAUSED, annotations::DETACHED].iter().any(|name| meta.annotations.contains_key(*name));
    is_known
        && progress.registered.is_some()
        && progress.work.is_none()
        && meta.deleted_at.is_none()
        && !is_left_alone
}

fn firmware_changed_at(host: &Host) -> Option<Timestamp> {
    host.progress.as_ref()?.firmware_changed_at.map(chassis::mesh::time::from_wire)
}

fn upkeep(host: &Host, documents: &[&HostDocument], last: Option<ReadAttempt>) -> FirmwareUpkeep {
    let judged: Vec<_> = documents.iter().map(|document| firmware::judgement(document)).collect();
    FirmwareUpkeep {
        is_judged: judged.iter().all(|one| one.is_judged),
        is_changed: judged.iter().any(|one| one.is_changed && one.is_valid),
        recorded_at: judged.iter().map(|one| one.read_at).min().unwrap_or_default(),
        changed_at: firmware_changed_at(host),
        tried_at: last.map(|attempt| attempt.at),
        has_failed: last.is_some_and(|attempt| attempt.has_failed),
    }
}
