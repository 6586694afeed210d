//! When a session is over (BOS reference 5.9).

use std::collections::BTreeSet;

use crate::{component::Component, id::ComponentId, session::Session};

/// How a component keeps a running session from being over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stake {
    /// The session owns the component, which has not settled yet.
    Owned,
    /// The session's state waits in the component to be applied.
    Staged,
}

/// The stake that `session` has in `component`, if any. Of a session that has a tenant only the
/// `tenant_nodes` count.
pub fn stake(
    component: &Component,
    session: &Session,
    tenant_nodes: Option<&BTreeSet<ComponentId>>,
) -> Option<Stake> {
    if tenant_nodes.is_some_and(|own| !own.contains(&component.id)) {
        return None;
    }
    if component.is_enabled() && owns(session, component) {
        return Some(Stake::Owned);
    }
    stages(session, component).then_some(Stake::Staged)
}

/// Whether `component` is what `session` owns. Where the registry knows which session assigned the desired
/// state, that decides: sessions of different tenants may have the same name.
pub fn owns(session: &Session, component: &Component) -> bool {
    component.session_name() == session.name
        && (component.assignment.is_empty() || component.assignment == session.id)
}

/// Whether the staged state of `component` is that of `session`.
pub fn stages(session: &Session, component: &Component) -> bool {
    component.staged_state.as_ref().and_then(|staged| staged.session.as_deref()) == Some(&*session.name)
}

/// Counts the components in which a session has a stake, as they come and go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stakes {
    /// Components with [`Stake::Owned`].
    pub owned: usize,
    /// Components with [`Stake::Staged`].
    pub staged: usize,
}

impl Stakes {
    /// Notes that the stake in one component was `before` and is now `after`.
    pub fn change(&mut self, before: Option<Stake>, after: Option<Stake>) {
        if let Some(stake) = before {
            let count = self.count(stake);
            *count = count.saturating_sub(1);
        }
        if let Some(stake) = after {
            *self.count(stake) += 1;
        }
    }

    /// Whether a running session with these stakes is over: nothing of it is left anywhere.
    pub fn is_complete(&self) -> bool {
        self.owned == 0 && self.staged == 0
    }

    fn count(&mut self, stake: Stake) -> &mut usize {
        match stake {
            Stake::Owned => &mut self.owned,
            Stake::Staged => &mut self.staged,
        }
    }
}

impl FromIterator<Stake> for Stakes {
    fn from_iter<I: IntoIterator<Item = Stake>>(stakes: I) -> Self {
        let mut counted = Self::default();
        stakes.into_iter().for_each(|stake| counted.change(None, Some(stake)));
        counted
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{component::StagedState, inventory::tests::ids, session::tests::session};

    /// A component of a session by name, and of a staged session by name; empty: of none.
    pub(crate) fn component(id: &str, enabled: bool, owner: &str, staged: &str) -> Component {
        let text = |text: &str| Some(text.to_owned());
        Component {
            enabled: Some(enabled),
            session: text(owner),
            staged_state: Some(StagedState { session: text(staged), ..StagedState::default() }),
            ..Component::new(ids(id).remove(0))
        }
    }

    #[test]
    fn enabled_and_staged_components_hold_a_session() {
        let bare = Component::new(ids("n0").remove(0));
        let assigned = |assignment: &str| Component {
            assignment: assignment.to_owned(),
            ..component("n0", true, "s", "")
        };
        let elsewhere = ids("n1").into_iter().collect();
        let here = ids("n0 n1").into_iter().collect();
        for (component, tenant_nodes, expected) in [
            (bare, None, None),
            (component("n0", true, "s", ""), None, Some(Stake::Owned)),
            (component("n0", false, "s", ""), None, None),
            (component("n0", true, "other", ""), None, None),
            (component("n0", true, "other", "s"), None, Some(Stake::Staged)),
            (component("n0", false, "", "s"), None, Some(Stake::Staged)),
            (component("n0", true, "s", "s"), None, Some(Stake::Owned)),
            (component("n0", false, "s", "s"), None, Some(Stake::Staged)),
            (component("n0", true, "s", ""), Some(&elsewhere), None),
            (component("n0", true, "s", ""), Some(&here), Some(Stake::Owned)),
            (component("n0", false, "", "s"), Some(&elsewhere), None),
            (assigned("s-id"), None, Some(Stake::Owned)),
            (assigned("namesake-id"), None, None),
            (Component { session: Some("taken-over".to_owned()), ..assigned("s-id") }, None, None),
        ] {
            assert_eq!(stake(&component, &session("s"), tenant_nodes), expected, "{component:?}");
        }
    }

    #[test]
    fn a_session_is_over_when_nothing_holds_it() {
        let mut stakes = Stakes::default();
        assert!(stakes.is_complete());
        for (before, after, complete) in [
            (None, Some(Stake::Owned), false),
            (None, Some(Stake::Staged), false),
            (Some(Stake::Staged), Some(Stake::Owned), false),
            (Some(Stake::Owned), None, false),
            (Some(Stake::Owned), None, true),
            (None, None, true),
        ] {
            stakes.change(before, after);
            assert_eq!(stakes.is_complete(), complete, "{before:?} {after:?} {stakes:?}");
        }
        assert_eq!(Stakes::from_iter([Stake::Owned, Stake::Staged]), Stakes { owned: 1, staged: 1 });
    }
}
