//! Counts calls by method and code, and the watches that are open.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use metrics::{SharedString, Unit, counter, gauge, histogram};
use tonic::Code;

/// Calls that were answered.
const CALLS: &str = "reveille_calls_total";

/// Time from a call to the end of its answer.
const SECONDS: &str = "reveille_call_seconds";

/// Open watches.
const WATCHES: &str = "reveille_watches_open";

/// Header and trailer with the code of an answer.
const CODE: &str = "grpc-status";

/// Method of calls of which the part has none of that name, so that clients cannot make up labels.
const UNKNOWN_METHOD: &str = "unknown";

/// Begin of the names of methods whose answers go on until the client leaves.
const WATCH: &str = "Watch";

/// Counter of the calls of one part.
#[derive(Clone)]
pub(super) struct CallCounter {
    services: Arc<[&'static str]>,
}

impl CallCounter {
    /// Creates a counter of the calls of these services.
    pub(super) fn new(services: &[&'static str]) -> Self {
        metrics::describe_counter!(CALLS, "Calls between parts by method and code");
        metrics::describe_histogram!(SECONDS, Unit::Seconds, "Time from a call to the end of its answer");
        metrics::describe_gauge!(WATCHES, "Open watches by method");
        Self { services: services.into() }
    }

    /// Returns the call of that path; `None`: the path is of no service of the part.
    fn call(&self, path: &str) -> Option<CountedCall> {
        let (service, method) = path.strip_prefix('/')?.split_once('/')?;
        self.services.contains(&service).then(|| CountedCall {
            method: path.trim_start_matches('/').to_owned().into(),
            is_watch: method.starts_with(WATCH),
            is_open: false,
            began: Instant::now(),
            code: Code::Cancelled,
        })
    }
}

/// Counts a call, once its answer has ended or its client has left.
pub(super) async fn count(State(counter): State<CallCounter>, request: Request, next: Next) -> Response {
    let Some(mut call) = counter.call(request.uri().path()) else { return next.run(request).await };
    let response = next.run(request).await;
    // An answer without messages has its code in the head.
    if !call.ends_with(response.headers()) {
        call.open();
    }
    response.map(|body| Body::new(CountedBody { body, call }))
}

/// Call that is counted when this is dropped.
struct CountedCall {
    method: SharedString,
    is_watch: bool,
    /// Whether it is counted as an open watch.
    is_open: bool,
    began: Instant,
    code: Code,
}

impl CountedCall {
    /// Takes the code of the answer from its head or its trailers, and returns whether there is one.
    fn ends_with(&mut self, headers: &HeaderMap) -> bool {
        let Some(code) = headers.get(CODE) else { return false };
        self.code = Code::from_bytes(code.as_bytes());
        true
    }

    fn open(&mut self) {
        if self.is_watch {
            self.is_open = true;
            gauge!(WATCHES, "method" => self.method.clone()).increment(1.0);
        }
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        if self.is_open {
            gauge!(WATCHES, "method" => self.method.clone()).decrement(1.0);
        }
        let method = match self.code {
            Code::Unimplemented => SharedString::const_str(UNKNOWN_METHOD),
            _ => self.method.clone(),
        };
        if !self.is_watch {
            histogram!(SECONDS, "method" => method.clone()).record(self.began.elapsed());
        }
        counter!(CALLS, "method" => method, "code" => word(self.code)).increment(1);
    }
}

/// Returns the name of a code in the contract of gRPC.
fn word(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// Body of an answer whose end is counted.
struct CountedBody {
    body: Body,
    call: CountedCall,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(trailers) = frame.trailers_ref()
        {
            self.call.ends_with(trailers);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
