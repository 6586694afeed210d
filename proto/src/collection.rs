//! The common form of lists and watches, whatever their kind. The build script implements it for each kind by its
//! `Watch…` call: one whose answers have a `revision` and `synced`.

use bytes::Bytes;
use prost::Message;
use tonic::{
    Request, Response, Status, Streaming,
    body::Body,
    client::{Grpc, GrpcService},
    codegen::{Body as HttpBody, StdError, http::uri::PathAndQuery},
};
use tonic_prost::ProstCodec;

use crate::watch::Deletion;

/// Message of a kind that can be watched.
pub trait WatchedMessage: Message + Clone + Default + 'static {
    /// Path of the call.
    const PATH: &'static str;

    /// Request of the call.
    type Request: WatchRequest;

    /// Answer of the call, of which there are many.
    type Response: Message + Default + From<WatchBatch<Self>> + Into<WatchBatch<Self>> + 'static;
}

/// Request to watch a kind.
pub trait WatchRequest: Message + Default + 'static {
    /// Requests the changes after that revision.
    fn resuming(resume_revision: u64) -> Self;

    /// Returns the revision after which changes are requested.
    fn resume_revision(&self) -> u64;
}

/// Changes of one kind in an answer of a watch.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchBatch<M> {
    /// Newest state of the resources that changed.
    pub changed: Vec<M>,
    /// Resources that were deleted.
    pub deletions: Vec<Deletion>,
    /// Revision up to which everything has been delivered.
    pub revision: u64,
    /// Marks the end of the initial state.
    pub synced: bool,
}

/// Watches the kind `M` at the service behind `channel`; a batch has at most `largest` bytes.
///
/// # Errors
/// The refusal of the service, or the error of the connection.
pub async fn watch_kind<M, C>(
    channel: C,
    request: Request<M::Request>,
    largest: usize,
) -> Result<Response<Streaming<M::Response>>, Status>
where
    M: WatchedMessage,
    C: GrpcService<Body>,
    C::Error: Into<StdError>,
    C::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <C::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
{
    let mut client = Grpc::new(channel).max_decoding_message_size(largest);
    client
        .ready()
        .await
        .map_err(|error| Status::unknown(format!("service was not ready: {}", error.into())))?;
    let codec = ProstCodec::<M::Request, M::Response>::default();
    client.server_streaming(request, PathAndQuery::from_static(M::PATH), codec).await
}
