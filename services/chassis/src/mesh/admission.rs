//! Limits concurrent calls by class, so that a crowd in one class never starves another.
//!
//! A call beyond the limit of its class is refused at once, with the time after which to try again. A refusal costs
//! next to nothing, so admitted calls proceed at full speed under any load; and as classes have limits of their own,
//! reports of nodes and lists of people never keep the parts of the mesh from each other.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use domain::core::pace::Pace;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use metrics::counter;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tonic::{Code, Status};
use tracing::{Instrument as _, Span};

use crate::{
    Fault,
    mesh::{
        bodies::{BodyBudget, IncompleteBody},
        call_class::CallClass,
        channel::LARGEST_MESSAGE,
        client_name, request_id,
        streams::{self, StreamBudget},
    },
    process::{pause, traces},
    settings::LimitSettings,
};

/// Calls that were refused because their class had no place left.
const REFUSED: &str = "reveille_calls_refused_total";

/// The places of each class. Clones share them.
#[derive(Debug, Clone)]
pub struct ClassPlaces(Arc<HashMap<CallClass, Arc<Semaphore>>>);

/// A place in a class, which is free again when this is dropped.
#[derive(Debug)]
pub struct ClassPlace(#[expect(dead_code, reason = "it is held, not read")] OwnedSemaphorePermit);

impl ClassPlaces {
    /// Creates `most` places for each class.
    pub fn new(most: impl Fn(CallClass) -> u32) -> Self {
        let semaphore = |class| Semaphore::new((most(class) as usize).min(Semaphore::MAX_PERMITS));
        Self(Arc::new(CallClass::ALL.into_iter().map(|class| (class, Arc::new(semaphore(class)))).collect()))
    }

    /// A place in `class`, waited for no longer than `patience`.
    ///
    /// # Errors
    /// [`Fault::Busy`] when there was none.
    pub async fn enter(&self, class: CallClass, patience: Duration) -> Result<ClassPlace, Fault> {
        let places = Arc::clone(&self.0[&class]);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            return Ok(ClassPlace(place));
        }
        let waited = match patience.is_zero() {
            true => None,
            false => tokio::time::timeout(patience, places.acquire_owned()).await.ok(),
        };
        match waited {
            Some(place) => Ok(ClassPlace(place.expect("nobody closes the places"))),
            None => {
                counter!(REFUSED, "class" => class.word()).increment(1);
                Err(busy(class))
            }
        }
    }
}

/// The refusal of a call beyond the limit of `class`.
pub fn busy(class: CallClass) -> Fault {
    let reason = format!("as many calls of the class '{}' are under way as the limits allow", class.word());
    Fault::Busy { reason, retry_after: pause::retry_after() }
}

/// Places and room that a gRPC call needs before it is worked on. Clones share them.
#[derive(Clone)]
pub(crate) struct CallAdmission {
    places: ClassPlaces,
    bodies: BodyBudget,
    streams: StreamBudget,
}

/// Time in which nothing of a message has to arrive, and in which all of it has to.
const GRACE: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(60);

impl CallAdmission {
    /// Creates as many places, and as much room, as the settings and the process allow.
    pub(crate) fn new(context: &crate::Context) -> Self {
        let limits = &context.settings.limits;
        let pace = Pace { bytes_per_second: limits.least_rate.into(), grace: GRACE, patience: PATIENCE };
        let bytes = context.capacity.share(limits.body_bytes);
        Self {
            places: places(limits),
            bodies: BodyBudget::new(bytes, pace, Duration::ZERO),
            streams: context.streams.clone(),
        }
    }
}

fn places(limits: &LimitSettings) -> ClassPlaces {
    ClassPlaces::new(|class| match class {
        CallClass::Report => limits.reports,
        CallClass::Operator => limits.operators,
        CallClass::List => limits.lists,
        CallClass::Watch => limits.watches,
        CallClass::Control => limits.control,
    })
}

/// Returns whether the method at `path` answers with many messages.
fn is_stream(path: &str) -> bool {
    let method = path.rsplit('/').next().unwrap_or_default();
    method.starts_with("List") || method.starts_with("Watch")
}

/// Takes a call that has arrived as a whole if there is a place for it, and keeps the place until the last of the answer was
/// sent. A message that arrives slowly has no place yet.
pub(crate) async fn admit(State(admission): State<CallAdmission>, request: Request, next: Next) -> Response {
    let Some(class) = CallClass::of(request.uri().path(), request.headers()) else {
        return next.run(request).await;
    };
    match admitted(&admission, class, request, next).await {
        Ok(response) => response,
        Err(status) => status.into_http(),
    }
}

async fn admitted(
    admission: &CallAdmission,
    class: CallClass,
    request: Request,
    next: Next,
) -> Result<Response, Status> {
    let stream = is_stream(request.uri().path());
    let deadline = deadline(request.headers());
    let (head, body) = request.into_parts();
    let arrived = admission.bodies.read(body, LARGEST_MESSAGE as u64).await.map_err(refusal)?;
    let place = admission.places.enter(class, Duration::ZERO).await?;
    if class == CallClass::Control {
        streams::trust_current();
    }
    let id = head.headers.get(request_id::HEADER).and_then(|id| id.to_str().ok()).map(str::to_owned);
    let client = client_name::of(&head.headers);
    let name = head.uri.path().trim_start_matches('/');
    let span = traces::request_span(format_args!("{name}"), &head.headers, false);
    let work = next.run(Request::from_parts(head, arrived.bytes.into()));
    let work = async {
        match client {
            Some(client) => client_name::scope(client, work).await,
            None => work.await,
        }
    };
    let work = async {
        match id {
            Some(id) => request_id::scope(id, work).await,
            None => work.await,
        }
    }
    .instrument(span.clone());
    let response = match deadline {
        Some(deadline) => timeout(deadline, work).await.map_err(|_| {
            let status = Status::deadline_exceeded("the deadline of the call has passed");
            note_code(&span, status.code());
            status
        })?,
        None => work.await,
    };
    let (head, body) = response.into_parts();
    if let Some(status) = Status::from_header_map(&head.headers) {
        note_code(&span, status.code());
    }
    Ok(Response::from_parts(head, admission.streams.meter(body, stream, place)?))
}

/// Notes the code of a failed call on its span, and whether the part is to blame.
fn note_code(span: &Span, code: Code) {
    traces::note(span, "rpc.grpc.status_code", i64::from(i32::from(code)));
    match code {
        Code::Unknown
        | Code::DeadlineExceeded
        | Code::Unimplemented
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => traces::fail(span, code.description()),
        _ => {}
    }
}

fn refusal(incomplete: IncompleteBody) -> Status {
    match incomplete {
        IncompleteBody::TooLarge => Status::out_of_range("the message is larger than is taken"),
        IncompleteBody::TooSlow => Status::deadline_exceeded("the message did not arrive in time"),
        IncompleteBody::NoRoom(fault) => fault.into(),
        IncompleteBody::Broken => Status::cancelled("the message did not arrive as a whole"),
    }
}

/// Deadline of a call in gRPC's notation: a number and a unit.
fn deadline(headers: &HeaderMap) -> Option<Duration> {
    let told = headers.get("grpc-timeout")?.to_str().ok()?;
    let (number, unit) = told.split_at_checked(told.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number.saturating_mul(3600)),
        "M" => Duration::from_secs(number.saturating_mul(60)),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

/// A body that keeps `place` until it ends or is dropped.
pub fn hold(body: Body, place: impl Send + Unpin + 'static) -> Body {
    Body::new(HeldBody { body, _place: place })
}

struct HeldBody<P> {
    body: Body,
    _place: P,
}

impl<P: Unpin> HttpBody for HeldBody<P> {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_read_as_grpc_writes_them() {
        for (told, seconds) in [
            ("30S", Some(30.0)),
            ("1H", Some(3600.0)),
            ("2M", Some(120.0)),
            ("1500m", Some(1.5)),
            ("500000u", Some(0.5)),
            ("29999999999n", Some(29.999_999_999)),
            ("30", None),
            ("S", None),
            ("", None),
            ("soon", None),
        ] {
            let headers = HeaderMap::from_iter([(
                http::HeaderName::from_static("grpc-timeout"),
                told.parse().unwrap(),
            )]);
            assert_eq!(deadline(&headers), seconds.map(Duration::from_secs_f64), "{told}");
        }
    }

    #[tokio::test]
    async fn one_class_never_takes_the_places_of_another() {
        let places = ClassPlaces::new(|_| 1);
        let mut held = Vec::new();
        for class in CallClass::ALL {
            held.push(places.enter(class, Duration::ZERO).await.unwrap());
            let refused = places.enter(class, Duration::from_millis(1)).await.unwrap_err();
            assert!(matches!(refused, Fault::Busy { .. }), "{refused:?}");
        }
        drop(held);
        for class in CallClass::ALL {
            places.enter(class, Duration::ZERO).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_place_is_free_again_once_the_answer_is_gone() {
        let places = ClassPlaces::new(|_| 1);
        let place = places.enter(CallClass::List, Duration::ZERO).await.unwrap();
        let body = hold(Body::from("answer"), place);
        assert!(places.enter(CallClass::List, Duration::ZERO).await.is_err());
        drop(body);
        assert!(places.enter(CallClass::List, Duration::ZERO).await.is_ok());
    }
}
