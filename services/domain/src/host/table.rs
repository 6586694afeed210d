//! Transition table: every change of state, in the order in which the rows are tried (host reference 1.4).

use std::time::Duration;

use crate::host::{
    decision::{HostEvent, HostMetric},
    deletion, deprovisioning, inspection,
    pass::{Flow, HostPass},
    power, preparation, provisioning,
    record::{
        reason::WaitReason,
        state::HostState::{self, *},
        status::OperationalStatus,
    },
    registration,
};

/// Longest time between two looks at a host without BMC.
const UNMANAGED: Duration = Duration::from_secs(10 * 60);

/// Row of the transition table.
pub(crate) struct TableRow {
    /// Number of the row in the host reference.
    pub number: u8,
    /// States that the row is about.
    pub from: &'static [HostState],
    /// Condition of the row. Asking the driver may end the decision.
    pub when: fn(&mut HostPass<'_>) -> Flow<bool>,
    /// Consequence of the row.
    pub then: RowConsequence,
}

/// Consequence of a row.
pub(crate) enum RowConsequence {
    /// Enter a state, with effects besides those of every change.
    Enter(HostState, fn(&mut HostPass<'_>)),
    /// Stay, and do the work of the state.
    Stay(fn(&mut HostPass<'_>) -> Flow),
    /// Change the record, and go on with the next row.
    GoOn(fn(&mut HostPass<'_>)),
}

use RowConsequence::{Enter, GoOn, Stay};

const fn row(
    number: u8,
    from: &'static [HostState],
    when: fn(&mut HostPass<'_>) -> Flow<bool>,
    then: RowConsequence,
) -> TableRow {
    TableRow { number, from, when, then }
}

const NOT_DELETING: &[HostState] = &[
    Unset,
    Unmanaged,
    Registering,
    Inspecting,
    MatchProfile,
    Preparing,
    Available,
    Ready,
    Provisioning,
    Provisioned,
    ExternallyProvisioned,
    Deprovisioning,
    PoweringOffBeforeDelete,
];
const BEFORE_REGISTRATION: &[HostState] = &[Unset, Unmanaged, Registering];
const WITH_A_SYSTEM: &[HostState] = &[Provisioning, Provisioned];
const WITHOUT_A_SYSTEM: &[HostState] =
    &[Inspecting, MatchProfile, Preparing, Available, Ready, ExternallyProvisioned];
const READY: &[HostState] = &[Available, Ready];

/// Rows about the beginning of a deletion. They come before registration and before the rows of the state.
#[rustfmt::skip]
pub(crate) const DELETION: &[TableRow] = &[
    row( 1, NOT_DELETING,               deletion::skips_detached, Enter(Deleting, nothing)),
    row( 2, BEFORE_REGISTRATION,        deletion::is_due,         Enter(Deleting, nothing)),
    row( 3, WITH_A_SYSTEM,              deletion::is_due,         Enter(Deprovisioning, deprovisioning::begin)),
    row( 4, WITHOUT_A_SYSTEM,           deletion::is_due,         Enter(PoweringOffBeforeDelete, nothing)),
    row(33, &[Deprovisioning],          deletion::is_unreachable, Enter(Deleting, nothing)),
    row(36, &[PoweringOffBeforeDelete], deletion::is_unreachable, Enter(Deleting, nothing)),
];

/// Rows of each state.
#[rustfmt::skip]
pub(crate) const STATES: &[TableRow] = &[
    row( 5, &[Unset],                   names_a_bmc,                              Enter(Registering, nothing)),
    row( 6, &[Unset],                   always,                                   Enter(Unmanaged, discover)),
    row( 7, &[Unmanaged],               names_a_bmc,                              Enter(Registering, nothing)),
    row( 7, &[Unmanaged],               always,                                   Stay(stay_unmanaged)),
    row( 8, &[Registering],             is_external,                              Enter(ExternallyProvisioned, registration::registered)),
    row( 9, &[Registering],             inspection::is_skipped,                   Enter(Preparing, registration::registered)),
    row(10, &[Registering],             always,                                   Enter(Inspecting, registration::registered)),
    row(11, &[Inspecting],              inspection::is_skipped,                   Enter(Preparing, inspection::skip)),
    row(12, &[Inspecting],              inspection::is_finished,                  Enter(Preparing, inspection::finish)),
    row(13, &[MatchProfile],            always,                                   Enter(Preparing, forget_failures)),
    row(14, &[Preparing],               preparation::is_finished,                 Enter(Available, preparation::finish)),
    row(15, READY,                      is_external,                              Enter(ExternallyProvisioned, preparation::forget_settings)),
    row(16, READY,                      inspection::is_wanted_again,              Enter(Inspecting, nothing)),
    row(17, READY,                      preparation::is_storage_changed,          Enter(Preparing, nothing)),
    row(18, READY,                      preparation::are_settings_changed,        Enter(Preparing, nothing)),
    row(19, READY,                      preparation::are_components_changed,      Enter(Preparing, nothing)),
    row(20, READY,                      provisioning::has_stale_failures,         GoOn(provisioning::forget_failures)),
    row(21, READY,                      provisioning::is_exhausted,               Stay(provisioning::give_up)),
    row(22, READY,                      provisioning::is_due,                     Enter(Provisioning, provisioning::begin)),
    row(23, READY,                      always,                                   Stay(power::manage)),
    row(24, &[Provisioning],            provisioning::has_failed,                 Enter(Deprovisioning, provisioning::count_failure)),
    row(25, &[Provisioning],            provisioning::is_unwanted,                Enter(Deprovisioning, deprovisioning::begin)),
    row(26, &[Provisioning],            provisioning::is_finished,                Enter(Provisioned, provisioning::finish)),
    row(27, &[Provisioned],             provisioning::is_unwanted,                Enter(Deprovisioning, deprovisioning::begin)),
    row(28, &[Provisioned],             always,                                   Stay(power::manage_running)),
    row(29, &[ExternallyProvisioned],   is_not_external,                          Enter(Provisioned, provisioning::take_over)),
    row(30, &[ExternallyProvisioned],   always,                                   Stay(power::manage_running)),
    row(31, &[Deprovisioning],          deprovisioning::is_finished,              Enter(Available, deprovisioning::finish)),
    row(32, &[Deprovisioning],          deprovisioning::is_finished_for_deletion, Enter(PoweringOffBeforeDelete, deprovisioning::finish)),
    row(34, &[Deprovisioning],          deprovisioning::is_given_up,              Enter(PoweringOffBeforeDelete, deprovisioning::give_up)),
    row(35, &[Deprovisioning],          deletion::is_unknown,                     Enter(Deleting, deletion::leave_power)),
    row(37, &[PoweringOffBeforeDelete], deletion::is_off,                         Enter(Deleting, deletion::switched_off)),
    row(38, &[PoweringOffBeforeDelete], deletion::is_power_given_up,              Enter(Deleting, deletion::leave_power)),
    row(39, &[PoweringOffBeforeDelete], deletion::is_unknown,                     Enter(Deleting, deletion::leave_power)),
    row(40, &[Deleting],                always,                                   Stay(deletion::forget)),
];

fn nothing(_: &mut HostPass<'_>) {}

#[expect(clippy::unnecessary_wraps, reason = "every condition of a row has this form")]
fn always(_: &mut HostPass<'_>) -> Flow<bool> {
    Ok(true)
}

fn names_a_bmc(pass: &mut HostPass<'_>) -> Flow<bool> {
    Ok(pass.host.spec.names_a_bmc())
}

fn is_external(pass: &mut HostPass<'_>) -> Flow<bool> {
    Ok(pass.host.spec.externally_provisioned)
}

fn is_not_external(pass: &mut HostPass<'_>) -> Flow<bool> {
    Ok(!pass.host.spec.externally_provisioned)
}

fn discover(pass: &mut HostPass<'_>) {
    pass.host.status.operational = OperationalStatus::Discovered;
    pass.events.push(HostEvent::Discovered);
    pass.metrics.push(HostMetric::Unmanaged);
}

fn stay_unmanaged(pass: &mut HostPass<'_>) -> Flow {
    Err(pass.wait(WaitReason::Unmanaged, UNMANAGED))
}

fn forget_failures(pass: &mut HostPass<'_>) {
    pass.host.status.error_count = 0;
}
