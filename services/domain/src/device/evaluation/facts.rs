//! Facts that the rows of the tables ask for (device reference 2.1).

use std::time::Duration;

use crate::{
    core::time::Timestamp,
    device::{
        evaluation::StatusEvidence,
        record::{
            Device,
            annotations::RestoreMark,
            condition::{ConditionKind, ConditionReason, DeviceCondition},
            report::{OsMode, ResourceKind, ResourceStatus},
            spec::OsTarget,
            status::ApplicationsStatus,
        },
    },
};

/// Device and the evidence about it.
pub(crate) struct StatusFacts<'a> {
    /// Record.
    pub device: &'a Device,
    /// Evidence.
    pub evidence: &'a StatusEvidence<'a>,
}

impl StatusFacts<'_> {
    pub(crate) fn awaits_reconnect(&self) -> bool {
        self.device.meta.annotations.restore_mark == Some(RestoreMark::AwaitingReconnect)
    }

    pub(crate) fn is_conflict_paused(&self) -> bool {
        self.device.meta.annotations.restore_mark == Some(RestoreMark::ConflictPaused)
    }

    pub(crate) fn was_never_seen(&self) -> bool {
        self.evidence.last_seen.is_none()
    }

    /// At the very end of the timeout the device still counts as connected.
    pub(crate) fn is_disconnected(&self) -> bool {
        self.evidence.last_seen.is_none_or(|seen| seen.plus(self.evidence.timeout) < self.evidence.now)
    }

    /// Returns the first moment at which a connected device counts as disconnected unless it is seen again.
    pub(crate) fn disconnects_at(&self) -> Option<Timestamp> {
        let seen = self.evidence.last_seen.filter(|_| !self.is_disconnected())?;
        Some(seen.plus(self.evidence.timeout).plus(Duration::from_millis(1)))
    }

    fn updating(&self) -> Option<&DeviceCondition> {
        self.device.condition(ConditionKind::Updating)
    }

    pub(crate) fn is_updating(&self) -> bool {
        self.updating().is_some_and(DeviceCondition::is_true)
    }

    pub(crate) fn is_rebooting(&self) -> bool {
        self.updating().is_some_and(|updating| updating.is_true_for(&ConditionReason::Rebooting))
    }

    /// Text of the update under way; `None`: there is none, or the agent gave no text.
    pub(crate) fn update_message(&self) -> Option<&str> {
        let updating = self.updating().filter(|updating| updating.is_true())?;
        Some(&*updating.message).filter(|message| !message.is_empty())
    }

    pub(crate) fn has_critical_resource(&self) -> bool {
        self.resources_of(ResourceStatus::Critical).next().is_some()
    }

    pub(crate) fn has_short_resource(&self) -> bool {
        self.resources_of(ResourceStatus::Warning).next().is_some()
    }

    pub(crate) fn resources_of(&self, status: ResourceStatus) -> impl Iterator<Item = ResourceKind> {
        let resources = self.device.reported.resources.each().into_iter();
        resources.filter(move |(_, known)| *known == status).map(|(kind, _)| kind)
    }

    pub(crate) fn is_managed(&self) -> bool {
        self.device.meta.owner.is_some()
    }

    /// Agents and service compare versions as texts. A spec that was never rendered counts as current.
    pub(crate) fn is_spec_current(&self) -> bool {
        let rendered = self.device.meta.annotations.rendered_version;
        let is_running =
            rendered.is_none_or(|version| version.to_string() == *self.device.reported.rendered_version);
        let is_valid = self.device.condition(ConditionKind::SpecValid).is_none_or(DeviceCondition::is_true);
        is_running && is_valid
    }

    /// Returns whether the device runs the present template of its fleet.
    pub(crate) fn is_fleet_current(&self) -> bool {
        let Some(fleet) = self.evidence.fleet else { return false };
        let rendered = &self.device.meta.annotations.rendered_template_version;
        self.device.meta.owner.as_ref() == Some(&fleet.fleet)
            && rendered.is_some()
            && *rendered == fleet.template_version
            && self.is_spec_current()
    }

    pub(crate) fn runs_other_image(&self) -> bool {
        match &self.device.spec.os {
            Some(OsTarget::Image(wanted)) => {
                self.device.reported.os_mode.is_some() && *wanted != self.device.reported.os.image
            }
            Some(OsTarget::CatalogItem { .. }) | None => false,
        }
    }

    pub(crate) fn cannot_take_catalog_item(&self) -> bool {
        match &self.device.spec.os {
            Some(OsTarget::CatalogItem { .. }) => self.device.reported.os_mode == Some(OsMode::Package),
            Some(OsTarget::Image(_)) | None => false,
        }
    }

    pub(crate) fn has_applications(&self) -> bool {
        !self.device.reported.applications.is_empty()
    }

    pub(crate) fn has_verdict(&self) -> bool {
        self.device.reported.applications_verdict.status != ApplicationsStatus::Unknown
    }

    pub(crate) fn has_begun_its_end(&self) -> bool {
        self.ends_for(&ConditionReason::Started)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ends_for(&ConditionReason::Completed)
    }

    pub(crate) fn has_ended_in_error(&self) -> bool {
        self.ends_for(&ConditionReason::Error)
    }

    fn ends_for(&self, reason: &ConditionReason) -> bool {
        let end = self.device.condition(ConditionKind::Decommissioning);
        end.is_some_and(|end| end.is_true_for(reason))
    }
}
