//! The effect on a component of a report by one of the mesh's own services.
//!
//! Each kind of report has one author and writes only the group of that author: [`AuthorReport::write`] has no access to
//! any other. Its effects on other groups are [`Consequence`]s, which the registry carries out.
//!
//! A report about an outdated record is [`Stale`]: it changes nothing, and its author reports again once it sees the
//! current record. A report that repeats the record changes nothing either, so that repeating is harmless.

use crate::{boot::component::Component, core::time::Timestamp};

mod action;
mod assignment;
mod consequence;
pub mod inventory;
mod pause;
mod preparation;
mod status;

pub use action::ActionReport;
pub use assignment::Assignment;
pub use consequence::Consequence;
pub use pause::PauseReport;
pub use preparation::PreparationReport;
pub use status::StatusReport;

/// Report by the author of a group of members of a component.
pub trait AuthorReport {
    /// Group that the author writes.
    type Group;

    /// Returns the group of the author.
    fn group(component: &mut Component) -> &mut Self::Group;

    /// Returns whether `component` differs from the report.
    ///
    /// # Errors
    /// When the author decided on an older record.
    fn has_news(&self, component: &Component) -> Result<bool, Stale>;

    /// Writes the news into the group of the author. `before`: the whole record before the report.
    fn write(&self, group: &mut Self::Group, before: &Component, now: Timestamp);

    /// Returns the effects on the other groups, in their order.
    fn consequences(&self, before: &Component) -> Vec<Consequence>;
}

/// Error of a report whose component has moved on since its author read the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the component has changed since it was looked at")]
pub struct Stale;

/// Returns the record of `component` after a report; `None`: the report repeats the record.
///
/// # Errors
/// When the author of the report decided on an older record.
pub fn record<R: AuthorReport>(
    component: &Component,
    report: &R,
    now: Timestamp,
) -> Result<Option<Component>, Stale> {
    if !report.has_news(component)? {
        return Ok(None);
    }
    let mut changed = component.clone();
    report.write(R::group(&mut changed), component, now);
    for consequence in report.consequences(component) {
        consequence.apply(&mut changed, now);
    }
    changed.evaluation.note_begin(&component.evaluation, now);
    Ok(Some(changed))
}

#[cfg(test)]
mod tests;
