//! Consequences of a refused call about several nodes: whether the nodes are to blame, or the service.
//!
//! Services refuse a whole call when they mind one node of it, and a service in trouble may refuse every call. A
//! refusal blames no node unless the service took others: nodes of the same batch, or any nodes between refusals of this
//! one. So a batch of which the service takes no node waits for the service, and so does a node that is alone, however long
//! that takes. A node that was blamed once stays so until the service takes it, or until it gets another generation.
//!
//! A service in trouble may recover for a moment. Nodes of other batches that it took then are not enough: they blame a
//! node if they were taken in two such moments, or in one, and the node was refused for a minute since.

use std::{collections::BTreeSet, time::Duration};

mod batch;
mod memory;

pub use batch::RefusedBatch;
pub use memory::RefusalMemory;

/// Time that is long for a refusal. After it
/// - other nodes of a batch are probed, if its first probes were refused
/// - a refusal that was not repeated is forgotten
/// - a node is to blame that is still refused, if the service took others once
const LONG: Duration = Duration::from_secs(60);

/// Nodes of a refused call that are asked for alone before all of them are blamed or cleared. When each of them is
/// refused, splitting thousands would take thousands of calls to learn nothing more.
const PROBES: usize = 3;

/// Pause after the first call of which the service took no node.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause: work goes on within seconds after the service takes calls again.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Evidence that the service takes calls of the refused kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Witness {
    /// The service has taken no other node since.
    Nobody,
    /// The service has taken nodes of other batches between refusals of this one, more than for a moment.
    Elsewhere,
    /// The service took others while it refused this node, earlier in the same generation.
    Before,
    /// The service has taken nodes of the same batch, for example one that was probed.
    Within,
}

/// Next step after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalStep {
    /// Ask for so many of the nodes, each alone.
    Probe(usize),
    /// Ask for each half of the nodes.
    Halve,
    /// The service is in trouble: ask for all of the nodes again after a pause, without counting an attempt.
    BackOff,
    /// The service refuses these nodes, or the call about them: an attempt of each is spent.
    SetAside,
}

/// Nodes that the service took between refusals of one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TakenBetween {
    /// Number of times that the service took others after one refusal of the node and before the next.
    pub times: u32,
    /// Time since the first of them.
    pub first_ago: Duration,
}

/// Evidence about a node that is refused. `within`: the service has taken others of its batch. `between`: nodes that it took
/// between refusals of the node. Nodes that it took before the first refusal prove nothing: its trouble may have begun in
/// between. Nor do those that it took after the last: the trouble may be over.
#[must_use]
pub fn witness(within: bool, between: TakenBetween) -> Witness {
    match between.times {
        _ if within => Witness::Within,
        0 => Witness::Nobody,
        1 if between.first_ago < LONG => Witness::Nobody,
        _ => Witness::Elsewhere,
    }
}

/// Decides how a refused call about so many `nodes` goes on. `probed`: a few of the batch were asked for alone. Where
/// the service takes others, other nodes are probed all the same, since a few bad nodes do not stand for all.
#[must_use]
pub fn next_step(nodes: usize, witness: Witness, probed: bool) -> RefusalStep {
    match witness {
        Witness::Within if nodes > 1 => RefusalStep::Halve,
        Witness::Within => RefusalStep::SetAside,
        // A call about one node is its own probe.
        Witness::Elsewhere | Witness::Before if nodes <= 1 => RefusalStep::SetAside,
        // One that was blamed before says nothing about the others.
        Witness::Nobody | Witness::Before if probed || nodes <= 1 => RefusalStep::BackOff,
        Witness::Elsewhere | Witness::Before | Witness::Nobody => RefusalStep::Probe(PROBES.min(nodes)),
    }
}

/// Splits a batch into the items that are probed in that `round`, and the others. The probes lie apart, since
/// neighbours share a fault more often than other nodes.
#[must_use]
pub fn split_probes<T>(batch: Vec<T>, count: usize, round: u32) -> (Vec<T>, Vec<T>) {
    let places: BTreeSet<_> = probes(batch.len(), count, round).collect();
    let (mut probed, mut rest) = (Vec::with_capacity(places.len()), Vec::new());
    for (place, item) in batch.into_iter().enumerate() {
        if places.contains(&place) {
            probed.push(item);
        } else {
            rest.push(item);
        }
    }
    (probed, rest)
}

/// Places of the probes of that `round` in a batch of so many `nodes`. The places differ from round to round, so that a
/// few nodes that are always refused do not stand for all.
fn probes(nodes: usize, count: usize, round: u32) -> impl Iterator<Item = usize> {
    let count = count.min(nodes);
    let first = usize::try_from(round).unwrap_or_default();
    (0..count).map(move |probe| (probe * nodes / count + first) % nodes)
}

/// Pause before a call is repeated that the service refused so many `times` in a row although the nodes are not to
/// blame: the service takes no node, or another client holds the nodes.
#[must_use]
pub fn pause(times: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << times.saturating_sub(1).min(16)).min(LONGEST_PAUSE)
}

/// Pause before an attempt is repeated on a node that was reserved `times` in a row by a client that the service does
/// not name: only the attempt itself shows whether the node is free.
#[must_use]
pub fn pause_for_reservation(times: u32) -> Duration {
    pause(times).saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_set_aside_only_while_others_are_taken() {
        use {RefusalStep::*, Witness::*};
        for (nodes, witness, probed, expected) in [
            (1, Nobody, false, BackOff),
            (1, Elsewhere, false, SetAside),
            (1, Before, false, SetAside),
            (2000, Before, false, Probe(3)),
            (2000, Before, true, BackOff),
            (1, Within, true, SetAside),
            (2, Nobody, false, Probe(2)),
            (2000, Nobody, false, Probe(3)),
            (2000, Nobody, true, BackOff),
            (2000, Elsewhere, false, Probe(3)),
            (2000, Elsewhere, true, Probe(3)),
            (2000, Within, false, Halve),
            (2, Within, true, Halve),
            (0, Nobody, false, BackOff),
        ] {
            assert_eq!(next_step(nodes, witness, probed), expected, "{nodes} {witness:?} {probed}");
        }
    }

    #[test]
    fn pauses_grow_to_a_bound() {
        let seconds = |pause: fn(u32) -> Duration| [1, 2, 3, 4, 5, 99].map(|times| pause(times).as_secs());
        assert_eq!(seconds(pause), [1, 2, 4, 8, 15, 15]);
        assert_eq!(seconds(pause_for_reservation), [2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn nodes_taken_for_a_moment_are_no_evidence() {
        for (within, times, seconds, expected) in [
            (true, 0, 0, Witness::Within),
            (true, 2, 600, Witness::Within),
            (false, 0, 0, Witness::Nobody),
            (false, 0, 600, Witness::Nobody),
            (false, 1, 0, Witness::Nobody),
            (false, 1, 59, Witness::Nobody),
            (false, 1, 60, Witness::Elsewhere),
            (false, 2, 0, Witness::Elsewhere),
            (false, 9, 600, Witness::Elsewhere),
        ] {
            let between = TakenBetween { times, first_ago: Duration::from_secs(seconds) };
            assert_eq!(witness(within, between), expected, "{within} {between:?}");
        }
    }

    #[test]
    fn each_node_is_probed_sooner_or_later() {
        for nodes in [1, 2, 3, 5, 100] {
            let mut seen = BTreeSet::new();
            for round in 0..100 {
                let places: BTreeSet<_> = probes(nodes, PROBES, round).collect();
                assert_eq!(places.len(), PROBES.min(nodes), "{nodes} {round}");
                assert!(places.iter().all(|place| *place < nodes));
                seen.extend(places);
            }
            assert_eq!(seen.len(), nodes);
        }
        assert_eq!(probes(0, PROBES, 1).count(), 0);
    }

    #[test]
    fn probes_lie_apart_and_the_rest_stays() {
        assert_eq!(split_probes((0..9).collect(), 3, 0), (vec![0, 3, 6], vec![1, 2, 4, 5, 7, 8]));
        assert_eq!(split_probes((0..9).collect(), 3, 1), (vec![1, 4, 7], vec![0, 2, 3, 5, 6, 8]));
        assert_eq!(split_probes(vec![1, 2], 2, 7), (vec![1, 2], vec![]));
        assert_eq!(split_probes::<u8>(Vec::new(), 3, 0), (Vec::new(), Vec::new()));
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        let seconds = [0, 1, 2, 3, 4, 5, 99].map(|times| pause(times).as_secs());
        assert_eq!(seconds, [1, 1, 2, 4, 8, 15, 15]);
    }
}
