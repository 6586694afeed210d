//! The registry's gRPC services: parse, call, map.

mod components;
mod inventory;
mod list;
mod options;
mod reports;

use std::pin::Pin;

use futures_util::Stream;
use tonic::Status;

/// Messages of a streaming answer.
type Responses<M> = Pin<Box<dyn Stream<Item = Result<M, Status>> + Send>>;
