//! BMCs, each called directly by Redfish (DSP0266): those of the machine file, or those of bare-metal hosts.
//!
//! A BMC has no transitions to follow: it takes a request for a reset, and its `PowerState` shows the outcome. So an
//! action is followed here, node by node, and its progress is lost with the process. After a restart the power of the
//! nodes shows the outcome. The same holds for a replica that has lost the lease of an action: the replica requests
//! nothing more and forgets the action.
//!
//! Each BMC serves one caller at a time, many BMCs at once. A BMC that hangs delays only callers of the same BMC.

mod actions;
mod fleet;
mod hosts;
mod node;
mod reset;
mod task;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use chassis::{
    Channel, Context,
    settings::{self, seconds},
};
use domain::boot::component::Action;
use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use proto::power::PowerReading;
use redfish::{BmcClient, SystemPower};
use tokio::{task::JoinSet, time::timeout};
use tracing::Instrument;
use upstream::machine::MachineFile;

use crate::driver::{
    NodeReading,
    progress::{TaskState, TransitionProgress},
};

use self::{actions::RedfishActions, fleet::BmcFleet, reset::ResetKind, task::ResetOrder};
pub(crate) use self::{hosts::HostFleet, node::MachineNode};

/// All BMCs of a machine. Clones share them.
#[derive(Clone)]
pub(crate) struct RedfishDriver {
    inner: Arc<RedfishState>,
}

struct RedfishState {
    fleet: NodeFleet,
    actions: Arc<RedfishActions>,
    /// Tasks that carry actions out. They end with the last clone.
    running: Mutex<JoinSet<()>>,
    /// Time for the effect of an action.
    patience: Duration,
    /// Time between polls of actions under way.
    pause: Duration,
}

/// Nodes with their BMCs.
enum NodeFleet {
    /// Nodes of the machine file.
    File(Box<BmcFleet>),
    /// Nodes that bare-metal hosts are.
    Hosts(Arc<HostFleet>),
}

impl NodeFleet {
    /// Returns nodes by their ids; `None` for nodes that are not known.
    fn find(&self, ids: Vec<String>) -> Vec<(String, Option<MachineNode>)> {
        match self {
            Self::File(file) => file.find(ids),
            Self::Hosts(hosts) => ids
                .into_iter()
                .map(|id| {
                    let node = hosts.node(&id);
                    (id, node)
                })
                .collect(),
        }
    }

    fn bmcs(&self) -> Vec<Arc<BmcClient>> {
        match self {
            Self::File(file) => file.bmcs(),
            Self::Hosts(hosts) => hosts.bmcs(),
        }
    }

    /// Returns the error about a node that is not known.
    fn lack(&self, id: &str) -> String {
        match self {
            Self::File(_) => format!("{id} is not in the machine file"),
            Self::Hosts(_) => format!("no host is {id} that may be switched"),
        }
    }
}

impl RedfishDriver {
    /// Drives the BMCs that `file` lists. None is called yet.
    ///
    /// # Errors
    /// When a setting, or the address or credentials of a BMC cannot be used.
    pub(crate) fn new(file: MachineFile, settings: &settings::Power) -> anyhow::Result<Self> {
        Self::of(NodeFleet::File(Box::new(BmcFleet::open(file, &settings.redfish)?)), settings)
    }

    /// Drives the BMCs of bare-metal hosts, once it [follows](Self::follow_hosts) them.
    ///
    /// # Errors
    /// When a setting cannot be used.
    pub(crate) fn of_hosts(settings: &settings::Power) -> anyhow::Result<Self> {
        Self::of(NodeFleet::Hosts(Arc::new(HostFleet::new(&settings.redfish)?)), settings)
    }

    fn of(fleet: NodeFleet, settings: &settings::Power) -> anyhow::Result<Self> {
        let inner = RedfishState {
            fleet,
            actions: Arc::default(),
            running: Mutex::default(),
            patience: seconds("power.effect_seconds", settings.effect_seconds)?,
            pause: seconds("power.follow_seconds", settings.follow_seconds)?,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Begins to follow the hosts of the registry, if their BMCs are the ones to drive.
    pub(crate) fn follow_hosts(&self, context: &Context, registry: Channel) {
        match &self.inner.fleet {
            NodeFleet::File(_) => {}
            NodeFleet::Hosts(hosts) => hosts.follow(context, registry),
        }
    }

    /// Waits until every node is known.
    pub(crate) async fn complete(&self) {
        match &self.inner.fleet {
            NodeFleet::File(_) => {}
            NodeFleet::Hosts(hosts) => hosts.complete().await,
        }
    }

    /// Returns how long the effect of an action is waited for.
    pub(crate) fn patience(&self) -> Duration {
        self.inner.patience
    }

    /// Groups nodes by their BMC. Nodes without a BMC form a group too.
    pub(crate) fn by_bmc<N>(&self, nodes: Vec<N>, id: impl Fn(&N) -> &str) -> Vec<Vec<N>> {
        let ids = nodes.iter().map(|node| id(node).to_owned()).collect();
        let bmcs = self.inner.fleet.find(ids).into_iter().map(|(_, node)| {
            let bmc = node?.bmc.ok()?;
            Some(bmc.name().to_owned())
        });
        let mut groups: BTreeMap<Option<String>, Vec<N>> = BTreeMap::new();
        for (node, bmc) in nodes.into_iter().zip(bmcs) {
            groups.entry(bmc).or_default().push(node);
        }
        groups.into_values().collect()
    }

    /// Reads the power of nodes at their BMCs. Nodes that are not known are left out. A BMC in trouble
    /// gives its nodes an error, never a state.
    ///
    /// `deadline` is the time for a BMC to become free; after that `power.redfish` limits its calls.
    pub(crate) async fn power(&self, ids: Vec<String>, deadline: Duration) -> Vec<(String, NodeReading)> {
        let readings = self.inner.fleet.find(ids).into_iter().filter_map(|(id, node)| {
            let node = node?;
            Some(async move {
                let power = node.power(deadline).await;
                (id, reading(power))
            })
        });
        join_all(readings).await
    }

    /// Begins the action on every node and returns at once with an id for [`Self::follow`]. A node with the opposite
    /// action under way fails.
    ///
    /// Calls may have to wait for BMCs, so `still_ours` is asked again before every step. Once it returns false, or the
    /// action was given up, nothing more is requested, and the action is forgotten: the state is as if the process had
    /// ended.
    pub(crate) fn start(
        &self,
        action: Action,
        ids: Vec<String>,
        still_ours: impl Fn() -> bool + Send + Sync + 'static,
    ) -> String {
        let RedfishState { fleet, actions, patience, pause, .. } = &*self.inner;
        let Some(reset) = ResetKind::of(action) else {
            return actions.refuse(ids, &format!("'{}' is not an action on power", action.word()));
        };
        let (id, taken) = actions.begin(reset, ids);
        let is_wanted = {
            let (actions, id) = (Arc::clone(actions), id.clone());
            move || actions.is_known(&id) && still_ours()
        };
        let order = ResetOrder { reset, patience: *patience, pause: *pause, still_ours: Arc::new(is_wanted) };
        let tasks = fleet.find(taken).into_iter().map(|(node_id, node)| {
            let (id, actions, order) = (id.clone(), Arc::clone(actions), order.clone());
            let node = node.ok_or_else(|| fleet.lack(&node_id));
            async move {
                let result = match node {
                    Ok(node) => node.carry_out(&order).await,
                    Err(lack) => TaskState::Failed(lack),
                };
                if order.is_ours() {
                    actions.end(&id, &node_id, result);
                } else {
                    actions.abandon(&id);
                }
            }
        });
        // The task must not hold `self`, which would keep the task running for ever.
        let tasks = join_all(tasks);
        self.running().spawn(async { drop(tasks.await) }.in_current_span());
        id
    }

    /// Returns the progress of a begun action. `None`: it is not known, because an earlier process began it, it was
    /// handed over, or it ended some minutes ago.
    pub(crate) fn follow(&self, id: &str) -> Option<TransitionProgress> {
        drop(self.running());
        self.inner.actions.progress(id)
    }

    /// Gives a begun action up: nothing more is requested, and its nodes are free for any other.
    pub(crate) fn give_up(&self, id: &str) {
        self.inner.actions.abandon(id);
    }

    /// Gives up every begun action that is not among `recorded`: the record of it was lost, and nobody follows it.
    pub(crate) fn keep(&self, recorded: &HashSet<String>) {
        self.inner.actions.keep(recorded);
    }

    /// Ends the sessions at the BMCs, as far as possible within `patience`: a BMC has only a few, and keeps them for
    /// half an hour otherwise. To be called last.
    pub(crate) async fn close(&self, patience: Duration) {
        log_out(self.inner.fleet.bmcs(), patience).await;
    }

    /// Returns the machines of hosts; `None`: the nodes are those of the machine file.
    pub(crate) fn hosts(&self) -> Option<&Arc<HostFleet>> {
        match &self.inner.fleet {
            NodeFleet::File(_) => None,
            NodeFleet::Hosts(hosts) => Some(hosts),
        }
    }

    /// Returns the running tasks, without those that have ended. A panic is resumed here, since nothing else would
    /// report it.
    fn running(&self) -> MutexGuard<'_, JoinSet<()>> {
        let mut running = self.inner.running.lock();
        while let Some(ended) = running.try_join_next() {
            if let Err(error) = ended
                && let Ok(panic) = error.try_into_panic()
            {
                std::panic::resume_unwind(panic);
            }
        }
        running
    }
}

async fn log_out(bmcs: Vec<Arc<BmcClient>>, patience: Duration) {
    let log_outs = bmcs.iter().map(|bmc| timeout(patience, bmc.log_out()));
    let late = join_all(log_outs).await.into_iter().filter(Result::is_err).count();
    if late > 0 {
        tracing::info!(bmcs = late, "sessions not ended in time, the BMCs will end them");
    }
}

/// Returns the reading of a node. A power that is neither on nor off is no state.
fn reading(power: Result<SystemPower, String>) -> NodeReading {
    let known = |reading| NodeReading { reading, error: String::new(), as_of: None };
    match power {
        Ok(SystemPower::On) => known(PowerReading::On),
        Ok(SystemPower::Off) => known(PowerReading::Off),
        Ok(SystemPower::Other(text)) | Err(text) => NodeReading::undefined(text),
    }
}

#[cfg(test)]
mod tests;
