//! Evidence as an explanation lists it.

use std::fmt::Write;

use super::{ScriptEvidence, sight::ComponentEvidence};
use crate::{
    boot::{
        component::{Component, InventoryPresence, status::computed_status},
        evaluation::Decision,
        power::{
            PowerReading,
            transition::{TaskOutcome, TransitionDelivery},
        },
    },
    core::explanation::{self, EvidenceVerdict},
};

/// Most transitions in a list of evidence.
const MOST_TRANSITIONS: usize = 6;

/// Origin of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EvidenceSource {
    /// Record of the component.
    Record,
    /// Decision of the status rules.
    Decision,
    /// Answer of the inventory.
    Inventory,
    /// Answer of the power service.
    PowerReading,
    /// Answer of the configuration service.
    ConfigurationReading,
    /// Outcome of the preparation of a boot.
    Preparation,
    /// Power transition.
    Transition,
    /// Request of the node for its boot script.
    BootScript,
    /// Report of the node.
    Report,
    /// Events of the component.
    Event,
    /// Record of a session.
    Session,
}

/// Piece of evidence about a component or a session.
pub type EvidenceItem = explanation::EvidenceItem<EvidenceSource>;

/// Returns the evidence about a component, in the order of a boot.
pub(super) fn items(evidence: &ComponentEvidence<'_>, decision: Option<&Decision>) -> Vec<EvidenceItem> {
    let component = evidence.component;
    let mut items = vec![record(component)];
    items.extend(decision.map(decided));
    items.push(inventory(component));
    items.extend(preparation(component));
    items.extend(transitions(evidence));
    items.push(power(evidence));
    items.push(script(evidence.script));
    items.push(report(component));
    items.push(configuration(evidence));
    if evidence.history.is_none() {
        items.push(EvidenceItem::new(
            EvidenceSource::Event,
            EvidenceVerdict::Unknown,
            "the events of the component were not read",
        ));
    }
    items
}

fn record(component: &Component) -> EvidenceItem {
    let mut content = format!(
        "status {}, {}",
        computed_status(component).word(),
        if component.is_enabled() { "enabled" } else { "not enabled" }
    );
    for (name, text) in [("session", component.session_name()), ("error", component.error_text())] {
        if !text.is_empty() {
            write!(content, ", {name} '{text}'").expect("a string takes every text");
        }
    }
    EvidenceItem::new(EvidenceSource::Record, EvidenceVerdict::Present, content)
        .at(component.last_action_at())
}

fn decided(decision: &Decision) -> EvidenceItem {
    EvidenceItem::new(EvidenceSource::Decision, EvidenceVerdict::Present, decision.reason.word())
}

fn inventory(component: &Component) -> EvidenceItem {
    let (verdict, content, since) = match &component.inventory.presence {
        InventoryPresence::Listed => (EvidenceVerdict::Present, "listed", None),
        InventoryPresence::Unknown { .. } => (EvidenceVerdict::Unknown, "no answer yet", None),
        InventoryPresence::Doubtful { since } => {
            (EvidenceVerdict::Unknown, "missing from the newest answer", Some(*since))
        }
        InventoryPresence::Absent { since } => (EvidenceVerdict::Absent, "not listed", Some(*since)),
    };
    let lock = if component.inventory.locked { ", locked" } else { "" };
    EvidenceItem::new(EvidenceSource::Inventory, verdict, format!("{content}{lock}")).at(since)
}

fn preparation(component: &Component) -> Option<EvidenceItem> {
    let outcome = component.preparation.outcome.as_ref()?;
    let content = match outcome.error() {
        "" => format!("attempt {} was prepared", outcome.attempt),
        words => format!("attempt {} was not prepared: {words}", outcome.attempt),
    };
    Some(EvidenceItem::new(EvidenceSource::Preparation, EvidenceVerdict::Present, content))
}

/// The latest transitions, the newest first.
fn transitions(evidence: &ComponentEvidence<'_>) -> Vec<EvidenceItem> {
    let Some(transitions) = evidence.transitions else {
        let unread = "the power transitions were not read";
        return vec![EvidenceItem::new(EvidenceSource::Transition, EvidenceVerdict::Unknown, unread)];
    };
    let mut newest: Vec<_> = transitions.iter().collect();
    newest.sort_by_key(|one| std::cmp::Reverse(one.created_at));
    let shown = newest.into_iter().take(MOST_TRANSITIONS).map(|one| {
        let action = one.action.map_or("power action", |action| action.word());
        let words = if one.words.is_empty() { String::new() } else { format!(": {}", one.words) };
        let content = format!(
            "{action}, attempt {}: {}, {}{words}",
            one.attempt,
            delivery_word(one.delivery),
            outcome_word(one.outcome)
        );
        EvidenceItem::new(EvidenceSource::Transition, EvidenceVerdict::Present, content).at(one.created_at)
    });
    shown.collect()
}

fn delivery_word(delivery: TransitionDelivery) -> &'static str {
    match delivery {
        TransitionDelivery::Unspecified => "state unknown",
        TransitionDelivery::Prepared => "not sent yet",
        TransitionDelivery::Sent => "being sent",
        TransitionDelivery::Accepted => "accepted",
        TransitionDelivery::Refused => "refused",
        TransitionDelivery::Unknown => "in doubt",
        TransitionDelivery::Finished => "ended",
    }
}

fn outcome_word(outcome: TaskOutcome) -> &'static str {
    match outcome {
        TaskOutcome::Unspecified => "no result yet",
        TaskOutcome::Succeeded => "with effect",
        TaskOutcome::Failed => "without effect",
        TaskOutcome::Refused => "not begun",
    }
}

fn power(evidence: &ComponentEvidence<'_>) -> EvidenceItem {
    let Some(sight) = &evidence.power else {
        return EvidenceItem::new(EvidenceSource::PowerReading, EvidenceVerdict::Unknown, "never read");
    };
    let (verdict, word) = match sight.reading {
        PowerReading::On => (EvidenceVerdict::Present, "on"),
        PowerReading::Off => (EvidenceVerdict::Present, "off"),
        PowerReading::Undefined => (EvidenceVerdict::Present, "undefined"),
        PowerReading::Missing => (EvidenceVerdict::Absent, "left out of the answer"),
        PowerReading::Unknown => (EvidenceVerdict::Unknown, "no answer"),
    };
    let verdict = if sight.is_current { verdict } else { EvidenceVerdict::Unknown };
    let content = if sight.is_current { word.to_owned() } else { format!("{word}, before the current work") };
    EvidenceItem::new(EvidenceSource::PowerReading, verdict, content).at(sight.observed_at)
}

fn configuration(evidence: &ComponentEvidence<'_>) -> EvidenceItem {
    let source = EvidenceSource::ConfigurationReading;
    let Some(sight) = &evidence.configuration else {
        return EvidenceItem::new(source, EvidenceVerdict::Unknown, "never read");
    };
    let (verdict, content) = if sight.is_missing {
        (EvidenceVerdict::Absent, "left out of the answer".to_owned())
    } else {
        let desired = sight.desired.as_deref().unwrap_or("none");
        (EvidenceVerdict::Present, format!("configuration '{desired}', status '{}'", sight.status))
    };
    let verdict = if sight.is_current { verdict } else { EvidenceVerdict::Unknown };
    EvidenceItem::new(source, verdict, content).at(sight.observed_at)
}

fn script(script: &ScriptEvidence) -> EvidenceItem {
    let of = |verdict, content: String| EvidenceItem::new(EvidenceSource::BootScript, verdict, content);
    match script {
        ScriptEvidence::NotOffered => {
            of(EvidenceVerdict::NotOffered, "another service serves the boot scripts".to_owned())
        }
        ScriptEvidence::Unknown => {
            of(EvidenceVerdict::Unknown, "the requests for boot scripts were not read".to_owned())
        }
        ScriptEvidence::Known { recorded_since, requests: None } => {
            let since = explanation::shown(*recorded_since);
            of(EvidenceVerdict::Absent, format!("no request on record since {since}"))
        }
        ScriptEvidence::Known { requests: Some(requests), .. } => {
            of(EvidenceVerdict::Present, format!("requests: {}", requests.count)).at(Some(requests.last_at))
        }
    }
}

fn report(component: &Component) -> EvidenceItem {
    let source = EvidenceSource::Report;
    let actual = component.reported.actual_state.as_ref();
    if let Some(late) = &component.reported.late_report {
        return EvidenceItem::new(source, EvidenceVerdict::Present, "the node reported an earlier boot")
            .at(Some(late.reported_at));
    }
    let is_of_this_boot = component.reported.boot.as_ref().is_none_or(|boot| boot.reported);
    let has_artifacts = component.actual_artifacts().is_some_and(|artifacts| !artifacts.is_empty());
    match (has_artifacts, is_of_this_boot) {
        (true, true) => {
            let word = if component.runs_wanted() { "the wanted boot" } else { "another boot" };
            EvidenceItem::new(source, EvidenceVerdict::Present, format!("the node reported {word}"))
                .at(actual.and_then(|actual| actual.last_updated))
        }
        (true, false) | (false, _) => {
            EvidenceItem::new(source, EvidenceVerdict::Absent, "no report of the latest boot")
        }
    }
}
