//! Mirrors of the evidence for decisions about hosts, which queue the hosts to decide again.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use chassis::{
    Context,
    kinds::host::{
        DocumentRecord, HostPowerRecord, HostRecord, SecretRecord, SightRecord, document_key, key,
    },
    observe::{
        mirror::{Change, Mirror},
        work::WorkQueue,
    },
    store::resource::Resource,
};
use parking_lot::Mutex;
use proto::{
    host::{DocumentKind, Host, HostDocument, HostSight},
    power::HostPower,
};

/// Mirrors of hosts and of all that is known about them. Clones share them.
#[derive(Clone)]
pub(super) struct HostMirrors {
    hosts: Mirror<HostRecord>,
    documents: Mirror<DocumentRecord>,
    secrets: Mirror<SecretRecord>,
    sights: Mirror<SightRecord>,
    powers: Mirror<HostPowerRecord>,
}

/// Hosts that name a secret, by the key of the secret.
#[derive(Default)]
struct SecretUsers(HashMap<String, HashSet<Arc<str>>>);

impl SecretUsers {
    fn follow(&mut self, change: &Change<HostRecord>) {
        let host = change.newest().map(|record| record.shared_key()).unwrap_or_default();
        for secret in change.previous.iter().flat_map(|record| secrets_of(&record.message())) {
            if let Some(users) = self.0.get_mut(&secret) {
                users.remove(&host);
                if users.is_empty() {
                    self.0.remove(&secret);
                }
            }
        }
        for secret in change.current.iter().flat_map(|record| secrets_of(&record.message())) {
            self.0.entry(secret).or_default().insert(Arc::clone(&host));
        }
    }
}

impl HostMirrors {
    /// Starts the mirrors; every change queues the hosts that it may affect.
    pub(super) fn start(context: &Context, queue: &WorkQueue<Arc<str>>) -> anyhow::Result<Self> {
        let settings = &context.settings;
        let registry = context.channel(&settings.component_registry.url)?;
        let provisioner = context.channel(&settings.host_provisioner.url)?;
        let controller = context.channel(&settings.power_controller.url)?;
        let users: Arc<Mutex<SecretUsers>> = Arc::default();
        let (marked, used) = (queue.clone(), Arc::clone(&users));
        let hosts = Mirror::start(context, registry.clone(), move |changes: &[Change<HostRecord>]| {
            changes.iter().for_each(|change| used.lock().follow(change));
            marked.mark(changes.iter().filter_map(|one| one.newest()).map(|record| record.shared_key()));
        });
        let marked = queue.clone();
        let documents =
            Mirror::start(context, registry.clone(), move |changes: &[Change<DocumentRecord>]| {
                marked.mark(changes.iter().map(|change| host_of_document(change.key())));
            });
        let marked = queue.clone();
        let secrets = Mirror::start(context, registry, move |changes: &[Change<SecretRecord>]| {
            let users = users.lock();
            let concerned = changes.iter().filter_map(|change| users.0.get(change.key()));
            marked.mark(concerned.flatten().cloned());
        });
        let marked = queue.clone();
        let sights = Mirror::start(context, provisioner, move |changes: &[Change<SightRecord>]| {
            marked.mark(changes.iter().filter_map(|one| one.newest()).map(|sight| sight.shared_key()));
        });
        let marked = queue.clone();
        let powers = Mirror::start(context, controller, move |changes: &[Change<HostPowerRecord>]| {
            marked.mark(changes.iter().filter_map(|one| one.newest()).map(|power| power.shared_key()));
        });
        Ok(Self { hosts, documents, secrets, sights, powers })
    }

    /// Waits until hosts, companions and secrets are complete. News of drivers that are missing count as unknown.
    pub(super) async fn subjects_reached(&self) {
        tokio::join!(self.hosts.reached(1), self.documents.reached(1), self.secrets.reached(1));
    }

    /// Waits until hosts are known as of that revision.
    pub(super) async fn hosts_reached(&self, revision: u64) {
        self.hosts.reached(revision).await;
    }

    /// Every host.
    pub(super) fn hosts(&self) -> Vec<Arc<HostRecord>> {
        self.hosts.all()
    }

    /// The host of that key.
    pub(super) fn host(&self, key: &str) -> Option<Arc<HostRecord>> {
        self.hosts.get(key)
    }

    /// Reads a companion of the host by `read`, if there is one.
    pub(super) fn document<T>(
        &self,
        host: &Host,
        kind: DocumentKind,
        read: impl FnOnce(&HostDocument) -> T,
    ) -> Option<T> {
        let document = self.companion(host, kind)?;
        Some(read(&document.message()))
    }

    fn companion(&self, host: &Host, kind: DocumentKind) -> Option<Arc<DocumentRecord>> {
        let meta = host.meta.as_ref()?;
        self.documents.get(&document_key(kind, &meta.namespace, &meta.name))
    }

    /// Revision of a companion of the host; 0: there is none.
    pub(super) fn document_revision(&self, host: &Host, kind: DocumentKind) -> u64 {
        self.companion(host, kind).map_or(0, |document| document.revision())
    }

    /// The secret of that name in the namespace of the host.
    pub(super) fn secret(&self, host: &Host, name: &str) -> Option<Arc<SecretRecord>> {
        let namespace = host.meta.as_ref().map_or("", |meta| &meta.namespace);
        self.secrets.get(&key(namespace, name))
    }

    /// News of the driver of a host, unless they are about an earlier one of the same name.
    pub(super) fn sight(&self, host: &Host) -> Option<HostSight> {
        let meta = host.meta.as_ref()?;
        let sight = self.sights.get(&key(&meta.namespace, &meta.name))?.message();
        [meta.uid.as_str(), ""].contains(&sight.uid.as_str()).then_some(sight)
    }

    /// Last power call of a host, unless it was of an earlier one of the same name.
    pub(super) fn power(&self, host: &Host) -> Option<HostPower> {
        let meta = host.meta.as_ref()?;
        let power = self.powers.get(&key(&meta.namespace, &meta.name))?.message();
        (power.uid == meta.uid).then_some(power)
    }
}

/// Returns the keys of the secrets that a host names.
fn secrets_of(host: &Host) -> Vec<String> {
    let Some(spec) = &host.spec else { return Vec::new() };
    let namespace = host.meta.as_ref().map_or("", |meta| &meta.namespace);
    let references = [&spec.user_data, &spec.network_data, &spec.meta_data].into_iter().flatten();
    let mut names: Vec<&str> = references.map(|reference| reference.name.as_str()).collect();
    names.extend(spec.bmc.as_ref().map(|bmc| bmc.credentials_name.as_str()));
    names.push(&spec.preprovisioning_network_data_name);
    names.extend(spec.image.as_ref().map(|image| image.oci_auth_secret_name.as_str()));
    names.into_iter().filter(|name| !name.is_empty()).map(|name| key(namespace, name)).collect()
}

/// Returns the key of the host that a document is about: the document has the name of its host.
fn host_of_document(key: &str) -> Arc<str> {
    key.split_once('/').map_or(key, |(_, host)| host).into()
}
