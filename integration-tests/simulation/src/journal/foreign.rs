//! Transitions of other clients of the power service, and the people who abandon them.

use std::{mem, sync::Arc, time::Duration};

use chassis::{
    kinds::power::PowerStateRecord,
    store::{disk::KeptCommit, resource::Batch},
};
use domain::boot::power::transition::PowerTransition;
use proto::{component::Action, power::PowerReading};
use tokio::time::Instant;

use super::{History, Journal, State, power_states};
use crate::{invariants, world::Part};

/// Hold of another client's transition on a node.
pub(super) struct ForeignHold {
    id: String,
    since: Instant,
    /// Reading that was stored as evidence meanwhile.
    believed: Option<String>,
}

/// Longest time between the question for transitions of other clients and the commit of a reading that rests on it.
const BELIEVES: Duration = Duration::from_secs(20);

/// Time within which the power controller stops to show that it waits for an abandoned transition.
const FORGETS: Duration = Duration::from_secs(15);

impl Journal {
    /// Records that the power controller has promised to abandon a transition. A database that loses commits may lose the
    /// promise.
    pub fn abandoned(&self, upstream_id: &str) {
        let mut state = self.state.lock();
        if !state.set_back.contains(&Part::Power) {
            state.abandoned.entry(upstream_id.to_owned()).or_insert_with(Instant::now);
        }
    }

    /// Forgets that a transition was abandoned, whose record was lost.
    pub fn forget_abandonment(&self, upstream_id: &str) {
        self.state.lock().abandoned.remove(upstream_id);
    }

    /// Lets the journal judge how soon the power controller learns of transitions of other clients.
    pub fn expect_learning(&self) {
        self.state.lock().is_calm = true;
    }

    /// Notes the nodes that transitions of other clients hold now, each with its transition and the beginning of that, and
    /// judges what the power controller has made of them.
    pub fn note_foreign(&self, held: Vec<(String, String, Instant)>) {
        let mut state = self.state.lock();
        let mut before = mem::take(&mut state.foreign);
        for (node, id, since) in held {
            if state.abandoned.contains_key(&id) {
                continue;
            }
            let known = before.remove(&node).filter(|hold| hold.id == id);
            let mut hold = known.unwrap_or(ForeignHold { id, since, believed: None });
            if let Some(what) = hold.believed.take() {
                state.judge("I5", Err(what));
            }
            if state.is_calm {
                let powers = state.powers.get(&node).map(power_states).unwrap_or_default();
                let components = state.components.get(&node).map(History::recent).unwrap_or_default();
                let checked = invariants::holder_is_learnt(&hold.id, since.elapsed(), &powers, &components);
                state.judge("I2", checked);
            }
            state.foreign.insert(node, hold);
        }
        if state.is_calm {
            state.judge_waits();
        }
        self.tell(&state);
    }

    /// I2: judges a call for a node that a foreign transition holds.
    pub fn asked_although_held(&self, node: &str, action: Action, holder: &str) {
        let mut state = self.state.lock();
        let mut known = state.holders.get(node).cloned().unwrap_or_default();
        known.retain(|id| !state.abandoned.contains_key(id));
        state.judge("I2", invariants::holder_not_known(node, action, holder, &known));
        self.tell(&state);
    }
}

impl State {
    /// Notes a reading that is stored as evidence while another client's transition holds the node. The next look at the
    /// machine shows whether it still does.
    pub(super) fn note_belief(&mut self, power: &PowerStateRecord) {
        let (id, power) = (power.id(), power.content());
        let generation = self.components.get(id).and_then(History::last).map(|one| one.generation);
        let is_evidence = matches!(power.reading(), PowerReading::On | PowerReading::Off)
            && Some(power.generation) == generation;
        if let Some(hold) =
            self.foreign.get_mut(id).filter(|hold| is_evidence && hold.since.elapsed() > BELIEVES)
        {
            let (holder, since) = (&hold.id, hold.since.elapsed());
            hold.believed =
                Some(format!("{id}: {:?} counts while {holder} holds it for {since:?}", power.reading()));
        }
    }

    /// I2: judges that a power state names no transition that was abandoned a while ago.
    pub(super) fn judge_wait(&mut self, power: &PowerStateRecord) {
        let abandoned = self.abandoned.iter().filter(|(_, at)| at.elapsed() > FORGETS);
        let checked = invariants::abandoned_not_awaited(
            power.id(),
            power.content(),
            abandoned.map(|(id, _)| id.as_str()),
        );
        self.judge("I2", checked);
    }

    /// I2: judges the present power states of enabled nodes.
    fn judge_waits(&mut self) {
        let is_enabled = |id: &String| {
            let recent = self.components.get(id).map(History::recent).unwrap_or_default();
            !recent.is_empty() && recent.iter().all(|one| one.is_enabled())
        };
        let enabled = self.powers.iter().filter(|(id, _)| is_enabled(id));
        let present: Vec<_> = enabled.filter_map(|(_, history)| history.last()).collect();
        present.iter().for_each(|power| self.judge_wait(power));
    }

    /// Returns the keys that a replica without the role wrote, but for transitions that it marked as abandoned: any replica
    /// takes that request.
    pub(super) fn without_marks(&self, commit: &KeptCommit<'_>) -> Vec<String> {
        let Some(batch) = commit.batch.downcast_ref::<Batch<PowerTransition>>() else {
            return commit.foreign.clone();
        };
        let is_abandoned = |one: &Arc<PowerTransition>| one.abandoned_at.is_some();
        let is_mark = |key: &&String| {
            let changed = batch.changed.iter().find(|one| one.id == **key);
            changed.is_some_and(is_abandoned) && !self.transitions.get(*key).is_some_and(is_abandoned)
        };
        commit.foreign.iter().filter(|key| !is_mark(key)).cloned().collect()
    }
}
