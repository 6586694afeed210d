//! The paths of the contract, each at the root and under the prefix that BOS has behind a site's gateway.

use std::any::Any;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use http::{HeaderValue, Method, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;
use tower_http::catch_panic::CatchPanicLayer;

use crate::{mesh::Mesh, problem::Problem};

mod boot_scripts;
mod components;
mod notifications;
mod options;
mod probes;
mod service;
mod sessions;
mod templates;

/// Path under which BOS is found from outside (BOS reference 2.1).
const PREFIX: &str = "/apis/bos";

/// Largest body of a bulk write or a template. Full records of 12,000 components come to about a third.
const BULK_BODY: usize = 64 << 20;

/// Largest other body. The longest text of the contract has 524,288 characters, and an escaped character
/// takes twelve bytes at most.
const SINGLE_BODY: usize = 8 << 20;

/// Everything that the gateway serves.
pub(crate) fn router(mesh: Mesh) -> Router {
    let mut router = Router::new()
        .route("/livez", get(probes::live))
        .route("/readyz", get(probes::ready))
        .route("/metrics", get(probes::metrics))
        .route("/scn", post(notifications::notify))
        .route("/boot/v1/bootscript", get(boot_scripts::show))
        // Without the slash a prefix is what people type.
        .route(PREFIX, get(service::versions));
    for (path, methods) in contract() {
        router = router.route(&format!("{PREFIX}{path}"), methods.clone()).route(path, methods);
    }
    router
        .method_not_allowed_fallback(no_such_method)
        .fallback(async || Problem::no_such_path())
        .layer(CatchPanicLayer::custom(panicked))
        .layer(DefaultBodyLimit::max(SINGLE_BODY))
        .with_state(mesh)
}

/// The paths of the contract (BOS reference 2.4). A path with a slash at the end is another path.
fn contract() -> Vec<(&'static str, MethodRouter<Mesh>)> {
    let components = get(components::list).put(components::put_many).patch(components::patch_many);
    let component = get(components::show).put(components::put).patch(components::patch);
    let template = get(templates::show).put(templates::put).patch(templates::patch);
    let sessions = get(sessions::list).post(sessions::create).delete(sessions::delete_many);
    let session = get(sessions::show).patch(sessions::patch).delete(sessions::delete);
    let bulk = DefaultBodyLimit::max(BULK_BODY);
    vec![
        ("/", get(service::versions)),
        ("/v2", get(service::version)),
        ("/v2/version", get(service::version)),
        ("/v2/healthz", get(service::health)),
        ("/v2/options", get(options::show).patch(options::change)),
        ("/v2/components", components.layer(bulk)),
        ("/v2/components/{id}", component.delete(components::delete)),
        ("/v2/sessiontemplates", get(templates::list)),
        ("/v2/sessiontemplates/{name}", template.delete(templates::delete).layer(bulk)),
        ("/v2/sessiontemplatesvalid/{name}", get(templates::validate)),
        ("/v2/sessiontemplatetemplate", get(templates::example)),
        ("/v2/sessions", sessions),
        ("/v2/sessions/{name}", session),
        ("/v2/sessions/{name}/status", get(sessions::status).post(sessions::save_status)),
    ]
}

/// The framework lists the methods of the path in the `Allow` header of this answer.
async fn no_such_method(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::OK.into_response();
    }
    Problem::method_not_allowed().into_response()
}

fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Problem::internal(&format!("panic: {}", text.unwrap_or_default())).into_response()
}

/// Answers with JSON.
fn json(status: StatusCode, body: &impl Serialize) -> Result<Response, Problem> {
    let body = serde_json::to_vec(body).map_err(|error| Problem::internal(&error.to_string()))?;
    let content_type = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok((status, [content_type], body).into_response())
}

/// What a service promised to send, or whose fault it is.
fn promised<T>(member: Option<T>) -> Result<T, Problem> {
    member.ok_or_else(|| Problem::internal("a service answered without the resource"))
}
