//! Changes as server-sent events.

use chassis::Fault;
use proto::component::{Action, Component, Phase};
use serde::Serialize;

use crate::reveille::instant;

/// Component as a live stream shows it: its place in the work, without its artifacts.
#[derive(Serialize)]
pub(super) struct LiveComponent {
    id: String,
    enabled: bool,
    /// Computed status, as BOS shows it.
    status: String,
    phase: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    session: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    tenant: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_action: Option<LiveAction>,
    locked: bool,
    generation: u64,
}

/// Last action on a component.
#[derive(Serialize)]
struct LiveAction {
    action: &'static str,
    failed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
}

/// Resource that is gone, or is no longer selected.
#[derive(Serialize)]
pub(super) struct GoneResource<'a> {
    pub(super) resource: &'static str,
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) tenant: &'a str,
}

/// Source of which something is said.
#[derive(Serialize)]
pub(super) struct NamedSource {
    pub(super) resource: &'static str,
}

/// Status of a component without one (BOS reference 3.5, row 8).
const STATUS_OF_NOTHING: &str = "stable";

impl From<Component> for LiveComponent {
    fn from(component: Component) -> Self {
        let status = component.status.unwrap_or_default();
        let word =
            if status.status.is_empty() { STATUS_OF_NOTHING.to_owned() } else { status.status.clone() };
        Self {
            id: component.id,
            enabled: component.enabled.unwrap_or_default(),
            status: word,
            phase: phase(status.phase()),
            error: component.error.unwrap_or_default(),
            session: component.session.unwrap_or_default(),
            tenant: component.session_tenant.unwrap_or_default(),
            last_action: component.last_action.and_then(|last| {
                let action = action(last.action())?;
                let failed = last.failed.unwrap_or_default();
                Some(LiveAction { action, failed, time: last.last_updated.map(instant::text) })
            }),
            locked: component.locked,
            generation: component.generation,
        }
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Unspecified | Phase::None => "",
        Phase::PoweringOn => "powering_on",
        Phase::PoweringOff => "powering_off",
        Phase::Configuring => "configuring",
    }
}

fn action(action: Action) -> Option<&'static str> {
    Some(match action {
        Action::Unspecified => return None,
        Action::ActualStateCleanup => "actual_state_cleanup",
        Action::ApplyStaged => "apply_staged",
        Action::NewlyDiscovered => "newly_discovered",
        Action::PoweringOffForcefully => "powering_off_forcefully",
        Action::PoweringOffGracefully => "powering_off_gracefully",
        Action::PoweringOn => "powering_on",
        Action::SessionSetup => "session_setup",
    })
}

/// Chunk of server-sent events.
#[derive(Default)]
pub(super) struct EventChunk(Vec<u8>);

impl EventChunk {
    /// Adds an event. JSON has no line break, so that the data is one line.
    ///
    /// # Errors
    /// The data cannot be written as JSON.
    pub(super) fn add(&mut self, name: &str, data: &impl Serialize) -> Result<(), Fault> {
        self.0.extend_from_slice(format!("event: {name}\ndata: ").as_bytes());
        serde_json::to_writer(&mut self.0, data).map_err(|error| Fault::Internal(error.to_string()))?;
        self.0.extend_from_slice(b"\n\n");
        Ok(())
    }

    /// Adds the id with which a client resumes after everything up to here. An event without data is not shown to
    /// scripts, and its id counts all the same.
    pub(super) fn add_place(&mut self, place: &str) {
        self.0.extend_from_slice(format!("id: {place}\n\n").as_bytes());
    }

    /// Adds the time that a client waits before it comes back, in milliseconds.
    pub(super) fn add_retry(&mut self, milliseconds: u32) {
        self.0.extend_from_slice(format!("retry: {milliseconds}\n\n").as_bytes());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_bytes(self) -> bytes::Bytes {
        self.0.into()
    }
}

#[cfg(test)]
mod tests {
    use proto::component::{LastAction, Status};

    use super::*;

    #[test]
    fn changes_are_lines_of_json() {
        let component = Component {
            id: "x1".to_owned(),
            status: Some(Status {
                phase: Some(Phase::PoweringOn.into()),
                status: "power_on_called".to_owned(),
                ..Status::default()
            }),
            error: Some("two\nlines".to_owned()),
            last_action: Some(LastAction {
                action: Some(Action::PoweringOn.into()),
                ..LastAction::default()
            }),
            ..Component::default()
        };
        let mut chunk = EventChunk::default();
        chunk.add_retry(2000);
        chunk.add("component", &LiveComponent::from(component)).unwrap();
        chunk.add("deleted", &GoneResource { resource: "component", name: "x2", tenant: "" }).unwrap();
        chunk.add_place("component:7");
        expect_test::expect![[r#"
            retry: 2000

            event: component
            data: {"id":"x1","enabled":false,"status":"power_on_called","phase":"powering_on","error":"two\nlines","last_action":{"action":"powering_on","failed":false},"locked":false,"generation":0}

            event: deleted
            data: {"resource":"component","name":"x2"}

            id: component:7

        "#]].assert_eq(std::str::from_utf8(&chunk.into_bytes()).unwrap());
    }
}
