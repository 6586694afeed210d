//! Calls at the start of a service, before its work needs an answer.

use chassis::process::pause::until_done;
use futures_util::future::join_all;
use serde::de::IgnoredAny;

use crate::{Failure, FailureKind, Peer, Request};

/// Cheap call that shows whether a peer is there and takes our credentials.
pub struct FirstCall {
    /// The peer that work will call later.
    pub peer: Peer,
    /// A read without effect, whose answer is JSON.
    pub request: Request,
}

/// Makes the calls until each is answered, so that an outage at the start is logged with its end. A refusal is an answer.
pub async fn make_first_calls(calls: impl IntoIterator<Item = FirstCall>) {
    join_all(calls.into_iter().map(|call| async move { until_done(|| call.ask(), |_, _| {}).await })).await;
}

impl FirstCall {
    async fn ask(&self) -> Result<(), Failure> {
        match self.peer.json::<IgnoredAny>(self.request.clone()).await {
            // Refused work has a record that shows why. This call has none.
            Err(failure) if failure.kind == FailureKind::Refused => {
                tracing::warn!(peer = self.peer.name(), error = failure.text, "first call refused");
                Ok(())
            }
            // An outage is logged by the peer.
            answered => answered.map(drop),
        }
    }
}
