//! Components.

use proto::component as message;

use crate::bos::wire::{
    component as wire,
    words::{EnumWord, SpelledEnum},
};

impl From<wire::Component> for message::Component {
    fn from(component: wire::Component) -> Self {
        Self {
            id: component.id.unwrap_or_default(),
            actual_state: component.actual_state.map(Into::into),
            desired_state: component.desired_state.map(Into::into),
            staged_state: component.staged_state.map(Into::into),
            last_action: component.last_action.map(Into::into),
            event_stats: component.event_stats.map(Into::into),
            status: component.status.map(Into::into),
            enabled: component.enabled,
            error: component.error,
            session: component.session,
            retry_policy: component.retry_policy,
            ..Self::default()
        }
    }
}

impl From<wire::BootArtifacts> for message::BootArtifacts {
    fn from(artifacts: wire::BootArtifacts) -> Self {
        let wire::BootArtifacts { initrd, kernel, kernel_parameters, timestamp: _ } = artifacts;
        Self { kernel, kernel_parameters, initrd, timestamp: None }
    }
}

impl From<wire::ActualState> for message::ActualState {
    fn from(state: wire::ActualState) -> Self {
        let boot_artifacts = state.boot_artifacts.map(Into::into);
        Self { boot_artifacts, bss_token: state.bss_token, last_updated: None }
    }
}

impl From<wire::DesiredState> for message::DesiredState {
    fn from(state: wire::DesiredState) -> Self {
        let boot_artifacts = state.boot_artifacts.map(Into::into);
        let wire::DesiredState { configuration, bss_token, .. } = state;
        Self { boot_artifacts, configuration, bss_token, last_updated: None }
    }
}

impl From<wire::StagedState> for message::StagedState {
    fn from(state: wire::StagedState) -> Self {
        let boot_artifacts = state.boot_artifacts.map(Into::into);
        let wire::StagedState { configuration, session, .. } = state;
        Self { boot_artifacts, configuration, session, ..Self::default() }
    }
}

impl From<wire::LastAction> for message::LastAction {
    fn from(last: wire::LastAction) -> Self {
        Self { action: last.action.map(|action| action.0.into()), failed: last.failed, last_updated: None }
    }
}

impl From<wire::EventStats> for message::EventStats {
    fn from(stats: wire::EventStats) -> Self {
        Self {
            power_on_attempts: stats.power_on_attempts,
            power_off_graceful_attempts: stats.power_off_graceful_attempts,
            power_off_forceful_attempts: stats.power_off_forceful_attempts,
        }
    }
}

impl From<wire::ComponentStatus> for message::Status {
    fn from(status: wire::ComponentStatus) -> Self {
        let phase = status.phase.map(|phase| phase.0.into());
        Self { phase, status_override: status.status_override, status: String::new() }
    }
}

/// Returns a component for the answer to a read: with the computed status, and without the stamp of its booted
/// artifacts (BOS reference 2.6.1).
pub(crate) fn rendered(mut component: message::Component) -> wire::Component {
    let status = rendered_status(component.status.take());
    let booted = component.actual_state.as_mut().and_then(|actual| actual.boot_artifacts.as_mut());
    if let Some(artifacts) = booted {
        artifacts.timestamp = None;
    }
    wire::Component { status: Some(status), ..stored(component) }
}

/// Returns the status for a read; with empty members if the record never had one.
fn rendered_status(status: Option<message::Status>) -> wire::ComponentStatus {
    match status {
        Some(mut status) => {
            let computed = std::mem::take(&mut status.status);
            wire::ComponentStatus { status: Some(computed), ..stored_status(status) }
        }
        None => wire::ComponentStatus {
            phase: Some(SpelledEnum(message::Phase::None)),
            status: Some(STATUS_OF_NOTHING.to_owned()),
            status_override: Some(String::new()),
        },
    }
}

/// The computed status of a component without phase and override (BOS reference 3.5, row 8).
const STATUS_OF_NOTHING: &str = "stable";

/// Returns a component for the answer to a write: the stored record (BOS reference 2.6.3).
pub(crate) fn stored(component: message::Component) -> wire::Component {
    wire::Component {
        actual_state: component.actual_state.map(Into::into),
        desired_state: component.desired_state.map(Into::into),
        enabled: component.enabled,
        error: component.error,
        event_stats: component.event_stats.map(Into::into),
        id: Some(component.id),
        last_action: component.last_action.map(Into::into),
        retry_policy: component.retry_policy,
        session: component.session,
        staged_state: component.staged_state.map(Into::into),
        status: component.status.map(stored_status),
    }
}

fn stored_status(status: message::Status) -> wire::ComponentStatus {
    let phase = status.phase.and_then(spelled);
    wire::ComponentStatus { phase, status: None, status_override: status.status_override }
}

/// Returns the variant with this number in messages, if clients may see that variant.
fn spelled<E: EnumWord + TryFrom<i32>>(number: i32) -> Option<SpelledEnum<E>> {
    let variant = E::try_from(number).ok()?;
    E::WORDS.iter().any(|(_, known)| *known == variant).then_some(SpelledEnum(variant))
}

impl From<message::BootArtifacts> for wire::BootArtifacts {
    fn from(artifacts: message::BootArtifacts) -> Self {
        let message::BootArtifacts { kernel, kernel_parameters, initrd, timestamp } = artifacts;
        Self { initrd, kernel, kernel_parameters, timestamp: timestamp.map(Into::into) }
    }
}

impl From<message::ActualState> for wire::ActualState {
    fn from(state: message::ActualState) -> Self {
        Self {
            boot_artifacts: state.boot_artifacts.map(Into::into),
            bss_token: state.bss_token,
            last_updated: state.last_updated.map(Into::into),
        }
    }
}

impl From<message::DesiredState> for wire::DesiredState {
    fn from(state: message::DesiredState) -> Self {
        Self {
            boot_artifacts: state.boot_artifacts.map(Into::into),
            bss_token: state.bss_token,
            configuration: state.configuration,
            last_updated: state.last_updated.map(Into::into),
        }
    }
}

impl From<message::StagedState> for wire::StagedState {
    fn from(state: message::StagedState) -> Self {
        Self {
            boot_artifacts: state.boot_artifacts.map(Into::into),
            configuration: state.configuration,
            last_updated: state.last_updated.map(Into::into),
            session: state.session,
        }
    }
}

impl From<message::LastAction> for wire::LastAction {
    fn from(last: message::LastAction) -> Self {
        Self {
            action: last.action.and_then(spelled),
            failed: last.failed,
            last_updated: last.last_updated.map(Into::into),
        }
    }
}

impl From<message::EventStats> for wire::EventStats {
    fn from(stats: message::EventStats) -> Self {
        Self {
            power_off_forceful_attempts: stats.power_off_forceful_attempts,
            power_off_graceful_attempts: stats.power_off_graceful_attempts,
            power_on_attempts: stats.power_on_attempts,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use prost_types::Timestamp;

    use super::*;

    /// 2026-03-04 05:06:07.89 UTC.
    const WHEN: Timestamp = Timestamp { seconds: 1_772_600_767, nanos: 890_000_000 };

    fn full() -> message::Component {
        let artifacts = message::BootArtifacts {
            kernel: Some("k".into()),
            kernel_parameters: Some("p".into()),
            initrd: Some("i".into()),
            timestamp: Some(WHEN),
        };
        message::Component {
            id: "x1".into(),
            session_tenant: Some("blue".into()),
            actual_state: Some(message::ActualState {
                boot_artifacts: Some(artifacts.clone()),
                bss_token: Some("t".into()),
                last_updated: Some(WHEN),
            }),
            desired_state: Some(message::DesiredState {
                boot_artifacts: Some(artifacts),
                configuration: Some("c".into()),
                bss_token: Some(String::new()),
                last_updated: Some(WHEN),
            }),
            staged_state: Some(message::StagedState { last_updated: Some(WHEN), ..Default::default() }),
            last_action: Some(message::LastAction {
                action: Some(message::Action::PoweringOn.into()),
                failed: Some(false),
                last_updated: Some(WHEN),
            }),
            event_stats: Some(message::EventStats {
                power_on_attempts: Some(1),
                power_off_graceful_attempts: Some(2),
                power_off_forceful_attempts: Some(3),
            }),
            status: Some(message::Status {
                phase: Some(message::Phase::PoweringOn.into()),
                status_override: Some(String::new()),
                status: "power_on_called".into(),
            }),
            enabled: Some(true),
            error: Some(String::new()),
            session: Some("s".into()),
            retry_policy: Some(2),
            revision: 9,
            last_event: 9,
            error_begin: Some(proto::meta::TroubleBegin::default()),
            generation: 8,
            preparation: Some(message::BootPreparation::default()),
            assignment: "a".into(),
            latest_assignment: "a".into(),
            power_error: "refused".into(),
            locked: true,
            presence: Some(message::InventoryPresence::default()),
            decided_by: Some(message::DecisionVersion::default()),
            turns: Some(message::PowerTurns::default()),
            prepared_token: Some(message::NumberedToken::default()),
            boot: Some(message::BegunBoot::default()),
            late_report: Some(message::LateReport::default()),
            error_kind: 0,
            power_error_kind: 0,
            undecided: true,
            acted_before: true,
            pause: Some(message::PauseMark::default()),
            running_report: Some(WHEN),
            trace_parent: "00-1-2-01".into(),
        }
    }

    fn bare(status: Option<message::Status>) -> message::Component {
        message::Component { id: "x1".into(), enabled: Some(false), status, ..Default::default() }
    }

    fn lines(components: impl IntoIterator<Item = wire::Component>) -> String {
        let text = |component| serde_json::to_string(&component).unwrap() + "\n";
        components.into_iter().map(text).collect()
    }

    #[test]
    fn reads_show_the_computed_status_and_writes_the_record() {
        let whole = |component: wire::Component| serde_json::to_string_pretty(&component).unwrap();
        expect![[r#"
            {
              "actual_state": {
                "boot_artifacts": {
                  "initrd": "i",
                  "kernel": "k",
                  "kernel_parameters": "p"
                },
                "bss_token": "t",
                "last_updated": "2026-03-04T05:06:07"
              },
              "desired_state": {
                "boot_artifacts": {
                  "initrd": "i",
                  "kernel": "k",
                  "kernel_parameters": "p",
                  "timestamp": "2026-03-04T05:06:07"
                },
                "bss_token": "",
                "configuration": "c",
                "last_updated": "2026-03-04T05:06:07"
              },
              "enabled": true,
              "error": "",
              "event_stats": {
                "power_off_forceful_attempts": 3,
                "power_off_graceful_attempts": 2,
                "power_on_attempts": 1
              },
              "id": "x1",
              "last_action": {
                "action": "powering_on",
                "failed": false,
                "last_updated": "2026-03-04T05:06:07"
              },
              "retry_policy": 2,
              "session": "s",
              "staged_state": {
                "last_updated": "2026-03-04T05:06:07"
              },
              "status": {
                "phase": "powering_on",
                "status": "power_on_called",
                "status_override": ""
              }
            }"#]]
        .assert_eq(&whole(rendered(full())));
        let mut written = full();
        written.desired_state = None;
        expect![[r#"
            {"actual_state":{"boot_artifacts":{"initrd":"i","kernel":"k","kernel_parameters":"p","timestamp":"2026-03-04T05:06:07"},"bss_token":"t","last_updated":"2026-03-04T05:06:07"},"enabled":true,"error":"","event_stats":{"power_off_forceful_attempts":3,"power_off_graceful_attempts":2,"power_on_attempts":1},"id":"x1","last_action":{"action":"powering_on","failed":false,"last_updated":"2026-03-04T05:06:07"},"retry_policy":2,"session":"s","staged_state":{"last_updated":"2026-03-04T05:06:07"},"status":{"phase":"powering_on","status_override":""}}
        "#]].assert_eq(&lines([stored(written)]));
    }

    #[test]
    fn a_read_always_shows_a_status() {
        let computed = message::Status { status: "stable".into(), ..Default::default() };
        let held = message::Status {
            status_override: Some("on_hold".into()),
            status: "on_hold".into(),
            ..Default::default()
        };
        expect![[r#"
            {"enabled":false,"id":"x1","status":{"phase":"","status":"stable","status_override":""}}
            {"enabled":false,"id":"x1","status":{"status":"stable"}}
            {"enabled":false,"id":"x1","status":{"status":"on_hold","status_override":"on_hold"}}
        "#]]
        .assert_eq(&lines([None, Some(computed.clone()), Some(held.clone())].map(bare).map(rendered)));
        expect![[r#"
            {"enabled":false,"id":"x1"}
            {"enabled":false,"id":"x1","status":{}}
            {"enabled":false,"id":"x1","status":{"status_override":"on_hold"}}
        "#]]
        .assert_eq(&lines([None, Some(computed), Some(held)].map(bare).map(stored)));
    }

    #[test]
    fn what_was_written_is_what_the_service_gets() {
        let body = r#"{
            "id": "x1", "enabled": false, "error": "e", "session": "s", "retry_policy": 2,
            "actual_state": {"bss_token": "t", "boot_artifacts": {"kernel": "k"}},
            "desired_state": {"configuration": "c", "boot_artifacts": {}},
            "staged_state": {"session": ""},
            "last_action": {"action": "session_setup", "failed": true},
            "event_stats": {"power_on_attempts": 1, "power_off_forceful_attempts": 0},
            "status": {"phase": "", "status_override": "failed"}
        }"#;
        let written: wire::Component = serde_json::from_str(body).unwrap();
        let given: serde_json::Value = serde_json::from_str(body).unwrap();
        let kept = stored(message::Component::from(written));
        assert_eq!(serde_json::to_value(kept).unwrap(), given);
    }
}
