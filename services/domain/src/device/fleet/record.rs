//! Record of a fleet.

use std::sync::Arc;

use crate::{
    core::{invalid::Invalid, time::Timestamp},
    device::{
        label::check_labels,
        record::{
            DeviceLabels,
            name::FleetName,
            spec::DeviceSpec,
            version::{FleetVersion, TemplateVersionName},
        },
    },
};

/// Fleet of devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fleet {
    /// Name.
    pub name: FleetName,
    /// Labels of the fleet itself.
    pub labels: DeviceLabels,
    /// Number of changes of the spec, and one.
    pub generation: u64,
    /// Wishes of people.
    pub spec: FleetSpec,
    /// Present version of the template.
    pub template_version: TemplateVersionName,
    /// Time of creation.
    pub created: Timestamp,
}

impl Fleet {
    /// Returns a new fleet with the first version of its template.
    ///
    /// # Errors
    /// Names the field that breaks a rule.
    pub fn new(
        name: FleetName,
        labels: DeviceLabels,
        spec: FleetSpec,
        now: Timestamp,
    ) -> Result<Self, Invalid> {
        check(&labels, &spec)?;
        let generation = 1;
        let template_version = version_of(generation);
        Ok(Self { name, labels, generation, spec, template_version, created: now })
    }

    /// Returns the fleet with other wishes. Another template is another version, named by the generation.
    ///
    /// # Errors
    /// Names the field that breaks a rule.
    pub fn replaced(&self, labels: DeviceLabels, spec: FleetSpec) -> Result<Self, Invalid> {
        check(&labels, &spec)?;
        let mut fleet = Self { labels, ..self.clone() };
        if fleet.spec != spec {
            fleet.generation = fleet.generation.saturating_add(1);
        }
        if fleet.spec.template != spec.template {
            fleet.template_version = version_of(fleet.generation);
        }
        fleet.spec = spec;
        Ok(fleet)
    }

    /// Version that the devices of the fleet should run.
    pub fn version(&self) -> FleetVersion {
        FleetVersion { fleet: self.name.clone(), template_version: Some(self.template_version.clone()) }
    }
}

/// Version of the template of a fleet, which never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateVersion {
    /// Fleet.
    pub fleet: FleetName,
    /// Name within the fleet.
    pub name: TemplateVersionName,
    /// Template.
    pub template: DeviceSpec,
    /// Time of creation.
    pub created: Timestamp,
}

/// Wishes for a fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetSpec {
    /// Selector of the devices.
    pub selector: FleetSelector,
    /// Template of the spec of each device.
    pub template: DeviceSpec,
    /// Policy of rollouts in its stored form; empty: devices get a template at once.
    pub rollout_policy: Arc<str>,
}

/// Selector of the devices of a fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetSelector {
    /// Labels that a device must have. Without any, the selector matches no device.
    pub match_labels: DeviceLabels,
    /// Expressions in their stored form, which no device is matched against; empty: none.
    pub match_expressions: Arc<str>,
}

impl FleetSelector {
    /// Returns whether a device with these labels belongs to the fleet.
    pub fn matches(&self, labels: &DeviceLabels) -> bool {
        let has = |(key, value): (&Arc<str>, &Arc<str>)| labels.get(key) == Some(value);
        !self.match_labels.is_empty() && self.match_labels.iter().all(has)
    }
}

fn version_of(generation: u64) -> TemplateVersionName {
    TemplateVersionName(format!("v{generation}").into())
}

fn check(labels: &DeviceLabels, spec: &FleetSpec) -> Result<(), Invalid> {
    check_labels(labels)?;
    let selector = check_labels(&spec.selector.match_labels);
    selector.map_err(|invalid| Invalid::new("spec.selector.matchLabels", invalid.reason))?;
    match spec.template.decommissioning {
        Some(_) => Err(Invalid::new("spec.template.spec.decommissioning", "no template ends a device")),
        None => Ok(()),
    }
}
