//! The power control service: power states of nodes, and transitions in time.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    call::{SystemAnswer, SystemCall, either},
    state::MachineState,
    xname,
};

mod engine;
mod power;
mod status;
#[cfg(test)]
mod timeline;
mod transition;

pub(crate) use power::PowerRecords;
pub(crate) use transition::PowerOperation;

use transition::{NodeTask, PowerTransition, TaskCounts, TaskDeadline};

pub(crate) const OPERATIONS: &[&str] = &[
    "GET /liveness",
    "GET /readiness",
    "GET /power-status",
    "POST /power-status",
    "GET /transitions",
    "POST /transitions",
    "GET /transitions/{id}",
    "DELETE /transitions/{id}",
];

/// Deadline in minutes of a request without one.
const MINUTES: i64 = 5;

/// Answers one request.
pub(crate) fn answer(state: &mut MachineState, call: &SystemCall) -> SystemAnswer {
    match call.operation {
        "GET /power-status" => either(status::get(state, call)),
        "POST /power-status" => either(status::post(state, call)),
        "GET /transitions" => list(state),
        "POST /transitions" => either(create(state, call)),
        "GET /transitions/{id}" => match state.power.by_id(call.name()) {
            Some(transition) => {
                SystemAnswer::json(&shown(state, transition, true)).about(transition.tasks.len())
            }
            None => SystemAnswer::not_found("there is no such transition"),
        },
        "DELETE /transitions/{id}" => abort(state, call.name()),
        _ => SystemAnswer::empty(StatusCode::NO_CONTENT),
    }
}

#[derive(Deserialize)]
struct TransitionRequest {
    operation: String,
    #[serde(rename = "taskDeadlineMinutes")]
    minutes: Option<i64>,
    #[serde(default)]
    location: Vec<NodeLocation>,
}

#[derive(Deserialize)]
struct NodeLocation {
    xname: String,
}

/// Accepts a transition before its nodes are examined, unless a test has it refused or the request is too large to be
/// stored.
fn create(state: &mut MachineState, call: &SystemCall) -> Result<SystemAnswer, SystemAnswer> {
    let wanted: TransitionRequest = call.json()?;
    let operation = PowerOperation::from_word(&wanted.operation)
        .ok_or_else(|| SystemAnswer::bad_request(&format!("invalid Operation type {}", wanted.operation)))?;
    let xnames: Vec<String> =
        wanted.location.into_iter().map(|location| xname::canonical(&location.xname)).collect();
    if xnames.len() > state.power.plan.most_nodes {
        let detail = "etcdserver: request is too large";
        return Err(SystemAnswer::problem(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Internal Server Error",
            detail,
        ));
    }
    let rejected = |xname: &&String| {
        state.machine.position(xname).is_some_and(|position| state.faults[position].pcs_reject)
    };
    if let Some(xname) = xnames.iter().find(rejected) {
        return Err(SystemAnswer::bad_request(&format!("invalid xnames detected: {xname}")));
    }
    let deadline = match wanted.minutes.unwrap_or(MINUTES) {
        0 => TaskDeadline::NotAwaited,
        minutes @ 1.. => {
            TaskDeadline::After(state.power.plan.minute * u32::try_from(minutes).unwrap_or(u32::MAX))
        }
        _ => TaskDeadline::Never,
    };
    let items = xnames.len();
    let id = state.accept(operation, deadline, xnames);
    if call.worker_dies {
        state.kill_worker(&id);
    }
    let body = json!({"transitionID": *id, "operation": operation.word()});
    Ok(SystemAnswer::json(&body).about(items))
}

fn abort(state: &mut MachineState, id: &str) -> SystemAnswer {
    match state.signal_abort(id) {
        Some(true) => SystemAnswer {
            status: StatusCode::ACCEPTED,
            ..SystemAnswer::json(&json!({"abortStatus": "Accepted - abort initiated"}))
        },
        Some(false) => SystemAnswer::bad_request("Transition is already finished and cannot be aborted."),
        None => SystemAnswer::not_found("there is no such transition"),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TransitionView<'a> {
    #[serde(rename = "transitionID")]
    transition_id: &'a Arc<str>,
    operation: &'static str,
    create_time: String,
    automatic_expiration_time: String,
    transition_status: &'static str,
    task_counts: TaskCounts,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tasks: &'a [NodeTask],
}

fn shown<'a>(state: &MachineState, transition: &'a PowerTransition, with_tasks: bool) -> TransitionView<'a> {
    TransitionView {
        transition_id: &transition.id,
        operation: transition.operation.word(),
        create_time: state.clock(transition.created),
        automatic_expiration_time: state.clock(transition.created + state.power.plan.kept_for),
        transition_status: transition.status.word(),
        task_counts: transition.counts(),
        tasks: if with_tasks { &transition.tasks } else { &[] },
    }
}

fn list(state: &MachineState) -> SystemAnswer {
    let transitions: Vec<_> =
        state.power.transitions().map(|transition| shown(state, transition, false)).collect();
    let items = transitions.len();
    SystemAnswer::json(&json!({"transitions": transitions})).about(items)
}

impl MachineState {
    /// Accepts a transition with the usual deadline; `None`: there is no such operation.
    pub(crate) fn ask_for_power(&mut self, operation: &str, ids: &[String]) -> Option<String> {
        let deadline =
            TaskDeadline::After(self.power.plan.minute * u32::try_from(MINUTES).unwrap_or(u32::MAX));
        Some(self.accept(PowerOperation::from_word(operation)?, deadline, ids.to_vec()).to_string())
    }

    /// All details of all transitions, for tests.
    pub(crate) fn transitions_json(&self) -> serde_json::Value {
        let all = self.power.transitions().map(|transition| shown(self, transition, true));
        json!(all.collect::<Vec<_>>())
    }
}
