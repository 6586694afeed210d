//! Versions of the templates of fleets.

use std::{borrow::Cow, sync::Arc};

use domain::{
    core::{invalid::Invalid, time::Timestamp},
    device::{
        fleet::record::TemplateVersion,
        record::{name::FleetName, version::TemplateVersionName},
    },
};
use proto::fleet as wire;

use super::spec;
use crate::{
    kinds::Interner,
    mesh::time,
    store::resource::{Facet, Resource, WireForm},
};

/// Facet of the fleet.
pub const FLEET: &str = "fleet";

/// Record of a template version.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateVersionRecord {
    /// Fleet and number, in the order of which the versions of a fleet were made.
    key: Arc<str>,
    /// The version.
    pub version: TemplateVersion,
    /// Revision of the last change.
    revision: u64,
}

impl TemplateVersionRecord {
    /// Makes a record of `version`.
    pub fn of(version: TemplateVersion) -> Self {
        Self { key: key(version.fleet.as_str(), &version.name.0), version, revision: 0 }
    }
}

/// Returns the key of a version by its fleet and its name: keys are in the order of the numbers in names.
pub fn key(fleet: &str, name: &str) -> Arc<str> {
    let number: u64 = name.strip_prefix('v').and_then(|number| number.parse().ok()).unwrap_or_default();
    format!("{fleet}/{number:020}").into()
}

impl Resource for TemplateVersionRecord {
    const KIND: &'static str = "template_version";

    fn key(&self) -> &str {
        &self.key
    }

    fn shared_key(&self) -> Arc<str> {
        Arc::clone(&self.key)
    }

    fn share_key(&mut self, other: &Self) {
        self.key = Arc::clone(&other.key);
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn weight(&self) -> usize {
        size_of::<Self>() + self.version.template.document.len()
    }

    fn facets(&self) -> impl Iterator<Item = Facet<'_>> {
        [(FLEET, self.version.fleet.as_str())].into_iter()
    }
}

impl WireForm for TemplateVersionRecord {
    type Message = wire::TemplateVersion;
    type Pool = Interner;

    fn to_wire(&self) -> Cow<'_, wire::TemplateVersion> {
        let TemplateVersion { fleet, name, template, created } = &self.version;
        Cow::Owned(wire::TemplateVersion {
            fleet: fleet.to_string(),
            name: name.0.to_string(),
            template: Some(spec::to_wire(template)),
            created_at: Some(time::to_wire(*created)),
            revision: self.revision,
        })
    }

    fn from_wire(message: wire::TemplateVersion, texts: &mut Interner) -> Result<Self, Invalid> {
        let template = spec::from_wire(message.template.unwrap_or_default(), texts);
        let version = TemplateVersion {
            fleet: FleetName::parse(&message.fleet)?,
            name: TemplateVersionName(texts.share(&message.name)),
            template: template.map_err(|invalid| invalid.within("template"))?,
            created: message.created_at.map_or(Timestamp(0), time::from_wire),
        };
        Ok(Self { revision: message.revision, ..Self::of(version) })
    }
}
