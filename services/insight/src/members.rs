//! Explains the members of a session, each by its record and readings.

use std::collections::HashMap;

use domain::{
    boot::{
        component::{
            Component,
            status::{ComponentStatus, computed_status},
        },
        explanation::{SessionMember, SiteTools},
    },
    core::time::Timestamp,
};
use proto::session::Session;

use crate::{mirrors::InsightMirrors, traces::NodeTraces};

/// Most failed members whose histories are read: their causes name those of the others.
const MOST_FAILED: usize = 64;

/// Returns the ids of the first failed members.
pub(crate) fn failed(session: &Session, mirrors: &InsightMirrors) -> Vec<String> {
    let is_failed = |id: &&String| {
        mirrors.component(id).is_some_and(|one| computed_status(&one) == ComponentStatus::Failed)
    };
    session.components.iter().filter(is_failed).take(MOST_FAILED).cloned().collect()
}

/// Explains every member, failed ones with their `traces`.
pub(crate) fn explain(
    session: &Session,
    mirrors: &InsightMirrors,
    traces: &HashMap<String, NodeTraces>,
    tools: SiteTools,
    now: Timestamp,
) -> Vec<SessionMember> {
    let explained = session.components.iter().map(|id| {
        let Some(component) = mirrors.component(id) else { return SessionMember::deleted(id.clone()) };
        if !is_of(session, &component) {
            return SessionMember::taken_over(id.clone());
        }
        let traces = traces.get(id).unwrap_or(&NodeTraces::UNREAD);
        SessionMember::of(id.clone(), mirrors.explain(&component, traces, tools, now))
    });
    explained.collect()
}

/// Returns whether the latest wish of a component is that of the session.
fn is_of(session: &Session, component: &Component) -> bool {
    let staged = component.wish.staged_state.as_ref().filter(|_| session.stage);
    session.id.is_empty()
        || *component.wish.latest_assignment == *session.id
        || staged.is_some_and(|staged| *staged.assignment == *session.id)
}
