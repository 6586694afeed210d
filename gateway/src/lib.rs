//! The HTTP/JSON face of the mesh: the contract of BOS version 2 (BOS reference 2), translated to gRPC.
//!
//! The gateway owns the shape of JSON, query parameters, problem documents and nothing else. It keeps no
//! state and knows no rule about components, sessions or templates: the services judge values, and it only
//! judges whether a request can be said to them at all.
//!
//! - `wire`: the JSON; `convert`: between JSON and messages
//! - `extract`, `query`: what is taken from a request; `tenant`: whose resources it is about
//! - `problem`, `stream`: what is answered
//! - `mesh`: the services behind; `routes`: which path calls which of them; `document`: what is said about that
//! - `again`: which calls are made once more; `admission`: how much is passed on at a time
//! - `serve`: connections; `paced`: how slowly a client may read; `refusal`: what cannot be read as a request

use std::convert::Infallible;

use anyhow::Context as _;
use axum::{extract::Request, middleware, response::Response};
use chassis::{bodies::Pace, capacity::Capacity, mirror::Mirror, settings::Gateway};
use tokio::net::TcpListener;
use tower::{Layer, Service};

use crate::serve::ConnectionLimits;

mod admission;
mod again;
mod convert;
mod document;
mod extract;
mod follow;
mod mesh;
mod paced;
mod problem;
mod query;
mod refusal;
mod routes;
mod serve;
mod stream;
mod tenant;
mod wire;

/// Serves the contract on `listener` until shutdown. Then requests under way are finished and no more taken.
///
/// # Errors
/// When the address of a service in the settings cannot be read, or the gateway may have nothing of something.
pub async fn start(context: chassis::Context, listener: TcpListener) -> anyhow::Result<()> {
    let settings = &context.settings.gateway;
    for (key, most) in [
        ("connections", settings.connections),
        ("patience_seconds", settings.patience_seconds),
        ("least_rate", settings.least_rate),
        ("stall_seconds", settings.stall_seconds),
        ("reports", settings.reports),
        ("operators", settings.operators),
        ("lists", settings.lists),
        ("body_bytes", settings.body_bytes),
        ("list_bytes", settings.list_bytes),
    ] {
        anyhow::ensure!(most > 0, "gateway.{key}: has to be above zero");
    }
    let address = listener.local_addr().context("local address")?;
    let app = app(&context.settings)?;
    // Only for how much is logged: every request asks the owner of what it is about.
    let registry = chassis::channel(&context.settings.component_registry.url)?;
    let _options = Mirror::of_options(&context, registry, || {});
    let limits = limits(settings, &context.capacity);
    let shutdown = context.tasks.shutdown();
    let part = context.clone();
    context.tasks.spawn("gateway", async move {
        let serving = serve::serve(listener, app, admission::is_vital, limits, shutdown);
        let served = async {
            serving.await;
            Ok(())
        };
        part.finish_calls(served).await
    });
    tracing::info!(part = "gateway", %address, "listening");
    Ok(())
}

/// Everything that the gateway serves. Requests are followed around the routes and not within, so that
/// answers to unknown paths carry an id too.
fn app(
    settings: &chassis::Settings,
) -> anyhow::Result<
    impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Unpin + 'static,
> {
    let mesh = mesh::Mesh::new(settings)?;
    Ok(middleware::from_fn(follow::follow).layer(routes::router(mesh)))
}

/// Bounds of connections and their clients.
fn limits(settings: &Gateway, capacity: &Capacity) -> ConnectionLimits {
    let pace = admission::pace(settings);
    ConnectionLimits {
        connections: capacity.connections(settings.connections),
        patience: pace.patience,
        // The system tells of what a client takes in steps of some hundred kilobytes.
        pace: Pace { grace: pace.grace * 2, ..pace },
    }
}

#[cfg(test)]
mod tests;
