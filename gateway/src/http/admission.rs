//! Bounds of the concurrent requests, by class. A request without a free place waits for a while, and is then refused
//! with the time to retry: overloaded services finish nothing in time.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use chassis::{
    mesh::{
        admission::{ClassPlaces, hold},
        bodies::{ArrivedBody, BodyBudget, IncompleteBody, Pace},
        call_class::{self, CallClass},
    },
    process::{capacity::ProcessCapacity, traces},
    settings::GatewaySettings,
};
use http::Method;
use tracing::{Instrument as _, Span};

use super::problem::RequestProblem;

/// Memory for a list under way: two pages that the service may send ahead of the client, each once as received and once
/// as parsed, and the chunk that waits to be sent.
const LIST: u64 = 3 << 20;

/// Memory for a live stream: a batch of each watch behind it, once as received and once as parsed, and the chunk that waits
/// to be sent.
const LIVE_STREAM: u64 = 6 << 20;

/// Places of each class, and the room for bodies. Clones share them.
#[derive(Clone)]
pub(crate) struct AdmissionPlaces {
    classes: ClassPlaces,
    bodies: BodyBudget,
    patience: Duration,
}

impl AdmissionPlaces {
    /// Creates places and room as the settings and the process allow.
    pub(crate) fn new(settings: &GatewaySettings, capacity: &ProcessCapacity) -> Self {
        let bytes = capacity.share(settings.list_bytes.into());
        let places = |each, most| u32::try_from(bytes / each).unwrap_or(u32::MAX).clamp(1, most);
        let lists = places(LIST, settings.lists);
        let live_streams = places(LIVE_STREAM, settings.live_streams);
        let classes = ClassPlaces::new(|class| match class {
            CallClass::Report => settings.reports,
            CallClass::Operator => settings.operators,
            CallClass::List => lists,
            CallClass::Watch => live_streams,
            // No request over HTTP has this class.
            CallClass::Control => 0,
        });
        let patience = Duration::from_secs(settings.queue_seconds.into());
        let bytes = capacity.share(settings.body_bytes.into());
        Self { classes, bodies: BodyBudget::new(bytes, pace(settings), patience), patience }
    }
}

/// Returns the least pace at which bodies have to arrive.
pub(crate) fn pace(settings: &GatewaySettings) -> Pace {
    Pace {
        bytes_per_second: settings.least_rate.into(),
        grace: Duration::from_secs(settings.stall_seconds.into()),
        patience: Duration::from_secs(settings.patience_seconds.into()),
    }
}

/// Decides the admission class of a request from its method and path. `None`: it is always admitted, because it costs
/// next to nothing, probes the gateway, or comes from firmware that gives up when refused.
pub(crate) type Classify = fn(&Method, &str) -> Option<CallClass>;

/// Condition on the body of a request, an extension of it: whoever let the request in did so under this condition.
#[derive(Clone, Copy)]
pub(crate) struct BodyCondition(pub fn(&[u8]) -> Result<(), RequestProblem>);

/// Admission in front of the handlers of a path.
pub(crate) struct PathAdmission {
    pub places: AdmissionPlaces,
    pub classify: Classify,
    /// Path as it is routed.
    pub route: &'static str,
    /// Most bytes of a body.
    pub largest_body: u64,
}

/// Passes a request on once it has arrived as a whole and there is a place for it, and keeps the place until the client
/// has the answer.
pub(crate) async fn admit(
    State(admission): State<Arc<PathAdmission>>,
    request: Request,
    next: Next,
) -> Response {
    admitted(&admission, request, next).await.unwrap_or_else(IntoResponse::into_response)
}

/// Returns the span of a request in the trace of the client. Without one it begins a trace, unless it is one of those that
/// come all the time: probes, and reports and polls of nodes and devices.
fn trace_of(route: &str, class: Option<CallClass>, request: &Request) -> Span {
    let begins = class.is_some_and(|class| class != CallClass::Report);
    let (method, path) = (request.method(), request.uri().path());
    let trace = traces::request_span(format_args!("{method} {route}"), request.headers(), begins);
    traces::note_text(&trace, "http.request.method", method.as_str());
    traces::note_text(&trace, "url.path", path);
    if let Some(id) = traces::trace_id(&trace) {
        Span::current().record("trace_id", id);
    }
    trace
}

async fn admitted(path: &PathAdmission, request: Request, next: Next) -> Result<Response, RequestProblem> {
    let class = (path.classify)(request.method(), request.uri().path());
    let trace = trace_of(path.route, class, &request);
    let answer = placed(path, class, request, next).instrument(trace.clone()).await;
    match &answer {
        Ok(response) => traces::answered(&trace, response.status()),
        Err(problem) => traces::answered(&trace, problem.status),
    }
    answer
}

/// Passes a request on once there is a place for it.
async fn placed(
    path: &PathAdmission,
    class: Option<CallClass>,
    request: Request,
    next: Next,
) -> Result<Response, RequestProblem> {
    let PathAdmission { places, largest_body, .. } = path;
    let (head, body) = request.into_parts();
    let ArrivedBody { bytes, room } = places.bodies.read(body, *largest_body).await?;
    if let Some(BodyCondition(check)) = head.extensions.get() {
        check(&bytes)?;
    }
    let request = Request::from_parts(head, bytes.into());
    let Some(class) = class else {
        return Ok(call_class::scope(CallClass::Operator, next.run(request)).await);
    };
    let place = places.classes.enter(class, places.patience).await.map_err(RequestProblem::not_admitted)?;
    let response = call_class::scope(class, next.run(request)).await;
    drop(room);
    Ok(response.map(|body| hold(body, place)))
}

impl From<IncompleteBody> for RequestProblem {
    fn from(incomplete: IncompleteBody) -> Self {
        match incomplete {
            IncompleteBody::TooLarge => Self::too_large(),
            IncompleteBody::TooSlow => Self::too_slow(),
            IncompleteBody::NoRoom(fault) => Self::not_admitted(fault),
            IncompleteBody::Broken => Self::bad_request("the request body could not be read"),
        }
    }
}
