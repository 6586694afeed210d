//! Documents of BMCs about a system. Only the needed fields are read, and they may be missing or of the wrong type:
//! hardware differs, and mistakes elsewhere in an answer do not matter here.

use serde_json::Value;

/// Computer system as its BMC describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputerSystem {
    /// Power of the system.
    pub power: SystemPower,
    /// Description of its reset action.
    pub reset: ResetAction,
}

/// Value of `PowerState`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemPower {
    /// The system is on.
    On,
    /// The system is off.
    Off,
    /// Neither: in transition, an unknown word, or missing.
    Other(String),
}

/// Description of the reset action of a system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResetAction {
    /// Path that takes the request; `None`: the BMC does not report it.
    pub target: Option<String>,
    /// Kinds of reset that the system takes; empty: the BMC does not list them.
    pub allowable: Vec<String>,
    /// Path of a document that may list more.
    pub info: Option<String>,
}

impl ComputerSystem {
    /// Reads a `ComputerSystem`. Missing fields are missing in the result.
    pub fn read(document: &Value) -> Self {
        let action = &document["Actions"]["#ComputerSystem.Reset"];
        let reset = ResetAction {
            target: action["target"].as_str().and_then(path),
            allowable: words(&action["ResetType@Redfish.AllowableValues"]),
            info: action["@Redfish.ActionInfo"].as_str().and_then(path),
        };
        Self { power: SystemPower::read(&document["PowerState"]), reset }
    }
}

impl SystemPower {
    fn read(state: &Value) -> Self {
        match state {
            Value::String(word) if word == "On" => Self::On,
            Value::String(word) if word == "Off" => Self::Off,
            Value::String(word) => Self::Other(format!("PowerState is '{word}'")),
            Value::Null => Self::Other("PowerState is not known to the BMC".to_owned()),
            other => Self::Other(format!("PowerState is no word but {}", kind(other))),
        }
    }
}

/// Returns the kinds of reset that an `ActionInfo` document lists.
pub fn allowable(info: &Value) -> Vec<String> {
    let parameters = info["Parameters"].as_array().map_or(&[][..], Vec::as_slice);
    let reset_type = parameters.iter().find(|parameter| parameter["Name"] == "ResetType");
    reset_type.map_or_else(Vec::new, |parameter| words(&parameter["AllowableValues"]))
}

/// Returns the first of `wanted` that a BMC takes, in the BMC's spelling. A BMC that names none gets the first; `None`:
/// the BMC takes none of them, and would only refuse.
pub fn choose_reset(wanted: &[&str], allowable: &[String]) -> Option<String> {
    if allowable.is_empty() {
        return wanted.first().map(|&first| first.to_owned());
    }
    let offered = |wanted: &&str| allowable.iter().find(|offer| offer.eq_ignore_ascii_case(wanted));
    wanted.iter().find_map(offered).cloned()
}

/// Returns the paths of the members of a collection.
pub fn members(collection: &Value) -> Vec<String> {
    let members = collection["Members"].as_array().map_or(&[][..], Vec::as_slice);
    members.iter().filter_map(link).collect()
}

/// Returns the path of a reference.
pub fn link(reference: &Value) -> Option<String> {
    reference["@odata.id"].as_str().and_then(path)
}

/// Returns the path of a reference that may be a whole address. The host in it is ignored: requests to a BMC, with its
/// credentials, are sent to no other host.
pub fn path(reference: &str) -> Option<String> {
    let rest = match reference.split_once("://") {
        Some((_, rest)) => rest.find('/').map(|slash| &rest[slash..])?,
        None => reference,
    };
    (rest.starts_with('/') && !rest.starts_with("//")).then(|| rest.to_owned())
}

fn words(list: &Value) -> Vec<String> {
    let list = list.as_array().map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    /// Documents of real hardware, reduced to the fields that could matter.
    fn hardware() -> [(&'static str, Value); 9] {
        let on_off = ["On", "ForceOff", "GracefulShutdown"];
        [
            (
                "Cray EX node",
                json!({"Id": "Node0", "PowerState": "On", "Actions": {"#ComputerSystem.Reset": {
                    "ResetType@Redfish.AllowableValues": ["ForceOff", "Off", "On"],
                    "@Redfish.ActionInfo": "/redfish/v1/Systems/Node0/ResetActionInfo",
                    "target": "/redfish/v1/Systems/Node0/Actions/ComputerSystem.Reset"}}}),
            ),
            (
                "iLO",
                json!({"Id": "1", "PowerState": "Off", "Oem": {"Hpe": {"PowerAllocationLimit": 500}},
                    "Actions": {"#ComputerSystem.Reset": {
                    "ResetType@Redfish.AllowableValues":
                        ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton"],
                    "target": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset/"}}}),
            ),
            (
                "iDRAC",
                json!({"Id": "System.Embedded.1", "PowerState": "PoweringOn",
                    "Actions": {"#ComputerSystem.Reset": {
                    "@Redfish.OperationApplyTimeSupport": {"SupportedValues": ["Immediate"]},
                    "ResetType@Redfish.AllowableValues": on_off,
                    "target": "/redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset"}}}),
            ),
            (
                "OpenBMC",
                json!({"Id": "system", "PowerState": null, "Actions": {"#ComputerSystem.Reset": {
                    "@Redfish.ActionInfo": "/redfish/v1/Systems/system/ResetActionInfo",
                    "target": "/redfish/v1/Systems/system/Actions/ComputerSystem.Reset"}}}),
            ),
            (
                "emulator",
                json!({"Id": "27946b59", "PowerState": "Off", "Actions": {"#ComputerSystem.Reset": {
                    "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "Nmi", "ForceOn"],
                    "target": "/redfish/v1/Systems/27946b59/Actions/ComputerSystem.Reset"}}}),
            ),
            (
                "whole address",
                json!({"PowerState": "On", "Actions": {"#ComputerSystem.Reset": {
                    "target": "https://elsewhere/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"}}}),
            ),
            ("paused", json!({"PowerState": "Paused", "Actions": {"#Chassis.Reset": {"target": "/x"}}})),
            ("wrong types", json!({"PowerState": 1, "Actions": [{"target": 7}]})),
            ("nothing", json!({})),
        ]
    }

    #[test]
    fn reads_what_hardware_says() {
        let mut seen = String::new();
        for (name, document) in hardware() {
            let ComputerSystem { power, reset } = ComputerSystem::read(&document);
            seen +=
                &format!("{name}: {power:?}\n  {:?} {:?} {:?}\n", reset.target, reset.allowable, reset.info);
        }
        expect![[r#"
            Cray EX node: On
              Some("/redfish/v1/Systems/Node0/Actions/ComputerSystem.Reset") ["ForceOff", "Off", "On"] Some("/redfish/v1/Systems/Node0/ResetActionInfo")
            iLO: Off
              Some("/redfish/v1/Systems/1/Actions/ComputerSystem.Reset/") ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton"] None
            iDRAC: Other("PowerState is 'PoweringOn'")
              Some("/redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset") ["On", "ForceOff", "GracefulShutdown"] None
            OpenBMC: Other("PowerState is not known to the BMC")
              Some("/redfish/v1/Systems/system/Actions/ComputerSystem.Reset") [] Some("/redfish/v1/Systems/system/ResetActionInfo")
            emulator: Off
              Some("/redfish/v1/Systems/27946b59/Actions/ComputerSystem.Reset") ["On", "ForceOff", "Nmi", "ForceOn"] None
            whole address: On
              Some("/redfish/v1/Systems/1/Actions/ComputerSystem.Reset") [] None
            paused: Other("PowerState is 'Paused'")
              None [] None
            wrong types: Other("PowerState is no word but a number")
              None [] None
            nothing: Other("PowerState is not known to the BMC")
              None [] None
        "#]].assert_eq(&seen);
    }

    #[test]
    fn finds_what_a_reset_may_be_in_an_action_info() {
        let info = json!({"Parameters": [
            {"Name": "Delay", "AllowableValues": ["1"]},
            {"Name": "ResetType", "DataType": "String", "AllowableValues": ["On", "ForceOff", 3]}]});
        assert_eq!(allowable(&info), ["On", "ForceOff"]);
        assert!(allowable(&json!({"Parameters": "none"})).is_empty());
    }

    #[test]
    fn lists_the_members_of_a_collection() {
        let collection = json!({"Members": [
            {"@odata.id": "/redfish/v1/Systems/Self"}, {"@odata.id": 1}, "Self",
            {"@odata.id": "https://10.1.0.17/redfish/v1/Systems/2"}]});
        assert_eq!(members(&collection), ["/redfish/v1/Systems/Self", "/redfish/v1/Systems/2"]);
        assert!(members(&json!([])).is_empty());
    }

    #[test]
    fn a_reference_is_a_path_at_the_same_bmc() {
        for (reference, expected) in [
            ("/redfish/v1/Systems/1", Some("/redfish/v1/Systems/1")),
            ("https://other:443/redfish/v1", Some("/redfish/v1")),
            ("https://other", None),
            ("//other/redfish/v1", None),
            ("redfish/v1", None),
            ("", None),
        ] {
            assert_eq!(path(reference).as_deref(), expected, "{reference}");
        }
    }
}
