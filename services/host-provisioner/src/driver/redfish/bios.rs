//! Settings of the BIOS of a system, and their rules (DSP0268 `Bios`, `AttributeRegistry`).

use std::{collections::BTreeMap, sync::Arc};

use domain::host::firmware::reading::{SettingKind, SettingRule};
use http::header::IF_MATCH;
use redfish::{link, members, path};
use serde_json::{Map, Value, json};
use upstream::{Failure, Request};

use super::{Turn, components::offered, inventory::optional};

/// Part of the names of all registries of BIOS settings.
const REGISTRY: &str = "BiosAttributeRegistry";

/// Registries that may be the wanted one and are read. A BMC lists dozens of other kinds.
const MOST_CANDIDATES: usize = 4;

/// BIOS of a system.
pub(super) struct SystemBios {
    attributes: Map<String, Value>,
    /// Name of the registry with the rules.
    registry: Option<String>,
    /// Path of the settings that hold from the next reset on.
    pending: String,
    /// Whether the BMC wants to be told when the settings are to hold.
    takes_apply_time: bool,
}

/// Reads the BIOS of the system with that document; `None`: the BMC offers no settings of it.
pub(super) async fn read(turn: &mut Turn<'_>, system: &Value) -> Result<Option<SystemBios>, Failure> {
    let Some(at) = link(&system["Bios"]) else { return Ok(None) };
    let Some(document) = offered(turn.get("bios_get", &at).await)? else { return Ok(None) };
    Ok(SystemBios::read(&at, &document))
}

impl SystemBios {
    /// Reads a `Bios`; `None`: it has no settings.
    fn read(at: &str, document: &Value) -> Option<Self> {
        let settings = &document["@Redfish.Settings"];
        let times = settings["SupportedApplyTimes"].as_array();
        Some(Self {
            attributes: document["Attributes"].as_object()?.clone(),
            registry: document["AttributeRegistry"].as_str().map(str::to_owned),
            pending: link(&settings["SettingsObject"])
                .unwrap_or_else(|| format!("{}/Settings", at.trim_end_matches('/'))),
            takes_apply_time: times.is_some_and(|times| times.iter().any(|time| time == "OnReset")),
        })
    }

    /// Returns the present values.
    pub(super) fn values(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        self.attributes.iter().map(|(name, value)| (name.as_str().into(), text(value).into())).collect()
    }

    /// Changes settings with the next reset. Some BMCs take a change only on the condition of the version that it is made from.
    ///
    /// # Errors
    /// The failure states the known effect of the change.
    pub(super) async fn change<'a>(
        &self,
        turn: &mut Turn<'_>,
        wishes: impl Iterator<Item = (&'a Arc<str>, &'a Arc<str>)>,
    ) -> Result<(), Failure> {
        let request = self.request(wishes);
        let version = turn.version("bios_settings_get", &self.pending).await?;
        turn.send(match version {
            Some(version) => request.header(IF_MATCH, version),
            None => request,
        })
        .await
    }

    fn request<'a>(&self, wishes: impl Iterator<Item = (&'a Arc<str>, &'a Arc<str>)>) -> Request {
        let attributes: Map<_, _> = wishes
            .map(|(name, value)| (name.to_string(), typed(self.attributes.get(&**name), value)))
            .collect();
        let mut body = json!({ "Attributes": attributes });
        if self.takes_apply_time {
            body["@Redfish.SettingsApplyTime"] =
                json!({"@odata.type": "#Settings.v1_0_0.PreferredApplyTime", "ApplyTime": "OnReset"});
        }
        Request::patch("bios_change", &self.pending).json(&body)
    }

    /// Reads the rules for the settings; `None`: the BMC tells none.
    pub(super) async fn rules(
        &self,
        turn: &mut Turn<'_>,
    ) -> Result<Option<BTreeMap<Arc<str>, SettingRule>>, Failure> {
        let Some(registry) = &self.registry else { return Ok(None) };
        let root = turn.root().await?;
        let Some(registries) = link(&root["Registries"]) else { return Ok(None) };
        let Some(listed) = optional(turn.get("registries_get", &registries).await)? else { return Ok(None) };
        for candidate in candidates(&members(&listed), registry) {
            let Some(file) = optional(turn.get("registry_get", &candidate).await)? else { continue };
            let Some(at) = location(&file) else { continue };
            let Some(document) = optional(turn.get("registry_get", &at).await)? else { continue };
            if is_named(&file, registry) || is_named(&document, registry) {
                return Ok(Some(rules(&document)));
            }
        }
        Ok(None)
    }
}

/// Returns the paths at which the registry of that name may be, the likeliest first.
fn candidates(listed: &[String], registry: &str) -> Vec<String> {
    let last = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let mut found: Vec<_> = listed
        .iter()
        .filter(|path| last(path) == registry || last(path).contains(REGISTRY))
        .cloned()
        .collect();
    found.sort_by_key(|path| last(path) != registry);
    found.truncate(MOST_CANDIDATES);
    found
}

fn is_named(document: &Value, registry: &str) -> bool {
    document["Id"] == registry || document["Registry"] == registry
}

/// Returns the path of the English registry that a file describes, or of the first one.
fn location(file: &Value) -> Option<String> {
    let locations = file["Location"].as_array()?;
    let english =
        locations.iter().find(|one| one["Language"].as_str().is_some_and(|word| word.starts_with("en")));
    english.or(locations.first())?["Uri"].as_str().and_then(path)
}

fn rules(registry: &Value) -> BTreeMap<Arc<str>, SettingRule> {
    let listed = registry["RegistryEntries"]["Attributes"].as_array().into_iter().flatten();
    listed.filter_map(|entry| Some((entry["AttributeName"].as_str()?.into(), rule(entry)))).collect()
}

fn rule(entry: &Value) -> SettingRule {
    let values = entry["Value"].as_array().into_iter().flatten();
    let name =
        |value: &Value| value["ValueName"].as_str().or(value["ValueDisplayName"].as_str()).map(Arc::from);
    SettingRule {
        kind: SettingKind::from_word(entry["Type"].as_str().unwrap_or_default()),
        allowed: values.filter_map(name).collect(),
        lower_bound: entry["LowerBound"].as_i64(),
        upper_bound: entry["UpperBound"].as_i64(),
        min_length: entry["MinLength"].as_i64(),
        max_length: entry["MaxLength"].as_i64(),
        read_only: entry["ReadOnly"] == true,
        unique: entry["IsSystemUniqueProperty"].as_bool(),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Returns a wish in the type of the present value: BMCs refuse a number or a truth value in quotes.
fn typed(present: Option<&Value>, wish: &str) -> Value {
    match present {
        Some(Value::Number(_)) => wish.parse::<i64>().map_or_else(|_| wish.into(), Value::from),
        Some(Value::Bool(_)) => wish.to_lowercase().parse::<bool>().map_or_else(|_| wish.into(), Value::from),
        Some(Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_)) | None => wish.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_get_the_types_of_the_present_values() {
        let document = json!({"Attributes": {"Delay": 5, "Quiet": false, "Turbo": "On", "Asset": null}});
        let bios = SystemBios::read("/s/1/Bios/", &document).unwrap();
        assert_eq!((bios.pending.as_str(), bios.values()["Asset"].as_ref()), ("/s/1/Bios/Settings", ""));
        for (name, wish, expected) in [
            ("Delay", "7", json!(7)),
            ("Delay", "soon", json!("soon")),
            ("Quiet", "True", json!(true)),
            ("Turbo", "7", json!("7")),
            ("Asset", "x", json!("x")),
        ] {
            assert_eq!(typed(bios.attributes.get(name), wish), expected, "{name}");
        }
    }

    #[test]
    fn the_registry_of_the_settings_comes_first() {
        let listed = ["/r/Messages", "/r/BiosAttributeRegistry.v1", "/r/BiosAttributeRegistryP89.v1/"];
        let found = candidates(&listed.map(str::to_owned), "BiosAttributeRegistryP89.v1");
        assert_eq!(found, ["/r/BiosAttributeRegistryP89.v1/", "/r/BiosAttributeRegistry.v1"]);
        let file = json!({"Location": [{"Language": "ja", "Uri": "/j"}, {"Language": "en-US", "Uri": "/e"}]});
        assert_eq!(location(&file).as_deref(), Some("/e"));
    }

    #[test]
    fn rules_are_read_from_their_registry() {
        let registry = json!({"RegistryEntries": {"Attributes": [
            {"AttributeName": "Turbo", "Type": "Enumeration", "ReadOnly": true,
             "Value": [{"ValueName": "On"}, {"ValueDisplayName": "Off"}]},
            {"AttributeName": "Delay", "Type": "Integer", "LowerBound": 0, "UpperBound": 20}, {"Type": "String"}]}});
        let turbo = SettingRule {
            kind: SettingKind::Enumeration,
            allowed: vec!["On".into(), "Off".into()],
            read_only: true,
            ..SettingRule::default()
        };
        let delay = SettingRule {
            kind: SettingKind::Integer,
            lower_bound: Some(0),
            upper_bound: Some(20),
            ..SettingRule::default()
        };
        assert_eq!(rules(&registry), BTreeMap::from([("Turbo".into(), turbo), ("Delay".into(), delay)]));
    }
}
