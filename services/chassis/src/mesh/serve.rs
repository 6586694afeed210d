//! Serving gRPC: reflection, health, request ids, spans, and an orderly end. Metrics, and why a part is not ready, are
//! served beside it, over plain HTTP.

use std::{convert::Infallible, io, pin::pin, time::Duration};

use anyhow::Context as _;
use axum::{extract::State, response::IntoResponse, routing::get};
use domain::core::call_rules::CallTable;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode, header::CONTENT_TYPE};
use hyper::{body::Incoming, rt::Executor, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};
use tokio_stream::{Stream, StreamExt as _};
use tokio_util::sync::CancellationToken;
use tonic::{
    body::Body,
    server::NamedService,
    service::{Routes, RoutesBuilder},
};
use tonic_health::{ServingStatus, server::HealthReporter};
use tower::{Service, ServiceExt as _};
use tower_http::trace::TraceLayer;
use tracing::Span;

use self::{
    call_guard::{HEALTH, REFLECTION},
    connections::ServedConnection,
    requests::CallCounter,
};
use crate::{
    Context, Listener,
    mesh::{
        admission,
        health::PartHealth,
        peers, request_id,
        streams::StreamBudget,
        tls::{CallerVerdict, ServerTls},
    },
    process::telemetry,
    settings::LimitSettings,
};

mod call_guard;
mod callers;
mod connections;
mod requests;

/// Pings to clients, so that streams to vanished watchers end.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Deadline of a client for answering a ping.
const PONG: Duration = Duration::from_secs(20);

/// Time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Health checks and reflection on one connection, beside the limits of all others.
const HEALTH_STREAMS: u32 = 64;

/// The name in health checks that stands for the part as a whole.
const WHOLE: &str = "";

/// Name in health checks that reports whether a part has started; see [`crate::mesh::health`].
pub const STARTED: &str = "started";

/// The gRPC services of one part, being put together.
pub struct Server {
    routes: RoutesBuilder,
    health: HealthReporter,
    names: Vec<&'static str>,
    rules: CallTable,
}

impl Default for Server {
    /// Creates a server without rules: with TLS it answers questions about health and reflection alone.
    fn default() -> Self {
        let (health, service) = tonic_health::server::health_reporter();
        let mut routes = Routes::builder();
        routes.add_service(service);
        Self { routes, health, names: Vec::new(), rules: CallTable::default() }
    }
}

impl Server {
    /// Creates a server that, with TLS, takes calls by these rules.
    pub fn with_rules(rules: CallTable) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Adds a generated service, which counts as not serving until [`Ready::now`].
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

/// Marks a part as started. Until then health checks answer that it is not serving.
#[derive(Clone)]
pub struct Ready(PartHealth);

impl Ready {
    /// Marks the part as started, and ready as far as that is its own decision.
    pub fn now(&self) {
        self.0.started();
    }
}

/// Reports health over gRPC.
struct HealthPublisher {
    reporter: HealthReporter,
    names: Vec<&'static str>,
    health: PartHealth,
}

impl HealthPublisher {
    /// Reports changes until shutdown; then the end of service, which ends the watches of its health.
    async fn run(mut self, shutdown: CancellationToken) {
        let mut changes = self.health.changes();
        while !shutdown.is_cancelled() {
            self.tell(self.health.ready().is_ok(), self.health.has_started()).await;
            tokio::select! {
                () = changes.next() => {}
                () = shutdown.cancelled() => {}
            }
        }
        self.health.stopping();
        self.tell(self.health.ready().is_ok(), self.health.has_started()).await;
        for name in self.names.iter().chain(&[WHOLE, STARTED]) {
            self.reporter.clear_service_status(name).await;
        }
    }

    async fn tell(&self, ready: bool, started: bool) {
        for name in self.names.iter().chain(&[WHOLE]) {
            self.reporter.set_service_status(name, status(ready)).await;
        }
        self.reporter.set_service_status(STARTED, status(started)).await;
    }
}

fn status(serving: bool) -> ServingStatus {
    if serving { ServingStatus::Serving } else { ServingStatus::NotServing }
}

/// Serves until shutdown. Then health turns to not serving, streams end, and calls under way finish.
///
/// # Errors
/// When a limit leaves a class without a place, or the reflection service cannot be built, which a test of the
/// descriptors rules out.
pub async fn serve(
    context: &Context,
    name: &'static str,
    listener: impl Into<Listener>,
    server: Server,
) -> anyhow::Result<Ready> {
    serve_at(context, name, listener.into(), server).await
}

/// Boxes the start of the server, so that the server is compiled with this crate and not once more with every part.
fn serve_at<'a>(
    context: &'a Context,
    name: &'static str,
    listener: Listener,
    server: Server,
) -> BoxFuture<'a, anyhow::Result<Ready>> {
    Box::pin(serve_routes(context, name, listener, server))
}

async fn serve_routes(
    context: &Context,
    name: &'static str,
    listener: Listener,
    mut server: Server,
) -> anyhow::Result<Ready> {
    server.add(peers::service());
    let Server { mut routes, health, names, rules } = server;
    let settings = &context.settings.tls;
    let tls = ServerTls::for_parts(settings, rules)?;
    let address = listener.address().context("local address")?;
    let certificate = "tls.certificate, tls.key and tls.ca_file";
    ServerTls::check_exposure(address, tls.as_ref(), certificate, settings.insecure)?;
    // The descriptors are those of the whole mesh, so the services of this part have to be named.
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
    let counter = CallCounter::new(&names);
    let publisher = HealthPublisher { reporter: health, names, health: context.health.clone() };
    publisher.tell(false, false).await;

    let shutdown = context.tasks.shutdown();
    // The HTTP library spawns the tasks that handle calls.
    let part_of = Span::current();
    let part = context.clone();
    let limits = &context.settings.limits;
    limits.check()?;
    let admit =
        axum::middleware::from_fn_with_state(admission::CallAdmission::new(context), admission::admit);
    let mut routes = routes.routes().into_axum_router().layer(admit);
    if tls.is_some() {
        let guard = call_guard::CallGuard::new(rules, context.audit_log(name)?);
        // Outside of admission: a refused call takes no place and is not read.
        routes = routes.layer(axum::middleware::from_fn_with_state(guard, call_guard::check));
    }
    let routes = routes.layer(axum::middleware::from_fn_with_state(counter, requests::count));
    let routes = routes.route("/metrics", get(metrics));
    let routes = routes.route(callers::READY, get(ready).with_state(context.health.clone()));
    let routes = routes.route(callers::STARTED, get(started).with_state(context.health.clone()));
    let routes = routes.layer(axum::middleware::from_fn(callers::check)).layer(
        TraceLayer::new_for_grpc()
            .make_span_with(move |request: &Request<axum::body::Body>| part_of.in_scope(|| span(request)))
            .on_request(())
            .on_response(answered)
            .on_failure(()),
    );
    context.streams.watch_in(&context.tasks);
    let most = context.capacity.connections(limits.connections);
    let connections = connections::accepted(listener, limits, most);
    let serving = ConnectionService { builder: builder(limits, &context.streams), routes, tls };
    context.tasks.spawn(name, async move {
        let serving = serve_connections(connections, serving, publisher.run(shutdown));
        part.finish_calls(serving).await
    });
    tracing::info!(part = name, %address, "listening");
    Ok(Ready(context.health.clone()))
}

/// The protocol as every connection speaks it. The HTTP library spawns a task for each stream, which the budget of streams
/// may end.
fn builder(limits: &LimitSettings, streams: &StreamBudget) -> Builder<StreamTasks> {
    let mut builder = Builder::new(StreamTasks(streams.clone()));
    builder.http1().timer(TokioTimer::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(PONG)
        // Admission refuses by class with a reason, while waiting for a stream would give none. A few more streams are
        // for health checks.
        .max_concurrent_streams(limits.calls().saturating_add(HEALTH_STREAMS));
    builder
}

/// Serves connections until `until`; then answers the calls already received.
async fn serve_connections(
    connections: impl Stream<Item = io::Result<ServedConnection>>,
    service: ConnectionService,
    until: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let closing = CancellationToken::new();
    let mut served = JoinSet::new();
    {
        let (mut connections, mut until) = (pin!(connections), pin!(until));
        loop {
            let connection = tokio::select! {
                () = until.as_mut() => break,
                connection = connections.next() => connection,
            };
            match connection {
                Some(Ok(connection)) => {
                    served.spawn(service.clone().serve(connection, closing.clone()));
                }
                Some(Err(_)) => {}
                None => break,
            }
            while served.try_join_next().is_some() {}
        }
    }
    closing.cancel();
    while served.join_next().await.is_some() {}
    Ok(())
}

/// Context that every connection is served with.
#[derive(Clone)]
struct ConnectionService {
    builder: Builder<StreamTasks>,
    routes: axum::Router,
    tls: Option<ServerTls>,
}

impl ConnectionService {
    /// Serves a connection, after the handshake if there is TLS.
    async fn serve(self, connection: ServedConnection, closing: CancellationToken) {
        let Some(tls) = &self.tls else { return self.serve_stream(connection, None, closing).await };
        let accepted = tokio::select! {
            accepted = tls.accept(connection, HANDSHAKE) => accepted,
            () = closing.cancelled() => None,
        };
        if let Some(accepted) = accepted {
            self.serve_stream(accepted.stream, accepted.caller, closing).await;
        }
    }

    async fn serve_stream<S>(&self, stream: S, caller: Option<CallerVerdict>, closing: CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let routes = self.routes.clone();
        let identified = service_fn(move |mut request: Request<Incoming>| {
            if let Some(caller) = &caller {
                request.extensions_mut().insert(caller.clone());
            }
            routes.clone().oneshot(request)
        });
        let serving = self.builder.serve_connection(TokioIo::new(stream), identified);
        let mut serving = pin!(serving);
        let ended = tokio::select! {
            ended = serving.as_mut() => ended,
            () = closing.cancelled() => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended badly");
        }
    }
}

/// Spawns the tasks of streams.
#[derive(Clone)]
struct StreamTasks(StreamBudget);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamTasks {
    fn execute(&self, stream: F) {
        self.0.spawn(stream);
    }
}

/// Reports whether the part can do its work, or the reason why it cannot.
async fn ready(State(health): State<PartHealth>) -> (StatusCode, String) {
    match health.ready() {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// Reports whether the part has started.
async fn started(State(health): State<PartHealth>) -> (StatusCode, &'static str) {
    match health.has_started() {
        true => (StatusCode::OK, "started\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "has not started\n"),
    }
}

async fn metrics() -> impl IntoResponse {
    ([(CONTENT_TYPE, telemetry::METRICS_TYPE)], telemetry::metrics())
}

fn span(request: &Request<axum::body::Body>) -> Span {
    let id =
        request.headers().get(request_id::HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    tracing::debug_span!("call", method = request.uri().path(), request_id = id)
}

/// Logs a line for each call, by which an operator can follow a request into a service that logged nothing else.
fn answered<B>(_: &Response<B>, took: Duration, _: &Span) {
    tracing::debug!(milliseconds = took.as_secs_f64() * 1e3, "answered");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_stops_is_ready_no_more_over_http_either() {
        let (health, shutdown) = (PartHealth::default(), CancellationToken::new());
        let (reporter, _service) = tonic_health::server::health_reporter();
        let publisher = HealthPublisher { reporter, names: Vec::new(), health: health.clone() };
        Ready(health.clone()).now();
        assert_eq!(ready(State(health.clone())).await.0, StatusCode::OK);
        shutdown.cancel();
        publisher.run(shutdown).await;
        let stopping = (StatusCode::SERVICE_UNAVAILABLE, "is stopping\n".to_owned());
        assert_eq!(ready(State(health)).await, stopping);
    }
}
