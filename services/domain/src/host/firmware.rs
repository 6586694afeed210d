//! Firmware settings and versions: what is due by the records that hold the wishes (host reference 1.11).

pub mod judgement;
pub mod reading;
pub mod upkeep;

use crate::host::{
    evidence::FirmwareWish,
    pass::HostPass,
    record::{Host, call::PreparationParts},
};

/// State of a wish about firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirmwareVerdict {
    /// No change is due.
    Nothing,
    /// A change is due.
    Due,
    /// The wish was not judged in its present generation.
    Unjudged,
    /// The present values are not known.
    Unread,
}

/// Judges a wish. One that cannot be fulfilled changes nothing, nor does one that was compared with the values from
/// before the last change.
pub(crate) fn verdict(host: &Host, wish: Option<FirmwareWish>) -> FirmwareVerdict {
    let Some(wish) = wish else { return FirmwareVerdict::Nothing };
    let is_outdated = host.progress.firmware_changed_at.is_some_and(|changed| wish.read_at <= changed);
    if !wish.is_judged {
        FirmwareVerdict::Unjudged
    } else if !wish.is_changed || !wish.is_valid || is_outdated {
        FirmwareVerdict::Nothing
    } else if !wish.is_read {
        FirmwareVerdict::Unread
    } else {
        FirmwareVerdict::Due
    }
}

/// Returns the changes of firmware that are due, as far as `allowed`.
pub(crate) fn due(pass: &HostPass<'_>, allowed: PreparationParts) -> PreparationParts {
    let settings = verdict(&pass.host, pass.seen.settings) == FirmwareVerdict::Due;
    let components = verdict(&pass.host, pass.seen.components) == FirmwareVerdict::Due;
    let is_pending = pass.seen.components.is_some_and(|wish| wish.is_pending);
    PreparationParts {
        storage: false,
        settings: settings && allowed.settings,
        components: components && is_pending && allowed.components,
    }
}
