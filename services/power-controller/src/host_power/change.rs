//! Change of the power that a call of a host asks for.

use domain::host::record::{annotations::RebootMode, call::DriverCall};

/// Change of the power that a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PowerChange {
    On,
    /// Off; a reboot of a host that may never be off.
    Off(RebootMode),
}

impl PowerChange {
    /// Returns the change that a call asks for; `None`: the call is about something else.
    pub(super) fn of(call: &DriverCall) -> Option<Self> {
        match call {
            DriverCall::PowerOn { .. } => Some(Self::On),
            DriverCall::PowerOff { mode, .. } => Some(Self::Off(*mode)),
            DriverCall::Register(_)
            | DriverCall::Inspect(_)
            | DriverCall::Prepare(_)
            | DriverCall::Service(_)
            | DriverCall::Provision(_)
            | DriverCall::Adopt { .. }
            | DriverCall::Deprovision { .. }
            | DriverCall::Detach { .. }
            | DriverCall::Delete
            | DriverCall::AttachDataImage { .. }
            | DriverCall::DetachDataImage => None,
        }
    }
}
