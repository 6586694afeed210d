//! Locks that people hold and reservations that services hold.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::components::truth;
use crate::{
    call::{SystemAnswer, SystemCall},
    history::EventKind,
    hsm::ComponentChange,
    state::MachineState,
};

/// Time for which the real service grants a reservation; the holder renews it.
const GRANTED: Duration = Duration::from_secs(15 * 60);

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct NodeLock<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    locked: bool,
    reserved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    creation_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiration_time: Option<String>,
    reservation_disabled: bool,
}

#[derive(Serialize)]
struct LockReport<'a> {
    #[serde(rename = "Components")]
    components: Vec<NodeLock<'a>>,
    #[serde(rename = "NotFound", skip_serializing_if = "Vec::is_empty")]
    not_found: Vec<&'a str>,
}

/// The locks of `ids`, or of all nodes that pass the query.
pub(super) fn status(state: &MachineState, call: &SystemCall, ids: Option<&[String]>) -> SystemAnswer {
    let is = |name: &str, own: bool| call.parameter(name).is_none_or(|wanted| truth(wanted) == Some(own));
    let of_nodes = call.parameter("type").is_none_or(|kind| kind.eq_ignore_ascii_case("node"));
    let (positions, not_found) = match ids {
        Some(ids) => {
            let known = ids.iter().filter_map(|id| state.listed(id)).collect();
            (known, ids.iter().map(String::as_str).filter(|id| state.listed(id).is_none()).collect())
        }
        None if of_nodes => (state.inventory.order.clone(), Vec::new()),
        None => (Vec::new(), Vec::new()),
    };
    let shown = positions.into_iter().filter(|position| !state.faults[*position].hsm_missing);
    let components: Vec<_> = shown
        .map(|position| lock(state, position))
        .filter(|lock| is("locked", lock.locked) && is("reserved", lock.reserved))
        .filter(|lock| !call.omit.leaves_out(lock.id))
        .collect();
    let items = ids.map_or(components.len(), <[String]>::len);
    SystemAnswer::json(&LockReport { components, not_found }).about(items)
}

fn lock(state: &MachineState, position: usize) -> NodeLock<'_> {
    let node = &state.inventory.nodes[position];
    let since = state.inventory.reservations.get(&position).map(|reservation| reservation.since);
    NodeLock {
        id: &node.id,
        locked: node.locked,
        reserved: since.is_some(),
        creation_time: since.map(|since| state.clock(since)),
        expiration_time: since.map(|since| state.clock(since + GRANTED)),
        reservation_disabled: false,
    }
}

/// Locks or unlocks; ids that are not nodes, or are so already, are reported as failures.
pub(super) fn set(state: &mut MachineState, ids: &[String], locked: bool) -> SystemAnswer {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for id in ids {
        match state.listed(id) {
            Some(position) if state.inventory.nodes[position].locked != locked => done.push(position),
            Some(_) if locked => failed.push(json!({"ID": id, "Reason": "Locked"})),
            Some(_) => failed.push(json!({"ID": id, "Reason": "Unlocked"})),
            None => failed.push(json!({"ID": id, "Reason": "NotFound"})),
        }
    }
    state.set_locked(&done, locked);
    let counts = json!({"Total": ids.len(), "Success": done.len(), "Failure": failed.len()});
    let done: Vec<_> = done.into_iter().map(|position| &state.inventory.nodes[position].id).collect();
    SystemAnswer::json(&json!({"Counts": counts, "Success": {"ComponentIDs": done}, "Failure": failed}))
        .about(ids.len())
}

impl MachineState {
    /// Locks or unlocks nodes. Operations in progress continue.
    pub(crate) fn set_locked(&mut self, positions: &[usize], locked: bool) {
        for &position in positions {
            self.inventory.nodes[position].locked = locked;
            self.history.note(self.now, position, EventKind::Locked { locked });
        }
        self.notify(positions, ComponentChange::Locked(locked));
    }
}
