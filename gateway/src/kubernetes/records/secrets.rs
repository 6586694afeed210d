//! Secrets. Values are written and never shown: an object shows empty texts in their place, and an empty text that comes
//! back leaves its value as it is.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use proto::host::HostSecret;
use serde_json::{Map, Value};

use super::{
    super::{
        kinds::{self, ResourceKind},
        object::{self, ApiObject},
        store::{FollowedKind, VersionBase},
    },
    json::{maybe_flag, nested, text, text_map},
    meta,
};

/// Type of secrets that say nothing else.
const OPAQUE: &str = "Opaque";

/// Annotation of `kubectl apply`, which repeats the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

pub(super) fn kind() -> &'static ResourceKind {
    kinds::find("", "v1", "secrets").expect("the table has secrets")
}

impl FollowedKind for HostSecret {
    fn kind(&self) -> Option<&'static ResourceKind> {
        Some(kind())
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn shown(self, base: VersionBase) -> ApiObject {
        let data: Map<String, Value> = self.data_keys.iter().map(|key| (key.clone(), "".into())).collect();
        let of_type = match &*self.r#type {
            "" => OPAQUE,
            of_type => of_type,
        };
        meta::shown(kind(), self.meta, self.revision, base)
            .maybe("data", (!data.is_empty()).then_some(Value::Object(data)))
            .maybe("immutable", self.immutable)
            .always("type", of_type)
            .into_map()
    }

    fn place(key: &str) -> Option<(&'static ResourceKind, &str, &str)> {
        let (namespace, name) = key.split_once('/')?;
        Some((kind(), namespace, name))
    }
}

/// Secret that is to be stored, and its values.
#[derive(Debug)]
pub(super) struct WrittenSecret {
    pub secret: HostSecret,
    /// Values that are given. Those of other names stay as they are.
    pub values: BTreeMap<String, Vec<u8>>,
    /// Names of all values that the secret is to have.
    pub names: Vec<String>,
}

/// Reads a secret; the error names the value that is no base64.
pub(super) fn read(object: &ApiObject) -> Result<WrittenSecret, String> {
    let mut values = BTreeMap::new();
    for (name, value) in text_map(object, "data") {
        let decoded = STANDARD.decode(&value).map_err(|_| format!("data[{name}]"))?;
        values.insert(name, decoded);
    }
    let names = values.keys().cloned().collect();
    let secret = HostSecret {
        meta: Some(meta::read(object)),
        r#type: text(object, "type"),
        immutable: maybe_flag(object, "immutable"),
        ..HostSecret::default()
    };
    Ok(WrittenSecret { secret, values, names })
}

/// Makes an object one that can be stored: texts become values, and the annotation of `kubectl apply` forgets them.
pub(crate) fn normalize(object: &mut ApiObject) {
    let texts: Vec<_> = text_map(object, "stringData").collect();
    object.remove("stringData");
    if !texts.is_empty() {
        let data = object.entry("data").or_insert_with(|| Value::Object(Map::new()));
        let encoded = texts.into_iter().map(|(name, text)| (name, Value::String(STANDARD.encode(text))));
        if let Value::Object(data) = data {
            data.extend(encoded);
        }
    }
    object.entry("type").or_insert_with(|| OPAQUE.into());
    if let Some(annotation) = object::metadata_mut(object)
        .get_mut("annotations")
        .and_then(|annotations| annotations.get_mut(LAST_APPLIED))
    {
        *annotation = Value::String(without_values(annotation.as_str().unwrap_or_default()));
    }
}

fn without_values(text: &str) -> String {
    let Ok(Value::Object(mut object)) = serde_json::from_str(text) else { return String::new() };
    for member in ["data", "stringData"] {
        let empty = nested(&object, member)
            .map(|values| values.keys().map(|name| (name.clone(), "".into())).collect());
        if let Some(empty) = empty {
            object.insert(member.to_owned(), Value::Object(empty));
        }
    }
    // As the client writes it, with a line break at the end.
    format!("{}\n", Value::Object(object))
}
