//! Serving gRPC: reflection, health, request ids, spans, and an orderly end. Metrics are served beside it, over
//! plain HTTP, which is what collects them.

use std::{convert::Infallible, time::Duration};

use anyhow::Context as _;
use axum::{response::IntoResponse, routing::get};
use http::{Request, Response, header::CONTENT_TYPE};
use tonic::{
    body::Body,
    server::NamedService,
    service::{Routes, RoutesBuilder},
};
use tonic_health::{ServingStatus, server::HealthReporter};
use tower::Service;
use tower_http::trace::TraceLayer;
use tracing::Span;

use crate::{Context, Listener, admission, request_id, telemetry};

mod connections;

/// Pings to clients, so that streams to vanished watchers end.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Calls about health, and of those who look around, on one connection beside all others.
const HEALTH_STREAMS: u32 = 64;

/// What every part serves besides its own services.
const HEALTH: &str = "grpc.health.v1.Health";
const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";

/// The gRPC services of one part, being put together.
pub struct Server {
    routes: RoutesBuilder,
    health: HealthReporter,
    names: Vec<&'static str>,
}

impl Default for Server {
    fn default() -> Self {
        let (health, service) = tonic_health::server::health_reporter();
        let mut routes = Routes::builder();
        routes.add_service(service);
        Self { routes, health, names: Vec::new() }
    }
}

impl Server {
    /// Adds a generated service. It counts as not serving until [`Ready::now`].
    pub fn add<S>(&mut self, service: S)
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + NamedService,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        self.names.push(S::NAME);
        self.routes.add_service(service);
    }
}

/// Lets a part say that it can do its work. Until then health checks answer that it is not serving.
#[derive(Clone)]
pub struct Ready {
    health: HealthReporter,
    names: Vec<&'static str>,
}

impl Ready {
    /// Says that the part can do its work.
    pub async fn now(&self) {
        self.set(ServingStatus::Serving).await;
    }

    async fn set(&self, status: ServingStatus) {
        for name in &self.names {
            self.health.set_service_status(name, status).await;
        }
        // The empty name stands for the part as a whole.
        self.health.set_service_status("", status).await;
    }

    /// Says that the part can do its work no more, and ends the watches of its health with that.
    async fn never_again(mut self) {
        self.set(ServingStatus::NotServing).await;
        for name in self.names.iter().chain([&""]) {
            self.health.clear_service_status(name).await;
        }
    }
}

/// Serves until shutdown. Then health turns to not serving, streams end, and calls under way finish.
///
/// # Errors
/// When a limit leaves nobody a place, or the reflection service cannot be built, which a test of the descriptors rules
/// out.
pub async fn serve(
    context: &Context,
    name: &'static str,
    listener: impl Into<Listener>,
    server: Server,
) -> anyhow::Result<Ready> {
    let listener = listener.into();
    let Server { mut routes, health, names } = server;
    // The descriptors are those of the whole mesh, so what this part serves has to be named.
    let mut reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .with_service_name(HEALTH)
        .with_service_name(REFLECTION);
    for name in &names {
        reflection = reflection.with_service_name(*name);
    }
    routes.add_service(reflection.build_v1().context("reflection")?);
    telemetry::record_metrics();
    let ready = Ready { health, names };
    ready.set(ServingStatus::NotServing).await;

    let address = listener.address().context("local address")?;
    let shutdown = context.tasks.shutdown();
    // Calls are handled by tasks that nobody of ours spawns.
    let part_of = Span::current();
    let (part, goodbye) = (context.clone(), ready.clone());
    let limits = &context.settings.limits;
    limits.check()?;
    let admit = axum::middleware::from_fn_with_state(admission::places(limits), admission::admit);
    let routes = routes.routes().into_axum_router().layer(admit).route("/metrics", get(metrics));
    let router = tonic::transport::Server::builder()
        .accept_http1(true)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        // Whether there is a place is told by class, where waiting for a stream would tell nothing. A few more are for
        // questions about health.
        .max_concurrent_streams(limits.calls().saturating_add(HEALTH_STREAMS))
        .layer(
            TraceLayer::new_for_grpc()
                .make_span_with(move |request: &Request<Body>| part_of.in_scope(|| span(request)))
                .on_request(())
                .on_response(answered)
                .on_failure(()),
        )
        .add_routes(Routes::from(routes));
    let connections = connections::accepted(listener, limits);
    context.tasks.spawn(name, async move {
        let until = async move {
            shutdown.cancelled().await;
            goodbye.never_again().await;
        };
        let serving = router.serve_with_incoming_shutdown(connections, until);
        Ok(part.finish_calls(serving).await?)
    });
    tracing::info!(part = name, %address, "listening");
    Ok(ready)
}

async fn metrics() -> impl IntoResponse {
    ([(CONTENT_TYPE, telemetry::METRICS_TYPE)], telemetry::metrics())
}

fn span(request: &Request<Body>) -> Span {
    let id =
        request.headers().get(request_id::HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    tracing::debug_span!("call", method = request.uri().path(), request_id = id)
}

/// Without a line for each call nobody could follow a request into a service that had nothing else to say.
fn answered(_: &Response<Body>, took: Duration, _: &Span) {
    tracing::debug!(milliseconds = took.as_secs_f64() * 1e3, "answered");
}
