//! The port that the faces share. Paths and methods that none knows are refused as BOS does.

use std::{any::Any, convert::Infallible};

use axum::{
    Extension, Router,
    extract::{DefaultBodyLimit, Request, State},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use chassis::{Settings, mesh::client_name, process::audit::AuditLog};
use http::{Method, StatusCode};
use tower::{Layer, Service};
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    bos::{self, face::BosFace, paths::PREFIX, problem::BosProblem},
    dashboard,
    flightctl::{self, FlightctlFace},
    http::{
        admission::AdmissionPlaces,
        description::ApiDescription,
        document::{ApiAbout, DescribedPath},
        endpoint::{ApiEndpoint, routed},
        problem::RequestProblem,
        trace::traced,
    },
    identity::{AuditedRequest, IdentityGate, RequestCaller},
    kubernetes,
    mesh::MeshHandle,
    reveille,
};

/// Introduction of the document.
const ABOUT: ApiAbout = ApiAbout {
    title: "Reveille",
    description: "Boots, reboots, shuts down and configures the nodes of a machine. The paths under `/v2` are those \
                  of version 2 of the Boot Orchestration Service. They are served at the root and under `/apis/bos`.\n\n\
                  Every refusal is a problem document. Unknown query parameters are ignored, and of a repeated one \
                  the last counts; unknown members of a body are refused, and so are members that are only read. \
                  HEAD works wherever GET does, and OPTIONS tells the methods of a path. Lengths are in characters, \
                  and no text may have a NUL.",
    source: "BOS reference",
};

/// Faces that are served under a prefix of the common port.
#[derive(Default)]
pub(crate) struct FaceRouters {
    pub kubernetes: Router,
    pub flightctl: Router,
}

/// Checks of callers, in front of every face.
#[derive(Clone, Default)]
pub(crate) struct CallerChecks {
    /// Gate; `None`: everybody may do everything.
    pub gate: Option<IdentityGate>,
    /// Audit log, if there is one.
    pub audit: Option<AuditLog>,
}

/// Returns the service of the common port, with further faces under their prefixes. Requests are traced around the
/// routes and not within, so that answers to unknown paths carry an id too.
pub(crate) fn app(
    settings: &Settings,
    mesh: MeshHandle,
    places: &AdmissionPlaces,
    faces: FaceRouters,
    checks: CallerChecks,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Unpin + use<>
{
    let common = router(BosFace::new(mesh, settings), places);
    let common = common.nest_service(kubernetes::PREFIX, faces.kubernetes);
    let common = common.nest_service(flightctl::PREFIX, faces.flightctl);
    let guard = PortGuard { checks, mount: "" };
    from_fn(traced).layer(from_fn_with_state(guard, guarded).layer(common))
}

/// Checks in front of a port.
#[derive(Clone)]
struct PortGuard {
    checks: CallerChecks,
    /// Prefix of the paths of the port on the common port.
    mount: &'static str,
}

/// Passes on a request that its caller may make, and works on it in the name of the caller.
async fn guarded(State(guard): State<PortGuard>, request: Request, next: Next) -> Response {
    let PortGuard { checks: CallerChecks { gate, audit }, mount } = guard;
    let path = format!("{mount}{}", request.uri().path());
    let mut audited = audit.map(|log| AuditedRequest::begin(log, &request, &path));
    let admitted = match gate {
        Some(gate) => gate.admit(mount, request).await,
        None => Ok(request),
    };
    let response = match admitted {
        Ok(request) => {
            if let Some(audited) = &mut audited {
                audited.admitted(&request);
            }
            in_the_name_of_its_caller(request, next).await
        }
        Err(refusal) => {
            if let Some(audited) = &mut audited {
                audited.refused(&refusal);
            }
            refusal.challenging(refused(&path, refusal.problem()))
        }
    };
    if let Some(audited) = audited {
        audited.answered(response.status());
    }
    response
}

async fn in_the_name_of_its_caller(request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<RequestCaller>().and_then(|caller| caller.caller.clone());
    match caller {
        Some(caller) => client_name::scope(caller.shown(), next.run(request)).await,
        None => next.run(request).await,
    }
}

/// Returns a refusal in the form of the face of a path.
fn refused(path: &str, problem: RequestProblem) -> Response {
    let is_below =
        |prefix: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_below(kubernetes::PREFIX) {
        kubernetes::refused(&problem)
    } else if is_below(flightctl::PREFIX) {
        flightctl::refused(problem)
    } else {
        problem.into_response()
    }
}

/// Returns the service of a port of its own for a face, whose paths begin with `mount` on the common port.
pub(crate) fn face_app(
    face: Router,
    mount: &'static str,
    checks: CallerChecks,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Unpin + use<>
{
    let guard = PortGuard { checks, mount };
    from_fn(traced).layer(from_fn_with_state(guard, guarded).layer(face))
}

/// Returns the service of the port of agents, whose certificates say who they are.
pub(crate) fn agent_app(
    face: Router,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Unpin + use<>
{
    from_fn(traced).layer(face)
}

/// Returns whether a request needs no place, because its answer costs next to nothing.
pub(crate) fn is_vital(method: &Method, path: &str) -> bool {
    let class = bos::paths::class_of(method, path).or_else(|| reveille::class_of(method, path));
    let class = class.or_else(|| flightctl::class_of(method, path));
    class.or_else(|| kubernetes::class_of(method, path)).is_none()
}

fn router(face: BosFace, places: &AdmissionPlaces) -> Router {
    let is_strict = face.strict;
    let contract = bos::routes::endpoints(is_strict);
    let own = reveille::endpoints(PREFIX);
    let edge = flightctl::endpoints();
    let description = ApiDescription::new(&ABOUT, &described(&contract, &own, &edge), PREFIX);
    let contract = routed(contract, places, bos::paths::class_of);
    // Probes have to answer whatever else is under way.
    let own = routed(own, places, reveille::class_of);
    let router = contract
        .merge(bos::routes::unguarded())
        .with_state(face.clone())
        .merge(own.with_state(face.mesh))
        .merge(dashboard::router(PREFIX))
        .method_not_allowed_fallback(no_such_method)
        .fallback(async || BosProblem::no_such_path())
        .layer(Extension(description))
        .layer(CatchPanicLayer::custom(panicked))
        // Bodies are bounded where they are read.
        .layer(DefaultBodyLimit::disable());
    if is_strict {
        return router;
    }
    router.layer(from_fn(|request, next| dashboard::welcome(PREFIX, request, next)))
}

fn described<'a>(
    contract: &'a [ApiEndpoint<BosFace>],
    own: &'a [ApiEndpoint<MeshHandle>],
    edge: &'a [ApiEndpoint<FlightctlFace>],
) -> Vec<DescribedPath<'a>> {
    let edge = edge.iter().map(|path| path.described().mounted(flightctl::PREFIX, flightctl::REFUSALS));
    let own = own.iter().map(ApiEndpoint::described);
    contract.iter().map(ApiEndpoint::described).chain(own).chain(edge).collect()
}

/// Answers OPTIONS of every path. The framework lists the methods in the `Allow` header of this answer.
async fn no_such_method(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::OK.into_response();
    }
    BosProblem::method_not_allowed().into_response()
}

fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    RequestProblem::internal(&format!("panic: {}", text.unwrap_or_default())).into_response()
}

/// Returns the document for the place under `prefix`.
#[cfg(test)]
pub(crate) fn description_at(prefix: &str) -> serde_json::Value {
    let contract = bos::routes::endpoints(false);
    let own = reveille::endpoints(PREFIX);
    crate::http::document::document(&ABOUT, &described(&contract, &own, &flightctl::endpoints()), prefix)
}
