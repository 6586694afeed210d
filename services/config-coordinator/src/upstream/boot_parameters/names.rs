//! Names by which nodes request their boot scripts, besides their ids.

use std::sync::Arc;

use ::upstream::machine::{self, MachineFile};
use anyhow::Context as _;
use chassis::{
    Channel, Context, Settings,
    kinds::host::{HostRecord, parse_key, record},
    observe::mirror::{Change, Mirror},
    settings::InventoryDriver,
};
use domain::host::node::{HostNode, NodeIndex};
use parking_lot::Mutex;

/// Names of nodes.
#[derive(Clone)]
pub(super) enum NodeNames {
    /// Nodes are known only by their ids.
    None,
    /// Names of the machine file.
    File(Arc<MachineFile>),
    /// Names of the nodes that bare-metal hosts are.
    Hosts(Arc<Mutex<NodeIndex<HostNames>>>),
}

/// Names of the node that a host is.
#[derive(Debug)]
pub(super) struct HostNames {
    mac: Option<String>,
    nid: u32,
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
            changes.iter().for_each(|change| note(&mut names, change));
        });
    }

    /// Returns the id of the node with that network card.
    pub(super) fn with_mac(&self, mac: &str) -> Option<String> {
        match self {
            Self::None => None,
            Self::File(file) => Some(file.current().node_by_mac(mac)?.id.clone()),
            Self::Hosts(names) => {
                let mac = machine::mac(mac);
                find(names, |node| node.mac.is_some() && node.mac == mac)
            }
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
            Self::Hosts(names) => find(names, |node| node.nid == nid),
        }
    }

    /// Returns the number of a node; `None`: it has none.
    pub(super) fn nid(&self, id: &str) -> Option<u32> {
        let nid = match self {
            Self::None => None,
            Self::File(file) => file.current().node(id).map(|node| node.nid),
            Self::Hosts(names) => names.lock().get(id).map(|node| node.nid),
        };
        nid.filter(|nid| *nid != 0)
    }
}

fn find(names: &Mutex<NodeIndex<HostNames>>, has: impl Fn(&HostNames) -> bool) -> Option<String> {
    names.lock().nodes().find(|(_, node)| has(node)).map(|(id, _)| id.to_string())
}

fn note(names: &mut NodeIndex<HostNames>, change: &Change<HostRecord>) {
    match change.current.as_ref().and_then(|host| record::node(&host.message)) {
        Some(node) => names.put(&node, HostNames::of(&node)),
        None => drop(names.remove(&parse_key(change.key()))),
    }
}

impl HostNames {
    fn of(node: &HostNode) -> Self {
        Self { mac: node.boot_mac.as_deref().and_then(machine::mac), nid: node.nid }
    }
}
