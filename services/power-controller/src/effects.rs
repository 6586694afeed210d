//! Keeps the actions that may still change the power of their nodes.
//!
//! An action does not end with the generation that it was for. Until its effect has come, or its time has passed, a
//! reading of the node is no evidence for a newer generation.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use chassis::{kinds::observation, mesh::time, process::memory::leave_room};
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

/// Last action on each component until its effect was seen. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Effects {
    awaited: Arc<Mutex<HashMap<ComponentId, Effect>>>,
    /// Nodes whose power an ended action left open, until they are read again.
    unread: Arc<Mutex<HashMap<ComponentId, LeftOpen>>>,
}

/// End of an action after which the upstream did not report the power.
#[derive(Debug, Clone, Copy)]
struct LeftOpen {
    since: Instant,
    /// Last time at which the power can have changed, where readings may predate it; `None`: every later request
    /// counts.
    at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
struct Effect {
    action: Action,
    generation: u64,
    course: Course,
    /// Transition of the upstream that carries the action out; `None`: not known yet, or in doubt.
    upstream_id: Option<Arc<str>>,
    /// Whether the upstream reports the outcome of the transition. Otherwise the power of the node has to be read.
    followed: bool,
    /// Whether the node has reported the boot of this action.
    reported: bool,
}

/// Action that the upstream may still carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenAction {
    /// In doubt: the upstream may take it or not.
    InDoubt,
    /// The upstream took it as this transition.
    Taken(Arc<str>),
}

impl Effects {
    /// Recalls the effects of recorded transitions. Effects that were seen, or whose time has passed, are settled later
    /// like any other.
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
                    // The time of the answer is not on record.
                    effects.accepted(&transition, convert::sent_at(&transition));
                }
                Delivery::Unspecified | Delivery::Refused => {}
            }
        }
        effects
    }

    /// Begins the effects of a transition, which the upstream may take from now on. An earlier action is superseded:
    /// the upstream carries out the last action that it took. A member with a known outcome is not awaited any more.
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

    /// Records that the upstream took the transition and will report no more about it: from `at` on its effects have
    /// their time. Effects that were seen before stay seen.
    pub(crate) fn accepted(&self, transition: &Transition, at: Timestamp) {
        self.leave(transition, Course::Taken(at));
    }

    /// Records that the upstream has ended the transition, or will never report its end.
    pub(crate) fn ended(&self, transition: &Transition, at: Timestamp) {
        self.leave(transition, Course::Ended(at));
    }

    /// Sets the course after which only the power of the nodes shows the effects.
    fn leave(&self, transition: &Transition, course: Course) {
        let mut awaited = self.awaited.lock();
        for member in &transition.members {
            if let Some(effect) = awaited.get_mut(member.id.as_str()) {
                effect.course = course;
            }
        }
    }

    /// Notes the reported boot of a power-on: it shows the effect, whatever the readings of the power.
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

    /// Records for the effects of a transition that the upstream took it, and whether the upstream reports its outcome.
    /// A transition without an upstream id is in doubt again.
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

    /// Returns whether the upstream will report the outcome of an action on the node. It does not once the transition
    /// has ended, which may be known before the answer arrives: another replica may have taken over while this one
    /// waited.
    pub(crate) fn is_followed(&self, id: &str) -> bool {
        self.awaited.lock().get(id).is_some_and(Effect::is_followed)
    }

    /// Returns whether an action of an older generation than `generation` is followed.
    pub(crate) fn is_older_followed(&self, id: &str, generation: u64) -> bool {
        let awaited = self.awaited.lock();
        let effect = awaited.get(id).filter(|effect| effect.generation < generation);
        effect.is_some_and(Effect::is_followed)
    }

    /// Returns the open action because of which a reading does not show the final power of a node: the action may still
    /// have the effect that the `reading` lacks. A shutdown is left out, because readings withdraw a shutdown that has
    /// no effect in its time.
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

    /// Returns whether it is unknown if the upstream takes the last action on the node.
    pub(crate) fn is_in_doubt(&self, id: &str) -> bool {
        let awaited = self.awaited.lock();
        awaited.get(id).is_some_and(|effect| effect.course == Course::Open && effect.upstream_id.is_none())
    }

    /// Returns the open upstream transition of the node.
    pub(crate) fn open_transition(&self, id: &str) -> Option<Arc<str>> {
        self.awaited.lock().get(id)?.open_transition().cloned()
    }

    /// Marks the power as open for nodes of an ended transition about whose power the upstream said nothing certain:
    /// earlier readings do not count any more. If the upstream reported nothing at all about a node, its readings may
    /// show the earlier power for a while. Nodes that have reported their boot need no reading.
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

    /// Returns whether the power of the node has to be read before any action on it.
    pub(crate) fn is_left_open(&self, id: &str) -> bool {
        self.unread.lock().contains_key(id)
    }

    /// Notes that the power of the node was read and stored. `as_of`: the time since which the reading holds by the
    /// `clock` of the upstream.
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

    /// Records that members have failed: if their action had begun, its effect may still come.
    pub(crate) fn fail(&self, members: &[TransitionMember], at: Timestamp) {
        let mut awaited = self.awaited.lock();
        for member in members {
            let effect = awaited.get_mut(member.id.as_str());
            if let Some(effect) = effect.filter(|effect| effect.generation == member.generation) {
                effect.course = Course::Ended(at);
            }
        }
    }

    /// Drops the open effect of an action that the upstream does not take.
    pub(crate) fn cancel(&self, id: &ComponentId) {
        let mut awaited = self.awaited.lock();
        if let Entry::Occupied(effect) = awaited.entry(id.clone())
            && effect.get().course == Course::Open
        {
            effect.remove();
            leave_room(&mut awaited);
        }
    }

    /// Returns whether an action of an older generation than `generation` may still change `state`.
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

    /// Ends the wait for an effect that `state` shows, or whose time has passed. Returns the generation of that effect.
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
    /// Returns the upstream transition that has not ended.
    fn open_transition(&self) -> Option<&Arc<str>> {
        self.upstream_id.as_ref().filter(|_| self.course == Course::Open)
    }

    fn is_followed(&self) -> bool {
        self.followed && self.open_transition().is_some()
    }

    /// Returns whether the effect has come, by a reading of any generation.
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
