//! Marks of paused sessions. Written by the session manager.

use std::sync::Arc;

use crate::{
    boot::component::{
        Component, ComponentWish, PauseMark,
        report::{AuthorReport, Consequence, Stale},
    },
    core::{time::Timestamp, trouble::TroubleKind},
};

/// Mark of a session for a component, or its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseReport {
    /// Name of the session that owned the component when the report was made; empty: none did.
    pub session: Arc<str>,
    /// Unique id of the session that had assigned the component by then; empty: an operator named the session.
    pub assignment: Arc<str>,
    /// Mark of the paused session; `None`: the session is not paused.
    pub pause: Option<Arc<PauseMark>>,
}

/// Marks a component whose session is paused, or removes the mark. The text about the pause ends with the mark.
///
/// A report is stale when the component belongs to another session by now.
impl AuthorReport for PauseReport {
    type Group = ComponentWish;

    fn group(component: &mut Component) -> &mut ComponentWish {
        &mut component.wish
    }

    fn has_news(&self, component: &Component) -> Result<bool, Stale> {
        let wish = &component.wish;
        if *wish.session_name() != *self.session || wish.assignment != self.assignment {
            return Err(Stale);
        }
        Ok(wish.pause != self.pause)
    }

    fn write(&self, wish: &mut ComponentWish, _before: &Component, _now: Timestamp) {
        wish.pause.clone_from(&self.pause);
    }

    fn consequences(&self, before: &Component) -> Vec<Consequence> {
        let shows_pause = before.evaluation.error_kind == TroubleKind::Paused;
        (self.pause.is_none() && shows_pause).then_some(Consequence::ErrorCleared).into_iter().collect()
    }
}
