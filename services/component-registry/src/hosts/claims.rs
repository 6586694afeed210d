//! Companions of a host that its decisions change: its inventory, firmware records, data image, and claims on secrets
//! and images. Every change can be repeated: a decision that turns out to be stale is made again.

use std::collections::{BTreeMap, BTreeSet};

use chassis::{
    Fault,
    kinds::host::{DocumentRecord, OpenDocument, OpenHost, document, document_key, key},
    process::clock,
    store::{ledger::Draft, resource::Resource as _},
};
use domain::core::event::Actor;
use proto::host::{
    CompanionChange, DocumentKind, Host, HostDecision, HostDocument, HostProgress, HostSpec, HostStatus,
    ObjectMeta, OwnerReference, companion_change::Change,
};
use serde_json::{Value, json};

use super::{
    ledgers::HostLedgers,
    object::{self, HeldRecord, ObjectChange, ObjectRecord as _},
};
use crate::store::StoredSecret;

/// Author of the changes.
pub(super) const STATUS_EVALUATOR: Actor = Actor::Service("status-evaluator");

/// Finalizer by which a host claims a secret.
const SECRET_CLAIM: &str = "baremetalhost.metal3.io/secret";

/// Finalizer by which a host claims its ramdisk image.
const IMAGE_CLAIM: &str = "baremetalhost.metal3.io/preprovisioningImage";

/// Label of secrets that hosts use.
const ENVIRONMENT: (&str, &str) = ("environment.metal3.io", "baremetal");

/// Documents that go with their host.
const OWNED: [DocumentKind; 4] = [
    DocumentKind::HardwareData,
    DocumentKind::FirmwareSettings,
    DocumentKind::FirmwareComponents,
    DocumentKind::UpdatePolicy,
];

/// Changes of companions that one report asks for.
#[derive(Default)]
pub(super) struct CompanionWork {
    documents: Vec<(Host, Change)>,
    /// Secrets that hosts use for the first time.
    claimed: BTreeSet<String>,
    /// Secrets that hosts use no more.
    released: BTreeSet<String>,
    /// Secrets that the hosts of the report use from now on, by the key of the host.
    used: BTreeMap<String, BTreeSet<String>>,
}

impl CompanionWork {
    /// Adds the claims of a decision about `record`.
    pub(super) fn add(&mut self, record: &OpenHost, decision: &HostDecision) {
        let host = &record.message;
        let namespace = &record.meta().namespace;
        self.claimed.extend(tried_secret(host, decision).map(|secret| key(namespace, &secret)));
        let is_released = |one: &CompanionChange| matches!(one.change, Some(Change::ReleaseAll(_)));
        let mut after = BTreeSet::new();
        if !decision.companions.iter().any(is_released) {
            let (status, progress) = (decision.status.as_ref(), decision.progress.as_ref());
            after.extend(secret_names(host.spec.as_ref(), status, progress).map(|name| key(namespace, name)));
        }
        self.released.extend(secrets_of(record).difference(&after).cloned());
        self.used.insert(record.key().to_owned(), after);
        for change in decision.companions.iter().filter_map(|one| one.change.clone()) {
            match change {
                Change::ClaimNetworkSecret(secret) => {
                    self.claimed.insert(key(namespace, &secret));
                }
                other => self.documents.push((host.clone(), other)),
            }
        }
    }
}

/// Returns the secret with a login that the driver is given for the first time.
fn tried_secret(host: &Host, decision: &HostDecision) -> Option<String> {
    let before = host.status.as_ref().and_then(|status| status.tried_credentials.as_ref());
    let now = decision.status.as_ref()?.tried_credentials.as_ref()?;
    (before.map(|login| &login.name) != Some(&now.name)).then(|| now.name.clone())
}

/// Returns the names of the secrets that a host uses.
fn secret_names<'a>(
    spec: Option<&'a HostSpec>,
    status: Option<&'a HostStatus>,
    progress: Option<&'a HostProgress>,
) -> impl Iterator<Item = &'a str> {
    let logins = status.map(|status| [&status.tried_credentials, &status.good_credentials]);
    let logins = logins.into_iter().flatten().flatten().map(|login| login.name.as_str());
    let bmc = spec.and_then(|spec| spec.bmc.as_ref()).map(|bmc| bmc.credentials_name.as_str());
    let network = spec.map(|spec| spec.preprovisioning_network_data_name.as_str());
    let claimed = progress.and_then(|progress| progress.network_secret.as_deref());
    logins.chain(bmc).chain(network).chain(claimed).filter(|name| !name.is_empty())
}

/// Returns the keys of the secrets that a host uses.
fn secrets_of(record: &OpenHost) -> BTreeSet<String> {
    let host = &record.message;
    let names = secret_names(host.spec.as_ref(), host.status.as_ref(), host.progress.as_ref());
    names.map(|name| key(&record.meta().namespace, name)).collect()
}

impl HostLedgers {
    /// Carries out changes of companions.
    pub(super) async fn change_companions(&self, work: CompanionWork) -> Result<(), Fault> {
        let released = self.unused(&work);
        let CompanionWork { documents, claimed, .. } = work;
        if !documents.is_empty() {
            let change = move |draft: &mut Draft<'_, DocumentRecord>| {
                documents.iter().for_each(|(host, change)| change_document(draft, host, change));
                Ok(())
            };
            self.documents.write_by(STATUS_EVALUATOR, change).await?;
        }
        if !claimed.is_empty() || !released.is_empty() {
            let change = move |draft: &mut Draft<'_, StoredSecret>| {
                claimed.iter().for_each(|secret| claim(draft, secret));
                released.iter().for_each(|secret| release(draft, secret));
                Ok(())
            };
            self.secrets.write_by(STATUS_EVALUATOR, change).await?;
        }
        Ok(())
    }

    /// Returns those of the released secrets that no host uses any more.
    fn unused(&self, work: &CompanionWork) -> BTreeSet<String> {
        let mut unused = work.released.clone();
        if unused.is_empty() {
            return unused;
        }
        for record in self.hosts.view().all() {
            let now = work.used.get(record.key()).cloned().unwrap_or_else(|| secrets_of(&record.open()));
            unused.retain(|secret| !now.contains(secret));
        }
        unused
    }
}

fn claim(draft: &mut Draft<'_, StoredSecret>, secret: &str) {
    let Some(known) = draft.get(secret) else { return };
    let mut wanted = StoredSecret::clone(&known);
    let meta = wanted.meta_mut();
    if meta.deleted_at.is_none() && !meta.finalizers.iter().any(|name| name == SECRET_CLAIM) {
        meta.finalizers.push(SECRET_CLAIM.to_owned());
    }
    meta.labels.insert(ENVIRONMENT.0.to_owned(), ENVIRONMENT.1.to_owned());
    store(draft, &known, wanted);
}

fn release(draft: &mut Draft<'_, StoredSecret>, secret: &str) {
    let Some(known) = draft.get(secret) else { return };
    let mut wanted = StoredSecret::clone(&known);
    wanted.meta_mut().finalizers.retain(|name| name != SECRET_CLAIM);
    store(draft, &known, wanted);
}

fn store<R: HeldRecord>(draft: &mut Draft<'_, R>, known: &R::Open, wanted: R::Open) {
    match object::settle(Some(known), wanted) {
        ObjectChange::Stored(record) => draft.put(R::close(record)),
        ObjectChange::Gone(record) => draft.delete(record.key()),
        ObjectChange::Unchanged(_) => {}
    }
}

fn change_document(draft: &mut Draft<'_, DocumentRecord>, host: &Host, change: &Change) {
    match change {
        Change::StoreHardwareData(inventory) => {
            let spec = document::hardware_spec(inventory);
            put(draft, host, DocumentKind::HardwareData, |document| document.spec_json = spec);
        }
        Change::MakeFirmwareRecords(_) => {
            make(draft, host, DocumentKind::FirmwareSettings, json!({"settings": {}}));
            make(draft, host, DocumentKind::FirmwareComponents, json!({"updates": []}));
        }
        Change::FirmwareUpdatesBegun(_) => begin_updates(draft, host),
        Change::FirmwareUpdatesForgotten(_) => {
            edit_status(draft, host, DocumentKind::FirmwareComponents, |status| {
                status["updates"] = json!([])
            });
        }
        Change::DataImageFailed(text) => {
            edit_status(draft, host, DocumentKind::DataImage, |status| {
                let count = status.pointer("/error/count").and_then(Value::as_u64).unwrap_or_default();
                status["error"] = json!({"count": count + 1, "message": text});
            });
        }
        Change::ReleaseAll(_) => release_documents(draft, host),
        // Secrets are not documents.
        Change::ClaimNetworkSecret(_) => {}
    }
}

/// Records that the wished firmware versions are begun.
fn begin_updates(draft: &mut Draft<'_, DocumentRecord>, host: &Host) {
    let key = key_of(host, DocumentKind::FirmwareComponents);
    let Some(known) = draft.get(&key).map(|known| known.message()) else { return };
    let spec: Value = serde_json::from_str(&known.spec_json).unwrap_or_default();
    let updates = spec.get("updates").cloned().unwrap_or_else(|| json!([]));
    edit_status(draft, host, DocumentKind::FirmwareComponents, |status| status["updates"] = updates);
}

fn release_documents(draft: &mut Draft<'_, DocumentRecord>, host: &Host) {
    for kind in OWNED {
        draft.delete(&key_of(host, kind));
    }
    let Some(known) = open(draft, host, DocumentKind::PreprovisioningImage) else { return };
    let mut wanted = known.clone();
    wanted.meta_mut().finalizers.retain(|name| name != IMAGE_CLAIM);
    store(draft, &known, wanted);
}

/// Makes a document, unless there is one.
fn make(draft: &mut Draft<'_, DocumentRecord>, host: &Host, kind: DocumentKind, spec: Value) {
    if draft.get(&key_of(host, kind)).is_none() {
        put(draft, host, kind, |document| document.spec_json = spec.to_string());
    }
}

/// Changes a document of the host, which is made if it does not exist.
fn put(
    draft: &mut Draft<'_, DocumentRecord>,
    host: &Host,
    kind: DocumentKind,
    edit: impl FnOnce(&mut HostDocument),
) {
    let known = open(draft, host, kind);
    let mut wanted = known.clone().unwrap_or_else(|| new_document(host, kind));
    edit(&mut wanted.message);
    match known {
        Some(known) if known == wanted => {}
        Some(known) => {
            if !wanted.has_same_wishes(&known) {
                wanted.meta_mut().generation += 1;
            }
            draft.put(wanted.into());
        }
        None => draft.put(wanted.into()),
    }
}

fn new_document(host: &Host, kind: DocumentKind) -> OpenDocument {
    let owner = host.meta.clone().unwrap_or_default();
    let reference = OwnerReference {
        api_version: "metal3.io/v1alpha1".to_owned(),
        kind: "BareMetalHost".to_owned(),
        name: owner.name.clone(),
        uid: owner.uid,
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let meta = ObjectMeta {
        namespace: owner.namespace,
        name: owner.name,
        owner_references: vec![reference],
        ..ObjectMeta::default()
    };
    let message = HostDocument { kind: kind.into(), meta: Some(meta), ..HostDocument::default() };
    let record = OpenDocument::of(message);
    // Neither is there one, nor is the name of a host none.
    object::create(None, record.clone(), clock::now()).unwrap_or(record)
}

fn edit_status(
    draft: &mut Draft<'_, DocumentRecord>,
    host: &Host,
    kind: DocumentKind,
    edit: impl FnOnce(&mut Value),
) {
    let Some(known) = open(draft, host, kind) else { return };
    let read = serde_json::from_str(&known.message.status_json).ok().filter(Value::is_object);
    let mut status = read.unwrap_or_else(|| json!({}));
    edit(&mut status);
    let mut wanted = known.clone();
    wanted.message.status_json = status.to_string();
    store(draft, &known, wanted);
}

/// Returns a document of the host to be changed; `None`: there is none.
fn open(draft: &Draft<'_, DocumentRecord>, host: &Host, kind: DocumentKind) -> Option<OpenDocument> {
    draft.get(&key_of(host, kind)).map(|known| known.open())
}

fn key_of(host: &Host, kind: DocumentKind) -> String {
    let meta = host.meta.as_ref();
    let (namespace, name) = meta.map_or(("", ""), |meta| (&meta.namespace, &meta.name));
    document_key(kind, namespace, name)
}
