//! Records that go with other records: dependents with their owners, and the content of a namespace.
//!
//! The rules are those of Kubernetes, for records with finalizers. Each record is judged alone, by what is known about its
//! owners and its dependents.

use std::{collections::BTreeSet, sync::Arc};

/// Finalizer of a record that waits for the deletion of its dependents.
pub const FOREGROUND: &str = "foregroundDeletion";

/// Finalizer of a record that waits until its dependents name it no more.
pub const ORPHAN: &str = "orphan";

/// Finalizer of a namespace that waits for the deletion of its content.
pub const NAMESPACE_CONTENT: &str = "kubernetes";

/// Treatment of the dependents of a deleted record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// The record goes first.
    Background,
    /// The dependents go first.
    Foreground,
    /// The dependents stay.
    Orphan,
}

/// Knowledge about an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerSight {
    /// There is such a record.
    Present,
    /// The owner is a record of another system, which deletes its dependents itself.
    Elsewhere,
    /// The owner is being deleted, after its dependents.
    Foreground,
    /// The owner is being deleted, and its dependents stay.
    Orphan,
    /// There is no such record.
    Absent,
}

/// Owner of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordOwner {
    /// Unique id in the reference.
    pub uid: Arc<str>,
    /// Knowledge about the owner.
    pub sight: OwnerSight,
}

/// Record with all that decides whether it stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnedRecord {
    /// Whether the deletion of the record was requested.
    pub is_deleted: bool,
    /// Finalizers of the record.
    pub finalizers: Vec<String>,
    /// Owners of the record.
    pub owners: Vec<RecordOwner>,
    /// Number of records that name this one as their owner.
    pub dependents: usize,
    /// Number of those whose references block the deletion of this record.
    pub blocking: usize,
    /// Number of records in the namespace that this record is.
    pub content: usize,
    /// Whether the deletion of the record's namespace was requested.
    pub is_in_deleted_namespace: bool,
}

/// Reason for a deletion that no person has requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectionReason {
    /// The namespace of the record is being deleted.
    NamespaceDeleted,
    /// No owner of the record is left.
    OwnersDeleted,
}

/// Next step for a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CollectionStep {
    /// Nothing is to be done until something changes.
    Rest,
    /// The deletion of the record is to be requested.
    Delete(CollectionReason, Propagation),
    /// References to the owners with these unique ids are to be removed.
    DropOwners(BTreeSet<Arc<str>>),
    /// Removal of a finalizer: the record no longer waits for its dependents or content.
    RemoveFinalizer(&'static str),
}

impl CollectionReason {
    /// Word for the reason in events.
    pub fn word(self) -> &'static str {
        match self {
            Self::NamespaceDeleted => "namespace_deleted",
            Self::OwnersDeleted => "owners_deleted",
        }
    }
}

impl RecordOwner {
    /// Returns what is known about an owner that exists, and whose deletion was perhaps requested.
    pub fn sight_of_present(is_deleted: bool, finalizers: &[String]) -> OwnerSight {
        match waits_for(finalizers).filter(|_| is_deleted) {
            Some(Propagation::Foreground) => OwnerSight::Foreground,
            Some(Propagation::Orphan) => OwnerSight::Orphan,
            Some(Propagation::Background) | None => OwnerSight::Present,
        }
    }
}

/// Returns the treatment of dependents that finalizers stand for; `None`: none of them does.
fn waits_for(finalizers: &[String]) -> Option<Propagation> {
    let has = |name: &str| finalizers.iter().any(|one| one == name);
    match (has(ORPHAN), has(FOREGROUND)) {
        (true, _) => Some(Propagation::Orphan),
        (false, true) => Some(Propagation::Foreground),
        (false, false) => None,
    }
}

/// Returns the finalizers of a record after a request to delete it. A request without a `propagation` changes nothing about
/// its dependents.
pub fn finalizers_after_request(
    mut finalizers: Vec<String>,
    propagation: Option<Propagation>,
    is_namespace: bool,
) -> Vec<String> {
    if let Some(propagation) = propagation {
        finalizers.retain(|name| name != FOREGROUND && name != ORPHAN);
        match propagation {
            Propagation::Background => {}
            Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
            Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
        }
    }
    if is_namespace && !finalizers.iter().any(|name| name == NAMESPACE_CONTENT) {
        finalizers.push(NAMESPACE_CONTENT.to_owned());
    }
    finalizers
}

/// Decides about a record.
pub fn next_step(record: &OwnedRecord) -> CollectionStep {
    let orphaned = record.owners_seen_as(&[OwnerSight::Orphan]);
    if !orphaned.is_empty() {
        CollectionStep::DropOwners(orphaned)
    } else if record.is_deleted {
        finish_deletion(record)
    } else {
        begin_deletion(record)
    }
}

fn finish_deletion(record: &OwnedRecord) -> CollectionStep {
    let waits =
        [(ORPHAN, record.dependents), (FOREGROUND, record.blocking), (NAMESPACE_CONTENT, record.content)];
    let ended = waits
        .into_iter()
        .find(|(finalizer, left)| *left == 0 && record.finalizers.iter().any(|name| name == finalizer));
    ended.map_or(CollectionStep::Rest, |(finalizer, _)| CollectionStep::RemoveFinalizer(finalizer))
}

fn begin_deletion(record: &OwnedRecord) -> CollectionStep {
    let has_present = record.sees(OwnerSight::Present);
    // A record whose owner is here goes when the owner does: the owner may need the record until then.
    if record.is_in_deleted_namespace && !has_present {
        return CollectionStep::Delete(CollectionReason::NamespaceDeleted, Propagation::Background);
    }
    let leaving = record.owners_seen_as(&[OwnerSight::Absent, OwnerSight::Foreground]);
    if leaving.is_empty() {
        return CollectionStep::Rest;
    }
    if has_present || record.sees(OwnerSight::Elsewhere) {
        return CollectionStep::DropOwners(leaving);
    }
    let waits = record.sees(OwnerSight::Foreground) && record.dependents > 0;
    let usual = if waits { Propagation::Foreground } else { Propagation::Background };
    let propagation = waits_for(&record.finalizers).unwrap_or(usual);
    CollectionStep::Delete(CollectionReason::OwnersDeleted, propagation)
}

impl OwnedRecord {
    fn sees(&self, sight: OwnerSight) -> bool {
        self.owners.iter().any(|owner| owner.sight == sight)
    }

    fn owners_seen_as(&self, sights: &[OwnerSight]) -> BTreeSet<Arc<str>> {
        let seen = self.owners.iter().filter(|owner| sights.contains(&owner.sight));
        seen.map(|owner| Arc::clone(&owner.uid)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{OwnerSight::*, *};

    fn owned(owners: &[OwnerSight]) -> OwnedRecord {
        let owner = |(place, sight): (usize, &OwnerSight)| RecordOwner {
            uid: place.to_string().into(),
            sight: *sight,
        };
        OwnedRecord { owners: owners.iter().enumerate().map(owner).collect(), ..OwnedRecord::default() }
    }

    fn deleted(finalizers: &[&str]) -> OwnedRecord {
        let finalizers = finalizers.iter().map(ToString::to_string).collect();
        OwnedRecord { is_deleted: true, finalizers, ..OwnedRecord::default() }
    }

    fn drop_owners(uids: &[&str]) -> CollectionStep {
        CollectionStep::DropOwners(uids.iter().map(|uid| (*uid).into()).collect())
    }

    #[test]
    fn records_go_when_the_last_owner_has_gone() {
        let go = |propagation| CollectionStep::Delete(CollectionReason::OwnersDeleted, propagation);
        let rows = [
            (owned(&[]), CollectionStep::Rest),
            (owned(&[Present]), CollectionStep::Rest),
            (owned(&[Elsewhere]), CollectionStep::Rest),
            (owned(&[Absent]), go(Propagation::Background)),
            (owned(&[Absent, Absent]), go(Propagation::Background)),
            (owned(&[Absent, Present]), drop_owners(&["0"])),
            (owned(&[Absent, Elsewhere]), drop_owners(&["0"])),
            (owned(&[Present, Foreground, Absent]), drop_owners(&["1", "2"])),
            (owned(&[Foreground]), go(Propagation::Background)),
            (OwnedRecord { dependents: 1, ..owned(&[Foreground]) }, go(Propagation::Foreground)),
            (OwnedRecord { dependents: 1, ..owned(&[Absent]) }, go(Propagation::Background)),
            (
                OwnedRecord { finalizers: vec![ORPHAN.to_owned()], ..owned(&[Absent]) },
                go(Propagation::Orphan),
            ),
            (owned(&[Orphan]), drop_owners(&["0"])),
            (owned(&[Orphan, Absent]), drop_owners(&["0"])),
            (OwnedRecord { owners: owned(&[Orphan]).owners, ..deleted(&["x"]) }, drop_owners(&["0"])),
            (OwnedRecord { owners: owned(&[Absent]).owners, ..deleted(&["x"]) }, CollectionStep::Rest),
        ];
        for (record, expected) in rows {
            assert_eq!(next_step(&record), expected, "{record:?}");
        }
    }

    #[test]
    fn deleted_records_wait_for_what_their_finalizers_name() {
        let rows = [
            (deleted(&[]), CollectionStep::Rest),
            (deleted(&["x"]), CollectionStep::Rest),
            (deleted(&["x", FOREGROUND]), CollectionStep::RemoveFinalizer(FOREGROUND)),
            (
                OwnedRecord { dependents: 1, ..deleted(&[FOREGROUND]) },
                CollectionStep::RemoveFinalizer(FOREGROUND),
            ),
            (OwnedRecord { dependents: 1, blocking: 1, ..deleted(&[FOREGROUND]) }, CollectionStep::Rest),
            (OwnedRecord { dependents: 1, ..deleted(&[ORPHAN]) }, CollectionStep::Rest),
            (deleted(&[ORPHAN]), CollectionStep::RemoveFinalizer(ORPHAN)),
            (OwnedRecord { content: 1, ..deleted(&[NAMESPACE_CONTENT]) }, CollectionStep::Rest),
            (deleted(&[NAMESPACE_CONTENT]), CollectionStep::RemoveFinalizer(NAMESPACE_CONTENT)),
            (
                OwnedRecord { content: 1, ..deleted(&[NAMESPACE_CONTENT, ORPHAN]) },
                CollectionStep::RemoveFinalizer(ORPHAN),
            ),
        ];
        for (record, expected) in rows {
            assert_eq!(next_step(&record), expected, "{record:?}");
        }
    }

    #[test]
    fn content_goes_with_its_namespace_after_its_owners() {
        let go = CollectionStep::Delete(CollectionReason::NamespaceDeleted, Propagation::Background);
        let rows = [
            (vec![], go.clone()),
            (vec![Elsewhere], go.clone()),
            (vec![Absent], go),
            (vec![Present], CollectionStep::Rest),
        ];
        for (owners, expected) in rows {
            let record = OwnedRecord { is_in_deleted_namespace: true, ..owned(&owners) };
            assert_eq!(next_step(&record), expected, "{record:?}");
        }
    }

    #[test]
    fn the_last_request_decides_about_dependents() {
        let rows = [
            (vec!["x"], None, false, vec!["x"]),
            (vec![], Some(Propagation::Foreground), false, vec![FOREGROUND]),
            (vec![FOREGROUND], None, false, vec![FOREGROUND]),
            (vec!["x", FOREGROUND], Some(Propagation::Orphan), false, vec!["x", ORPHAN]),
            (vec![ORPHAN], Some(Propagation::Background), false, vec![]),
            (vec![], Some(Propagation::Background), true, vec![NAMESPACE_CONTENT]),
            (vec![NAMESPACE_CONTENT], None, true, vec![NAMESPACE_CONTENT]),
        ];
        for (before, propagation, is_namespace, expected) in rows {
            let finalizers = before.iter().map(ToString::to_string).collect();
            assert_eq!(finalizers_after_request(finalizers, propagation, is_namespace), expected);
        }
    }

    #[test]
    fn owners_under_deletion_are_seen_by_their_finalizers() {
        let rows = [
            (false, vec![FOREGROUND], Present),
            (true, vec![], Present),
            (true, vec![FOREGROUND], Foreground),
            (true, vec![FOREGROUND, ORPHAN], Orphan),
        ];
        for (is_deleted, finalizers, expected) in rows {
            let finalizers: Vec<_> = finalizers.iter().map(ToString::to_string).collect();
            assert_eq!(RecordOwner::sight_of_present(is_deleted, &finalizers), expected);
        }
    }
}
