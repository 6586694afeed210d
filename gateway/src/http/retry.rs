//! The retry of calls that change nothing, once, when their connection breaks.
//!
//! A service that calls another retries anyway, in its loop. A client of the gateway does not, and need not know that
//! one replica of a service has ended while others run. Every other call is left to the client, because it may have had
//! its effect.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::to_bytes;
use http::{HeaderMap, Request, Response};
use tonic::{Code, Status, body::Body};
use tower::{Service, ServiceExt};

/// Beginnings of the names of calls that change nothing.
const READS: [&str; 4] = ["Get", "List", "Check", "Explain"];

/// A channel that repeats a call that changes nothing, on the next connection, when no replica answered it. Clones
/// share the channel.
#[derive(Clone)]
pub(crate) struct RetryReads<S>(pub(crate) S);

impl<S, B> Service<Request<Body>> for RetryReads<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if !is_read(request.uri().path()) {
            return Box::pin(self.0.call(request));
        }
        // The clone that is ready makes the call.
        let other = self.0.clone();
        let first = std::mem::replace(&mut self.0, other);
        Box::pin(twice(first, request))
    }
}

async fn twice<S, B>(mut service: S, request: Request<Body>) -> Result<Response<B>, S::Error>
where
    S: Service<Request<Body>, Response = Response<B>>,
{
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(axum::body::Body::new(body), usize::MAX).await else {
        // The message is in memory, so this does not happen; the service would refuse half of it.
        return service.call(Request::from_parts(head, Body::empty())).await;
    };
    let request = || Request::from_parts(head.clone(), Body::new(axum::body::Body::from(body.clone())));
    let answer = service.call(request()).await;
    match &answer {
        Ok(response) if !is_unanswered(response.headers()) => return answer,
        Ok(_) | Err(_) => tracing::debug!(path = head.uri.path(), "a call was not answered, asking again"),
    }
    service.ready().await?.call(request()).await
}

fn is_read(path: &str) -> bool {
    let method = path.rsplit('/').next().unwrap_or_default();
    READS.iter().any(|read| method.starts_with(read))
}

/// Returns whether no replica took the call. A status that a service itself answered has details, and a retry would not
/// help.
fn is_unanswered(headers: &HeaderMap) -> bool {
    Status::from_header_map(headers)
        .is_some_and(|status| status.code() == Code::Unavailable && status.details().is_empty())
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use chassis::Fault;
    use tower::service_fn;

    use super::*;

    type FirstAnswer = Result<Option<Status>, &'static str>;

    /// Returns the number of attempts of a call of `path` that is answered with `first` and then well, and whether it
    /// succeeds.
    async fn calls(path: &str, first: FirstAnswer) -> (u32, bool) {
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        let service = service_fn(move |request: Request<Body>| {
            let answer = match counted.fetch_add(1, Ordering::Relaxed) {
                0 => first.clone(),
                _ => Ok(None),
            };
            async move {
                let body = to_bytes(axum::body::Body::new(request.into_body()), 100).await.unwrap();
                assert_eq!(&*body, b"question");
                answer.map(|status| match status {
                    Some(status) => status.into_http::<Body>().map(drop),
                    None => Response::new(()),
                })
            }
        });
        let request = Request::post(path).body(Body::new(axum::body::Body::from("question"))).unwrap();
        let answer = RetryReads(service).oneshot(request).await;
        let well = answer.is_ok_and(|answer| Status::from_header_map(answer.headers()).is_none());
        (count.load(Ordering::Relaxed), well)
    }

    fn stops() -> FirstAnswer {
        Ok(Some(Status::unavailable("the service stops")))
    }

    #[tokio::test]
    async fn only_unanswered_reads_are_retried() {
        const BROKEN: FirstAnswer = Err("the connection broke");
        let lacks = Ok(Some(Status::from(Fault::unavailable("database", "gone"))));
        let absent = Ok(Some(Status::not_found("x1")));
        let rows = [
            ("/reveille.component.v1.ComponentService/GetComponent", Ok(None), (1, true)),
            ("/reveille.component.v1.ComponentService/GetComponent", BROKEN, (2, true)),
            ("/reveille.session.v1.SessionService/ListSessions", stops(), (2, true)),
            ("/reveille.session.v1.SessionService/ListSessions", lacks, (1, false)),
            ("/grpc.health.v1.Health/Check", BROKEN, (2, true)),
            ("/reveille.component.v1.ComponentService/GetComponent", absent, (1, false)),
            ("/reveille.component.v1.ComponentService/PatchComponents", BROKEN, (1, false)),
            ("/reveille.session.v1.SessionService/CreateSession", stops(), (1, false)),
        ];
        for (path, first, expected) in rows {
            assert_eq!(calls(path, first.clone()).await, expected, "{path} {first:?}");
        }
    }
}
