//! Records the upstream's answers to transitions.

use std::{collections::HashSet, sync::Arc, time::Duration};

use chassis::{
    mesh::time,
    process::{clock, pause},
};
use domain::core::{id::ComponentId, refusal, trouble::Trouble};
use proto::power::{Delivery, Transition, TransitionMember};
use tokio::time::Instant;

use crate::{
    act::{Actor, unknown},
    convert,
    engine::{Attempt, attempts},
    journal::{Changes, Lost},
};

impl Actor {
    /// Records that the upstream took the transition.
    pub(crate) async fn accepted(&self, transition: Transition, upstream_id: &str) -> Result<(), Lost> {
        let nodes = transition.members.len();
        let action = transition.action().as_str_name();
        tracing::info!(transition = transition.id, upstream_id, action, nodes, "transition accepted");
        let accepted = Transition {
            delivery: Delivery::Accepted.into(),
            upstream_id: upstream_id.to_owned(),
            accepted_at: Some(time::to_wire(clock::now())),
            ..convert::with_trouble(transition, None)
        };
        self.engine.lock().transitions.taken(&accepted, Instant::now().into_std());
        let clearances = if self.shows_error(&accepted) {
            // Only a poll shows whether a reservation is gone.
            let free = accepted.members.iter().filter(|member| member.reservations == 0);
            free.map(|member| convert::told(&accepted, member, None)).collect()
        } else {
            Vec::new()
        };
        if !self.driver.follows() {
            self.engine.lock().nodes.accepted(&accepted, clock::now());
            self.finish(Transition { delivery: Delivery::Finished.into(), ..accepted }).await?;
            self.reporter.report(clearances).await;
            return Ok(());
        }
        let id: Arc<str> = accepted.id.as_str().into();
        self.journal.put(accepted.clone()).await?;
        self.engine.lock().transitions.forget(&id);
        self.engine.lock().nodes.follow(&accepted, true);
        // Clear old errors before the first poll; otherwise the clear could erase a new failure.
        self.reporter.report(clearances).await;
        self.engine.lock().transitions.begin_polls(&accepted);
        self.look_later(&accepted);
        Ok(())
    }

    /// Returns whether a member still shows that the upstream was not reached. A restart forgets the note about that,
    /// the component does not.
    fn shows_error(&self, transition: &Transition) -> bool {
        self.engine.lock().transitions.shown(&transition.id).is_some()
            || transition.members.iter().any(|member| {
                let component = self.known.components.get(&member.id);
                component.is_some_and(|component| component.power_trouble.is_some())
            })
    }

    /// Ends a transition that the upstream refuses. The error is reported before the refusal is recorded, so that a
    /// recorded refusal implies a reported one.
    pub(crate) async fn refused(&self, transition: Transition, error: &str) -> Result<(), Lost> {
        let nodes = transition.members.len();
        tracing::warn!(transition = transition.id, error, nodes, "transition refused");
        let failed = transition.members.iter().map(|member| (member, error));
        self.reporter.report(convert::failures(&transition, failed)).await;
        convert::component_ids(&transition.members).for_each(|id| self.engine.lock().nodes.cancel(&id));
        let refused = convert::with_trouble(transition, Trouble::failed(error).as_ref());
        let refused = Transition { delivery: Delivery::Refused.into(), ..refused };
        self.finish(refused).await
    }

    /// Records that a transition is over. Its members may get actions again, and a newer generation of them may have
    /// waited for that. Members that another transition held continue in a transition of their own, with the same
    /// attempts.
    pub(crate) async fn finish(&self, transition: Transition) -> Result<(), Lost> {
        let held = convert::continuations(&transition);
        let goes_on: HashSet<_> = held.iter().flat_map(attempts).collect();
        let attempts: Vec<_> = attempts(&transition).filter(|attempt| !goes_on.contains(attempt)).collect();
        self.engine.lock().transitions.forget(&transition.id);
        self.journal.close(transition, held.clone()).await?;
        self.close(&attempts);
        for held in held {
            if let Some(waits) = convert::trouble(&held) {
                self.engine.lock().transitions.show(&held.id, &waits, Instant::now().into_std());
            }
            let pause = match held.members.iter().map(|member| member.reservations).max() {
                Some(0) | None => refusal::pause(self.engine.lock().transitions.failed(&held.id)),
                Some(times) => refusal::pause_for_reservation(times),
            };
            self.queues.undelivered.mark_at(held.id.as_str().into(), Instant::now() + pause);
        }
        Ok(())
    }

    /// Ends a transition that an operator has abandoned. Only new readings show the power of its nodes.
    pub(crate) async fn abandon(&self, transition: Transition) -> Result<(), Lost> {
        tracing::warn!(
            transition = transition.id,
            upstream_id = transition.upstream_id,
            "transition abandoned"
        );
        self.driver.give_up(&transition.upstream_id);
        self.show_results_again(&transition).await;
        let mut transition = transition;
        // No end of a holder is waited for any more.
        for member in &mut transition.members {
            member.held_by.clear();
            member.reservations = 0;
        }
        self.end(transition, "an operator gave it up").await
    }

    /// Closes attempts whose outcome is on record.
    pub(crate) fn close(&self, attempts: &[(ComponentId, Attempt)]) {
        {
            let nodes = &mut self.engine.lock().nodes;
            attempts.iter().for_each(|(id, attempt)| nodes.close(id, *attempt));
        }
        self.queues.unread.mark(attempts.iter().map(|(id, _)| id.clone()));
        self.queues.undecided.mark(attempts.iter().map(|(id, _)| id.clone()));
    }

    /// Splits a transition that was refused because of some of its members: these `parts` are tried alone, and the
    /// members that are `left` after them. All keep their attempt.
    pub(crate) async fn split(
        &self,
        transition: Transition,
        parts: Vec<Vec<TransitionMember>>,
        left: Vec<TransitionMember>,
        error: &str,
    ) -> Result<(), Lost> {
        let nodes = transition.members.len();
        tracing::info!(transition = transition.id, error, nodes, "splitting a transition");
        let part = |members| Transition {
            id: convert::new_id(),
            members,
            delivery: Delivery::Prepared.into(),
            sent_at: None,
            ..transition.clone()
        };
        let left = (!left.is_empty()).then(|| part(left));
        let parts: Vec<_> = parts.into_iter().map(part).collect();
        let put: Vec<_> = parts.iter().chain(&left).cloned().collect();
        self.engine.lock().transitions.hand_down(&transition.id, put.iter().map(|part| part.id.as_str()));
        self.engine.lock().transitions.forget(&transition.id);
        self.journal.write(Changes { put, delete: vec![transition.id] }).await?;
        self.queues.undelivered.mark(parts.iter().map(|part| Arc::from(part.id.as_str())));
        if let Some(left) = left {
            let at = Instant::now() + refusal::pause(1);
            self.queues.undelivered.mark_at(left.id.as_str().into(), at);
        }
        Ok(())
    }

    /// Records that nothing was sent. The transition waits for the upstream; its members show why.
    pub(crate) async fn unreachable(&self, transition: Transition, error: &str) -> Result<(), Lost> {
        let pause = pause::after(self.engine.lock().transitions.failed(&transition.id));
        self.waits(transition, error, pause).await
    }

    /// Schedules the transition to be sent again after a pause; its members show why.
    pub(crate) async fn waits(
        &self,
        transition: Transition,
        error: &str,
        pause: Duration,
    ) -> Result<(), Lost> {
        let waiting = Transition {
            delivery: Delivery::Prepared.into(),
            sent_at: None,
            ..convert::with_trouble(transition, Some(&Trouble::waiting_for(error)))
        };
        self.journal.put(waiting.clone()).await?;
        self.show_waiting(&waiting, error).await;
        self.queues.undelivered.mark_at(waiting.id.as_str().into(), Instant::now() + pause);
        Ok(())
    }

    /// Records that the upstream may have taken the transition or not. Its members show why until that is known.
    pub(crate) async fn in_doubt(&self, transition: &Transition, error: &str) -> Result<(), Lost> {
        if self.engine.lock().transitions.doubt_begins(&transition.id) {
            tracing::warn!(transition = transition.id, error, "transition in doubt, looking for it");
        } else {
            tracing::debug!(transition = transition.id, error, "transition in doubt again, looking for it");
        }
        self.engine.lock().transitions.doubt(&transition.id, Instant::now().into_std());
        self.journal.put(unknown(transition, error)).await?;
        // Show the text before the search, since finding the transition clears it.
        self.show_waiting(transition, error).await;
        self.queues.undelivered.mark([transition.id.as_str().into()]);
        Ok(())
    }

    async fn show_waiting(&self, transition: &Transition, error: &str) {
        let trouble = Trouble::waiting_for(error);
        if self.engine.lock().transitions.show(&transition.id, &trouble, Instant::now().into_std()) {
            tracing::warn!(transition = transition.id, error, "transition waits for the power upstream");
            self.reporter.report(convert::reports(transition, Some(&trouble)).collect()).await;
        }
    }
}
