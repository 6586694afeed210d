//! Nodes that are left out of power requests for a while, because the service refused each of them.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::driver::NodeReading;

/// Time for which a node is left out at first. A service that recovers for a moment has it left out by mistake.
const FIRST: Duration = Duration::from_secs(15);

/// Longest time for which a node is left out. Each request for it costs a call, and it comes from an inventory that an
/// operator has to mend.
const LONGEST: Duration = Duration::from_secs(300);

/// Nodes that the service refused, each until it is taken.
#[derive(Debug, Default)]
pub(super) struct NodesAside(HashMap<String, NodeAside>);

#[derive(Debug)]
struct NodeAside {
    /// Time at which the node is requested again.
    until: Instant,
    /// Number of times that it was refused, which lengthens the time.
    times: u32,
    words: String,
}

/// Nodes of a request.
#[derive(Debug, Default)]
pub(super) struct RequestedNodes {
    /// Nodes that were not refused.
    pub(super) fresh: Vec<String>,
    /// Nodes that were left out, and are requested again.
    pub(super) again: Vec<String>,
    /// Readings of the nodes that are left out.
    pub(super) left_out: Vec<(String, NodeReading)>,
}

impl NodesAside {
    /// Leaves a node out that was refused with these `words`.
    pub(super) fn put(&mut self, id: &str, words: String, now: Instant) {
        self.0.retain(|_, node| now.saturating_duration_since(node.until) < LONGEST);
        let times = self.0.get(id).map_or(0, |before| before.times);
        let pause = FIRST.saturating_mul(1 << times.min(16)).min(LONGEST);
        self.0.insert(id.to_owned(), NodeAside { until: now + pause, times: times + 1, words });
    }

    /// Forgets that nodes were refused.
    pub(super) fn forget<'a>(&mut self, ids: impl IntoIterator<Item = &'a String>) {
        ids.into_iter().for_each(|id| drop(self.0.remove(id)));
    }

    /// Sorts the nodes of a request.
    pub(super) fn sort(&self, ids: Vec<String>, now: Instant) -> RequestedNodes {
        let mut nodes = RequestedNodes { fresh: Vec::with_capacity(ids.len()), ..RequestedNodes::default() };
        for id in ids {
            match self.0.get(&id) {
                None => nodes.fresh.push(id),
                Some(node) if node.until <= now => nodes.again.push(id),
                Some(node) => nodes.left_out.push((id, NodeReading::undefined(node.words.clone()))),
            }
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_node_is_left_out_for_ever_longer() {
        let (mut aside, mut now) = (NodesAside::default(), Instant::now());
        let mut pauses = Vec::new();
        for _ in 0..7 {
            aside.put("x1", "no".to_owned(), now);
            let pause = (0..).find(|seconds| is_again(&aside, now + Duration::from_secs(*seconds))).unwrap();
            pauses.push(pause);
            now += Duration::from_secs(pause);
        }
        assert_eq!(pauses, [15, 30, 60, 120, 240, 300, 300]);
        aside.forget([&"x1".to_owned()]);
        assert_eq!(aside.sort(vec!["x1".to_owned()], now).fresh, ["x1"]);
    }

    fn is_again(aside: &NodesAside, now: Instant) -> bool {
        let nodes = aside.sort(vec!["x1".to_owned()], now);
        assert_eq!(nodes.again.len() + nodes.left_out.len(), 1);
        !nodes.again.is_empty()
    }
}
