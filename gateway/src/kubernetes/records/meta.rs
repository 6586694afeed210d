//! Metadata.

use proto::host::{ObjectMeta, OwnerReference};
use serde_json::{Map, Value};

use super::{
    super::{
        kinds::ResourceKind,
        object::{self, ApiObject},
        store::VersionBase,
    },
    json::{ShownMembers, maybe_flag, objects, shown_time, text, text_map, texts},
};

/// Returns an object with its kind and metadata, and nothing else yet.
pub(super) fn shown(
    kind: &ResourceKind,
    meta: Option<ObjectMeta>,
    revision: u64,
    base: VersionBase,
) -> ShownMembers {
    let meta = meta.unwrap_or_default();
    let managed: Option<Value> = serde_json::from_str(&meta.managed_fields_json).ok();
    let deletion = meta.deleted_at.map(|_| 0);
    let metadata = ShownMembers::default()
        .text("name", &meta.name)
        .text("namespace", &meta.namespace)
        .text("uid", &meta.uid)
        .always("resourceVersion", base.version(revision).to_string())
        .maybe("generation", Some(meta.generation).filter(|generation| *generation > 0 && !kind.is_core()))
        .maybe("creationTimestamp", meta.created_at.map(shown_time))
        .maybe("deletionTimestamp", meta.deleted_at.map(shown_time))
        .maybe("deletionGracePeriodSeconds", deletion)
        .maybe("labels", shown_texts(meta.labels))
        .maybe("annotations", shown_texts(meta.annotations))
        .list("finalizers", meta.finalizers)
        .list("ownerReferences", meta.owner_references.into_iter().map(owner))
        .maybe("managedFields", managed);
    ShownMembers::default()
        .always("apiVersion", kind.api_version())
        .always("kind", kind.kind)
        .always("metadata", metadata)
}

fn shown_texts(texts: impl IntoIterator<Item = (String, String)>) -> Option<Value> {
    let texts: Map<String, Value> = texts.into_iter().map(|(name, text)| (name, text.into())).collect();
    (!texts.is_empty()).then_some(Value::Object(texts))
}

fn owner(owner: OwnerReference) -> ShownMembers {
    ShownMembers::default()
        .always("apiVersion", owner.api_version)
        .always("kind", owner.kind)
        .always("name", owner.name)
        .always("uid", owner.uid)
        .maybe("controller", owner.controller)
        .maybe("blockOwnerDeletion", owner.block_owner_deletion)
}

/// Reads the metadata of an object that is to be stored. The registry sets the rest.
pub(super) fn read(object: &ApiObject) -> ObjectMeta {
    let none = Map::new();
    let metadata = object::metadata(object).unwrap_or(&none);
    ObjectMeta {
        namespace: text(metadata, "namespace"),
        name: text(metadata, "name"),
        uid: text(metadata, "uid"),
        labels: text_map(metadata, "labels").collect(),
        annotations: text_map(metadata, "annotations").collect(),
        finalizers: texts(metadata, "finalizers"),
        owner_references: objects(metadata, "ownerReferences").map(read_owner).collect(),
        managed_fields_json: managed_fields(object),
        ..ObjectMeta::default()
    }
}

/// Returns the managed fields of an object as text; empty if there are none.
pub(super) fn managed_fields(object: &ApiObject) -> String {
    let rows = object::metadata(object).and_then(|metadata| metadata.get("managedFields"));
    rows.map(Value::to_string).unwrap_or_default()
}

fn read_owner(owner: &Map<String, Value>) -> OwnerReference {
    OwnerReference {
        api_version: text(owner, "apiVersion"),
        kind: text(owner, "kind"),
        name: text(owner, "name"),
        uid: text(owner, "uid"),
        controller: maybe_flag(owner, "controller"),
        block_owner_deletion: maybe_flag(owner, "blockOwnerDeletion"),
    }
}
