//! Companions of hosts, and namespaces.

use proto::host::{DocumentKind, HostDocument};
use serde_json::{Map, Value, json};

use super::{
    super::{
        kinds::{KINDS, ObjectSource, ResourceKind},
        object::{self, ApiObject},
        store::{FollowedKind, VersionBase},
    },
    meta,
};

impl FollowedKind for HostDocument {
    fn kind(&self) -> Option<&'static ResourceKind> {
        kind_of(HostDocument::kind(self))
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn shown(self, base: VersionBase) -> ApiObject {
        let Some(kind) = FollowedKind::kind(&self) else { return Map::new() };
        let is_namespace = HostDocument::kind(&self) == DocumentKind::Namespace;
        let spec: Option<Value> = serde_json::from_str(&self.spec_json).ok();
        let status: Option<Value> = serde_json::from_str(&self.status_json).ok();
        let shown = meta::shown(kind, self.meta, self.revision, base);
        let mut object = shown.maybe("spec", spec).maybe("status", status).into_map();
        if is_namespace {
            let phase = if object::is_being_deleted(&object) { "Terminating" } else { "Active" };
            let status = object.entry("status").or_insert_with(|| json!({}));
            status["phase"] = json!(phase);
        }
        object
    }

    fn place(key: &str) -> Option<(&'static ResourceKind, &str, &str)> {
        let (word, place) = key.split_once('/')?;
        let (namespace, name) = place.split_once('/')?;
        let kind = KINDS.iter().find(|kind| kind.plural == word && is_document(kind))?;
        Some((kind, namespace, name))
    }
}

fn is_document(kind: &ResourceKind) -> bool {
    matches!(kind.source, ObjectSource::Documents(_))
}

fn kind_of(document: DocumentKind) -> Option<&'static ResourceKind> {
    KINDS.iter().find(|kind| kind.source == ObjectSource::Documents(document))
}

/// Reads facts and wishes of a document.
pub(super) fn read(kind: DocumentKind, object: &ApiObject) -> HostDocument {
    let spec = object.get("spec").map(Value::to_string);
    HostDocument {
        kind: kind.into(),
        meta: Some(meta::read(object)),
        spec_json: spec.unwrap_or_default(),
        ..HostDocument::default()
    }
}

/// Returns the knowledge of a document as text; empty if there is none.
pub(super) fn status_json(object: &ApiObject) -> String {
    object.get("status").map(Value::to_string).unwrap_or_default()
}
