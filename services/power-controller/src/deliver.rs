//! Carries out the transitions that are written down.
//!
//! The upstream cannot tell a repeated call from a new one, so the order is fixed: the record is durable
//! before the registry counts the attempt, the count is durable before the upstream is called, and an answer
//! that is lost leaves the transition unknown until `resolve` has looked. A restart at any point goes on
//! from the record. `settle` records what the upstream answers.

use std::{convert::Infallible, sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{convert::time, kinds::OptionsRecord, pause};
use domain::{evaluation::WAITING_FOR, id::ComponentId, options::Options, time::Timestamp};
use proto::{
    component::ActionReport,
    power::{Delivery, Transition, TransitionMember},
};
use tokio::{task::JoinSet, time::Instant};
use tracing::Instrument;
use uuid::Uuid;

use crate::{
    act::Actor,
    convert,
    driver::Failure,
    journal::Changes,
    plan::{self, Standing},
};

/// Calls to the upstream at a time. A machine of 100,000 nodes needs 40 for one action on all of them; more
/// would only wait in the upstream.
const MOST_CALLS: usize = 64;

/// Pause before a component is decided on anew whose record was newer than the one here. The newer record
/// marks it when it arrives; this only covers one that arrived in between.
const BEHIND: Duration = Duration::from_millis(100);

/// Transitions on their way, and what does not go with them.
#[derive(Default)]
struct Sorted {
    due: Vec<Transition>,
    /// Transitions that can be sent only after something has changed.
    later: Vec<Transition>,
    /// Components that are not acted on after all.
    gone: Vec<ComponentId>,
    /// What they do not wait for any more.
    clearances: Vec<ActionReport>,
}

impl Actor {
    /// Takes open transitions a step further whenever they are marked.
    pub(crate) async fn deliver(self: Arc<Self>) -> anyhow::Result<Infallible> {
        let mut under_way = JoinSet::new();
        loop {
            tokio::select! {
                ids = self.queues.undelivered.next(MOST_CALLS), if under_way.len() < MOST_CALLS => {
                    self.advance(&ids, &mut under_way).await;
                }
                Some(ended) = under_way.join_next() => ended.context("a delivery")?,
            }
        }
    }

    async fn advance(self: &Arc<Self>, ids: &[Arc<str>], under_way: &mut JoinSet<()>) {
        let (mut prepared, mut in_doubt) = (Vec::new(), Vec::new());
        for transition in ids.iter().filter_map(|id| self.journal.get(id)) {
            match transition.delivery() {
                Delivery::Prepared => prepared.push(Transition::clone(&transition)),
                Delivery::Unknown => in_doubt.push(Transition::clone(&transition)),
                Delivery::Unspecified
                | Delivery::Sent
                | Delivery::Accepted
                | Delivery::Refused
                | Delivery::Finished => {}
            }
        }
        if !in_doubt.is_empty() {
            let actor = Arc::clone(self);
            under_way.spawn(async move { actor.resolve(in_doubt).await }.in_current_span());
        }
        for transition in self.announce(prepared).await {
            let actor = Arc::clone(self);
            under_way.spawn(async move { actor.call(transition).await }.in_current_span());
        }
    }

    /// Tells the registry that attempts begin and marks their transitions as sent. Members whose component
    /// has moved on are dropped. Gives the transitions that are to be sent now.
    async fn announce(&self, prepared: Vec<Transition>) -> Vec<Transition> {
        let Some(record) = self.known.options.get(OptionsRecord::KEY).filter(|_| !prepared.is_empty()) else {
            return Vec::new();
        };
        let before: Vec<_> = prepared.iter().map(|transition| transition.id.clone()).collect();
        let Sorted { mut due, later, mut gone, mut clearances } =
            self.sort(prepared, &record.options, time::now());
        // Before the report, which a registry that has begun a newer generation refuses: whoever sees the newer
        // generation sees these too.
        due.iter().for_each(|transition| self.effects.begin(transition));
        clearances.extend(self.beginnings(&due));
        let stale = self.reporter.report(clearances).await;
        let sent_at = Some(time::to_wire(time::now()));
        for transition in &mut due {
            gone.extend(drop_members(transition, |member| !stale.contains(&member.id)));
            transition.delivery = Delivery::Sent.into();
            transition.sent_at = sent_at;
        }
        due.retain(|transition| !transition.members.is_empty());
        let goes_on = |id: &String| due.iter().chain(&later).any(|transition| transition.id == *id);
        let delete: Vec<_> = before.into_iter().filter(|id| !goes_on(id)).collect();
        delete.iter().for_each(|id| self.notes.forget(id));
        let changed = later.iter().filter(|transition| self.journal.differs(transition));
        let put = due.iter().chain(changed).cloned().collect();
        self.journal.write(Changes { put, delete }).await;
        self.withdraw(&gone);
        later.iter().for_each(|transition| self.postpone(transition));
        due
    }

    /// Sorts the members of transitions. Those that have to wait become a transition of their own, so that the
    /// others do not wait with them.
    fn sort(&self, prepared: Vec<Transition>, options: &Options, now: Timestamp) -> Sorted {
        let mut sorted = Sorted::default();
        for mut transition in prepared {
            let shows_error = !self.notes.shown(&transition.id).is_empty();
            let (mut due, mut later) = (Vec::new(), Vec::new());
            for member in std::mem::take(&mut transition.members) {
                match self.standing(&transition, &member, options, now) {
                    Standing::Due => due.push(member),
                    Standing::Later => later.push(member),
                    Standing::Gone => {
                        sorted.gone.extend(ComponentId::parse(&member.id));
                        if shows_error || self.waits(&transition, &member) {
                            sorted.clearances.push(convert::told(&transition, &member, ""));
                        }
                    }
                }
            }
            if !due.is_empty() && !later.is_empty() {
                let id = Uuid::new_v4().to_string();
                self.notes.hand_down(&transition.id, [id.as_str()]);
                sorted.later.push(Transition { id, members: later, ..transition.clone() });
                later = Vec::new();
            }
            if !later.is_empty() {
                sorted.later.push(Transition { members: later, ..transition });
            } else if !due.is_empty() {
                sorted.due.push(Transition { members: due, ..transition });
            }
        }
        sorted
    }

    /// Whether the component shows that this attempt waits for the upstream. A restart forgets the note of that,
    /// the component does not.
    fn waits(&self, transition: &Transition, member: &TransitionMember) -> bool {
        let (Some(action), Some(component)) =
            (convert::action(transition), self.known.components.get(&member.id))
        else {
            return false;
        };
        component.attempts(action) == member.attempt && component.power_error.starts_with(WAITING_FOR)
    }

    fn standing(
        &self,
        transition: &Transition,
        member: &TransitionMember,
        options: &Options,
        now: Timestamp,
    ) -> Standing {
        let (Some(action), Some(component)) =
            (convert::action(transition), self.known.components.get(&member.id))
        else {
            return Standing::Gone;
        };
        plan::standing(&component, &self.known.power(&component), action, member, options, now)
    }

    /// Looks at a transition again later, as if the upstream had not been reached.
    pub(crate) fn postpone(&self, transition: &Transition) {
        let at = Instant::now() + pause::after(self.notes.failed(&transition.id));
        self.queues.undelivered.mark_at(transition.id.as_str().into(), at);
    }

    /// An error that the members show is said again, because a report without it would take it away.
    fn beginnings(&self, transitions: &[Transition]) -> Vec<ActionReport> {
        let reports = transitions.iter().map(|transition| {
            convert::reports(transition, &self.notes.shown(&transition.id)).collect::<Vec<_>>()
        });
        reports.flatten().collect()
    }

    fn withdraw(&self, gone: &[ComponentId]) {
        let mut intents = self.intents.lock();
        for id in gone {
            intents.withdraw(id);
            self.effects.cancel(id);
            self.queues.undecided.mark_at(id.clone(), Instant::now() + BEHIND);
        }
        self.queues.unread.mark(gone.iter().cloned());
    }

    async fn call(&self, transition: Transition) {
        let Some(action) = convert::action(&transition) else {
            return self.refused(transition, "the transition has no action").await;
        };
        let ids = transition.members.iter().map(|member| member.id.clone()).collect();
        match self.driver.start(action, ids, self.known.upstream_deadline()).await {
            Ok(upstream_id) => self.accepted(transition, &upstream_id).await,
            Err(Failure::Refused(text)) => match plan::halves(&transition.members) {
                Some(halves) => self.split(transition, halves, &text).await,
                None => self.refused(transition, &text).await,
            },
            // Who is denied the call has done nothing, and it is no fault of the nodes: it waits until people have
            // mended what is wrong, such as credentials.
            Err(Failure::Denied(text) | Failure::Unreachable(text)) => {
                self.unreachable(transition, &text).await;
            }
            Err(Failure::Ambiguous(text)) => self.in_doubt(&transition, &text).await,
        }
    }
}

/// Keeps the members that `keep` picks and gives the components of the others.
fn drop_members(transition: &mut Transition, keep: impl Fn(&TransitionMember) -> bool) -> Vec<ComponentId> {
    let members = std::mem::take(&mut transition.members);
    let (kept, dropped): (Vec<_>, Vec<_>) = members.into_iter().partition(keep);
    transition.members = kept;
    convert::component_ids(&dropped).collect()
}
