//! Lists of any length as one JSON array that is never in memory as a whole.

use std::future::Future;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use chassis::Fault;
use futures_util::{Stream, stream};
use http::{HeaderValue, header::CONTENT_TYPE};
use serde::Serialize;
use tonic::{Response as Answer, Status, Streaming};

use super::call::{DEADLINE, answer, fault};

/// Bytes of a chunk: enough to write seldom, and few enough to stay in the cache.
const CHUNK: usize = 64 << 10;

/// Room for the item with which a chunk ends.
const LAST_ITEM: usize = 4 << 10;

/// Answers with a JSON array of the items that `items` makes of each message of a list call to `part`.
///
/// A failure before the first message is an error of the request. After that the status has been sent, so the body
/// breaks off, which clients notice by the missing end.
///
/// # Errors
/// The refusal that the service sends instead of a first message.
pub(crate) async fn array<M, F, I, W>(
    part: &'static str,
    call: impl Future<Output = Result<Answer<Streaming<M>>, Status>>,
    mut items: F,
) -> Result<Response, Fault>
where
    M: Send + 'static,
    F: FnMut(M) -> I + Send + 'static,
    I: Iterator<Item = W> + Send + 'static,
    W: Serialize + 'static,
{
    let mut messages = answer(part, call).await?;
    let rest = next(part, &mut messages).await?.map(&mut items);
    let list = ListBody { part, messages, items, rest, opened: false };
    let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((headers, Body::from_stream(list.chunks())).into_response())
}

/// A list on its way to the client.
struct ListBody<M, F, I> {
    part: &'static str,
    messages: Streaming<M>,
    items: F,
    /// Items of the last message that are still to be rendered; `None` after the end.
    rest: Option<I>,
    /// Whether the array has begun.
    opened: bool,
}

impl<M, F, I, W> ListBody<M, F, I>
where
    M: Send + 'static,
    F: FnMut(M) -> I + Send + 'static,
    I: Iterator<Item = W> + Send + 'static,
    W: Serialize + 'static,
{
    fn chunks(self) -> impl Stream<Item = Result<Bytes, Fault>> {
        stream::try_unfold(Some(self), |list| async move {
            let Some(list) = list else { return Ok(None) };
            list.step().await.inspect_err(|error| tracing::warn!(%error, "list broken off")).map(Some)
        })
    }

    /// Returns the next chunk, and the list unless the chunk is the last.
    async fn step(mut self) -> Result<(Bytes, Option<Self>), Fault> {
        while let Some(rest) = &mut self.rest {
            let chunk = render(rest, &mut self.opened)?;
            if !chunk.is_empty() {
                return Ok((chunk, Some(self)));
            }
            self.rest = next(self.part, &mut self.messages).await?.map(&mut self.items);
        }
        let end: &[u8] = if self.opened { b"]" } else { b"[]" };
        Ok((Bytes::from_static(end), None))
    }
}

/// Renders as many of `items` as make up a chunk; empty: there are none. `opened`: others were rendered before.
fn render(items: &mut impl Iterator<Item = impl Serialize>, opened: &mut bool) -> Result<Bytes, Fault> {
    let mut chunk = Vec::new();
    while chunk.len() < CHUNK {
        let Some(item) = items.next() else { break };
        if chunk.is_empty() {
            chunk.reserve(CHUNK + LAST_ITEM);
        }
        chunk.push(if *opened { b',' } else { b'[' });
        *opened = true;
        serde_json::to_writer(&mut chunk, &item).map_err(|error| Fault::Internal(error.to_string()))?;
    }
    Ok(chunk.into())
}

/// Returns the next message, or the end of the list. A service that is silent for longer than the deadline of a whole
/// answer has failed.
async fn next<M>(part: &'static str, messages: &mut Streaming<M>) -> Result<Option<M>, Fault> {
    let message = tokio::time::timeout(DEADLINE, messages.message()).await;
    let message = message.unwrap_or_else(|_| Err(Status::deadline_exceeded("")));
    message.map_err(|status| fault(part, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_chunks_that_are_neither_small_nor_large() {
        for lengths in [vec![], vec![1], vec![100; 5_000], vec![2 * CHUNK, 1, 2 * CHUNK]] {
            let texts: Vec<_> = lengths.into_iter().map(|length: usize| "x".repeat(length)).collect();
            let mut items = texts.iter();
            let mut opened = false;
            let chunks = std::iter::from_fn(|| {
                Some(render(&mut items, &mut opened).unwrap()).filter(|chunk| !chunk.is_empty())
            });
            let chunks: Vec<_> = chunks.collect();
            assert_eq!(opened, !texts.is_empty());
            let whole = [&chunks.concat()[..], if opened { b"]" } else { b"[]" }].concat();
            assert_eq!(serde_json::from_slice::<Vec<String>>(&whole).unwrap(), texts);
            for (n, chunk) in chunks.iter().enumerate() {
                assert!(chunk.len() >= CHUNK || n + 1 == chunks.len(), "{n} of {}", chunks.len());
                assert!(chunk.len() <= 3 * CHUNK, "{n} has {}", chunk.len());
            }
        }
    }
}
