//! Carries out the recorded transitions.
//!
//! The upstream cannot distinguish a repeated call from a new one, so the order is fixed: the record is durable before
//! the registry counts the attempt, the count is durable before the upstream is called, and a lost answer leaves the
//! transition unknown until `resolve` has searched the upstream. A restart at any point continues from the record.
//! `settle` records the answers of the upstream.

use std::{collections::HashSet, convert::Infallible, sync::Arc};

use anyhow::Context as _;
use chassis::{
    kinds::options::OptionsRecord,
    mesh::time,
    process::{clock, pause},
};
use domain::{
    boot::bos::options::Options,
    core::{
        id::ComponentId,
        refusal::{self, RefusalStep},
        time::Timestamp,
    },
};
use proto::{
    component::ActionReport,
    power::{Delivery, Transition, TransitionMember},
};
use tokio::{task::JoinSet, time::Instant};
use tracing::Instrument;

use crate::{
    act::{Actor, BEHIND},
    convert,
    driver::Failure,
    journal::{Changes, Lost},
    plan::{self, Standing},
};

/// Calls to the upstream at a time. A machine of 100,000 nodes needs 40 for one action on all nodes; further calls
/// would only wait in the upstream.
const MOST_CALLS: usize = 64;

/// Prepared transitions, sorted by the next step of their members.
#[derive(Default)]
struct Sorted {
    due: Vec<Transition>,
    /// Transitions that can be sent only after something has changed.
    later: Vec<Transition>,
    /// Components whose attempt is dropped.
    gone: Vec<ComponentId>,
    /// Reports that clear the waits shown by members that leave.
    clearances: Vec<ActionReport>,
}

impl Actor {
    /// Takes open transitions a step further whenever they are queued.
    pub(crate) async fn deliver(self: Arc<Self>) -> anyhow::Result<Infallible> {
        let mut under_way = JoinSet::new();
        loop {
            tokio::select! {
                ids = self.queues.undelivered.next(MOST_CALLS), if under_way.len() < MOST_CALLS => {
                    let _turn = self.known.term.turn("deliver");
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
                Delivery::Prepared | Delivery::Unknown if transition.abandoned_at.is_some() => {
                    let actor = Arc::clone(self);
                    let transition = Transition::clone(&transition);
                    let end = async move {
                        let id = transition.id.clone();
                        give_way(&id, actor.abandon(transition).await);
                    };
                    under_way.spawn(end.in_current_span());
                }
                Delivery::Prepared if awaits_known_holder(&transition) => {
                    let actor = Arc::clone(self);
                    let transition = Transition::clone(&transition);
                    let wait = async move {
                        let id = transition.id.clone();
                        give_way(&id, actor.await_holders(transition).await);
                    };
                    under_way.spawn(wait.in_current_span());
                }
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
        let due = self.announce(prepared).await.unwrap_or_else(|lost| {
            tracing::info!(why = %lost, "transitions were not sent");
            let at = Instant::now() + BEHIND;
            ids.iter().for_each(|id| self.queues.undelivered.mark_at(Arc::clone(id), at));
            Vec::new()
        });
        for transition in due {
            let actor = Arc::clone(self);
            let call = async move {
                let id = transition.id.clone();
                give_way(&id, actor.call(transition).await);
            };
            under_way.spawn(call.in_current_span());
        }
    }

    /// Reports to the registry that attempts begin and marks their transitions as sent. Members whose component has
    /// moved on are dropped. Returns the transitions to send now.
    async fn announce(&self, prepared: Vec<Transition>) -> Result<Vec<Transition>, Lost> {
        if prepared.is_empty() {
            return Ok(Vec::new());
        }
        let Some(record) = self.known.options.get(OptionsRecord::KEY) else {
            prepared.iter().for_each(|transition| self.postpone(transition));
            return Ok(Vec::new());
        };
        let before: Vec<_> = prepared.iter().map(|transition| transition.id.clone()).collect();
        let Sorted { mut due, later, mut gone, mut clearances } =
            self.sort(prepared, &record.options, clock::now());
        // Effects are noted before the report, which a registry with a newer generation refuses: a reader of the newer
        // generation must see these effects too.
        due.iter().for_each(|transition| self.engine.lock().nodes.begin(transition));
        clearances.extend(self.beginnings(&due));
        let stale = self.reporter.report(clearances).await;
        let sent_at = Some(time::to_wire(clock::now()));
        for transition in &mut due {
            gone.extend(drop_members(transition, |member| !stale.contains(&member.id)));
            transition.delivery = Delivery::Sent.into();
            transition.sent_at = sent_at;
        }
        due.retain(|transition| !transition.members.is_empty());
        let goes_on = |id: &String| due.iter().chain(&later).any(|transition| transition.id == *id);
        let delete: Vec<_> = before.into_iter().filter(|id| !goes_on(id)).collect();
        delete.iter().for_each(|id| self.engine.lock().transitions.forget(id));
        let changed = later.iter().filter(|transition| self.journal.differs(transition));
        let put = due.iter().chain(changed).cloned().collect();
        self.journal.write(Changes { put, delete }).await?;
        self.withdraw(&gone);
        later.iter().for_each(|transition| self.postpone(transition));
        Ok(due)
    }

    /// Sorts the members of transitions. Members that have to wait become a transition of their own, so that the others
    /// do not wait with them.
    fn sort(&self, prepared: Vec<Transition>, options: &Options, now: Timestamp) -> Sorted {
        let mut sorted = Sorted::default();
        for mut transition in prepared {
            let shows_error = self.engine.lock().transitions.shown(&transition.id).is_some();
            let (mut due, mut later) = (Vec::new(), Vec::new());
            for member in std::mem::take(&mut transition.members) {
                match self.standing(&transition, &member, options, now) {
                    Standing::Due => due.push(member),
                    Standing::Later => later.push(member),
                    Standing::Gone => {
                        sorted.gone.extend(ComponentId::parse(&member.id));
                        if shows_error || self.shows_wait(&transition, &member) {
                            sorted.clearances.push(convert::told(&transition, &member, None));
                        }
                    }
                }
            }
            if !due.is_empty() && !later.is_empty() {
                let id = convert::new_id();
                self.engine.lock().transitions.hand_down(&transition.id, [id.as_str()]);
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

    /// Returns whether the component shows that this attempt waits for the upstream. A restart forgets the note about
    /// the wait, the component does not.
    pub(crate) fn shows_wait(&self, transition: &Transition, member: &TransitionMember) -> bool {
        let (Some(action), Some(component)) =
            (convert::action(transition), self.known.components.get(&member.id))
        else {
            return false;
        };
        component.attempts(action) == member.attempt && component.waits_for_power_upstream()
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
        plan::standing(&component, &self.power(&component), action, member, options, now)
    }

    /// Queues a transition for a later try, as if the upstream had not been reached.
    pub(crate) fn postpone(&self, transition: &Transition) {
        let at = Instant::now() + pause::after(self.engine.lock().transitions.failed(&transition.id));
        self.queues.undelivered.mark_at(transition.id.as_str().into(), at);
    }

    /// Returns the reports that attempts begin. An error that the members show is repeated, because a report without it
    /// would clear it.
    fn beginnings(&self, transitions: &[Transition]) -> Vec<ActionReport> {
        let reports = transitions.iter().map(|transition| {
            convert::reports(transition, self.engine.lock().transitions.shown(&transition.id).as_ref())
                .collect::<Vec<_>>()
        });
        reports.flatten().collect()
    }

    fn withdraw(&self, gone: &[ComponentId]) {
        for id in gone {
            self.engine.lock().nodes.withdraw(id);
            self.queues.undecided.mark_at(id.clone(), Instant::now() + BEHIND);
        }
        self.queues.unread.mark(gone.iter().cloned());
    }

    /// Asks the upstream whether the transitions that hold members have ended, and continues once they have. Until then
    /// no action is requested for the members, and no attempt is spent.
    async fn await_holders(&self, mut transition: Transition) -> Result<(), Lost> {
        let holders: HashSet<_> = transition.members.iter().map(|member| member.held_by.clone()).collect();
        let mut ended = HashSet::new();
        for holder in holders.into_iter().filter(|holder| !holder.is_empty()) {
            match self.driver.follow(&holder, self.known.upstream_deadline()).await {
                Ok(progress) if progress.ended => drop(ended.insert(holder)),
                Ok(_) => {}
                Err(failure) => {
                    tracing::debug!(transition = transition.id, holder, %failure, "holder of nodes not polled");
                }
            }
        }
        for member in &mut transition.members {
            if ended.contains(&member.held_by) {
                member.held_by.clear();
            }
        }
        let id: Arc<str> = transition.id.as_str().into();
        let (held, free): (Vec<_>, Vec<_>) =
            transition.members.iter().cloned().partition(|member| !member.held_by.is_empty());
        if free.is_empty() {
            let at = Instant::now() + refusal::pause(self.engine.lock().transitions.failed(&id));
            self.queues.undelivered.mark_at(id, at);
        } else if held.is_empty() {
            self.journal.put(transition).await?;
            self.queues.undelivered.mark([id]);
        } else {
            self.split(transition, vec![free], held, "some members are not held any more").await?;
        }
        Ok(())
    }

    async fn halve(&self, transition: Transition, text: &str) -> Result<(), Lost> {
        let (first, second) = transition.members.split_at(transition.members.len() / 2);
        let halves = vec![first.to_vec(), second.to_vec()];
        self.split(transition, halves, Vec::new(), text).await
    }

    /// Finds out whether the upstream refuses single nodes or every node.
    async fn judge(&self, transition: Transition, text: &str) -> Result<(), Lost> {
        let step = self.engine.lock().transitions.refused(&transition, Instant::now().into_std());
        match step {
            RefusalStep::Probe(count) => {
                let members = transition.members.clone();
                let round = self.engine.lock().transitions.next_round();
                let (probes, rest) = refusal::split_probes(members, count, round);
                let probes = probes.into_iter().map(|probe| vec![probe]);
                self.split(transition, probes.collect(), rest, text).await
            }
            RefusalStep::Halve => self.halve(transition, text).await,
            RefusalStep::SetAside => self.refused(transition, text).await,
            RefusalStep::BackOff => {
                let pause = refusal::pause(self.engine.lock().transitions.failed(&transition.id));
                self.waits(transition, text, pause).await
            }
        }
    }

    async fn call(&self, transition: Transition) -> Result<(), Lost> {
        let Some(action) = convert::action(&transition) else {
            return self.refused(transition, "the transition has no action").await;
        };
        let ids: Vec<_> = transition.members.iter().map(|member| member.id.clone()).collect();
        // If our lease expired since the write, the call is left to the holder of the role.
        let still_ours = self.known.still_ours();
        if !still_ours() {
            return Err(Lost);
        }
        match self.driver.start(action, ids, self.known.upstream_deadline(), still_ours).await {
            Ok(upstream_id) => {
                let (id, nodes) = (transition.id.clone(), transition.members.len());
                let recorded = self.accepted(transition, &upstream_id).await;
                if recorded.is_err() {
                    // A call that the upstream took after the other replica had given it up may undo later changes.
                    tracing::warn!(
                        transition = id,
                        upstream_id,
                        nodes,
                        "upstream accepted a call after the role was lost"
                    );
                }
                recorded
            }
            Err(Failure::TooLarge(text)) if transition.members.len() > 1 => {
                self.halve(transition, &text).await
            }
            Err(Failure::Refused(text) | Failure::TooLarge(text)) => self.judge(transition, &text).await,
            // A denied call had no effect and is no fault of the nodes: the transition waits until an operator has
            // mended the cause, such as credentials.
            Err(Failure::Denied(text) | Failure::Unreachable(text)) => {
                self.unreachable(transition, &text).await
            }
            Err(Failure::Ambiguous(text)) => self.in_doubt(&transition, &text).await,
        }
    }
}

/// Returns whether a member was refused because a known transition holds it that has not ended as far as is known.
fn awaits_known_holder(transition: &Transition) -> bool {
    transition.members.iter().any(|member| !member.held_by.is_empty())
}

/// Logs that a transition is left to the holder of the role, if `step` lost the role.
pub(crate) fn give_way(id: &str, step: Result<(), Lost>) {
    if let Err(lost) = step {
        tracing::info!(transition = id, why = %lost, "transition left to the holder of the role");
    }
}

/// Keeps the members that `keep` picks and returns the components of the others.
fn drop_members(transition: &mut Transition, keep: impl Fn(&TransitionMember) -> bool) -> Vec<ComponentId> {
    let members = std::mem::take(&mut transition.members);
    let (kept, dropped): (Vec<_>, Vec<_>) = members.into_iter().partition(keep);
    transition.members = kept;
    convert::component_ids(&dropped).collect()
}
