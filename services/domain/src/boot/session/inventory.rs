//! The hardware of the machine, with the lookups that sessions need.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use crate::core::id::ComponentId;

/// Only kind of hardware that boots.
pub const NODE: &str = "Node";

/// Piece of hardware in the inventory. Texts that the inventory leaves out or empty are `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hardware {
    /// Location name, such as `x1000c0s0b0n0`.
    pub id: ComponentId,
    /// Kind of hardware, such as [`NODE`].
    pub kind: Arc<str>,
    /// Purpose of the hardware, such as `Compute`.
    pub role: Option<Arc<str>>,
    /// Refinement of the role, such as `GPU`.
    pub sub_role: Option<Arc<str>>,
    /// Processor architecture in the inventory's words: `X86`, `ARM`, `Other` or `UNKNOWN`.
    pub arch: Option<Arc<str>>,
    /// Whether the inventory enables the hardware.
    pub enabled: bool,
    /// Whether the hardware is locked against power operations.
    pub locked: bool,
    /// Numeric node id.
    pub nid: Option<u32>,
}

/// Named set of hardware: a group or a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Name of the set.
    pub label: String,
    /// Ids of the members, whether or not the inventory lists them as hardware.
    pub ids: Vec<ComponentId>,
}

/// Sets of ids by name.
pub type NamedSets = BTreeMap<String, BTreeSet<ComponentId>>;

/// Consistent snapshot of the machine. Its lookups are built once, when the snapshot is taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    hardware: HashMap<ComponentId, Hardware>,
    groups: NamedSets,
    partitions: NamedSets,
    roles: NamedSets,
}

impl Inventory {
    /// Takes the snapshot. Groups of the same label are one group; of hardware listed twice the last counts.
    pub fn new(
        hardware: impl IntoIterator<Item = Hardware>,
        groups: impl IntoIterator<Item = Group>,
        partitions: impl IntoIterator<Item = Group>,
    ) -> Self {
        let hardware: HashMap<_, _> = hardware.into_iter().map(|item| (item.id.clone(), item)).collect();
        let mut roles = NamedSets::new();
        for item in hardware.values() {
            for role in role_names(item) {
                roles.entry(role).or_default().insert(item.id.clone());
            }
        }
        Self { roles, hardware, groups: by_label(groups), partitions: by_label(partitions) }
    }

    /// Returns whether no hardware is listed, of any kind.
    pub fn is_empty(&self) -> bool {
        self.hardware.is_empty()
    }

    /// Returns the hardware with that id.
    pub fn get(&self, id: &str) -> Option<&Hardware> {
        self.hardware.get(id)
    }

    /// Returns the groups by label.
    pub fn groups(&self) -> &NamedSets {
        &self.groups
    }

    /// Returns hardware of every kind by role, and by role and sub-role as `Role_SubRole` (BOS reference 5.4.1).
    pub fn roles(&self) -> &NamedSets {
        &self.roles
    }

    /// Returns the set that a name in a limit means: a role, else a partition, else a group (BOS reference 5.4.2).
    pub fn named(&self, name: &str) -> Option<&BTreeSet<ComponentId>> {
        self.roles.get(name).or_else(|| self.partitions.get(name)).or_else(|| self.groups.get(name))
    }
}

/// Returns the names of the roles of `item`. Hardware with a sub-role but no role is listed under `_SubRole` alone, as
/// in BOS.
fn role_names(item: &Hardware) -> impl Iterator<Item = String> {
    let role = item.role.as_deref();
    let refined = item.sub_role.as_deref().map(|sub_role| format!("{}_{sub_role}", role.unwrap_or_default()));
    role.map(str::to_owned).into_iter().chain(refined)
}

fn by_label(groups: impl IntoIterator<Item = Group>) -> NamedSets {
    let mut sets = NamedSets::new();
    for group in groups {
        sets.entry(group.label).or_default().extend(group.ids);
    }
    sets
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns an enabled compute node.
    pub(crate) fn node(id: &str) -> Hardware {
        Hardware {
            id: ids(id).remove(0),
            kind: NODE.into(),
            role: Some("Compute".into()),
            sub_role: None,
            arch: Some("X86".into()),
            enabled: true,
            locked: false,
            nid: None,
        }
    }

    /// Returns space-separated ids.
    pub(crate) fn ids(text: &str) -> Vec<ComponentId> {
        text.split_whitespace().map(|id| ComponentId::parse(id).expect("valid")).collect()
    }

    /// Returns a group of space-separated ids.
    pub(crate) fn group(label: &str, members: &str) -> Group {
        Group { label: label.to_owned(), ids: ids(members) }
    }

    #[test]
    fn roles_take_in_every_kind_of_hardware() {
        let with_roles = |id, role: &str, sub_role: &str, kind: &str| Hardware {
            role: (!role.is_empty()).then(|| role.into()),
            sub_role: (!sub_role.is_empty()).then(|| sub_role.into()),
            kind: kind.into(),
            ..node(id)
        };
        let inventory = Inventory::new(
            [
                with_roles("n0", "Compute", "", NODE),
                with_roles("n1", "Compute", "GPU", NODE),
                with_roles("n2", "", "Orphan", NODE),
                with_roles("b0", "Compute", "", "NodeBMC"),
                with_roles("n3", "", "", NODE),
            ],
            [],
            [],
        );
        let rows: Vec<_> = inventory
            .roles()
            .iter()
            .map(|(role, set)| {
                format!("{role}: {}", set.iter().map(ComponentId::as_str).collect::<Vec<_>>().join(" "))
            })
            .collect();
        assert_eq!(rows, ["Compute: b0 n0 n1", "Compute_GPU: n1", "_Orphan: n2"]);
    }

    #[test]
    fn roles_beat_partitions_and_partitions_beat_groups() {
        let inventory = Inventory::new(
            [node("n0")],
            [group("Compute", "g"), group("p1", "g"), group("g1", "g"), group("g1", "h")],
            [group("Compute", "p"), group("p1", "p")],
        );
        for (name, expected) in [("Compute", Some("n0")), ("p1", Some("p")), ("g1", Some("g h")), ("x", None)]
        {
            assert_eq!(
                inventory.named(name),
                expected.map(|e| ids(e).into_iter().collect()).as_ref(),
                "{name}"
            );
        }
    }

    #[test]
    fn of_hardware_listed_twice_the_last_counts() {
        let bmc = Hardware { kind: "NodeBMC".into(), ..node("b0") };
        let inventory = Inventory::new([node("b0"), bmc.clone()], [], []);
        assert_eq!(inventory.get("b0"), Some(&bmc));
        assert_eq!(inventory.get("n9"), None);
    }
}
