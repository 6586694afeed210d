//! Objects as a copy holds them: packed, as there may be thousands with many versions.

use std::sync::Arc;

use bytes::Bytes;
use chassis::process::packed::{PackedBytes, SimilarBytes};
use serde_json::Value;

use super::super::object::{self, ApiObject};

/// Letter between namespace and name in a key. It sorts before every letter of a name.
const BETWEEN: char = '\0';

/// Object as it was at a version.
#[derive(Debug)]
pub(crate) struct CachedRecord {
    /// Namespace and name, in an order that lists have.
    pub key: Arc<str>,
    pub uid: Arc<str>,
    pub version: u64,
    labels: Box<[(Box<str>, Box<str>)]>,
    /// The object as JSON.
    body: PackedBytes,
}

impl CachedRecord {
    /// Makes the record of an object that is held among `similar` ones.
    pub(crate) fn new(object: &ApiObject, version: u64, similar: &SimilarBytes) -> Self {
        let labels = object::metadata(object).and_then(|metadata| metadata.get("labels"));
        let labels = labels.and_then(Value::as_object).into_iter().flatten();
        let labels = labels.filter_map(|(name, value)| Some((name.as_str().into(), value.as_str()?.into())));
        let body = serde_json::to_vec(object).expect("texts and numbers can always be written as JSON");
        Self {
            key: key(object::namespace(object), object::name(object)).into(),
            uid: object::metadata_text(object, "uid").into(),
            version,
            labels: labels.collect(),
            body: similar.pack(&body),
        }
    }

    /// Shares the texts that an earlier version of the object has as well.
    pub(super) fn share(&mut self, earlier: &Self) {
        self.key = Arc::clone(&earlier.key);
        if self.uid == earlier.uid {
            self.uid = Arc::clone(&earlier.uid);
        }
    }

    pub(crate) fn namespace(&self) -> &str {
        self.key.split_once(BETWEEN).map_or("", |(namespace, _)| namespace)
    }

    pub(crate) fn name(&self) -> &str {
        self.key.split_once(BETWEEN).map_or("", |(_, name)| name)
    }

    /// Returns the value of a label; none if the object lacks it.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| **label == *name).map(|(_, value)| &**value)
    }

    /// Returns the object as JSON.
    pub(crate) fn body(&self) -> Bytes {
        self.body.unpack()
    }

    /// Appends the object as JSON.
    pub(crate) fn append_to(&self, json: &mut Vec<u8>) {
        self.body.append_to(json);
    }

    /// Returns the object.
    pub(crate) fn object(&self) -> ApiObject {
        serde_json::from_slice(&self.body()).expect("the body was written by this module")
    }

    /// Returns the object with another version, which a deletion has.
    pub(crate) fn object_at(&self, version: u64) -> ApiObject {
        let mut object = self.object();
        object::metadata_mut(&mut object)
            .insert("resourceVersion".to_owned(), Value::String(version.to_string()));
        object
    }

    /// Returns about how many bytes the record takes.
    pub(super) fn held(&self) -> usize {
        let labels = self.labels.iter().map(|(name, value)| name.len() + value.len());
        size_of::<Self>() + self.body.held() + labels.sum::<usize>()
    }
}

/// Returns the key of an object.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}{BETWEEN}{name}")
}
