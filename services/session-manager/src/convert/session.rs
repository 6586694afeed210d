//! Sessions, session filters and session status.

use chassis::{kinds::trouble, mesh::time};
use domain::{
    boot::{
        session::{
            Cancellation, NewSession, Progress, RetriedSession, Session, SessionFilter, SessionPatch,
            SessionPause,
            membership::{LeftOut, LeftOutReason},
            plan::{MalformedHash, PlanHash},
            status::SessionStatus,
        },
        template::Operation,
    },
    core::{
        id::{ComponentId, Tenant},
        invalid::Invalid,
        text::text,
        time::Timestamp,
    },
};
use proto::session as wire;

use super::{
    outcome::{self, OutcomeFields},
    rollout::{policy_from_wire, rollout_from_wire, rollout_to_wire},
};

/// Reads a session from a call or from storage.
///
/// # Errors
/// Names the field that cannot be read.
pub(crate) fn from_wire(session: wire::Session) -> Result<Session, Invalid> {
    let operation = operation_from_wire(session.operation())?;
    let progress =
        progress_from_wire(session.progress()).ok_or_else(|| Invalid::new("progress", "is not specified"))?;
    let shown = session.error.as_deref().filter(|error| !error.is_empty()).unwrap_or(&session.waiting_for);
    let shown = shown.into();
    let result = outcome::result_from_wire(session.result(), &session.superseded_by, session.idle_reason());
    Ok(Session {
        result,
        cancellation: session.cancellation.map(|one| Cancellation { reason: text(&one.reason) }),
        pause: session.pause.map(pause_from_wire),
        retry_of: session.retry_of.map(|one| RetriedSession { name: one.name, id: one.id }),
        plan: plan_from_wire(&session.plan_hash)?,
        confirmed_nodes: session.confirmed_nodes,
        rollout: session.rollout.map(rollout_from_wire).transpose()?,
        undisturbed_since: session.undisturbed_since.map(time::from_wire),
        trace: session.trace_parent.into(),
        trouble_begin: session.trouble_begin.map(|begin| trouble::begin_from_wire(begin, &shown).into()),
        tenant: Tenant::parse(&session.tenant)?,
        operation,
        progress,
        components: session.components.iter().map(|id| ComponentId::parse(id)).collect::<Result<_, _>>()?,
        name: session.name,
        template_name: session.template_name,
        limit: session.limit,
        stage: session.stage,
        include_disabled: session.include_disabled,
        start_time: session.start_time,
        end_time: session.end_time,
        error: session.error,
        id: session.id,
        revision: session.revision,
        assigned_revision: session.assigned_revision,
        waiting_for: session.waiting_for,
        created_at: session.created_at.map(time::from_wire).unwrap_or_default(),
    })
}

/// Converts a session for an answer or for storage.
pub(crate) fn to_wire(session: &Session) -> wire::Session {
    let OutcomeFields { result, superseded_by, idle_reason } =
        outcome::result_to_wire(session.result.as_ref());
    let cancellation = session.cancellation.as_ref();
    let retry_of = session.retry_of.as_ref();
    wire::Session {
        result: result.into(),
        superseded_by,
        idle_reason: idle_reason.into(),
        cancellation: cancellation.map(|one| wire::Cancellation { reason: one.reason.to_string() }),
        pause: session.pause.as_ref().map(pause_to_wire),
        retry_of: retry_of.map(|one| wire::RetriedSession { name: one.name.clone(), id: one.id.clone() }),
        plan_hash: session.plan.map(|plan| plan.to_string()).unwrap_or_default(),
        confirmed_nodes: session.confirmed_nodes,
        rollout: session.rollout.as_ref().map(rollout_to_wire),
        undisturbed_since: session.undisturbed_since.map(time::to_wire),
        trace_parent: session.trace.to_string(),
        name: session.name.clone(),
        tenant: session.tenant.as_str().to_owned(),
        operation: operation_to_wire(session.operation).into(),
        template_name: session.template_name.clone(),
        limit: session.limit.clone(),
        stage: session.stage,
        include_disabled: session.include_disabled,
        components: session.components.iter().map(|id| id.as_str().to_owned()).collect(),
        progress: progress_to_wire(session.progress).into(),
        start_time: session.start_time.clone(),
        end_time: session.end_time.clone(),
        error: session.error.clone(),
        id: session.id.clone(),
        revision: session.revision,
        assigned_revision: session.assigned_revision,
        waiting_for: session.waiting_for.clone(),
        created_at: Some(time::to_wire(session.created_at)),
        last_event: 0,
        trouble_begin: session
            .trouble_begin
            .as_deref()
            .zip(session.trouble())
            .map(|(begin, trouble)| trouble::begin_to_wire(begin, trouble.text())),
    }
}

fn pause_from_wire(pause: wire::SessionPause) -> SessionPause {
    SessionPause {
        by: text(&pause.by),
        since: pause.since.map(time::from_wire).unwrap_or_default(),
        reason: text(&pause.reason),
        request_id: text(&pause.request_id),
    }
}

fn pause_to_wire(pause: &SessionPause) -> wire::SessionPause {
    wire::SessionPause {
        by: pause.by.to_string(),
        since: Some(time::to_wire(pause.since)),
        reason: pause.reason.to_string(),
        request_id: pause.request_id.to_string(),
    }
}

/// Reads the request for a new session.
///
/// # Errors
/// Names the field that cannot be read.
pub(crate) fn wish_from_wire(request: wire::CreateSessionRequest) -> Result<NewSession, Invalid> {
    Ok(NewSession {
        operation: operation_from_wire(request.operation())?,
        tenant: Tenant::parse(&request.tenant)?,
        name: request.name,
        template_name: request.template_name,
        limit: request.limit,
        stage: request.stage,
        include_disabled: request.include_disabled,
        retry_of: None,
        plan: plan_from_wire(&request.plan_hash)?,
        confirmed_nodes: request.confirmed_nodes,
        rollout: request.rollout.map(policy_from_wire).transpose()?,
    })
}

/// Reads the hash of a plan; empty: none.
fn plan_from_wire(text: &str) -> Result<Option<PlanHash>, Invalid> {
    let given = (!text.is_empty()).then_some(text);
    let hash = given.map(str::parse).transpose();
    hash.map_err(|error: MalformedHash| Invalid::new("plan_hash", error.to_string()))
}

/// Reads the change of an update.
pub(crate) fn patch_from_wire(request: wire::UpdateSessionRequest) -> SessionPatch {
    let progress = progress_from_wire(request.progress());
    let changed = |text: Option<String>, clear: bool| if clear { Some(None) } else { text.map(Some) };
    SessionPatch {
        components: request.components,
        progress,
        start_time: request.start_time,
        end_time: changed(request.end_time, request.clear_end_time),
        error: changed(request.error, request.clear_error),
    }
}

/// Reads a filter that is evaluated at `now`; unset: every session.
///
/// # Errors
/// Names the age or tenant that cannot be read.
pub(crate) fn filter_from_wire(
    filter: Option<wire::SessionFilter>,
    now: Timestamp,
) -> Result<SessionFilter, Invalid> {
    let filter = filter.unwrap_or_default();
    let progress = progress_from_wire(filter.progress());
    let tenant = filter.tenant.as_deref().map(Tenant::parse).transpose()?;
    SessionFilter::parse(tenant, &filter.min_age, &filter.max_age, progress, now)
}

/// Converts the extended status for an answer or for storage.
pub(crate) fn status_to_wire(status: SessionStatus) -> wire::SessionStatus {
    let errors = status.error_summary.into_iter();
    wire::SessionStatus {
        progress: progress_to_wire(status.progress).into(),
        managed_components_count: status.managed_components_count,
        percent_successful: status.percent_successful,
        percent_failed: status.percent_failed,
        percent_staged: status.percent_staged,
        percent_complete: status.percent_complete,
        percent_powering_on: status.percent_powering_on,
        percent_powering_off: status.percent_powering_off,
        percent_configuring: status.percent_configuring,
        error_summary: errors
            .map(|one| wire::ErrorSummary { error: one.error, count: one.count, list: one.list })
            .collect(),
        start_time: status.start_time,
        end_time: status.end_time,
        duration: status.duration,
        members_in_doubt_since: None,
    }
}

/// Most names in one message about left-out nodes.
const NAMES: usize = 5_000;

/// Converts the nodes that a session leaves out for one reason.
pub(crate) fn left_out_to_wire(
    left_out: LeftOut,
) -> impl Iterator<Item = wire::ListLeftOutMembersResponse> + Send {
    let LeftOut { boot_set, reason, names } = left_out;
    let reason = reason_to_wire(reason).into();
    let mut names = names.into_iter();
    std::iter::from_fn(move || {
        let page = names.by_ref().take(NAMES);
        let members: Vec<_> =
            page.map(|id| wire::LeftOutMember { id, boot_set: boot_set.clone(), reason }).collect();
        (!members.is_empty()).then_some(wire::ListLeftOutMembersResponse { members })
    })
}

pub(super) fn reason_to_wire(reason: LeftOutReason) -> wire::LeftOutReason {
    match reason {
        LeftOutReason::NotInLimit => wire::LeftOutReason::NotInLimit,
        LeftOutReason::Locked => wire::LeftOutReason::Locked,
        LeftOutReason::ForeignTenant => wire::LeftOutReason::ForeignTenant,
        LeftOutReason::UnknownToInventory => wire::LeftOutReason::UnknownToInventory,
        LeftOutReason::WrongArchitecture => wire::LeftOutReason::WrongArchitecture,
        LeftOutReason::Disabled => wire::LeftOutReason::Disabled,
        LeftOutReason::InLaterBootSet => wire::LeftOutReason::InLaterBootSet,
        LeftOutReason::UnknownGroup => wire::LeftOutReason::UnknownGroup,
        LeftOutReason::UnknownRole => wire::LeftOutReason::UnknownRole,
        LeftOutReason::NotAComponent => wire::LeftOutReason::NotAComponent,
    }
}

pub(super) fn operation_from_wire(operation: wire::Operation) -> Result<Operation, Invalid> {
    match operation {
        wire::Operation::Unspecified => Err(Invalid::new("operation", "is not specified")),
        wire::Operation::Boot => Ok(Operation::Boot),
        wire::Operation::Reboot => Ok(Operation::Reboot),
        wire::Operation::Shutdown => Ok(Operation::Shutdown),
    }
}

pub(super) fn operation_to_wire(operation: Operation) -> wire::Operation {
    match operation {
        Operation::Boot => wire::Operation::Boot,
        Operation::Reboot => wire::Operation::Reboot,
        Operation::Shutdown => wire::Operation::Shutdown,
    }
}

fn progress_from_wire(progress: wire::Progress) -> Option<Progress> {
    match progress {
        wire::Progress::Unspecified => None,
        wire::Progress::Pending => Some(Progress::Pending),
        wire::Progress::Running => Some(Progress::Running),
        wire::Progress::Complete => Some(Progress::Complete),
    }
}

fn progress_to_wire(progress: Progress) -> wire::Progress {
    match progress {
        Progress::Pending => wire::Progress::Pending,
        Progress::Running => wire::Progress::Running,
        Progress::Complete => wire::Progress::Complete,
    }
}
