//! How many requests are passed on at the same time, by class. Those that find no place wait for a while, and are then
//! told when to come back: services that have more to do than they can do get nothing done in time.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use chassis::{
    Fault,
    admission::{self, Class, Places, hold},
    settings::Gateway,
};
use http::Method;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{problem::Problem, routes::PREFIX};

/// Bodies up to this length count as nothing: the number of connections bounds what they come to together.
const SMALL: u64 = 64 << 10;

/// What one piece of the room for bodies stands for: a semaphore has fewer permits than there are bytes.
const PIECE: u64 = 1 << 10;

tokio::task_local! {
    /// The room that the bodies of the request under way take.
    static ROOM: Arc<Mutex<Vec<OwnedSemaphorePermit>>>;
}

/// The places of each class, and the room for bodies. Clones share them.
#[derive(Clone)]
pub(crate) struct Doors {
    places: Places,
    room: Arc<Semaphore>,
    pieces: u32,
    patience: Duration,
}

impl Doors {
    /// As many places, and as much room, as the settings say.
    pub(crate) fn new(settings: &Gateway) -> Self {
        let places = Places::new(|class| match class {
            Class::Report => settings.reports,
            Class::Operator => settings.operators,
            Class::List => settings.lists,
            // Nobody asks for these over REST.
            Class::Watch | Class::Control => 0,
        });
        let pieces = u32::try_from(u64::from(settings.body_bytes) / PIECE).unwrap_or(u32::MAX).max(1);
        let patience = Duration::from_secs(settings.queue_seconds.into());
        Self { places, room: Arc::new(Semaphore::new(pieces as usize)), pieces, patience }
    }

    /// Waits for the room that a body of at most `longest` bytes takes, and keeps it until the request was answered.
    ///
    /// # Errors
    /// [`Fault::Busy`] when other bodies took it for too long.
    pub(crate) async fn make_room(&self, longest: u64) -> Result<(), Fault> {
        if longest <= SMALL {
            return Ok(());
        }
        let pieces = u32::try_from(longest.div_ceil(PIECE)).unwrap_or(u32::MAX).min(self.pieces);
        let room = Arc::clone(&self.room).acquire_many_owned(pieces);
        let room = tokio::time::timeout(self.patience, room).await.map_err(|_| Fault::Busy {
            reason: "as many bytes of bodies are being worked on as the limits allow".into(),
            retry_after: admission::come_back(),
        })?;
        let room = room.expect("nobody closes the room");
        // Outside of a request, as in a test, it is given back at once.
        let _outside = ROOM.try_with(|held| held.lock().push(room));
        Ok(())
    }
}

/// Passes a request on when there is a place for it, and keeps the place until the client has the answer.
pub(crate) async fn admit(State(doors): State<Doors>, request: Request, next: Next) -> Response {
    let Some(class) = class_of(request.method(), request.uri().path()) else {
        return admission::scope(Class::Operator, next.run(request)).await;
    };
    let place = match doors.places.enter(class, doors.patience).await {
        Ok(place) => place,
        Err(fault) => return Problem::from(fault).into_response(),
    };
    let work = ROOM.scope(Arc::default(), next.run(request));
    admission::scope(class, work).await.map(|body| hold(body, place))
}

/// The class of a request; `None`: it is always let in, because it costs next to nothing, tells whether we live, or is
/// asked by firmware that gives up when it is refused.
fn class_of(method: &Method, path: &str) -> Option<Class> {
    let path = path.strip_prefix(PREFIX).unwrap_or(path);
    let mut parts = path.trim_start_matches('/').split('/');
    if parts.next() != Some("v2") {
        return None;
    }
    let reads = *method == Method::GET || *method == Method::HEAD;
    let rest: Vec<_> = parts.collect();
    match rest[..] {
        [] | ["version" | "healthz"] => None,
        ["components" | "sessions" | "sessiontemplates"] | ["sessions", _, "left_out"] if reads => {
            Some(Class::List)
        }
        ["components", _] if *method == Method::PATCH => Some(Class::Report),
        _ if *method == Method::OPTIONS => None,
        _ => Some(Class::Operator),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn requests_are_told_apart_by_what_they_are_about() {
        let mut rows = String::new();
        for (method, path) in [
            (Method::GET, "/v2/components"),
            (Method::GET, "/apis/bos/v2/components"),
            (Method::HEAD, "/v2/sessions"),
            (Method::GET, "/v2/sessiontemplates"),
            (Method::GET, "/v2/sessions/s/left_out"),
            (Method::PATCH, "/v2/components"),
            (Method::PATCH, "/v2/components/x1"),
            (Method::PATCH, "/apis/bos/v2/components/x1"),
            (Method::PUT, "/v2/components/x1"),
            (Method::GET, "/v2/components/x1"),
            (Method::POST, "/v2/sessions"),
            (Method::GET, "/v2/options"),
            (Method::OPTIONS, "/v2/options"),
            (Method::GET, "/v2/healthz"),
            (Method::GET, "/apis/bos/v2/version"),
            (Method::GET, "/v2"),
            (Method::GET, "/"),
            (Method::GET, "/readyz"),
            (Method::GET, "/metrics"),
            (Method::GET, "/boot/v1/bootscript"),
        ] {
            let class = class_of(&method, path).map_or("always let in", Class::word);
            writeln!(rows, "{method} {path}: {class}").unwrap();
        }
        expect![[r#"
            GET /v2/components: list
            GET /apis/bos/v2/components: list
            HEAD /v2/sessions: list
            GET /v2/sessiontemplates: list
            GET /v2/sessions/s/left_out: list
            PATCH /v2/components: operator
            PATCH /v2/components/x1: report
            PATCH /apis/bos/v2/components/x1: report
            PUT /v2/components/x1: operator
            GET /v2/components/x1: operator
            POST /v2/sessions: operator
            GET /v2/options: operator
            OPTIONS /v2/options: always let in
            GET /v2/healthz: always let in
            GET /apis/bos/v2/version: always let in
            GET /v2: always let in
            GET /: always let in
            GET /readyz: always let in
            GET /metrics: always let in
            GET /boot/v1/bootscript: always let in
        "#]]
        .assert_eq(&rows);
    }

    #[tokio::test]
    async fn bodies_wait_until_there_is_room() {
        let settings =
            Gateway { body_bytes: 1 << 20, queue_seconds: 0, ..chassis::Settings::default().gateway };
        let doors = Doors::new(&settings);
        let within = |longest: u64| {
            let doors = doors.clone();
            ROOM.scope(Arc::default(), async move {
                let first = doors.make_room(longest).await;
                (first, doors.make_room(SMALL).await, doors.make_room(SMALL + 1).await)
            })
        };
        let (first, small, large) = within(1 << 20).await;
        assert_eq!((first, small), (Ok(()), Ok(())));
        assert!(matches!(large, Err(Fault::Busy { .. })), "{large:?}");
        // It was given back, and one larger than the room has all of it.
        let (first, ..) = within(1 << 30).await;
        assert_eq!(first, Ok(()));
    }
}
