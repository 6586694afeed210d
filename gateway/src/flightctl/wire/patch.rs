//! JSON patches with the operations of the contract.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::words::{PatchOperations, Word};

/// Operation of a JSON patch.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatchOperation {
    /// Operation.
    pub op: Word<PatchOperations>,
    /// Place in the document, as a JSON pointer.
    pub path: String,
    /// Value to add, to put in place of another, or to compare with.
    #[serde(default)]
    pub value: Value,
}
