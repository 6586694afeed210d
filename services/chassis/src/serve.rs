//! Serving gRPC: reflection, health, request ids, spans, and an orderly end. Metrics are served beside it, over
//! plain HTTP, which is what collects them.

use std::{convert::Infallible, time::Duration};

use anyhow::Context as _;
use axum::{response::IntoResponse, routing::get};
use http::{Request, Response, header::CONTENT_TYPE};
use tokio::net::TcpListener;
use tokio_stream::{StreamExt, wrappers::TcpListenerStream};
use tonic::{
    body::Body,
    server::NamedService,
    service::{Routes, RoutesBuilder},
};
use tonic_health::{ServingStatus, server::HealthReporter};
use tower::Service;
use tower_http::trace::TraceLayer;
use tracing::Span;

use crate::{Context, request_id, telemetry};

/// Pings to clients, so that streams to vanished watchers end.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

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
/// When the reflection service cannot be built, which a test of the descriptors rules out.
pub async fn serve(
    context: &Context,
    name: &'static str,
    listener: TcpListener,
    server: Server,
) -> anyhow::Result<Ready> {
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

    let address = listener.local_addr().context("local address")?;
    let shutdown = context.tasks.shutdown();
    let (part, goodbye) = (context.clone(), ready.clone());
    let router = tonic::transport::Server::builder()
        .accept_http1(true)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .layer(
            TraceLayer::new_for_grpc()
                .make_span_with(span)
                .on_request(())
                .on_response(answered)
                .on_failure(()),
        )
        .add_routes(Routes::from(routes.routes().into_axum_router().route("/metrics", get(metrics))));
    context.tasks.spawn(name, async move {
        let until = async move {
            shutdown.cancelled().await;
            goodbye.never_again().await;
        };
        let serving = router.serve_with_incoming_shutdown(accepted(listener), until);
        Ok(part.finish_calls(serving).await?)
    });
    tracing::info!(part = name, %address, "listening");
    Ok(ready)
}

async fn metrics() -> impl IntoResponse {
    ([(CONTENT_TYPE, telemetry::METRICS_TYPE)], telemetry::metrics())
}

/// Accepted connections without Nagle's delay, which would add 40 ms to small answers.
fn accepted(
    listener: TcpListener,
) -> impl tokio_stream::Stream<Item = std::io::Result<tokio::net::TcpStream>> {
    TcpListenerStream::new(listener).map(|connection| {
        let connection = connection?;
        connection.set_nodelay(true)?;
        Ok(connection)
    })
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
