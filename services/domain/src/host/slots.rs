//! Slots: the number of hosts that backends work on at once is limited exactly, and a fair queue gives them out (host
//! reference 1.18, Q7, P4).
//!
//! The table is an index over the claims in the records, so it can be built anew from them at any time. Asking changes
//! nothing; a host takes, keeps or gives up its slot by the decision about it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    core::time::Timestamp,
    host::{
        evidence::SlotOffer,
        record::{HostKey, progress::SlotClaim},
    },
};

/// Slots of one pool of backends, with the hosts that wait for one.
#[derive(Debug, Clone, Default)]
pub struct HostSlots {
    limit: usize,
    holders: BTreeSet<HostKey>,
    queue: BTreeSet<(Timestamp, HostKey)>,
    waiting: BTreeMap<HostKey, Timestamp>,
}

impl HostSlots {
    /// Makes a table of `limit` slots, all of them free.
    pub fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Returns whether `key` has a slot, or may take one now: as many are free as there are hosts before it.
    pub fn offer(&self, key: &HostKey) -> SlotOffer {
        let position = match self.waiting.get(key) {
            Some(since) => self.queue.range(..(*since, key.clone())).count(),
            None => self.queue.len(),
        };
        if self.holders.contains(key) || position < self.free() { SlotOffer::Open } else { SlotOffer::Taken }
    }

    /// Follows the claim that a decision about `key` has made.
    pub fn settle(&mut self, key: &HostKey, claim: SlotClaim) {
        self.holders.remove(key);
        if let Some(since) = self.waiting.remove(key) {
            self.queue.remove(&(since, key.clone()));
        }
        match claim {
            SlotClaim::Nothing | SlotClaim::Aside { .. } => {}
            SlotClaim::Held => {
                self.holders.insert(key.clone());
            }
            SlotClaim::Waiting { since } => {
                self.waiting.insert(key.clone(), since);
                self.queue.insert((since, key.clone()));
            }
        }
    }

    /// Hosts whose turn has come, in the order of the queue. They are to be decided about again.
    pub fn due(&self) -> impl Iterator<Item = &HostKey> {
        self.queue.iter().take(self.free()).map(|(_, key)| key)
    }

    /// Number of slots that are taken.
    pub fn taken(&self) -> usize {
        self.holders.len()
    }

    fn free(&self) -> usize {
        self.limit.saturating_sub(self.holders.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> HostKey {
        HostKey { namespace: "m".into(), name: name.into() }
    }

    /// Returns the table after `steps`: `+a` holds, `?a` waits, `-a` needs none, each a moment after the one before.
    fn slots(limit: usize, steps: &str) -> HostSlots {
        let mut slots = HostSlots::new(limit);
        for (time, step) in steps.split_whitespace().enumerate() {
            let claim = match &step[..1] {
                "+" => SlotClaim::Held,
                "?" => SlotClaim::Waiting { since: Timestamp(time as i64) },
                _ => SlotClaim::Nothing,
            };
            slots.settle(&key(&step[1..]), claim);
        }
        slots
    }

    #[test]
    fn slots_are_given_in_the_order_of_the_queue() {
        for (limit, steps, open, taken) in [
            (0, "", "", "a"),
            (1, "", "a b", ""),
            (1, "+a", "a", "b"),
            (2, "+a", "a b", ""),
            (1, "+a -a", "a b", ""),
            (1, "+a ?b -a", "b", "a c"),
            (1, "+a ?c ?b -a", "c", "b d"),
            (2, "+a ?c ?b -a", "b c", "d"),
            (2, "+a ?c ?b ?d -a", "b c", "d e"),
            (1, "+a +b", "a b", "c"),
            (1, "+a ?b -b -a", "c", ""),
        ] {
            let slots = slots(limit, steps);
            for name in open.split_whitespace() {
                assert_eq!(slots.offer(&key(name)), SlotOffer::Open, "{limit} {steps}: {name}");
            }
            for name in taken.split_whitespace() {
                assert_eq!(slots.offer(&key(name)), SlotOffer::Taken, "{limit} {steps}: {name}");
            }
        }
    }

    #[test]
    fn hosts_whose_turn_has_come_are_named() {
        let slots = slots(2, "+a ?c ?b ?d");
        assert_eq!(slots.due().map(|key| &*key.name).collect::<Vec<_>>(), ["c"]);
        assert_eq!(slots.taken(), 1);
    }
}
