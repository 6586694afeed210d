//! The JSON of the service.

use domain::{boot::configuration::ConfigurationObservation, core::id::ComponentId};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::upstream::configuration::{ConfigurationMode, ConfigurationOrder, NamedObservation};

/// Tag that names the session of a component.
pub(super) const SESSION_TAG: &str = "bos_session";

/// Words of components that are configured, and of those that never will be. The service filters by one word at a time.
pub(super) const DECIDED: [&str; 2] = ["configured", "failed"];

/// Components on a page, unless the service is configured otherwise.
pub(super) const PAGE: usize = 1000;

/// Page of components.
#[derive(Deserialize)]
pub(super) struct CfsPage {
    /// Components, read one by one: an unreadable one must not hide the others.
    pub(super) components: Vec<Value>,
    /// Query for the next page; `None`: there is none.
    #[serde(default)]
    pub(super) next: Option<Map<String, Value>>,
}

/// Answer to a change.
#[derive(Deserialize)]
pub(super) struct ChangeAnswer {
    #[serde(default)]
    pub(super) component_ids: Vec<String>,
}

/// Returns the body of a change of all of `ids`.
pub(super) fn change(ids: &[ComponentId], order: ConfigurationOrder<'_>) -> Value {
    let ids: Vec<_> = ids.iter().map(ComponentId::as_str).collect();
    let mut patch = json!({
        "enabled": order.mode == ConfigurationMode::Running,
        "desired_config": order.configuration,
        "tags": { SESSION_TAG: order.session },
    });
    if order.mode == ConfigurationMode::BeforeBoot {
        patch["state"] = json!([]);
    }
    json!({ "patch": patch, "filters": { "ids": ids.join(",") } })
}

/// Returns the members of `next` without those that are null; `None` if one cannot stand in a query.
pub(super) fn next_query(next: Map<String, Value>) -> Option<Vec<(String, String)>> {
    let members = next.into_iter().filter(|(_, value)| !value.is_null());
    let pairs = members.map(|(name, value)| match value {
        Value::String(text) => Some((name, text)),
        Value::Bool(_) | Value::Number(_) => Some((name, value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    });
    pairs.collect()
}

/// Reads the state of a component; `None` without an id. A component with members of wrong types is unknown, which is
/// not the same as missing.
pub(super) fn said(component: Value) -> Option<NamedObservation> {
    let id = component.get("id")?.as_str()?.to_owned();
    let text = |name: &str| match component.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) => Some(Some(text.clone())),
        Some(_) => None,
    };
    let observation = match (text("desired_config"), text("configuration_status")) {
        (Some(desired), Some(status)) => {
            ConfigurationObservation::Known { desired, status: status.unwrap_or_default() }
        }
        (None, _) | (_, None) => ConfigurationObservation::Unknown,
    };
    Some((id, observation))
}
