//! A simulated rack: bare-metal hosts behind BMCs, and the backend that works on them.
//!
//! The rack is a value: time is an argument, and equal calls at equal times give equal answers. It begins an operation
//! once for its id, however often it is asked. A host whose BMC address ends with the id of a node of the fleet is that
//! node: the power of both is the same.

mod faults;
mod host;
mod inventory;
mod timing;

use std::{
    collections::{BTreeMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use proto::simulation::{
    BegunRackOperation, ListRackOperationsResponse, OperateRackHostRequest, OperateRackHostResponse,
    RackBusy, RackDone, RackHost, RackOperation, RackRunning, RackUnknown,
    operate_rack_host_response::Outcome,
};

pub use faults::{RackFault, RackFaults, RackFaultsError};
pub use timing::RackTiming;

use host::{OperationProgress, SimulatedHost};

use crate::node::PowerCommand;

/// Most beginnings of operations that a rack remembers.
const MOST_BEGUN: usize = 1000;

/// Properties of a rack.
#[derive(Debug, Clone)]
pub struct RackBlueprint {
    /// Durations of operations.
    pub timing: RackTiming,
    /// Faults of hosts.
    pub faults: RackFaults,
    /// Seed of ids and inventories.
    pub seed: u64,
    /// User name that every BMC takes.
    pub username: String,
    /// Password that every BMC takes.
    pub password: String,
}

/// A rack.
#[derive(Debug)]
pub struct SimulatedRack {
    blueprint: RackBlueprint,
    hosts: BTreeMap<String, SimulatedHost>,
    /// Operations that were begun, the latest last, each with the name of its host.
    begun: VecDeque<(String, RackOperation)>,
    /// Number of listings so far.
    listings: u64,
}

impl SimulatedRack {
    /// Creates a rack that knows no host.
    pub fn new(blueprint: RackBlueprint) -> Self {
        Self { blueprint, hosts: BTreeMap::new(), begun: VecDeque::new(), listings: 0 }
    }

    /// Returns every host.
    pub fn list(&mut self, now: Duration) -> Vec<RackHost> {
        self.listings += 1;
        let shown = |(name, host): (&String, &mut SimulatedHost)| {
            host.advance(now);
            host.shown(name)
        };
        self.hosts.iter_mut().map(shown).collect()
    }

    /// Takes the power of hosts that are nodes from `power`, which returns the power of a node; `None`: there is no such
    /// node, and the host has power of its own.
    pub fn follow_nodes(&mut self, power: impl Fn(&str) -> Option<bool>) {
        self.hosts.values_mut().for_each(|host| host.follow_node(&power));
    }

    /// Takes the power of one host as [`Self::follow_nodes`] does.
    pub fn follow_node(&mut self, name: &str, power: impl Fn(&str) -> Option<bool>) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.follow_node(power);
        }
    }

    /// Returns the commands to nodes that operations have given since.
    pub fn take_orders(&mut self) -> Vec<(String, PowerCommand)> {
        self.hosts.values_mut().filter_map(SimulatedHost::take_order).collect()
    }

    /// Returns the command to the node of one host as [`Self::take_orders`] does.
    pub fn take_order(&mut self, name: &str) -> Option<(String, PowerCommand)> {
        self.hosts.get_mut(name)?.take_order()
    }

    /// Loses the record of a host, as a backend that loses its database.
    pub fn forget(&mut self, name: &str) {
        self.hosts.remove(name);
    }

    /// Returns the latest operations on a host that were begun, in order.
    pub fn begun(&self, name: &str) -> Vec<RackOperation> {
        let of_host = self.begun.iter().filter(|(host, _)| host == name);
        of_host.map(|(_, operation)| *operation).collect()
    }

    /// Returns the latest operations that were begun, and the number of listings so far.
    pub fn story(&self) -> ListRackOperationsResponse {
        let begun = |(name, operation): &(String, RackOperation)| BegunRackOperation {
            name: name.clone(),
            operation: (*operation).into(),
        };
        ListRackOperationsResponse {
            operations: self.begun.iter().map(begun).collect(),
            listings: self.listings,
        }
    }

    fn note_beginning(&mut self, request: &OperateRackHostRequest) {
        if self.begun.len() == MOST_BEGUN {
            self.begun.pop_front();
        }
        self.begun.push_back((request.name.clone(), request.operation()));
    }

    /// Begins an operation, or returns how far it is.
    pub fn operate(&mut self, request: &OperateRackHostRequest, now: Duration) -> OperateRackHostResponse {
        let outcome = match request.operation() {
            RackOperation::Register => self.register(request, now),
            operation => match self.hosts.get(&request.name) {
                Some(_) => self.work(request, now),
                None if leaves(operation) => Outcome::Done(RackDone::default()),
                None => Outcome::Unknown(RackUnknown {}),
            },
        };
        OperateRackHostResponse { outcome: Some(outcome) }
    }

    /// Makes the host known. A known host stays as it is, also while an operation is under way.
    fn register(&mut self, request: &OperateRackHostRequest, now: Duration) -> Outcome {
        if let Some(failure) = self.login_failure(request) {
            return Outcome::Failure(failure.to_owned());
        }
        let seed = self.seed(&request.name);
        let faults = self.blueprint.faults.of(&request.name, &request.address);
        let duration = self.blueprint.timing.duration(RackOperation::Register, seed);
        if !self.hosts.contains_key(&request.name) {
            self.note_beginning(request);
        }
        let host = self.hosts.entry(request.name.clone()).or_insert_with(|| {
            let mut host = SimulatedHost::new(request, seed, faults.clone());
            host.begin(request, now, duration);
            host
        });
        host.boot_mac.clone_from(&request.boot_mac);
        host.faults = faults;
        let id = host.id.clone();
        let registers = |host: &SimulatedHost| {
            host.operation.as_ref().is_some_and(|one| one.kind == RackOperation::Register)
        };
        match host.advance(now) {
            Some(OperationProgress::Running(remaining)) if registers(host) => running(remaining),
            Some(_) | None => Outcome::Done(RackDone { id, ..RackDone::default() }),
        }
    }

    fn login_failure(&self, request: &OperateRackHostRequest) -> Option<&'static str> {
        let faults = self.blueprint.faults.of(&request.name, &request.address);
        let fault = faults.iter().find_map(|fault| match fault.effect(RackOperation::Register)? {
            faults::FaultEffect::Fails(text) => Some(text),
            faults::FaultEffect::Hangs => None,
        });
        let RackBlueprint { username, password, .. } = &self.blueprint;
        let is_right = (&request.username, &request.password) == (username, password);
        fault.or((!is_right).then_some("wrong user name or password"))
    }

    fn work(&mut self, request: &OperateRackHostRequest, now: Duration) -> Outcome {
        let Some(host) = self.hosts.get_mut(&request.name) else { return Outcome::Unknown(RackUnknown {}) };
        host.advance(now);
        let is_new = host.operation.as_ref().is_none_or(|one| one.id != request.operation_id);
        if is_new && let Some(outcome) = obstacle(host, request) {
            return outcome;
        }
        if is_new {
            host.begin(request, now, self.blueprint.timing.duration(request.operation(), host.seed));
        }
        let outcome = match host.advance(now) {
            Some(OperationProgress::Running(remaining)) => running(remaining),
            Some(OperationProgress::Failed(text)) => Outcome::Failure(text.to_owned()),
            Some(OperationProgress::Done) | None => Outcome::Done(facts(host, request)),
        };
        if is_new {
            self.note_beginning(request);
        }
        if leaves(request.operation()) && matches!(outcome, Outcome::Done(_)) {
            self.hosts.remove(&request.name);
        }
        outcome
    }

    fn seed(&self, name: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.blueprint.seed, name).hash(&mut hasher);
        hasher.finish()
    }
}

/// Returns whether the operation makes the rack forget the host.
fn leaves(operation: RackOperation) -> bool {
    matches!(operation, RackOperation::Delete | RackOperation::Detach)
}

/// Returns the answer to an operation that cannot begin because of another one: it waits if it is the last one, and is
/// refused otherwise. A hard power-off interrupts an inspection.
fn obstacle(host: &SimulatedHost, request: &OperateRackHostRequest) -> Option<Outcome> {
    let under_way = host.operation.as_ref().filter(|_| host.is_busy())?;
    let interrupts = request.operation() == RackOperation::HardPowerOff
        && matches!(under_way.kind, RackOperation::Inspect | RackOperation::SoftPowerOff);
    if request.force || interrupts {
        return None;
    }
    Some(Outcome::Busy(RackBusy { operation: under_way.kind.as_str_name().to_owned() }))
}

fn facts(host: &SimulatedHost, request: &OperateRackHostRequest) -> RackDone {
    if request.operation() != RackOperation::Inspect {
        return RackDone { id: host.id.clone(), ..RackDone::default() };
    }
    let (inventory, architecture) = inventory::inventory(&request.name, &host.boot_mac, host.seed);
    RackDone { id: host.id.clone(), inventory: inventory.to_string(), architecture: architecture.to_owned() }
}

fn running(remaining: Duration) -> Outcome {
    let remaining_millis = u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX).max(1);
    Outcome::Running(RackRunning { remaining_millis })
}

#[cfg(test)]
mod tests;
