//! Conditions of a device (device reference 1.5).

use std::sync::Arc;

use crate::core::{condition::ConditionStatus, time::Timestamp};

/// Condition of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCondition {
    /// Statement that the condition is about.
    pub kind: ConditionKind,
    /// Truth of the statement.
    pub status: ConditionStatus,
    /// Reason for it.
    pub reason: ConditionReason,
    /// Text for people; empty: none.
    pub message: Arc<str>,
    /// Time of the last change of the truth.
    pub since: Timestamp,
    /// Generation that the condition is about, if its author knows.
    pub observed_generation: Option<i64>,
}

impl DeviceCondition {
    /// Returns whether the statement is true.
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }

    /// Returns whether the statement is true, for that `reason`.
    pub fn is_true_for(&self, reason: &ConditionReason) -> bool {
        self.is_true() && self.reason == *reason
    }
}

/// Truth of a condition of the service, with its reason and its text for people.
pub(crate) struct ConditionChange {
    /// Truth of the statement.
    pub status: ConditionStatus,
    /// Reason for it.
    pub reason: ConditionReason,
    /// Text for people; empty: none.
    pub message: Arc<str>,
}

/// Puts a condition into `conditions`, which hold one of each kind. Its time moves only with its truth.
pub(crate) fn set(
    conditions: &mut Vec<DeviceCondition>,
    kind: ConditionKind,
    change: ConditionChange,
    now: Timestamp,
) {
    let ConditionChange { status, reason, message } = change;
    let known = conditions.iter_mut().find(|known| known.kind == kind);
    let since = known.as_ref().filter(|known| known.status == status).map_or(now, |known| known.since);
    let condition = DeviceCondition { kind, status, reason, message, since, observed_generation: None };
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// Statement about a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionKind {
    /// An update is under way.
    Updating,
    /// The device ends its life.
    Decommissioning,
    /// The spec can be rendered.
    SpecValid,
    /// More than one fleet selects the device.
    MultipleOwners,
}

impl ConditionKind {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::Updating, Self::Decommissioning, Self::SpecValid, Self::MultipleOwners];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Updating => "Updating",
            Self::Decommissioning => "DeviceDecommissioning",
            Self::SpecValid => "SpecValid",
            Self::MultipleOwners => "MultipleOwners",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

impl ConditionKind {
    /// Returns whether the service owns the condition. The agent owns the others.
    pub fn is_of_service(self) -> bool {
        match self {
            Self::Updating | Self::Decommissioning => false,
            Self::SpecValid | Self::MultipleOwners => true,
        }
    }
}

/// Reason of a condition of a device. Agents may report any word.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the word of the contract")]
pub enum ConditionReason {
    Preparing,
    ReadyToUpdate,
    ApplyingUpdate,
    Rebooting,
    RollingBack,
    Updated,
    Canceled,
    Retrying,
    Started,
    Completed,
    Error,
    Valid,
    Invalid,
    MultipleOwners,
    /// Word that no rule knows; empty: no reason.
    Other(Arc<str>),
}

impl ConditionReason {
    /// Reasons that rules know.
    const KNOWN: [Self; 14] = [
        Self::Preparing,
        Self::ReadyToUpdate,
        Self::ApplyingUpdate,
        Self::Rebooting,
        Self::RollingBack,
        Self::Updated,
        Self::Canceled,
        Self::Retrying,
        Self::Started,
        Self::Completed,
        Self::Error,
        Self::Valid,
        Self::Invalid,
        Self::MultipleOwners,
    ];

    /// Reads a reason.
    pub fn from_word(word: &str) -> Self {
        let known = Self::KNOWN.into_iter().find(|known| known.word() == word);
        known.unwrap_or_else(|| Self::Other(word.into()))
    }

    /// The word in records.
    pub fn word(&self) -> &str {
        match self {
            Self::Preparing => "Preparing",
            Self::ReadyToUpdate => "ReadyToUpdate",
            Self::ApplyingUpdate => "ApplyingUpdate",
            Self::Rebooting => "Rebooting",
            Self::RollingBack => "RollingBack",
            Self::Updated => "Updated",
            Self::Canceled => "Canceled",
            Self::Retrying => "Retrying",
            Self::Started => "Started",
            Self::Completed => "Completed",
            Self::Error => "Error",
            Self::Valid => "Valid",
            Self::Invalid => "Invalid",
            Self::MultipleOwners => "MultipleOwners",
            Self::Other(word) => word,
        }
    }
}
