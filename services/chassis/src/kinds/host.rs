//! Bare-metal hosts, their companions and secrets, the looks of their drivers, and their power calls.
//!
//! The records are the messages of the wire, beside their keys: the part that owns them merges what people write, which
//! rules read in part. Those of which there are several for each host are held encoded. [`record::host`] reads a host for the rules, and the other modules convert its parts both ways.

pub mod annotations;
pub mod call;
pub mod document;
pub mod evidence;
pub mod firmware;
mod inventory_text;
mod message;
pub mod progress;
pub mod record;
pub mod spec;
pub mod status;
mod status_text;
#[cfg(test)]
mod tests;
mod value;

use std::sync::LazyLock;

use domain::{core::id::ComponentId, host::record::HostKey};
use proto::{host as wire, power::HostPower};

pub use message::{EncodedMessage, KeyedMessage, NamedMessage, PackedMessage};

use crate::{observe::mirror::MirroredKind, process::packed::SimilarBytes, store::ledger::OneOf};

/// Facet of the namespace, by which the owner finds records.
pub const NAMESPACE: &str = "namespace";

/// Facet of the node, by which the owner finds the hosts that may be a node.
const NODE_NAME: &str = "node";

/// Returns the condition on hosts that one of `ids` may be the node of. [`record::node_id`] says whose node it is.
pub fn may_be_nodes<'a>(ids: impl Iterator<Item = &'a ComponentId>) -> OneOf {
    let ids = ids.map(|id| (NODE_NAME, id.as_str().to_owned()));
    ids.chain([(NODE_NAME, String::new())]).collect()
}

/// Record of a host.
pub type HostRecord = EncodedMessage<wire::Host>;

/// Record of a host as rules read and change it.
pub type OpenHost = KeyedMessage<wire::Host>;

/// Record of a companion of hosts.
pub type DocumentRecord = EncodedMessage<wire::HostDocument>;

/// Record of a companion as rules read and change it.
pub type OpenDocument = KeyedMessage<wire::HostDocument>;

/// Record of a secret, without its values.
pub type SecretRecord = KeyedMessage<wire::HostSecret>;

/// Latest news of the driver of a host.
pub type SightRecord = EncodedMessage<wire::HostSight>;

/// Last power call of a host.
pub type HostPowerRecord = EncodedMessage<HostPower>;

impl MirroredKind for HostRecord {}
impl MirroredKind for DocumentRecord {}
impl MirroredKind for SecretRecord {}
impl MirroredKind for SightRecord {}
impl MirroredKind for HostPowerRecord {}

impl NamedMessage for wire::Host {
    const KIND: &'static str = "host";

    fn name(&self) -> String {
        name_of(self.meta.as_ref())
    }

    fn node_name(&self) -> Option<&str> {
        let meta = self.meta.as_ref()?;
        let name = meta.annotations.get(annotations::XNAME).unwrap_or(&meta.name);
        Some(if ComponentId::parse(name).is_ok() { name } else { "" })
    }

    fn revisions(&mut self) -> (&mut u64, Option<&mut u64>) {
        (&mut self.revision, Some(&mut self.last_event))
    }

    fn seen(&self) -> (u64, u64) {
        (self.revision, self.last_event)
    }
}

impl NamedMessage for wire::HostDocument {
    const KIND: &'static str = "host_document";

    fn name(&self) -> String {
        format!("{}/{}", document_word(self.kind()), name_of(self.meta.as_ref()))
    }

    fn namespace_of(key: &str) -> &str {
        key.split('/').nth(1).unwrap_or_default()
    }

    fn revisions(&mut self) -> (&mut u64, Option<&mut u64>) {
        (&mut self.revision, Some(&mut self.last_event))
    }

    fn seen(&self) -> (u64, u64) {
        (self.revision, self.last_event)
    }
}

impl NamedMessage for wire::HostSecret {
    const KIND: &'static str = "host_secret";

    fn name(&self) -> String {
        name_of(self.meta.as_ref())
    }

    fn revisions(&mut self) -> (&mut u64, Option<&mut u64>) {
        (&mut self.revision, Some(&mut self.last_event))
    }

    fn seen(&self) -> (u64, u64) {
        (self.revision, self.last_event)
    }
}

impl NamedMessage for wire::HostSight {
    const KIND: &'static str = "host_sight";

    fn name(&self) -> String {
        key(&self.namespace, &self.name)
    }

    fn revisions(&mut self) -> (&mut u64, Option<&mut u64>) {
        (&mut self.revision, None)
    }

    fn seen(&self) -> (u64, u64) {
        (self.revision, 0)
    }
}

impl NamedMessage for HostPower {
    const KIND: &'static str = "host_power";

    fn name(&self) -> String {
        key(&self.namespace, &self.name)
    }

    fn revisions(&mut self) -> (&mut u64, Option<&mut u64>) {
        (&mut self.revision, None)
    }

    fn seen(&self) -> (u64, u64) {
        (self.revision, 0)
    }
}

impl PackedMessage for wire::Host {
    fn similar() -> &'static SimilarBytes {
        static SIMILAR: LazyLock<SimilarBytes> = LazyLock::new(SimilarBytes::default);
        &SIMILAR
    }
}

impl PackedMessage for wire::HostDocument {
    fn similar() -> &'static SimilarBytes {
        static SIMILAR: LazyLock<SimilarBytes> = LazyLock::new(SimilarBytes::default);
        &SIMILAR
    }
}

impl PackedMessage for wire::HostSight {
    fn similar() -> &'static SimilarBytes {
        static SIMILAR: LazyLock<SimilarBytes> = LazyLock::new(SimilarBytes::default);
        &SIMILAR
    }
}

impl PackedMessage for HostPower {
    fn similar() -> &'static SimilarBytes {
        static SIMILAR: LazyLock<SimilarBytes> = LazyLock::new(SimilarBytes::default);
        &SIMILAR
    }
}

/// Returns the key of a host, a secret, a sight or a power call.
pub fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// Returns the key of a document.
pub fn document_key(kind: wire::DocumentKind, namespace: &str, name: &str) -> String {
    format!("{}/{namespace}/{name}", document_word(kind))
}

/// Reads the key of a host.
pub fn parse_key(key: &str) -> HostKey {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    HostKey { namespace: namespace.into(), name: name.into() }
}

/// Returns the word for a kind of document, which is its plural in the contract.
pub fn document_word(kind: wire::DocumentKind) -> &'static str {
    match kind {
        wire::DocumentKind::Unspecified => "",
        wire::DocumentKind::HardwareData => "hardwaredata",
        wire::DocumentKind::FirmwareSettings => "hostfirmwaresettings",
        wire::DocumentKind::FirmwareSchema => "firmwareschemas",
        wire::DocumentKind::FirmwareComponents => "hostfirmwarecomponents",
        wire::DocumentKind::UpdatePolicy => "hostupdatepolicies",
        wire::DocumentKind::DataImage => "dataimages",
        wire::DocumentKind::PreprovisioningImage => "preprovisioningimages",
        wire::DocumentKind::EventSubscription => "bmceventsubscriptions",
        wire::DocumentKind::Namespace => "namespaces",
    }
}

fn name_of(meta: Option<&wire::ObjectMeta>) -> String {
    meta.map_or_else(String::new, |meta| key(&meta.namespace, &meta.name))
}
