//! Rules of an operation at a node: what its provision state means for what was asked (host reference 3.3).
//!
//! An operation is a way through provision states with one request that counts, its beginning. A request that only
//! leads there may be repeated; the beginning is marked at the node, so that it is never repeated within an operation.
//! A failed state is the failure of the operation whose beginning led there; any other operation leaves it behind.

use ironic::node::{ProvisionState, ProvisionVerb};

/// Operation that is asked for, as far as it matters for the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeGoal {
    Register {
        /// Whether the host is about to be deleted, so that nothing is waited for.
        is_leaving: bool,
    },
    Inspect {
        /// Whether a waiting ramdisk is given up.
        force: bool,
    },
    Prepare {
        /// Whether anything is to be changed.
        has_steps: bool,
    },
    Service {
        /// Whether anything is to be changed; if not, servicing ends.
        has_steps: bool,
    },
    Provision {
        /// Whether a waiting ramdisk is given up.
        force: bool,
    },
    Deprovision,
    Adopt {
        /// Whether the system is about to be removed.
        is_leaving: bool,
    },
    Release {
        /// Whether a waiting ramdisk is given up.
        force: bool,
    },
}

/// Node as the rules see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeSight {
    pub(super) state: ProvisionState,
    /// Last request of this operation that had an effect.
    pub(super) begun: Option<ProvisionVerb>,
    /// Whether this operation has given up a waiting ramdisk before.
    pub(super) was_forced: bool,
    pub(super) is_maintained: bool,
    pub(super) has_power_fault: bool,
}

/// Next step of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeStep {
    /// The operation is over.
    Done,
    /// The operation failed, in the words of the node.
    Failed,
    /// The node has to be registered first.
    NotRegistered,
    /// Ironic works, for a moment or for long.
    Wait { is_short: bool },
    /// The request that counts is due, with its settings and its mark.
    Begin(ProvisionVerb),
    /// A request is due that leads to where the operation can begin.
    Lead(ProvisionVerb),
    /// A waiting ramdisk is given up, and what led to it no longer counts.
    Abandon(ProvisionVerb),
    /// The maintenance of the node ends first.
    EndMaintenance,
    /// Maintenance of the node begins, so that Ironic lets it go.
    BeginMaintenance,
    /// The node is removed.
    Remove,
    /// Another client has led the node to where the operation cannot begin.
    Stuck,
    /// Ironic cannot reach the BMC, and takes no requests.
    Faulty,
}

use NodeStep::{Abandon, Begin, BeginMaintenance, Done, Failed, Lead, NotRegistered, Remove, Stuck};
use ProvisionState as State;
use ProvisionVerb as Verb;

const BRIEFLY: NodeStep = NodeStep::Wait { is_short: true };
const LONG: NodeStep = NodeStep::Wait { is_short: false };

/// Returns the next step of an operation.
pub(super) fn next_step(goal: NodeGoal, node: NodeSight) -> NodeStep {
    let step = match goal {
        NodeGoal::Register { is_leaving } => register(node, is_leaving),
        NodeGoal::Inspect { force } => inspect(node, force),
        NodeGoal::Prepare { has_steps } => prepare(node, has_steps),
        NodeGoal::Service { has_steps } => service(node, has_steps),
        NodeGoal::Provision { force } => provision(node, force),
        NodeGoal::Deprovision => deprovision(node),
        NodeGoal::Adopt { is_leaving } => adopt(node, is_leaving),
        NodeGoal::Release { force } => release(node, force),
    };
    with_maintenance(step, node)
}

/// Has maintenance end before a request: Ironic refuses most of them meanwhile. Ironic itself puts a node whose cleaning
/// failed into maintenance, and one whose BMC it cannot reach, which ends by itself.
fn with_maintenance(step: NodeStep, node: NodeSight) -> NodeStep {
    match step {
        Begin(_) | Lead(_) | Abandon(_) if node.has_power_fault => NodeStep::Faulty,
        Begin(_) | Lead(_) | Abandon(_) if node.is_maintained => NodeStep::EndMaintenance,
        step => step,
    }
}

fn register(node: NodeSight, is_leaving: bool) -> NodeStep {
    match node.state {
        State::Enroll if node.begun == Some(Verb::Manage) => Failed,
        State::Enroll => Begin(Verb::Manage),
        State::Verifying => BRIEFLY,
        // Ironic takes new settings only once it has finished.
        state if state.is_passing() && node.begun.is_none() && !is_leaving => LONG,
        _ => Done,
    }
}

fn inspect(node: NodeSight, force: bool) -> NodeStep {
    match node.state {
        State::Enroll => NotRegistered,
        State::Verifying => BRIEFLY,
        State::Manageable | State::Available if node.begun == Some(Verb::Inspect) => Done,
        State::Manageable => Begin(Verb::Inspect),
        State::InspectFailed if node.begun == Some(Verb::Inspect) => Failed,
        State::InspectFailed => Begin(Verb::Inspect),
        State::InspectWait if force && !node.was_forced => Abandon(Verb::Abort),
        State::Available | State::CleanFailed | State::AdoptFailed => Lead(Verb::Manage),
        State::Inspecting
        | State::InspectWait
        | State::Cleaning
        | State::CleanWait
        | State::Deploying
        | State::DeployWait
        | State::Deleting
        | State::Adopting
        | State::Servicing
        | State::ServiceWait => LONG,
        State::Active | State::DeployFailed | State::Error | State::ServiceFailed | State::Foreign => Stuck,
    }
}

fn prepare(node: NodeSight, has_steps: bool) -> NodeStep {
    let is_over = node.begun == Some(Verb::Clean) || !has_steps;
    match node.state {
        State::Enroll => NotRegistered,
        State::Verifying => BRIEFLY,
        State::Manageable | State::Available if is_over => Done,
        State::Manageable => Begin(Verb::Clean),
        State::CleanFailed if node.begun == Some(Verb::Clean) => Failed,
        State::Available | State::CleanFailed | State::InspectFailed | State::AdoptFailed => {
            Lead(Verb::Manage)
        }
        State::Inspecting
        | State::InspectWait
        | State::Cleaning
        | State::CleanWait
        | State::Deploying
        | State::DeployWait
        | State::Deleting
        | State::Adopting
        | State::Servicing
        | State::ServiceWait => LONG,
        State::Active | State::DeployFailed | State::Error | State::ServiceFailed | State::Foreign => Stuck,
    }
}

fn service(node: NodeSight, has_steps: bool) -> NodeStep {
    match node.state {
        State::Enroll => NotRegistered,
        State::Verifying => BRIEFLY,
        State::Active if node.begun == Some(Verb::Service) || !has_steps => Done,
        State::Active => Begin(Verb::Service),
        State::ServiceFailed if node.begun == Some(Verb::Service) => Failed,
        State::ServiceFailed | State::ServiceWait if !has_steps => Lead(Verb::Abort),
        State::ServiceFailed => Begin(Verb::Service),
        State::Servicing
        | State::ServiceWait
        | State::Inspecting
        | State::InspectWait
        | State::Cleaning
        | State::CleanWait
        | State::Deploying
        | State::DeployWait
        | State::Deleting
        | State::Adopting => LONG,
        State::Manageable
        | State::Available
        | State::InspectFailed
        | State::CleanFailed
        | State::DeployFailed
        | State::Error
        | State::AdoptFailed
        | State::Foreign => Stuck,
    }
}

fn provision(node: NodeSight, force: bool) -> NodeStep {
    match node.state {
        State::Enroll => NotRegistered,
        State::Verifying => BRIEFLY,
        State::Manageable => Begin(Verb::Provide),
        State::CleanFailed if node.begun == Some(Verb::Provide) => Failed,
        State::CleanFailed | State::InspectFailed | State::AdoptFailed => Lead(Verb::Manage),
        State::DeployFailed if node.begun == Some(Verb::Active) => Failed,
        State::Available | State::DeployFailed => Begin(Verb::Active),
        State::DeployWait if force && !node.was_forced => Lead(Verb::Deleted),
        State::Error => Lead(Verb::Deleted),
        State::Active => Done,
        State::Inspecting
        | State::InspectWait
        | State::Cleaning
        | State::CleanWait
        | State::Deploying
        | State::DeployWait
        | State::Deleting
        | State::Adopting
        | State::Servicing
        | State::ServiceWait => LONG,
        State::ServiceFailed | State::Foreign => Stuck,
    }
}

fn deprovision(node: NodeSight) -> NodeStep {
    match node.state {
        State::Enroll => NotRegistered,
        State::Verifying => BRIEFLY,
        State::Available => Done,
        State::Manageable => Begin(Verb::Provide),
        State::CleanFailed if node.begun.is_some() => Failed,
        State::CleanFailed | State::InspectFailed | State::AdoptFailed => Lead(Verb::Manage),
        State::Error if node.begun == Some(Verb::Deleted) => Failed,
        State::Active | State::DeployFailed | State::Error | State::ServiceFailed => Begin(Verb::Deleted),
        // Ironic takes no mark meanwhile, and needs none: the node leaves this state at once.
        State::DeployWait => Lead(Verb::Deleted),
        State::Inspecting
        | State::InspectWait
        | State::Cleaning
        | State::CleanWait
        | State::Deploying
        | State::Deleting
        | State::Adopting
        | State::Servicing
        | State::ServiceWait => LONG,
        State::Foreign => Stuck,
    }
}

fn adopt(node: NodeSight, is_leaving: bool) -> NodeStep {
    match node.state {
        State::Enroll => NotRegistered,
        State::Verifying | State::Adopting => BRIEFLY,
        State::AdoptFailed if node.begun == Some(Verb::Adopt) => Failed,
        State::Manageable | State::AdoptFailed if !is_leaving => Begin(Verb::Adopt),
        State::Active if node.is_maintained && !node.has_power_fault => NodeStep::EndMaintenance,
        State::Manageable
        | State::AdoptFailed
        | State::Active
        | State::Available
        | State::Inspecting
        | State::InspectWait
        | State::InspectFailed
        | State::Cleaning
        | State::CleanWait
        | State::CleanFailed
        | State::Deploying
        | State::DeployWait
        | State::DeployFailed
        | State::Deleting
        | State::Error
        | State::Servicing
        | State::ServiceWait
        | State::ServiceFailed
        | State::Foreign => Done,
    }
}

fn release(node: NodeSight, force: bool) -> NodeStep {
    match node.state {
        State::Verifying => BRIEFLY,
        State::Enroll | State::Manageable | State::Available => Remove,
        State::Inspecting
        | State::Cleaning
        | State::Deploying
        | State::Deleting
        | State::Adopting
        | State::Servicing => LONG,
        State::InspectWait | State::CleanWait | State::DeployWait | State::ServiceWait if !force => LONG,
        _ if node.is_maintained => Remove,
        State::InspectWait
        | State::CleanWait
        | State::DeployWait
        | State::ServiceWait
        | State::Active
        | State::InspectFailed
        | State::CleanFailed
        | State::DeployFailed
        | State::Error
        | State::AdoptFailed
        | State::ServiceFailed
        | State::Foreign => BeginMaintenance,
    }
}

#[cfg(test)]
mod tests;
