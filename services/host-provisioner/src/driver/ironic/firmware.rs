//! Firmware of a host at its Ironic: settings and versions as they were read last, and the steps that change them.

use std::{collections::BTreeMap, sync::Arc};

use domain::host::firmware::reading::{
    FirmwareComponent, FirmwareReading, SettingKind, SettingRule, SettingsReading,
};
use serde_json::{Value, json};
use upstream::Failure;

use ironic::{IronicBackend, node::IronicNode, node_of};

use super::IronicHostDriver;
use crate::driver::{BackendOutage, FirmwareOrder, HostTarget};

impl IronicHostDriver {
    /// Reads the firmware of a host, with the rules for its settings: Ironic tells both at a time.
    ///
    /// # Errors
    /// The Ironic of the host does not answer, or does not know it.
    pub(crate) async fn read_firmware(&self, host: &HostTarget) -> Result<FirmwareReading, BackendOutage> {
        let (_, backend) = self
            .fleet
            .home(host)
            .ok_or_else(|| BackendOutage("the Ironic of the host is not known yet".to_owned()))?;
        let _slot = backend.slots.acquire().await.expect("nobody closes the slots");
        let read = async {
            let Some(node) = node_of(backend, host).await? else { return Ok(None) };
            let reading = FirmwareReading {
                settings: settings(backend, &node).await?,
                components: components(backend, &node).await?,
            };
            Ok(Some(reading))
        };
        let read = read.await.map_err(|failure: Failure| BackendOutage(failure.text))?;
        read.ok_or_else(|| BackendOutage(format!("Ironic {} does not know the host", backend.name)))
    }
}

async fn settings(backend: &IronicBackend, node: &IronicNode) -> Result<Option<SettingsReading>, Failure> {
    let Some(listed) = backend.bios(node).await? else { return Ok(None) };
    let listed = listed["bios"].as_array().into_iter().flatten();
    let mut reading = SettingsReading::default();
    let mut rules = BTreeMap::new();
    for entry in listed {
        let Some(name) = entry["name"].as_str() else { continue };
        let name: Arc<str> = name.into();
        reading.values.insert(Arc::clone(&name), text(&entry["value"]));
        if let Some(rule) = rule(entry) {
            rules.insert(name, rule);
        }
    }
    if reading.values.is_empty() {
        return Ok(None);
    }
    reading.rules = Some(rules).filter(|rules| !rules.is_empty());
    Ok(Some(reading))
}

/// Reads the rule for a setting; `None`: the hardware told Ironic none.
fn rule(entry: &Value) -> Option<SettingRule> {
    let allowed = entry["allowable_values"].as_array().into_iter().flatten();
    let kind = entry["attribute_type"].as_str()?;
    Some(SettingRule {
        kind: SettingKind::from_word(kind),
        allowed: allowed.map(text).collect(),
        lower_bound: entry["lower_bound"].as_i64(),
        upper_bound: entry["upper_bound"].as_i64(),
        min_length: entry["min_length"].as_i64(),
        max_length: entry["max_length"].as_i64(),
        read_only: entry["read_only"] == true,
        unique: entry["unique"].as_bool(),
    })
}

async fn components(
    backend: &IronicBackend,
    node: &IronicNode,
) -> Result<Option<Vec<FirmwareComponent>>, Failure> {
    let Some(listed) = backend.firmware(node).await? else { return Ok(None) };
    let listed = listed["firmware"].as_array().into_iter().flatten();
    let component = |entry: &Value| FirmwareComponent {
        name: text(&entry["component"]),
        version: text(&entry["current_version"]),
    };
    let found: Vec<_> = listed.map(component).collect();
    Ok(Some(found).filter(|found| !found.is_empty()))
}

fn text(value: &Value) -> Arc<str> {
    value
        .as_str()
        .map_or_else(|| if value.is_null() { "".into() } else { value.to_string().into() }, Arc::from)
}

/// Returns the steps that change firmware as ordered, settings first. Ironic leaves those alone that are as wished already.
pub(super) fn steps(order: &FirmwareOrder) -> Vec<Value> {
    let wishes = &order.wishes;
    let mut steps = Vec::new();
    if !wishes.settings.is_empty() {
        let settings = wishes.settings.iter();
        let settings: Vec<_> =
            settings.map(|(name, value)| json!({"name": &**name, "value": &**value})).collect();
        steps.push(
            json!({"interface": "bios", "step": "apply_configuration", "args": {"settings": settings}}),
        );
    }
    if !wishes.updates.is_empty() {
        let updates = wishes.updates.iter();
        let updates: Vec<_> =
            updates.map(|update| json!({"component": &*update.component, "url": &*update.url})).collect();
        steps.push(json!({"interface": "firmware", "step": "update", "args": {"settings": updates}}));
    }
    steps
}

#[cfg(test)]
mod tests {
    use domain::host::firmware::reading::{FirmwareUpdate, FirmwareWishes};
    use expect_test::expect;

    use super::*;

    #[test]
    fn settings_are_changed_before_versions() {
        let wishes = FirmwareWishes {
            settings: BTreeMap::from([("Turbo".into(), "Off".into())]),
            updates: vec![FirmwareUpdate { component: "bios".into(), url: "http://i/b".into() }],
        };
        let order = FirmwareOrder { wishes, ..FirmwareOrder::default() };
        let steps: Vec<_> = steps(&order).iter().map(ToString::to_string).collect();
        expect![[r#"
            {"args":{"settings":[{"name":"Turbo","value":"Off"}]},"interface":"bios","step":"apply_configuration"}
            {"args":{"settings":[{"component":"bios","url":"http://i/b"}]},"interface":"firmware","step":"update"}"#]].assert_eq(&steps.join("\n"));
    }
}
