//! Companions of a host that its decisions change: its inventory, firmware records, data image, and claims on secrets
//! and images. Every change can be repeated: a decision that turns out to be stale is made again.

use std::collections::BTreeSet;

use chassis::{
    Fault,
    kinds::host::{DocumentRecord, document, document_key, key},
    process::clock,
    store::ledger::Draft,
};
use domain::core::event::Actor;
use proto::host::{
    DocumentKind, Host, HostDecision, HostDocument, ObjectMeta, OwnerReference, companion_change::Change,
};
use serde_json::{Value, json};

use super::{
    ledgers::HostLedgers,
    object::{self, ObjectChange, ObjectRecord},
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
const OWNED: [DocumentKind; 3] =
    [DocumentKind::HardwareData, DocumentKind::FirmwareSettings, DocumentKind::FirmwareComponents];

/// Changes of companions that one report asks for.
#[derive(Default)]
pub(super) struct CompanionWork {
    documents: Vec<(Host, Change)>,
    claimed: Vec<String>,
    released: BTreeSet<String>,
}

impl CompanionWork {
    /// Adds what a decision about `host` asks for.
    pub(super) fn add(&mut self, host: &Host, decision: &HostDecision) {
        let name = decision.name.clone().unwrap_or_default();
        self.claimed.extend(tried_secret(host, decision).map(|secret| key(&name.namespace, &secret)));
        for change in decision.companions.iter().filter_map(|one| one.change.clone()) {
            if let Change::ClaimNetworkSecret(secret) = &change {
                self.claimed.push(key(&name.namespace, secret));
                continue;
            }
            if let Change::ReleaseAll(_) = &change {
                self.released.extend(secrets_of(host));
            }
            self.documents.push((host.clone(), change));
        }
    }
}

/// Returns the secret with a login that the driver is given for the first time.
fn tried_secret(host: &Host, decision: &HostDecision) -> Option<String> {
    let before = host.status.as_ref().and_then(|status| status.tried_credentials.as_ref());
    let now = decision.status.as_ref()?.tried_credentials.as_ref()?;
    (before.map(|login| &login.name) != Some(&now.name)).then(|| now.name.clone())
}

/// Returns the names of the secrets that a host uses or has used.
fn secret_names(host: &Host) -> impl Iterator<Item = &str> {
    let spec = host.spec.as_ref();
    let status = host.status.as_ref();
    let logins = status.map(|status| [&status.tried_credentials, &status.good_credentials]);
    let logins = logins.into_iter().flatten().flatten().map(|login| login.name.as_str());
    let bmc = spec.and_then(|spec| spec.bmc.as_ref()).map(|bmc| bmc.credentials_name.as_str());
    let network = spec.map(|spec| spec.preprovisioning_network_data_name.as_str());
    let claimed = host.progress.as_ref().and_then(|progress| progress.network_secret.as_deref());
    logins.chain(bmc).chain(network).chain(claimed).filter(|name| !name.is_empty())
}

/// Returns the keys of the secrets that a host uses or has used.
fn secrets_of(host: &Host) -> BTreeSet<String> {
    let namespace = host.meta.as_ref().map_or("", |meta| &meta.namespace);
    secret_names(host).map(|name| key(namespace, name)).collect()
}

impl HostLedgers {
    /// Carries out changes of companions.
    pub(super) async fn change_companions(&self, work: CompanionWork) -> Result<(), Fault> {
        let CompanionWork { documents, claimed, released } = work;
        if !documents.is_empty() {
            let change = move |draft: &mut Draft<'_, DocumentRecord>| {
                documents.iter().for_each(|(host, change)| change_document(draft, host, change));
                Ok(())
            };
            self.documents.write_by(STATUS_EVALUATOR, change).await?;
        }
        if !claimed.is_empty() || !released.is_empty() {
            let released = self.unused(released);
            let change = move |draft: &mut Draft<'_, StoredSecret>| {
                claimed.iter().for_each(|secret| claim(draft, secret));
                released.iter().for_each(|secret| release(draft, secret));
                Ok(())
            };
            self.secrets.write_by(STATUS_EVALUATOR, change).await?;
        }
        Ok(())
    }

    /// Returns those of the secrets that no other host uses than one that goes.
    fn unused(&self, released: BTreeSet<String>) -> BTreeSet<String> {
        if released.is_empty() {
            return released;
        }
        let staying = self.hosts.view().all().into_iter().filter(|record| record.meta().deleted_at.is_none());
        let used: BTreeSet<String> = staying.flat_map(|record| secrets_of(&record.message)).collect();
        released.difference(&used).cloned().collect()
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

fn store<R: ObjectRecord>(draft: &mut Draft<'_, R>, known: &R, wanted: R) {
    match object::settle(Some(known), wanted) {
        ObjectChange::Stored(record) => draft.put(record),
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
    let Some(known) = draft.get(&key) else { return };
    let spec: Value = serde_json::from_str(&known.message.spec_json).unwrap_or_default();
    let updates = spec.get("updates").cloned().unwrap_or_else(|| json!([]));
    edit_status(draft, host, DocumentKind::FirmwareComponents, |status| status["updates"] = updates);
}

fn release_documents(draft: &mut Draft<'_, DocumentRecord>, host: &Host) {
    for kind in OWNED {
        draft.delete(&key_of(host, kind));
    }
    let Some(known) = draft.get(&key_of(host, DocumentKind::PreprovisioningImage)) else { return };
    let mut wanted = DocumentRecord::clone(&known);
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
    let known = draft.get(&key_of(host, kind));
    let mut wanted = match &known {
        Some(known) => DocumentRecord::clone(known),
        None => new_document(host, kind),
    };
    edit(&mut wanted.message);
    match known {
        Some(known) if *known == wanted => {}
        Some(known) => {
            if !wanted.has_same_wishes(&known) {
                wanted.meta_mut().generation += 1;
            }
            draft.put(wanted);
        }
        None => draft.put(wanted),
    }
}

fn new_document(host: &Host, kind: DocumentKind) -> DocumentRecord {
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
    let record = DocumentRecord::of(message);
    // Neither is there one, nor is the name of a host none.
    object::create(None, record.clone(), clock::now()).unwrap_or(record)
}

fn edit_status(
    draft: &mut Draft<'_, DocumentRecord>,
    host: &Host,
    kind: DocumentKind,
    edit: impl FnOnce(&mut Value),
) {
    let Some(known) = draft.get(&key_of(host, kind)) else { return };
    let read = serde_json::from_str(&known.message.status_json).ok().filter(Value::is_object);
    let mut status = read.unwrap_or_else(|| json!({}));
    edit(&mut status);
    let mut wanted = DocumentRecord::clone(&known);
    wanted.message.status_json = status.to_string();
    store(draft, &known, wanted);
}

fn key_of(host: &Host, kind: DocumentKind) -> String {
    let meta = host.meta.as_ref();
    let (namespace, name) = meta.map_or(("", ""), |meta| (&meta.namespace, &meta.name));
    document_key(kind, namespace, name)
}
