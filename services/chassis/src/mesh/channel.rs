//! Connections to other parts of the mesh.

use std::{future::Future, path::Path, time::Duration};

use anyhow::{Context, ensure};
use tonic::{
    Request, Status,
    codegen::http::Uri,
    metadata::{AsciiMetadataKey, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{self, Endpoint},
};

use self::addresses::{AddressConnector, is_encrypted};
use crate::{
    mesh::{buffers, call_class, client_name, request_id, tls::ClientTls},
    process::{failpoint::FailpointClient, traces},
    settings::TlsSettings,
};

mod addresses;

/// A connection that forwards request ids. It connects at its first use, and reconnects when it broke.
pub type Channel = FailpointClient<InterceptedService<transport::Channel, HeaderInterceptor>>;

/// Puts the current request id, the context of the trace, the name of the client and the class on every outgoing call.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeaderInterceptor;

impl Interceptor for HeaderInterceptor {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = request_id::current().and_then(|id| MetadataValue::try_from(id).ok()) {
            request.metadata_mut().insert(request_id::HEADER, value);
        }
        for (name, value) in traces::outgoing() {
            if let (Ok(name), Ok(value)) = (name.parse::<AsciiMetadataKey>(), MetadataValue::try_from(value))
            {
                request.metadata_mut().insert(name, value);
            }
        }
        client_name::mark(request.metadata_mut());
        call_class::mark(request.metadata_mut());
        Ok(request)
    }
}

/// Deadline of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Without pings a client waits for ever on a connection whose other end vanished. Two seconds is well below human
/// notice, and one ping in two seconds costs nothing.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// Windows wide enough that a stream of pages is not paced by round trips.
const STREAM_WINDOW: usize = 1 << 20;

/// Effectively no window of the connection as a whole: one unread call would block the answers of all others. Memory is
/// bounded by the window of each stream, and by the number of streams.
const CONNECTION_WINDOW: u32 = i32::MAX.cast_unsigned();

/// Largest message that is taken or given: a batch of the largest size BOS allows, with kilobytes each.
pub const LARGEST_MESSAGE: usize = 256 << 20;

/// A lazy connection to the part at `url`, with the certificates of `tls` if that is `https`. Where several addresses are
/// given, with commas between them, any one that answers is used until its connection breaks, and then the next.
///
/// # Errors
/// When `url` is not an address, or one of several is not, or the certificates for it cannot be used.
pub fn channel(tls: &TlsSettings, url: &str) -> anyhow::Result<Channel> {
    let urls: Vec<&str> = url.split(',').map(str::trim).collect();
    let endpoints = urls.iter().map(|url| endpoint(url)).collect::<anyhow::Result<Vec<_>>>()?;
    let first = endpoints.first().cloned().context("there is no address")?;
    let encrypted = endpoints.iter().any(|endpoint| is_encrypted(endpoint.uri()));
    let channel = if endpoints.len() == 1 && !encrypted {
        connect(first)
    } else {
        let tls = encrypted.then(|| client_tls(tls)).transpose()?;
        let all: Vec<_> = endpoints.iter().map(|endpoint| endpoint.uri().clone()).collect();
        let patience = CONNECT_TIMEOUT.saturating_mul(u32::try_from(all.len()).unwrap_or(u32::MAX));
        first.connect_timeout(patience).connect_with_connector_lazy(AddressConnector::new(
            all,
            CONNECT_TIMEOUT,
            tls,
        ))
    };
    Ok(FailpointClient(InterceptedService::new(channel, HeaderInterceptor)))
}

/// A lazy connection to a server outside of the mesh at `url`, which answers each call within `deadline`. `ca_file`: the
/// authorities of its certificate if that is `https`, or empty.
///
/// # Errors
/// When `url` is no address of a server, or has credentials, or the file is missing, not needed, or cannot be used.
pub(crate) fn outside_channel(
    url: &str,
    ca_file: &Path,
    deadline: Duration,
) -> anyhow::Result<transport::Channel> {
    let address = url.parse::<Uri>().ok();
    let address = address.filter(|address| matches!(address.scheme_str(), Some("http" | "https")));
    let address = address.with_context(|| format!("url: '{url}' is no address with http:// or https://"))?;
    ensure!(!address.authority().is_some_and(|host| host.as_str().contains('@')), "url: has credentials");
    let is_encrypted = is_encrypted(&address);
    ensure!(is_encrypted != ca_file.as_os_str().is_empty(), "ca_file: belongs to an address with https");
    let tls = is_encrypted.then(|| ClientTls::trusting(ca_file)).transpose().context("ca_file")?;
    let connector = AddressConnector::new(vec![address.clone()], CONNECT_TIMEOUT, tls);
    let endpoint = Endpoint::from(address).connect_timeout(CONNECT_TIMEOUT).timeout(deadline);
    Ok(endpoint.connect_with_connector_lazy(connector))
}

/// A lazy connection to the part at `url` without TLS.
///
/// # Errors
/// When `url` is not an address without TLS, or one of several is not.
pub fn plain_channel(url: &str) -> anyhow::Result<Channel> {
    channel(&TlsSettings::default(), url)
}

fn client_tls(tls: &TlsSettings) -> anyhow::Result<ClientTls> {
    let is_set = tls.is_set().map_err(anyhow::Error::msg)?;
    anyhow::ensure!(is_set, "is https, for which tls.ca_file, tls.certificate and tls.key have to be set");
    ClientTls::new(tls)
}

fn connect(endpoint: Endpoint) -> transport::Channel {
    #[cfg(feature = "simulation")]
    if let Some(way) = crate::simulation::way(endpoint.uri()) {
        return crate::simulation::unhurried(endpoint).connect_with_connector_lazy(way);
    }
    endpoint.connect_lazy()
}

fn endpoint(url: &str) -> anyhow::Result<Endpoint> {
    let endpoint =
        Endpoint::from_shared(url.to_owned()).with_context(|| format!("'{url}' is not an address"))?;
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(stream_window())
        .initial_connection_window_size(CONNECTION_WINDOW))
}

fn stream_window() -> u32 {
    u32::try_from(buffers::size(STREAM_WINDOW)).unwrap_or(u32::MAX)
}

/// Waits for the answer to `call` no longer than `deadline`. After a deadline the outcome is in doubt: the peer may
/// have done its work.
///
/// # Errors
/// The peer's error, or `DEADLINE_EXCEEDED` without an answer.
pub async fn within<T>(
    deadline: Duration,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let silent = |_| Err(Status::deadline_exceeded(format!("no answer within {} s", deadline.as_secs())));
    tokio::time::timeout(deadline, call).await.unwrap_or_else(silent)
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::Fault;

    #[tokio::test]
    async fn a_silent_peer_counts_as_unavailable() {
        let status = within(Duration::ZERO, std::future::pending::<Result<(), _>>()).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::DeadlineExceeded, "no answer within 0 s"));
        assert_eq!(Fault::from(status), Fault::unavailable("service", "no answer within 0 s"));
    }
}
