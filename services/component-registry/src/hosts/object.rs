//! Rules about any record of a Kubernetes-style API: creation, replacement, deletion, preconditions and selection.

use std::sync::LazyLock;

use chassis::{
    Fault,
    kinds::host::{DocumentRecord, HostRecord, OpenDocument, OpenHost},
    mesh::time,
    store::resource::Resource,
};
use domain::core::{
    invalid::Invalid,
    ownership::{self, Propagation},
    time::Timestamp,
};
use proto::host::{
    self as wire, DocumentKind, LabelCondition, LabelOperator, ObjectFilter, ObjectMeta, Precondition,
};
use uuid::Uuid;

use crate::store::StoredSecret;

/// Longest name of a record or namespace, in characters.
const LONGEST_NAME: usize = 253;

/// Record as its ledger holds it.
pub(super) trait HeldRecord: Resource {
    /// Form of the record that rules read and change.
    type Open: ObjectRecord;

    /// Returns the record in the form of rules.
    fn open(&self) -> Self::Open;

    /// Returns the form that the ledger holds.
    fn close(open: Self::Open) -> Self;
}

impl HeldRecord for HostRecord {
    type Open = OpenHost;

    fn open(&self) -> OpenHost {
        Self::open(self)
    }

    fn close(open: OpenHost) -> Self {
        open.into()
    }
}

impl HeldRecord for DocumentRecord {
    type Open = OpenDocument;

    fn open(&self) -> OpenDocument {
        Self::open(self)
    }

    fn close(open: OpenDocument) -> Self {
        open.into()
    }
}

impl HeldRecord for StoredSecret {
    type Open = Self;

    fn open(&self) -> Self {
        self.clone()
    }

    fn close(open: Self) -> Self {
        open
    }
}

/// Record with metadata.
pub(super) trait ObjectRecord: Resource + PartialEq {
    /// Facts about the record.
    fn meta(&self) -> &ObjectMeta;

    /// Facts about the record, to be changed.
    fn meta_mut(&mut self) -> &mut ObjectMeta;

    /// Returns whether the wishes of people are the same in both.
    fn has_same_wishes(&self, other: &Self) -> bool;

    /// Returns whether the record is a namespace.
    fn is_namespace(&self) -> bool {
        false
    }
}

impl ObjectRecord for OpenHost {
    fn meta(&self) -> &ObjectMeta {
        meta_of(&self.message.meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.message.meta.get_or_insert_default()
    }

    fn has_same_wishes(&self, other: &Self) -> bool {
        self.message.spec == other.message.spec
    }
}

impl ObjectRecord for OpenDocument {
    fn meta(&self) -> &ObjectMeta {
        meta_of(&self.message.meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.message.meta.get_or_insert_default()
    }

    fn has_same_wishes(&self, other: &Self) -> bool {
        self.message.spec_json == other.message.spec_json
    }

    fn is_namespace(&self) -> bool {
        self.message.kind() == DocumentKind::Namespace
    }
}

impl ObjectRecord for StoredSecret {
    fn meta(&self) -> &ObjectMeta {
        meta_of(&self.record.message.meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.record.message.meta.get_or_insert_default()
    }

    fn has_same_wishes(&self, other: &Self) -> bool {
        let (one, two) = (&self.record.message, &other.record.message);
        (&one.r#type, one.immutable, one.data_version) == (&two.r#type, two.immutable, two.data_version)
    }
}

/// Metadata of a record that has none.
static NO_META: LazyLock<ObjectMeta> = LazyLock::new(ObjectMeta::default);

fn meta_of(meta: &Option<ObjectMeta>) -> &ObjectMeta {
    meta.as_ref().unwrap_or(&NO_META)
}

/// Effect of a write on a record.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ObjectChange<R> {
    /// The record is stored in this form.
    Stored(R),
    /// The record goes; this was its last form.
    Gone(R),
    /// The record is in this form already.
    Unchanged(R),
}

/// Makes the record `wanted`.
///
/// # Errors
/// There is one, or its name cannot be one.
pub(super) fn create<R: ObjectRecord>(
    current: Option<&R>,
    mut wanted: R,
    now: Timestamp,
) -> Result<R, Fault> {
    if let Some(current) = current {
        return Err(Fault::AlreadyExists { kind: R::KIND.into(), name: current.key().to_owned() });
    }
    check_name("metadata.name", &wanted.meta().name)?;
    let meta = wanted.meta_mut();
    meta.uid = Uuid::new_v4().to_string();
    meta.generation = 1;
    meta.created_at = Some(time::to_wire(now));
    meta.deleted_at = None;
    Ok(wanted)
}

/// Returns `wanted` with the facts of `current` that nobody writes. The caller has merged what it keeps besides.
///
/// # Errors
/// There is no such record, or another one than the request expects.
pub(super) fn replace<R: ObjectRecord>(
    key: &str,
    current: Option<&R>,
    mut wanted: R,
    precondition: &Precondition,
) -> Result<R, Fault> {
    let current = expected(key, current, precondition)?;
    let known = current.meta();
    let meta = wanted.meta_mut();
    meta.uid.clone_from(&known.uid);
    meta.created_at = known.created_at;
    meta.deleted_at = known.deleted_at;
    meta.generation = known.generation;
    if known.deleted_at.is_some() && meta.finalizers.iter().any(|name| !known.finalizers.contains(name)) {
        let reason = "cannot be added to a record that is to be deleted";
        return Err(Invalid::new("metadata.finalizers", reason).into());
    }
    if !wanted.has_same_wishes(current) {
        wanted.meta_mut().generation += 1;
    }
    wanted.set_revision(current.revision());
    wanted.set_last_event(current.last_event());
    Ok(wanted)
}

/// Request to delete a record.
#[derive(Debug, Clone, Default)]
pub(super) struct DeletionRequest {
    pub(super) precondition: Precondition,
    /// Treatment of dependents; `None`: as an earlier request said.
    pub(super) propagation: Option<Propagation>,
}

impl DeletionRequest {
    /// Reads a request.
    pub(super) fn of(precondition: Option<Precondition>, propagation: wire::Propagation) -> Self {
        let propagation = match propagation {
            wire::Propagation::Unspecified => None,
            wire::Propagation::Background => Some(Propagation::Background),
            wire::Propagation::Foreground => Some(Propagation::Foreground),
            wire::Propagation::Orphan => Some(Propagation::Orphan),
        };
        Self { precondition: precondition.unwrap_or_default(), propagation }
    }
}

/// Requests the deletion of a record.
///
/// # Errors
/// As [`replace`].
pub(super) fn delete<R: ObjectRecord>(
    key: &str,
    current: Option<&R>,
    request: &DeletionRequest,
    now: Timestamp,
) -> Result<R, Fault> {
    let mut record = expected(key, current, &request.precondition)?.clone();
    let is_namespace = record.is_namespace();
    let meta = record.meta_mut();
    let finalizers = std::mem::take(&mut meta.finalizers);
    meta.finalizers = ownership::finalizers_after_request(finalizers, request.propagation, is_namespace);
    if meta.deleted_at.is_none() {
        meta.deleted_at = Some(time::to_wire(now));
        meta.generation += 1;
    }
    Ok(record)
}

/// Returns the record that a write is about.
///
/// # Errors
/// There is none, or another one than the request expects.
pub(super) fn expected<'a, R: ObjectRecord>(
    key: &str,
    current: Option<&'a R>,
    precondition: &Precondition,
) -> Result<&'a R, Fault> {
    let current = current.ok_or_else(|| Fault::not_found(R::KIND, key))?;
    let is_other = precondition.revision != 0 && precondition.revision != current.revision();
    let is_another = !precondition.uid.is_empty() && precondition.uid != current.meta().uid;
    if is_other || is_another {
        return Err(Fault::Conflict { kind: R::KIND.into(), name: key.to_owned() });
    }
    Ok(current)
}

/// Returns the effect of storing `record` in place of `current`: a record that is to be deleted goes with its last
/// finalizer.
pub(super) fn settle<R: ObjectRecord>(current: Option<&R>, record: R) -> ObjectChange<R> {
    if record.meta().deleted_at.is_some() && record.meta().finalizers.is_empty() {
        ObjectChange::Gone(record)
    } else if current == Some(&record) {
        ObjectChange::Unchanged(record)
    } else {
        ObjectChange::Stored(record)
    }
}

/// Checks a name.
pub(super) fn check_name(field: &str, name: &str) -> Result<(), Invalid> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(Invalid::new(field, format!("has to have 1 to {LONGEST_NAME} characters")));
    }
    if !name.chars().all(is_part) {
        return Err(Invalid::new(field, "may have letters, digits, '.', '_' and '-' only"));
    }
    Ok(())
}

/// Returns whether a record passes a filter. The record is opened only where the filter has to look into it.
pub(super) fn passes<R: HeldRecord>(record: &R, filter: &ObjectFilter) -> bool {
    if filter.namespace.is_none() && filter.labels.is_empty() {
        return true;
    }
    let record = record.open();
    let meta = record.meta();
    let is_in = filter.namespace.as_ref().is_none_or(|namespace| *namespace == meta.namespace);
    is_in && filter.labels.iter().all(|condition| holds(meta, condition))
}

fn holds(meta: &ObjectMeta, condition: &LabelCondition) -> bool {
    let value = meta.labels.get(&condition.key);
    let is_listed = value.is_some_and(|value| condition.values.contains(value));
    match condition.operator() {
        LabelOperator::Unspecified | LabelOperator::In => is_listed,
        LabelOperator::NotIn => !is_listed,
        LabelOperator::Exists => value.is_some(),
        LabelOperator::DoesNotExist => value.is_none(),
    }
}
