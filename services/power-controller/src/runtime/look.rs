//! Looks at the transitions of the upstream that are not on record. Everyone who needs to know them shares one call.

use std::time::Instant;

use chassis::kinds::options::OptionsRecord;
use tokio::sync::{mpsc, oneshot};

use super::PowerRuntime;
use crate::{
    driver::DriverFailure,
    engine::{EngineEvent, PointInTime},
};

/// Way to ask for a look from beside the runtime.
pub(crate) type LookRequests = mpsc::Sender<LookRequest>;

/// Requests that may wait for the runtime to take them. Further callers wait with theirs.
pub(super) const MOST_LOOKS: usize = 16;

/// Request for a look that begins now or later.
pub(crate) struct LookRequest {
    asked_at: Instant,
    done: oneshot::Sender<Result<(), DriverFailure>>,
}

/// Newest look of the term. The lock is held during a look.
#[derive(Debug, Default)]
pub(crate) struct LatestLook(tokio::sync::Mutex<Option<FinishedLook>>);

#[derive(Debug)]
struct FinishedLook {
    began: Instant,
    outcome: Result<(), DriverFailure>,
}

/// Waits until the engine has learnt of all transitions that are not on record from a call that begins now or later.
///
/// # Errors
/// When the upstream did not answer, or the term is over.
pub(crate) async fn look(requests: &LookRequests) -> Result<(), DriverFailure> {
    let (done, outcome) = oneshot::channel();
    let asked_at = tokio::time::Instant::now().into_std();
    let gone = || DriverFailure::Unreachable("the term is over".to_owned());
    requests.send(LookRequest { asked_at, done }).await.map_err(|_| gone())?;
    outcome.await.unwrap_or_else(|_| Err(gone()))
}

impl PowerRuntime {
    /// Answers a request for a look.
    pub(super) async fn answer_look(&self, request: LookRequest) {
        let outcome = self.look(request.asked_at).await;
        // The caller may have gone with its part of the term.
        let _gone = request.done.send(outcome);
    }

    /// Asks the upstream for transitions that are not on record, unless a call that began at `asked_at` or later has done so,
    /// and lets the engine learn of them. There is one call at a time, and callers that arrive meanwhile share the next one.
    ///
    /// # Errors
    /// The failure of the call, possibly of another caller's.
    pub(super) async fn look(&self, asked_at: Instant) -> Result<(), DriverFailure> {
        let mut latest = self.latest_look.0.lock().await;
        if let Some(look) = latest.as_ref().filter(|look| look.began >= asked_at) {
            return look.outcome.clone();
        }
        let now = PointInTime::now();
        let options = self.known.options.get(OptionsRecord::KEY).map(|record| record.options.clone());
        let recorded = self.journal.upstream_ids();
        let query = self.engine.lock().foreign.query(recorded, &options.unwrap_or_default(), now.at);
        let answer = self.driver.foreign(&query, self.known.upstream_deadline()).await;
        if let Ok(answer) = &answer {
            self.journal.note_listed(&answer.listed);
        }
        let outcome = answer.as_ref().map(drop).map_err(Clone::clone);
        self.handle(EngineEvent::ForeignFound(answer)).await;
        *latest = Some(FinishedLook { began: now.instant, outcome: outcome.clone() });
        outcome
    }
}
