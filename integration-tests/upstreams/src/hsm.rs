//! The hardware state manager (SMD v2): components, groups, partitions, locks, notifications.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    call::{SystemAnswer, SystemCall, either},
    state::MachineState,
};

mod components;
mod inventory;
mod locks;
mod notices;

pub(crate) use inventory::InventoryRecords;
pub(crate) use notices::{ComponentChange, NoticeDelivery};

pub(crate) const OPERATIONS: &[&str] = &[
    "GET /service/ready",
    "GET /State/Components",
    "POST /State/Components/Query",
    "GET /State/Components/{id}",
    "GET /groups",
    "GET /groups/{label}",
    "GET /partitions",
    "GET /partitions/{name}",
    "GET /memberships",
    "GET /locks/status",
    "POST /locks/status",
    "POST /locks/lock",
    "POST /locks/unlock",
    "GET /Subscriptions/SCN",
    "POST /Subscriptions/SCN",
    "DELETE /Subscriptions/SCN",
    "GET /Subscriptions/SCN/{id}",
    "PUT /Subscriptions/SCN/{id}",
    "DELETE /Subscriptions/SCN/{id}",
];

/// Answers one request.
pub(crate) fn answer(state: &mut MachineState, call: &SystemCall) -> SystemAnswer {
    match call.operation {
        "GET /service/ready" => SystemAnswer::json(&json!({"code": 0, "message": "HSM is healthy"})),
        "GET /State/Components" => components::list(state, call, &call.query, None),
        "POST /State/Components/Query" => either(query(state, call)),
        "GET /State/Components/{id}" => components::one(state, call.name()),
        "GET /groups" => all(&state.inventory.groups, "label", call),
        "GET /groups/{label}" => one(&state.inventory.groups, "label", call.name()),
        "GET /partitions" => all(&state.inventory.partitions, "name", call),
        "GET /partitions/{name}" => one(&state.inventory.partitions, "name", call.name()),
        "GET /memberships" => memberships(&state.inventory),
        "GET /locks/status" => locks::status(state, call, None),
        "POST /locks/status" => either(component_ids(call).map(|ids| locks::status(state, call, Some(&ids)))),
        "POST /locks/lock" => either(component_ids(call).map(|ids| locks::set(state, &ids, true))),
        "POST /locks/unlock" => either(component_ids(call).map(|ids| locks::set(state, &ids, false))),
        _ => notices::answer(&mut state.inventory.subscriptions, call),
    }
}

/// The body as an object with its names in lower case, because the service reads them in any case.
fn members(call: &SystemCall) -> Result<Map<String, Value>, SystemAnswer> {
    let members: Map<String, Value> = call.json()?;
    Ok(members.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect())
}

fn component_ids(call: &SystemCall) -> Result<Vec<String>, SystemAnswer> {
    let ids = members(call)?.remove("componentids").unwrap_or_default();
    match serde_json::from_value::<Vec<String>>(ids) {
        Ok(ids) if !ids.is_empty() => Ok(ids),
        Ok(_) | Err(_) => Err(SystemAnswer::bad_request("ComponentIDs must be a list of at least one id")),
    }
}

fn query(state: &MachineState, call: &SystemCall) -> Result<SystemAnswer, SystemAnswer> {
    let ids = component_ids(call)?;
    let mut filters = Vec::new();
    for (name, value) in members(call)?.into_iter().filter(|(name, _)| name != "componentids") {
        // A member that is no list of texts, such as a flag that shortens the answer, filters nothing.
        let values: Vec<String> = serde_json::from_value(value).unwrap_or_default();
        filters.extend(values.into_iter().map(|value| (name.clone(), value)));
    }
    let everything = ids.iter().any(|id| id == "all" || id == "s0");
    Ok(components::list(state, call, &filters, (!everything).then_some(&ids)))
}

type Groups = std::collections::BTreeMap<String, Vec<String>>;

/// A group or a partition; the member that names it differs.
#[derive(Serialize)]
struct GroupView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    description: &'static str,
    members: MemberList<'a>,
}

#[derive(Serialize)]
struct MemberList<'a> {
    ids: Vec<&'a String>,
}

fn group<'a>(named_by: &str, name: &'a str, ids: impl Iterator<Item = &'a String>) -> GroupView<'a> {
    let (label, name) = if named_by == "label" { (Some(name), None) } else { (None, Some(name)) };
    GroupView { label, name, description: "", members: MemberList { ids: ids.collect() } }
}

fn all(groups: &Groups, named_by: &str, call: &SystemCall) -> SystemAnswer {
    let items = groups.values().map(Vec::len).sum();
    let groups: Vec<_> = groups
        .iter()
        .map(|(name, ids)| group(named_by, name, ids.iter().filter(|id| !call.omit.leaves_out(id))))
        .collect();
    SystemAnswer::json(&groups).about(items)
}

fn one(groups: &Groups, named_by: &str, name: &str) -> SystemAnswer {
    match groups.get(name) {
        Some(ids) => SystemAnswer::json(&group(named_by, name, ids.iter())).about(ids.len()),
        None => SystemAnswer::not_found(&format!("there is no {name}")),
    }
}

fn memberships(inventory: &InventoryRecords) -> SystemAnswer {
    let of = |id: &str, groups: &Groups| -> Vec<String> {
        let with = groups.iter().filter(|(_, ids)| ids.iter().any(|member| member == id));
        with.map(|(name, _)| name.clone()).collect()
    };
    let membership = |node: &proto::inventory::Hardware| {
        let partition = of(&node.id, &inventory.partitions).into_iter().next().unwrap_or_default();
        json!({"id": node.id, "partitionName": partition, "groupLabels": of(&node.id, &inventory.groups)})
    };
    SystemAnswer::json(&inventory.nodes.iter().map(membership).collect::<Vec<_>>())
}

/// The answer to a request for a record that does not exist.
fn no_such(what: &str) -> SystemAnswer {
    SystemAnswer::problem(StatusCode::NOT_FOUND, "Not Found", &format!("no such {what}"))
}
