//! What is served: the paths of the contract, each at the root and under the prefix that BOS has behind a site's
//! gateway, and a few around it at the root. `contract` lists them all.

use std::{any::Any, sync::Arc};

use axum::{
    Extension, Router,
    extract::DefaultBodyLimit,
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};
use http::{HeaderValue, Method, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    admission::{Door, admit},
    mesh::Mesh,
    problem::Problem,
};

mod boot_scripts;
mod components;
mod contract;
mod description;
mod endpoint;
mod notifications;
mod options;
mod probes;
mod service;
mod sessions;
mod staging;
mod templates;

use description::Documents;
use endpoint::Endpoint;

/// Path under which BOS is found from outside (BOS reference 2.1).
pub(crate) const PREFIX: &str = "/apis/bos";

/// Everything that the gateway serves.
pub(crate) fn router(mesh: Mesh) -> Router {
    let (contract, around) = (contract::contract(mesh.strict), contract::around());
    let documents = Documents::of(&contract, &around);
    // Without the slash a prefix is what people type.
    let mut router = Router::new().route(PREFIX, get(service::versions));
    let guarded = |methods: MethodRouter<Mesh>, largest: u64| {
        let door = Arc::new(Door { doors: mesh.doors.clone(), largest });
        methods.route_layer(from_fn_with_state(door, admit))
    };
    for Endpoint { path, methods, largest_body, .. } in around {
        router = router.route(path, guarded(methods, largest_body));
    }
    for Endpoint { path, methods, largest_body, .. } in contract {
        let methods = guarded(methods, largest_body);
        router = router.route(&format!("{PREFIX}{path}"), methods.clone()).route(path, methods);
    }
    router
        .method_not_allowed_fallback(no_such_method)
        .fallback(async || Problem::no_such_path())
        .layer(Extension(documents))
        .layer(CatchPanicLayer::custom(panicked))
        // Bodies are bounded where they are read.
        .layer(DefaultBodyLimit::disable())
        .with_state(mesh)
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

/// The document as it is found under `prefix`.
#[cfg(test)]
pub(crate) fn description_at(prefix: &str) -> serde_json::Value {
    description::described(&contract::contract(false), &contract::around(), prefix)
}
