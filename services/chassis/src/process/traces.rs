//! Traces of requests, for a collector of OpenTelemetry.
//!
//! A request has one trace: from its client or the gateway, through every part, to the calls of peers that it causes. Its
//! context travels in the headers of the W3C (`traceparent`, `tracestate`), and in the record of what outlives a request, as
//! a session does. Work that no request caused has no trace. Spans have a target of their own, so the log does not show
//! them. Without a collector there are none.

use std::{borrow::Cow, collections::HashMap, fmt, sync::OnceLock, time::Duration};

use anyhow::Context as _;
use http::{HeaderMap, StatusCode};
use opentelemetry::{
    Context, KeyValue,
    propagation::TextMapPropagator,
    trace::{TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_otlp::{SpanExporter, WithTonicConfig as _};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracerProvider},
};
use tonic::transport::Channel;
use tracing::{Span, Subscriber, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};
use uuid::Uuid;

use self::exporter::LoggedExporter;

mod exporter;

/// Target of the spans that are sent, and of no others. They have the highest level, so that no line of the log is asked for
/// because of them.
const TARGET: &str = "request_traces";

/// Header with the ids of the trace and of the span that caused a call.
const TRACE_PARENT: &str = "traceparent";

/// Headers that carry the context of a trace.
const HEADERS: [&str; 2] = [TRACE_PARENT, "tracestate"];

/// Longest `tracestate` that is carried on: parts and peers take heads of a limited size.
const LONGEST_STATE: usize = 512;

/// Longest name of a span and text of an attribute: clients choose their paths.
const LONGEST_TEXT: usize = 256;

/// Source of the spans of this process; unset: none are sent.
static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Collector of the spans of a process.
pub(crate) struct SpanCollector {
    /// Connection to it.
    pub(crate) channel: Channel,
    /// Its address, for the log.
    pub(crate) url: String,
    /// Name of the process for it.
    pub(crate) service: String,
    /// Share of the traces that are sent, of those that begin here.
    pub(crate) share: f64,
}

/// Begins to send spans. Returns the layer that collects them. It needs the runtime.
///
/// # Errors
/// When the exporter cannot be made. The collector is not called.
pub(crate) fn layer<S>(collector: SpanCollector) -> anyhow::Result<impl Layer<S> + use<S>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let SpanCollector { channel, url, service, share } = collector;
    let exporter =
        SpanExporter::builder().with_tonic().with_channel(channel).build().context("traces.url")?;
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let instance = KeyValue::new("service.instance.id", Uuid::new_v4().to_string());
    let resource =
        Resource::builder_empty().with_service_name(service).with_attributes([version, instance]).build();
    let provider = SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(share))))
        .with_resource(resource)
        .with_batch_exporter(LoggedExporter::new(exporter, url))
        .build();
    let provider = PROVIDER.get_or_init(|| provider);
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("reveille"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false);
    Ok(layer.with_filter(Targets::new().with_target(TARGET, LevelFilter::ERROR)))
}

/// Sends the spans that are left, for a few seconds at most. To be called as the process ends, and outside of its tasks.
pub(crate) fn finish() {
    if let Some(provider) = PROVIDER.get()
        && let Err(error) = provider.shutdown_with_timeout(Duration::from_secs(2))
    {
        tracing::warn!(%error, "the last spans were not sent");
    }
}

/// Returns the span of a request with these `headers`, in the trace of the client; without one, it `begins` a trace or has no
/// span. `name`: its method and its path as it is routed.
pub fn request_span(name: fmt::Arguments<'_>, headers: &HeaderMap, begins: bool) -> Span {
    if PROVIDER.get().is_none() || !begins && !headers.contains_key(TRACE_PARENT) {
        return Span::none();
    }
    let name = bounded(name.to_string());
    let span = tracing::error_span!(target: TARGET, "request", otel.name = name, otel.kind = "server");
    adopt(&span, received(headers));
    span
}

/// Returns the span of the call `name` of a peer; none where the caller works for no trace.
pub fn peer_span(name: fmt::Arguments<'_>) -> Span {
    if !is_traced() {
        return Span::none();
    }
    let name = name.to_string();
    tracing::error_span!(target: TARGET, "peer", otel.name = name, otel.kind = "client")
}

/// Returns the span of work that continues the trace of a record, by its [context](context); none where there is no trace.
pub fn work_span(name: &'static str, context: &str) -> Span {
    if PROVIDER.get().is_none() || context.is_empty() {
        return Span::none();
    }
    let span = tracing::error_span!(target: TARGET, "work", otel.name = name);
    adopt(&span, HashMap::from([(TRACE_PARENT.to_owned(), context.to_owned())]));
    span
}

/// Returns the context of the present trace, for the record of work that outlives the caller; empty: there is no trace.
pub fn context() -> String {
    outgoing().remove(TRACE_PARENT).unwrap_or_default()
}

/// Returns the headers that carry the present trace on; none where there is no trace.
pub fn outgoing() -> HashMap<String, String> {
    let mut headers = HashMap::new();
    if is_traced() {
        TraceContextPropagator::new().inject_context(&Context::current(), &mut headers);
        headers.retain(|_, value| !value.is_empty());
    }
    headers
}

/// Notes the status of the answer to a request, and that the span has failed if the service is to blame.
pub fn answered(span: &Span, status: StatusCode) {
    if span.is_none() {
        return;
    }
    note(span, "http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        fail(span, status.canonical_reason().unwrap_or_default());
    }
}

/// Notes a number on a span.
pub fn note(span: &Span, key: &'static str, value: i64) {
    span.set_attribute(key, value);
}

/// Notes a text on a span, as far as it is not too long.
pub fn note_text<'a>(span: &Span, key: &'static str, text: impl Into<Cow<'a, str>>) {
    if !span.is_none() {
        span.set_attribute(key, bounded(text.into().into_owned()));
    }
}

/// Marks a span as failed.
pub fn fail(span: &Span, error: &str) {
    span.set_status(opentelemetry::trace::Status::error(error.to_owned()));
}

/// Returns the id of the trace of `span`; `None`: it has none.
pub fn trace_id(span: &Span) -> Option<String> {
    let context = span.context();
    let id = context.span().span_context().trace_id();
    (id != opentelemetry::TraceId::INVALID).then(|| id.to_string())
}

fn bounded(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST_TEXT));
    text
}

fn is_traced() -> bool {
    PROVIDER.get().is_some() && Context::current().span().span_context().is_valid()
}

fn received(headers: &HeaderMap) -> HashMap<String, String> {
    let value = |name: &&str| Some(((*name).to_owned(), headers.get(*name)?.to_str().ok()?.to_owned()));
    let carried = HEADERS.iter().filter_map(value);
    carried.filter(|(name, value)| name == TRACE_PARENT || value.len() <= LONGEST_STATE).collect()
}

/// Makes a span part of the trace that `carried` names, if it names one.
fn adopt(span: &Span, carried: HashMap<String, String>) {
    let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &carried);
    // A span without a parent begins a trace. One that is not collected has none.
    let _ = span.set_parent(parent);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_collector_nothing_is_traced() {
        let mut headers = HeaderMap::new();
        headers
            .insert(TRACE_PARENT, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap());
        assert!(request_span(format_args!("GET"), &headers, true).is_none());
        assert!(outgoing().is_empty() && context().is_empty());
    }
}
