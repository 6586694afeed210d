//! Wishes for a device.

use std::sync::Arc;

use domain::{
    core::{invalid::Invalid, text::text},
    device::record::{
        annotations::SpecHash,
        spec::{DecommissionTarget, DeviceSpec, OsTarget},
    },
};
use proto::{
    Message as _,
    device::{self as wire, os_target::Target},
};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::words;
use crate::kinds::Interner;

/// Bytes of a digest. A spec is compared with the one before it alone.
const DIGEST_BYTES: usize = 16;

/// Field of the end of a device.
const DECOMMISSIONING: &str = "spec.decommissioning";

/// Reads a spec. What clients write passes through [`written`] instead.
///
/// # Errors
/// The target of the end is not known.
pub fn from_wire(spec: wire::DeviceSpec, texts: &mut Interner) -> Result<DeviceSpec, Invalid> {
    let end = spec.decommissioning;
    Ok(DeviceSpec {
        os: spec.os.and_then(|os| os_from_wire(os, texts)),
        decommissioning: (!end.is_empty()).then(|| target(DECOMMISSIONING, &end)).transpose()?,
        document: texts.share(&spec.document_json),
    })
}

/// Reads a spec that a client writes. Equal specs get equal texts, because members of objects are put in order.
///
/// # Errors
/// Names the field that no spec can have.
pub fn written(spec: wire::DeviceSpec, texts: &mut Interner) -> Result<DeviceSpec, Invalid> {
    let read = from_wire(spec, texts)?;
    check_os(read.os.as_ref())?;
    let document = canonical(&read.document)?;
    Ok(DeviceSpec { document: texts.share(&document), ..read })
}

/// Reads the target of the end of a device.
///
/// # Errors
/// The word is not known; the error names `field`.
pub fn target(field: &str, word: &str) -> Result<DecommissionTarget, Invalid> {
    words::read(field, word, DecommissionTarget::from_word)
}

/// Returns the message of a spec.
pub fn to_wire(spec: &DeviceSpec) -> wire::DeviceSpec {
    wire::DeviceSpec {
        os: spec.os.as_ref().map(os_to_wire),
        decommissioning: spec.decommissioning.map_or("", DecommissionTarget::word).to_owned(),
        document_json: spec.document.to_string(),
    }
}

/// Returns the digest of a spec: equal specs have equal digests.
pub fn digest(spec: &DeviceSpec) -> SpecHash {
    let digest = Sha256::digest(to_wire(spec).encode_to_vec());
    SpecHash(digest.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect::<String>().into())
}

fn os_from_wire(os: wire::OsTarget, texts: &mut Interner) -> Option<OsTarget> {
    Some(match os.target? {
        Target::Image(image) => OsTarget::Image(texts.share(&image)),
        Target::CatalogItem(wire::CatalogItem { catalog, item, version }) => OsTarget::CatalogItem {
            catalog: texts.share(&catalog),
            item: texts.share(&item),
            version: texts.share(&version),
        },
    })
}

fn os_to_wire(os: &OsTarget) -> wire::OsTarget {
    let target = match os {
        OsTarget::Image(image) => Target::Image(image.to_string()),
        OsTarget::CatalogItem { catalog, item, version } => Target::CatalogItem(wire::CatalogItem {
            catalog: catalog.to_string(),
            item: item.to_string(),
            version: version.to_string(),
        }),
    };
    wire::OsTarget { target: Some(target) }
}

fn check_os(os: Option<&OsTarget>) -> Result<(), Invalid> {
    let required = |field: &str, value: &Arc<str>| match value.is_empty() {
        true => Err(Invalid::new(field, "is empty")),
        false => Ok(()),
    };
    match os {
        None => Ok(()),
        Some(OsTarget::Image(image)) => required("spec.os.image", image),
        Some(OsTarget::CatalogItem { catalog, item, version }) => {
            required("spec.os.catalogItemRef.catalog", catalog)?;
            required("spec.os.catalogItemRef.item", item)?;
            required("spec.os.catalogItemRef.version", version)
        }
    }
}

/// Members that have fields of their own.
const APART: [&str; 2] = ["os", "decommissioning"];

/// Returns the text of a document with its members in order; empty without any.
fn canonical(document: &str) -> Result<Arc<str>, Invalid> {
    if document.is_empty() {
        return Ok(Arc::default());
    }
    let members: Map<String, Value> = serde_json::from_str(document)
        .map_err(|error| Invalid::new("spec", format!("is no JSON object: {error}")))?;
    if let Some(name) = APART.iter().find(|name| members.contains_key(**name)) {
        return Err(Invalid::new(format!("spec.{name}"), "stands in the rest of the document"));
    }
    if members.is_empty() { Ok(Arc::default()) } else { Ok(text(&Value::Object(members).to_string())) }
}
