//! Explains why a host is as it is: the causes, the evidence, and the next step.
//!
//! Explanations decide nothing. The wait of the record says why the last decision did nothing more, the recorded error says
//! which operation failed, and the log of attempts says since when. The causes with their texts are one table,
//! [`HostReason`].

mod evidence;
mod reason;
mod table;
#[cfg(test)]
mod tests;

pub use evidence::HostEvidenceSource;
pub use reason::HostReason;

use std::sync::Arc;

use crate::{
    core::{
        condition::ConditionStatus,
        explanation::{CauseOutcome, RecordCause, RecordExplanation, RecordReason},
        time::Timestamp,
    },
    host::{
        image,
        record::{
            Host, PowerAuthority,
            condition::{ConditionKind, ConditionReason},
            history::AttemptEnd,
            operation::OperationKind,
            progress::{HostWait, SlotClaim},
            reason::WaitReason,
            state::HostState,
            status::{HostError, HostErrorKind},
        },
    },
};

/// Explanation of a host.
pub type HostExplanation = RecordExplanation<HostReason, HostEvidenceSource>;

type HostCause = RecordCause<HostReason>;

/// Explains a host by its record.
///
/// A recorded failure comes before work under way, which is another attempt; it comes after everything else that the
/// host waits for.
pub fn explain_host(host: &Host) -> HostExplanation {
    let view = HostView { host };
    let present = view.present();
    let failure = view.failure().filter(|failure| !is_told(failure.reason, present.reason));
    let (head, mut others) = match failure {
        Some(failure) if present.reason.row().outcome == CauseOutcome::Progressing => {
            (failure, vec![present])
        }
        failure => (present, Vec::from_iter(failure)),
    };
    others.extend(view.image_flaw());
    others.extend(view.hardware_fault());
    let key = &host.meta.key;
    let (namespace, name) = (key.namespace.clone(), key.name.clone());
    HostExplanation { namespace, name, head, others, evidence: evidence::items(host) }
}

/// Returns whether the present cause tells a recorded failure already.
fn is_told(failure: HostReason, present: HostReason) -> bool {
    let is_more_exact = matches!(
        present,
        HostReason::CredentialsMissing | HostReason::CredentialsIncomplete | HostReason::ProvisioningGivenUp
    );
    is_more_exact || failure == present
}

struct HostView<'a> {
    host: &'a Host,
}

impl HostView<'_> {
    /// Returns the cause of the last decision.
    fn present(&self) -> HostCause {
        let of = HostCause::new;
        let Some(wait) = self.host.progress.wait else { return of(HostReason::DecisionAwaited) };
        let cause = |reason| of(reason).since(Some(wait.since)).until(wait.until);
        match wait.reason {
            WaitReason::Continuing => cause(HostReason::DecisionAwaited),
            WaitReason::Settled => of(self.settled()).since(Some(wait.since)),
            WaitReason::Unmanaged => cause(HostReason::BmcUnmanaged),
            WaitReason::Paused => cause(HostReason::Paused),
            WaitReason::NodeInUse => cause(HostReason::NodeInUse),
            WaitReason::Detached => cause(HostReason::Detached),
            WaitReason::DeletionHeld => cause(HostReason::DeletionHeld),
            WaitReason::Gone => cause(HostReason::Gone),
            WaitReason::HeldOff => cause(HostReason::HeldOff),
            WaitReason::CredentialsMissing => cause(HostReason::CredentialsMissing).saying(self.secret()),
            WaitReason::CredentialsIncomplete => {
                cause(HostReason::CredentialsIncomplete).saying(self.error_words())
            }
            WaitReason::CredentialsUnreadable => self.trouble(HostReason::CredentialsUnreadable, wait),
            WaitReason::DriverNotReady => cause(HostReason::BackendNotReady),
            WaitReason::AwaitingAnswer | WaitReason::DriverWorking => cause(self.operation()),
            WaitReason::AwaitingPowerController => cause(HostReason::PowerControllerAwaited),
            WaitReason::DriverUnreachable => self.trouble(HostReason::BackendUnreachable, wait),
            WaitReason::DriverBusy => self.trouble(HostReason::BackendBusy, wait),
            WaitReason::AnswerIncomplete => self.trouble(HostReason::BackendAnswerIncomplete, wait),
            WaitReason::BackingOff => match self.failure() {
                Some(failure) => failure.until(wait.until),
                None => cause(HostReason::RetryAwaited),
            },
            WaitReason::AwaitingSlot => cause(HostReason::SlotAwaited).since(self.queued_since(wait)),
            WaitReason::AwaitingRamdisk => cause(HostReason::RamdiskAwaited),
            WaitReason::AwaitingPowerReading => cause(HostReason::PowerReadingAwaited),
            WaitReason::AwaitingFirmwareReading => cause(HostReason::FirmwareReadingAwaited),
            WaitReason::FirmwareUnjudged => cause(HostReason::FirmwareUnjudged),
            WaitReason::DataImageFailed => self.trouble(HostReason::DataImageFailed, wait),
            WaitReason::DeployDataUnreadable => self.trouble(HostReason::DeployDataUnreadable, wait),
            WaitReason::HardwareDetailsUnreadable => {
                self.trouble(HostReason::HardwareDetailsUnreadable, wait)
            }
            WaitReason::RetriesExhausted => cause(HostReason::ProvisioningGivenUp).saying(self.error_words()),
        }
    }

    /// Returns the reason of a host that needs nothing.
    fn settled(&self) -> HostReason {
        if self.host.meta.power_authority == PowerAuthority::LastSession
            && self.host.spec.online != self.host.status.powered_on
        {
            return HostReason::PowerLeftBySession;
        }
        match self.host.state() {
            HostState::Available | HostState::Ready => HostReason::Available,
            HostState::ExternallyProvisioned => HostReason::ExternallyProvisioned,
            HostState::Unmanaged => HostReason::BmcUnmanaged,
            HostState::Unset
            | HostState::Registering
            | HostState::Inspecting
            | HostState::MatchProfile
            | HostState::Preparing
            | HostState::Provisioning
            | HostState::Provisioned
            | HostState::Deprovisioning
            | HostState::PoweringOffBeforeDelete
            | HostState::Deleting => HostReason::AsWanted,
        }
    }

    /// Returns the reason of a host whose backend is at work.
    fn operation(&self) -> HostReason {
        let Some(work) = &self.host.progress.work else { return HostReason::DecisionAwaited };
        match work.call.kind() {
            OperationKind::Register => HostReason::Registering,
            OperationKind::Inspect => HostReason::Inspecting,
            OperationKind::Prepare => HostReason::Preparing,
            OperationKind::Service => HostReason::Servicing,
            OperationKind::Provision => HostReason::Provisioning,
            OperationKind::Adopt => HostReason::Adopting,
            OperationKind::Deprovision => HostReason::Deprovisioning,
            OperationKind::PowerOn => HostReason::PoweringOn,
            OperationKind::PowerOff => HostReason::PoweringOff,
            OperationKind::Detach => HostReason::Detaching,
            OperationKind::Delete => HostReason::Deleting,
            OperationKind::AttachDataImage | OperationKind::DetachDataImage => HostReason::DataImageChanging,
        }
    }

    /// Returns the cause of a trouble that lasts, in its words.
    fn trouble(&self, reason: HostReason, wait: HostWait) -> HostCause {
        let cause = HostCause::new(reason).since(Some(wait.since)).until(wait.until);
        let trouble = self.host.progress.trouble.as_ref().filter(|trouble| trouble.reason == wait.reason);
        match trouble {
            Some(trouble) => cause.until(Some(trouble.retry_at)).saying(trouble.text.clone()),
            None => cause,
        }
    }

    /// Returns the recorded failure, since its first attempt in a row that failed.
    fn failure(&self) -> Option<HostCause> {
        let error = self.host.status.error.as_ref()?;
        let (reason, operations) = self.failed(error);
        Some(HostCause::new(reason).since(self.failing_since(operations)).saying(error.text.clone()))
    }

    fn failed(&self, error: &HostError) -> (HostReason, &'static [OperationKind]) {
        match error.kind {
            HostErrorKind::Registration if self.is_login_proven() => {
                (HostReason::RegistrationFailed, &[OperationKind::Register])
            }
            HostErrorKind::Registration => (HostReason::LoginUnproven, &[OperationKind::Register]),
            HostErrorKind::Inspection => (HostReason::InspectionFailed, &[OperationKind::Inspect]),
            HostErrorKind::Preparation => (HostReason::PreparationFailed, &[OperationKind::Prepare]),
            HostErrorKind::Provisioning if self.host.state() == HostState::Deprovisioning => {
                (HostReason::DeprovisioningFailed, &[OperationKind::Deprovision])
            }
            HostErrorKind::Provisioning => (HostReason::ProvisioningFailed, &[OperationKind::Provision]),
            HostErrorKind::ProvisionedRegistration => (HostReason::AdoptionFailed, &[OperationKind::Adopt]),
            HostErrorKind::PowerManagement => {
                (HostReason::PowerFailed, &[OperationKind::PowerOn, OperationKind::PowerOff])
            }
            HostErrorKind::Servicing => (HostReason::ServicingFailed, &[OperationKind::Service]),
            HostErrorKind::Detach => (HostReason::DetachFailed, &[OperationKind::Detach]),
        }
    }

    /// Returns whether the login that was tried last has worked before, so that the login is not to blame.
    fn is_login_proven(&self) -> bool {
        let status = &self.host.status;
        status.good_credentials.is_some() && status.good_credentials == status.tried_credentials
    }

    /// Returns the end of the first attempt that failed, of those in a row up to now.
    fn failing_since(&self, operations: &[OperationKind]) -> Option<Timestamp> {
        let attempts = self.host.progress.attempts.attempts().iter().rev();
        let own = attempts.filter(|attempt| operations.contains(&attempt.operation));
        let unsuccessful = own.take_while(|attempt| !matches!(attempt.end, Some((_, AttemptEnd::Done))));
        let failed = unsuccessful.filter_map(|attempt| match attempt.end {
            Some((at, AttemptEnd::Failed)) => Some(at),
            Some((
                _,
                AttemptEnd::Done | AttemptEnd::NotRegistered | AttemptEnd::Refused | AttemptEnd::Replaced,
            ))
            | None => None,
        });
        failed.last()
    }

    /// Returns the beginning of the wait for a slot, which a rest in between does not move.
    fn queued_since(&self, wait: HostWait) -> Option<Timestamp> {
        match self.host.progress.slot {
            SlotClaim::Waiting { since } | SlotClaim::Aside { since } => Some(since),
            SlotClaim::Nothing | SlotClaim::Held => Some(wait.since),
        }
    }

    /// Returns the cause of a wanted image that no backend can use.
    fn image_flaw(&self) -> Option<HostCause> {
        let Host { spec, status, .. } = self.host;
        let wanted = spec.image.as_ref().filter(|_| !self.host.is_deleted())?;
        let flaws = image::image_flaws(wanted);
        let flaw = flaws.first().filter(|_| status.provisioning.image.as_ref() != Some(wanted))?;
        Some(HostCause::new(HostReason::ImageUnusable).saying(flaw.to_string()))
    }

    fn hardware_fault(&self) -> Option<HostCause> {
        let conditions = &self.host.status.conditions;
        let health = conditions.iter().find(|condition| condition.kind == ConditionKind::Healthy)?;
        if health.status != ConditionStatus::False {
            return None;
        }
        let is_critical = health.reason == ConditionReason::CriticalError;
        let reason = if is_critical { HostReason::HardwareCritical } else { HostReason::HardwareWarning };
        Some(HostCause::new(reason).since(Some(health.since)))
    }

    fn error_words(&self) -> Arc<str> {
        self.host.status.error.as_ref().map(|error| error.text.clone()).unwrap_or_default()
    }

    fn secret(&self) -> Arc<str> {
        self.host.spec.credentials_name.clone()
    }
}
