//! Results of sessions.

use domain::boot::session::{IdleReason, SessionResult};
use proto::session as wire;

/// Fields of a session that hold its result.
pub(super) struct OutcomeFields {
    pub(super) result: wire::SessionResult,
    pub(super) superseded_by: String,
    pub(super) idle_reason: wire::IdleReason,
}

/// Reads a result; `None`: there is none, or a later version wrote one that this version does not know.
pub(super) fn result_from_wire(
    result: wire::SessionResult,
    superseded_by: &str,
    idle_reason: wire::IdleReason,
) -> Option<SessionResult> {
    Some(match result {
        wire::SessionResult::Unspecified => return None,
        wire::SessionResult::Succeeded => SessionResult::Succeeded,
        wire::SessionResult::Partial => SessionResult::Partial,
        wire::SessionResult::Failed => SessionResult::Failed,
        wire::SessionResult::Cancelled => SessionResult::Cancelled,
        wire::SessionResult::Superseded => SessionResult::Superseded { by: superseded_by.into() },
        wire::SessionResult::NothingToDo => SessionResult::NothingToDo(match idle_reason {
            wire::IdleReason::NoNodes | wire::IdleReason::Unspecified => IdleReason::NoNodes,
            wire::IdleReason::NoComponents => IdleReason::NoComponents,
        }),
    })
}

pub(super) fn result_to_wire(result: Option<&SessionResult>) -> OutcomeFields {
    let plain = |result| OutcomeFields {
        result,
        superseded_by: String::new(),
        idle_reason: wire::IdleReason::Unspecified,
    };
    match result {
        None => plain(wire::SessionResult::Unspecified),
        Some(SessionResult::Succeeded) => plain(wire::SessionResult::Succeeded),
        Some(SessionResult::Partial) => plain(wire::SessionResult::Partial),
        Some(SessionResult::Failed) => plain(wire::SessionResult::Failed),
        Some(SessionResult::Cancelled) => plain(wire::SessionResult::Cancelled),
        Some(SessionResult::Superseded { by }) => {
            OutcomeFields { superseded_by: by.to_string(), ..plain(wire::SessionResult::Superseded) }
        }
        Some(SessionResult::NothingToDo(reason)) => {
            OutcomeFields { idle_reason: idle_to_wire(*reason), ..plain(wire::SessionResult::NothingToDo) }
        }
    }
}

fn idle_to_wire(reason: IdleReason) -> wire::IdleReason {
    match reason {
        IdleReason::NoNodes => wire::IdleReason::NoNodes,
        IdleReason::NoComponents => wire::IdleReason::NoComponents,
    }
}
