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

/// A session as clients see it. Every member is always there, but for `waiting_for`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Session {
    /// Ids of the members, separated by commas.
    pub components: String,
    /// True if nodes that the inventory disables take part.
    pub include_disabled: bool,
    /// Nodes of the template that take part; empty: all.
    pub limit: String,
    /// Unique within the tenant.
    pub name: String,
    /// Operation on the members.
    pub operation: SpelledEnum<Operation>,
    /// True if the session only stages, so that its members act later.
    pub stage: bool,
    /// Progress of the session.
    pub status: SessionProgress,
    /// Template with the desired state of the members.
    pub template_name: String,
    /// Tenant that owns the session.
    pub tenant: Option<String>,
}

/// The progress of a session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct SessionProgress {
    /// Time at which the session became complete.
    pub end_time: Option<String>,
    /// Error of the session.
    pub error: Option<String>,
    /// Time at which the session was created.
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
    /// True if nodes that the inventory disables take part.
    #[serde(default)]
    pub include_disabled: bool,
    /// Nodes of the template that take part; `null` or empty: all.
    #[serde(default)]
    #[schemars(with = "Option<Limit>")]
    pub limit: Option<String>,
    /// Absent: a new unique name.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "ResourceName")]
    pub name: Option<String>,
    /// Operation on the members.
    pub operation: SpelledEnum<Operation>,
    /// True if the session only stages, so that its members act later.
    #[serde(default)]
    pub stage: bool,
    /// Template with the desired state of the members.
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
    /// Progress of the session.
    #[serde(deserialize_with = "object")]
    #[schemars(with = "ProgressPatch")]
    pub status: Option<ProgressPatch>,
}

/// A change of the progress of a session.
// The inner option is `null`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ProgressPatch {
    /// Time at which the session became complete.
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Option<Time>")]
    pub end_time: Option<Option<String>>,
    /// Error of the session.
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Option<ErrorText>")]
    pub error: Option<Option<String>>,
    /// Time at which the session was created.
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Time")]
    pub start_time: Option<String>,
    /// Pending, running or complete.
    #[serde(deserialize_with = "given")]
    #[schemars(with = "SpelledEnum<Progress>")]
    pub status: Option<SpelledEnum<Progress>>,
}

/// A node, group or role that a session leaves alone although its template names it. BOS only logs these.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct LeftOutMember {
    /// Boot set of the template that names the member.
    pub boot_set: String,
    /// Id of the node, or name of the group or role.
    pub id: String,
    /// Reason for which the member is left alone.
    pub reason: SpelledEnum<LeftOutReason>,
}

/// The status of the members of a session (BOS reference 3.8).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct SessionStatus {
    /// Members by their error text.
    pub error_summary: BTreeMap<String, ErrorSummary>,
    /// Number of members.
    pub managed_components_count: u32,
    /// Since when the tenant service leaves out nodes that count here until their departure is confirmed. BOS has no
    /// such member.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BosTime")]
    pub members_in_doubt_since: Option<BosTime>,
    /// Share of the members that failed.
    pub percent_failed: f64,
    /// Share of the members that only hold a staged state.
    pub percent_staged: f64,
    /// Share of the members that have reached their desired state.
    pub percent_successful: f64,
    /// Shares of the members by phase.
    pub phases: PhaseShares,
    /// Pending, running or complete.
    pub status: SpelledEnum<Progress>,
    /// Begin, end and duration of the session.
    pub timing: SessionTiming,
}

/// Members with the same error.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ErrorSummary {
    /// Number of the members.
    pub count: u32,
    /// Ids of the first of them.
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

/// Begin, end and duration of a session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename = "Timing")]
pub(crate) struct SessionTiming {
    /// Duration as people read it, such as `0:02:17`.
    pub duration: String,
    /// Time at which the session became complete.
    pub end_time: Option<String>,
    /// Time at which the session was created.
    pub start_time: String,
}
