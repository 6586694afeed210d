//! Records what the upstream answered to a transition.

use std::sync::Arc;

use chassis::{convert::time, lease::Fence, pause};
use domain::{evaluation::WAITING_FOR, id::ComponentId};
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
            error: String::new(),
            ..transition
        };
        let clearances =
            if self.shows_error(&accepted) { convert::reports(&accepted, "").collect() } else { Vec::new() };
        if !self.driver.follows() {
            self.effects.accepted(&accepted, time::now());
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
        self.look_later(&id);
        Ok(())
    }

    /// Whether a member still shows that the upstream was not reached. A restart forgets the note, the
    /// component does not.
    fn shows_error(&self, transition: &Transition) -> bool {
        !self.notes.shown(&transition.id).is_empty()
            || transition.members.iter().any(|member| {
                let component = self.known.components.get(&member.id);
                component.is_some_and(|component| !component.power_error.is_empty())
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
        let refused =
            Transition { delivery: Delivery::Refused.into(), error: error.to_owned(), ..transition };
        self.finish(refused, fence).await
    }

    /// Records that a transition is over; its members can be acted on again, and a newer generation of them
    /// may have waited for that.
    pub(crate) async fn finish(&self, transition: Transition, fence: &Fence) -> Result<(), Lost> {
        let attempts: Vec<_> = convert::attempts(&transition).collect();
        self.notes.forget(&transition.id);
        self.following.end(&transition.id);
        self.journal.close(transition, fence).await?;
        self.close(&attempts);
        Ok(())
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

    /// One node may be why all were refused: each half is tried by itself, as the same attempt.
    pub(crate) async fn split(
        &self,
        transition: Transition,
        halves: [Vec<TransitionMember>; 2],
        error: &str,
        fence: &Fence,
    ) -> Result<(), Lost> {
        let nodes = transition.members.len();
        tracing::info!(transition = transition.id, error, nodes, "transition refused, splitting it");
        let put = halves.map(|members| Transition {
            id: convert::id_beside(&transition.id),
            members,
            delivery: Delivery::Prepared.into(),
            sent_at: None,
            ..transition.clone()
        });
        self.notes.hand_down(&transition.id, put.iter().map(|half| half.id.as_str()));
        self.notes.forget(&transition.id);
        let ids = put.each_ref().map(|half| Arc::from(half.id.as_str()));
        self.journal.write(Changes { put: put.into(), delete: vec![transition.id] }, fence).await?;
        self.queues.undelivered.mark(ids);
        Ok(())
    }

    /// Nothing was sent. The transition waits for the upstream; its members show why.
    pub(crate) async fn unreachable(
        &self,
        transition: Transition,
        error: &str,
        fence: &Fence,
    ) -> Result<(), Lost> {
        let waiting = Transition {
            delivery: Delivery::Prepared.into(),
            error: format!("{WAITING_FOR}{error}"),
            sent_at: None,
            ..transition
        };
        self.journal.put(waiting.clone(), fence).await?;
        self.show_waiting(&waiting, error).await;
        let at = Instant::now() + pause::after(self.notes.failed(&waiting.id));
        self.queues.undelivered.mark_at(waiting.id.as_str().into(), at);
        Ok(())
    }

    /// Nobody knows whether the upstream took the transition. Its members show why until that is known.
    pub(crate) async fn in_doubt(
        &self,
        transition: &Transition,
        error: &str,
        fence: &Fence,
    ) -> Result<(), Lost> {
        tracing::warn!(transition = transition.id, error, "transition in doubt, looking for it");
        self.notes.doubt(&transition.id, Instant::now());
        self.journal.put(unknown(transition, error), fence).await?;
        // Before it is looked for, since finding it takes the text away.
        self.show_waiting(transition, error).await;
        self.queues.undelivered.mark([transition.id.as_str().into()]);
        Ok(())
    }

    async fn show_waiting(&self, transition: &Transition, error: &str) {
        let text = format!("{WAITING_FOR}{error}");
        if self.notes.show(&transition.id, &text, Instant::now()) {
            tracing::warn!(transition = transition.id, error, "transition waits for the power upstream");
            self.reporter.report(convert::reports(transition, &text).collect()).await;
        }
    }
}
