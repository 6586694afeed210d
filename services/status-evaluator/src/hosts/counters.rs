//! Counters of the lives of hosts (host reference 1.21). Labels are words of the code.

use domain::host::decision::HostMetric;
use metrics::{counter, describe_counter, describe_histogram, histogram};

/// Changes of state.
const STATES: &str = "reveille_host_state_changes_total";

/// Duration of operations that fill a state.
const OPERATIONS: &str = "reveille_host_operation_seconds";

/// Recorded failures.
const ERRORS: &str = "reveille_host_errors_total";

/// Changes of power.
const POWER: &str = "reveille_host_power_changes_total";

/// Hosts that have to wait for a slot.
const DELAYED: &str = "reveille_hosts_delayed_total";

/// Everything else that is counted.
const NOTICES: &str = "reveille_host_notices_total";

/// Describes the counters.
pub(super) fn describe() {
    describe_counter!(STATES, "State changes of bare-metal hosts");
    describe_histogram!(OPERATIONS, "Duration of operations on bare-metal hosts that fill a state");
    describe_counter!(ERRORS, "Failures that were recorded of bare-metal hosts");
    describe_counter!(POWER, "Bare-metal hosts that were switched on or off");
    describe_counter!(DELAYED, "Bare-metal hosts that had to wait for a slot");
    describe_counter!(NOTICES, "Other decisions about bare-metal hosts, by what they noticed");
}

/// Counts the notices of a decision that was stored.
pub(super) fn count(metric: &HostMetric) {
    match metric {
        HostMetric::StateChange { from, to } => {
            counter!(STATES, "from" => from.word(), "to" => to.word()).increment(1);
        }
        HostMetric::OperationEnded { operation, took } => {
            histogram!(OPERATIONS, "operation" => operation.word()).record(took.as_secs_f64());
        }
        HostMetric::Error(kind) => counter!(ERRORS, "kind" => kind.word()).increment(1),
        HostMetric::PowerChange { on } => {
            counter!(POWER, "to" => if *on { "on" } else { "off" }).increment(1);
        }
        HostMetric::Delayed(state) => counter!(DELAYED, "state" => state.word()).increment(1),
        HostMetric::RegistrationRequired => notice("registration_required"),
        HostMetric::Unmanaged => notice("unmanaged"),
        HostMetric::CredentialsMissing => notice("credentials_missing"),
        HostMetric::CredentialsInvalid => notice("credentials_invalid"),
        HostMetric::CredentialsUnhandled => notice("credentials_unhandled"),
        HostMetric::CredentialsUpdated => notice("credentials_updated"),
        HostMetric::NoManagementAccess => notice("no_management_access"),
        HostMetric::WaitingForRamdisk => notice("waiting_for_ramdisk"),
        HostMetric::DeployDataError => notice("deploy_data_error"),
        HostMetric::DeletedWithoutDeprovisioning => notice("deleted_without_deprovisioning"),
        HostMetric::DeletedWithoutPowerOff => notice("deleted_without_power_off"),
        HostMetric::DriverNotReady => notice("driver_not_ready"),
        HostMetric::DeletionHeld => notice("deletion_held"),
    }
}

fn notice(word: &'static str) {
    counter!(NOTICES, "notice" => word).increment(1);
}
