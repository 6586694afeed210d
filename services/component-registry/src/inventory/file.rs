//! Machine file as an inventory, for sites without an inventory service.

use std::collections::BTreeMap;

use domain::boot::session::inventory::NODE;
use proto::inventory::Hardware;
use upstream::machine::{Machine, Node};

use super::{InventorySnapshot, labelled};

/// Converts a machine file to an inventory snapshot.
pub(super) fn snapshot(machine: &Machine) -> InventorySnapshot {
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut partitions = groups.clone();
    for node in &machine.nodes {
        for group in &node.groups {
            groups.entry(group).or_default().push(node.id.clone());
        }
        if !node.partition.is_empty() {
            partitions.entry(&node.partition).or_default().push(node.id.clone());
        }
    }
    InventorySnapshot::new(
        machine.nodes.iter().map(hardware).collect(),
        labelled(groups),
        labelled(partitions),
    )
}

fn hardware(node: &Node) -> Hardware {
    Hardware {
        id: node.id.clone(),
        r#type: NODE.to_owned(),
        role: node.role.clone(),
        sub_role: node.sub_role.clone(),
        arch: node.arch.clone(),
        enabled: node.enabled,
        locked: node.locked,
        nid: node.nid,
    }
}

#[cfg(test)]
mod tests {
    use proto::inventory::Group;
    use upstream::machine::MachineFile;

    use super::*;
    use crate::inventory::LockedIds;

    const MACHINE: &str = r#"
        [[node]]
        id = "x1c0s0b0n0"
        groups = ["blue"]
        [[node]]
        id = "x1c0s0b0n1"
        groups = ["blue", "big"]
        partition = "p1"
        role = "Application"
        sub_role = "UAN"
        arch = "ARM"
        nid = 7
        enabled = false
        locked = true
    "#;

    #[test]
    fn nodes_carry_what_the_file_says() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("machine.toml");
        std::fs::write(&path, MACHINE).unwrap();
        let snapshot = snapshot(&MachineFile::open(&path).unwrap().current());
        let group = |label: &str, ids: &[&str]| Group {
            label: label.to_owned(),
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        };
        let expected = InventorySnapshot::new(
            vec![
                Hardware {
                    id: "x1c0s0b0n0".into(),
                    r#type: "Node".into(),
                    role: "Compute".into(),
                    arch: "X86".into(),
                    enabled: true,
                    ..Hardware::default()
                },
                Hardware {
                    id: "x1c0s0b0n1".into(),
                    r#type: "Node".into(),
                    role: "Application".into(),
                    sub_role: "UAN".into(),
                    arch: "ARM".into(),
                    enabled: false,
                    locked: true,
                    nid: 7,
                },
            ],
            vec![group("big", &["x1c0s0b0n1"]), group("blue", &["x1c0s0b0n0", "x1c0s0b0n1"])],
            vec![group("p1", &["x1c0s0b0n1"])],
        );
        assert_eq!(snapshot, expected);
        assert_eq!(*snapshot.locked, LockedIds::from(["x1c0s0b0n1".to_owned()]));
    }
}
