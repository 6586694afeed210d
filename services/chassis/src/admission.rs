//! How many calls may be under way at the same time, by class: who sends thousands keeps nobody else out.
//!
//! A call that finds no place in its class is refused at once, with the time after which to try again. A refusal costs
//! next to nothing, so what is under way goes on as fast as ever, however many more there are; and as classes have
//! places of their own, what nodes report and people list never keeps the parts of the mesh from each other.

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
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use metrics::counter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::metadata::MetadataMap;

use crate::{Fault, settings::Limits};

/// Metadata key that tells the class of a call. The name of the method tells of lists and watches of others than the
/// mesh itself.
pub const HEADER: &str = "x-reveille-class";

/// Calls that were refused because their class had no place left.
const REFUSED: &str = "reveille_calls_refused_total";

/// Seconds from which one is drawn for whoever is told to come back: those who were refused together do not come back
/// together.
const COME_BACK: std::ops::RangeInclusive<u64> = 1..=5;

/// What calls are told apart by, from those that come in thousands to those on which everything rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// What nodes say and ask by themselves.
    Report,
    /// What people and their tools ask, unless it is a list.
    Operator,
    /// A list, from its first to its last message.
    List,
    /// A watch, as long as it lasts.
    Watch,
    /// What the parts of the mesh ask each other, lists and watches included.
    Control,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Report, Self::Operator, Self::List, Self::Watch, Self::Control];

    /// The word for the class in metadata, metrics and errors.
    pub fn word(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Operator => "operator",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Control => "control",
        }
    }

    /// The class of a call of the method at `path`; `None`: it is always let in, as are questions about health.
    ///
    /// Who does not say what it is counts as a person: parts of the mesh say it of every call.
    fn of(path: &str, headers: &HeaderMap) -> Option<Self> {
        let (service, method) = path.trim_start_matches('/').split_once('/')?;
        if !service.starts_with("reveille.") {
            return None;
        }
        let told = headers.get(HEADER).and_then(|value| value.to_str().ok());
        let is = |class: Self| told == Some(class.word());
        Some(match method {
            _ if is(Self::Control) => Self::Control,
            list if list.starts_with("List") => Self::List,
            watch if watch.starts_with("Watch") => Self::Watch,
            _ if is(Self::Report) => Self::Report,
            _ => Self::Operator,
        })
    }
}

tokio::task_local! {
    static CURRENT: Class;
}

/// Runs `work`, whose calls count as `class`.
pub async fn scope<F: Future>(class: Class, work: F) -> F::Output {
    CURRENT.scope(class, work).await
}

/// Says of a call that goes out what it counts as. What is asked outside of any [`scope`] is asked by the mesh itself.
pub(crate) fn mark(metadata: &mut MetadataMap) {
    let class = CURRENT.try_with(|class| *class).unwrap_or(Class::Control);
    metadata.insert(HEADER, tonic::metadata::MetadataValue::from_static(class.word()));
}

/// The places of each class. Clones share them.
#[derive(Debug, Clone)]
pub struct Places(Arc<HashMap<Class, Arc<Semaphore>>>);

/// A place in a class, which is free again when this is dropped.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "it is held, not read")] OwnedSemaphorePermit);

impl Places {
    /// As many places for each class as `most` says.
    pub fn new(most: impl Fn(Class) -> u32) -> Self {
        let semaphore = |class| Semaphore::new((most(class) as usize).min(Semaphore::MAX_PERMITS));
        Self(Arc::new(Class::ALL.into_iter().map(|class| (class, Arc::new(semaphore(class)))).collect()))
    }

    /// A place in `class`, waited for no longer than `patience`.
    ///
    /// # Errors
    /// [`Fault::Busy`] when there was none.
    pub async fn enter(&self, class: Class, patience: Duration) -> Result<Place, Fault> {
        let places = Arc::clone(&self.0[&class]);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            return Ok(Place(place));
        }
        let waited = match patience.is_zero() {
            true => None,
            false => tokio::time::timeout(patience, places.acquire_owned()).await.ok(),
        };
        match waited {
            Some(place) => Ok(Place(place.expect("nobody closes the places"))),
            None => {
                counter!(REFUSED, "class" => class.word()).increment(1);
                Err(busy(class))
            }
        }
    }
}

/// What whoever finds no place in `class` is told.
pub fn busy(class: Class) -> Fault {
    let reason = format!("as many calls of the class '{}' are under way as the limits allow", class.word());
    Fault::Busy { reason, retry_after: come_back() }
}

/// After which time somebody who was refused should try again.
pub fn come_back() -> Duration {
    Duration::from_secs(rand::random_range(COME_BACK))
}

/// Lets gRPC calls in as `limits` say.
pub(crate) fn places(limits: &Limits) -> Places {
    Places::new(|class| match class {
        Class::Report => limits.reports,
        Class::Operator => limits.operators,
        Class::List => limits.lists,
        Class::Watch => limits.watches,
        Class::Control => limits.control,
    })
}

/// Takes a call if there is a place for it, and keeps the place until the last of the answer was sent.
pub(crate) async fn admit(State(places): State<Places>, request: Request, next: Next) -> Response {
    let Some(class) = Class::of(request.uri().path(), request.headers()) else {
        return next.run(request).await;
    };
    match places.enter(class, Duration::ZERO).await {
        Ok(place) => next.run(request).await.map(|body| hold(body, place)),
        Err(fault) => tonic::Status::from(fault).into_http(),
    }
}

/// A body that keeps `place` until it ends or is dropped.
pub fn hold(body: Body, place: impl Send + Unpin + 'static) -> Body {
    Body::new(Held { body, _place: place })
}

struct Held<P> {
    body: Body,
    _place: P,
}

impl<P: Unpin> HttpBody for Held<P> {
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
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn calls_are_told_apart_by_their_method_and_what_they_say() {
        let mut rows = String::new();
        for path in [
            "/reveille.component.v1.ComponentService/PatchComponents",
            "/reveille.component.v1.ComponentService/ListComponents",
            "/reveille.component.v1.ComponentService/WatchComponents",
            "/grpc.health.v1.Health/Check",
            "/metrics",
        ] {
            for told in ["", "report", "operator", "control", "list", "king"] {
                let mut headers = HeaderMap::new();
                headers.insert(HEADER, told.parse().unwrap());
                let class = Class::of(path, &headers).map_or("always let in", Class::word);
                write!(rows, "{}: {class}; ", if told.is_empty() { "-" } else { told }).unwrap();
            }
            writeln!(rows, "{}", path.rsplit('/').next().unwrap()).unwrap();
        }
        expect![[r#"
            -: operator; report: report; operator: operator; control: control; list: operator; king: operator; PatchComponents
            -: list; report: list; operator: list; control: control; list: list; king: list; ListComponents
            -: watch; report: watch; operator: watch; control: control; list: watch; king: watch; WatchComponents
            -: always let in; report: always let in; operator: always let in; control: always let in; list: always let in; king: always let in; Check
            -: always let in; report: always let in; operator: always let in; control: always let in; list: always let in; king: always let in; metrics
        "#]].assert_eq(&rows);
    }

    #[tokio::test]
    async fn one_class_never_takes_the_places_of_another() {
        let places = Places::new(|_| 1);
        let mut held = Vec::new();
        for class in Class::ALL {
            held.push(places.enter(class, Duration::ZERO).await.unwrap());
            let refused = places.enter(class, Duration::from_millis(1)).await.unwrap_err();
            assert!(matches!(refused, Fault::Busy { .. }), "{refused:?}");
        }
        drop(held);
        for class in Class::ALL {
            places.enter(class, Duration::ZERO).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_place_is_free_again_once_the_answer_is_gone() {
        let places = Places::new(|_| 1);
        let place = places.enter(Class::List, Duration::ZERO).await.unwrap();
        let body = hold(Body::from("answer"), place);
        assert!(places.enter(Class::List, Duration::ZERO).await.is_err());
        drop(body);
        assert!(places.enter(Class::List, Duration::ZERO).await.is_ok());
    }
}
