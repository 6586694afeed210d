//! Conversion between messages and domain types: evidence in, decisions and reports out.

use chassis::{
    kinds::{
        component::{decided_by_to_wire, phase_to_wire},
        trouble,
    },
    mesh::time,
};
use domain::{
    boot::{component::report::StatusReport, evaluation::Decision},
    core::id::ComponentId,
};
use proto::{component, evaluation as wire};

/// Converts a decision for subscribers and callers.
pub(crate) fn decision(id: &ComponentId, decision: &Decision) -> wire::Decision {
    wire::Decision {
        id: id.as_str().to_owned(),
        phase: phase_to_wire(decision.phase).into(),
        status_override: decision.status_override.clone(),
        settled: decision.settled,
        action_failed: decision.action_failed,
        error: decision.error.text().map(str::to_owned),
        reason: decision.reason.word().to_owned(),
        until: decision.until.map(time::to_wire),
    }
}

/// Converts a report to the registry.
pub(crate) fn report(report: &StatusReport) -> component::StatusReport {
    component::StatusReport {
        id: report.id.as_str().to_owned(),
        revision: report.revision,
        phase: phase_to_wire(report.phase).into(),
        status_override: report.status_override.to_string(),
        settled: report.settled,
        action_failed: report.action_failed,
        error: report.error.text().map(str::to_owned),
        decided_by: decided_by_to_wire(report.decided_by),
        error_kind: trouble::kind_to_wire(report.error.trouble()).into(),
        reason: report.reason.to_string(),
        awaits_evidence: report.awaits_evidence,
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        boot::{
            component::{Component, Phase},
            evaluation::Reason,
        },
        core::{decision::DecisionVersion, time::Timestamp, trouble::Trouble},
    };
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_report_names_the_record_it_was_decided_on() {
        let mut component = Component::new(ComponentId::parse("x1").unwrap());
        component.revision = 41;
        let made = Decision {
            phase: Phase::Configuring,
            status_override: "failed".into(),
            settled: true,
            action_failed: false,
            error: Trouble::failed("cfs configuration failed").into(),
            reason: Reason::ConfigurationFailed,
            until: Some(Timestamp(1_500)),
        };
        expect![[r#"
            StatusReport {
                id: "x1",
                revision: 41,
                phase: Configuring,
                status_override: "failed",
                settled: true,
                action_failed: false,
                error: Some(
                    "cfs configuration failed",
                ),
                decided_by: Some(
                    DecisionVersion {
                        rules: 3,
                        options_revision: 7,
                    },
                ),
                error_kind: Failed,
                reason: "configuration_failed",
                awaits_evidence: false,
            }
        "#]]
        .assert_debug_eq(&report(
            &made.report(&component, DecisionVersion { rules: 3, options: 7 }).unwrap(),
        ));
        expect![[r#"
            Decision {
                id: "x1",
                phase: Configuring,
                status_override: "failed",
                settled: true,
                action_failed: false,
                error: Some(
                    "cfs configuration failed",
                ),
                reason: "configuration_failed",
                until: Some(
                    Timestamp {
                        seconds: 1,
                        nanos: 500000000,
                    },
                ),
            }
        "#]]
        .assert_debug_eq(&decision(&component.id, &made));
    }
}
