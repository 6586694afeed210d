//! Request for a session, which may be bound to a plan.

use proto::session::{CreateSessionRequest, Operation};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{LONGEST_NAME, rollout::PolicyBody};
use crate::http::{document::BoundedText, extract::at, problem::RequestProblem};

/// Longest text of a limit. A body takes what a mesh takes.
const LONGEST_LIMIT: usize = chassis::limits::LONGEST_LIMIT;

/// Longest text of a hash, of this version or a later one.
const LONGEST_HASH: usize = 200;

/// Operation of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(in crate::reveille) enum SessionOperation {
    Boot,
    Reboot,
    Shutdown,
}

impl From<SessionOperation> for Operation {
    fn from(operation: SessionOperation) -> Self {
        match operation {
            SessionOperation::Boot => Self::Boot,
            SessionOperation::Reboot => Self::Reboot,
            SessionOperation::Shutdown => Self::Shutdown,
        }
    }
}

/// Request for a session.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PlannedSession")]
pub(super) struct NewSession {
    /// Operation on the members.
    operation: SessionOperation,
    /// Template with the desired state of the members.
    #[schemars(with = "BoundedText<1, LONGEST_NAME>")]
    template_name: String,
    /// Absent: a new unique name.
    #[serde(default)]
    #[schemars(with = "Option<BoundedText<1, LONGEST_NAME>>")]
    name: Option<String>,
    /// Nodes of the template that take part; absent or empty: all.
    #[serde(default)]
    #[schemars(with = "Option<BoundedText<0, LONGEST_LIMIT>>")]
    limit: Option<String>,
    /// True if the session only stages, so that its members act later.
    #[serde(default)]
    stage: bool,
    /// True if nodes that the inventory disables take part.
    #[serde(default)]
    include_disabled: bool,
    /// Hash of a plan. The session is refused, or fails before it touches a node, if the plan does not hold any more.
    #[serde(default)]
    #[schemars(with = "Option<BoundedText<1, LONGEST_HASH>>")]
    plan_hash: Option<String>,
    /// Rollout in batches; not beside `stage`. Absent: all members begin at once.
    #[serde(default)]
    rollout: Option<PolicyBody>,
    /// Number of nodes that the session takes, where large sessions need a confirmation. The session is refused if it takes
    /// another number.
    #[serde(default)]
    confirmed_nodes: Option<u32>,
}

impl NewSession {
    /// Returns the request of a tenant to the mesh.
    ///
    /// # Errors
    /// Name or hash are given and empty, which would mean none in the mesh.
    pub(super) fn request(self, tenant: String) -> Result<CreateSessionRequest, RequestProblem> {
        Ok(CreateSessionRequest {
            name: given("name", self.name)?,
            tenant,
            operation: Operation::from(self.operation).into(),
            template_name: self.template_name,
            limit: self.limit.unwrap_or_default(),
            stage: self.stage,
            include_disabled: self.include_disabled,
            plan_hash: given("plan_hash", self.plan_hash)?,
            rollout: self.rollout.map(Into::into),
            confirmed_nodes: self.confirmed_nodes,
        })
    }
}

fn given(member: &str, text: Option<String>) -> Result<String, RequestProblem> {
    if text.as_deref() == Some("") {
        return Err(RequestProblem::bad_request(at(member, "is empty")));
    }
    Ok(text.unwrap_or_default())
}
