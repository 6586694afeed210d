//! Conversion between the JSON of the contract and the messages of the mesh. The services judge the values.

pub(crate) mod component;
pub(crate) mod options;
pub(crate) mod session;
pub(crate) mod template;

/// Returns a text of a message; `None`, which is `null` in JSON, for an empty one.
fn none_if_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}
