//! Tables of the statuses: every row, in the order in which the rows are tried (device reference 2.3 to 2.6).
//!
//! A number is the number of the row in the reference; "V" is a choice of ours.

use crate::device::evaluation::{
    facts::StatusFacts,
    reason::{ApplicationsReason, LifecycleReason, SummaryReason, UpdatedReason},
};

/// Table of one status. The last row always holds, so there is a result for every device.
pub(crate) struct StatusTable<R: 'static> {
    rows: &'static [TableRow<R>],
    otherwise: R,
}

struct TableRow<R> {
    when: fn(&StatusFacts<'_>) -> bool,
    then: R,
}

impl<R: Copy> StatusTable<R> {
    /// Returns the result of the first row that holds.
    pub(crate) fn first_match(&self, facts: &StatusFacts<'_>) -> R {
        let row = self.rows.iter().find(|row| (row.when)(facts));
        row.map_or(self.otherwise, |row| row.then)
    }
}

const fn row<R>(when: fn(&StatusFacts<'_>) -> bool, then: R) -> TableRow<R> {
    TableRow { when, then }
}

/// Rows of the summary.
#[rustfmt::skip]
pub(crate) const SUMMARY: StatusTable<SummaryReason> = StatusTable {
    rows: &[
        /* 1 */ row(|facts| facts.awaits_reconnect(),      SummaryReason::AwaitingReconnect),
        /* 2 */ row(|facts| facts.is_conflict_paused(),    SummaryReason::ConflictPaused),
        /* 3 */ row(|facts| facts.is_disconnected(),       SummaryReason::Disconnected),
        /* 4 */ row(|facts| facts.is_rebooting(),          SummaryReason::Rebooting),
        /* 5 */ row(|facts| facts.has_critical_resource(), SummaryReason::CriticalResource),
        /* 6 */ row(|facts| facts.has_short_resource(),    SummaryReason::ShortResource),
    ],
    /* 7 */ otherwise: SummaryReason::Connected,
};

/// Rows of the updated status.
#[rustfmt::skip]
pub(crate) const UPDATED: StatusTable<UpdatedReason> = StatusTable {
    rows: &[
        /* V1 */ row(|facts| facts.awaits_reconnect(),                             UpdatedReason::AwaitingReconnect),
        /* 1 */  row(|facts| facts.is_disconnected() && !facts.was_never_seen(),   UpdatedReason::Disconnected),
        /* 2 */  row(|facts| facts.is_updating(),                                  UpdatedReason::Updating),
        /* V2 */ row(|facts| facts.is_conflict_paused(),                           UpdatedReason::ConflictPaused),
        /* 3 */  row(|facts| !facts.is_managed() && !facts.is_spec_current(),      UpdatedReason::SpecNotCurrent),
        /* 4 */  row(|facts| facts.is_managed() && facts.evidence.fleet.is_none(), UpdatedReason::FleetUnreadable),
        /* 5 */  row(|facts| facts.is_managed() && facts.is_fleet_current(),       UpdatedReason::FleetCurrent),
        /* 6 */  row(|facts| facts.is_managed(),                                   UpdatedReason::FleetNotCurrent),
    ],
    /* 7 */ otherwise: UpdatedReason::SpecCurrent,
};

/// Rows that overrule "up to date", by the system that runs.
#[rustfmt::skip]
pub(crate) const RUNNING_SYSTEM: StatusTable<Option<UpdatedReason>> = StatusTable {
    rows: &[
        row(|facts| facts.runs_other_image(),         Some(UpdatedReason::OtherImage)),
        row(|facts| facts.cannot_take_catalog_item(), Some(UpdatedReason::CatalogItemUnsupported)),
    ],
    otherwise: None,
};

/// Rows of the status of applications.
#[rustfmt::skip]
pub(crate) const APPLICATIONS: StatusTable<ApplicationsReason> = StatusTable {
    rows: &[
        /* 1 */ row(|facts| facts.is_disconnected(),                          ApplicationsReason::Disconnected),
        /* 2 */ row(|facts| facts.is_rebooting() && facts.has_applications(), ApplicationsReason::Rebooting),
        /* 3 */ row(|facts| !facts.has_applications(),                        ApplicationsReason::NoApplications),
        /* 4 */ row(|facts| facts.has_verdict(),                              ApplicationsReason::Verdict),
    ],
    /* V3 */ otherwise: ApplicationsReason::Statuses,
};

/// Rows of the stage of life.
#[rustfmt::skip]
pub(crate) const LIFECYCLE: StatusTable<LifecycleReason> = StatusTable {
    rows: &[
        row(|facts| facts.has_begun_its_end(),  LifecycleReason::EndBegun),
        row(|facts| facts.has_ended(),          LifecycleReason::Ended),
        row(|facts| facts.has_ended_in_error(), LifecycleReason::EndedInError),
    ],
    otherwise: LifecycleReason::Kept,
};
