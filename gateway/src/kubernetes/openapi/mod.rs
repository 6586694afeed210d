//! The OpenAPI documents. Versions 2 and 3 are made from the same schemas; that of version 2 is also served in the
//! binary form that old clients insist on.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::kinds;

mod binary;
#[cfg(test)]
mod definitions;
mod paths;
mod schemas;

/// Version of OpenAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenApiVersion {
    Two,
    Three,
}

impl OpenApiVersion {
    /// Returns a reference to a schema.
    fn reference(self, name: &str) -> Value {
        match self {
            Self::Two => json!({ "$ref": format!("#/definitions/{name}") }),
            Self::Three => json!({ "$ref": format!("#/components/schemas/{name}") }),
        }
    }
}

/// Document of version 2, as JSON and in the binary form.
pub(crate) static VERSION_2: LazyLock<(String, Vec<u8>)> = LazyLock::new(|| {
    let document = json!({
        "swagger": "2.0",
        "info": { "title": "Reveille", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths::paths(OpenApiVersion::Two, |_, _| true),
        "definitions": schemas::schemas(OpenApiVersion::Two, |_, _| true),
    });
    (document.to_string(), binary::encode(&document))
});

/// Documents of version 3, by group and version as in their path.
static VERSION_3: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let documents = kinds::group_versions().into_iter().map(|(group, version)| {
        let is_wanted = move |of_group: &str, of_version: &str| of_group == group && of_version == version;
        let document = json!({
            "openapi": "3.0.0",
            "info": { "title": "Reveille", "version": env!("CARGO_PKG_VERSION") },
            "paths": paths::paths(OpenApiVersion::Three, is_wanted),
            "components": { "schemas": schemas::schemas(OpenApiVersion::Three, is_wanted) },
        });
        let path =
            if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        (path, document.to_string())
    });
    documents.collect()
});

/// Returns the list of the documents of version 3. Clients keep a document as long as its address stays.
pub(crate) fn list() -> Value {
    let paths = VERSION_3.iter().map(|(path, document)| {
        let hash: String =
            Sha256::digest(document).iter().take(16).map(|byte| format!("{byte:02X}")).collect();
        (path.clone(), json!({ "serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}") }))
    });
    json!({ "paths": paths.collect::<serde_json::Map<_, _>>() })
}

/// Returns a document of version 3; none if there is no such group.
pub(crate) fn document(path: &str) -> Option<&'static str> {
    VERSION_3.get(path).map(String::as_str)
}
