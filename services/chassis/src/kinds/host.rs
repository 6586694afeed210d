//! Bare-metal hosts, their companions and secrets, and the looks of their drivers.
//!
//! The records are the messages of the wire, beside their keys: the part that owns them merges what people write, which
//! rules read in part. [`record::host`] reads a host for the rules, and the other modules convert its parts both ways.

pub mod annotations;
pub mod call;
pub mod document;
pub mod evidence;
pub mod progress;
pub mod record;
pub mod spec;
pub mod status;
mod status_text;
#[cfg(test)]
mod tests;
mod value;

use std::{borrow::Cow, sync::Arc};

use domain::{
    core::{id::ComponentId, invalid::Invalid},
    host::record::HostKey,
};
use proto::{Message, host as wire};

use crate::{
    observe::mirror::MirroredKind,
    store::{
        ledger::OneOf,
        resource::{Facet, Resource, WireForm},
    },
};

/// Message that is a record of its own, named by more than one field.
pub trait NamedMessage: Message + Clone + Default + PartialEq + 'static {
    /// The word for the kind.
    const KIND: &'static str;

    /// Returns the key within the kind.
    fn name(&self) -> String;

    /// Namespace of the record.
    fn namespace(&self) -> &str;

    /// Name that the id of the record's node is, as far as it has one; empty: an id is made from a name that is too long.
    fn node_name(&self) -> Option<&str> {
        None
    }

    /// Returns the places of the revision of the last change, and of the last one that has events.
    fn revisions(&mut self) -> (&mut u64, Option<&mut u64>);

    /// Returns the revision of the last change, and of the last one that has events.
    fn seen(&self) -> (u64, u64);
}

/// Record that is its message, with its key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyedMessage<M> {
    key: Arc<str>,
    /// Message on the wire and in storage.
    pub message: M,
}

impl<M: NamedMessage> KeyedMessage<M> {
    /// Makes a record of `message`.
    pub fn of(message: M) -> Self {
        Self { key: message.name().into(), message }
    }
}

impl<M: NamedMessage> Resource for KeyedMessage<M> {
    const KIND: &'static str = M::KIND;

    fn key(&self) -> &str {
        &self.key
    }

    fn shared_key(&self) -> Arc<str> {
        Arc::clone(&self.key)
    }

    fn share_key(&mut self, other: &Self) {
        self.key = Arc::clone(&other.key);
    }

    fn revision(&self) -> u64 {
        self.message.seen().0
    }

    fn set_revision(&mut self, revision: u64) {
        *self.message.revisions().0 = revision;
    }

    fn last_event(&self) -> u64 {
        self.message.seen().1
    }

    fn set_last_event(&mut self, revision: u64) {
        if let Some(place) = self.message.revisions().1 {
            *place = revision;
        }
    }

    fn weight(&self) -> usize {
        size_of::<Self>() + self.message.encoded_len()
    }

    fn facets(&self) -> impl Iterator<Item = Facet<'_>> {
        let node = self.message.node_name().map(|name| (NODE_NAME, name));
        std::iter::once((NAMESPACE, self.message.namespace())).chain(node)
    }
}

/// Facet of the namespace, by which the owner finds records.
pub const NAMESPACE: &str = "namespace";

/// Facet of the node, by which the owner finds the hosts that may be a node.
const NODE_NAME: &str = "node";

/// Returns the condition on hosts that one of `ids` may be the node of. [`record::node_id`] says whose node it is.
pub fn may_be_nodes<'a>(ids: impl Iterator<Item = &'a ComponentId>) -> OneOf {
    let ids = ids.map(|id| (NODE_NAME, id.as_str().to_owned()));
    ids.chain([(NODE_NAME, String::new())]).collect()
}

impl<M: NamedMessage> WireForm for KeyedMessage<M> {
    type Message = M;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, M> {
        Cow::Borrowed(&self.message)
    }

    fn from_wire(message: M, (): &mut ()) -> Result<Self, Invalid> {
        Ok(Self::of(message))
    }
}

/// Record of a host.
pub type HostRecord = KeyedMessage<wire::Host>;

/// Record of a companion of hosts.
pub type DocumentRecord = KeyedMessage<wire::HostDocument>;

/// Record of a secret, without its values.
pub type SecretRecord = KeyedMessage<wire::HostSecret>;

/// Latest news of the driver of a host.
pub type SightRecord = KeyedMessage<wire::HostSight>;

impl MirroredKind for HostRecord {}
impl MirroredKind for DocumentRecord {}
impl MirroredKind for SecretRecord {}
impl MirroredKind for SightRecord {}

impl NamedMessage for wire::Host {
    const KIND: &'static str = "host";

    fn name(&self) -> String {
        name_of(self.meta.as_ref())
    }

    fn namespace(&self) -> &str {
        namespace_of(self.meta.as_ref())
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

    fn namespace(&self) -> &str {
        namespace_of(self.meta.as_ref())
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

    fn namespace(&self) -> &str {
        namespace_of(self.meta.as_ref())
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

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn revisions(&mut self) -> (&mut u64, Option<&mut u64>) {
        (&mut self.revision, None)
    }

    fn seen(&self) -> (u64, u64) {
        (self.revision, 0)
    }
}

/// Returns the key of a host, a secret or a sight.
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

fn namespace_of(meta: Option<&wire::ObjectMeta>) -> &str {
    meta.map_or("", |meta| &meta.namespace)
}
