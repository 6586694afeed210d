//! Looks and reports of drivers, both ways.

use std::time::Duration;

use domain::{
    core::invalid::Invalid,
    host::{
        evidence::{DriverSight, DriverView, HardwareHealth},
        record::call::{DoneFacts, DriverAnswer, DriverReport, DriverTrouble},
    },
};
use proto::host::{self as wire, driver_report::Answer, driver_sight::Sight};

use super::{
    status,
    value::{at, missing, owned, shared, time},
};

/// Reads a look of a driver; unset: the backend has not listed anything.
pub fn sight(sight: Option<&wire::DriverSight>) -> DriverSight {
    match sight.and_then(|sight| sight.sight.as_ref()) {
        None => DriverSight::Unlisted,
        Some(Sight::NotReady(wire::NotReadySight {})) => DriverSight::NotReady,
        Some(Sight::Absent(absent)) => DriverSight::Absent { asked_at: time(absent.asked_at) },
        Some(Sight::Known(known)) => DriverSight::Known(view(known)),
    }
}

/// Returns a look of a driver for the wire.
pub fn sight_to_wire(sight: &DriverSight) -> wire::DriverSight {
    let sight = match sight {
        DriverSight::Unlisted => None,
        DriverSight::NotReady => Some(Sight::NotReady(wire::NotReadySight {})),
        DriverSight::Absent { asked_at } => {
            Some(Sight::Absent(wire::AbsentSight { asked_at: at(*asked_at) }))
        }
        DriverSight::Known(known) => Some(Sight::Known(view_to_wire(known))),
    };
    wire::DriverSight { sight }
}

/// Reads a report of a driver.
///
/// # Errors
/// The report has no answer.
pub fn report(report: &wire::DriverReport) -> Result<DriverReport, Invalid> {
    let answer = report.answer.as_ref().ok_or_else(|| missing("report.answer"))?;
    Ok(DriverReport { number: report.number, at: time(report.at), answer: answer_from_wire(answer) })
}

/// Returns a report of a driver for the wire.
pub fn report_to_wire(report: &DriverReport) -> wire::DriverReport {
    wire::DriverReport {
        number: report.number,
        at: at(report.at),
        answer: Some(answer_to_wire(&report.answer)),
    }
}

fn view(view: &wire::DriverView) -> DriverView {
    let health = match view.health() {
        wire::HardwareHealth::Unspecified => None,
        wire::HardwareHealth::Healthy => Some(HardwareHealth::Healthy),
        wire::HardwareHealth::Warning => Some(HardwareHealth::Warning),
        wire::HardwareHealth::Critical => Some(HardwareHealth::Critical),
        wire::HardwareHealth::Unknown => Some(HardwareHealth::Unknown),
    };
    DriverView {
        asked_at: time(view.asked_at),
        powered_on: view.powered_on,
        has_power_failure: view.has_power_failure,
        health,
        needs_adoption: view.needs_adoption,
        is_busy: view.is_busy,
        boots_without_slot: view.boots_without_slot,
        wants_ramdisk: view.wants_ramdisk,
    }
}

fn view_to_wire(view: &DriverView) -> wire::DriverView {
    let health = match view.health {
        None => wire::HardwareHealth::Unspecified,
        Some(HardwareHealth::Healthy) => wire::HardwareHealth::Healthy,
        Some(HardwareHealth::Warning) => wire::HardwareHealth::Warning,
        Some(HardwareHealth::Critical) => wire::HardwareHealth::Critical,
        Some(HardwareHealth::Unknown) => wire::HardwareHealth::Unknown,
    };
    wire::DriverView {
        asked_at: at(view.asked_at),
        powered_on: view.powered_on,
        has_power_failure: view.has_power_failure,
        health: health.into(),
        needs_adoption: view.needs_adoption,
        is_busy: view.is_busy,
        boots_without_slot: view.boots_without_slot,
        wants_ramdisk: view.wants_ramdisk,
    }
}

fn answer_from_wire(answer: &Answer) -> DriverAnswer {
    match answer {
        Answer::Done(done) => DriverAnswer::Done(DoneFacts {
            id: shared(done.id.as_ref()),
            inventory: done.inventory.as_ref().map(status::inventory),
            started: done.started,
        }),
        Answer::InProgress(progress) => DriverAnswer::InProgress {
            again_in: Duration::from_millis(progress.again_in_ms),
            started: progress.started,
        },
        Answer::Failed(failed) => DriverAnswer::Failed { text: failed.text.as_str().into() },
        Answer::NotRegistered(wire::NotRegisteredAnswer {}) => DriverAnswer::NotRegistered,
        Answer::NeedsSlot(wire::NeedsSlotAnswer {}) => DriverAnswer::NeedsSlot,
        Answer::NeedsRamdisk(wire::NeedsRamdiskAnswer {}) => DriverAnswer::NeedsRamdisk,
        Answer::Trouble(trouble) => {
            // A kind of a later version is a driver that does not answer as this version expects.
            let kind = match trouble.kind() {
                wire::DriverTrouble::Busy => DriverTrouble::Busy,
                wire::DriverTrouble::Unspecified | wire::DriverTrouble::Unreachable => {
                    DriverTrouble::Unreachable
                }
            };
            DriverAnswer::Trouble { kind, text: trouble.text.as_str().into() }
        }
    }
}

fn answer_to_wire(answer: &DriverAnswer) -> Answer {
    match answer {
        DriverAnswer::Done(facts) => Answer::Done(wire::DoneAnswer {
            id: owned(facts.id.as_ref()),
            inventory: facts.inventory.as_deref().map(status::inventory_to_wire),
            started: facts.started,
        }),
        DriverAnswer::InProgress { again_in, started } => Answer::InProgress(wire::InProgressAnswer {
            again_in_ms: u64::try_from(again_in.as_millis()).unwrap_or(u64::MAX),
            started: *started,
        }),
        DriverAnswer::Failed { text } => Answer::Failed(wire::FailedAnswer { text: text.to_string() }),
        DriverAnswer::NotRegistered => Answer::NotRegistered(wire::NotRegisteredAnswer {}),
        DriverAnswer::NeedsSlot => Answer::NeedsSlot(wire::NeedsSlotAnswer {}),
        DriverAnswer::NeedsRamdisk => Answer::NeedsRamdisk(wire::NeedsRamdiskAnswer {}),
        DriverAnswer::Trouble { kind, text } => {
            let kind = match kind {
                DriverTrouble::Unreachable => wire::DriverTrouble::Unreachable,
                DriverTrouble::Busy => wire::DriverTrouble::Busy,
            };
            Answer::Trouble(wire::TroubleAnswer { kind: kind.into(), text: text.to_string() })
        }
    }
}
