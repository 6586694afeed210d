//! Files in the form of answers of the hardware state manager (HSM): `GET /hsm/v2/State/HsmComponents` and `GET
//! /hsm/v2/groups`.
//!
//! Exports differ between releases, so members that are not needed may be absent, and unknown members are ignored.
//! Known members must have the right shape; an error names the place of a wrong one.

use std::{collections::HashSet, fs, io, path::Path};

use proto::inventory::{Group, Hardware};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::topology::{self, NODE};

/// Reason why an inventory file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HsmFileError {
    /// The file cannot be read at all.
    #[error("{file}: cannot be read")]
    Unreadable {
        /// Path as in the settings.
        file: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The text is not JSON, or a member does not have the shape that HSM gives it.
    #[error("{file}: line {line} column {column}: {reason}")]
    Malformed {
        /// Path as in the settings.
        file: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// Reason, after the path of the member, such as `Components[3].NID`, if there is one.
        reason: String,
    },
    /// A well-formed file that contradicts itself.
    #[error("{file}: {path}: {reason}")]
    Contradictory {
        /// Path as in the settings.
        file: String,
        /// Path of the member, such as `Components[3].ID`.
        path: String,
        /// Reason of the contradiction.
        reason: String,
    },
}

/// Reads the answer to `GET /hsm/v2/State/HsmComponents` from a file.
pub fn read_inventory(path: &Path) -> Result<Vec<Hardware>, HsmFileError> {
    parse_inventory(&path.display().to_string(), &read(path)?)
}

/// Reads the answer to `GET /hsm/v2/groups` from a file.
pub fn read_groups(path: &Path) -> Result<Vec<Group>, HsmFileError> {
    parse_groups(&path.display().to_string(), &read(path)?)
}

fn read(path: &Path) -> Result<String, HsmFileError> {
    fs::read_to_string(path)
        .map_err(|source| HsmFileError::Unreadable { file: path.display().to_string(), source })
}

/// Parses an answer to `GET /hsm/v2/State/HsmComponents`; `file` names the text in errors.
pub fn parse_inventory(file: &str, text: &str) -> Result<Vec<Hardware>, HsmFileError> {
    let components = parse::<HsmComponents>(file, text)?.components;
    let mut seen = HashSet::new();
    for (index, component) in components.iter().enumerate() {
        if !seen.insert(component.id.0.as_str()) {
            return Err(HsmFileError::Contradictory {
                file: file.to_owned(),
                path: format!("Components[{index}].ID"),
                reason: format!("{} is listed twice", component.id.0),
            });
        }
    }
    Ok(components.into_iter().map(Hardware::from).collect())
}

/// Parses an answer to `GET /hsm/v2/groups`; `file` names the text in errors.
pub fn parse_groups(file: &str, text: &str) -> Result<Vec<Group>, HsmFileError> {
    let groups: Vec<LabelledGroup> = parse(file, text)?;
    Ok(groups.into_iter().map(Group::from).collect())
}

fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, HsmFileError> {
    let mut input = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut input).map_err(|error| {
        // A lone point is the whole document, a question mark a member whose name was not read yet.
        let path = error.path().to_string();
        let path = Some(path.trim_end_matches(".?")).filter(|path| !path.is_empty() && *path != ".");
        malformed(file, path, error.inner())
    })?;
    input.end().map_err(|error| malformed(file, None, &error))?;
    Ok(value)
}

fn malformed(file: &str, path: Option<&str>, error: &serde_json::Error) -> HsmFileError {
    let line = error.line();
    let column = error.column();
    let text = error.to_string();
    let reason = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    let reason = path.map_or_else(|| reason.to_owned(), |path| format!("{path}: {reason}"));
    HsmFileError::Malformed { file: file.to_owned(), line, column, reason }
}

/// Returns the first `nodes` nodes of the generated machine in the form of HSM, one component per line.
pub fn inventory_json(nodes: u32) -> String {
    let components = topology::generate(nodes).into_iter().map(HsmComponent::from);
    format!("{{\"Components\":[\n{}\n]}}\n", lines(components))
}

/// Returns the groups of the generated machine with `nodes` nodes in the form of HSM, one group per line.
pub fn groups_json(nodes: u32) -> String {
    let groups = topology::groups(&topology::generate(nodes)).into_iter().map(LabelledGroup::from);
    format!("[\n{}\n]\n", lines(groups))
}

fn lines(items: impl Iterator<Item = impl Serialize>) -> String {
    let line = |item| serde_json::to_string(&item).expect("plain strings and numbers are always valid JSON");
    items.map(line).collect::<Vec<_>>().join(",\n")
}

#[derive(Deserialize)]
struct HsmComponents {
    #[serde(rename = "Components")]
    components: Vec<HsmComponent>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct HsmComponent {
    #[serde(rename = "ID")]
    id: HardwareId,
    r#type: Option<String>,
    #[serde(skip_deserializing)]
    state: &'static str,
    #[serde(skip_deserializing)]
    flag: &'static str,
    enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub_role: Option<String>,
    #[serde(rename = "NID")]
    nid: Option<NodeNumber>,
    #[serde(skip_deserializing)]
    net_type: &'static str,
    arch: Option<String>,
    #[serde(skip_deserializing)]
    class: &'static str,
    locked: Option<bool>,
}

impl From<HsmComponent> for Hardware {
    fn from(component: HsmComponent) -> Self {
        let implied = || if topology::is_node(&component.id.0) { NODE.to_owned() } else { String::new() };
        Self {
            r#type: component.r#type.unwrap_or_else(implied),
            id: component.id.0,
            role: component.role.unwrap_or_default(),
            sub_role: component.sub_role.unwrap_or_default(),
            arch: component.arch.unwrap_or_default(),
            enabled: component.enabled.unwrap_or(true),
            locked: component.locked.unwrap_or(false),
            nid: component.nid.map_or(0, |nid| nid.0),
        }
    }
}

impl From<Hardware> for HsmComponent {
    fn from(hardware: Hardware) -> Self {
        Self {
            id: HardwareId(hardware.id),
            r#type: Some(hardware.r#type),
            state: "Off",
            flag: "OK",
            enabled: Some(hardware.enabled),
            role: Some(hardware.role).filter(|role| !role.is_empty()),
            sub_role: Some(hardware.sub_role).filter(|role| !role.is_empty()),
            nid: Some(NodeNumber(hardware.nid)),
            net_type: "Sling",
            arch: Some(hardware.arch),
            class: "Mountain",
            locked: Some(hardware.locked),
        }
    }
}

/// Id of a piece of hardware, within the limits of component ids (BOS reference 2.3).
#[derive(Deserialize, Serialize)]
#[serde(try_from = "String")]
struct HardwareId(String);

impl TryFrom<String> for HardwareId {
    type Error = &'static str;

    fn try_from(id: String) -> Result<Self, Self::Error> {
        match id.chars().count() {
            1..=127 => Ok(Self(id)),
            _ => Err("must have 1 to 127 characters"),
        }
    }
}

/// Number of a node. HSM writes -1 for none; here none is 0.
#[derive(Deserialize, Serialize)]
#[serde(try_from = "i64")]
struct NodeNumber(u32);

impl TryFrom<i64> for NodeNumber {
    type Error = &'static str;

    fn try_from(nid: i64) -> Result<Self, Self::Error> {
        u32::try_from(nid.max(0)).map(Self).map_err(|_| "must be below 4294967296")
    }
}

#[derive(Deserialize, Serialize)]
struct LabelledGroup {
    label: String,
    #[serde(skip_deserializing)]
    description: String,
    #[serde(skip_deserializing)]
    tags: [String; 0],
    members: GroupMembers,
}

#[derive(Deserialize, Serialize)]
struct GroupMembers {
    ids: Option<Vec<HardwareId>>,
}

impl From<LabelledGroup> for Group {
    fn from(group: LabelledGroup) -> Self {
        let ids = group.members.ids.unwrap_or_default();
        Self { label: group.label, ids: ids.into_iter().map(|id| id.0).collect() }
    }
}

impl From<Group> for LabelledGroup {
    fn from(group: Group) -> Self {
        Self {
            description: format!("chassis row {}", group.label),
            label: group.label,
            tags: [],
            members: GroupMembers { ids: Some(group.ids.into_iter().map(HardwareId).collect()) },
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{expect, expect_file};

    use super::*;

    fn outcomes<T: std::fmt::Debug>(
        texts: &[&str],
        parse: impl Fn(&str) -> Result<T, HsmFileError>,
    ) -> String {
        let outcome = |text: &&str| match parse(text) {
            Ok(value) => format!("{value:?}\n"),
            Err(error) => format!("error: {error}\n"),
        };
        texts.iter().map(outcome).collect()
    }

    #[test]
    fn takes_what_exports_contain() {
        let texts = [
            r#"{"Components":[]}"#,
            r#"{"Components":[{"ID":"x1000c0s0b0n0"}]}"#,
            r#"{"Components":[{"ID":"x1000c0s0b0"}]}"#,
            r#"{"Components":[{"ID":"x1c0s0b0n0","Type":"Node","State":"Ready","Flag":"OK","Enabled":false,
                "SoftwareStatus":"","Role":"Application","SubRole":"UAN","NID":7,"NetType":"Sling","Arch":"ARM",
                "Class":"River","ReservationDisabled":true,"Locked":true}]}"#,
            r#"{"Components":[{"ID":"x1000c0s0b0","Type":"NodeBMC","State":"Ready","NID":-1,"Role":null}],"Extra":1}"#,
        ];
        expect![[r#"
            []
            [Hardware { id: "x1000c0s0b0n0", r#type: "Node", role: "", sub_role: "", arch: "", enabled: true, locked: false, nid: 0 }]
            [Hardware { id: "x1000c0s0b0", r#type: "", role: "", sub_role: "", arch: "", enabled: true, locked: false, nid: 0 }]
            [Hardware { id: "x1c0s0b0n0", r#type: "Node", role: "Application", sub_role: "UAN", arch: "ARM", enabled: false, locked: true, nid: 7 }]
            [Hardware { id: "x1000c0s0b0", r#type: "NodeBMC", role: "", sub_role: "", arch: "", enabled: true, locked: false, nid: 0 }]
        "#]].assert_eq(&outcomes(&texts, |text| parse_inventory("hsm.json", text)));
    }

    #[test]
    fn says_where_an_inventory_is_malformed() {
        let texts = [
            "",
            "[]",
            "{\"Components\":[\n{\"ID\":\"x1000c0s0b0n0\",}\n]}",
            "{\"Components\":[\n{\"ID\":\"x1000c0s0b0n0\",\"NID\":1},\n{\"ID\":\"x1000c0s0b0n1\",\"NID\":\"2\"}\n]}",
            r#"{"Components":[{"Type":"Node"}]}"#,
            r#"{"Components":[{"ID":""}]}"#,
            r#"{"Components":[{"ID":"x1000c0s0b0n0","Enabled":"yes"}]}"#,
            r#"{"Components":[{"ID":"x1000c0s0b0n0","NID":4294967296}]}"#,
            r#"{"Components":[{"ID":"x1"},{"ID":"x2"},{"ID":"x1"}]}"#,
            r#"{"Components":{}}"#,
            r#"{"components":[]}"#,
            "{\"Components\":[]}\nmore",
        ];
        expect![[r#"
            error: hsm.json: line 1 column 0: EOF while parsing a value
            error: hsm.json: line 1 column 2: invalid length 0, expected struct HsmComponents with 1 element
            error: hsm.json: line 2 column 23: Components[0]: trailing comma
            error: hsm.json: line 3 column 31: Components[1].NID: invalid type: string "2", expected i64
            error: hsm.json: line 1 column 30: Components[0]: missing field `ID`
            error: hsm.json: line 1 column 24: Components[0].ID: must have 1 to 127 characters
            error: hsm.json: line 1 column 52: Components[0].Enabled: invalid type: string "yes", expected a boolean
            error: hsm.json: line 1 column 54: Components[0].NID: must be below 4294967296
            error: hsm.json: Components[2].ID: x1 is listed twice
            error: hsm.json: line 1 column 14: Components: invalid type: map, expected a sequence
            error: hsm.json: line 1 column 17: missing field `Components`
            error: hsm.json: line 2 column 1: trailing characters
        "#]].assert_eq(&outcomes(&texts, |text| parse_inventory("hsm.json", text)));
    }

    #[test]
    fn reads_groups_or_says_where_they_are_malformed() {
        let texts = [
            "[]",
            r#"[{"label":"blue","description":"row","tags":["a"],"exclusiveGroup":"x","members":{"ids":["x1","x2"]}}]"#,
            r#"[{"label":"empty","members":{}}]"#,
            r#"[{"label":"blue"}]"#,
            r#"[{"members":{"ids":[]}}]"#,
            r#"[{"label":"blue","members":{"ids":["x1",2]}}]"#,
            r#"{"label":"blue"}"#,
        ];
        expect![[r#"
            []
            [Group { label: "blue", ids: ["x1", "x2"] }]
            [Group { label: "empty", ids: [] }]
            error: groups.json: line 1 column 17: [0]: missing field `members`
            error: groups.json: line 1 column 23: [0]: missing field `label`
            error: groups.json: line 1 column 41: [0].members.ids[1]: invalid type: integer `2`, expected a string
            error: groups.json: line 1 column 0: invalid type: map, expected a sequence
        "#]].assert_eq(&outcomes(&texts, |text| parse_groups("groups.json", text)));
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read_inventory(Path::new("no/such/inventory.json")).expect_err("there is no such file");
        expect!["no/such/inventory.json: cannot be read"].assert_eq(&error.to_string());
    }

    #[test]
    fn what_is_written_can_be_read() {
        let hardware = topology::generate(300);
        assert_eq!(parse_inventory("", &inventory_json(300)).expect("own format"), hardware);
        assert_eq!(parse_groups("", &groups_json(300)).expect("own format"), topology::groups(&hardware));
    }

    /// The default files of the demo are meant as starting points for users, and must stay equal to the output of
    /// `--nodes 96`.
    #[test]
    fn the_demo_files_equal_the_generated_fleet_of_96() {
        expect_file!["../../all-in-one/demo/inventory.json"].assert_eq(&inventory_json(96));
        expect_file!["../../all-in-one/demo/groups.json"].assert_eq(&groups_json(96));
    }
}
