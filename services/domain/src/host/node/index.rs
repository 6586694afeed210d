//! Nodes that hosts are, kept current host by host.

use std::collections::{BTreeMap, HashMap};

use super::HostNode;
use crate::{
    core::{id::ComponentId, time::Timestamp},
    host::record::HostKey,
};

/// Place of a host among those with the same id, the first one of which is the node.
type HostPlace = (Option<Timestamp>, HostKey);

/// Nodes that hosts are, each with a value. As in a [listing](super::list), the oldest of several hosts with the same id
/// is the node.
#[derive(Debug)]
pub struct NodeIndex<T> {
    by_id: HashMap<ComponentId, BTreeMap<HostPlace, T>>,
    places: HashMap<HostKey, (ComponentId, HostPlace)>,
}

impl<T> Default for NodeIndex<T> {
    fn default() -> Self {
        Self { by_id: HashMap::new(), places: HashMap::new() }
    }
}

impl<T> NodeIndex<T> {
    /// Notes that a host is that node now, with that value.
    pub fn put(&mut self, node: &HostNode, value: T) {
        self.remove(&node.host);
        let place = (node.created_at, node.host.clone());
        self.by_id.entry(node.id.clone()).or_default().insert(place.clone(), value);
        self.places.insert(node.host.clone(), (node.id.clone(), place));
    }

    /// Notes that a host is no node any more, and returns its value.
    pub fn remove(&mut self, host: &HostKey) -> Option<T> {
        let (id, place) = self.places.remove(host)?;
        let hosts = self.by_id.get_mut(&id)?;
        let value = hosts.remove(&place);
        if hosts.is_empty() {
            self.by_id.remove(&id);
        }
        value
    }

    /// Returns whether a host is a node, or is kept from it by another host alone.
    pub fn has(&self, host: &HostKey) -> bool {
        self.places.contains_key(host)
    }

    /// Returns the value of the node with that id.
    pub fn get(&self, id: &str) -> Option<&T> {
        self.by_id.get(id)?.values().next()
    }

    /// Returns the values of all hosts, also of those that another host keeps from being a node.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.by_id.values().flat_map(BTreeMap::values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: &str, id: &str, created: i64) -> HostNode {
        HostNode {
            host: HostKey { namespace: "m".into(), name: host.into() },
            id: ComponentId::parse(id).unwrap(),
            architecture: "",
            nid: 0,
            group: None,
            boot_mac: None,
            created_at: Some(Timestamp(created)),
            is_worked_on: false,
        }
    }

    #[test]
    fn the_oldest_host_is_the_node_until_it_leaves() {
        let mut index = NodeIndex::default();
        index.put(&node("new", "x1", 2), "new");
        index.put(&node("old", "x1", 1), "old");
        assert_eq!(index.get("x1"), Some(&"old"));
        assert_eq!(index.remove(&node("old", "x1", 1).host), Some("old"));
        assert_eq!(index.get("x1"), Some(&"new"));
        index.put(&node("new", "x2", 2), "moved");
        assert_eq!((index.get("x1"), index.get("x2")), (None, Some(&"moved")));
        assert_eq!(index.values().count(), 1);
        assert!(index.has(&node("new", "x2", 2).host) && !index.has(&node("old", "x1", 1).host));
    }
}
