//! Conversion of explanations of hosts to messages.

use domain::{
    core::time::Timestamp,
    host::explanation::{HostEvidenceSource, HostExplanation, HostReason},
};
use proto::insight as wire;

use super::record;

/// Converts an explanation that was made at `now` without the services `unanswered`.
pub(crate) fn explanation(
    explanation: &HostExplanation,
    unanswered: Vec<String>,
    now: Timestamp,
) -> wire::Explanation {
    record::explanation(explanation, (reason, source), unanswered, now)
}

fn source(source: HostEvidenceSource) -> wire::EvidenceSource {
    match source {
        HostEvidenceSource::Record => wire::EvidenceSource::Record,
        HostEvidenceSource::Decision => wire::EvidenceSource::Decision,
        HostEvidenceSource::Credentials => wire::EvidenceSource::Credentials,
        HostEvidenceSource::Backend => wire::EvidenceSource::Backend,
        HostEvidenceSource::Attempt => wire::EvidenceSource::Attempt,
        HostEvidenceSource::Hardware => wire::EvidenceSource::Hardware,
    }
}

fn reason(reason: HostReason) -> wire::CauseReason {
    match reason {
        HostReason::AsWanted => wire::CauseReason::HostAsWanted,
        HostReason::Available => wire::CauseReason::HostAvailable,
        HostReason::ExternallyProvisioned => wire::CauseReason::HostExternallyProvisioned,
        HostReason::PowerLeftBySession => wire::CauseReason::HostPowerLeftBySession,
        HostReason::DecisionAwaited => wire::CauseReason::HostDecisionAwaited,
        HostReason::BmcUnmanaged => wire::CauseReason::HostBmcUnmanaged,
        HostReason::Paused => wire::CauseReason::HostPaused,
        HostReason::NodeInUse => wire::CauseReason::HostNodeInUse,
        HostReason::Detached => wire::CauseReason::HostDetached,
        HostReason::DeletionHeld => wire::CauseReason::HostDeletionHeld,
        HostReason::Gone => wire::CauseReason::HostGone,
        HostReason::HeldOff => wire::CauseReason::HostHeldOff,
        HostReason::CredentialsMissing => wire::CauseReason::HostCredentialsMissing,
        HostReason::CredentialsIncomplete => wire::CauseReason::HostCredentialsIncomplete,
        HostReason::CredentialsUnreadable => wire::CauseReason::HostCredentialsUnreadable,
        HostReason::BackendNotReady => wire::CauseReason::HostBackendNotReady,
        HostReason::BackendUnreachable => wire::CauseReason::HostBackendUnreachable,
        HostReason::BackendBusy => wire::CauseReason::HostBackendBusy,
        HostReason::BackendAnswerIncomplete => wire::CauseReason::HostBackendAnswerIncomplete,
        HostReason::PowerControllerAwaited => wire::CauseReason::HostPowerControllerAwaited,
        HostReason::Registering => wire::CauseReason::HostRegistering,
        HostReason::Inspecting => wire::CauseReason::HostInspecting,
        HostReason::Preparing => wire::CauseReason::HostPreparing,
        HostReason::Servicing => wire::CauseReason::HostServicing,
        HostReason::Provisioning => wire::CauseReason::HostProvisioning,
        HostReason::Adopting => wire::CauseReason::HostAdopting,
        HostReason::Deprovisioning => wire::CauseReason::HostDeprovisioning,
        HostReason::PoweringOn => wire::CauseReason::HostPoweringOn,
        HostReason::PoweringOff => wire::CauseReason::HostPoweringOff,
        HostReason::Detaching => wire::CauseReason::HostDetaching,
        HostReason::Deleting => wire::CauseReason::HostDeleting,
        HostReason::DataImageChanging => wire::CauseReason::HostDataImageChanging,
        HostReason::LoginUnproven => wire::CauseReason::HostLoginUnproven,
        HostReason::RegistrationFailed => wire::CauseReason::HostRegistrationFailed,
        HostReason::InspectionFailed => wire::CauseReason::HostInspectionFailed,
        HostReason::PreparationFailed => wire::CauseReason::HostPreparationFailed,
        HostReason::ProvisioningFailed => wire::CauseReason::HostProvisioningFailed,
        HostReason::DeprovisioningFailed => wire::CauseReason::HostDeprovisioningFailed,
        HostReason::AdoptionFailed => wire::CauseReason::HostAdoptionFailed,
        HostReason::PowerFailed => wire::CauseReason::HostPowerFailed,
        HostReason::ServicingFailed => wire::CauseReason::HostServicingFailed,
        HostReason::DetachFailed => wire::CauseReason::HostDetachFailed,
        HostReason::RetryAwaited => wire::CauseReason::HostRetryAwaited,
        HostReason::SlotAwaited => wire::CauseReason::HostSlotAwaited,
        HostReason::RamdiskAwaited => wire::CauseReason::HostRamdiskAwaited,
        HostReason::PowerReadingAwaited => wire::CauseReason::HostPowerReadingAwaited,
        HostReason::FirmwareReadingAwaited => wire::CauseReason::HostFirmwareReadingAwaited,
        HostReason::FirmwareUnjudged => wire::CauseReason::HostFirmwareUnjudged,
        HostReason::DataImageFailed => wire::CauseReason::HostDataImageFailed,
        HostReason::DeployDataUnreadable => wire::CauseReason::HostDeployDataUnreadable,
        HostReason::HardwareDetailsUnreadable => wire::CauseReason::HostHardwareDetailsUnreadable,
        HostReason::ProvisioningGivenUp => wire::CauseReason::HostProvisioningGivenUp,
        HostReason::ImageUnusable => wire::CauseReason::HostImageUnusable,
        HostReason::HardwareWarning => wire::CauseReason::HostHardwareWarning,
        HostReason::HardwareCritical => wire::CauseReason::HostHardwareCritical,
    }
}

#[cfg(test)]
mod tests {
    use domain::core::explanation::RecordReason as _;

    use super::*;

    #[test]
    fn causes_have_one_word_everywhere() {
        for cause in HostReason::ALL {
            let name = reason(cause).as_str_name().to_ascii_lowercase();
            assert_eq!(name.strip_prefix("cause_reason_"), Some(cause.row().word));
        }
    }
}
