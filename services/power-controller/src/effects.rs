//! Which actions may still change the power of their nodes.
//!
//! An action does not end with the generation that it was for. Until its effect has come, or its time has
//! passed, what is read of the node is no evidence for a newer generation.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use chassis::convert::{observation, time};
use domain::{
    component::Action,
    id::ComponentId,
    options::Options,
    power::{self, Outlook},
    time::Timestamp,
};
use parking_lot::Mutex;
use proto::power::{Delivery, PowerState, Transition};

use crate::convert;

/// The last action on each component, as long as its effect was not seen. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Effects {
    awaited: Arc<Mutex<HashMap<ComponentId, Effect>>>,
}

#[derive(Debug, Clone, Copy)]
struct Effect {
    action: Action,
    generation: u64,
    /// When the upstream took it; none: it may take it at any time.
    accepted_at: Option<Timestamp>,
}

impl Effects {
    /// Takes over what a previous run left. Effects that were seen, or whose time has passed, are found out
    /// about like any other.
    pub(crate) fn recall(mut transitions: Vec<Arc<Transition>>) -> Self {
        transitions.sort_by_key(|one| one.created_at.map(time::from_wire));
        let effects = Self::default();
        for transition in transitions {
            match transition.delivery() {
                Delivery::Prepared | Delivery::Sent | Delivery::Unknown => effects.begin(&transition),
                Delivery::Accepted => {
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
    /// by the last that it took.
    pub(crate) fn begin(&self, transition: &Transition) {
        let Some(action) = convert::action(transition) else { return };
        let mut awaited = self.awaited.lock();
        for member in &transition.members {
            let Ok(id) = ComponentId::parse(&member.id) else { continue };
            awaited.insert(id, Effect { action, generation: member.generation, accepted_at: None });
        }
    }

    /// The upstream took the transition. Effects that were seen before its answer stay seen.
    pub(crate) fn accepted(&self, transition: &Transition, at: Timestamp) {
        let mut awaited = self.awaited.lock();
        for id in convert::component_ids(&transition.members) {
            if let Some(effect) = awaited.get_mut(&id) {
                effect.accepted_at = Some(at);
            }
        }
    }

    /// The upstream does not take it: nothing comes of it.
    pub(crate) fn cancel(&self, id: &ComponentId) {
        if let Entry::Occupied(effect) = self.awaited.lock().entry(id.clone())
            && effect.get().accepted_at.is_none()
        {
            effect.remove();
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
        let effect = *awaited.get(state.id.as_str())?;
        if effect.outlook(state, options, now) != Outlook::Settled {
            return None;
        }
        awaited.remove(state.id.as_str());
        Some(effect.generation)
    }
}

impl Effect {
    /// A reading of any generation tells whether the effect has come.
    fn outlook(&self, state: &PowerState, options: &Options, now: Timestamp) -> Outlook {
        let power = observation::power(Some(state), state.generation);
        power::outlook(self.action, self.accepted_at, &power, options, now)
    }
}

#[cfg(test)]
mod tests;
