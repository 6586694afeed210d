//! Printed columns of the kinds.

/// Column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrintedColumn {
    pub name: &'static str,
    pub description: &'static str,
    /// 0: always shown; 1: only in the wide form.
    pub priority: u32,
    pub cell: CellSource,
}

/// Source of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellSource {
    /// Text at a path.
    At(&'static [&'static str]),
    /// Status of the condition of a type.
    Condition(&'static str),
    /// Reason of the condition of a type.
    ConditionReason(&'static str),
    /// Number of members at a path.
    Count(&'static [&'static str]),
    /// Time since the moment at a path.
    Since(&'static [&'static str]),
    /// Kind and name of the object of an event.
    Involved,
}

const fn column(
    name: &'static str,
    description: &'static str,
    priority: u32,
    cell: CellSource,
) -> PrintedColumn {
    PrintedColumn { name, description, priority, cell }
}

const AGE: PrintedColumn =
    column("Age", "Time since the creation", 0, CellSource::Since(&["metadata", "creationTimestamp"]));

pub(super) const ONLY_AGE: &[PrintedColumn] = &[AGE];

pub(super) const HOSTS: &[PrintedColumn] = &[
    column("Status", "Operational status", 1, CellSource::At(&["status", "operationalStatus"])),
    column("State", "Provisioning status", 0, CellSource::At(&["status", "provisioning", "state"])),
    column("Consumer", "Consumer using this host", 0, CellSource::At(&["spec", "consumerRef", "name"])),
    column("BMC", "Address of management controller", 1, CellSource::At(&["spec", "bmc", "address"])),
    column("Online", "Whether the host is online or not", 0, CellSource::At(&["spec", "online"])),
    column("Error", "Type of the most recent error", 0, CellSource::At(&["status", "errorType"])),
    AGE,
];

pub(super) const IMAGES: &[PrintedColumn] = &[
    column("Ready", "Whether the image is ready", 0, CellSource::Condition("Ready")),
    column("Reason", "Reason of that", 0, CellSource::ConditionReason("Ready")),
    AGE,
];

pub(super) const SUBSCRIPTIONS: &[PrintedColumn] =
    &[column("Error", "Last failure", 0, CellSource::At(&["status", "error"])), AGE];

pub(super) const SECRETS: &[PrintedColumn] = &[
    column("Type", "Type of the secret", 0, CellSource::At(&["type"])),
    column("Data", "Number of values", 0, CellSource::Count(&["data"])),
    AGE,
];

pub(super) const NAMESPACES: &[PrintedColumn] =
    &[column("Status", "Phase of the namespace", 0, CellSource::At(&["status", "phase"])), AGE];

pub(super) const EVENTS: &[PrintedColumn] = &[
    column("Last Seen", "Time since the event", 0, CellSource::Since(&["lastTimestamp"])),
    column("Type", "Normal or Warning", 0, CellSource::At(&["type"])),
    column("Reason", "Word for the event", 0, CellSource::At(&["reason"])),
    column("Object", "Object that the event is about", 0, CellSource::Involved),
    column("Message", "Text for people", 0, CellSource::At(&["message"])),
];
