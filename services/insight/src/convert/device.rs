//! Conversion of explanations of devices to messages.

use domain::{
    core::time::Timestamp,
    device::explanation::{DeviceEvidenceSource, DeviceExplanation, DeviceReason},
};
use proto::insight as wire;

use super::record;

/// Converts an explanation that was made at `now` without the services `unanswered`.
pub(crate) fn explanation(
    explanation: &DeviceExplanation,
    unanswered: Vec<String>,
    now: Timestamp,
) -> wire::Explanation {
    record::explanation(explanation, (reason, source), unanswered, now)
}

fn source(source: DeviceEvidenceSource) -> wire::EvidenceSource {
    match source {
        DeviceEvidenceSource::Record => wire::EvidenceSource::Record,
        DeviceEvidenceSource::Decision => wire::EvidenceSource::Decision,
        DeviceEvidenceSource::Contact => wire::EvidenceSource::Contact,
        DeviceEvidenceSource::Report => wire::EvidenceSource::Report,
        DeviceEvidenceSource::Fleet => wire::EvidenceSource::Fleet,
        DeviceEvidenceSource::Enrolment => wire::EvidenceSource::Enrolment,
    }
}

fn reason(reason: DeviceReason) -> wire::CauseReason {
    match reason {
        DeviceReason::AsWanted => wire::CauseReason::DeviceAsWanted,
        DeviceReason::NothingWanted => wire::CauseReason::DeviceNothingWanted,
        DeviceReason::ApprovalAwaited => wire::CauseReason::DeviceApprovalAwaited,
        DeviceReason::RecordAwaited => wire::CauseReason::DeviceRecordAwaited,
        DeviceReason::Deleted => wire::CauseReason::DeviceDeleted,
        DeviceReason::CertificateAwaited => wire::CauseReason::DeviceCertificateAwaited,
        DeviceReason::NeverSeen => wire::CauseReason::DeviceNeverSeen,
        DeviceReason::Disconnected => wire::CauseReason::DeviceDisconnected,
        DeviceReason::ReconnectAwaited => wire::CauseReason::DeviceReconnectAwaited,
        DeviceReason::ConflictPaused => wire::CauseReason::DeviceConflictPaused,
        DeviceReason::EndRequested => wire::CauseReason::DeviceEndRequested,
        DeviceReason::EndBegun => wire::CauseReason::DeviceEndBegun,
        DeviceReason::Ended => wire::CauseReason::DeviceEnded,
        DeviceReason::EndedInError => wire::CauseReason::DeviceEndedInError,
        DeviceReason::SeveralFleets => wire::CauseReason::DeviceSeveralFleets,
        DeviceReason::SpecInvalid => wire::CauseReason::DeviceSpecInvalid,
        DeviceReason::Updating => wire::CauseReason::DeviceUpdating,
        DeviceReason::Rebooting => wire::CauseReason::DeviceRebooting,
        DeviceReason::UpdateRetrying => wire::CauseReason::DeviceUpdateRetrying,
        DeviceReason::UpdateRollingBack => wire::CauseReason::DeviceUpdateRollingBack,
        DeviceReason::UpdateFailed => wire::CauseReason::DeviceUpdateFailed,
        DeviceReason::UpdateCanceled => wire::CauseReason::DeviceUpdateCanceled,
        DeviceReason::TemplateUnfit => wire::CauseReason::DeviceTemplateUnfit,
        DeviceReason::FleetUnread => wire::CauseReason::DeviceFleetUnread,
        DeviceReason::RolloutAwaited => wire::CauseReason::DeviceRolloutAwaited,
        DeviceReason::RenderingAwaited => wire::CauseReason::DeviceRenderingAwaited,
        DeviceReason::SpecNotTaken => wire::CauseReason::DeviceSpecNotTaken,
        DeviceReason::OtherImage => wire::CauseReason::DeviceOtherImage,
        DeviceReason::CatalogItemUnsupported => wire::CauseReason::DeviceCatalogItemUnsupported,
        DeviceReason::ApplicationFailed => wire::CauseReason::DeviceApplicationFailed,
        DeviceReason::ApplicationDegraded => wire::CauseReason::DeviceApplicationDegraded,
        DeviceReason::ResourceCritical => wire::CauseReason::DeviceResourceCritical,
        DeviceReason::ResourceShort => wire::CauseReason::DeviceResourceShort,
        DeviceReason::IntegrityFailed => wire::CauseReason::DeviceIntegrityFailed,
    }
}

#[cfg(test)]
mod tests {
    use domain::core::explanation::RecordReason as _;

    use super::*;

    #[test]
    fn causes_have_one_word_everywhere() {
        for cause in DeviceReason::ALL {
            let name = reason(cause).as_str_name().to_ascii_lowercase();
            assert_eq!(name.strip_prefix("cause_reason_"), Some(cause.row().word));
        }
    }
}
