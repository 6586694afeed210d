//! Takes over nodes and transitions as they come to this replica, and knows what others do to theirs.
//!
//! A transition belongs to one replica from beginning to end, also when some of its nodes have become another's
//! meanwhile. So every replica knows all that are open, and asks nothing of a node that one of them is about.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    convert::Infallible,
    mem,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use chassis::{clock, lease::Takeover, resource::Batch};
use domain::{
    boot::component::loss::may_have_been_sent,
    core::{id::ComponentId, trouble::TroubleKind},
};
use futures_util::StreamExt;
use proto::power::{Delivery, Transition, TransitionMember};
use tokio::time::{Instant, sleep_until, timeout};

use crate::{
    act::{Actor, unknown},
    convert,
    journal::{Changes, is_open},
    loss::Whose,
    outcome,
    plan::Attempt,
};

/// The transitions that are open, by id, as far as the journal was followed.
pub(crate) struct Open {
    transitions: HashMap<String, Arc<Transition>>,
    /// Up to where that is.
    revision: u64,
    /// The last ones that were open and are not, the oldest first: a loss may bring them back.
    left: VecDeque<String>,
    /// What a stream that began anew has told so far.
    parts: Vec<Arc<Batch<Transition>>>,
    /// How long others have to record again what of theirs is missing.
    recorded_again: Duration,
    /// Until when they have it.
    missing_until: Option<Instant>,
}

/// How many of those that were open are remembered: more than end in the moments that a failover may lose.
const MOST_LEFT: usize = 1_000;

/// How long others have at least to record again what the database lost of theirs: more than it may take until somebody has
/// taken it over.
const RECORDED_AGAIN: Duration = Duration::from_secs(30);

/// How long to wait for the registry or the database to answer.
const ANSWER: Duration = Duration::from_secs(2);

impl Open {
    /// The transition of that id, if it is open.
    pub(crate) fn get(&self, id: &str) -> Option<&Transition> {
        self.transitions.get(id).map(|one| &**one)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Transition>> {
        self.transitions.values()
    }

    /// Whether the transition was open, and then was not.
    pub(crate) fn has_left(&self, id: &str) -> bool {
        self.left.iter().any(|left| left == id)
    }

    fn leaves(&mut self, id: &str) {
        if self.left.len() >= MOST_LEFT {
            self.left.pop_front();
        }
        self.left.push_back(id.to_owned());
    }
}

impl Actor {
    /// Learns what was on record at the start: an attempt in the journal is not made again. `lease`: how long leases last.
    pub(crate) fn recall(&self, lease: Duration) -> Open {
        let mut intents = self.intents.lock();
        let mut open = Open {
            transitions: HashMap::new(),
            revision: self.journal.opened_at(),
            left: VecDeque::new(),
            parts: Vec::new(),
            recorded_again: RECORDED_AGAIN.max(lease.saturating_mul(3)),
            missing_until: None,
        };
        for transition in self.journal.all() {
            let is_open = is_open(&transition);
            convert::attempts(&transition).for_each(|(id, attempt)| intents.recall(id, attempt, is_open));
            if is_open {
                open.transitions.insert(transition.id.clone(), transition);
            }
        }
        open
    }

    /// Follows what others write, and takes over what comes to this replica, without end.
    pub(crate) async fn attend(&self, mut open: Open) -> anyhow::Result<Infallible> {
        let mut written = pin!(self.journal.follow());
        let mut takeovers = pin!(self.known.custody.takeovers());
        loop {
            let missing_until = open.missing_until;
            tokio::select! {
                () = sleep_until(missing_until.unwrap_or_else(Instant::now)), if missing_until.is_some() => {
                    self.forget_missing(&mut open).await;
                }
                Some(batch) = written.next() => self.follow_on(&mut open, batch).await,
                Some(takeover) = takeovers.next() => {
                    // First of all what is lost is recorded again: this replica may have the shards for a moment.
                    let revision = self.journal.catch_up().await;
                    while open.revision < revision
                        && let Some(batch) = written.next().await
                    {
                        self.follow_on(&mut open, batch).await;
                    }
                    self.make_good(&open, Whose::Coming(&takeover)).await;
                    // What the last holder wrote is known before anything is decided, and what it has reported. The
                    // registry is told of every attempt before it is made, and lets none begin that others have
                    // followed; so one that does not answer is not waited for.
                    self.known.states.catch_up().await;
                    let is_told = timeout(ANSWER, self.known.components.catch_up()).await.is_ok();
                    self.known.withdraw_inherited(&takeover, is_told).await;
                    self.take_over(&takeover, &open).await;
                }
            }
        }
    }

    /// The stream may have begun anew, because of commits that the database has lost. Then it tells in parts what there is,
    /// and nothing of it is taken for known before it was compared with what is.
    async fn follow_on(&self, open: &mut Open, batch: Arc<Batch<Transition>>) {
        let is_old = batch.changed.iter().any(|transition| transition.revision <= open.revision);
        let is_whole = batch.synced;
        open.parts.push(batch);
        if is_whole {
            self.make_good(open, Whose::Ours).await;
        } else if is_old || open.parts.len() > 1 {
            return;
        }
        let told = open.revision;
        for part in mem::take(&mut open.parts) {
            self.follow_others(open, told, &part);
        }
    }

    /// What this replica has is recorded where it is done; here it is only remembered that it is open.
    /// Everything up to revision `told` was known before.
    fn follow_others(&self, open: &mut Open, told: u64, batch: &Batch<Transition>) {
        for deletion in &batch.deleted {
            let Some(gone) = open.transitions.remove(&*deletion.key) else { continue };
            open.leaves(&gone.id);
            if !self.known.custody.has(&gone.id) {
                self.notes.forget(&gone.id);
                self.withdraw_dropped(&gone, None);
            }
        }
        for transition in &batch.changed {
            let ours = self.known.custody.has(&transition.id);
            if ours && transition.abandoned_at.is_some() && is_open(transition) {
                self.go_on_with(transition);
            }
            match (open.transitions.remove(&transition.id), is_open(transition)) {
                // It was over and has come back after a loss. Whoever has it, now or next, has it go again.
                (None, true) if open.has_left(&transition.id) => {}
                (before, true) => {
                    if !ours {
                        self.goes_on_elsewhere(before.as_deref(), transition);
                    }
                    // What is older had come back after a loss, and is put right.
                    let newest = before.filter(|before| before.revision > transition.revision);
                    let newest = newest.unwrap_or_else(|| Arc::clone(transition));
                    open.transitions.insert(transition.id.clone(), newest);
                }
                (before, false) => {
                    if before.is_some() {
                        open.leaves(&transition.id);
                    }
                    let news = before.is_some() || transition.revision > told;
                    if !ours && news {
                        self.ended_elsewhere(before.as_deref(), transition);
                    }
                }
            }
        }
        if batch.synced {
            // It is not told what was deleted meanwhile. What others have lost they record again, or whoever takes it
            // over does.
            let custody = &self.known.custody;
            open.transitions.retain(|id, _| !custody.has(id) || self.journal.get(id).is_some());
            open.missing_until = Some(Instant::now() + open.recorded_again);
        }
        // What was recalled is told once more at the start.
        open.revision = open.revision.max(batch.revision);
    }

    /// What nobody has recorded again was not lost: it was deleted while it was not told what is.
    async fn forget_missing(&self, open: &mut Open) {
        // As long as the database is away nobody can record anything, and what it has lost is to be heard of first.
        let again = match timeout(ANSWER, self.journal.catch_up()).await {
            Ok(revision) if revision <= open.revision && open.parts.is_empty() => None,
            Ok(_) => Some(ANSWER),
            Err(_) => Some(open.recorded_again),
        };
        open.missing_until = again.map(|pause| Instant::now() + pause);
        if open.missing_until.is_some() {
            return;
        }
        let is_missing = |id: &String| !self.known.custody.has(id) && self.journal.get(id).is_none();
        for (id, gone) in open.transitions.extract_if(|id, _| is_missing(id)) {
            self.notes.forget(&id);
            self.withdraw_dropped(&gone, None);
        }
    }

    fn goes_on_elsewhere(&self, before: Option<&Transition>, now: &Transition) {
        match before {
            None => self.effects.begin(now),
            Some(before) => {
                self.withdraw_dropped(before, Some(now));
                self.cancel_failed(now);
            }
        }
        self.effects.follow(now, false);
        let mut intents = self.intents.lock();
        convert::attempts(now).for_each(|(id, attempt)| intents.recall(id, attempt, true));
    }

    /// Members of `before` that are not in `now` any more are not acted on after all.
    fn withdraw_dropped(&self, before: &Transition, now: Option<&Transition>) {
        let kept: HashSet<_> = now.into_iter().flat_map(convert::attempts).collect();
        let gone = convert::attempts(before).filter(|attempt| !kept.contains(attempt));
        let withdrawn: Vec<_> = {
            let mut intents = self.intents.lock();
            gone.filter(|(id, attempt)| intents.withdraw_attempt(id, *attempt)).collect()
        };
        for (id, _) in withdrawn {
            self.effects.cancel(&id);
            self.queues.undecided.mark([id.clone()]);
            self.queues.unread.mark([id]);
        }
    }

    /// Attempts on nodes that come, but in none of the open transitions, were given up by whoever had the nodes meanwhile.
    fn withdraw_abandoned<'a>(
        &self,
        transitions: impl Iterator<Item = &'a Arc<Transition>>,
        takeover: &Takeover,
    ) {
        let open = transitions.filter(|one| is_open(one));
        let open: HashSet<_> = open.flat_map(|one| convert::attempts(one)).collect();
        let is_abandoned = |id: &ComponentId, attempt: Attempt| {
            takeover.gains(id.as_str()) && !open.contains(&(id.clone(), attempt))
        };
        let abandoned = self.intents.lock().withdraw_all(is_abandoned);
        abandoned.iter().for_each(|id| self.effects.cancel(id));
    }

    fn ended_elsewhere(&self, before: Option<&Transition>, now: &Transition) {
        self.notes.forget(&now.id);
        match before {
            None => self.effects.begin(now),
            Some(before) => self.withdraw_dropped(before, Some(now)),
        }
        match now.delivery() {
            Delivery::Refused => convert::component_ids(&now.members).for_each(|id| self.effects.cancel(&id)),
            Delivery::Finished => {
                self.cancel_failed(now);
                match self.driver.follows() {
                    true => {
                        self.effects.ended(now, clock::now());
                        // This replica may have read some of the nodes before the end.
                        self.effects.leave_open(now, clock::now());
                    }
                    false => self.effects.accepted(now, clock::now()),
                }
            }
            Delivery::Unspecified
            | Delivery::Prepared
            | Delivery::Sent
            | Delivery::Unknown
            | Delivery::Accepted => {}
        }
        let attempts: Vec<_> = convert::attempts(now).collect();
        if before.is_none() {
            let mut intents = self.intents.lock();
            attempts.iter().for_each(|(id, attempt)| intents.recall(id.clone(), *attempt, false));
        }
        self.close(&attempts);
    }

    /// Nothing comes of an action on a node that has failed.
    fn cancel_failed(&self, transition: &Transition) {
        let failed = transition.members.iter().filter(|member| outcome::has_failed(member)).cloned();
        convert::component_ids(&failed.collect::<Vec<_>>()).for_each(|id| self.effects.cancel(&id));
    }

    async fn take_over(&self, takeover: &Takeover, open: &Open) {
        let all = self.journal.all();
        // Notes are about what this replica has seen, and another has seen more since.
        all.iter().filter(|one| takeover.concerns(&one.id)).for_each(|one| self.notes.forget(&one.id));
        self.withdraw_abandoned(all.iter().chain(open.all()), takeover);
        let came: Vec<_> = all.into_iter().filter(|one| takeover.gains(&one.id) && is_open(one)).collect();
        let in_doubt: Vec<_> = came.iter().filter(|one| self.is_in_doubt(one)).collect();
        for one in in_doubt.iter().filter(|one| one.delivery() != Delivery::Unknown) {
            self.doubt(one, takeover).await;
        }
        if takeover.is_from_others() {
            in_doubt.iter().for_each(|one| self.notes.inherit_doubt(&one.id, Instant::now()));
        }
        self.known.custody.take(takeover);
        came.iter().for_each(|transition| self.go_on_with(transition));
        let nodes = self.known.nodes(|id| takeover.gains(id));
        self.queues.unread.mark(nodes.iter().cloned());
        self.queues.undecided.mark(nodes);
    }

    /// Whether a call may have been made whose answer is not on record.
    fn is_in_doubt(&self, transition: &Transition) -> bool {
        match transition.delivery() {
            Delivery::Sent | Delivery::Unknown => true,
            Delivery::Prepared => {
                transition.members.iter().any(|member| self.may_have_been_sent(transition, member))
            }
            Delivery::Unspecified | Delivery::Accepted | Delivery::Refused | Delivery::Finished => false,
        }
    }

    fn may_have_been_sent(&self, transition: &Transition, member: &TransitionMember) -> bool {
        let component = self.known.components.get(&member.id);
        convert::action(transition).is_none_or(|action| {
            may_have_been_sent(component.as_deref(), action, member.generation, member.attempt)
        })
    }

    /// What was being sent may have arrived or not. Each transition is written down by itself: the loss of one shard
    /// takes nothing from the others.
    async fn doubt(&self, sent: &Transition, takeover: &Takeover) {
        let Some(fence) = takeover.fence([sent.id.as_str()]) else { return };
        let text = match sent.delivery() {
            Delivery::Prepared => "it is not known whether this was sent",
            _ => "the service stopped before the answer came",
        };
        let in_doubt = unknown(sent, text);
        let put = vec![in_doubt];
        if let Err(lost) = self.journal.write(Changes { put, delete: Vec::new() }, &fence).await {
            // That is the next thing to hear of.
            tracing::info!(transition = sent.id, why = %lost, "what came has gone again");
        }
    }

    pub(crate) fn go_on_with(&self, transition: &Transition) {
        let id = [transition.id.as_str().into()];
        match transition.delivery() {
            Delivery::Prepared => {
                let trouble = convert::trouble(transition);
                if let Some(waits) = trouble.filter(|trouble| trouble.kind() == TroubleKind::Waiting) {
                    self.notes.show(&transition.id, &waits, Instant::now());
                }
                self.queues.undelivered.mark(id);
            }
            Delivery::Sent | Delivery::Unknown => self.queues.undelivered.mark(id),
            Delivery::Accepted => self.queues.unfollowed.mark(id),
            Delivery::Unspecified | Delivery::Refused | Delivery::Finished => {}
        }
    }
}
