//! The power control service: what it says of nodes, and transitions that take their time.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    call::{Answer, Call, either},
    state::State,
    xname,
};

mod engine;
mod power;
mod status;
#[cfg(test)]
mod timeline;
mod transition;

pub(crate) use power::Power;
pub(crate) use transition::Operation;

use transition::{Counts, Deadline, Task, Transition};

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

/// Minutes that a task gets when the request does not say.
const MINUTES: i64 = 5;

/// Answers one request.
pub(crate) fn answer(state: &mut State, call: &Call) -> Answer {
    match call.operation {
        "GET /power-status" => either(status::get(state, call)),
        "POST /power-status" => either(status::post(state, call)),
        "GET /transitions" => list(state),
        "POST /transitions" => either(create(state, call)),
        "GET /transitions/{id}" => match state.power.by_id(call.name()) {
            Some(transition) => Answer::json(&shown(state, transition, true)).about(transition.tasks.len()),
            None => Answer::not_found("there is no such transition"),
        },
        "DELETE /transitions/{id}" => abort(state, call.name()),
        _ => Answer::empty(StatusCode::NO_CONTENT),
    }
}

#[derive(Deserialize)]
struct Wanted {
    operation: String,
    #[serde(rename = "taskDeadlineMinutes")]
    minutes: Option<i64>,
    #[serde(default)]
    location: Vec<Location>,
}

#[derive(Deserialize)]
struct Location {
    xname: String,
}

/// Accepts a transition before anything is looked at, unless a test wants it refused, or it is too large to be stored.
fn create(state: &mut State, call: &Call) -> Result<Answer, Answer> {
    let wanted: Wanted = call.json()?;
    let operation = Operation::from_word(&wanted.operation)
        .ok_or_else(|| Answer::bad_request(&format!("invalid Operation type {}", wanted.operation)))?;
    let xnames: Vec<String> =
        wanted.location.into_iter().map(|location| xname::canonical(&location.xname)).collect();
    if xnames.len() > state.power.plan.most_nodes {
        let detail = "etcdserver: request is too large";
        return Err(Answer::problem(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error", detail));
    }
    let rejected = |xname: &&String| {
        state.machine.position(xname).is_some_and(|position| state.faults[position].pcs_reject)
    };
    if let Some(xname) = xnames.iter().find(rejected) {
        return Err(Answer::bad_request(&format!("invalid xnames detected: {xname}")));
    }
    let deadline = match wanted.minutes.unwrap_or(MINUTES) {
        0 => Deadline::NotAwaited,
        minutes @ 1.. => {
            Deadline::After(state.power.plan.minute * u32::try_from(minutes).unwrap_or(u32::MAX))
        }
        _ => Deadline::Never,
    };
    let items = xnames.len();
    let id = state.accept(operation, deadline, xnames);
    if call.worker_dies {
        state.kill_worker(&id);
    }
    let body = json!({"transitionID": *id, "operation": operation.word()});
    Ok(Answer::json(&body).about(items))
}

fn abort(state: &mut State, id: &str) -> Answer {
    match state.signal_abort(id) {
        Some(true) => Answer {
            status: StatusCode::ACCEPTED,
            ..Answer::json(&json!({"abortStatus": "Accepted - abort initiated"}))
        },
        Some(false) => Answer::bad_request("Transition is already finished and cannot be aborted."),
        None => Answer::not_found("there is no such transition"),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    #[serde(rename = "transitionID")]
    transition_id: &'a Arc<str>,
    operation: &'static str,
    create_time: String,
    automatic_expiration_time: String,
    transition_status: &'static str,
    task_counts: Counts,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tasks: &'a [Task],
}

fn shown<'a>(state: &State, transition: &'a Transition, with_tasks: bool) -> Shown<'a> {
    Shown {
        transition_id: &transition.id,
        operation: transition.operation.word(),
        create_time: state.clock(transition.created),
        automatic_expiration_time: state.clock(transition.created + state.power.plan.kept_for),
        transition_status: transition.status.word(),
        task_counts: transition.counts(),
        tasks: if with_tasks { &transition.tasks } else { &[] },
    }
}

fn list(state: &State) -> Answer {
    let transitions: Vec<_> =
        state.power.transitions().map(|transition| shown(state, transition, false)).collect();
    let items = transitions.len();
    Answer::json(&json!({"transitions": transitions})).about(items)
}

impl State {
    /// Accepts a transition with the usual deadline; none: there is no such operation.
    pub(crate) fn ask_for_power(&mut self, operation: &str, ids: &[String]) -> Option<String> {
        let deadline = Deadline::After(self.power.plan.minute * u32::try_from(MINUTES).unwrap_or(u32::MAX));
        Some(self.accept(Operation::from_word(operation)?, deadline, ids.to_vec()).to_string())
    }

    /// Everything about a transition as the service tells it, for tests.
    pub(crate) fn transitions_json(&self) -> serde_json::Value {
        let all = self.power.transitions().map(|transition| shown(self, transition, true));
        json!(all.collect::<Vec<_>>())
    }
}
