//! Lists of any length as one JSON array that nobody ever holds as a whole.

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

use crate::{
    mesh::{DEADLINE, answer, fault},
    problem::Problem,
};

/// Answers with a JSON array that holds what `items` makes of each message of a list call to `part`.
///
/// Each message becomes one chunk. What goes wrong before the first message is a problem document. After
/// that the status has been sent, so the body breaks off, which clients notice by the missing last chunk.
///
/// # Errors
/// What the service says instead of a first message.
pub async fn array<M, I, W>(
    part: &'static str,
    call: impl Future<Output = Result<Answer<Streaming<M>>, Status>>,
    items: fn(M) -> I,
) -> Result<Response, Fault>
where
    M: Send + 'static,
    I: IntoIterator<Item = W> + 'static,
    W: Serialize,
{
    let mut messages = answer(part, call).await?;
    let first = next(part, &mut messages).await?;
    let list = List { part, messages, items, next: first, position: Position::Start };
    let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((headers, Body::from_stream(chunks(list))).into_response())
}

/// A list on its way to the client.
struct List<M, I> {
    part: &'static str,
    messages: Streaming<M>,
    items: fn(M) -> I,
    next: Option<M>,
    position: Position,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Start,
    Within,
    End,
}

fn chunks<M, I, W>(list: List<M, I>) -> impl Stream<Item = Result<Bytes, Problem>>
where
    M: Send + 'static,
    I: IntoIterator<Item = W> + 'static,
    W: Serialize,
{
    stream::try_unfold(list, |mut list| async move {
        if list.position == Position::End {
            return Ok(None);
        }
        Ok(None::<(Bytes, List<M, I>)>)
    })
}
