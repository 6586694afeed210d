//! Selection of components for a list (BOS reference 2.6.1).

use std::collections::HashSet;

use crate::{
    boot::component::{Component, Phase, status::computed_status},
    core::id::Tenant,
};

const SESSION: &str = "session";
const STAGED_SESSION: &str = "staged session";
const PHASE: &str = "phase";
const STATUS: &str = "status";

/// Returns the facets of `component`, names and values, that distinguish it from most in a list. Facets of nearly every
/// component of a machine at rest, and conditions that no list has, are left out.
pub fn facets(component: &Component) -> impl Iterator<Item = (&'static str, &str)> {
    let given = [
        (SESSION, component.session_name()),
        (STAGED_SESSION, component.staged_session_name()),
        (PHASE, component.phase().word()),
        (STATUS, computed_status(component).word()),
    ];
    given.into_iter().filter(|(_, value)| !value.is_empty())
}

/// Conditions that all must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentFilter {
    /// Whether the component is enabled, or expressly not.
    pub enabled: Option<bool>,
    /// Name of the session that owns the component.
    pub session: Option<String>,
    /// Name of the session whose state is staged.
    pub staged_session: Option<String>,
    /// Tenant of these sessions; `None`: any. Sessions of different tenants may have the same name.
    pub session_tenant: Option<Tenant>,
    /// Phase of the component.
    pub phase: Option<Phase>,
    /// Words of which the computed status is one; empty: any.
    pub statuses: HashSet<String>,
}

impl ComponentFilter {
    /// Returns whether `component` meets every condition. A member that a record lacks equals no wanted value, except
    /// that a missing phase is the phase of nothing.
    pub fn matches(&self, component: &Component) -> bool {
        let staged = component.wish.staged_state.as_ref();
        let staged_session = staged.and_then(|staged| staged.session.as_deref());
        let staged_tenant = staged.and_then(|staged| staged.tenant.as_ref());
        self.enabled.is_none_or(|enabled| component.wish.enabled == Some(enabled))
            && self.names(
                &self.session,
                component.wish.session.as_deref(),
                component.wish.session_tenant.as_ref(),
            )
            && self.names(&self.staged_session, staged_session, staged_tenant)
            && self.phase.is_none_or(|phase| component.phase() == phase)
            && (self.statuses.is_empty() || self.statuses.contains(computed_status(component).word()))
    }

    /// Returns the conditions by [`facets`]: every matching component has one of the facets of each.
    pub fn conditions(&self) -> Vec<Vec<(&'static str, String)>> {
        let phase = self.phase.map(|phase| phase.word().to_owned());
        let texts = [(SESSION, &self.session), (STAGED_SESSION, &self.staged_session), (PHASE, &phase)];
        let named = texts.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        let named = named.filter(|(_, value)| !value.is_empty());
        let mut conditions: Vec<_> = named.map(|(name, value)| vec![(name, value.to_owned())]).collect();
        let statuses: Vec<_> = self.statuses.iter().map(|word| (STATUS, word.clone())).collect();
        conditions.extend(Some(statuses).filter(|words| !words.is_empty()));
        conditions
    }

    /// Returns whether a component that names the session `name` of `tenant` names the wanted one. If the tenant is
    /// unknown the name alone counts.
    fn names(&self, wanted: &Option<String>, name: Option<&str>, tenant: Option<&Tenant>) -> bool {
        let Some(wanted) = wanted else { return true };
        name == Some(wanted)
            && self.session_tenant.as_ref().is_none_or(|own| tenant.is_none_or(|of| of == own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        boot::component::{ComponentEvaluation, ComponentWish, StagedState, Status},
        core::id::ComponentId,
    };

    /// Every filter of a few values is checked against every component.
    #[test]
    fn what_matches_has_a_facet_of_each_condition() {
        let texts = || [None, Some(String::new()), Some("s1".to_owned()), Some("s2".to_owned())];
        let phases = || [None].into_iter().chain(Phase::ALL.map(Some));
        let combinations = || {
            let sessions = texts().into_iter().flat_map(|one| texts().map(|other| (one.clone(), other)));
            sessions.flat_map(|sessions| phases().map(move |phase| (sessions.clone(), phase)))
        };
        let shared = |text: Option<String>| text.map(Into::into);
        let component = |((session, staged), phase), word: Option<&str>| Component {
            wish: ComponentWish {
                session: shared(session),
                staged_state: Some(StagedState { session: shared(staged), ..StagedState::default() }.into()),
                ..ComponentWish::default()
            }
            .into(),
            evaluation: ComponentEvaluation {
                status: Some(Status { phase, status_override: word.map(Into::into) }),
                ..ComponentEvaluation::default()
            }
            .into(),
            ..Component::new(ComponentId::parse("x1").expect("valid"))
        };
        let words = [None, Some(""), Some("failed"), Some("stable")];
        let components: Vec<_> =
            combinations().flat_map(|one| words.map(|word| component(one.clone(), word))).collect();
        let mut matches = 0;
        for ((session, staged_session), phase) in combinations() {
            for words in [&[][..], &["failed"], &["", "stable", "power_on_pending"]] {
                let statuses = words.iter().map(|word| (*word).to_owned()).collect();
                let (session, staged_session) = (session.clone(), staged_session.clone());
                let filter =
                    ComponentFilter { session, staged_session, phase, statuses, ..Default::default() };
                let conditions = filter.conditions();
                for component in components.iter().filter(|component| filter.matches(component)) {
                    let has = |(name, value): &(&'static str, String)| {
                        facets(component).any(|facet| facet == (*name, value.as_str()))
                    };
                    assert!(
                        conditions.iter().all(|one_of| one_of.iter().any(has)),
                        "{filter:?} {component:?}"
                    );
                    matches += 1;
                }
            }
        }
        assert!(matches > 1000, "{matches}");
    }

    #[test]
    fn narrow_conditions_are_by_facets() {
        let text = |text: &str| Some(text.to_owned());
        let any = ComponentFilter::default();
        for (filter, conditions) in [
            (any.clone(), vec![]),
            (ComponentFilter { enabled: Some(true), session: text(""), ..any.clone() }, vec![]),
            (ComponentFilter { phase: Some(Phase::None), ..any.clone() }, vec![]),
            (
                ComponentFilter {
                    session: text("s1"),
                    staged_session: text("s2"),
                    phase: Some(Phase::Configuring),
                    statuses: ["failed".to_owned()].into(),
                    ..any.clone()
                },
                vec!["session s1", "staged session s2", "phase configuring", "status failed"],
            ),
        ] {
            let shown = filter.conditions().into_iter().flatten();
            assert_eq!(shown.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>(), conditions);
        }
    }

    #[test]
    fn conditions_combine_and_missing_members_match_nothing() {
        let bare = Component::new(ComponentId::parse("x1").expect("valid"));
        let busy = bare.clone().with(|one| {
            one.wish.enabled = Some(true);
            one.wish.session = Some("s1".into());
            one.wish.staged_state =
                Some(StagedState { session: Some("s2".into()), ..StagedState::default() }.into());
            one.evaluation.status = Some(Status { phase: Some(Phase::Configuring), status_override: None });
        });
        let any = ComponentFilter::default();
        let session = |name: &str| ComponentFilter { session: Some(name.to_owned()), ..any.clone() };
        let staged = |name: &str| ComponentFilter { staged_session: Some(name.to_owned()), ..any.clone() };
        let phase = |phase| ComponentFilter { phase: Some(phase), ..any.clone() };
        let statuses = |words: &[&str]| ComponentFilter {
            statuses: words.iter().map(|word| (*word).to_owned()).collect(),
            ..any.clone()
        };
        let of = |tenant: &str| Some(Tenant::parse(tenant).expect("valid"));
        let stage = busy.wish.staged_state.as_deref().cloned().expect("staged");
        let owned = busy.clone().with(|one| {
            one.wish.session_tenant = of("a");
            one.wish.staged_state = Some(StagedState { tenant: of("b"), ..stage }.into());
        });
        for (session_tenant, owner, stager) in
            [(None, true, true), (of(""), false, false), (of("a"), true, false), (of("b"), false, true)]
        {
            let own = ComponentFilter { session_tenant, ..any.clone() };
            let names = [session("s1"), staged("s2")]
                .map(|filter| ComponentFilter { session_tenant: own.session_tenant.clone(), ..filter });
            assert!(own.matches(&owned) && names.iter().all(|filter| filter.matches(&busy)), "{own:?}");
            assert_eq!(names.map(|filter| filter.matches(&owned)), [owner, stager], "{own:?}");
        }
        for (filter, matches_bare, matches_busy) in [
            (any.clone(), true, true),
            (ComponentFilter { enabled: Some(true), ..any.clone() }, false, true),
            (ComponentFilter { enabled: Some(false), ..any.clone() }, false, false),
            (session("s1"), false, true),
            (session("s2"), false, false),
            (session(""), false, false),
            (staged("s2"), false, true),
            (staged("s1"), false, false),
            (phase(Phase::None), true, false),
            (phase(Phase::Configuring), false, true),
            (statuses(&["stable", "x"]), true, false),
            (statuses(&["configuring", "stable"]), true, true),
            (ComponentFilter { enabled: Some(false), ..session("s1") }, false, false),
        ] {
            assert_eq!(
                (filter.matches(&bare), filter.matches(&busy)),
                (matches_bare, matches_busy),
                "{filter:?}"
            );
        }
    }
}
