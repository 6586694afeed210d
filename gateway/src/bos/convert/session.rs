//! Sessions.

use proto::session::{self as message, LeftOutReason, Operation, Progress};

use super::none_if_empty;
use crate::bos::wire::{session as wire, stamp::BosTime, words::SpelledEnum};

/// Returns a session as clients see it; if `strict`, without members that BOS does not have.
pub(crate) fn shown(session: message::Session, strict: bool) -> wire::Session {
    wire::Session {
        components: session.components.join(","),
        include_disabled: session.include_disabled,
        operation: SpelledEnum(Operation::try_from(session.operation).unwrap_or_default()),
        stage: session.stage,
        status: wire::SessionProgress {
            end_time: session.end_time,
            error: session.error,
            start_time: session.start_time,
            status: SpelledEnum(Progress::try_from(session.progress).unwrap_or_default()),
            waiting_for: none_if_empty(session.waiting_for).filter(|_| !strict),
        },
        limit: session.limit,
        name: session.name,
        template_name: session.template_name,
        tenant: none_if_empty(session.tenant),
    }
}

/// Returns the call that creates the session of `wish` for `tenant`.
pub(crate) fn creation(wish: wire::NewSession, tenant: String) -> message::CreateSessionRequest {
    message::CreateSessionRequest {
        name: wish.name.unwrap_or_default(),
        tenant,
        operation: wish.operation.0.into(),
        template_name: wish.template_name,
        limit: wish.limit.unwrap_or_default(),
        stage: wish.stage,
        include_disabled: wish.include_disabled,
        // BOS has no plans.
        plan_hash: String::new(),
        confirmed_nodes: None,
        // BOS has no rollouts.
        rollout: None,
    }
}

/// Returns the call that changes the session `name` of `tenant`.
pub(crate) fn update(
    patch: wire::SessionPatch,
    name: String,
    tenant: String,
) -> message::UpdateSessionRequest {
    let status = patch.status.unwrap_or_default();
    message::UpdateSessionRequest {
        name,
        tenant,
        components: patch.components,
        progress: status.status.map_or(Progress::Unspecified, |progress| progress.0).into(),
        start_time: status.start_time,
        clear_end_time: status.end_time == Some(None),
        end_time: status.end_time.flatten(),
        clear_error: status.error == Some(None),
        error: status.error.flatten(),
    }
}

impl From<message::LeftOutMember> for wire::LeftOutMember {
    fn from(member: message::LeftOutMember) -> Self {
        let reason = SpelledEnum(LeftOutReason::try_from(member.reason).unwrap_or_default());
        Self { boot_set: member.boot_set, id: member.id, reason }
    }
}

/// Returns the status of a session as clients see it; if `strict`, without members that BOS does not have.
pub(crate) fn status_shown(status: message::SessionStatus, strict: bool) -> wire::SessionStatus {
    let errors = status
        .error_summary
        .into_iter()
        .map(|summary| (summary.error, wire::ErrorSummary { count: summary.count, list: summary.list }));
    wire::SessionStatus {
        error_summary: errors.collect(),
        members_in_doubt_since: status.members_in_doubt_since.map(BosTime::from).filter(|_| !strict),
        managed_components_count: status.managed_components_count,
        percent_failed: status.percent_failed,
        percent_staged: status.percent_staged,
        percent_successful: status.percent_successful,
        phases: wire::PhaseShares {
            percent_complete: status.percent_complete,
            percent_configuring: status.percent_configuring,
            percent_powering_off: status.percent_powering_off,
            percent_powering_on: status.percent_powering_on,
        },
        status: SpelledEnum(Progress::try_from(status.progress).unwrap_or_default()),
        timing: wire::SessionTiming {
            duration: status.duration,
            end_time: status.end_time,
            start_time: status.start_time,
        },
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::to_string_pretty;

    use super::*;

    #[test]
    fn sessions_show_every_member() {
        let session = message::Session {
            waiting_for: "inventory: HSM does not answer".into(),
            name: "s1".into(),
            operation: Operation::Boot.into(),
            template_name: "t1".into(),
            components: vec!["x1".into(), "x2".into()],
            progress: Progress::Running.into(),
            start_time: "2026-03-04T05:06:07".into(),
            id: "internal".into(),
            ..Default::default()
        };
        expect![[r#"
            {
              "components": "x1,x2",
              "include_disabled": false,
              "limit": "",
              "name": "s1",
              "operation": "boot",
              "stage": false,
              "status": {
                "end_time": null,
                "error": null,
                "start_time": "2026-03-04T05:06:07",
                "status": "running",
                "waiting_for": "inventory: HSM does not answer"
              },
              "template_name": "t1",
              "tenant": null
            }"#]]
        .assert_eq(&to_string_pretty(&shown(session, false)).unwrap());
    }

    #[test]
    fn members_show_in_one_text_however_many_they_are() {
        let components: Vec<_> = (0..40_000).map(|number| format!("x{number:014}")).collect();
        let session = message::Session { components: components.clone(), ..Default::default() };
        let text = shown(session, true).components;
        // The text is longer than a request may be.
        assert!(text.len() > 524_288);
        assert!(text.split(',').eq(components.iter().map(String::as_str)));
    }

    #[test]
    fn those_left_alone_show_with_the_reason() {
        let mut rows = String::new();
        for number in 0..=10 {
            let member =
                message::LeftOutMember { id: "x1".into(), boot_set: "compute".into(), reason: number };
            rows += &serde_json::to_string(&wire::LeftOutMember::from(member)).unwrap();
            rows += "\n";
        }
        expect![[r#"
            {"boot_set":"compute","id":"x1","reason":""}
            {"boot_set":"compute","id":"x1","reason":"not_in_limit"}
            {"boot_set":"compute","id":"x1","reason":"locked"}
            {"boot_set":"compute","id":"x1","reason":"foreign_tenant"}
            {"boot_set":"compute","id":"x1","reason":"unknown_to_inventory"}
            {"boot_set":"compute","id":"x1","reason":"wrong_architecture"}
            {"boot_set":"compute","id":"x1","reason":"disabled"}
            {"boot_set":"compute","id":"x1","reason":"not_a_component"}
            {"boot_set":"compute","id":"x1","reason":"unknown_group"}
            {"boot_set":"compute","id":"x1","reason":"unknown_role"}
            {"boot_set":"compute","id":"x1","reason":"in_later_boot_set"}
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn only_sessions_that_wait_say_for_what_and_none_does_in_strict_mode() {
        for (waiting_for, strict, expected) in
            [("inventory", false, true), ("", false, false), ("inventory", true, false), ("", true, false)]
        {
            let session = message::Session { waiting_for: waiting_for.into(), ..Default::default() };
            let text = to_string_pretty(&shown(session, strict)).unwrap();
            assert_eq!(text.contains("waiting_for"), expected, "{waiting_for} {strict}");
        }
    }

    #[test]
    fn shares_keep_their_decimal() {
        let status = message::SessionStatus {
            progress: Progress::Complete.into(),
            managed_components_count: 3,
            percent_successful: 66.67,
            percent_complete: 100.0,
            error_summary: vec![message::ErrorSummary { error: "e".into(), count: 1, list: "x1".into() }],
            start_time: "2026-03-04T05:06:07".into(),
            duration: "0:02:17".into(),
            ..Default::default()
        };
        expect![[r#"
            {
              "error_summary": {
                "e": {
                  "count": 1,
                  "list": "x1"
                }
              },
              "managed_components_count": 3,
              "percent_failed": 0.0,
              "percent_staged": 0.0,
              "percent_successful": 66.67,
              "phases": {
                "percent_complete": 100.0,
                "percent_configuring": 0.0,
                "percent_powering_off": 0.0,
                "percent_powering_on": 0.0
              },
              "status": "complete",
              "timing": {
                "duration": "0:02:17",
                "end_time": null,
                "start_time": "2026-03-04T05:06:07"
              }
            }"#]]
        .assert_eq(&to_string_pretty(&status_shown(status.clone(), false)).unwrap());
        let since = prost_types::Timestamp { seconds: 1_732_119_012, nanos: 0 };
        let in_doubt = message::SessionStatus { members_in_doubt_since: Some(since), ..status };
        for (strict, shown) in [(false, true), (true, false)] {
            let text = to_string_pretty(&status_shown(in_doubt.clone(), strict)).unwrap();
            assert_eq!(text.contains("\"members_in_doubt_since\": \"2024-11-20T16:10:12\""), shown, "{text}");
        }
    }
}
