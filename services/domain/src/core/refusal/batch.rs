//! A batch of nodes whose refused call is cut into smaller ones.

use std::time::Instant;

use super::{LONG, RefusalStep, Witness, next_step};

/// Calls about a batch that was one call at first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RefusedBatch {
    is_taken: bool,
    probed_at: Option<Instant>,
    probings: u32,
}

impl RefusedBatch {
    /// Makes a batch of which a few nodes are asked for alone from the beginning, because the service refused every
    /// node before.
    #[must_use]
    pub fn probed(now: Instant) -> Self {
        Self { is_taken: false, probed_at: Some(now), probings: 1 }
    }

    /// Notes that the service took nodes of the batch.
    pub fn take(&mut self) {
        self.is_taken = true;
    }

    /// Returns whether the service has taken nodes of the batch.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.is_taken
    }

    /// Returns whether a few nodes were asked for alone, and none was taken.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.probed_at.is_some() && !self.is_taken
    }

    /// Decides how a refused call about so many `nodes` of the batch goes on. A few nodes that are always refused do
    /// not stand for all, so others are probed after ever longer times.
    pub fn next_step(&mut self, nodes: usize, witness: Witness, now: Instant) -> RefusalStep {
        let step = next_step(nodes, witness, self.is_probed(now));
        if let RefusalStep::Probe(_) = step {
            self.probed_at = Some(now);
            self.probings = self.probings.saturating_add(1);
        }
        step
    }

    fn is_probed(&self, now: Instant) -> bool {
        let pause = LONG.saturating_mul(1 << self.probings.saturating_sub(1).min(16));
        self.probed_at.is_some_and(|at| now.saturating_duration_since(at) < pause)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use super::*;
    use crate::core::refusal::split_probes;

    /// Asks for `nodes` of which the service refuses the `bad` ones, as long as it may take any. Gives the calls that were
    /// made, the nodes that are set aside, and whether the service takes nobody.
    fn isolate(nodes: usize, bad: &[usize]) -> (usize, BTreeSet<usize>, bool) {
        let (mut batch, now) = (RefusedBatch::default(), Instant::now());
        let (mut calls, mut refused) = (0, BTreeSet::new());
        let mut parts = vec![(0..nodes).collect::<Vec<_>>()];
        while let Some(mut part) = parts.pop() {
            if part.len() > 1 && batch.is_refused() {
                break;
            }
            calls += 1;
            if part.iter().all(|node| !bad.contains(node)) {
                batch.take();
                continue;
            }
            let witness = if batch.is_taken() { Witness::Within } else { Witness::Nobody };
            match batch.next_step(part.len(), witness, now) {
                RefusalStep::Probe(count) => {
                    let (probes, rest) = split_probes(part, count, 0);
                    parts.extend((!rest.is_empty()).then_some(rest));
                    parts.extend(probes.into_iter().map(|probe| vec![probe]));
                }
                RefusalStep::Halve => {
                    let rest = part.split_off(part.len() / 2);
                    parts.extend([rest, part]);
                }
                RefusalStep::SetAside | RefusalStep::BackOff => refused.extend(part),
            }
        }
        let set_aside = if batch.is_taken() { refused } else { BTreeSet::new() };
        (calls, set_aside, !batch.is_taken())
    }

    #[test]
    fn bad_nodes_are_found_and_a_bad_service_is_left_alone() {
        let all: Vec<usize> = (0..2_000).collect();
        for (name, nodes, bad, most, takes_nobody) in [
            ("nobody", 2_000, vec![], 1, false),
            ("the first", 2_000, vec![0], 27, false),
            ("one in the middle", 2_000, vec![777], 27, false),
            ("the last", 2_000, vec![1_999], 27, false),
            ("all probes and no other", 2_000, vec![0, 666, 1_333], 4, true),
            ("everybody", 2_000, all, 4, true),
            ("both of two", 2, vec![0, 1], 3, true),
            ("one of two", 2, vec![1], 3, false),
            ("the only one", 1, vec![0], 1, true),
        ] {
            let (calls, set_aside, nobody) = isolate(nodes, &bad);
            assert!(calls <= most, "{name}: {calls} calls");
            assert_eq!(nobody, takes_nobody, "{name}");
            if !nobody {
                assert_eq!(set_aside, bad.into_iter().collect(), "{name}");
            }
        }
    }

    #[test]
    fn nodes_that_are_left_are_probed_after_ever_longer_times() {
        let (mut batch, start) = (RefusedBatch::default(), Instant::now());
        for (second, witness, expected) in [
            (0, Witness::Nobody, RefusalStep::Probe(3)),
            (59, Witness::Nobody, RefusalStep::BackOff),
            (60, Witness::Nobody, RefusalStep::Probe(3)),
            (179, Witness::Nobody, RefusalStep::BackOff),
            (180, Witness::Nobody, RefusalStep::Probe(3)),
            (181, Witness::Elsewhere, RefusalStep::Probe(3)),
            (182, Witness::Nobody, RefusalStep::BackOff),
            (183, Witness::Within, RefusalStep::Halve),
        ] {
            let now = start + Duration::from_secs(second);
            assert_eq!(batch.next_step(7, witness, now), expected, "{second} s");
        }
    }
}
