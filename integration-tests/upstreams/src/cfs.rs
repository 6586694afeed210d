//! The configuration framework service, v3: desired configuration and progress of each component.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    call::{SystemAnswer, SystemCall, either},
    kept::LatestRequests,
    state::MachineState,
};

mod change;
mod page;

pub(crate) const OPERATIONS: &[&str] = &[
    "GET /healthz",
    "GET /options",
    "GET /components",
    "PATCH /components",
    "GET /components/{id}",
    "PATCH /components/{id}",
    "PUT /components/{id}",
];

/// Default number of components on a page.
const PAGE: usize = 1000;

/// Number of attempts of the service to configure a component.
const RETRIES: u32 = 3;

/// Records of the service beyond those of the machine.
#[derive(Debug)]
pub(crate) struct ConfigurationRecords {
    tags: Vec<Map<String, Value>>,
    accepted: LatestRequests<ConfigurationRequest>,
}

/// A change that was accepted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfigurationRequest {
    /// Milliseconds since the start.
    pub at_millis: u64,
    /// Components that it changed; those that the service does not know are left out.
    pub ids: Vec<String>,
    /// The change as it was written.
    pub patch: Value,
}

impl ConfigurationRecords {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { tags: vec![Map::new(); nodes], accepted: LatestRequests::default() }
    }

    /// The latest changes that were accepted, oldest first.
    pub(crate) fn accepted(&self) -> Vec<ConfigurationRequest> {
        self.accepted.list()
    }
}

/// Answers one request.
pub(crate) fn answer(state: &mut MachineState, call: &SystemCall) -> SystemAnswer {
    match call.operation {
        "GET /healthz" => SystemAnswer::json(&json!({"db_status": "ok", "kafka_status": "ok"})),
        "GET /options" => {
            SystemAnswer::json(&json!({"default_page_size": PAGE, "default_batcher_retry_policy": RETRIES}))
        }
        "GET /components" => either(page::list(state, call)),
        "PATCH /components" => either(change::many(state, call)),
        "GET /components/{id}" => match state.configurable(call.name()) {
            Some(position) => SystemAnswer::json(&component(state, position)).about(1),
            None => no_such(call.name()),
        },
        _ => either(change::one(state, call)),
    }
}

fn no_such(id: &str) -> SystemAnswer {
    let detail = format!("Component {id} could not be found");
    SystemAnswer::problem(StatusCode::NOT_FOUND, "Component not found.", &detail)
}

impl MachineState {
    /// The position of a node that the configuration service knows.
    fn configurable(&self, id: &str) -> Option<usize> {
        self.machine.position(id).filter(|position| !self.faults[*position].cfs_missing)
    }

    fn configuration_status(&self, position: usize) -> &str {
        let (_, status) = self.machine.nodes()[position].configuration();
        self.faults[position].cfs_status.as_deref().unwrap_or(status.word())
    }
}

#[derive(Serialize)]
struct ComponentView<'a> {
    id: &'a str,
    desired_config: &'a str,
    error_count: u32,
    retry_policy: u32,
    enabled: bool,
    configuration_status: &'a str,
    tags: &'a Map<String, Value>,
    logs: String,
}

fn component(state: &MachineState, position: usize) -> ComponentView<'_> {
    let node = &state.machine.nodes()[position];
    let (desired_config, _) = node.configuration();
    let configuration_status = state.configuration_status(position);
    ComponentView {
        id: &node.id,
        desired_config,
        error_count: if configuration_status == "failed" { RETRIES } else { 0 },
        retry_policy: RETRIES,
        enabled: node.configuration_enabled(),
        configuration_status,
        tags: &state.configurations.tags[position],
        logs: format!("ara.local/hosts?name={}", node.id),
    }
}
