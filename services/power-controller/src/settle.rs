//! Records what the upstream answered to a transition.

use std::{collections::HashSet, sync::Arc, time::Duration};

use chassis::{clock, convert::time, lease::Fence, pause};
use domain::core::{id::ComponentId, refusal, trouble::Trouble};
use proto::power::{Delivery, Transition, TransitionMember};
use tokio::time::Instant;

use crate::{
    act::{Actor, unknown},
    convert,
    journal::{Changes, Lost},
    plan::Attempt,
};

impl Actor {
    /// The upstream took the transition.
    pub(crate) async fn accepted(
        &self,
        transition: Transition,
        upstream_id: &str,
        fence: &Fence,
    ) -> Result<(), Lost> {
        let nodes = transition.members.len();
        let action = transition.action().as_str_name();
        tracing::info!(transition = transition.id, upstream_id, action, nodes, "transition accepted");
        let accepted = Transition {
            delivery: Delivery::Accepted.into(),
            upstream_id: upstream_id.to_owned(),
            accepted_at: Some(time::to_wire(clock::now())),
            ..convert::with_trouble(transition, None)
        };
        self.notes.taken(&accepted, Instant::now());
        let clearances = if self.shows_error(&accepted) {
            // Only a look tells whether a reservation is gone.
            let free = accepted.members.iter().filter(|member| member.reservations == 0);
            free.map(|member| convert::told(&accepted, member, None)).collect()
        } else {
            Vec::new()
        };
        if !self.driver.follows() {
            self.effects.accepted(&accepted, clock::now());
            self.finish(Transition { delivery: Delivery::Finished.into(), ..accepted }, fence).await?;
            self.reporter.report(clearances).await;
            return Ok(());
        }
        let id: Arc<str> = accepted.id.as_str().into();
        self.journal.put(accepted.clone(), fence).await?;
        self.notes.forget(&id);
        self.effects.follow(&accepted, true);
        // Before the first look, whose bad news it would take away.
        self.reporter.report(clearances).await;
        self.following.begin(&accepted);
        self.look_later(&accepted);
        Ok(())
    }

    /// Whether a member still shows that the upstream was not reached. A restart forgets the note, the
    /// component does not.
    fn shows_error(&self, transition: &Transition) -> bool {
        self.notes.shown(&transition.id).is_some()
            || transition.members.iter().any(|member| {
                let component = self.known.components.get(&member.id);
                component.is_some_and(|component| component.power_trouble.is_some())
            })
    }

    /// The upstream will not do it. The error is told first: the record then says that it was.
    pub(crate) async fn refused(
        &self,
        transition: Transition,
        error: &str,
        fence: &Fence,
    ) -> Result<(), Lost> {
        let nodes = transition.members.len();
        tracing::warn!(transition = transition.id, error, nodes, "transition refused");
        let failed = transition.members.iter().map(|member| (member, error));
        self.reporter.report(convert::failures(&transition, failed)).await;
        convert::component_ids(&transition.members).for_each(|id| self.effects.cancel(&id));
        let refused = convert::with_trouble(transition, Trouble::failed(error).as_ref());
        let refused = Transition { delivery: Delivery::Refused.into(), ..refused };
        self.finish(refused, fence).await
    }

    /// Records that a transition is over; its members can be acted on again, and a newer generation of them
    /// may have waited for that. Members that somebody else held go on as a transition of their own, with the same attempts.
    pub(crate) async fn finish(&self, transition: Transition, fence: &Fence) -> Result<(), Lost> {
        let held = convert::continuations(&transition);
        let goes_on: HashSet<_> = held.iter().flat_map(convert::attempts).collect();
        let attempts: Vec<_> =
            convert::attempts(&transition).filter(|attempt| !goes_on.contains(attempt)).collect();
        self.notes.forget(&transition.id);
        self.following.end(&transition.id);
        self.journal.close(transition, held.clone(), fence).await?;
        self.close(&attempts);
        for held in held {
            if let Some(waits) = convert::trouble(&held) {
                self.notes.show(&held.id, &waits, Instant::now());
            }
            let pause = match held.members.iter().map(|member| member.reservations).max() {
                Some(0) | None => refusal::pause(self.notes.failed(&held.id)),
                Some(times) => refusal::pause_for_reservation(times),
            };
            self.queues.undelivered.mark_at(held.id.as_str().into(), Instant::now() + pause);
        }
        Ok(())
    }

    /// An operator has given the transition up: it is over, and only new readings tell what became of its nodes.
    pub(crate) async fn abandon(&self, transition: Transition, fence: &Fence) -> Result<(), Lost> {
        tracing::warn!(
            transition = transition.id,
            upstream_id = transition.upstream_id,
            "transition abandoned"
        );
        self.driver.give_up(&transition.upstream_id);
        self.show_results_again(&transition).await;
        let mut transition = transition;
        // Nobody's end is waited for any more.
        for member in &mut transition.members {
            member.held_by.clear();
            member.reservations = 0;
        }
        self.end(transition, "an operator gave it up", fence).await
    }

    /// What became of attempts is on record.
    pub(crate) fn close(&self, attempts: &[(ComponentId, Attempt)]) {
        {
            let mut intents = self.intents.lock();
            attempts.iter().for_each(|(id, attempt)| intents.close(id, *attempt));
        }
        self.queues.unread.mark(attempts.iter().map(|(id, _)| id.clone()));
        self.queues.undecided.mark(attempts.iter().map(|(id, _)| id.clone()));
    }

    /// Splits a transition that was refused because of some of its members: these parts are tried by themselves, and the
    /// members that are `left` after them. All keep their attempt.
    pub(crate) async fn split(
        &self,
        transition: Transition,
        parts: Vec<Vec<TransitionMember>>,
        left: Vec<TransitionMember>,
        error: &str,
        fence: &Fence,
    ) -> Result<(), Lost> {
        let nodes = transition.members.len();
        tracing::info!(transition = transition.id, error, nodes, "splitting a transition");
        let part = |members| Transition {
            id: convert::id_beside(&transition.id),
            members,
            delivery: Delivery::Prepared.into(),
            sent_at: None,
            ..transition.clone()
        };
        let left = (!left.is_empty()).then(|| part(left));
        let parts: Vec<_> = parts.into_iter().map(part).collect();
        let put: Vec<_> = parts.iter().chain(&left).cloned().collect();
        self.notes.hand_down(&transition.id, put.iter().map(|part| part.id.as_str()));
        self.notes.forget(&transition.id);
        self.journal.write(Changes { put, delete: vec![transition.id] }, fence).await?;
        self.queues.undelivered.mark(parts.iter().map(|part| Arc::from(part.id.as_str())));
        if let Some(left) = left {
            let at = Instant::now() + refusal::pause(1);
            self.queues.undelivered.mark_at(left.id.as_str().into(), at);
        }
        Ok(())
    }

    /// Nothing was sent. The transition waits for the upstream; its members show why.
    pub(crate) async fn unreachable(
        &self,
        transition: Transition,
        error: &str,
        fence: &Fence,
    ) -> Result<(), Lost> {
        let pause = pause::after(self.notes.failed(&transition.id));
        self.waits(transition, error, pause, fence).await
    }

    /// The transition is sent again after a pause; its members show why.
    pub(crate) async fn waits(
        &self,
        transition: Transition,
        error: &str,
        pause: Duration,
        fence: &Fence,
    ) -> Result<(), Lost> {
        let waiting = Transition {
            delivery: Delivery::Prepared.into(),
            sent_at: None,
            ..convert::with_trouble(transition, Some(&Trouble::waiting_for(error)))
        };
        self.journal.put(waiting.clone(), fence).await?;
        self.show_waiting(&waiting, error).await;
        self.queues.undelivered.mark_at(waiting.id.as_str().into(), Instant::now() + pause);
        Ok(())
    }

    /// Nobody knows whether the upstream took the transition. Its members show why until that is known.
    pub(crate) async fn in_doubt(
        &self,
        transition: &Transition,
        error: &str,
        fence: &Fence,
    ) -> Result<(), Lost> {
        if self.notes.doubt_begins(&transition.id) {
            tracing::warn!(transition = transition.id, error, "transition in doubt, looking for it");
        } else {
            tracing::debug!(transition = transition.id, error, "transition in doubt again, looking for it");
        }
        self.notes.doubt(&transition.id, Instant::now());
        self.journal.put(unknown(transition, error), fence).await?;
        // Before it is looked for, since finding it takes the text away.
        self.show_waiting(transition, error).await;
        self.queues.undelivered.mark([transition.id.as_str().into()]);
        Ok(())
    }

    async fn show_waiting(&self, transition: &Transition, error: &str) {
        let trouble = Trouble::waiting_for(error);
        if self.notes.show(&transition.id, &trouble, Instant::now()) {
            tracing::warn!(transition = transition.id, error, "transition waits for the power upstream");
            self.reporter.report(convert::reports(transition, Some(&trouble)).collect()).await;
        }
    }
}
