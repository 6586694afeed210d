//! Reports of the session manager.

use std::sync::Arc;

use crate::{
    boot::component::{
        Component, ComponentWish, DesiredState, PauseMark, StagedState,
        artifacts::BootArtifacts,
        report::{AuthorReport, Consequence, Stale},
        write::merge::{merge_desired, merge_part, merge_staged},
    },
    core::{id::Tenant, time::Timestamp},
};

/// Wish of a session for a member. Written by the session manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Unique id of the session: repeating an assignment under the same id changes nothing, and ids sort by the
    /// creation of their sessions.
    pub assignment_id: Arc<str>,
    /// Name of the session as components show it.
    pub session: Arc<str>,
    /// Tenant of the session.
    pub tenant: Tenant,
    /// Artifacts to boot.
    pub boot_artifacts: Arc<BootArtifacts>,
    /// The wanted configuration; empty: none.
    pub configuration: Arc<str>,
    /// Whether to forget the reported boot, so that the node boots again (reboot).
    pub clear_actual_state: bool,
    /// Whether to forget the token of the desired state (shutdown).
    pub clear_bss_token: bool,
    /// Whether only to stage the state.
    pub stage: bool,
    /// Mark of the members of a session that rolls out; `None`: the members may begin at once.
    pub pause: Option<Arc<PauseMark>>,
    /// Context of the trace of the request that created the session; empty: none.
    pub trace: Arc<str>,
}

/// Gives a component to a session (BOS reference 5.4.4, 5.4.6), or stages a state for later.
///
/// The latest session wins: ids of sessions are in the order of their creation. Each session gets a component once. A
/// session that repeats its assignment after a crash does not take a component back, whether from a later session, from
/// an earlier one's staged state that was applied since, or from an operator who wrote it. An assignment is stale when
/// a later session has the component, or this one had it and has it no more.
impl AuthorReport for Assignment {
    type Group = ComponentWish;

    fn group(component: &mut Component) -> &mut ComponentWish {
        &mut component.wish
    }

    fn has_news(&self, component: &Component) -> Result<bool, Stale> {
        if self.stage { self.has_stage_news(&component.wish) } else { self.has_wish_news(&component.wish) }
    }

    fn write(&self, wish: &mut ComponentWish, _before: &Component, now: Timestamp) {
        if self.stage {
            self.set_stage(wish, now);
        } else {
            self.set_wish(wish, now);
        }
    }

    fn consequences(&self, before: &Component) -> Vec<Consequence> {
        if self.stage {
            return vec![Consequence::ErrorCleared];
        }
        let mut consequences = vec![
            Consequence::SetUp,
            Consequence::AttemptsForgotten,
            Consequence::Held,
            Consequence::ErrorCleared,
            Consequence::WishBegan,
        ];
        // What a node reported before it was asked to shut down does not show what still runs on it.
        let is_forgotten = self.clear_actual_state || before.may_be_shutting_down();
        consequences.extend(is_forgotten.then_some(Consequence::ReportForgotten));
        consequences
    }
}

impl Assignment {
    fn has_wish_news(&self, wish: &ComponentWish) -> Result<bool, Stale> {
        let id = &self.assignment_id;
        if wish.assignment == *id && *wish.session_name() == *self.session {
            return Ok(false);
        }
        let latest = (&wish.assignment).max(&wish.latest_assignment);
        if latest > id || wish.latest_assignment == *id { Err(Stale) } else { Ok(true) }
    }

    fn set_wish(&self, wish: &mut ComponentWish, now: Timestamp) {
        let desired = DesiredState {
            boot_artifacts: Some(self.boot_artifacts.clone()),
            configuration: Some(self.configuration.clone()),
            bss_token: self.clear_bss_token.then(Arc::default),
            last_updated: Some(now),
        };
        merge_part(&mut wish.desired_state, Some(desired), merge_desired);
        wish.enabled = Some(true);
        wish.session = Some(self.session.clone());
        wish.session_tenant = Some(self.tenant.clone());
        wish.assignment.clone_from(&self.assignment_id);
        wish.latest_assignment.clone_from(&self.assignment_id);
        wish.trace.clone_from(&self.trace);
        // A mark of before is of another session. The pause of this session is marked after the assignment, and its rollout
        // with it, so that no member begins before its batch is open.
        wish.pause.clone_from(&self.pause);
    }

    /// Returns whether the state is not staged yet. A state that was applied already, while the session was
    /// interrupted, is not staged again.
    fn has_stage_news(&self, wish: &ComponentWish) -> Result<bool, Stale> {
        let id = &self.assignment_id;
        let stored = wish.staged_state.as_ref();
        if wish.assignment == *id || stored.is_some_and(|stored| self.is_staged_as(stored)) {
            return Ok(false);
        }
        if stored.is_some_and(|stored| stored.assignment > *id) { Err(Stale) } else { Ok(true) }
    }

    fn is_staged_as(&self, stored: &StagedState) -> bool {
        let artifacts = stored.boot_artifacts.as_ref();
        artifacts.is_some_and(|stored| stored.same_texts(&self.boot_artifacts))
            && stored.configuration.as_ref() == Some(&self.configuration)
            && stored.session.as_ref() == Some(&self.session)
            && stored.assignment == self.assignment_id
    }

    /// Stages the state. A shutdown names its session too, so that it can be applied (BUG-20).
    fn set_stage(&self, wish: &mut ComponentWish, now: Timestamp) {
        let staged = StagedState {
            boot_artifacts: Some(self.boot_artifacts.clone()),
            configuration: Some(self.configuration.clone()),
            session: Some(self.session.clone()),
            last_updated: Some(now),
            ..StagedState::default()
        };
        merge_part(&mut wish.staged_state, Some(staged.into()), merge_staged);
        if let Some(staged) = wish.staged_state.as_mut().map(Arc::make_mut) {
            staged.tenant = Some(self.tenant.clone());
            (staged.assignment, staged.applied) = (self.assignment_id.clone(), false);
        }
    }
}
