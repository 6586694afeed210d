//! Properties of every watched kind of resource. No single kind is known here.

use std::{
    borrow::{Borrow, Cow},
    cmp::Ordering,
    hash::{Hash, Hasher},
    sync::Arc,
};

use domain::core::invalid::Invalid;
use proto::{Message, WatchBatch, watch};

/// A property that many resources may share, by its name and its value, such as the session of components.
pub type Facet<'a> = (&'static str, &'a str);

/// A thing of one kind, with a key that is unique within the kind and the revision of its last change.
pub trait Resource: Clone + Send + Sync + 'static {
    /// The word for the kind in errors, logs and metrics, such as `component`.
    const KIND: &'static str;

    /// Key within the kind, such as a component id.
    fn key(&self) -> &str;

    /// The key as a text to keep, which a resource that has it as one shares.
    fn shared_key(&self) -> Arc<str> {
        self.key().into()
    }

    /// Makes the key share the text of `other`'s key, which is the same. Nothing happens for kinds that do not share it.
    fn share_key(&mut self, _other: &Self) {}

    /// Revision of the last change, in the order of commits of the store that owns the kind.
    fn revision(&self) -> u64;

    /// Sets the revision of the last change; only the store that owns the kind does.
    fn set_revision(&mut self, revision: u64);

    /// Revision of its latest change that has events; 0: there is none, or the kind has no events.
    fn last_event(&self) -> u64 {
        0
    }

    /// Sets the revision of the latest change that has events; only the store that owns the kind does.
    fn set_last_event(&mut self, _revision: u64) {}

    /// About how many bytes it takes, at least where that is many.
    fn weight(&self) -> usize {
        size_of::<Self>()
    }

    /// Returns whether a planted defect keeps the resource from being written.
    #[cfg(feature = "simulation")]
    fn is_forgotten(&self) -> bool {
        false
    }

    /// The facets that the owner's secondary index holds, each once and in a fixed order.
    fn facets(&self) -> impl Iterator<Item = Facet<'_>> {
        std::iter::empty()
    }
}

/// Form of a kind on the wire, where its owner lists it and others watch it, and usually in a row as well.
pub trait WireForm: Resource {
    /// Message of one resource.
    type Message: Message + Clone + Default;

    /// Values that the resources read from one stream share, such as interned texts; `()`: none.
    type Pool: Default + Send + 'static;

    /// Returns the message of the resource, which may be the resource itself.
    fn to_wire(&self) -> Cow<'_, Self::Message>;

    /// Reads a resource.
    ///
    /// # Errors
    /// The message is no valid resource; the error names the field.
    fn from_wire(message: Self::Message, pool: &mut Self::Pool) -> Result<Self, Invalid>;
}

/// A resource in a set of such, in which it is found by its key: the set holds nothing beside it.
pub(crate) struct KeyedResource<R>(pub(crate) Arc<R>);

impl<R> Clone for KeyedResource<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Resource> Borrow<str> for KeyedResource<R> {
    fn borrow(&self) -> &str {
        self.0.key()
    }
}

impl<R: Resource> PartialEq for KeyedResource<R> {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl<R: Resource> Eq for KeyedResource<R> {}

impl<R: Resource> PartialOrd for KeyedResource<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: Resource> Ord for KeyedResource<R> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key().cmp(other.0.key())
    }
}

impl<R: Resource> Hash for KeyedResource<R> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key().hash(state);
    }
}

/// A resource that no longer exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceDeletion {
    /// Key of the resource.
    pub key: Arc<str>,
    /// Revision of the deletion.
    pub revision: u64,
}

/// Part of a watch: the changes since the batch before.
///
/// Deletions precede changes: a key in both was deleted and created again.
#[derive(Debug)]
pub struct Batch<R> {
    /// Newest state of the resources that changed, in the order of their revisions.
    pub changed: Vec<Arc<R>>,
    /// Resources that were deleted.
    pub deleted: Vec<ResourceDeletion>,
    /// Everything up to here has been delivered.
    pub revision: u64,
    /// Marks the end of the initial state.
    pub synced: bool,
}

impl<R: Resource> Batch<R> {
    /// Returns the batch as a watch of the resources that are `wanted` sees it.
    pub(crate) fn picking(&self, wanted: impl Fn(&R) -> bool) -> Self {
        let (changed, others): (Vec<_>, Vec<_>) =
            self.changed.iter().cloned().partition(|resource| wanted(resource));
        let mut deleted = self.deleted.clone();
        deleted.extend(
            others.iter().map(|resource| ResourceDeletion {
                key: resource.shared_key(),
                revision: resource.revision(),
            }),
        );
        Self { changed, deleted, revision: self.revision, synced: self.synced }
    }
}

impl<R: WireForm> Batch<R> {
    /// Returns the batch as it goes out.
    pub(crate) fn to_wire(&self) -> WatchBatch<R::Message> {
        let deletions = self.deleted.iter();
        WatchBatch {
            changed: self.changed.iter().map(|resource| resource.to_wire().into_owned()).collect(),
            deletions: deletions
                .map(|one| watch::Deletion { key: one.key.to_string(), revision: one.revision })
                .collect(),
            revision: self.revision,
            synced: self.synced,
        }
    }

    /// Reads a batch.
    pub(crate) fn from_wire(batch: WatchBatch<R::Message>, pool: &mut R::Pool) -> Result<Self, Invalid> {
        let changed = batch.changed.into_iter().map(|message| R::from_wire(message, pool).map(Arc::new));
        let deleted = batch.deletions.into_iter();
        Ok(Self {
            changed: changed.collect::<Result<_, _>>()?,
            deleted: deleted
                .map(|one| ResourceDeletion { key: one.key.into(), revision: one.revision })
                .collect(),
            revision: batch.revision,
            synced: batch.synced,
        })
    }
}

impl<R> Clone for Batch<R> {
    fn clone(&self) -> Self {
        Self {
            changed: self.changed.clone(),
            deleted: self.deleted.clone(),
            revision: self.revision,
            synced: self.synced,
        }
    }
}
