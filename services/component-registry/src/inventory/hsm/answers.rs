//! Answers of the hardware state manager, reduced to their valid parts.
//!
//! Invalid hardware is skipped, and then no action is taken on it. An unreadable group or lock invalidates the whole
//! answer, because without it nodes that it protects could be acted on.

use std::collections::HashSet;

use domain::core::id::ComponentId;
use proto::inventory::{self as wire, Hardware};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use crate::inventory::LockedIds;

/// Counts of invalid entries in an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InvalidEntries {
    /// Hardware entries of another shape.
    pub(super) unreadable: usize,
    /// Ids that no component can have.
    pub(super) impossible_ids: usize,
    /// Hardware entries with the id of an earlier entry.
    pub(super) repeated: usize,
}

impl InvalidEntries {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a component can have this id; an invalid id is counted.
    fn is_id(&mut self, id: &str) -> bool {
        let possible = ComponentId::parse(id).is_ok();
        self.impossible_ids += usize::from(!possible);
        possible
    }
}

/// Answer to `GET /State/Components`.
#[derive(Debug, Deserialize)]
pub(super) struct HsmComponents {
    #[serde(rename = "Components")]
    listed: Vec<HsmEntry>,
}

/// A hardware entry, or an entry of another shape.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum HsmEntry {
    Component(HsmComponent),
    Unreadable(IgnoredAny),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HsmComponent {
    #[serde(rename = "ID")]
    id: String,
    r#type: Option<String>,
    role: Option<String>,
    sub_role: Option<String>,
    arch: Option<String>,
    enabled: Option<bool>,
    #[serde(rename = "NID")]
    nid: Option<Value>,
}

impl HsmComponents {
    /// Returns the valid hardware. Of entries with the same id the first counts.
    pub(super) fn usable(self, invalid: &mut InvalidEntries) -> Vec<Hardware> {
        let mut listed = HashSet::with_capacity(self.listed.len());
        let mut hardware = Vec::with_capacity(self.listed.len());
        for entry in self.listed {
            match entry {
                HsmEntry::Unreadable(_) => invalid.unreadable += 1,
                HsmEntry::Component(component) if !invalid.is_id(&component.id) => {}
                HsmEntry::Component(component) if !listed.insert(component.id.clone()) => {
                    invalid.repeated += 1
                }
                HsmEntry::Component(component) => hardware.push(component.into()),
            }
        }
        hardware
    }
}

impl From<HsmComponent> for Hardware {
    /// Converts an entry; without the member `Enabled` the hardware is disabled.
    fn from(component: HsmComponent) -> Self {
        Self {
            id: component.id,
            r#type: component.r#type.unwrap_or_default(),
            role: component.role.unwrap_or_default(),
            sub_role: component.sub_role.unwrap_or_default(),
            arch: component.arch.unwrap_or_default(),
            enabled: component.enabled.unwrap_or(false),
            locked: false,
            nid: component.nid.as_ref().and_then(nid).unwrap_or(0),
        }
    }
}

/// Reads a node number, which some versions write as a text. Negative numbers mean that the node has none.
fn nid(value: &Value) -> Option<u32> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u32::try_from(number).ok()
}

/// A group in the answer to `GET /groups`.
#[derive(Debug, Deserialize)]
pub(super) struct HsmGroup {
    label: String,
    members: HsmMembers,
}

/// A partition in the answer to `GET /partitions`.
#[derive(Debug, Deserialize)]
pub(super) struct HsmPartition {
    name: String,
    members: HsmMembers,
}

#[derive(Debug, Deserialize)]
struct HsmMembers {
    /// `null` for an empty list.
    ids: Option<Vec<String>>,
}

impl HsmGroup {
    pub(super) fn usable(self, invalid: &mut InvalidEntries) -> wire::Group {
        wire::Group { label: self.label, ids: self.members.usable(invalid) }
    }
}

impl HsmPartition {
    pub(super) fn usable(self, invalid: &mut InvalidEntries) -> wire::Group {
        wire::Group { label: self.name, ids: self.members.usable(invalid) }
    }
}

impl HsmMembers {
    fn usable(self, invalid: &mut InvalidEntries) -> Vec<String> {
        self.ids.unwrap_or_default().into_iter().filter(|id| invalid.is_id(id)).collect()
    }
}

/// Answer to `GET /locks/status`. Without the member no node is locked (BOS reference 6.2).
#[derive(Debug, Deserialize)]
pub(super) struct HsmLocks {
    #[serde(rename = "Components")]
    listed: Option<Vec<HsmLock>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HsmLock {
    #[serde(rename = "ID")]
    id: String,
    locked: Option<bool>,
}

impl HsmLocks {
    /// Returns the ids of locked nodes. An entry whose node is not locked is skipped, although the query selects
    /// locked nodes.
    pub(super) fn ids(self) -> LockedIds {
        let listed = self.listed.unwrap_or_default();
        listed.into_iter().filter(|lock| lock.locked != Some(false)).map(|lock| lock.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use expect_test::{Expect, expect};
    use serde::de::DeserializeOwned;

    use super::*;

    fn check<T: DeserializeOwned, U: Debug>(rows: &[&str], used: impl Fn(T) -> U, expected: Expect) {
        let lines = rows.iter().map(|row| match serde_json::from_str::<T>(row) {
            Ok(answer) => format!("{row}\n    {:?}\n", used(answer)),
            Err(error) => format!("{row}\n    refused: {error}\n"),
        });
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn invalid_hardware_is_skipped_and_counted() {
        let long = format!(r#"{{"Components": [{{"ID": "{}"}}, {{"ID": "x1"}}]}}"#, "x".repeat(128));
        let full = r#"{"Components": [{"ID": "x1", "Type": "Node", "State": "On", "Flag": "OK", "Enabled": true,
            "Role": "Compute", "SubRole": "GPU", "NID": 7, "Arch": "aRM", "Class": "River", "Locked": true}]}"#;
        check::<HsmComponents, _>(
            &[
                r#"{"Components": []}"#,
                full,
                r#"{"Components": [{"ID": "x1", "NID": "8"}, {"ID": "x2", "NID": -1}, {"ID": "x3", "NID": null}]}"#,
                r#"{"Components": [{"ID": "x1", "Role": "A"}, {"ID": "x1", "Role": "B"}, {"ID": "x1"}]}"#,
                r#"{"Components": [{"ID": ""}, {"Type": "Node"}, {"ID": 3}, null, "x1", {"ID": "x2", "Enabled": "yes"}]}"#,
                &long,
                r#"{}"#,
                r#"{"Components": null}"#,
                r#"{"Components": {"ID": "x1"}}"#,
                r#"[]"#,
            ],
            |components| {
                let mut invalid = InvalidEntries::default();
                (components.usable(&mut invalid), invalid)
            },
            expect![[r#"
                {"Components": []}
                    ([], InvalidEntries { unreadable: 0, impossible_ids: 0, repeated: 0 })
                {"Components": [{"ID": "x1", "Type": "Node", "State": "On", "Flag": "OK", "Enabled": true,
                            "Role": "Compute", "SubRole": "GPU", "NID": 7, "Arch": "aRM", "Class": "River", "Locked": true}]}
                    ([Hardware { id: "x1", r#type: "Node", role: "Compute", sub_role: "GPU", arch: "aRM", enabled: true, locked: false, nid: 7 }], InvalidEntries { unreadable: 0, impossible_ids: 0, repeated: 0 })
                {"Components": [{"ID": "x1", "NID": "8"}, {"ID": "x2", "NID": -1}, {"ID": "x3", "NID": null}]}
                    ([Hardware { id: "x1", r#type: "", role: "", sub_role: "", arch: "", enabled: false, locked: false, nid: 8 }, Hardware { id: "x2", r#type: "", role: "", sub_role: "", arch: "", enabled: false, locked: false, nid: 0 }, Hardware { id: "x3", r#type: "", role: "", sub_role: "", arch: "", enabled: false, locked: false, nid: 0 }], InvalidEntries { unreadable: 0, impossible_ids: 0, repeated: 0 })
                {"Components": [{"ID": "x1", "Role": "A"}, {"ID": "x1", "Role": "B"}, {"ID": "x1"}]}
                    ([Hardware { id: "x1", r#type: "", role: "A", sub_role: "", arch: "", enabled: false, locked: false, nid: 0 }], InvalidEntries { unreadable: 0, impossible_ids: 0, repeated: 2 })
                {"Components": [{"ID": ""}, {"Type": "Node"}, {"ID": 3}, null, "x1", {"ID": "x2", "Enabled": "yes"}]}
                    ([], InvalidEntries { unreadable: 5, impossible_ids: 1, repeated: 0 })
                {"Components": [{"ID": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}, {"ID": "x1"}]}
                    ([Hardware { id: "x1", r#type: "", role: "", sub_role: "", arch: "", enabled: false, locked: false, nid: 0 }], InvalidEntries { unreadable: 0, impossible_ids: 1, repeated: 0 })
                {}
                    refused: missing field `Components` at line 1 column 2
                {"Components": null}
                    refused: invalid type: null, expected a sequence at line 1 column 19
                {"Components": {"ID": "x1"}}
                    refused: invalid type: map, expected a sequence at line 1 column 15
                []
                    refused: invalid length 0, expected struct HsmComponents with 1 element at line 1 column 2
            "#]],
        );
    }

    #[test]
    fn an_unreadable_group_invalidates_the_answer() {
        check::<Vec<HsmGroup>, _>(
            &[
                r#"[]"#,
                r#"[{"label": "g", "description": "", "tags": [], "members": {"ids": ["x1", "", "x2"]}}]"#,
                r#"[{"label": "g", "members": {"ids": null}}]"#,
                r#"[{"label": "g", "members": {"ids": ["x1", 2]}}]"#,
                r#"[{"label": "g"}]"#,
                r#"[{"members": {"ids": []}}]"#,
                r#"{"groups": []}"#,
                "null",
            ],
            |groups| {
                let mut invalid = InvalidEntries::default();
                let groups: Vec<_> = groups.into_iter().map(|group| group.usable(&mut invalid)).collect();
                (groups, invalid)
            },
            expect![[r#"
                []
                    ([], InvalidEntries { unreadable: 0, impossible_ids: 0, repeated: 0 })
                [{"label": "g", "description": "", "tags": [], "members": {"ids": ["x1", "", "x2"]}}]
                    ([Group { label: "g", ids: ["x1", "x2"] }], InvalidEntries { unreadable: 0, impossible_ids: 1, repeated: 0 })
                [{"label": "g", "members": {"ids": null}}]
                    ([Group { label: "g", ids: [] }], InvalidEntries { unreadable: 0, impossible_ids: 0, repeated: 0 })
                [{"label": "g", "members": {"ids": ["x1", 2]}}]
                    refused: invalid type: integer `2`, expected a string at line 1 column 43
                [{"label": "g"}]
                    refused: missing field `members` at line 1 column 15
                [{"members": {"ids": []}}]
                    refused: missing field `label` at line 1 column 25
                {"groups": []}
                    refused: invalid type: map, expected a sequence at line 1 column 0
                null
                    refused: invalid type: null, expected a sequence at line 1 column 4
            "#]],
        );
    }

    #[test]
    fn partitions_are_read_by_name() {
        check::<Vec<HsmPartition>, _>(
            &[
                r#"[{"name": "p1", "members": {"ids": ["x1"]}}]"#,
                r#"[{"label": "p1", "members": {"ids": []}}]"#,
            ],
            |partitions| {
                let mut invalid = InvalidEntries::default();
                partitions.into_iter().map(|one| one.usable(&mut invalid)).collect::<Vec<_>>()
            },
            expect![[r#"
                [{"name": "p1", "members": {"ids": ["x1"]}}]
                    [Group { label: "p1", ids: ["x1"] }]
                [{"label": "p1", "members": {"ids": []}}]
                    refused: missing field `name` at line 1 column 40
            "#]],
        );
    }

    #[test]
    fn an_unreadable_lock_invalidates_the_answer() {
        check::<HsmLocks, _>(
            &[
                r#"{"Components": [{"ID": "x1", "Locked": true, "Reserved": false, "ReservationDisabled": false}]}"#,
                r#"{"Components": [{"ID": "x1", "Locked": false, "Reserved": true}, {"ID": "x2"}]}"#,
                r#"{"Components": []}"#,
                r#"{"Components": null}"#,
                r#"{}"#,
                r#"{"Components": [{"Locked": true}]}"#,
                r#"{"Components": ["x1"]}"#,
                r#"[]"#,
            ],
            |locks| {
                let mut ids: Vec<_> = locks.ids().into_iter().collect();
                ids.sort_unstable();
                ids
            },
            expect![[r#"
                {"Components": [{"ID": "x1", "Locked": true, "Reserved": false, "ReservationDisabled": false}]}
                    ["x1"]
                {"Components": [{"ID": "x1", "Locked": false, "Reserved": true}, {"ID": "x2"}]}
                    ["x2"]
                {"Components": []}
                    []
                {"Components": null}
                    []
                {}
                    []
                {"Components": [{"Locked": true}]}
                    refused: missing field `ID` at line 1 column 32
                {"Components": ["x1"]}
                    refused: invalid type: string "x1", expected struct HsmLock at line 1 column 20
                []
                    refused: invalid length 0, expected struct HsmLocks with 1 element at line 1 column 2
            "#]],
        );
    }
}
