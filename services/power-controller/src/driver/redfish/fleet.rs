//! The nodes and BMCs that the machine file lists at present.

use std::{collections::HashMap, sync::Arc};

use anyhow::Context as _;
use chassis::settings;
use parking_lot::{Mutex, MutexGuard};
use redfish::BmcClient;
use tokio::sync::Semaphore;
use upstream::{
    PeerGroup,
    machine::{self, Machine, MachineFile},
};

use super::node::MachineNode;

/// Text shown for a node without a BMC.
const NO_BMC: &str = "the machine file names no BMC for the node";

/// Contents of the machine file. A BMC whose entry has not changed is kept, with its session.
pub(super) struct BmcFleet {
    file: MachineFile,
    settings: BmcSettings,
    known: Mutex<LoadedMachine>,
}

/// Settings shared by all BMCs.
struct BmcSettings {
    group: PeerGroup,
    /// Location of the credentials of BMCs for which the file names none.
    credentials: String,
    slots: Arc<Semaphore>,
}

/// Nodes and BMCs built from one machine file.
struct LoadedMachine {
    machine: Arc<Machine>,
    nodes: HashMap<String, MachineNode>,
    bmcs: HashMap<String, BmcEntry>,
}

/// BMC as listed in the file, with its client or the reason why it cannot be called.
type BmcEntry = (machine::Bmc, Result<Arc<BmcClient>, String>);

impl BmcFleet {
    /// Reads `file`. No BMC is called yet.
    ///
    /// # Errors
    /// When a setting, or the address or credentials of a BMC cannot be used.
    pub(super) fn open(file: MachineFile, settings: &settings::Peer) -> anyhow::Result<Self> {
        let group = PeerGroup::new("redfish", settings).context("power.redfish")?;
        let slots = usize::try_from(settings.calls_in_flight)?.min(Semaphore::MAX_PERMITS);
        let (credentials, slots) = (settings.credentials.clone(), Arc::new(Semaphore::new(slots)));
        let settings = BmcSettings { group, credentials, slots };
        let known = settings.know(file.current(), HashMap::new());
        for (_, bmc) in known.bmcs.values() {
            bmc.as_ref().map_err(|reason| anyhow::anyhow!("{reason}"))?;
        }
        known.check_credentials();
        Ok(Self { file, settings, known: Mutex::new(known) })
    }

    /// Returns nodes by their ids; `None` for nodes that are not listed.
    pub(super) fn find(&self, ids: Vec<String>) -> Vec<(String, Option<MachineNode>)> {
        let known = self.known();
        let found = ids.into_iter().map(|id| {
            let node = known.nodes.get(&id).cloned();
            (id, node)
        });
        found.collect()
    }

    /// Returns the BMCs that can be called.
    pub(super) fn bmcs(&self) -> Vec<Arc<BmcClient>> {
        self.known.lock().bmcs.values().filter_map(|(_, bmc)| bmc.as_ref().ok().cloned()).collect()
    }

    fn known(&self) -> MutexGuard<'_, LoadedMachine> {
        let mut known = self.known.lock();
        let machine = self.file.current();
        if !Arc::ptr_eq(&known.machine, &machine) {
            let before = std::mem::take(&mut known.bmcs);
            *known = self.settings.know(machine, before);
        }
        known
    }
}

impl LoadedMachine {
    /// Warns of credentials that cannot be used; credentials that BMCs share are checked once.
    fn check_credentials(&self) {
        let mut shared = None;
        for (listed, bmc) in self.bmcs.values() {
            let Ok(bmc) = bmc else { continue };
            if listed.credentials.is_empty() {
                shared = Some(bmc);
            } else {
                bmc.check_credentials(&format!("machine_file.bmc.{}", listed.name));
            }
        }
        if let Some(bmc) = shared {
            bmc.check_credentials("power.redfish");
        }
    }
}

impl BmcSettings {
    /// Builds the nodes and BMCs of `machine`, with the BMCs from `before` whose entries have not changed.
    fn know(&self, machine: Arc<Machine>, mut before: HashMap<String, BmcEntry>) -> LoadedMachine {
        let bmcs = machine.bmcs.iter().map(|listed| {
            let entry = match before.remove(&listed.name) {
                Some(entry) if entry.0 == *listed => entry,
                Some(_) | None => (listed.clone(), self.bmc(listed)),
            };
            (listed.name.clone(), entry)
        });
        let bmcs: HashMap<_, _> = bmcs.collect();
        let nodes = machine.nodes.iter().map(|listed| (listed.id.clone(), node(listed, &bmcs)));
        LoadedMachine { nodes: nodes.collect(), machine, bmcs }
    }

    fn bmc(&self, listed: &machine::Bmc) -> Result<Arc<BmcClient>, String> {
        let place = if listed.credentials.is_empty() { &self.credentials } else { &listed.credentials };
        let peer = self.group.peer(format!("BMC {}", listed.name), &listed.url, place);
        match peer {
            Ok(peer) => Ok(Arc::new(BmcClient::new(peer, Arc::clone(&self.slots)))),
            Err(error) => Err(format!("BMC {} of the machine file: {error}", listed.name)),
        }
    }
}

fn node(listed: &machine::Node, bmcs: &HashMap<String, BmcEntry>) -> MachineNode {
    let bmc = match bmcs.get(&listed.bmc) {
        Some((_, bmc)) => bmc.clone(),
        None => Err(NO_BMC.to_owned()),
    };
    MachineNode { bmc, system: listed.system.as_str().into() }
}
