//! The HTTP/JSON faces of the mesh.
//!
//! The gateway owns the shape of JSON, query parameters, problem documents and nothing else. It keeps no state but a
//! copy of what it shows to clients of Kubernetes, and knows no rule about components, sessions, templates or hosts:
//! the services judge values, and the gateway only judges whether a request fits a message at all.
//!
//! A face is a contract: its JSON, titles, lists and paths, translated to calls of the mesh.
//!
//! - `http`: the parts that every face needs and no contract is part of
//! - `bos`: the contract of BOS version 2; `kubernetes`: that of Kubernetes, for bare-metal hosts
//! - `reveille`: events, probes, metrics, the description
//! - `mesh`: clients of the services behind
//! - `port`: the faces that share a port
//!
//! Faces know `http` and `mesh`, never one another; `http` knows no face.

use std::convert::Infallible;

use anyhow::Context as _;
use axum::{Router, extract::Request, response::Response};
use chassis::{
    mesh::bodies::Pace, observe::mirror::Mirror, process::capacity::ProcessCapacity,
    settings::GatewaySettings,
};
use tokio::net::TcpListener;
use tower::Service;

use crate::{
    http::{
        admission::{self, AdmissionPlaces},
        serve::{self, ConnectionLimits, ServedListener},
    },
    kubernetes::{KubernetesFace, certificate},
    mesh::MeshHandle,
};

mod bos;
mod http;
mod kubernetes;
mod mesh;
mod port;
mod reveille;

/// Serves the common port on `listener` until shutdown. Then requests under way are finished and no more accepted.
///
/// # Errors
/// When the address of a service in the settings cannot be read, or a bound of the gateway is zero.
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
    let mesh = MeshHandle::new(&context.settings)?;
    let places = AdmissionPlaces::new(settings, &context.capacity);
    let kubernetes = kubernetes(&context, mesh.clone(), &places).await?;
    let app = port::app(&context.settings, mesh, &places, kubernetes);
    // Only for the logging level: every request asks the owner of the records that it is about.
    let registry = chassis::channel(&context.settings.component_registry.url)?;
    let _options = Mirror::of_options(&context, registry, || {});
    let limits = limits(settings, &context.capacity);
    serve(&context, ServedListener { listener, tls: None }, app, limits);
    tracing::info!(part = "gateway", %address, "listening");
    Ok(())
}

/// Returns the paths of the face of Kubernetes, and serves them on their own port too, if there is one.
async fn kubernetes(
    context: &chassis::Context,
    mesh: MeshHandle,
    places: &AdmissionPlaces,
) -> anyhow::Result<Router> {
    let settings = &context.settings.gateway;
    if !settings.kubernetes.serve {
        return Ok(Router::new());
    }
    let face = KubernetesFace::start(context, mesh)?;
    let router = kubernetes::router(face, places);
    if settings.kubernetes.listen.is_empty() {
        return Ok(router);
    }
    let listen = settings.kubernetes.listen.parse();
    let listen = listen.context("gateway.kubernetes.listen: is no address with a port")?;
    let tls = certificate::acceptor(&context.settings, listen)?;
    let listener = chassis::bind("gateway.kubernetes", listen).await?;
    let address = listener.local_addr().context("local address")?;
    let app = port::kubernetes_app(router.clone());
    serve(context, ServedListener { listener, tls }, app, limits(settings, &context.capacity));
    tracing::info!(part = "gateway", %address, "listening for clients of Kubernetes");
    Ok(router)
}

fn serve<A>(context: &chassis::Context, listener: ServedListener, app: A, limits: ConnectionLimits)
where
    A: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Unpin
        + 'static,
{
    let shutdown = context.tasks.shutdown();
    let part = context.clone();
    context.tasks.spawn("gateway", async move {
        let serving = serve::serve(listener, app, port::is_vital, limits, shutdown);
        let served = async {
            serving.await;
            Ok(())
        };
        part.finish_calls(served).await
    });
}

/// Bounds of connections and their clients.
fn limits(settings: &GatewaySettings, capacity: &ProcessCapacity) -> ConnectionLimits {
    let pace = admission::pace(settings);
    ConnectionLimits {
        connections: capacity.connections(settings.connections),
        patience: pace.patience,
        // The system reports the bytes that a client takes in steps of some hundred kilobytes.
        pace: Pace { grace: pace.grace * 2, ..pace },
    }
}

#[cfg(test)]
mod tests;
