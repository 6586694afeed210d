//! The kinds of resources that parts of the mesh keep and mirror, one module each: how a kind is named, watched and read,
//! and its form on the wire.
//!
//! A further kind is one more module here; ledgers, mirrors and faults do not change. No other module of the crate knows
//! both the wire's and the rules' types.

pub mod component;
pub mod configuration;
mod digest;
mod intern;
pub mod observation;
pub mod options;
pub mod power;
pub mod trouble;
#[cfg(feature = "simulation")]
mod wrong_power;

use futures_util::StreamExt;
use proto::watch;
use tonic::{Response, Streaming};

pub use digest::Digests;
pub use intern::Interner;

use crate::{
    Fault,
    observe::mirror::Watch,
    store::{
        ledger::named_incarnation,
        resource::{Batch, Deletion, Resource},
    },
};

/// The batches in a stream of responses, and their incarnation.
fn batches<M, R, F>(responses: Response<Streaming<M>>, mut read: F) -> Watch<R>
where
    M: Send + 'static,
    R: Resource,
    F: FnMut(M) -> Result<Batch<R>, Fault> + Send + 'static,
{
    // The mirror drops the stream at the first error, so nothing that follows one is applied.
    let incarnation = named_incarnation(responses.metadata());
    let batches =
        responses.into_inner().map(move |response| response.and_then(|response| Ok(read(response)?)));
    Watch { incarnation, batches: batches.boxed() }
}

fn deletions(deletions: Vec<watch::Deletion>) -> Vec<Deletion> {
    deletions.into_iter().map(|one| Deletion { key: one.key.into(), revision: one.revision }).collect()
}

/// Deletions as they go out.
pub fn deletions_to_wire(deletions: &[Deletion]) -> Vec<watch::Deletion> {
    deletions.iter().map(|one| watch::Deletion { key: one.key.to_string(), revision: one.revision }).collect()
}
