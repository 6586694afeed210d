//! Records that are messages of the wire.

use std::{borrow::Cow, fmt, marker::PhantomData, sync::Arc};

use domain::core::invalid::Invalid;
use proto::Message;

use super::{NAMESPACE, NODE_NAME};
use crate::{
    process::packed::{PackedBytes, SimilarBytes},
    store::resource::{Facet, Resource, WireForm},
};

/// Message that is a record of its own, named by more than one field.
pub trait NamedMessage: Message + Clone + Default + PartialEq + 'static {
    /// The word for the kind.
    const KIND: &'static str;

    /// Returns the key within the kind.
    fn name(&self) -> String;

    /// Returns the namespace of the record with this key.
    fn namespace_of(key: &str) -> &str {
        key.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// Name that the id of the record's node is, as far as it has one; empty: an id is made from a name that is too long.
    fn node_name(&self) -> Option<&str> {
        None
    }

    /// Returns the places of the revision of the last change, and of the last one that has events.
    fn revisions(&mut self) -> (&mut u64, Option<&mut u64>);

    /// Returns the revision of the last change, and of the last one that has events.
    fn seen(&self) -> (u64, u64);
}

/// Message of a kind of which there are several for each host.
pub trait PackedMessage: NamedMessage {
    /// Returns the packer of all records of the kind in this process. No result depends on it.
    fn similar() -> &'static SimilarBytes;
}

/// Record that is its message, with its key: the form that rules read and change.
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
        std::iter::once((NAMESPACE, M::namespace_of(&self.key))).chain(node)
    }
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

/// Record that is its message, with its key, as it is held: encoded and packed. There may be ten thousand of a kind, of
/// which only those are read that change, and a message takes several times as many bytes.
#[derive(Clone, PartialEq)]
pub struct EncodedMessage<M> {
    key: Arc<str>,
    revision: u64,
    last_event: u64,
    /// Name of the node, see [`NamedMessage::node_name`].
    node_name: Option<Box<str>>,
    /// Encoded message without its revisions.
    packed: PackedBytes,
    message: PhantomData<M>,
}

impl<M: PackedMessage> EncodedMessage<M> {
    /// Makes a record of `message`.
    pub fn of(message: M) -> Self {
        KeyedMessage::of(message).into()
    }

    /// Returns the message.
    pub fn message(&self) -> M {
        let mut message = M::decode(self.packed.unpack()).expect("the bytes were encoded here");
        let (revision, last_event) = message.revisions();
        *revision = self.revision;
        if let Some(place) = last_event {
            *place = self.last_event;
        }
        message
    }

    /// Returns the record in the form that rules change.
    pub fn open(&self) -> KeyedMessage<M> {
        KeyedMessage { key: Arc::clone(&self.key), message: self.message() }
    }
}

impl<M: PackedMessage> From<KeyedMessage<M>> for EncodedMessage<M> {
    fn from(KeyedMessage { key, mut message }: KeyedMessage<M>) -> Self {
        let (revision, last_event) = message.seen();
        let (revision_place, last_event_place) = message.revisions();
        *revision_place = 0;
        if let Some(place) = last_event_place {
            *place = 0;
        }
        Self {
            key,
            revision,
            last_event,
            node_name: message.node_name().map(Into::into),
            packed: M::similar().pack(&message.encode_to_vec()),
            message: PhantomData,
        }
    }
}

impl<M: PackedMessage> Resource for EncodedMessage<M> {
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
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn last_event(&self) -> u64 {
        self.last_event
    }

    fn set_last_event(&mut self, revision: u64) {
        self.last_event = revision;
    }

    fn weight(&self) -> usize {
        size_of::<Self>() + self.packed.len()
    }

    fn facets(&self) -> impl Iterator<Item = Facet<'_>> {
        let node = self.node_name.as_deref().map(|name| (NODE_NAME, name));
        std::iter::once((NAMESPACE, M::namespace_of(&self.key))).chain(node)
    }
}

impl<M: PackedMessage> WireForm for EncodedMessage<M> {
    type Message = M;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, M> {
        Cow::Owned(self.message())
    }

    fn from_wire(message: M, (): &mut ()) -> Result<Self, Invalid> {
        Ok(Self::of(message))
    }
}

impl<M: PackedMessage + fmt::Debug> fmt::Debug for EncodedMessage<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.open().fmt(f)
    }
}
