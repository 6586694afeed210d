//! An S3-compatible object store, addressed path-style.

use axum::http::{StatusCode, header};

use crate::{
    call::{SystemAnswer, SystemCall},
    images::etag,
    state::MachineState,
};

pub(crate) const OPERATIONS: &[&str] = &["GET /{bucket}/{*key}", "HEAD /{bucket}/{*key}"];

/// Answers one request.
pub(crate) fn answer(state: &MachineState, call: &SystemCall) -> SystemAnswer {
    let [bucket, key] = call.names[..] else { return no_such("", "") };
    match state.images.object(bucket, key) {
        Some(contents) => {
            let version = format!("\"{}\"", etag(&contents));
            SystemAnswer::of(StatusCode::OK, "binary/octet-stream", contents)
                .with_header(header::ETAG, &version)
                .with_header(header::LAST_MODIFIED, "Thu, 01 Jan 2026 00:00:00 GMT")
                .with_header(header::ACCEPT_RANGES, "bytes")
                .about(1)
        }
        None => no_such(bucket, key),
    }
}

fn no_such(bucket: &str, key: &str) -> SystemAnswer {
    error(StatusCode::NOT_FOUND, "NoSuchKey", &format!("{bucket}/{key} does not exist"))
}

/// A refusal as the store writes it.
pub(crate) fn error(status: StatusCode, code: &str, message: &str) -> SystemAnswer {
    let escaped = message.replace('&', "&amp;").replace('<', "&lt;");
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>{escaped}</Message></Error>"
    );
    SystemAnswer::of(status, "application/xml", body)
}
