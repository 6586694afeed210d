//! Fleets of edge devices, and the versions of their templates.

pub mod version;

use std::{borrow::Cow, sync::Arc};

use domain::{
    core::{invalid::Invalid, text::text, time::Timestamp},
    device::{
        fleet::record::{Fleet, FleetSelector, FleetSpec},
        record::{
            name::FleetName,
            version::{FleetVersion, TemplateVersionName},
        },
    },
};
use proto::fleet as wire;
use serde_json::Value;

use super::{
    Interner,
    device::{
        record::{labels, labels_to_wire},
        spec,
    },
};
use crate::{
    mesh::time,
    observe::mirror::MirroredKind,
    store::resource::{Resource, WireForm},
};

/// Record of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetRecord {
    /// The fleet.
    pub fleet: Fleet,
    /// Fleet with the present version of its template, as evidence about devices.
    version: FleetVersion,
    /// Revision of the last change.
    revision: u64,
    /// Revision of the latest change that has events; 0: there is none.
    last_event: u64,
}

impl FleetRecord {
    /// Makes a record of `fleet`.
    pub fn of(fleet: Fleet) -> Self {
        let version = fleet.version();
        Self { fleet, version, revision: 0, last_event: 0 }
    }

    /// Version of the template that the devices of the fleet should run.
    pub fn version(&self) -> &FleetVersion {
        &self.version
    }
}

impl Resource for FleetRecord {
    const KIND: &'static str = "fleet";

    fn key(&self) -> &str {
        self.fleet.name.as_str()
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn last_event(&self) -> u64 {
        self.last_event
    }

    fn set_last_event(&mut self, revision: u64) {
        self.last_event = revision;
    }

    fn weight(&self) -> usize {
        size_of::<Self>() + self.fleet.spec.template.document.len()
    }
}

impl WireForm for FleetRecord {
    type Message = wire::Fleet;
    type Pool = Interner;

    fn to_wire(&self) -> Cow<'_, wire::Fleet> {
        let Fleet { name, labels, generation, spec, template_version, created } = &self.fleet;
        Cow::Owned(wire::Fleet {
            name: name.to_string(),
            labels: labels_to_wire(labels),
            generation: *generation,
            spec: Some(spec_to_wire(spec)),
            template_version: template_version.0.to_string(),
            created_at: Some(time::to_wire(*created)),
            revision: self.revision,
            last_event: self.last_event,
        })
    }

    fn from_wire(message: wire::Fleet, texts: &mut Interner) -> Result<Self, Invalid> {
        let fleet = Fleet {
            name: FleetName::parse(&message.name)?,
            labels: labels(message.labels, texts),
            generation: message.generation,
            spec: spec_from_wire(message.spec.unwrap_or_default(), texts)?,
            template_version: TemplateVersionName(texts.share(&message.template_version)),
            created: message.created_at.map_or(Timestamp(0), time::from_wire),
        };
        Ok(Self { revision: message.revision, last_event: message.last_event, ..Self::of(fleet) })
    }
}

impl MirroredKind for FleetRecord {}

/// Reads a spec that a client writes. Equal specs get equal texts, because members of objects are put in order.
///
/// # Errors
/// Names the field that no spec can have.
pub fn written(spec: wire::FleetSpec, texts: &mut Interner) -> Result<FleetSpec, Invalid> {
    let wire::FleetSpec { selector, template, rollout_policy_json } = spec;
    let wire::FleetSelector { match_labels, match_expressions_json } = selector.unwrap_or_default();
    let template = spec::written(template.unwrap_or_default(), texts);
    Ok(FleetSpec {
        selector: FleetSelector {
            match_labels: labels(match_labels, texts),
            match_expressions: canonical("spec.selector.matchExpressions", &match_expressions_json)?,
        },
        template: template.map_err(|invalid| invalid.within("spec.template"))?,
        rollout_policy: canonical("spec.rolloutPolicy", &rollout_policy_json)?,
    })
}

fn spec_from_wire(message: wire::FleetSpec, texts: &mut Interner) -> Result<FleetSpec, Invalid> {
    let selector = message.selector.unwrap_or_default();
    let template = spec::from_wire(message.template.unwrap_or_default(), texts);
    Ok(FleetSpec {
        selector: FleetSelector {
            match_labels: labels(selector.match_labels, texts),
            match_expressions: text(&selector.match_expressions_json),
        },
        template: template.map_err(|invalid| invalid.within("spec.template"))?,
        rollout_policy: text(&message.rollout_policy_json),
    })
}

fn spec_to_wire(spec: &FleetSpec) -> wire::FleetSpec {
    wire::FleetSpec {
        selector: Some(wire::FleetSelector {
            match_labels: labels_to_wire(&spec.selector.match_labels),
            match_expressions_json: spec.selector.match_expressions.to_string(),
        }),
        template: Some(spec::to_wire(&spec.template)),
        rollout_policy_json: spec.rollout_policy.to_string(),
    }
}

/// Returns a JSON text with the members of its objects in order; empty without a value.
fn canonical(field: &str, written: &str) -> Result<Arc<str>, Invalid> {
    if written.is_empty() {
        return Ok(Arc::default());
    }
    let value: Value = serde_json::from_str(written)
        .map_err(|error| Invalid::new(field, format!("is no JSON text: {error}")))?;
    Ok(text(&value.to_string()))
}
