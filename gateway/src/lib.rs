//! The HTTP/JSON face of the mesh: the contract of BOS version 2 (BOS reference 2), translated to gRPC.
//!
//! The gateway owns the shape of JSON, query parameters, problem documents and nothing else. It keeps no
//! state and knows no rule about components, sessions or templates: the services judge values, and it only
//! judges whether a request can be said to them at all.
//!
//! - `wire`: the JSON; `convert`: between JSON and messages
//! - `extract`, `query`: what is taken from a request; `tenant`: whose resources it is about
//! - `problem`, `stream`: what is answered
//! - `mesh`: the services behind; `routes`: which path calls which of them

use std::convert::Infallible;

use anyhow::Context as _;
use axum::{ServiceExt, extract::Request, middleware, response::Response, serve::ListenerExt};
use tokio::net::TcpListener;
use tower::{Layer, Service};

mod convert;
mod extract;
mod follow;
mod mesh;
mod problem;
mod query;
mod routes;
mod stream;
mod tenant;
mod wire;

/// Serves the contract on `listener` until shutdown. Then requests under way are finished and no more taken.
///
/// # Errors
/// When the address of a service in the settings cannot be read.
pub async fn start(context: chassis::Context, listener: TcpListener) -> anyhow::Result<()> {
    let address = listener.local_addr().context("local address")?;
    let app = app(&context.settings)?;
    let listener = listener.tap_io(|connection| {
        // Without this small answers wait up to 40 ms for an acknowledgement. A connection that refuses is
        // closed already.
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "connection closed before it was served");
        }
    });
    let shutdown = context.tasks.shutdown();
    let part = context.clone();
    context.tasks.spawn("gateway", async move {
        let serving = axum::serve(listener, ServiceExt::<Request>::into_make_service(app))
            .with_graceful_shutdown(shutdown.cancelled_owned());
        Ok(part.finish_calls(serving.into_future()).await?)
    });
    tracing::info!(part = "gateway", %address, "listening");
    Ok(())
}

/// Everything that the gateway serves. Requests are followed around the routes and not within, so that
/// answers to unknown paths carry an id too.
fn app(
    settings: &chassis::Settings,
) -> anyhow::Result<
    impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static,
> {
    let routes = routes::router(mesh::Mesh::new(settings)?);
    Ok(middleware::from_fn(follow::follow).layer(routes))
}

#[cfg(test)]
mod tests;
