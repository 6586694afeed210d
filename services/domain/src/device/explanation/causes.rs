//! Causes of a device, in the order in which they are to be acted on.

use std::sync::Arc;

use super::{DeviceCause, DeviceReason};
use crate::device::{
    application_health::judge_reports,
    enrolment::EnrolmentRequest,
    evaluation::facts::StatusFacts,
    record::{
        Device,
        condition::{ConditionKind, ConditionReason, DeviceCondition},
        report::{IntegrityStatus, ResourceStatus},
        status::{ApplicationsStatus, StatusEntry},
        version::{RenderedVersion, TemplateVersionName},
    },
};

/// Device with everything that its causes follow from.
pub(super) struct DeviceView<'a> {
    pub(super) facts: &'a StatusFacts<'a>,
    pub(super) enrolment: Option<&'a EnrolmentRequest>,
}

impl DeviceView<'_> {
    /// Returns the causes; empty: the device is as wanted.
    pub(super) fn causes(&self) -> Vec<DeviceCause> {
        let end = self.end();
        if end.as_ref().is_some_and(|end| end.reason != DeviceReason::EndRequested) {
            return Vec::from_iter(end);
        }
        let causes = [
            end,
            self.restore(),
            self.contact(),
            self.owners(),
            self.spec(),
            self.update(),
            self.rollout(),
            self.system(),
            self.applications(),
            self.resources(ResourceStatus::Critical, DeviceReason::ResourceCritical),
            self.resources(ResourceStatus::Warning, DeviceReason::ResourceShort),
            self.integrity(),
        ];
        causes.into_iter().flatten().collect()
    }

    fn device(&self) -> &Device {
        self.facts.device
    }

    /// Returns the stage of the end of the device.
    fn end(&self) -> Option<DeviceCause> {
        let of = |reason| Some(DeviceCause::new(reason));
        let end = self.device().condition(ConditionKind::Decommissioning);
        let reported = |reason| {
            let since = end.map(|end| end.since);
            let words = end.map(|end| end.message.clone()).unwrap_or_default();
            Some(DeviceCause::new(reason).since(since).saying(words))
        };
        if self.facts.has_ended() {
            reported(DeviceReason::Ended)
        } else if self.facts.has_ended_in_error() {
            reported(DeviceReason::EndedInError)
        } else if self.facts.has_begun_its_end() {
            reported(DeviceReason::EndBegun)
        } else if self.device().spec.decommissioning.is_some() {
            of(DeviceReason::EndRequested)
        } else {
            None
        }
    }

    /// Returns the mark of a restored database.
    fn restore(&self) -> Option<DeviceCause> {
        if self.facts.awaits_reconnect() {
            return Some(DeviceCause::new(DeviceReason::ReconnectAwaited));
        }
        let paused = DeviceCause::new(DeviceReason::ConflictPaused);
        self.facts.is_conflict_paused().then(|| paused.saying(self.versions()))
    }

    /// Returns the lack of contact with the agent. A restored database forgets it, which is its own cause.
    fn contact(&self) -> Option<DeviceCause> {
        if !self.facts.is_disconnected() || self.facts.awaits_reconnect() {
            return None;
        }
        let Some(seen) = self.facts.evidence.last_seen else {
            let has_certificate = self.enrolment.is_none_or(|request| request.certificate.is_some());
            let reason =
                if has_certificate { DeviceReason::NeverSeen } else { DeviceReason::CertificateAwaited };
            return Some(DeviceCause::new(reason).since(Some(self.device().meta.created)));
        };
        Some(DeviceCause::new(DeviceReason::Disconnected).since(Some(seen)))
    }

    fn owners(&self) -> Option<DeviceCause> {
        let several = self.device().condition(ConditionKind::MultipleOwners)?;
        several.is_true().then(|| told(DeviceReason::SeveralFleets, several))
    }

    fn spec(&self) -> Option<DeviceCause> {
        let valid = self.device().condition(ConditionKind::SpecValid)?;
        (!valid.is_true()).then(|| told(DeviceReason::SpecInvalid, valid))
    }

    /// Returns the update under way, or the failure of the last one, for as long as the device is out of date.
    fn update(&self) -> Option<DeviceCause> {
        let updating = self.device().condition(ConditionKind::Updating)?;
        if updating.is_true() {
            return Some(told(under_way(&updating.reason), updating));
        }
        let reason = match &updating.reason {
            ConditionReason::Error => DeviceReason::UpdateFailed,
            ConditionReason::Canceled => DeviceReason::UpdateCanceled,
            ConditionReason::Preparing
            | ConditionReason::ReadyToUpdate
            | ConditionReason::ApplyingUpdate
            | ConditionReason::Rebooting
            | ConditionReason::RollingBack
            | ConditionReason::Updated
            | ConditionReason::Retrying
            | ConditionReason::Started
            | ConditionReason::Completed
            | ConditionReason::Valid
            | ConditionReason::Invalid
            | ConditionReason::MultipleOwners
            | ConditionReason::Other(_) => return None,
        };
        (!self.is_current()).then(|| told(reason, updating))
    }

    fn is_current(&self) -> bool {
        match &self.facts.evidence.fleet {
            Some(_) if self.facts.is_managed() => self.facts.is_fleet_current(),
            Some(_) | None => self.facts.is_spec_current(),
        }
    }

    /// Returns the step between the template of the fleet and the agent that is missing.
    fn rollout(&self) -> Option<DeviceCause> {
        let annotations = &self.device().meta.annotations;
        if !annotations.last_rollout_error.is_empty() {
            return Some(
                DeviceCause::new(DeviceReason::TemplateUnfit).saying(annotations.last_rollout_error.clone()),
            );
        }
        if !self.facts.is_managed() {
            return self.spec_not_taken();
        }
        let Some(fleet) = self.facts.evidence.fleet else {
            return Some(DeviceCause::new(DeviceReason::FleetUnread));
        };
        if self.facts.is_fleet_current() {
            return None;
        }
        let is_own = self.device().meta.owner.as_ref() == Some(&fleet.fleet);
        let wanted = fleet.template_version.as_ref().filter(|_| is_own);
        let awaited = |reason| Some(DeviceCause::new(reason).saying(template_words(wanted)));
        if wanted.is_none() || annotations.template_version.as_ref() != wanted {
            awaited(DeviceReason::RolloutAwaited)
        } else if annotations.rendered_template_version.as_ref() != wanted {
            awaited(DeviceReason::RenderingAwaited)
        } else {
            self.spec_not_taken()
        }
    }

    /// Returns the cause of an agent that has not taken the latest spec, unless its update tells more.
    fn spec_not_taken(&self) -> Option<DeviceCause> {
        let is_explained = self.update().is_some() || self.spec().is_some() || self.restore().is_some();
        let is_due = !self.facts.is_spec_current() && !is_explained;
        is_due.then(|| DeviceCause::new(DeviceReason::SpecNotTaken).saying(self.versions()))
    }

    fn system(&self) -> Option<DeviceCause> {
        if !self.is_current() {
            return None;
        }
        if self.facts.runs_other_image() {
            let image = &self.device().reported.os.image;
            return Some(DeviceCause::new(DeviceReason::OtherImage).saying(format!("'{image}'")));
        }
        let is_unsupported = self.facts.cannot_take_catalog_item();
        is_unsupported.then(|| DeviceCause::new(DeviceReason::CatalogItemUnsupported))
    }

    /// Returns the cause of applications that are not well, by the verdict of the agent where it gives one.
    fn applications(&self) -> Option<DeviceCause> {
        let reported = &self.device().reported;
        let is_told = self.facts.has_applications() && self.facts.has_verdict();
        let StatusEntry { status, info } = match is_told {
            true => reported.applications_verdict.clone(),
            false => judge_reports(&reported.applications),
        };
        let reason = match status {
            ApplicationsStatus::Error => DeviceReason::ApplicationFailed,
            ApplicationsStatus::Degraded => DeviceReason::ApplicationDegraded,
            ApplicationsStatus::Healthy
            | ApplicationsStatus::Unknown
            | ApplicationsStatus::NoApplications => {
                return None;
            }
        };
        Some(DeviceCause::new(reason).saying(info))
    }

    fn resources(&self, status: ResourceStatus, reason: DeviceReason) -> Option<DeviceCause> {
        let names: Vec<_> = self.facts.resources_of(status).map(|kind| kind.word()).collect();
        (!names.is_empty()).then(|| DeviceCause::new(reason).saying(names.join(", ")))
    }

    fn integrity(&self) -> Option<DeviceCause> {
        let integrity = &self.device().reported.integrity;
        let cause = DeviceCause::new(DeviceReason::IntegrityFailed).since(integrity.last_verified);
        (integrity.overall.status == IntegrityStatus::Failed)
            .then(|| cause.saying(integrity.overall.info.clone()))
    }

    fn versions(&self) -> String {
        let reported = match &*self.device().reported.rendered_version {
            "" => "no version",
            version => version,
        };
        let known = self.device().meta.annotations.rendered_version.unwrap_or(RenderedVersion::NONE);
        format!("it runs {reported}, the latest is {known}")
    }
}

fn template_words(wanted: Option<&TemplateVersionName>) -> Arc<str> {
    wanted.map(|version| format!("version {}", version.0).into()).unwrap_or_default()
}

/// Returns the cause that a condition tells, in its words.
fn told(reason: DeviceReason, condition: &DeviceCondition) -> DeviceCause {
    DeviceCause::new(reason).since(Some(condition.since)).saying(condition.message.clone())
}

/// Returns the reason for a step of an update that is under way.
fn under_way(step: &ConditionReason) -> DeviceReason {
    match step {
        ConditionReason::Rebooting => DeviceReason::Rebooting,
        ConditionReason::RollingBack => DeviceReason::UpdateRollingBack,
        ConditionReason::Retrying => DeviceReason::UpdateRetrying,
        ConditionReason::Preparing
        | ConditionReason::ReadyToUpdate
        | ConditionReason::ApplyingUpdate
        | ConditionReason::Updated
        | ConditionReason::Canceled
        | ConditionReason::Started
        | ConditionReason::Completed
        | ConditionReason::Error
        | ConditionReason::Valid
        | ConditionReason::Invalid
        | ConditionReason::MultipleOwners
        | ConditionReason::Other(_) => DeviceReason::Updating,
    }
}
