//! A body that is sent only while its call is still wanted.

use std::{error::Error, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, header::CONTENT_LENGTH};
use reqwest::{Body, RequestBuilder};

/// Returns whether a call is still wanted.
pub(crate) type StillWanted = Arc<dyn Fn() -> bool + Send + Sync>;

/// The call is no longer wanted. At most its head was sent.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("it was handed over before the call went out")]
pub(crate) struct CallWithdrawn;

/// Sets `bytes` as the body of the request. The connection polls the body after connecting and writing the head, so
/// neither a slow peer nor a slow handshake lies between this check and the write.
pub(crate) fn guard(builder: RequestBuilder, bytes: Bytes, still_wanted: StillWanted) -> RequestBuilder {
    let length = HeaderValue::from(bytes.len());
    let body = async move { if still_wanted() { Ok(bytes) } else { Err(CallWithdrawn) } };
    builder.header(CONTENT_LENGTH, length).body(Body::wrap_stream(stream::once(body)))
}

/// Returns whether a request failed because its call was no longer wanted.
pub(crate) fn was_withdrawn(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<CallWithdrawn>() {
            return true;
        }
        cause = error.source();
    }
    false
}
