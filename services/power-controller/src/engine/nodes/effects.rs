//! Effects of actions on the power of nodes, from the moment at which the upstream may take the action until they were
//! seen or their time has passed.

use std::{sync::Arc, time::Instant};

use chassis::kinds::observation;
use domain::{
    boot::{
        bos::options::Options,
        component::{Action, Component},
        power::{
            self, Course, Outlook,
            transition::{NO_GENERATION, PowerTransition, TransitionMember},
        },
    },
    core::{clock_offset::ClockOffset, id::ComponentId, time::Timestamp},
};
use proto::power::{PowerReading, PowerState};

use super::{AwaitedEffect, LeftOpen, NodeHolder, NodeRecords, OpenAction};
use crate::{engine::PointInTime, outcome};

impl NodeRecords {
    /// Begins the effects of a transition, which the upstream may take from now on. An earlier action is superseded:
    /// the upstream carries out the last action that it took. A member with a known outcome is not awaited any more. A node
    /// that a transition of another client holds is left out, because nothing is requested for it.
    pub(crate) fn begin(&mut self, transition: &PowerTransition) {
        let Some(action) = transition.action else { return };
        for member in &transition.members {
            let Ok(id) = ComponentId::parse(&member.id) else { continue };
            let record = self.records.entry(id).or_default();
            if record.holder.as_ref().is_some_and(NodeHolder::is_of_another) {
                continue;
            }
            record.holder = None;
            record.effect = outcome::is_unresolved(member).then_some(AwaitedEffect {
                action: Some(action),
                generation: member.generation,
                course: Course::Open,
                is_followed: false,
                is_reported: false,
            });
        }
    }

    /// Lets a transition of the upstream that is not on record hold its nodes. Until it has ended, no reading of them is
    /// evidence.
    pub(crate) fn hold(&mut self, transition: &PowerTransition) {
        let holder = NodeHolder {
            transition: Arc::from(transition.id.as_str()),
            upstream_id: Arc::from(transition.upstream_id.as_str()),
            generation: NO_GENERATION,
        };
        for id in transition.members.iter().filter_map(|member| ComponentId::parse(&member.id).ok()) {
            let record = self.records.entry(id).or_default();
            record.holder = Some(holder.clone());
            record.effect = Some(AwaitedEffect {
                action: transition.action,
                generation: NO_GENERATION,
                course: Course::Open,
                is_followed: false,
                is_reported: false,
            });
        }
    }

    /// Returns whether a transition that is not on record holds the node.
    pub(crate) fn is_held_by_another(&self, id: &str) -> bool {
        self.records.get(id).and_then(|record| record.holder.as_ref()).is_some_and(NodeHolder::is_of_another)
    }

    /// Returns whether the transition of the upstream with this id holds the node, as far as is known.
    pub(crate) fn is_held_as(&self, id: &str, upstream_id: &str) -> bool {
        let holder = self.records.get(id).and_then(|record| record.holder.as_ref());
        holder.is_some_and(|holder| *holder.upstream_id == *upstream_id)
    }

    /// Records that the upstream took the transition and will report no more about it: from `at` on its effects have
    /// their time. Effects that were seen before stay seen.
    pub(crate) fn accepted(&mut self, transition: &PowerTransition, at: Timestamp) {
        self.leave(transition, Course::Taken(at));
    }

    /// Records that the upstream has ended the transition, or will never report its end.
    pub(crate) fn ended(&mut self, transition: &PowerTransition, at: Timestamp) {
        self.leave(transition, Course::Ended(at));
    }

    /// Sets the course after which only the power of the nodes shows the effects.
    fn leave(&mut self, transition: &PowerTransition, course: Course) {
        for member in &transition.members {
            let Some(record) = self.records.get_mut(member.id.as_str()) else { continue };
            record.holder.take_if(|holder| !holder.is_of_another());
            if let Some(effect) = record.effect.as_mut().filter(|effect| !effect.is_of_another()) {
                effect.course = course;
            }
        }
    }

    /// Notes the reported boot of a power-on: it shows the effect, whatever the readings of the power.
    pub(crate) fn note_report(&mut self, component: &Component) {
        if !component.has_reported_attempt() {
            return;
        }
        if let Some(effect) = self.effect_mut(component.id.as_str())
            && effect.action == Some(Action::PoweringOn)
            && effect.generation == component.generation
        {
            effect.is_reported = true;
        }
    }

    /// Records for the members of a transition that the upstream took it, and whether the upstream reports its outcome.
    /// A transition without an upstream id is in doubt again.
    pub(crate) fn follow(&mut self, transition: &PowerTransition, is_followed: bool) {
        let own_id: Arc<str> = transition.id.as_str().into();
        let upstream_id: Option<Arc<str>> =
            (!transition.upstream_id.is_empty()).then(|| Arc::from(&*transition.upstream_id));
        for member in &transition.members {
            let Some(record) = self.records.get_mut(member.id.as_str()) else { continue };
            record.holder = upstream_id.clone().map(|upstream_id| NodeHolder {
                transition: Arc::clone(&own_id),
                upstream_id,
                generation: member.generation,
            });
            let effect = record.effect.as_mut();
            if let Some(effect) = effect.filter(|effect| effect.generation == member.generation) {
                effect.is_followed = is_followed && upstream_id.is_some();
            }
        }
    }

    /// Returns whether the upstream will report the outcome of an action on the node. It does not once the transition
    /// has ended.
    pub(crate) fn is_followed(&self, id: &str) -> bool {
        self.effect(id).is_some_and(|effect| effect.is_followed && effect.course == Course::Open)
    }

    /// Returns the transition of the upstream that holds the node for an action of an older generation than
    /// `generation`, until the effect of the action was seen. From then on the power is known, and only the next action
    /// waits for the end of the transition.
    pub(crate) fn older_holder(&self, id: &str, generation: u64) -> Option<&NodeHolder> {
        let record = self.records.get(id)?;
        let is_awaited = record.effect.as_ref().is_some_and(|effect| effect.course == Course::Open);
        record.holder.as_ref().filter(|holder| is_awaited && holder.generation < generation)
    }

    /// Returns the transition of the upstream that holds the node for an action of an older generation than `generation`,
    /// whether or not the effect of the action was seen.
    pub(crate) fn holder_before(&self, id: &str, generation: u64) -> Option<&NodeHolder> {
        let record = self.records.get(id)?;
        record.holder.as_ref().filter(|holder| holder.generation < generation)
    }

    /// Returns the open action because of which a reading does not show the final power of a node: the action may still
    /// have the effect that the `reading` lacks. A shutdown is left out, because readings withdraw a shutdown that has
    /// no effect in its time.
    pub(crate) fn open_against(&self, id: &str, reading: PowerReading) -> Option<OpenAction> {
        let record = self.records.get(id)?;
        let effect = record.effect.as_ref()?;
        let action = effect.action?;
        let lacks_effect = match action {
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
        Some(record.taken_as().cloned().map_or(OpenAction::InDoubt, OpenAction::Taken))
    }

    /// Ends the wait for a transition of the upstream that is not on record. An effect that was not seen may still come,
    /// and earlier readings of its node do not count.
    pub(crate) fn release(&mut self, transition: &PowerTransition, now: PointInTime) {
        self.let_go(transition, Some(Course::Ended(now.at)), now);
    }

    /// Ends the wait for a transition that is not on record and that an operator has abandoned: it has no effect to come,
    /// and only later readings of its nodes count.
    pub(crate) fn give_up(&mut self, transition: &PowerTransition, now: PointInTime) {
        self.let_go(transition, None, now);
    }

    /// Takes nodes from the transition that holds them. `course`: of an effect that was not seen; `None`: no effect comes.
    fn let_go(&mut self, transition: &PowerTransition, course: Option<Course>, now: PointInTime) {
        for id in transition.members.iter().filter_map(|member| ComponentId::parse(&member.id).ok()) {
            let Some(record) = self.records.get_mut(&id) else { continue };
            if record.holder.take_if(|held| *held.upstream_id == *transition.upstream_id).is_none() {
                continue;
            }
            if let Some(effect) = record.effect.take() {
                record.effect = course.map(|course| AwaitedEffect { course, ..effect });
                record.left_open = Some(LeftOpen { since: now.instant, at: Some(now.at) });
            }
            self.drop_if_empty(&id);
        }
    }

    /// Returns whether it is unknown if the upstream takes the last action on the node.
    pub(crate) fn is_in_doubt(&self, id: &str) -> bool {
        let Some(record) = self.records.get(id) else { return false };
        let is_open = record.effect.as_ref().is_some_and(|effect| effect.course == Course::Open);
        is_open && record.taken_as().is_none()
    }

    /// Marks the power as open for nodes of an ended transition about whose power the upstream said nothing certain:
    /// earlier readings do not count any more. If the upstream reported nothing at all about a node, its readings may
    /// show the earlier power for a while. Nodes that have reported their boot need no reading.
    pub(crate) fn leave_open(&mut self, transition: &PowerTransition, now: PointInTime) {
        for member in transition.members.iter().filter(|member| outcome::leaves_power_open(member)) {
            let Ok(id) = ComponentId::parse(&member.id) else { continue };
            let record = self.records.entry(id).or_default();
            let effect = record.effect.as_ref();
            if effect.is_some_and(|effect| effect.is_reported && effect.generation == member.generation) {
                continue;
            }
            let at = outcome::is_unresolved(member).then_some(now.at);
            record.left_open = Some(LeftOpen { since: now.instant, at });
        }
    }

    /// Returns whether the power of the node has to be read before any action on it.
    pub(crate) fn is_left_open(&self, id: &str) -> bool {
        self.records.get(id).is_some_and(|record| record.left_open.is_some())
    }

    /// Returns the end of an action after which readings may still show the power of before; `None`: the next reading counts,
    /// or none is awaited.
    pub(crate) fn left_open_at(&self, id: &str) -> Option<Timestamp> {
        self.records.get(id)?.left_open?.at
    }

    /// Notes that the power of the node was read and stored. `as_of`: the time since which the reading holds by the
    /// `clock` of the upstream.
    pub(crate) fn read(
        &mut self,
        id: &ComponentId,
        asked_at: Instant,
        as_of: Option<Timestamp>,
        clock: Option<ClockOffset>,
    ) {
        let Some(record) = self.records.get_mut(id) else { return };
        let Some(LeftOpen { since, at }) = record.left_open else { return };
        let after = asked_at.checked_duration_since(since);
        if at.map_or(after.is_some(), |at| power::is_newer(after, as_of, at, clock)) {
            record.left_open = None;
            self.drop_if_empty(id);
        }
    }

    /// Records that members have failed: if their action had begun, its effect may still come.
    pub(crate) fn fail(&mut self, members: &[TransitionMember], at: Timestamp) {
        for member in members {
            let effect = self.effect_mut(&member.id);
            if let Some(effect) = effect.filter(|effect| effect.generation == member.generation) {
                effect.course = Course::Ended(at);
            }
        }
    }

    /// Drops the open effect of an action that the upstream does not take.
    pub(crate) fn cancel(&mut self, id: &ComponentId) {
        if let Some(record) = self.records.get_mut(id) {
            record.effect.take_if(|effect| effect.course == Course::Open && !effect.is_of_another());
            self.drop_if_empty(id);
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
        match self.effect(&state.id) {
            Some(effect) if effect.generation < generation => effect.outlook(state, options, now),
            Some(_) | None => Outlook::Settled,
        }
    }

    /// Ends the wait for an effect that `state` shows, or whose time has passed. Returns the generation of that effect.
    pub(crate) fn settle(&mut self, state: &PowerState, options: &Options, now: Timestamp) -> Option<u64> {
        let (id, record) = self.records.get_key_value(state.id.as_str())?;
        let effect = record.effect.as_ref()?;
        if effect.outlook(state, options, now) != Outlook::Settled {
            return None;
        }
        let id = id.clone();
        let generation = effect.generation;
        self.records.get_mut(&id)?.effect = None;
        self.drop_if_empty(&id);
        Some(generation)
    }
}

impl AwaitedEffect {
    /// Returns whether the effect has come, by a reading of any generation.
    fn outlook(&self, state: &PowerState, options: &Options, now: Timestamp) -> Outlook {
        if self.is_reported {
            return Outlook::Settled;
        }
        // A transition of another client may pass through any power, as a restart does, and nobody knows how far it is.
        if self.is_of_another() && self.course == Course::Open {
            return Outlook::Pending { until: None };
        }
        let Some(action) = self.action else { return Outlook::Settled };
        let power = observation::power(Some(state), state.generation);
        power::outlook(action, self.course, &power, options, now)
    }
}
