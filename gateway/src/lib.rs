//! The HTTP/JSON faces of the mesh.
//!
//! The gateway owns the shape of JSON, query parameters, problem documents and nothing else. It keeps no state but a
//! copy of the objects that it shows to clients of Kubernetes, and knows no rule about components, sessions, templates
//! or hosts: the services judge values, and the gateway only judges whether a request fits a message at all.
//!
//! A face is a contract: its JSON, titles, lists and paths, translated to calls of the mesh.
//!
//! - `http`: the parts that every face needs and no contract is part of
//! - `bos`: the contract of BOS version 2; `kubernetes`: that of Kubernetes, for bare-metal hosts; `flightctl`: that of
//!   Flight Control, for edge devices
//! - `reveille`: events, probes, metrics, the description
//! - `dashboard`: the page for people, made of files alone
//! - `identity`: who the caller is, and what the policy lets it do
//! - `mesh`: clients of the services behind
//! - `port`: the faces that share a port
//!
//! Faces know `http` and `mesh`, never one another; `http` knows no face.

use std::{convert::Infallible, net::SocketAddr};

use anyhow::Context as _;
use axum::{Router, extract::Request, response::Response};
use chassis::{
    Start,
    kinds::agent::AgentCertificates,
    mesh::bodies::Pace,
    observe::mirror::Mirror,
    process::capacity::ProcessCapacity,
    settings::{FaceSettings, GatewaySettings},
};
use tokio::net::TcpListener;
use tower::Service;

use crate::{
    flightctl::FlightctlFace,
    http::{
        admission::{self, AdmissionPlaces},
        certificate::{self, CertifiedPort, FaceListener},
        serve::{self, ConnectionLimits, ServedListener},
    },
    identity::IdentityGate,
    kubernetes::KubernetesFace,
    mesh::MeshHandle,
    port::{CallerChecks, FaceRouters},
};

mod bos;
mod dashboard;
mod flightctl;
mod http;
mod identity;
mod kubernetes;
mod mesh;
mod port;
mod reveille;

/// Contracts that the faces serve, each with its version.
pub const CONTRACTS: [(&str, &str); 3] = [
    ("Boot Orchestration Service", bos::routes::RELEASE),
    ("Metal3 hosts", kubernetes::HOST_VERSION),
    ("Flight Control", flightctl::VERSION),
];

/// Serves the common port on `listener` until shutdown. Then requests under way are finished and no more accepted.
///
/// # Errors
/// When the address of a service in the settings cannot be read, or a bound of the gateway is zero.
pub fn start(context: chassis::Context, listener: TcpListener) -> Start {
    Box::pin(serve_at(context, listener))
}

async fn serve_at(context: chassis::Context, listener: TcpListener) -> anyhow::Result<()> {
    let settings = &context.settings.gateway;
    for (key, most) in [
        ("connections", settings.connections),
        ("patience_seconds", settings.patience_seconds),
        ("least_rate", settings.least_rate),
        ("stall_seconds", settings.stall_seconds),
        ("reports", settings.reports),
        ("operators", settings.operators),
        ("lists", settings.lists),
        ("live_streams", settings.live_streams),
        ("body_bytes", settings.body_bytes),
        ("list_bytes", settings.list_bytes),
    ] {
        anyhow::ensure!(most > 0, "gateway.{key}: has to be above zero");
    }
    let address = listener.local_addr().context("local address")?;
    let mesh = MeshHandle::new(&context.settings, context.tasks.shutdown())?;
    let places = AdmissionPlaces::new(settings, &context.capacity);
    let gate = IdentityGate::start(&settings.identity, &context.tasks)?;
    let checks = CallerChecks { gate, audit: context.audit_log("gateway")? };
    let kubernetes = kubernetes(&context, mesh.clone(), &places, &checks).await?;
    let flightctl = flightctl(&context, mesh.clone(), &places, &checks).await?;
    let faces = FaceRouters { kubernetes, flightctl };
    agents(&context, mesh.clone(), &places).await?;
    warn_of_strangers(address, &checks);
    let app = port::app(&context.settings, mesh, &places, faces, checks);
    // Only for the logging level: every request asks the owner of the records that it is about.
    let registry = context.channel(&context.settings.component_registry.url)?;
    let _options = Mirror::of_options(&context, registry, || {});
    let tls = certificate::common(settings, address, context.settings.tls.insecure)?;
    let limits = limits(settings, &context.capacity);
    serve(&context, ServedListener { listener, tls }, app, port::is_vital, limits);
    tracing::info!(part = "gateway", %address, "listening");
    Ok(())
}

/// Returns the paths of the face of Kubernetes, and serves them on their own port too, if there is one.
async fn kubernetes(
    context: &chassis::Context,
    mesh: MeshHandle,
    places: &AdmissionPlaces,
    checks: &CallerChecks,
) -> anyhow::Result<Router> {
    let settings = &context.settings.gateway;
    if !settings.kubernetes.serve {
        return Ok(Router::new());
    }
    let face = KubernetesFace::start(context, mesh)?;
    let router = kubernetes::router(face, places);
    let port = FacePort { face: "kubernetes", own: &settings.kubernetes, mount: kubernetes::PREFIX, checks };
    listen(context, port, router.clone()).await?;
    Ok(router)
}

/// Returns the paths of the face of Flight Control, and serves them on their own port too, if there is one.
async fn flightctl(
    context: &chassis::Context,
    mesh: MeshHandle,
    places: &AdmissionPlaces,
    checks: &CallerChecks,
) -> anyhow::Result<Router> {
    let settings = &context.settings.gateway;
    if !settings.flightctl.serve {
        return Ok(Router::new());
    }
    let router = flightctl::router(FlightctlFace::new(mesh), places);
    let port = FacePort { face: "flightctl", own: &settings.flightctl, mount: flightctl::PREFIX, checks };
    listen(context, port, router.clone()).await?;
    Ok(router)
}

/// Warns where other machines reach a port of which nobody is asked for credentials.
fn warn_of_strangers(address: SocketAddr, checks: &CallerChecks) {
    if checks.gate.is_none() && !address.ip().is_loopback() {
        tracing::warn!(
            %address,
            "callers are asked for no credentials, and everybody who reaches this port may do everything; set gateway.identity"
        );
    }
}

/// Port of its own of a face.
struct FacePort<'a> {
    face: &'static str,
    own: &'a FaceSettings,
    /// Prefix of the paths of the face on the common port.
    mount: &'static str,
    checks: &'a CallerChecks,
}

/// Serves a face on its own port, if it has one.
async fn listen(context: &chassis::Context, port: FacePort<'_>, router: Router) -> anyhow::Result<()> {
    let FacePort { face, own, mount, checks } = port;
    if own.listen.is_empty() {
        return Ok(());
    }
    let listen = address(face, &own.listen)?;
    let directory = &context.settings.data_dir;
    let tls = certificate::of_face(FaceListener { face, settings: own, directory, listen })?;
    let listener = chassis::bind(&format!("gateway.{face}"), listen).await?;
    let address = listener.local_addr().context("local address")?;
    let limits = limits(&context.settings.gateway, &context.capacity);
    warn_of_strangers(address, checks);
    let app = port::face_app(router, mount, checks.clone());
    serve(context, ServedListener { listener, tls }, app, port::is_vital, limits);
    tracing::info!(part = "gateway", %address, face, "listening for the clients of a face");
    Ok(())
}

/// Serves the port of agents, if there is one, and returns its address.
async fn agents(
    context: &chassis::Context,
    mesh: MeshHandle,
    places: &AdmissionPlaces,
) -> anyhow::Result<Option<SocketAddr>> {
    let own = &context.settings.gateway.agents;
    if own.listen.is_empty() {
        return Ok(None);
    }
    let listen = address("agents", &own.listen)?;
    let (certificate, key, directory) = (&*own.certificate, &*own.key, &*context.settings.data_dir);
    let files = CertifiedPort { name: "agents", certificate, key, directory, listen }.files()?;
    let fleets = context.channel(&context.settings.fleet_manager.url).context("fleet_manager.url")?;
    let certificates = AgentCertificates::start(context, fleets);
    let tls = Some(certificates.listener(&files).context("gateway.agents")?);
    let listener = chassis::bind("gateway.agents", listen).await?;
    let address = listener.local_addr().context("local address")?;
    let router = flightctl::agent_router(FlightctlFace::new(mesh), certificates, places);
    let limits = limits(&context.settings.gateway, &context.capacity);
    serve(
        context,
        ServedListener { listener, tls },
        port::agent_app(router),
        flightctl::is_vital_for_agents,
        limits,
    );
    tracing::info!(part = "gateway", %address, "listening for the agents of devices");
    Ok(Some(address))
}

fn address(port: &str, listen: &str) -> anyhow::Result<SocketAddr> {
    listen.parse().with_context(|| format!("gateway.{port}.listen: is no address with a port"))
}

fn serve<A>(
    context: &chassis::Context,
    listener: ServedListener,
    app: A,
    is_vital: fn(&::http::Method, &str) -> bool,
    limits: ConnectionLimits,
) where
    A: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Unpin
        + 'static,
{
    let shutdown = context.tasks.shutdown();
    let part = context.clone();
    context.tasks.spawn("gateway", async move {
        let serving = serve::serve(listener, app, is_vital, limits, shutdown);
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
