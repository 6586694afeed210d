//! Write of a component by a client.

use std::sync::Arc;

use crate::{
    boot::component::{ActualState, Component, DesiredState, EventStats, LastAction, StagedState, Status},
    core::id::Tenant,
};

/// Members of a component that a client may write: all of a record (PUT), or those to change (PATCH). A missing member
/// was not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentPatch {
    /// Boot that the node reports.
    pub actual_state: Option<ActualState>,
    /// Wanted state of the node.
    pub desired_state: Option<DesiredState>,
    /// Wanted state of the node once the staged session is applied. Tenant and id of its session are not the client's.
    pub staged_state: Option<Arc<StagedState>>,
    /// Last action on the node.
    pub last_action: Option<LastAction>,
    /// Number of attempts at each power action.
    pub event_stats: Option<EventStats>,
    /// Phase of the node, and its status override.
    pub status: Option<Status>,
    /// Whether Reveille acts on the node.
    pub enabled: Option<bool>,
    /// Error text for operators; empty: no error.
    pub error: Option<Arc<str>>,
    /// Name of the session that owns the node; empty: none.
    pub session: Option<Arc<str>>,
    /// Tenant whose sessions the client means; `None`: sessions are identified by their names alone.
    pub session_tenant: Option<Tenant>,
    /// Most attempts per power action.
    pub retry_policy: Option<u32>,
}

impl ComponentPatch {
    /// Returns the write that repeats a record.
    pub(crate) fn repeating(component: &Component) -> Self {
        let Component { wish, evaluation, power, reported, .. } = component;
        Self {
            actual_state: reported.actual_state.clone(),
            desired_state: wish.desired_state.clone(),
            staged_state: wish.staged_state.clone(),
            last_action: power.last_action.clone(),
            event_stats: power.event_stats.clone(),
            status: evaluation.status.clone(),
            enabled: wish.enabled,
            error: evaluation.error.clone(),
            session: wish.session.clone(),
            session_tenant: wish.session_tenant.clone(),
            retry_policy: wish.retry_policy,
        }
    }

    /// Makes the members of `record` those of the write, also the missing ones. Tenants of sessions and the kind of the
    /// error are not the client's, and stay.
    pub(crate) fn replace_in(self, record: &mut Component) {
        let Component { wish, evaluation, power, reported, .. } = record;
        wish.desired_state = self.desired_state;
        wish.staged_state = self.staged_state;
        wish.session = self.session;
        wish.retry_policy = self.retry_policy;
        wish.enabled = self.enabled;
        evaluation.status = self.status;
        evaluation.error = self.error;
        power.last_action = self.last_action;
        power.event_stats = self.event_stats;
        reported.actual_state = self.actual_state;
    }

    /// Returns whether Reveille is to act on the node.
    pub(crate) fn enables(&self) -> bool {
        self.enabled == Some(true)
    }

    /// Returns the name of the session that is to own the node; empty: none.
    pub(crate) fn session_name(&self) -> &str {
        self.session.as_deref().unwrap_or_default()
    }
}
