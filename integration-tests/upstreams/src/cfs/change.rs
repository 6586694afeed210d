//! Changes of one component, of those that a filter names, and of a list of them.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use simulator::node::WantedConfiguration;

use super::{ConfigurationRequest, component, no_such};
use crate::{
    call::{SystemAnswer, SystemCall},
    history::EventKind,
    state::MachineState,
};

/// Change of one component. A missing member leaves its value as it is.
#[derive(Deserialize)]
struct ComponentPatch {
    desired_config: Option<String>,
    enabled: Option<bool>,
    /// An empty list makes the service forget the applied layers.
    state: Option<Vec<Value>>,
    tags: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct FilteredPatch {
    patch: Value,
    filters: HashMap<String, String>,
}

/// Changes the components that a filter selects, or each component of a list.
pub(super) fn many(state: &mut MachineState, call: &SystemCall) -> Result<SystemAnswer, SystemAnswer> {
    let body: Value = call.json()?;
    if let Value::Array(list) = body {
        return each(state, list);
    }
    let FilteredPatch { patch, filters } = read(body)?;
    let ids = filters.get("ids").map(String::as_str).unwrap_or_default();
    let named: Vec<&str> = ids.split(',').filter(|id| !id.is_empty()).collect();
    if named.is_empty() {
        return Err(SystemAnswer::bad_request("filters: ids must name at least one component"));
    }
    let known: Vec<_> = named.iter().filter_map(|id| state.configurable(id)).collect();
    apply(state, &known, patch)?;
    let done: Vec<_> = known.iter().map(|position| state.inventory.nodes[*position].id.as_str()).collect();
    Ok(SystemAnswer::json(&json!({"component_ids": done})).about(named.len()))
}

fn each(state: &mut MachineState, list: Vec<Value>) -> Result<SystemAnswer, SystemAnswer> {
    let mut changes = Vec::with_capacity(list.len());
    for patch in list {
        let id = patch["id"].as_str().unwrap_or_default();
        changes.push((state.configurable(id).ok_or_else(|| no_such(id))?, patch));
    }
    let mut done = Vec::with_capacity(changes.len());
    for (position, patch) in changes {
        apply(state, &[position], patch)?;
        done.push(state.inventory.nodes[position].id.clone());
    }
    Ok(SystemAnswer::json(&json!({"component_ids": done})).about(done.len()))
}

/// Changes one component.
pub(super) fn one(state: &mut MachineState, call: &SystemCall) -> Result<SystemAnswer, SystemAnswer> {
    let position = state.configurable(call.name()).ok_or_else(|| no_such(call.name()))?;
    apply(state, &[position], call.json()?)?;
    Ok(SystemAnswer::json(&component(state, position)).about(1))
}

fn read<T: for<'de> Deserialize<'de>>(value: Value) -> Result<T, SystemAnswer> {
    serde_json::from_value(value).map_err(|error| SystemAnswer::bad_request(&error.to_string()))
}

fn apply(state: &mut MachineState, positions: &[usize], patch: Value) -> Result<(), SystemAnswer> {
    let refused = positions.iter().find(|position| state.faults[**position].cfs_reject);
    if let Some(position) = refused {
        let id = &state.inventory.nodes[*position].id;
        return Err(SystemAnswer::bad_request(&format!("component {id} cannot be changed")));
    }
    let wanted: ComponentPatch = read(patch.clone())?;
    for &position in positions {
        state.configure(position, &wanted);
    }
    let ids: Vec<_> = positions.iter().map(|position| state.inventory.nodes[*position].id.clone()).collect();
    let at_millis = u64::try_from(state.now.as_millis()).unwrap_or(u64::MAX);
    state.configurations.accepted.push(ids.len(), ConfigurationRequest { at_millis, ids, patch });
    Ok(())
}

impl MachineState {
    fn configure(&mut self, position: usize, patch: &ComponentPatch) {
        let node = &self.machine.nodes()[position];
        let wanted = WantedConfiguration {
            name: patch.desired_config.as_deref().unwrap_or(node.configuration().0).into(),
            enabled: patch.enabled.unwrap_or(node.configuration_enabled()),
            clear_state: patch.state.as_ref().is_some_and(Vec::is_empty),
        };
        self.configurations.tags[position].extend(patch.tags.clone().unwrap_or_default());
        let (desired, enabled, cleared) = (wanted.name.clone(), wanted.enabled, wanted.clear_state);
        self.history.note(self.now, position, EventKind::Configuration { desired, enabled, cleared });
        let changes = self.machine.configure(self.now, &wanted, &[position]);
        self.settle(changes);
    }
}
