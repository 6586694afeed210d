//! Signature version 4 of a received request, implemented from Amazon's description alone.

use std::collections::BTreeMap;

use axum::{extract::Request, http::header::HOST};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

const NAME: &str = "X-Amz-Signature";

/// Characters that a canonical query does not encode.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The signature that `request` with that decoded `query` should have, were it signed with `secret`.
pub fn expected(request: &Request, query: &BTreeMap<String, String>, secret: &str) -> String {
    let said = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    let encoded = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
    let signed: Vec<_> = query
        .iter()
        .filter(|(name, _)| *name != NAME)
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
        .collect();
    let (path, host) = (request.uri().path(), request.headers()[HOST].to_str().unwrap());
    let canonical =
        format!("{}\n{path}\n{}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD", request.method(), signed.join("&"));
    let scope = said("X-Amz-Credential").split_once('/').unwrap_or_default().1;
    let date = said("X-Amz-Date");
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
    let key = scope.split('/').fold(format!("AWS4{secret}").into_bytes(), |key, part| hmac(&key, part));
    hex(&hmac(&key, &text))
}

/// HMAC-SHA256 (RFC 2104) with a key of at most 64 bytes.
fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let pad = |byte: u8| block.map(|one| one ^ byte);
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
