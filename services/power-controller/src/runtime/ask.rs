//! Makes the upstream calls of the engine.

use std::{collections::HashSet, sync::Arc, time::Duration};

use chassis::process::traces;
use domain::boot::{component::Action, power::transition::PowerTransition};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::sleep,
};
use tracing::{Instrument as _, Span};

use super::{PowerRuntime, wait};
use crate::{
    driver::{UpstreamSearch, UpstreamTransition},
    engine::{
        EngineEvent, ForeignListing, HolderSearch, PointInTime, PollAnswer, TransitionId, UpstreamCall,
    },
    journal::is_open,
};

impl PowerRuntime {
    /// Makes a call and reports the answer to the engine.
    pub(super) async fn pursue(self: Arc<Self>, call: UpstreamCall) {
        let Some(answer) = self.answer(call).await else { return };
        let started = match &answer {
            EngineEvent::Started { id, answer: Ok(upstream_id) } => {
                Some((Arc::clone(id), upstream_id.clone()))
            }
            _ => None,
        };
        match (self.try_to_handle(answer).await, started) {
            (Ok(()), _) => {}
            // A call that the upstream took after the other replica had given it up may undo later changes.
            (Err(_), Some((id, upstream_id))) => {
                tracing::warn!(
                    transition = &*id,
                    upstream_id,
                    "upstream accepted a call after the role was lost"
                );
            }
            (Err(lost), None) => {
                tracing::info!(why = %lost, "transitions are left to the holder of the role");
            }
        }
    }

    /// Returns the answer of the upstream; `None`: the term is over.
    async fn answer(&self, call: UpstreamCall) -> Option<EngineEvent> {
        let deadline = self.known.upstream_deadline();
        match call {
            UpstreamCall::Poll { id, upstream_id } => {
                let _permit = permit(&self.outbox.polls).await;
                Some(EngineEvent::Polled(self.poll(id, &upstream_id).await))
            }
            UpstreamCall::Withdraw { id, upstream_id } => {
                let _permit = permit(&self.outbox.polls).await;
                let answer = self.driver.abort(&upstream_id, deadline, self.known.still_ours()).await;
                Some(EngineEvent::Withdrawn { id, answer })
            }
            UpstreamCall::Start { id, action, nodes } => self.start(id, action, nodes).await,
            UpstreamCall::Search { ids, asked_at, search } => {
                let _permit = permit(&self.outbox.calls).await;
                Some(self.search(ids, asked_at, search).await)
            }
            UpstreamCall::Foreign { pause, schedule } => {
                self.look_after(wait(pause), schedule).await;
                None
            }
            UpstreamCall::Look { ids, asked_at } => {
                let outcome = self.look(asked_at).await;
                Some(EngineEvent::Looked { ids, asked_at, outcome })
            }
            UpstreamCall::Holders(search) => {
                let _permit = permit(&self.outbox.calls).await;
                Some(self.holders(search).await)
            }
            UpstreamCall::PollHolders { id, holders } => {
                let _permit = permit(&self.outbox.calls).await;
                Some(self.poll_holders(id, holders).await)
            }
        }
    }

    /// Looks for transitions that are not on record after `pause`, unless another look comes first. Where no component is
    /// enabled there is nothing that one could be in the way of, so only the first look of the term is made.
    async fn look_after(&self, pause: Duration, schedule: u64) {
        loop {
            sleep(pause).await;
            if self.engine.lock().foreign.is_replaced(schedule) {
                return;
            }
            let is_first = self.engine.lock().foreign.listing() != ForeignListing::Known;
            if is_first || self.known.components.enabled().next().is_some() {
                break;
            }
        }
        // The engine logs and shows a failure.
        let _outcome = self.look(PointInTime::now().instant).await;
    }

    async fn start(&self, id: TransitionId, action: Action, nodes: Vec<String>) -> Option<EngineEvent> {
        let _permit = permit(&self.outbox.calls).await;
        // If our lease expired since the write, the call is left to the holder of the role.
        let still_ours = self.known.still_ours();
        if !still_ours() {
            return None;
        }
        let span = self.span(action, &nodes);
        let call = self.driver.start(action, nodes, self.known.upstream_deadline(), still_ours);
        let answer = call.instrument(span).await;
        Some(EngineEvent::Started { id, answer })
    }

    /// Returns the span of a call that requests an action, in the trace of the session of the first node.
    fn span(&self, action: Action, nodes: &[String]) -> Span {
        let first = nodes.first().and_then(|id| self.known.components.get(id));
        let Some(first) = first else { return Span::none() };
        let span = traces::work_span("request a power action", &first.wish.trace);
        traces::note_text(&span, "reveille.action", action.word());
        traces::note(&span, "reveille.nodes", i64::try_from(nodes.len()).unwrap_or(i64::MAX));
        span
    }

    async fn poll(&self, id: TransitionId, upstream_id: &str) -> PollAnswer {
        let PointInTime { at: asked_at, instant: began } = PointInTime::now();
        let answer = self.driver.follow(upstream_id, self.known.upstream_deadline()).await;
        PollAnswer { id, began, asked_at, clock: self.driver.clock(), answer }
    }

    async fn search(
        &self,
        ids: Vec<TransitionId>,
        asked_at: std::time::Instant,
        mut search: UpstreamSearch,
    ) -> EngineEvent {
        let finished: Vec<_> = self.journal.all().into_iter().filter(|one| !is_open(one)).collect();
        let named = finished.iter().filter(|one| !one.upstream_id.is_empty());
        search.known.extend(named.map(|one| one.upstream_id.clone()));
        let answer = self.driver.find(&search, self.known.upstream_deadline()).await;
        let found: &[UpstreamTransition] = answer.as_ref().map_or(&[], |found| &found.accepted);
        let is_found = |one: &Arc<PowerTransition>| found.iter().any(|found| found.id == one.upstream_id);
        let finished = finished.iter().filter(|one| is_found(one)).cloned().collect();
        EngineEvent::Searched { ids, asked_at, answer, finished }
    }

    async fn holders(&self, search: HolderSearch) -> EngineEvent {
        let answer = self.driver.holders(&search.nodes, self.known.upstream_deadline()).await;
        EngineEvent::HoldersFound { search, answer, abandoned: self.journal.abandoned() }
    }

    /// Polls the transitions that hold members. One that an operator has abandoned is not waited for.
    async fn poll_holders(&self, id: TransitionId, holders: HashSet<String>) -> EngineEvent {
        let abandoned = self.journal.abandoned();
        let mut ended = HashSet::new();
        for holder in holders {
            if abandoned.contains(&holder) {
                ended.insert(holder);
                continue;
            }
            match self.driver.follow(&holder, self.known.upstream_deadline()).await {
                Ok(progress) if progress.ended => drop(ended.insert(holder)),
                Ok(_) => {}
                Err(failure) => {
                    tracing::debug!(transition = &*id, holder, %failure, "holder of nodes not polled")
                }
            }
        }
        EngineEvent::HoldersPolled { id, ended }
    }
}

/// Waits for a place among the calls at a time.
async fn permit(places: &Semaphore) -> Option<SemaphorePermit<'_>> {
    // The semaphores are never closed.
    places.acquire().await.ok()
}
