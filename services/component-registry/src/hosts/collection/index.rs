//! Records by their owners.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chassis::kinds::host::{document_key, document_word, key};
use proto::host::{DocumentKind, OwnerReference};

/// Group of hosts and their companions.
const METAL3: &str = "metal3.io/";

/// Kinds of documents that are owners, as references name them.
const DOCUMENTS: [(&str, DocumentKind); 8] = [
    ("HardwareData", DocumentKind::HardwareData),
    ("HostFirmwareSettings", DocumentKind::FirmwareSettings),
    ("FirmwareSchema", DocumentKind::FirmwareSchema),
    ("HostFirmwareComponents", DocumentKind::FirmwareComponents),
    ("HostUpdatePolicy", DocumentKind::UpdatePolicy),
    ("DataImage", DocumentKind::DataImage),
    ("PreprovisioningImage", DocumentKind::PreprovisioningImage),
    ("BMCEventSubscription", DocumentKind::EventSubscription),
];

/// Record, by its ledger and its key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum RecordId {
    Host(Arc<str>),
    Document(Arc<str>),
    Secret(Arc<str>),
}

impl RecordId {
    /// Returns the id of a namespace.
    pub(super) fn of_namespace(name: &str) -> Self {
        Self::Document(document_key(DocumentKind::Namespace, "", name).into())
    }

    /// Returns the owner that a record of `namespace` names; `None`: another system keeps it.
    pub(super) fn of_owner(owner: &OwnerReference, namespace: &str) -> Option<Self> {
        let OwnerReference { api_version, kind, name, .. } = owner;
        match (api_version.as_str(), kind.as_str()) {
            ("v1", "Secret") => Some(Self::Secret(key(namespace, name).into())),
            ("v1", "Namespace") => Some(Self::of_namespace(name)),
            (version, "BareMetalHost") if version.starts_with(METAL3) => {
                Some(Self::Host(key(namespace, name).into()))
            }
            (version, kind) if version.starts_with(METAL3) => {
                let (_, document) = DOCUMENTS.into_iter().find(|(word, _)| *word == kind)?;
                Some(Self::Document(document_key(document, namespace, name).into()))
            }
            _ => None,
        }
    }

    /// Key of the record in its ledger.
    pub(super) fn key(&self) -> &str {
        match self {
            Self::Host(key) | Self::Document(key) | Self::Secret(key) => key,
        }
    }

    /// Returns the namespace of the record; empty for a namespace.
    pub(super) fn namespace(&self) -> &str {
        let place = match self {
            Self::Host(key) | Self::Secret(key) => key,
            Self::Document(key) => key.split_once('/').map_or("", |(_, place)| place),
        };
        place.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// Returns the name of the namespace that the record is; `None`: the record is no namespace.
    pub(super) fn as_namespace(&self) -> Option<&str> {
        let Self::Document(key) = self else { return None };
        let place = key.strip_prefix(document_word(DocumentKind::Namespace))?;
        place.strip_prefix("//")
    }
}

/// Records that name owners, both ways. A name may be that of a later record, so that an entry proves nothing.
#[derive(Default)]
pub(super) struct DependentIndex {
    owners: BTreeMap<RecordId, BTreeSet<RecordId>>,
    dependents: BTreeMap<RecordId, BTreeSet<RecordId>>,
}

impl DependentIndex {
    /// Notes the owners that a record names now, and returns those that it named before.
    pub(super) fn note(&mut self, record: &RecordId, owners: BTreeSet<RecordId>) -> BTreeSet<RecordId> {
        let before = match owners.is_empty() {
            true => self.owners.remove(record),
            false => self.owners.insert(record.clone(), owners.clone()),
        };
        let before = before.unwrap_or_default();
        for owner in before.difference(&owners) {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(record);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        for owner in owners {
            self.dependents.entry(owner).or_default().insert(record.clone());
        }
        before
    }

    /// Returns the records that may name `owner`.
    pub(super) fn dependents(&self, owner: &RecordId) -> impl Iterator<Item = &RecordId> {
        self.dependents.get(owner).into_iter().flatten()
    }

    /// Returns every record that names owners.
    pub(super) fn owned(&self) -> impl Iterator<Item = &RecordId> {
        self.owners.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_lead_to_records() {
        let rows = [
            ("v1", "Secret", Some(RecordId::Secret("m/o".into()))),
            ("v1", "Namespace", Some(RecordId::Document("namespaces//o".into()))),
            ("metal3.io/v1alpha1", "BareMetalHost", Some(RecordId::Host("m/o".into()))),
            ("metal3.io/v1beta1", "BareMetalHost", Some(RecordId::Host("m/o".into()))),
            ("metal3.io/v1alpha1", "HardwareData", Some(RecordId::Document("hardwaredata/m/o".into()))),
            ("metal3.io/v1alpha1", "Unknown", None),
            ("infrastructure.cluster.x-k8s.io/v1beta1", "Metal3Machine", None),
            ("v1", "BareMetalHost", None),
        ];
        for (api_version, kind, expected) in rows {
            let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
            let owner = OwnerReference { api_version, kind, name: "o".to_owned(), ..Default::default() };
            assert_eq!(RecordId::of_owner(&owner, "m"), expected);
        }
    }

    #[test]
    fn places_are_read_from_keys() {
        let rows = [
            (RecordId::Host("m/h".into()), "m", None),
            (RecordId::Document("hardwaredata/m/h".into()), "m", None),
            (RecordId::of_namespace("m"), "", Some("m")),
        ];
        for (id, namespace, as_namespace) in rows {
            assert_eq!((id.namespace(), id.as_namespace()), (namespace, as_namespace));
        }
    }

    #[test]
    fn owners_that_are_named_no_more_lose_their_dependents() {
        let mut index = DependentIndex::default();
        let (record, one, two) =
            (RecordId::Secret("m/s".into()), RecordId::Host("m/1".into()), RecordId::Host("m/2".into()));
        assert!(index.note(&record, [one.clone()].into()).is_empty());
        assert_eq!(index.note(&record, [two.clone()].into()), [one.clone()].into());
        assert_eq!((index.dependents(&one).count(), index.dependents(&two).count()), (0, 1));
        index.note(&record, BTreeSet::new());
        assert_eq!((index.dependents(&two).count(), index.owned().count()), (0, 0));
    }
}
