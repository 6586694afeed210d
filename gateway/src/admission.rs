//! How many requests are passed on at the same time, by class. Those that find no place wait for a while, and are then
//! told when to come back: services that have more to do than they can do get nothing done in time.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use chassis::{
    admission::{self, Class, Places, hold},
    bodies::{ArrivedBody, BodyBudget, Incomplete, Pace},
    capacity::Capacity,
    settings::Gateway,
};
use http::Method;

use crate::{problem::Problem, routes::PREFIX};

/// Bytes that a list under way takes: what the service may send ahead of the client, two pages, once as they came and once
/// as they are read, and what waits to be sent.
const LIST: u64 = 3 << 20;

/// The places of each class, and the room for bodies. Clones share them.
#[derive(Clone)]
pub(crate) struct Doors {
    places: Places,
    bodies: BodyBudget,
    patience: Duration,
}

impl Doors {
    /// As many places, and as much room, as the settings and the process allow.
    pub(crate) fn new(settings: &Gateway, capacity: &Capacity) -> Self {
        let lists = capacity.share(settings.list_bytes.into()) / LIST;
        let lists = u32::try_from(lists).unwrap_or(u32::MAX).clamp(1, settings.lists);
        let places = Places::new(|class| match class {
            Class::Report => settings.reports,
            Class::Operator => settings.operators,
            Class::List => lists,
            // Nobody asks for these over REST.
            Class::Watch | Class::Control => 0,
        });
        let patience = Duration::from_secs(settings.queue_seconds.into());
        let bytes = capacity.share(settings.body_bytes.into());
        Self { places, bodies: BodyBudget::new(bytes, pace(settings), patience), patience }
    }
}

/// How slowly bodies may come.
pub(crate) fn pace(settings: &Gateway) -> Pace {
    Pace {
        bytes_per_second: settings.least_rate.into(),
        grace: Duration::from_secs(settings.stall_seconds.into()),
        patience: Duration::from_secs(settings.patience_seconds.into()),
    }
}

/// Admission in front of the handlers of a path whose bodies have at most `largest` bytes.
pub(crate) struct Door {
    pub(crate) doors: Doors,
    pub(crate) largest: u64,
}

/// Passes a request on once it has arrived as a whole and there is a place for it, and keeps the place until the client has
/// the answer.
pub(crate) async fn admit(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    admitted(&door, request, next).await.unwrap_or_else(IntoResponse::into_response)
}

async fn admitted(door: &Door, request: Request, next: Next) -> Result<Response, Problem> {
    let Door { doors, largest } = door;
    let class = class_of(request.method(), request.uri().path());
    let (head, body) = request.into_parts();
    let ArrivedBody { bytes, room } = doors.bodies.read(body, *largest).await?;
    let request = Request::from_parts(head, bytes.into());
    let Some(class) = class else {
        return Ok(admission::scope(Class::Operator, next.run(request)).await);
    };
    let place = doors.places.enter(class, doors.patience).await?;
    let response = admission::scope(class, next.run(request)).await;
    drop(room);
    Ok(response.map(|body| hold(body, place)))
}

impl From<Incomplete> for Problem {
    fn from(incomplete: Incomplete) -> Self {
        match incomplete {
            Incomplete::TooLarge => Self::too_large(),
            Incomplete::TooSlow => Self::too_slow(),
            Incomplete::NoRoom(fault) => fault.into(),
            Incomplete::Broken => Self::bad_request("the request body could not be read"),
        }
    }
}

/// Whether a request is always let in, see [`class_of`].
pub(crate) fn is_vital(method: &Method, path: &str) -> bool {
    class_of(method, path).is_none()
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
}
