//! Consequences of a refused call about several nodes: whether the nodes are to blame, or the service.
//!
//! Services refuse a whole call when they mind one node of it, and a service in trouble may refuse every call. A
//! refusal blames no node unless the service took others: nodes of the same batch, or any nodes between two refusals of
//! this one. So a batch of which the service takes no node waits for the service, and so does a node that is alone,
//! however long that takes. A node that was blamed once stays so until it gets another generation.

use std::{collections::BTreeSet, time::Duration};

mod batch;
mod memory;

pub use batch::RefusedBatch;
pub use memory::RefusalMemory;

/// Time after which other nodes of a batch are probed whose first probes were refused, and after which a refusal that
/// was not repeated is forgotten.
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
    /// The service has taken nodes of other batches between two refusals of this one.
    Elsewhere,
    /// The service took others while it refused this node, earlier in the same generation.
    Before,
    /// The service has taken nodes of the same batch since, for example one that was probed.
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

/// Evidence about nodes that were first refused `refused_for` ago. `within`: the service has taken others of their
/// batch. `taken_ago`: time since the service last took any other node. A call taken before the first refusal proves
/// nothing: the trouble of the service may have begun in between. So does one refusal: a second one shows that the service
/// still minds the nodes after it took others, or after calls that it answered together with the first refusal.
#[must_use]
pub fn witness(within: bool, refused_for: Duration, taken_ago: Option<Duration>) -> Witness {
    match taken_ago {
        _ if within => Witness::Within,
        Some(ago) if refused_for > Duration::ZERO && ago <= refused_for => Witness::Elsewhere,
        Some(_) | None => Witness::Nobody,
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
    fn only_nodes_taken_between_two_refusals_are_evidence() {
        let ms = Duration::from_millis;
        for (within, refused_for, taken_ago, expected) in [
            (true, ms(0), None, Witness::Within),
            (false, ms(0), None, Witness::Nobody),
            (false, ms(0), Some(ms(0)), Witness::Nobody),
            (false, ms(0), Some(ms(1)), Witness::Nobody),
            (false, ms(30_000), Some(ms(100)), Witness::Elsewhere),
            (false, ms(30_000), Some(ms(30_000)), Witness::Elsewhere),
            (false, ms(30_000), Some(ms(30_001)), Witness::Nobody),
            (false, ms(30_000), Some(ms(40_000)), Witness::Nobody),
            (false, ms(600_000), None, Witness::Nobody),
        ] {
            let found = witness(within, refused_for, taken_ago);
            assert_eq!(found, expected, "{refused_for:?} {taken_ago:?}");
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
