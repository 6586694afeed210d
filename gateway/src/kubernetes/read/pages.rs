//! Tokens of later pages.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use super::super::failure::ApiFailure;

/// Place at which the next page begins. Every gateway reads the tokens of all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PageToken {
    /// Version of the first page.
    pub version: u64,
    /// Key of the last object before the page.
    pub after: String,
}

impl PageToken {
    pub(super) fn shown(&self) -> String {
        let text = serde_json::to_vec(self).expect("texts and numbers can always be written as JSON");
        URL_SAFE_NO_PAD.encode(text)
    }

    pub(super) fn read(text: &str) -> Result<Self, ApiFailure> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let token = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        token.ok_or_else(|| {
            ApiFailure::bad_request("continue key is not valid: it was made by another server")
        })
    }
}
