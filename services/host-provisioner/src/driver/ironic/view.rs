//! Looks at hosts, from the listed nodes.

use domain::{
    core::time::Timestamp,
    host::{
        evidence::{DriverView, HardwareHealth},
        record::operation::OperationKind,
    },
};

use ironic::node::{IronicNode, NodePower, OperationMark, ProvisionState};

/// Hardware type of nodes without hardware.
const FAKE: &str = "fake-hardware";

/// Returns the look at the host of a node.
pub(super) fn view(node: &IronicNode, asked_at: Timestamp) -> DriverView {
    DriverView {
        asked_at,
        powered_on: powered_on(node),
        has_power_failure: node.has_power_fault,
        health: node.health.as_deref().map(health),
        needs_adoption: needs_adoption(node),
        is_busy: node.state.is_passing(),
        ..DriverView::default()
    }
}

/// Returns whether the power is on; `None`: it changes, or Ironic does not know it.
fn powered_on(node: &IronicNode) -> Option<bool> {
    match node.power {
        _ if node.target_power.is_some() => None,
        NodePower::On => Some(true),
        NodePower::Off => Some(false),
        // Such a node has no power before it is switched for the first time.
        NodePower::Unknown => (node.driver == FAKE && !node.has_power_fault).then_some(false),
    }
}

fn health(word: &str) -> HardwareHealth {
    match word {
        "OK" => HardwareHealth::Healthy,
        "Warning" => HardwareHealth::Warning,
        "Critical" => HardwareHealth::Critical,
        _ => HardwareHealth::Unknown,
    }
}

/// Returns whether the node is ready to hold a running system, and does not. A node whose system is being removed comes
/// by such a state, too.
fn needs_adoption(node: &IronicNode) -> bool {
    match node.state {
        ProvisionState::Manageable => !node.mark.as_ref().is_some_and(is_of_a_system),
        ProvisionState::AdoptFailed => true,
        _ => false,
    }
}

/// Returns whether the operation puts a system on a host, or removes it.
fn is_of_a_system(mark: &OperationMark) -> bool {
    let is_of = |kind: OperationKind| mark.operation.starts_with(&format!("{}-", kind.word()));
    is_of(OperationKind::Provision) || is_of(OperationKind::Deprovision)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn views_show_what_ironic_knows() {
        let mark =
            |operation: &str| json!({"reveille": {"operation": operation, "verb": "provide", "left": ""}});
        let mut table = String::new();
        for document in [
            json!({"provision_state": "active", "power_state": "power on", "health": "OK"}),
            json!({"provision_state": "active", "power_state": "power off", "health": "Fine"}),
            json!({"provision_state": "active", "power_state": "power on", "target_power_state": "power off"}),
            json!({"provision_state": "active", "power_state": null, "fault": "power failure"}),
            json!({"provision_state": "manageable", "driver": "fake-hardware"}),
            json!({"provision_state": "manageable", "extra": mark("register-1")}),
            json!({"provision_state": "manageable", "extra": mark("deprovision-1")}),
            json!({"provision_state": "adopt failed"}),
            json!({"provision_state": "clean wait", "health": "Critical"}),
        ] {
            let seen = view(&IronicNode::read(&document), Timestamp(1));
            let flags =
                [("fault", seen.has_power_failure), ("adopt", seen.needs_adoption), ("busy", seen.is_busy)];
            let flags: Vec<_> = flags.iter().filter(|(_, is_set)| *is_set).map(|(word, _)| *word).collect();
            writeln!(table, "{:?} {:?} {flags:?}", seen.powered_on, seen.health).unwrap();
        }
        expect![[r#"
            Some(true) Some(Healthy) []
            Some(false) Some(Unknown) []
            None None []
            None None ["fault"]
            Some(false) None ["adopt"]
            None None ["adopt"]
            None None []
            None None ["adopt"]
            None Some(Critical) ["busy"]
        "#]]
        .assert_eq(&table);
    }
}
