//! Components as short texts, for tables of expected values.

use crate::boot::component::ComponentInventory;
use std::{fmt::Write, sync::Arc};

use super::{Action, Component, InventoryPresence, LastAction, Phase};
use crate::{
    boot::component::artifacts::BootArtifacts,
    core::{
        decision::DecisionVersion,
        id::ComponentId,
        time::Timestamp,
        trouble::{NO_RESULTS_FROM, Trouble, WAITING_FOR},
    },
};

/// Returns a component with nothing but an id, which the inventory lists.
pub(crate) fn bare() -> Component {
    let id = ComponentId::parse("x1").expect("valid");
    Component {
        inventory: ComponentInventory {
            presence: InventoryPresence::Listed,
            ..ComponentInventory::default()
        }
        .into(),
        ..Component::new(id)
    }
}

/// Returns artifacts from `kernel parameters initrd`; `-` stands for a missing member and `.` for an empty one.
pub(crate) fn artifacts(text: &str) -> Arc<BootArtifacts> {
    let mut members = text.split(' ').map(|member| match member {
        "-" => None,
        "." => Some("".into()),
        text => Some(text.into()),
    });
    Arc::new(BootArtifacts {
        kernel: members.next().flatten(),
        kernel_parameters: members.next().flatten(),
        initrd: members.next().flatten(),
        timestamp: None,
    })
}

/// Returns such artifacts with the time at which their token was stored.
pub(crate) fn stamped(text: &str, timestamp: Timestamp) -> Arc<BootArtifacts> {
    Arc::new(BootArtifacts { timestamp: Some(timestamp), ..Arc::unwrap_or_clone(artifacts(text)) })
}

/// Reads the trouble in a row of a table; `None`: the text is empty.
pub(crate) fn trouble(row: &str) -> Option<Arc<Trouble>> {
    let waits = row.strip_prefix(WAITING_FOR).map(Trouble::waiting_for);
    let unheard = || row.strip_prefix(NO_RESULTS_FROM).map(Trouble::no_results_from);
    waits.or_else(unheard).or_else(|| Trouble::failed(row)).map(Arc::new)
}

/// Returns the action with that word.
pub(crate) fn action(word: &str) -> Action {
    Action::ALL.into_iter().find(|action| action.word() == word).expect("an action")
}

/// Returns the phase with that word.
pub(crate) fn phase(word: &str) -> Phase {
    Phase::ALL.into_iter().find(|phase| phase.word() == word).expect("a phase")
}

/// Returns every member that is present, in one line.
pub(crate) fn show(component: &Component) -> String {
    let mut line = String::new();
    let mut part = |name: &str, text: Option<String>| {
        if let Some(text) = text {
            let space = if line.is_empty() { "" } else { " " };
            write!(line, "{space}{name}={text}").expect("a string takes every text");
        }
    };
    part(
        "actual",
        component.reported.actual_state.as_ref().map(|actual| {
            join([show_artifacts(&actual.boot_artifacts), token(&actual.bss_token), at(actual.last_updated)])
        }),
    );
    part(
        "desired",
        component.wish.desired_state.as_ref().map(|desired| {
            let configuration = desired.configuration.as_ref().map(|name| format!("cfg:{name}"));
            let artifacts = show_artifacts(&desired.boot_artifacts);
            join([artifacts, configuration, token(&desired.bss_token), at(desired.last_updated)])
        }),
    );
    part(
        "staged",
        component.wish.staged_state.as_ref().map(|staged| {
            let configuration = staged.configuration.as_ref().map(|name| format!("cfg:{name}"));
            let session = staged.session.as_ref().map(|name| format!("session:{name}"));
            let tenant = staged.tenant.as_ref().map(|tenant| format!("of:'{}'", tenant.as_str()));
            let id = (!staged.assignment.is_empty()).then(|| format!("id:{}", staged.assignment));
            let applied = staged.applied.then(|| "applied".to_owned());
            let artifacts = show_artifacts(&staged.boot_artifacts);
            join([artifacts, configuration, session, tenant, id, applied, at(staged.last_updated)])
        }),
    );
    part("action", component.power.last_action.as_ref().map(show_action));
    part(
        "stats",
        component.power.event_stats.as_ref().map(|stats| {
            let number = |value: Option<u32>| value.map_or("-".to_owned(), |value| value.to_string());
            let graceful = number(stats.power_off_graceful_attempts);
            let forceful = number(stats.power_off_forceful_attempts);
            format!("{}/{graceful}/{forceful}", number(stats.power_on_attempts))
        }),
    );
    part(
        "status",
        component.evaluation.status.as_ref().map(|status| {
            let phase = status.phase.map(|phase| format!("phase:{}", phase.word()));
            join([phase, status.status_override.as_ref().map(|text| format!("override:{text}"))])
        }),
    );
    part("enabled", component.wish.enabled.map(|enabled| enabled.to_string()));
    part("error", component.evaluation.error.as_ref().map(|text| format!("'{text}'")));
    part("session", component.wish.session.as_ref().map(|text| format!("'{text}'")));
    part("of", component.wish.session_tenant.as_ref().map(|tenant| format!("'{}'", tenant.as_str())));
    part("policy", component.wish.retry_policy.map(|policy| policy.to_string()));
    part("gen", (component.generation > 0).then(|| component.generation.to_string()));
    part(
        "prepared",
        component
            .preparation
            .outcome
            .as_ref()
            .map(|done| format!("[{}.{} '{}']", done.generation, done.attempt, done.error())),
    );
    part(
        "boot",
        component.reported.boot.as_ref().map(|boot| {
            let reported = if boot.reported { " reported" } else { "" };
            format!("[{}.{} {}{reported}]", boot.generation, boot.attempt, boot.token.token)
        }),
    );
    part("runs", component.reported.running_report.map(|_| String::new()));
    part("late", component.reported.late_report.as_ref().map(|late| format!("'{}'", late.token)));
    part("assigned", (!component.wish.assignment.is_empty()).then(|| component.wish.assignment.to_string()));
    part("locked", component.inventory.locked.then(String::new));
    part("inventory", unlisted(&component.inventory.presence).map(str::to_owned));
    let DecisionVersion { rules, options } = component.evaluation.decided_by;
    part(
        "decided",
        (component.evaluation.decided_by != DecisionVersion::default()).then(|| format!("{rules}/{options}")),
    );
    part("turns", (component.power.turns.count > 0).then(|| component.power.turns.count.to_string()));
    part("refused", component.power.trouble.as_ref().map(|trouble| format!("'{}'", trouble.text())));
    line
}

fn unlisted(presence: &InventoryPresence) -> Option<&'static str> {
    match presence {
        InventoryPresence::Unknown { .. } | InventoryPresence::Listed => None,
        InventoryPresence::Doubtful { .. } => Some("doubtful"),
        InventoryPresence::Absent { .. } => Some("absent"),
    }
}

fn show_action(last: &LastAction) -> String {
    let failed = last.failed.map(|failed| if failed { "failed" } else { "ok" }.to_owned());
    join([last.action.map(|action| action.word().to_owned()), failed, at(last.last_updated)])
}

fn show_artifacts(artifacts: &Option<Arc<BootArtifacts>>) -> Option<String> {
    let artifacts = artifacts.as_ref()?;
    let texts =
        [&artifacts.kernel, &artifacts.kernel_parameters, &artifacts.initrd].map(|member| {
            match member.as_deref() {
                None => "-",
                Some("") => ".",
                Some(text) => text,
            }
        });
    let stamp = artifacts.timestamp.map(|stamp| format!("~{}", stamp.0)).unwrap_or_default();
    Some(format!("{}{stamp}", texts.join(",")))
}

fn token(token: &Option<Arc<str>>) -> Option<String> {
    token.as_ref().map(|token| format!("token:{token}"))
}

fn at(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| format!("@{}", time.0))
}

fn join<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    format!("[{}]", parts.join(" "))
}
