//! Which actions may still change the power of their nodes.
//!
//! An action does not end with the generation that it was for. Until its effect has come, or its time has
//! passed, what is read of the node is no evidence for a newer generation.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use chassis::{
    convert::{observation, time},
    memory::leave_room,
};
use domain::{
    boot::{
        bos::options::Options,
        component::{Action, Component},
        power::{self, Course, Outlook},
    },
    core::{clock_offset::ClockOffset, id::ComponentId, time::Timestamp},
};
use parking_lot::Mutex;
use proto::power::{Delivery, PowerReading, PowerState, Transition, TransitionMember};
use tokio::time::Instant;

use crate::{convert, outcome};

/// The last action on each component, as long as its effect was not seen. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Effects {
    awaited: Arc<Mutex<HashMap<ComponentId, Effect>>>,
    /// Nodes whose power was left open by an action that is over, until it is read anew.
    unread: Arc<Mutex<HashMap<ComponentId, LeftOpen>>>,
}

/// The end of an action of which the upstream did not say what became of the power.
#[derive(Debug, Clone, Copy)]
struct LeftOpen {
    since: Instant,
    /// When the power can have changed last, where readings may be of before that; none: whatever is asked for counts.
    at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
struct Effect {
    action: Action,
    generation: u64,
    course: Course,
    /// Transition of the upstream that carries it out; `None`: not known yet, or in doubt.
    upstream_id: Option<Arc<str>>,
    /// Whether the upstream tells what becomes of the transition. Otherwise the power of the node has to be read.
    followed: bool,
    /// Whether the node has reported the boot that came of it.
    reported: bool,
}

/// An action that the upstream may still carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenAction {
    /// In doubt: the upstream may take it or not.
    InDoubt,
    /// The upstream took it as this transition.
    Taken(Arc<str>),
}

impl Effects {
    /// Recalls what a previous run left. Effects that were seen, or whose time has passed, are found out
    /// about like any other.
    pub(crate) fn recall(mut transitions: Vec<Arc<Transition>>) -> Self {
        transitions.sort_by_key(|one| one.created_at.map(time::from_wire));
        let effects = Self::default();
        for transition in transitions {
            match transition.delivery() {
                Delivery::Prepared | Delivery::Sent | Delivery::Unknown => effects.begin(&transition),
                Delivery::Accepted => {
                    effects.begin(&transition);
                    effects.follow(&transition, false);
                }
                Delivery::Finished => {
                    effects.begin(&transition);
                    // The moment of the answer is not on record.
                    effects.accepted(&transition, convert::sent_at(&transition));
                }
                Delivery::Unspecified | Delivery::Refused => {}
            }
        }
        effects
    }

    /// From here on the upstream may take the transition. An earlier action is superseded: the upstream goes
    /// by the last that it took. What became of a member is not awaited any more once it is known.
    pub(crate) fn begin(&self, transition: &Transition) {
        let Some(action) = convert::action(transition) else { return };
        let mut awaited = self.awaited.lock();
        for member in &transition.members {
            let Ok(id) = ComponentId::parse(&member.id) else { continue };
            if outcome::is_unresolved(member) {
                let (generation, course) = (member.generation, Course::Open);
                let (upstream_id, followed, reported) = (None, false, false);
                awaited.insert(id, Effect { action, generation, course, upstream_id, followed, reported });
            } else {
                awaited.remove(&id);
            }
        }
        leave_room(&mut awaited);
    }

    /// The upstream took the transition and will tell no more of it: from `at` on its effects have their time.
    /// Effects that were seen before stay seen.
    pub(crate) fn accepted(&self, transition: &Transition, at: Timestamp) {
        self.leave(transition, Course::Taken(at));
    }

    /// The upstream is done with the transition, or will never say that it is.
    pub(crate) fn ended(&self, transition: &Transition, at: Timestamp) {
        self.leave(transition, Course::Ended(at));
    }

    /// From now on only the power of the nodes tells.
    fn leave(&self, transition: &Transition, course: Course) {
        let mut awaited = self.awaited.lock();
        for member in &transition.members {
            if let Some(effect) = awaited.get_mut(member.id.as_str()) {
                effect.course = course;
            }
        }
    }

    /// A node that has reported the boot of its power-on shows the effect, whatever is read of its power.
    pub(crate) fn note_report(&self, component: &Component) {
        if !component.has_reported_attempt() {
            return;
        }
        if let Some(effect) = self.awaited.lock().get_mut(component.id.as_str())
            && effect.action == Action::PoweringOn
            && effect.generation == component.generation
        {
            effect.reported = true;
        }
    }

    /// Says of the effects of a transition that the upstream took it, and whether the upstream tells what becomes of it. One
    /// without an id of the upstream is in doubt again.
    pub(crate) fn follow(&self, transition: &Transition, followed: bool) {
        let upstream_id = (!transition.upstream_id.is_empty()).then(|| Arc::from(&*transition.upstream_id));
        let mut awaited = self.awaited.lock();
        for member in &transition.members {
            let effect = awaited.get_mut(member.id.as_str());
            if let Some(effect) = effect.filter(|effect| effect.generation == member.generation) {
                effect.upstream_id.clone_from(&upstream_id);
                effect.followed = followed;
            }
        }
    }

    /// Whether the upstream will tell what becomes of an action on the node. It does no more once that has ended, which may
    /// be known before the answer is: another replica may have taken over while this one waited.
    pub(crate) fn is_followed(&self, id: &str) -> bool {
        self.awaited.lock().get(id).is_some_and(Effect::is_followed)
    }

    /// Whether an action of an older generation than `generation` is followed.
    pub(crate) fn is_older_followed(&self, id: &str, generation: u64) -> bool {
        let awaited = self.awaited.lock();
        let effect = awaited.get(id).filter(|effect| effect.generation < generation);
        effect.is_some_and(Effect::is_followed)
    }

    /// Returns the open action because of which a reading does not tell how a node ends up: it may still have the effect
    /// that the `reading` lacks. A shutdown is left out, because one that has no effect in its time is withdrawn by what is
    /// read.
    pub(crate) fn open_against(&self, id: &str, reading: PowerReading) -> Option<OpenAction> {
        let awaited = self.awaited.lock();
        let effect = awaited.get(id)?;
        let lacks_effect = match effect.action {
            Action::PoweringOn => reading != PowerReading::On,
            Action::PoweringOffForcefully => reading != PowerReading::Off,
            Action::PoweringOffGracefully
            | Action::ActualStateCleanup
            | Action::ApplyStaged
            | Action::NewlyDiscovered
            | Action::SessionSetup => false,
        };
        if !lacks_effect || effect.course != Course::Open {
            return None;
        }
        Some(effect.upstream_id.clone().map_or(OpenAction::InDoubt, OpenAction::Taken))
    }

    /// Whether nobody knows whether the upstream takes the last action on the node.
    pub(crate) fn is_in_doubt(&self, id: &str) -> bool {
        let awaited = self.awaited.lock();
        awaited.get(id).is_some_and(|effect| effect.course == Course::Open && effect.upstream_id.is_none())
    }

    /// Returns the open transition of the upstream that is about the node.
    pub(crate) fn open_transition(&self, id: &str) -> Option<Arc<str>> {
        self.awaited.lock().get(id)?.open_transition().cloned()
    }

    /// A transition is over, and the upstream did not say what the power of some of its nodes is: what was read before does
    /// not count any more. Where it said nothing at all of a node, it may show for a while what it saw before. Nodes that
    /// have reported their boot have told it themselves.
    pub(crate) fn leave_open(&self, transition: &Transition, at: Timestamp) {
        let since = Instant::now();
        let awaited = self.awaited.lock();
        let is_reported = |member: &TransitionMember| {
            let effect = awaited.get(member.id.as_str());
            effect.is_some_and(|effect| effect.reported && effect.generation == member.generation)
        };
        let left = transition.members.iter().filter(|member| outcome::leaves_power_open(member));
        let left = left.filter(|member| !is_reported(member));
        let left = left.filter_map(|member| {
            let at = outcome::is_unresolved(member).then_some(at);
            Some((ComponentId::parse(&member.id).ok()?, LeftOpen { since, at }))
        });
        self.unread.lock().extend(left);
    }

    /// Whether the power of the node has to be read before anything is done about it.
    pub(crate) fn is_left_open(&self, id: &str) -> bool {
        self.unread.lock().contains_key(id)
    }

    /// The power of the node was read and stored. `as_of`: since when it is so by the `clock` of the upstream.
    pub(crate) fn read(
        &self,
        id: &ComponentId,
        asked_at: Instant,
        as_of: Option<Timestamp>,
        clock: Option<ClockOffset>,
    ) {
        let mut unread = self.unread.lock();
        let Some(LeftOpen { since, at }) = unread.get(id).copied() else { return };
        let after = asked_at.checked_duration_since(since);
        if at.map_or(after.is_some(), |at| power::is_newer(after, as_of, at, clock)) {
            unread.remove(id);
        }
    }

    /// Members have failed: if they were begun, their effect may still come.
    pub(crate) fn fail(&self, members: &[TransitionMember], at: Timestamp) {
        let mut awaited = self.awaited.lock();
        for member in members {
            let effect = awaited.get_mut(member.id.as_str());
            if let Some(effect) = effect.filter(|effect| effect.generation == member.generation) {
                effect.course = Course::Ended(at);
            }
        }
    }

    /// The upstream does not take it: nothing comes of it.
    pub(crate) fn cancel(&self, id: &ComponentId) {
        let mut awaited = self.awaited.lock();
        if let Entry::Occupied(effect) = awaited.entry(id.clone())
            && effect.get().course == Course::Open
        {
            effect.remove();
            leave_room(&mut awaited);
        }
    }

    /// Whether an action of an older generation than `generation` may still change what `state` says.
    pub(crate) fn outlook(
        &self,
        state: &PowerState,
        generation: u64,
        options: &Options,
        now: Timestamp,
    ) -> Outlook {
        match self.awaited.lock().get(state.id.as_str()) {
            Some(effect) if effect.generation < generation => effect.outlook(state, options, now),
            _ => Outlook::Settled,
        }
    }

    /// Ends the wait for an effect that `state` shows, or whose time has passed. Gives the generation that it
    /// was for.
    pub(crate) fn settle(&self, state: &PowerState, options: &Options, now: Timestamp) -> Option<u64> {
        let mut awaited = self.awaited.lock();
        let effect = awaited.get(state.id.as_str())?.clone();
        if effect.outlook(state, options, now) != Outlook::Settled {
            return None;
        }
        awaited.remove(state.id.as_str());
        leave_room(&mut awaited);
        Some(effect.generation)
    }
}

impl Effect {
    /// Returns the transition of the upstream that has not ended.
    fn open_transition(&self) -> Option<&Arc<str>> {
        self.upstream_id.as_ref().filter(|_| self.course == Course::Open)
    }

    fn is_followed(&self) -> bool {
        self.followed && self.open_transition().is_some()
    }

    /// A reading of any generation tells whether the effect has come.
    fn outlook(&self, state: &PowerState, options: &Options, now: Timestamp) -> Outlook {
        if self.reported {
            return Outlook::Settled;
        }
        let power = observation::power(Some(state), state.generation);
        power::outlook(self.action, self.course, &power, options, now)
    }
}

#[cfg(test)]
mod tests;
