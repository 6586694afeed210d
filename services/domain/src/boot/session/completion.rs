//! The end of a session (BOS reference 5.9).

use crate::{
    boot::{
        component::{
            Component,
            status::{ComponentStatus, computed_status},
        },
        session::Session,
    },
    core::{
        bos_time,
        confirmed_set::ConfirmedSet,
        id::{ComponentId, Tenant},
        time::Timestamp,
    },
};

/// Way in which a component keeps a running session from ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stake {
    /// The session owns the component, which has not settled yet.
    Owned,
    /// The session's state is staged in the component.
    Staged,
}

/// Returns the stake that `session` has in `component`, if any.
///
/// With `complete_applied` a state that was applied does not hold its session any more, even if it stays staged for
/// another time; BOS lets it hold the session for ever (BOS reference 10.3, row 9). Staged states do not hold a session
/// that is being cancelled: nothing acts on them, and they cannot be applied any more.
pub fn stake(component: &Component, session: &Session, complete_applied: bool) -> Option<Stake> {
    if component.is_enabled() && !does_as_wanted(component) && owns(session, component) {
        return Some(Stake::Owned);
    }
    let applied = component.wish.staged_state.as_ref().is_some_and(|staged| staged.applied);
    let is_released = session.is_being_cancelled() || (complete_applied && applied);
    (stages(session, component) && !is_released).then_some(Stake::Staged)
}

/// Returns whether an enabled component has reached its target. Such a component exists only where the option
/// `disable_components_on_completion` keeps it enabled: its session ends all the same. A record without a status was
/// not evaluated yet.
fn does_as_wanted(component: &Component) -> bool {
    component.evaluation.status.is_some() && computed_status(component) == ComponentStatus::STABLE
}

/// Returns whether `session` owns `component`.
pub fn owns(session: &Session, component: &Component) -> bool {
    is_named(
        session,
        component.session_name(),
        &component.wish.assignment,
        component.wish.session_tenant.as_ref(),
    )
}

/// Returns whether the staged state of `component` is that of `session`.
pub fn stages(session: &Session, component: &Component) -> bool {
    component.wish.staged_state.as_ref().is_some_and(|staged| {
        let name = staged.session.as_deref().unwrap_or_default();
        is_named(session, name, &staged.assignment, staged.tenant.as_ref())
    })
}

/// Returns whether a reference means `session`. Sessions of different tenants may have the same name (BUG-28), so the
/// id decides where the registry knows it, and else the tenant for which the name was written. Only names written
/// without a tenant match by name alone.
fn is_named(session: &Session, name: &str, id: &str, tenant: Option<&Tenant>) -> bool {
    *name == *session.name
        && if id.is_empty() { tenant.is_none_or(|own| *own == session.tenant) } else { *id == *session.id }
}

/// Returns the error of a session that ends after the registry lost the assignment of `lost` components at that time;
/// `None`: it lost none.
pub fn lost_components(session: &Session, lost: usize, at: Timestamp) -> Option<String> {
    let (all, at) = (session.components.len(), bos_time::text(at));
    let error = format!(
        "The component registry lost commits at {at}Z, and with them the assignment of {lost} of {all} components"
    );
    (lost > 0).then_some(error)
}

/// Counts the components in which a session has a stake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stakes {
    /// Components with [`Stake::Owned`].
    pub owned: usize,
    /// Components with [`Stake::Staged`].
    pub staged: usize,
}

impl Stakes {
    /// Updates the counts for a component whose stake was `before` and is now `after`.
    pub fn change(&mut self, before: Option<Stake>, after: Option<Stake>) {
        if let Some(stake) = before {
            let count = self.count(stake);
            *count = count.saturating_sub(1);
        }
        if let Some(stake) = after {
            *self.count(stake) += 1;
        }
    }

    /// Returns whether a running session with these stakes is over: it has a stake in no component.
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

/// Components that hold a session of a tenant although they may not be the tenant's any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Departures {
    /// Components that the session owns and that have left the tenant. The session has to release them: until it does,
    /// they are acted on for a tenant that does not own them.
    pub owned: Vec<ComponentId>,
    /// Whether some components may have left the tenant, which is not confirmed yet. They hold the session.
    pub in_doubt: bool,
    /// Whether only staged states in components that have left the tenant hold the session. Nothing acts on those, so
    /// the session is over.
    pub only_staged: bool,
}

impl Departures {
    /// Returns whether the session loses components for certain.
    pub fn is_certain(&self) -> bool {
        !self.owned.is_empty() || self.only_staged
    }
}

/// Returns which of the components that are `held` by a session of a tenant have left the `nodes` of that tenant (BOS
/// reference 5.9). BOS completes the session once all of them have, and continues to act on them.
pub fn departures(
    held: impl IntoIterator<Item = (ComponentId, Stake)>,
    nodes: &ConfirmedSet<ComponentId>,
) -> Departures {
    let (mut departures, mut holds, mut staged) = (Departures::default(), false, false);
    for (id, stake) in held {
        match (nodes.gone.contains(&id), stake) {
            (true, Stake::Owned) => departures.owned.push(id),
            (true, Stake::Staged) => staged = true,
            (false, _) => {
                holds = true;
                departures.in_doubt |= nodes.in_doubt.contains_key(&id);
            }
        }
    }
    departures.only_staged = staged && !holds && departures.owned.is_empty();
    departures
}

/// Returns whether all `members` of a session have left the `nodes` of its tenant: nothing is left of what it was for.
pub fn have_all_left(members: &[ComponentId], nodes: &ConfirmedSet<ComponentId>) -> bool {
    !members.is_empty() && members.iter().all(|id| nodes.gone.contains(id))
}

#[cfg(test)]
pub(crate) mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        boot::{
            component::{ComponentWish, Phase, StagedState, Status},
            session::{inventory::tests::ids, tests::session},
        },
        core::{confirmed_set::SetAnswer, time::Timestamp},
    };

    /// Returns a component of the session `owner` with a state staged by the session `staged`; empty: of none.
    pub(crate) fn component(id: &str, enabled: bool, owner: &str, staged: &str) -> Component {
        let text = |text: &str| Some(text.into());
        Component {
            wish: ComponentWish {
                enabled: Some(enabled),
                session: text(owner),
                staged_state: Some(StagedState { session: text(staged), ..StagedState::default() }.into()),
                ..ComponentWish::default()
            }
            .into(),
            ..Component::new(ids(id).remove(0))
        }
    }

    fn tenant(name: &str) -> Option<Tenant> {
        Some(Tenant::parse(name).expect("valid"))
    }

    #[test]
    fn enabled_and_staged_components_hold_a_session() {
        let bare = Component::new(ids("n0").remove(0));
        for (component, expected) in [
            (bare, None),
            (component("n0", true, "s", ""), Some(Stake::Owned)),
            (component("n0", false, "s", ""), None),
            (component("n0", true, "other", ""), None),
            (component("n0", true, "other", "s"), Some(Stake::Staged)),
            (component("n0", false, "", "s"), Some(Stake::Staged)),
            (component("n0", true, "s", "s"), Some(Stake::Owned)),
            (component("n0", false, "s", "s"), Some(Stake::Staged)),
        ] {
            assert_eq!(stake(&component, &session("s"), false), expected, "{component:?}");
        }
    }

    #[test]
    fn who_is_kept_as_wanted_holds_no_session_while_all_is_well() {
        for (phase, status_override, expected) in [
            (Phase::None, "", None),
            (Phase::None, "on_hold", Some(Stake::Owned)),
            (Phase::None, "failed", Some(Stake::Owned)),
            (Phase::PoweringOn, "", Some(Stake::Owned)),
            (Phase::Configuring, "", Some(Stake::Owned)),
        ] {
            let status = Status { phase: Some(phase), status_override: Some(status_override.into()) };
            let component = component("n0", true, "s", "").with(|one| one.evaluation.status = Some(status));
            assert_eq!(stake(&component, &session("s"), false), expected, "{component:?}");
        }
    }

    #[test]
    fn an_applied_stage_holds_its_session_unless_asked_otherwise() {
        for (enabled, applied, kept, otherwise) in [
            (true, true, Some(Stake::Owned), Some(Stake::Owned)),
            (false, true, Some(Stake::Staged), None),
            (false, false, Some(Stake::Staged), Some(Stake::Staged)),
        ] {
            let mut component = component("n0", enabled, "s", "s");
            std::sync::Arc::make_mut(component.wish.staged_state.get_or_insert_default()).applied = applied;
            let stakes = [false, true].map(|complete| stake(&component, &session("s"), complete));
            assert_eq!(stakes, [kept, otherwise], "{component:?}");
        }
    }

    #[test]
    fn namesakes_of_other_tenants_are_never_confused() {
        let own = Session { tenant: Tenant::parse("a").expect("valid"), ..session("s") };
        for (name, id, owner, expected) in [
            ("s", "s-id", None, true),
            ("s", "s-id", tenant("b"), true),
            ("s", "namesake-id", tenant("a"), false),
            ("taken-over", "s-id", tenant("a"), false),
            ("s", "", None, true),
            ("s", "", tenant("a"), true),
            ("s", "", tenant("b"), false),
            ("s", "", tenant(""), false),
            ("", "", tenant("a"), false),
        ] {
            let staged = StagedState {
                session: Some(name.into()),
                tenant: owner.clone(),
                assignment: id.into(),
                ..StagedState::default()
            };
            let component = component("n0", true, name, "").with(|one| {
                one.wish.session_tenant = owner.clone();
                one.wish.assignment = id.into();
                one.wish.staged_state = Some(staged.into());
            });
            let verdicts = [owns(&own, &component), stages(&own, &component)];
            assert_eq!(verdicts, [expected; 2], "'{name}' {id} {owner:?}");
        }
    }

    #[test]
    fn only_confirmed_departures_end_a_session() {
        let set = |letters: &str| ids(letters).into_iter().collect();
        let started = ConfirmedSet::default().believe(SetAnswer::Elements(set("n0 n1")), [], Timestamp(0));
        let emptied = started.believe(SetAnswer::Elements(set("")), ids("n0 n1"), Timestamp(1_000));
        let confirmed = emptied.believe(SetAnswer::Elements(set("")), ids("n0 n1"), Timestamp(11_000));
        let half = started.believe(SetAnswer::Elements(set("n0")), ids("n0 n1"), Timestamp(1_000));
        let half = half.believe(SetAnswer::Elements(set("n0")), ids("n0 n1"), Timestamp(11_000));
        let denied = started.believe(SetAnswer::NoSuchSet, ids("n0 n1"), Timestamp(1_000));
        let unknown = denied.believe(SetAnswer::NoSuchSet, ids("n0 n1"), Timestamp(11_000));
        let all_left =
            [&started, &emptied, &confirmed, &half].map(|nodes| have_all_left(&ids("n0 n1"), nodes));
        assert_eq!(all_left, [false, false, true, false]);
        assert!(!have_all_left(&[], &confirmed) && have_all_left(&ids("n1"), &half));
        let mut rows = String::new();
        for (name, nodes) in [
            ("started", &started),
            ("emptied", &emptied),
            ("confirmed", &confirmed),
            ("half", &half),
            ("denied", &denied),
            ("unknown", &unknown),
        ] {
            for (owned, staged) in
                [("n0 n1", ""), ("n0", "n1"), ("", "n0 n1"), ("", "n1"), ("n2", ""), ("", "")]
            {
                let owned_stakes = ids(owned).into_iter().map(|id| (id, Stake::Owned));
                let staged_stakes = ids(staged).into_iter().map(|id| (id, Stake::Staged));
                let found = departures(owned_stakes.chain(staged_stakes), nodes);
                let released: Vec<_> = found.owned.iter().map(ComponentId::as_str).collect();
                let (doubt, over) = (found.in_doubt, found.only_staged);
                let released = released.join(" ");
                rows += &format!(
                    "{name:9} owned {owned:5} staged {staged:5}: release {released:5} doubt {doubt:5} over {over}\n"
                );
            }
        }
        expect![[r#"
            started   owned n0 n1 staged      : release       doubt false over false
            started   owned n0    staged n1   : release       doubt false over false
            started   owned       staged n0 n1: release       doubt false over false
            started   owned       staged n1   : release       doubt false over false
            started   owned n2    staged      : release       doubt false over false
            started   owned       staged      : release       doubt false over false
            emptied   owned n0 n1 staged      : release       doubt true  over false
            emptied   owned n0    staged n1   : release       doubt true  over false
            emptied   owned       staged n0 n1: release       doubt true  over false
            emptied   owned       staged n1   : release       doubt true  over false
            emptied   owned n2    staged      : release       doubt false over false
            emptied   owned       staged      : release       doubt false over false
            confirmed owned n0 n1 staged      : release n0 n1 doubt false over false
            confirmed owned n0    staged n1   : release n0    doubt false over false
            confirmed owned       staged n0 n1: release       doubt false over true
            confirmed owned       staged n1   : release       doubt false over true
            confirmed owned n2    staged      : release       doubt false over false
            confirmed owned       staged      : release       doubt false over false
            half      owned n0 n1 staged      : release n1    doubt false over false
            half      owned n0    staged n1   : release       doubt false over false
            half      owned       staged n0 n1: release       doubt false over false
            half      owned       staged n1   : release       doubt false over true
            half      owned n2    staged      : release       doubt false over false
            half      owned       staged      : release       doubt false over false
            denied    owned n0 n1 staged      : release       doubt true  over false
            denied    owned n0    staged n1   : release       doubt true  over false
            denied    owned       staged n0 n1: release       doubt true  over false
            denied    owned       staged n1   : release       doubt true  over false
            denied    owned n2    staged      : release       doubt false over false
            denied    owned       staged      : release       doubt false over false
            unknown   owned n0 n1 staged      : release n0 n1 doubt false over false
            unknown   owned n0    staged n1   : release n0    doubt false over false
            unknown   owned       staged n0 n1: release       doubt false over true
            unknown   owned       staged n1   : release       doubt false over true
            unknown   owned n2    staged      : release       doubt false over false
            unknown   owned       staged      : release       doubt false over false
        "#]]
        .assert_eq(&rows);
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
