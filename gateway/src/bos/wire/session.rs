//! Sessions and their status (BOS reference 2.9, 3.6, 3.8).

use std::collections::BTreeMap;

use proto::session::{LeftOutReason, Operation, Progress};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    primitive::{ErrorText, Limit, ResourceName, Time},
    stamp::BosTime,
    strict::{given, object},
    words::SpelledEnum,
};

/// A session as people see it. Every member is always there, but for what it waits for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Session {
    /// Ids of the members, separated by commas.
    pub components: String,
    /// Whether nodes that the inventory disables take part.
    pub include_disabled: bool,
    /// Which of the template's nodes to take; empty: all.
    pub limit: String,
    /// Unique within the tenant.
    pub name: String,
    /// What to do.
    pub operation: SpelledEnum<Operation>,
    /// Whether the nodes are only to be told, and act later.
    pub stage: bool,
    /// How far it is.
    pub status: SessionProgress,
    /// Template that says what the nodes should run.
    pub template_name: String,
    /// Tenant that owns the session.
    pub tenant: Option<String>,
}

/// How far a session is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct SessionProgress {
    /// When it became complete.
    pub end_time: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// When it was created.
    pub start_time: String,
    /// Pending, running or complete.
    pub status: SpelledEnum<Progress>,
    /// Why a pending session is still pending: which service does not answer, since when, and the last error; or since
    /// when the membership of a running session is in doubt. BOS has no such member.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub waiting_for: Option<String>,
}

/// The wish for a session (BOS reference 2.9.1).
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// Whether nodes that the inventory disables take part.
    #[serde(default)]
    pub include_disabled: bool,
    /// Which of the template's nodes to take; `null` or empty: all.
    #[serde(default)]
    #[schemars(with = "Option<Limit>")]
    pub limit: Option<String>,
    /// Absent: a new unique name.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "ResourceName")]
    pub name: Option<String>,
    /// What to do.
    pub operation: SpelledEnum<Operation>,
    /// Whether the nodes are only to be told, and act later.
    #[serde(default)]
    pub stage: bool,
    /// Template that says what the nodes should run.
    #[schemars(with = "ResourceName")]
    pub template_name: String,
}

/// A change of a session (BOS reference 2.9.3).
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SessionPatch {
    /// Ids of the members, separated by commas.
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Limit")]
    pub components: Option<String>,
    /// How far it is.
    #[serde(deserialize_with = "object")]
    #[schemars(with = "ProgressPatch")]
    pub status: Option<ProgressPatch>,
}

/// A change of how far a session is.
// The inner option is `null`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ProgressPatch {
    /// When it became complete.
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Option<Time>")]
    pub end_time: Option<Option<String>>,
    /// What went wrong.
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Option<ErrorText>")]
    pub error: Option<Option<String>>,
    /// When it was created.
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Time")]
    pub start_time: Option<String>,
    /// Pending, running or complete.
    #[serde(deserialize_with = "given")]
    #[schemars(with = "SpelledEnum<Progress>")]
    pub status: Option<SpelledEnum<Progress>>,
}

/// Somebody whom a session leaves alone although its template names it. BOS only logs them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct LeftOutMember {
    /// Boot set of the template that names it.
    pub boot_set: String,
    /// Id of the node, or name of the group or role.
    pub id: String,
    /// Why it is left alone.
    pub reason: SpelledEnum<LeftOutReason>,
}

/// How the members of a session are doing (BOS reference 3.8).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct SessionStatus {
    /// By error text.
    pub error_summary: BTreeMap<String, ErrorSummary>,
    /// Number of members.
    pub managed_components_count: u32,
    /// Since when the tenant service leaves out nodes that count here until their departure is confirmed. BOS has no
    /// such member.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BosTime")]
    pub members_in_doubt_since: Option<BosTime>,
    /// Members that failed.
    pub percent_failed: f64,
    /// Members that only hold a staged state.
    pub percent_staged: f64,
    /// Members that are where they should be.
    pub percent_successful: f64,
    /// Members by phase.
    pub phases: PhaseShares,
    /// Pending, running or complete.
    pub status: SpelledEnum<Progress>,
    /// When it ran and for how long.
    pub timing: SessionTiming,
}

/// Members with the same error.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ErrorSummary {
    /// How many.
    pub count: u32,
    /// The first of them.
    pub list: String,
}

/// Shares of the members by phase, in percent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename = "Phases")]
pub(crate) struct PhaseShares {
    pub percent_complete: f64,
    pub percent_configuring: f64,
    pub percent_powering_off: f64,
    pub percent_powering_on: f64,
}

/// When a session ran and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename = "Timing")]
pub(crate) struct SessionTiming {
    /// As people read it, such as `0:02:17`.
    pub duration: String,
    /// When it became complete.
    pub end_time: Option<String>,
    /// When it was created.
    pub start_time: String,
}
