//! Names by which nodes request their boot scripts, besides their ids.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    sync::Arc,
};

use ::upstream::machine::{self, MachineFile};
use anyhow::Context as _;
use chassis::{
    Channel, Context, Settings,
    kinds::host::{HostRecord, parse_key, record},
    observe::mirror::{Change, Mirror},
    settings::InventoryDriver,
};
use domain::{
    core::id::ComponentId,
    host::{
        node::{HostNode, NodeIndex},
        record::HostKey,
    },
};
use parking_lot::Mutex;

/// Names of nodes.
#[derive(Clone)]
pub(super) enum NodeNames {
    /// Nodes are known only by their ids.
    None,
    /// Names of the machine file.
    File(Arc<MachineFile>),
    /// Names of the nodes that bare-metal hosts are.
    Hosts(Arc<Mutex<HostNames>>),
}

/// Names of the nodes that hosts are, both ways.
#[derive(Debug, Default)]
pub(super) struct HostNames {
    nodes: NodeIndex<Vec<NodeName>>,
    /// Nodes with a name. Several hosts may claim one; which of them are nodes is known to `nodes`.
    named: HashMap<NodeName, BTreeMap<HostKey, ComponentId>>,
}

/// Name of a node besides its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum NodeName {
    /// Network card that the node boots from.
    Mac(String),
    /// Number of the node.
    Nid(u32),
}

impl NodeNames {
    /// Returns the names that belong to the inventory.
    ///
    /// # Errors
    /// When a machine file is set and cannot be read.
    pub(super) fn new(settings: &Settings) -> anyhow::Result<Self> {
        let path = &settings.machine_file;
        match settings.inventory.driver {
            InventoryDriver::Hosts => Ok(Self::Hosts(Arc::default())),
            InventoryDriver::Simulated | InventoryDriver::Hsm | InventoryDriver::File
                if path.as_os_str().is_empty() =>
            {
                Ok(Self::None)
            }
            InventoryDriver::Simulated | InventoryDriver::Hsm | InventoryDriver::File => {
                Ok(Self::File(Arc::new(MachineFile::open(path).context("machine_file")?)))
            }
        }
    }

    /// Begins to follow the hosts of the registry, if nodes are named by them.
    pub(super) fn follow_registry(&self, context: &Context, registry: Channel) {
        let Self::Hosts(names) = self else { return };
        let names = Arc::clone(names);
        // A mirror lasts as long as the process; its changes are all that is needed.
        let _hosts = Mirror::start(context, registry, move |changes: &[Change<HostRecord>]| {
            let mut names = names.lock();
            changes.iter().for_each(|change| names.note(change));
        });
    }

    /// Returns the id of the node with that network card.
    pub(super) fn with_mac(&self, mac: &str) -> Option<String> {
        match self {
            Self::None => None,
            Self::File(file) => Some(file.current().node_by_mac(mac)?.id.clone()),
            Self::Hosts(names) => names.lock().find(&NodeName::Mac(machine::mac(mac)?)),
        }
    }

    /// Returns the id of the node with that number.
    pub(super) fn with_nid(&self, nid: u32) -> Option<String> {
        match self {
            Self::None => None,
            Self::File(_) | Self::Hosts(_) if nid == 0 => None,
            Self::File(file) => {
                let machine = file.current();
                machine.nodes.iter().find(|node| node.nid == nid).map(|node| node.id.clone())
            }
            Self::Hosts(names) => names.lock().find(&NodeName::Nid(nid)),
        }
    }

    /// Returns the number of a node; `None`: it has none.
    pub(super) fn nid(&self, id: &str) -> Option<u32> {
        let nid = match self {
            Self::None => None,
            Self::File(file) => file.current().node(id).map(|node| node.nid),
            Self::Hosts(names) => names.lock().nid(id),
        };
        nid.filter(|nid| *nid != 0)
    }
}

impl HostNames {
    /// Returns the id of the node with that name.
    fn find(&self, name: &NodeName) -> Option<String> {
        let has_name =
            |id: &&ComponentId| self.nodes.get(id.as_str()).is_some_and(|names| names.contains(name));
        self.named.get(name)?.values().find(has_name).map(ComponentId::to_string)
    }

    /// Returns the number of a node; `None`: it has none.
    fn nid(&self, id: &str) -> Option<u32> {
        self.nodes.get(id)?.iter().find_map(|name| match name {
            NodeName::Nid(nid) => Some(*nid),
            NodeName::Mac(_) => None,
        })
    }

    fn note(&mut self, change: &Change<HostRecord>) {
        let host = parse_key(change.key());
        for name in self.nodes.remove(&host).unwrap_or_default() {
            if let Entry::Occupied(mut hosts) = self.named.entry(name) {
                hosts.get_mut().remove(&host);
                if hosts.get().is_empty() {
                    hosts.remove();
                }
            }
        }
        let Some(node) = change.current.as_ref().and_then(|host| record::node(&host.message())) else {
            return;
        };
        let names = names_of(&node);
        for name in names.clone() {
            self.named.entry(name).or_default().insert(node.host.clone(), node.id.clone());
        }
        self.nodes.put(&node, names);
    }
}

fn names_of(node: &HostNode) -> Vec<NodeName> {
    let mac = node.boot_mac.as_deref().and_then(machine::mac).map(NodeName::Mac);
    mac.into_iter().chain((node.nid != 0).then_some(NodeName::Nid(node.nid))).collect()
}

#[cfg(test)]
mod tests {
    use chassis::mesh::time;
    use domain::core::time::Timestamp;
    use proto::host::{Host, HostSpec, HostStatus, ObjectMeta, ProvisioningStatus};

    use super::*;

    fn host(name: &str, mac: &str, nid: &str, created: i64) -> Arc<HostRecord> {
        let meta = ObjectMeta {
            namespace: "m".to_owned(),
            name: name.to_owned(),
            annotations: [("reveille.io/xname", "x1"), ("reveille.io/nid", nid)]
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
                .into(),
            created_at: Some(time::to_wire(Timestamp(created))),
            ..ObjectMeta::default()
        };
        let provisioning =
            Some(ProvisioningStatus { state: "available".to_owned(), ..ProvisioningStatus::default() });
        let spec = HostSpec { boot_mac_address: mac.to_owned(), ..HostSpec::default() };
        Arc::new(HostRecord::of(Host {
            meta: Some(meta),
            spec: Some(spec),
            status: Some(HostStatus { provisioning, ..HostStatus::default() }),
            ..Host::default()
        }))
    }

    #[test]
    fn names_follow_the_oldest_host_of_a_node() {
        let mut names = HostNames::default();
        let known = |names: &HostNames| {
            let macs = ["02:00:00:00:00:01", "02:00:00:00:00:02"]
                .map(|mac| names.find(&NodeName::Mac(machine::mac(mac).unwrap())).is_some());
            (macs, names.nid("x1"), names.find(&NodeName::Nid(7)).is_some())
        };
        let first = host("h1", "02:00:00:00:00:01", "7", 1);
        let second = host("h2", "02:00:00:00:00:02", "8", 2);
        names.note(&Change { previous: None, current: Some(second.clone()) });
        assert_eq!(known(&names), ([false, true], Some(8), false));
        names.note(&Change { previous: None, current: Some(first.clone()) });
        assert_eq!(known(&names), ([true, false], Some(7), true), "the older host is the node");
        names.note(&Change { previous: Some(first), current: None });
        assert_eq!(known(&names), ([false, true], Some(8), false));
        names.note(&Change { previous: Some(second), current: None });
        assert!(names.named.is_empty());
    }
}
