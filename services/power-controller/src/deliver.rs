//! Carries out the transitions that are written down.
//!
//! The upstream cannot tell a repeated call from a new one, so the order is fixed: the record is durable
//! before the registry counts the attempt, the count is durable before the upstream is called, and an answer
//! that is lost leaves the transition unknown until `resolve` has looked. A restart at any point goes on
//! from the record.

use std::{collections::HashSet, convert::Infallible, sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{convert::time, kinds::OptionsRecord, pause, within};
use domain::{evaluation::PowerObservation, id::ComponentId, time::Timestamp};
use proto::{
    component::{ActionReport, ReportActionsRequest},
    power::{Delivery, Transition, TransitionMember},
};
use tokio::{task::JoinSet, time::Instant};
use tracing::Instrument;

use crate::{
    act::{Actor, Changes, unknown, upstream_deadline},
    convert,
    driver::Failure,
    plan,
};

/// Calls to the upstream at a time. A machine of 100,000 nodes needs 40 for one action on all of them; more
/// would only wait in the upstream.
const MOST_CALLS: usize = 64;

/// How long the registry may take to answer. It answers thousands of reports within a second; what takes
/// ten times that is not coming.
const REGISTRY_DEADLINE: Duration = Duration::from_secs(10);

/// Pause before a component is decided on anew whose record was newer than the one here. The newer record
/// marks it when it arrives; this only covers one that arrived in between.
const BEHIND: Duration = Duration::from_millis(100);

impl Actor {
    /// Takes open transitions a step further whenever they are marked.
    pub(crate) async fn deliver(self: Arc<Self>) -> anyhow::Result<Infallible> {
        let mut under_way = JoinSet::new();
        loop {
            tokio::select! {
                ids = self.undelivered.next(MOST_CALLS), if under_way.len() < MOST_CALLS => {
                    self.advance(&ids, &mut under_way).await;
                }
                Some(ended) = under_way.join_next() => ended.context("a delivery")?,
            }
        }
    }

    async fn advance(self: &Arc<Self>, ids: &[Arc<str>], under_way: &mut JoinSet<()>) {
        let (mut prepared, mut in_doubt) = (Vec::new(), Vec::new());
        for transition in ids.iter().filter_map(|id| self.transitions.view().get(id)) {
            match transition.delivery() {
                Delivery::Prepared => prepared.push(Transition::clone(&transition)),
                Delivery::Unknown => in_doubt.push(Transition::clone(&transition)),
                Delivery::Unspecified | Delivery::Sent | Delivery::Accepted | Delivery::Refused => {}
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
    async fn announce(&self, mut transitions: Vec<Transition>) -> Vec<Transition> {
        if transitions.is_empty() {
            return transitions;
        }
        let now = time::now();
        let unknown = transitions.extract_if(.., |one| self.is_power_unknown(one)).collect::<Vec<_>>();
        self.postpone(&unknown);
        let mut dropped = Vec::new();
        for transition in &mut transitions {
            dropped.extend(self.drop_undue(transition, now));
        }
        // Before the report, which a registry that has begun a newer generation refuses: whoever sees the newer
        // generation sees these too.
        transitions.iter().for_each(|transition| self.effects.begin(transition));
        let stale = self.report(self.beginnings(&transitions)).await;
        let sent_at = Some(time::to_wire(time::now()));
        for transition in &mut transitions {
            dropped.extend(drop_members(transition, |member| !stale.contains(&member.id)));
            transition.delivery = Delivery::Sent.into();
            transition.sent_at = sent_at;
        }
        let (empty, sent): (Vec<_>, Vec<_>) =
            transitions.into_iter().partition(|transition| transition.members.is_empty());
        let delete: Vec<_> = empty.into_iter().map(|transition| transition.id).collect();
        self.notes.lock().retain(|id, _| !delete.contains(id));
        self.write(Changes { put: sent.clone(), delete }).await;
        self.withdraw(&dropped);
        sent
    }

    /// Whether nobody knows the power of a member that still is in the generation of its attempt. Then it is
    /// neither time to act nor to give the attempt up.
    fn is_power_unknown(&self, transition: &Transition) -> bool {
        transition.members.iter().any(|member| {
            let component = self.components.get(&member.id);
            component.is_some_and(|one| {
                one.generation == member.generation && self.power(&one) == PowerObservation::Unknown
            })
        })
    }

    /// Looks at transitions again later, as if the upstream had not been reached.
    fn postpone(&self, transitions: &[Transition]) {
        for transition in transitions {
            let failures = {
                let mut notes = self.notes.lock();
                let note = notes.entry(transition.id.clone()).or_default();
                note.failures += 1;
                note.failures
            };
            self.undelivered.mark_at(transition.id.as_str().into(), Instant::now() + pause::after(failures));
        }
    }

    /// Drops the members that do not need the attempt any more, as far as is known here.
    fn drop_undue(&self, transition: &mut Transition, now: Timestamp) -> Vec<ComponentId> {
        let (Some(action), Some(record)) =
            (convert::action(transition), self.options.get(OptionsRecord::KEY))
        else {
            return Vec::new();
        };
        drop_members(transition, |member| {
            let component = self.components.get(&member.id);
            component.is_some_and(|one| {
                plan::still_due(&one, &self.power(&one), action, member, &record.options, now)
            })
        })
    }

    /// An error that the members show is said again, because a report without it would take it away.
    fn beginnings(&self, transitions: &[Transition]) -> Vec<ActionReport> {
        let notes = self.notes.lock();
        let shown = |transition: &Transition| notes.get(&transition.id).map_or("", |note| &note.shown);
        transitions.iter().flat_map(|transition| convert::reports(transition, shown(transition))).collect()
    }

    fn withdraw(&self, dropped: &[ComponentId]) {
        let mut intents = self.intents.lock();
        for id in dropped {
            intents.withdraw(id);
            self.effects.cancel(id);
            self.undecided.mark_at(id.clone(), Instant::now() + BEHIND);
        }
        self.unread.mark(dropped.iter().cloned());
    }

    /// Tells the registry and does not give up: what it does not know of must not happen. Gives the ids of
    /// components whose generation has passed.
    async fn report(&self, reports: Vec<ActionReport>) -> HashSet<String> {
        if reports.is_empty() {
            return HashSet::new();
        }
        let request = ReportActionsRequest { reports };
        let mut failures = 0;
        loop {
            let mut registry = self.registry.clone();
            let call = registry.report_actions(request.clone());
            failures += 1;
            match within(REGISTRY_DEADLINE, call).await {
                Ok(response) => return response.into_inner().stale_ids.into_iter().collect(),
                Err(status) => tracing::warn!(%status, failures, "cannot report actions, trying again"),
            }
            tokio::time::sleep(pause::after(failures)).await;
        }
    }

    async fn call(&self, transition: Transition) {
        let Some(action) = convert::action(&transition) else {
            return self.refused(transition, "the transition has no action").await;
        };
        let ids = transition.members.iter().map(|member| member.id.clone()).collect();
        match self.driver.start(action, ids, upstream_deadline(&self.options)).await {
            Ok(upstream_id) => self.accepted(transition, &upstream_id).await,
            Err(Failure::Refused(text)) => match plan::halves(&transition.members) {
                Some(halves) => self.split(transition, halves, &text).await,
                None => self.refused(transition, &text).await,
            },
            Err(Failure::Denied(text)) => self.refused(transition, &text).await,
            Err(Failure::Unreachable(text)) => self.unreachable(transition, &text).await,
            Err(Failure::Ambiguous(text)) => self.in_doubt(&transition, &text).await,
        }
    }

    /// The upstream took the transition.
    pub(crate) async fn accepted(&self, transition: Transition, upstream_id: &str) {
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
        self.effects.accepted(&accepted, time::now());
        self.finish(accepted).await;
        self.report(clearances).await;
    }

    /// Whether a member still shows that the upstream was not reached. A restart forgets the note, the
    /// component does not.
    fn shows_error(&self, transition: &Transition) -> bool {
        let noted = self.notes.lock().get(&transition.id).is_some_and(|note| !note.shown.is_empty());
        noted
            || transition.members.iter().any(|member| {
                self.components.get(&member.id).is_some_and(|component| !component.power_error.is_empty())
            })
    }

    /// The upstream will not do it. The error is told first: the ledger then says that it was.
    async fn refused(&self, transition: Transition, error: &str) {
        let nodes = transition.members.len();
        tracing::warn!(transition = transition.id, error, nodes, "transition refused");
        self.report(convert::reports(&transition, error).collect()).await;
        convert::component_ids(&transition.members).for_each(|id| self.effects.cancel(&id));
        let refused =
            Transition { delivery: Delivery::Refused.into(), error: error.to_owned(), ..transition };
        self.finish(refused).await;
    }

    /// Records what became of a transition; its members can be acted on again, and a newer generation of them
    /// may have waited for that.
    async fn finish(&self, transition: Transition) {
        let ids: Vec<_> = convert::component_ids(&transition.members).collect();
        let delete = {
            let mut finished = self.finished.lock();
            finished.add(&transition);
            finished.surplus()
        };
        self.notes.lock().remove(&transition.id);
        self.write(Changes { put: vec![transition], delete }).await;
        {
            let mut intents = self.intents.lock();
            ids.iter().for_each(|id| intents.close(id));
        }
        self.unread.mark(ids.iter().cloned());
        self.undecided.mark(ids);
    }

    /// One node may be why all were refused: each half is tried by itself, as the same attempt.
    async fn split(&self, transition: Transition, halves: [Vec<TransitionMember>; 2], error: &str) {
        let nodes = transition.members.len();
        tracing::info!(transition = transition.id, error, nodes, "transition refused, splitting it");
        let put = halves.map(|members| Transition {
            id: uuid::Uuid::new_v4().to_string(),
            members,
            delivery: Delivery::Prepared.into(),
            sent_at: None,
            ..transition.clone()
        });
        {
            let mut notes = self.notes.lock();
            if let Some(note) = notes.remove(&transition.id) {
                notes.extend(put.iter().map(|half| (half.id.clone(), note.clone())));
            }
        }
        let ids = put.each_ref().map(|half| Arc::from(half.id.as_str()));
        self.write(Changes { put: put.into(), delete: vec![transition.id] }).await;
        self.undelivered.mark(ids);
    }

    /// Nothing was sent. The transition waits for the upstream; its members show why, once per outage.
    async fn unreachable(&self, transition: Transition, error: &str) {
        let waiting = Transition {
            delivery: Delivery::Prepared.into(),
            error: error.to_owned(),
            sent_at: None,
            ..transition
        };
        self.write(Changes { put: vec![waiting.clone()], delete: Vec::new() }).await;
        let (failures, news) = self.note_failure(&waiting.id, error);
        if news {
            tracing::warn!(transition = waiting.id, error, "power upstream not reached, trying again");
            self.report(convert::reports(&waiting, error).collect()).await;
        }
        self.undelivered.mark_at(waiting.id.as_str().into(), Instant::now() + pause::after(failures));
    }

    /// Counts a failure to reach the upstream, and says whether the members do not show one yet.
    fn note_failure(&self, id: &str, error: &str) -> (u32, bool) {
        let mut notes = self.notes.lock();
        let note = notes.entry(id.to_owned()).or_default();
        let news = note.shown.is_empty();
        if news {
            error.clone_into(&mut note.shown);
        }
        note.failures += 1;
        (note.failures, news)
    }

    async fn in_doubt(&self, transition: &Transition, error: &str) {
        tracing::warn!(transition = transition.id, error, "transition in doubt, looking for it");
        let since = Some(Instant::now());
        self.notes.lock().entry(transition.id.clone()).or_default().unknown_since = since;
        self.write(Changes { put: vec![unknown(transition, error)], delete: Vec::new() }).await;
        self.undelivered.mark([transition.id.as_str().into()]);
    }
}

/// Keeps the members that `keep` picks and gives the components of the others.
fn drop_members(transition: &mut Transition, keep: impl Fn(&TransitionMember) -> bool) -> Vec<ComponentId> {
    let members = std::mem::take(&mut transition.members);
    let (kept, dropped): (Vec<_>, Vec<_>) = members.into_iter().partition(keep);
    transition.members = kept;
    convert::component_ids(&dropped).collect()
}
