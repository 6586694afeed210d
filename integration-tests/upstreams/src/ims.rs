//! The image management service, v3: the architecture of images, and notes about them.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    call::{SystemAnswer, SystemCall, either},
    state::MachineState,
};

pub(crate) const OPERATIONS: &[&str] = &["GET /images", "GET /images/{id}", "PATCH /images/{id}"];

/// Answers one request.
pub(crate) fn answer(state: &mut MachineState, call: &SystemCall) -> SystemAnswer {
    match call.operation {
        "GET /images" => {
            let known = state.images.special.iter().filter(|(_, image)| image.in_catalogue);
            SystemAnswer::json(&known.map(|(id, image)| image.record(id)).collect::<Vec<Value>>())
        }
        "GET /images/{id}" => match state.images.get(call.name()).filter(|image| image.in_catalogue) {
            Some(image) => SystemAnswer::json(&image.record(call.name())).about(1),
            None => no_such(),
        },
        _ => either(patch(state, call)),
    }
}

fn no_such() -> SystemAnswer {
    SystemAnswer::not_found("the image does not exist")
}

#[derive(Deserialize)]
struct ImagePatch {
    arch: Option<String>,
    metadata: Option<MetadataNote>,
}

#[derive(Deserialize)]
struct MetadataNote {
    operation: String,
    key: String,
    #[serde(default)]
    value: String,
}

fn patch(state: &mut MachineState, call: &SystemCall) -> Result<SystemAnswer, SystemAnswer> {
    let id = call.name();
    let mut image = state.images.get(id).filter(|image| image.in_catalogue).ok_or_else(no_such)?;
    let patch: ImagePatch = call.json()?;
    if let Some(MetadataNote { operation, key, value }) = patch.metadata {
        match operation.as_str() {
            "set" => image.metadata.insert(key, value),
            "remove" => image.metadata.remove(&key),
            other => {
                return Err(SystemAnswer::bad_request(&format!(
                    "metadata.operation: {other:?} is not known"
                )));
            }
        };
    }
    image.arch = patch.arch.or(image.arch);
    let answer = SystemAnswer::json(&image.record(id)).about(1);
    state.images.special.insert(id.to_owned(), image);
    Ok(answer)
}
