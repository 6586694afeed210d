//! The blame for a refusal of many nodes together: that of one of them, or of the upstream itself.

/// Nodes that are asked for one by one before thousands are cut in half.
pub const PROBES: usize = 3;

/// Answers to one round of calls about the same nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// Parts that were taken.
    taken: usize,
    /// Single nodes that were refused.
    refused: usize,
    probed: bool,
}

/// Next step about a part that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Ask for a few of its nodes one by one, and for the others after them.
    Probe,
    /// Ask for each half by itself.
    Halve,
    /// The part is a single node, and others were taken in the same round: the node itself is refused.
    BlameNode,
    /// The part is a single node, and nothing is known of others yet.
    Undecided,
    /// Everybody is refused: the upstream is in trouble, and is left alone for a while.
    BlameUpstream,
}

impl Round {
    /// A part was taken.
    pub fn take(&mut self) {
        self.taken += 1;
    }

    /// A part of so many `nodes` was refused.
    pub fn refuse(&mut self, nodes: usize) -> Next {
        if nodes <= 1 {
            self.refused += 1;
        }
        match (self.taken, nodes) {
            (0, _) if self.refused >= PROBES => Next::BlameUpstream,
            (0, 0 | 1) => Next::Undecided,
            (_, 0 | 1) => Next::BlameNode,
            (0, _) if !self.probed => {
                self.probed = true;
                Next::Probe
            }
            _ => Next::Halve,
        }
    }

    /// Whether a node that was refused is to blame, now that all parts were asked for.
    #[must_use]
    pub fn blames_nodes(&self) -> bool {
        self.taken > 0
    }
}

/// Cuts a part into its probes and the rest, in this order. The probes lie apart, since neighbours share a fault more
/// often than others.
#[must_use]
pub fn probes<T>(mut part: Vec<T>) -> (Vec<T>, Vec<T>) {
    let count = part.len().min(PROBES);
    let mut probes = Vec::with_capacity(count);
    for number in (0..count).rev() {
        let place = if count > 1 { (part.len() - 1) * number / (count - 1) } else { 0 };
        probes.push(part.remove(place.min(part.len() - 1)));
    }
    (probes, part)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Asks for `nodes` of which the upstream refuses the `poison` ones. Gives the calls that were made, those that are
    /// to blame, and whether the upstream is.
    fn isolate(nodes: usize, poison: &[usize]) -> (usize, HashSet<usize>, bool) {
        let poison: HashSet<_> = poison.iter().copied().collect();
        let (mut round, mut calls, mut suspects) = (Round::default(), 0, HashSet::new());
        let mut parts = vec![(0..nodes).collect::<Vec<_>>()];
        while let Some(mut part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            calls += 1;
            if part.iter().all(|node| !poison.contains(node)) {
                round.take();
                continue;
            }
            match round.refuse(part.len()) {
                Next::Probe => {
                    let (probes, rest) = probes(part);
                    parts.push(rest);
                    parts.extend(probes.into_iter().map(|probe| vec![probe]));
                }
                Next::Halve => {
                    let rest = part.split_off(part.len() / 2);
                    parts.extend([rest, part]);
                }
                Next::BlameNode | Next::Undecided => suspects.extend(part),
                Next::BlameUpstream => return (calls, HashSet::new(), true),
            }
        }
        if !round.blames_nodes() {
            return (calls, HashSet::new(), true);
        }
        (calls, suspects, false)
    }

    #[test]
    fn one_bad_node_is_found_and_a_bad_upstream_is_left_alone() {
        let all: Vec<usize> = (0..2_000).collect();
        let rows = [
            ("nobody", 2_000, vec![], 1, false),
            ("the first", 2_000, vec![0], 27, false),
            ("one in the middle", 2_000, vec![777], 27, false),
            ("the last", 2_000, vec![1_999], 27, false),
            ("all probes and no other", 2_000, vec![0, 999, 1_999], 5, true),
            ("everybody", 2_000, all, 4, true),
            ("both of two", 2, vec![0, 1], 3, true),
            ("one of two", 2, vec![1], 3, false),
            ("the only one", 1, vec![0], 1, true),
        ];
        for (name, nodes, poison, most, blames_upstream) in rows {
            let (calls, blamed, upstream) = isolate(nodes, &poison);
            assert!(calls <= most, "{name}: {calls} calls");
            assert_eq!(upstream, blames_upstream, "{name}");
            if !upstream {
                assert_eq!(blamed, poison.into_iter().collect(), "{name}");
            }
        }
    }

    #[test]
    fn probes_lie_apart_and_the_rest_stays() {
        assert_eq!(probes((0..9).collect()), (vec![8, 3, 0], vec![1, 2, 4, 5, 6, 7]));
        assert_eq!(probes(vec![1, 2]), (vec![2, 1], vec![]));
        assert_eq!(probes(vec![1]), (vec![1], vec![]));
        assert_eq!(probes::<u8>(Vec::new()), (Vec::new(), Vec::new()));
    }
}
