//! A body that goes out only while its call is wanted.

use std::{error::Error, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, header::CONTENT_LENGTH};
use reqwest::{Body, RequestBuilder};

/// Whether a call is wanted now.
pub(crate) type StillWanted = Arc<dyn Fn() -> bool + Send + Sync>;

/// The call is not wanted any more. Its head may have gone out, and nothing else.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("it was handed over before the call went out")]
pub(crate) struct HandedOver;

/// Gives the request `bytes` as its body. The connection asks for it when it stands and all else was written, so that
/// neither a slow peer nor a slow handshake comes between this look and the wire.
pub(crate) fn guard(builder: RequestBuilder, bytes: Bytes, still_wanted: StillWanted) -> RequestBuilder {
    let length = HeaderValue::from(bytes.len());
    let body = async move { if still_wanted() { Ok(bytes) } else { Err(HandedOver) } };
    builder.header(CONTENT_LENGTH, length).body(Body::wrap_stream(stream::once(body)))
}

/// Whether a request failed because it was not wanted any more.
pub(crate) fn was_handed_over(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<HandedOver>() {
            return true;
        }
        cause = error.source();
    }
    false
}
