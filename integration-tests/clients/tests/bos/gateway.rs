//! The gateway under test and a client of it.

use std::fmt::Debug;

use csm_rs::{Error, ShastaClient};

/// Bearer token of every call. The proxy in front of the gateway judges it.
pub const TOKEN: &str = "a-token";

/// Variable with the gateway: the URL of a site's API, under which `/bos/v2` is found.
const GATEWAY: &str = "REVEILLE_TEST_GATEWAY";

/// A client of the gateway.
///
/// # Panics
/// When the environment names no gateway.
pub fn client() -> ShastaClient {
    let url = std::env::var(GATEWAY);
    let url = url.unwrap_or_else(|_| {
        panic!(
            "{GATEWAY} must be the address of a gateway with a simulated fleet, such as http://127.0.0.1:7700/apis"
        )
    });
    // No certificate is needed: the way to the gateway is not encrypted.
    ShastaClient::new(url, Vec::new()).expect("a client")
}

/// A refused call, as this client reports it.
#[derive(Debug, PartialEq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// The `detail` of the problem document.
    pub detail: String,
}

impl Refusal {
    /// Returns the refusal of a call.
    ///
    /// # Panics
    /// When the call was not refused, or not with a problem document.
    pub fn of<T: Debug>(answer: Result<T, Error>) -> Self {
        match answer {
            Err(Error::CsmError { status, detail, .. }) => Self { status, detail },
            other => panic!("neither refused nor with a problem document: {other:?}"),
        }
    }
}
