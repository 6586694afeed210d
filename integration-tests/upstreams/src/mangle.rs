//! Answers as they leave, sound or spoilt.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use futures_util::stream::{self, StreamExt};

use crate::{call::SystemAnswer, trouble::TroubleEffect};

/// Pulses per second of a trickling body; below ten bytes a second, every byte is a pulse.
const PULSES: u32 = 10;

/// White space that is sent at once.
const MEGABYTE: &[u8] = &[b' '; 1 << 20];

/// The answer, spoilt by `effect` if there is one.
pub(crate) fn response(answer: SystemAnswer, effect: Option<&TroubleEffect>) -> Response {
    let body = match effect {
        Some(TroubleEffect::Slow { bytes_per_second }) => trickling(answer.body, *bytes_per_second),
        Some(TroubleEffect::Oversized { megabytes }) => preceded(answer.body, *megabytes),
        Some(TroubleEffect::MalformedJson) => answer.body.slice(..answer.body.len() / 2).into(),
        Some(TroubleEffect::InvalidUtf8) => without_text(&answer.body).into(),
        Some(_) | None => answer.body.into(),
    };
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    response.headers_mut().extend(answer.headers);
    response
}

fn trickling(body: Bytes, bytes_per_second: u32) -> Body {
    let rate = bytes_per_second.max(1);
    let (size, pause) = match rate / PULSES {
        0 => (1, Duration::from_secs(1) / rate),
        size => (size as usize, Duration::from_secs(1) / PULSES),
    };
    let chunks = stream::unfold(body, move |mut rest| async move {
        if rest.is_empty() {
            return None;
        }
        tokio::time::sleep(pause).await;
        let chunk = rest.split_to(size.min(rest.len()));
        Some((Ok::<_, Infallible>(chunk), rest))
    });
    Body::from_stream(chunks)
}

/// Made as it is read, so that its size costs no memory here.
fn preceded(body: Bytes, megabytes: u64) -> Body {
    let space = stream::iter(0..megabytes).map(|_| Ok::<_, Infallible>(Bytes::from_static(MEGABYTE)));
    Body::from_stream(space.chain(stream::iter([Ok(body)])))
}

/// The body with a byte in its middle that occurs in no text.
fn without_text(body: &[u8]) -> Vec<u8> {
    let (before, after) = body.split_at(body.len() / 2);
    [before, &[0xff], after].concat()
}
