//! Record of a device: wishes of people, the latest report of its agent, and the statuses that follow.

use std::{collections::BTreeMap, sync::Arc};

pub mod annotations;
pub mod application;
pub mod condition;
pub mod name;
pub mod report;
pub mod spec;
pub mod status;
pub mod version;

use self::{
    annotations::DeviceAnnotations,
    condition::{ConditionKind, ConditionReason, DeviceCondition},
    name::{DeviceName, FleetName},
    report::AgentReport,
    spec::DeviceSpec,
    status::DeviceStatus,
};
use crate::core::time::Timestamp;

/// Labels by name.
pub type DeviceLabels = BTreeMap<Arc<str>, Arc<str>>;

/// Label that is an alias of the device, which selectors can name.
const ALIAS: &str = "alias";

/// Record of a device. The time at which its agent was last seen is kept apart, because that time changes often and
/// makes no new version of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Facts about the record itself.
    pub meta: DeviceMeta,
    /// Wishes of people, or of the fleet that owns the device.
    pub spec: DeviceSpec,
    /// Latest report of the agent.
    pub reported: AgentReport,
    /// Conditions that the service owns, one of each kind. No report of an agent changes them.
    pub conditions: Vec<DeviceCondition>,
    /// Statuses that follow from everything else.
    pub status: DeviceStatus,
}

impl Device {
    /// Makes a device that nobody has reported for.
    pub fn new(name: DeviceName, created: Timestamp) -> Self {
        Self {
            meta: DeviceMeta::new(name, created),
            spec: DeviceSpec::default(),
            reported: AgentReport::initial(created),
            conditions: Vec::new(),
            status: DeviceStatus::default(),
        }
    }

    /// Returns the condition of that kind, if there is one.
    pub fn condition(&self, kind: ConditionKind) -> Option<&DeviceCondition> {
        let conditions = if kind.is_of_service() { &self.conditions } else { &self.reported.conditions };
        conditions.iter().find(|known| known.kind == kind)
    }

    /// Text of the error with which the last update ended; `None`: the update did not fail, or the agent gave no text.
    pub fn update_error(&self) -> Option<&str> {
        let updating = self.condition(ConditionKind::Updating)?;
        let is_failed = !updating.is_true() && updating.reason == ConditionReason::Error;
        Some(&*updating.message).filter(|message| is_failed && !message.is_empty())
    }
}

/// Facts about the record of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceMeta {
    /// Name of the device.
    pub name: DeviceName,
    /// Labels, by which fleets and people select the device.
    pub labels: DeviceLabels,
    /// Annotations, which the service alone writes.
    pub annotations: DeviceAnnotations,
    /// Fleet that owns the device; `None`: people manage it.
    pub owner: Option<FleetName>,
    /// Number of changes of the spec, and one.
    pub generation: u64,
    /// Time of creation.
    pub created: Timestamp,
}

impl DeviceMeta {
    fn new(name: DeviceName, created: Timestamp) -> Self {
        Self {
            name,
            labels: DeviceLabels::new(),
            annotations: DeviceAnnotations::default(),
            owner: None,
            generation: 1,
            created,
        }
    }

    /// Alias of the device, if it has one.
    pub fn alias(&self) -> Option<&str> {
        self.labels.get(ALIAS).map(|alias| &**alias)
    }
}
