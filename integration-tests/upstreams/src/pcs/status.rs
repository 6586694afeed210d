//! Power states of nodes.

use serde::{Deserialize, Serialize};

use crate::{
    call::{SystemAnswer, SystemCall},
    state::MachineState,
    xname,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusQuery {
    #[serde(default)]
    xname: Vec<String>,
    #[serde(default)]
    power_state_filter: String,
    #[serde(default)]
    management_state_filter: String,
}

#[derive(Serialize)]
struct StatusList<'a> {
    status: Vec<StatusEntry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusEntry<'a> {
    xname: &'a str,
    power_state: &'static str,
    management_state: &'static str,
    error: &'a str,
    supported_power_transitions: Option<&'static [&'static str]>,
    last_updated: String,
}

const SUPPORTED: &[&str] = &["On", "Force-Off", "Soft-Off", "Off", "Init", "Hard-Restart", "Soft-Restart"];

pub(super) fn get(state: &MachineState, call: &SystemCall) -> Result<SystemAnswer, SystemAnswer> {
    let text = |name| call.parameter(name).unwrap_or_default().to_owned();
    let wanted = StatusQuery {
        xname: call.parameters("xname").map(str::to_owned).collect(),
        power_state_filter: text("powerStateFilter"),
        management_state_filter: text("managementStateFilter"),
    };
    answer(state, call, &wanted)
}

pub(super) fn post(state: &MachineState, call: &SystemCall) -> Result<SystemAnswer, SystemAnswer> {
    answer(state, call, &call.json()?)
}

fn answer(
    state: &MachineState,
    call: &SystemCall,
    wanted: &StatusQuery,
) -> Result<SystemAnswer, SystemAnswer> {
    let malformed: Vec<_> =
        wanted.xname.iter().filter(|id| !xname::is_well_formed(id)).map(String::as_str).collect();
    if !malformed.is_empty() {
        return Err(SystemAnswer::bad_request(&format!("invalid xnames detected: {}", malformed.join(" "))));
    }
    check(&wanted.power_state_filter, &["on", "off", "undefined"], "powerStateFilter")?;
    check(&wanted.management_state_filter, &["available", "unavailable"], "managementStateFilter")?;

    let names: Vec<_> = wanted.xname.iter().map(|id| xname::canonical(id)).collect();
    let entries: Vec<_> = match names.is_empty() {
        true => {
            let known = state.inventory.order.iter().filter(|position| !state.faults[**position].pcs_missing);
            known.filter_map(|position| entry(state, *position)).collect()
        }
        false => names.iter().filter_map(|name| named(state, name)).collect(),
    };
    let passes = |filter: &str, own: &str| filter.is_empty() || filter.eq_ignore_ascii_case(own);
    let status: Vec<_> = entries
        .into_iter()
        .filter(|entry| passes(&wanted.power_state_filter, entry.power_state))
        .filter(|entry| passes(&wanted.management_state_filter, entry.management_state))
        .filter(|entry| !call.omit.leaves_out(entry.xname))
        .collect();
    let items = if wanted.xname.is_empty() { status.len() } else { wanted.xname.len() };
    Ok(SystemAnswer::json(&StatusList { status }).about(items))
}

fn check(filter: &str, known: &[&str], name: &str) -> Result<(), SystemAnswer> {
    let passes = filter.is_empty() || known.iter().any(|word| filter.eq_ignore_ascii_case(word));
    if passes { Ok(()) } else { Err(SystemAnswer::bad_request(&format!("invalid {name} type: {filter}"))) }
}

/// The entry of a node. An unknown id gets an entry with an error.
fn named<'a>(state: &'a MachineState, name: &'a str) -> Option<StatusEntry<'a>> {
    let known = state.machine.position(name).filter(|position| !state.faults[*position].pcs_missing);
    match known {
        Some(position) => entry(state, position),
        None => Some(StatusEntry {
            xname: name,
            power_state: "",
            management_state: "",
            error: "Component not found in component map.",
            supported_power_transitions: None,
            last_updated: String::new(),
        }),
    }
}

fn entry(state: &MachineState, position: usize) -> Option<StatusEntry<'_>> {
    let faults = &state.faults[position];
    if faults.pcs_omitted {
        return None;
    }
    let (power_state, management_state) = match &faults.pcs_error {
        None if !faults.pcs_undefined => (if state.reads_on(position) { "on" } else { "off" }, "available"),
        None | Some(_) => ("undefined", "unavailable"),
    };
    Some(StatusEntry {
        xname: &state.inventory.nodes[position].id,
        power_state,
        management_state,
        error: faults.pcs_error.as_deref().unwrap_or_default(),
        supported_power_transitions: Some(SUPPORTED),
        last_updated: state.clock(state.power.changed_at(state.now, position)),
    })
}
