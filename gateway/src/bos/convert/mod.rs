//! Conversion between the JSON of the contract and the messages of the mesh. Values are judged by the services.

pub(crate) mod component;
pub(crate) mod options;
pub(crate) mod session;
pub(crate) mod template;

/// An empty text stands for "none" in messages and `null` in JSON.
fn none_if_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}
