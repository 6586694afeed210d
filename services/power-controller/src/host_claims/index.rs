//! Hosts that are claimed, by their nodes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use proto::host::NodeClaim;

/// Claims that last. Every host with the id of a node is claimed for it.
#[derive(Debug, Default)]
pub(super) struct ClaimIndex {
    /// Claims by the ids of their nodes and the keys of their hosts.
    of_nodes: HashMap<Arc<str>, BTreeMap<Arc<str>, NodeClaim>>,
    /// Node that has claimed a host.
    nodes: HashMap<Arc<str>, Arc<str>>,
}

impl ClaimIndex {
    /// Notes the claim in the newest record of a host; `None`: there is none. Returns the node whose claim is news.
    pub(super) fn note(&mut self, host: Arc<str>, claim: Option<NodeClaim>) -> Option<Arc<str>> {
        self.remove(&host);
        let claim = claim.filter(|claim| !claim.released)?;
        let node: Arc<str> = claim.component_id.as_str().into();
        self.nodes.insert(Arc::clone(&host), Arc::clone(&node));
        self.of_nodes.entry(Arc::clone(&node)).or_default().insert(host, claim);
        Some(node)
    }

    fn remove(&mut self, host: &str) {
        let Some(node) = self.nodes.remove(host) else { return };
        let Some(claims) = self.of_nodes.get_mut(&node) else { return };
        claims.remove(host);
        if claims.is_empty() {
            self.of_nodes.remove(&node);
        }
    }

    /// Returns the claims of a node, with the keys of their hosts.
    pub(super) fn of(&self, node: &str) -> impl Iterator<Item = (&Arc<str>, &NodeClaim)> {
        self.of_nodes.get(node).into_iter().flatten()
    }

    /// Returns whether the node has claimed a host.
    pub(super) fn has(&self, node: &str) -> bool {
        self.of_nodes.contains_key(node)
    }

    /// Returns every node that has claimed a host.
    pub(super) fn nodes(&self) -> impl Iterator<Item = Arc<str>> {
        self.of_nodes.keys().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(node: &str, attempt: u32, released: bool) -> Option<NodeClaim> {
        Some(NodeClaim { component_id: node.to_owned(), attempt, released, ..NodeClaim::default() })
    }

    fn shown(index: &ClaimIndex, node: &str) -> String {
        let claims = index.of(node).map(|(host, claim)| format!("{host} {}", claim.attempt));
        claims.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn nodes_have_the_newest_claims_that_last() {
        let mut index = ClaimIndex::default();
        assert_eq!(index.note("m/a".into(), claim("x1", 1, false)).as_deref(), Some("x1"));
        assert_eq!(index.note("m/b".into(), claim("x1", 1, false)).as_deref(), Some("x1"));
        assert_eq!(index.note("m/c".into(), None), None);
        assert_eq!(shown(&index, "x1"), "m/a 1, m/b 1");
        index.note("m/a".into(), claim("x1", 2, false));
        assert_eq!(index.note("m/b".into(), claim("x1", 1, true)), None);
        assert_eq!(shown(&index, "x1"), "m/a 2");
        assert_eq!(index.note("m/a".into(), claim("x2", 1, false)).as_deref(), Some("x2"));
        assert_eq!((shown(&index, "x1").as_str(), shown(&index, "x2").as_str()), ("", "m/a 1"));
        index.note("m/a".into(), None);
        assert_eq!((index.has("x2"), index.nodes().count(), index.nodes.len()), (false, 0, 0));
    }
}
