//! Lists of any length as one JSON array that nobody ever holds as a whole.

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

use crate::mesh::{DEADLINE, answer, fault};

/// Answers with a JSON array that holds what `items` makes of each message of a list call to `part`.
///
/// Each message becomes one chunk. What goes wrong before the first message is an error of the request.
/// After that the status has been sent, so the body breaks off, which clients notice by the missing end.
///
/// # Errors
/// What the service says instead of a first message.
pub(crate) async fn array<M, W>(
    part: &'static str,
    call: impl Future<Output = Result<Answer<Streaming<M>>, Status>>,
    items: fn(M) -> Vec<W>,
) -> Result<Response, Fault>
where
    M: Send + 'static,
    W: Serialize + 'static,
{
    let mut messages = answer(part, call).await?;
    let first = next(part, &mut messages).await?;
    let list = List { part, messages, items, fetched: Some(first), opened: false };
    let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((headers, Body::from_stream(list.chunks())).into_response())
}

/// A list on its way to the client.
struct List<M, W> {
    part: &'static str,
    messages: Streaming<M>,
    items: fn(M) -> Vec<W>,
    /// What the stream gave already: a message, or its end.
    fetched: Option<Option<M>>,
    /// Whether the array has begun.
    opened: bool,
}

impl<M: Send + 'static, W: Serialize + 'static> List<M, W> {
    fn chunks(self) -> impl Stream<Item = Result<Bytes, Fault>> {
        stream::try_unfold(Some(self), |list| async move {
            let Some(list) = list else { return Ok(None) };
            list.step().await.inspect_err(|error| tracing::warn!(%error, "list broken off")).map(Some)
        })
    }

    /// The next chunk, and the list unless that was the last.
    async fn step(mut self) -> Result<(Bytes, Option<Self>), Fault> {
        let message = match self.fetched.take() {
            Some(fetched) => fetched,
            None => next(self.part, &mut self.messages).await?,
        };
        match message {
            Some(message) => {
                let chunk = self.render(message)?;
                Ok((chunk, Some(self)))
            }
            None if self.opened => Ok((Bytes::from_static(b"]"), None)),
            None => Ok((Bytes::from_static(b"[]"), None)),
        }
    }

    fn render(&mut self, message: M) -> Result<Bytes, Fault> {
        let mut chunk = Vec::new();
        for item in (self.items)(message) {
            chunk.push(if self.opened { b',' } else { b'[' });
            self.opened = true;
            serde_json::to_writer(&mut chunk, &item).map_err(|error| Fault::Internal(error.to_string()))?;
        }
        Ok(chunk.into())
    }
}

/// The next message, or the end of the list. A service that falls silent for longer than it may take for a
/// whole answer is not waited for.
async fn next<M>(part: &'static str, messages: &mut Streaming<M>) -> Result<Option<M>, Fault> {
    let message = tokio::time::timeout(DEADLINE, messages.message()).await;
    let message = message.unwrap_or_else(|_| Err(Status::deadline_exceeded("")));
    message.map_err(|status| fault(part, status))
}
