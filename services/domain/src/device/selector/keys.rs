//! Keys of field selectors, by the kind of resource.

use crate::device::{
    enrolment::EnrolmentRequest,
    fleet::record::Fleet,
    record::{Device, spec::OsTarget},
    selector::field::{FieldSelector, FieldValue, SelectorField},
};

/// Field by which devices are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is a key of the contract")]
pub enum DeviceField {
    Name,
    Alias,
    NameOrAlias,
    Owner,
    Created,
    Summary,
    Updated,
    Applications,
    Lifecycle,
    OsMode,
}

impl SelectorField for DeviceField {
    const ALL: &'static [Self] = &[
        Self::Name,
        Self::Alias,
        Self::NameOrAlias,
        Self::Owner,
        Self::Created,
        Self::Summary,
        Self::Updated,
        Self::Applications,
        Self::Lifecycle,
        Self::OsMode,
    ];

    fn key(self) -> &'static str {
        match self {
            Self::Name => "metadata.name",
            Self::Alias => "metadata.alias",
            Self::NameOrAlias => "metadata.nameOrAlias",
            Self::Owner => "metadata.owner",
            Self::Created => "metadata.creationTimestamp",
            Self::Summary => "status.summary.status",
            Self::Updated => "status.updated.status",
            Self::Applications => "status.applicationsSummary.status",
            Self::Lifecycle => "status.lifecycle.status",
            Self::OsMode => "status.capabilities.osMode",
        }
    }

    fn is_time(self) -> bool {
        self == Self::Created
    }
}

/// Field by which enrolment requests are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is a key of the contract")]
pub enum EnrolmentField {
    Name,
    Owner,
    Created,
    Approved,
    Certificate,
}

impl SelectorField for EnrolmentField {
    const ALL: &'static [Self] = &[Self::Name, Self::Owner, Self::Created, Self::Approved, Self::Certificate];

    fn key(self) -> &'static str {
        match self {
            Self::Name => "metadata.name",
            Self::Owner => "metadata.owner",
            Self::Created => "metadata.creationTimestamp",
            Self::Approved => "status.approval.approved",
            Self::Certificate => "status.certificate",
        }
    }

    fn is_time(self) -> bool {
        self == Self::Created
    }
}

/// Field by which fleets are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is a key of the contract")]
pub enum FleetField {
    Name,
    Owner,
    Created,
    OsImage,
}

impl SelectorField for FleetField {
    const ALL: &'static [Self] = &[Self::Name, Self::Owner, Self::Created, Self::OsImage];

    fn key(self) -> &'static str {
        match self {
            Self::Name => "metadata.name",
            Self::Owner => "metadata.owner",
            Self::Created => "metadata.creationTimestamp",
            Self::OsImage => "spec.template.spec.os.image",
        }
    }

    fn is_time(self) -> bool {
        self == Self::Created
    }
}

/// Field by which events are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is a key of the contract")]
pub enum EventField {
    Kind,
    Name,
    Reason,
    Type,
}

impl SelectorField for EventField {
    const ALL: &'static [Self] = &[Self::Kind, Self::Name, Self::Reason, Self::Type];

    fn key(self) -> &'static str {
        match self {
            Self::Kind => "involvedObject.kind",
            Self::Name => "involvedObject.name",
            Self::Reason => "reason",
            Self::Type => "type",
        }
    }

    fn is_time(self) -> bool {
        false
    }
}

impl FieldSelector<EnrolmentField> {
    /// Returns whether an enrolment request meets every requirement.
    pub fn matches_request(&self, request: &EnrolmentRequest) -> bool {
        self.matches(|field| request_value(request, field))
    }
}

fn request_value(request: &EnrolmentRequest, field: EnrolmentField) -> FieldValue<'_> {
    match field {
        EnrolmentField::Name => FieldValue::text(request.name.as_str()),
        EnrolmentField::Owner => FieldValue::optional(None),
        EnrolmentField::Created => FieldValue::Time(request.created),
        EnrolmentField::Approved => {
            FieldValue::text(if request.approval.is_some() { "true" } else { "false" })
        }
        EnrolmentField::Certificate => {
            FieldValue::optional(request.certificate.as_ref().map(|certificate| &*certificate.pem))
        }
    }
}

impl FieldSelector<FleetField> {
    /// Returns whether a fleet meets every requirement.
    pub fn matches_fleet(&self, fleet: &Fleet) -> bool {
        self.matches(|field| fleet_value(fleet, field))
    }
}

fn fleet_value(fleet: &Fleet, field: FleetField) -> FieldValue<'_> {
    match field {
        FleetField::Name => FieldValue::text(fleet.name.as_str()),
        FleetField::Owner => FieldValue::optional(None),
        FleetField::Created => FieldValue::Time(fleet.created),
        FleetField::OsImage => match &fleet.spec.template.os {
            Some(OsTarget::Image(image)) => FieldValue::text(image),
            Some(OsTarget::CatalogItem { .. }) | None => FieldValue::optional(None),
        },
    }
}

impl FieldSelector<DeviceField> {
    /// Returns whether a device meets every requirement.
    pub fn matches_device(&self, device: &Device) -> bool {
        let owner = device.meta.owner.as_ref().map(|fleet| fleet.owner());
        self.matches(|field| device_value(device, owner.as_deref(), field))
    }
}

fn device_value<'a>(device: &'a Device, owner: Option<&'a str>, field: DeviceField) -> FieldValue<'a> {
    let meta = &device.meta;
    match field {
        DeviceField::Name => FieldValue::text(meta.name.as_str()),
        DeviceField::Alias => FieldValue::optional(meta.alias()),
        DeviceField::NameOrAlias => FieldValue::Texts([Some(meta.name.as_str()), meta.alias()]),
        DeviceField::Owner => FieldValue::optional(owner),
        DeviceField::Created => FieldValue::Time(meta.created),
        DeviceField::Summary => FieldValue::text(device.status.summary.status.word()),
        DeviceField::Updated => FieldValue::text(device.status.updated.status.word()),
        DeviceField::Applications => FieldValue::text(device.status.applications.status.word()),
        DeviceField::Lifecycle => FieldValue::text(device.status.lifecycle.status.word()),
        DeviceField::OsMode => FieldValue::optional(device.reported.os_mode.map(|mode| mode.word())),
    }
}
