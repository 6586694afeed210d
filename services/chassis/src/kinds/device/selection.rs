//! Selections of devices, with the conditions by which an index finds them.

use std::collections::BTreeSet;

use domain::{
    core::invalid::Invalid,
    device::{
        record::name::FleetName,
        selector::{DeviceField, FieldSelector, LabelSelector, SelectorField as _},
    },
};
use proto::device::DeviceFilter;

use super::{DeviceRecord, LABEL};
use crate::store::ledger::OneOf;

/// Selection of devices: both selectors have to match.
#[derive(Debug, Clone)]
pub struct DeviceSelection {
    labels: LabelSelector,
    fields: FieldSelector<DeviceField>,
}

impl DeviceSelection {
    /// Reads a filter. Without one, every device is selected.
    ///
    /// # Errors
    /// A selector cannot be read; the error names the selector.
    pub fn parse(filter: Option<&DeviceFilter>) -> Result<Self, Invalid> {
        let (labels, fields) = filter
            .map_or(("", ""), |filter| (filter.label_selector.as_str(), filter.field_selector.as_str()));
        Ok(Self { labels: LabelSelector::parse(labels)?, fields: FieldSelector::parse(fields)? })
    }

    /// Returns whether a device is selected.
    pub fn matches(&self, record: &DeviceRecord) -> bool {
        self.labels.matches(&record.device.meta.labels) && self.fields.matches_device(&record.device)
    }

    /// Returns names of which every selected device has one; empty: any name.
    pub fn names(&self) -> BTreeSet<String> {
        let mut fields = self.fields.index_conditions();
        let names = fields.find(|(field, _)| *field == DeviceField::Name);
        names.map(|(_, names)| names.iter().cloned().collect()).unwrap_or_default()
    }

    /// Returns conditions of the index, all of which every selected device meets.
    pub fn conditions(&self) -> Vec<OneOf> {
        let labels = self.labels.index_conditions().into_iter();
        let labels = labels.map(|labels| labels.into_iter().map(|label| (LABEL, label)).collect());
        labels.chain(self.fields.index_conditions().filter_map(field_condition)).collect()
    }
}

fn field_condition((field, texts): (DeviceField, &[String])) -> Option<OneOf> {
    let texts = texts.iter();
    match field {
        DeviceField::Alias => Some(texts.map(|alias| (LABEL, format!("alias={alias}"))).collect()),
        DeviceField::Owner => {
            let fleets = texts.filter_map(|owner| FleetName::parse_owner(owner).ok());
            Some(fleets.map(|fleet| (field.key(), fleet.to_string())).collect())
        }
        DeviceField::Summary
        | DeviceField::Updated
        | DeviceField::Applications
        | DeviceField::Lifecycle
        | DeviceField::OsMode => Some(texts.map(|word| (field.key(), word.clone())).collect()),
        // Names are keys, and times have no index.
        DeviceField::Name | DeviceField::NameOrAlias | DeviceField::Created => None,
    }
}
