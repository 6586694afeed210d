//! Which components a list shows (BOS reference 2.6.1).

use std::collections::HashSet;

use crate::{
    component::{Component, Phase},
    id::Tenant,
    status::computed_status,
};

/// Conditions that all must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentFilter {
    /// Enabled, or expressly not.
    pub enabled: Option<bool>,
    /// Name of the session that owns the component.
    pub session: Option<String>,
    /// Name of the session whose state is staged.
    pub staged_session: Option<String>,
    /// Whose sessions these are; `None`: anybody's. Sessions of different tenants may have the same name.
    pub session_tenant: Option<Tenant>,
    /// What is being done.
    pub phase: Option<Phase>,
    /// The computed status is one of these; empty: any.
    pub statuses: HashSet<String>,
}

impl ComponentFilter {
    /// Whether `component` meets every condition. A member that a record lacks equals nothing that is asked
    /// for, except that a missing phase is the phase of nothing.
    pub fn matches(&self, component: &Component) -> bool {
        let staged = component.staged_state.as_ref();
        let staged_session = staged.and_then(|staged| staged.session.as_deref());
        let staged_tenant = staged.and_then(|staged| staged.tenant.as_ref());
        self.enabled.is_none_or(|enabled| component.enabled == Some(enabled))
            && self.names(&self.session, component.session.as_deref(), component.session_tenant.as_ref())
            && self.names(&self.staged_session, staged_session, staged_tenant)
            && self.phase.is_none_or(|phase| component.phase() == phase)
            && (self.statuses.is_empty() || self.statuses.contains(computed_status(component)))
    }

    /// Whether a component that names the session `name` of `tenant` names the wanted one. Where the tenant is not
    /// known the name alone counts.
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
        component::{StagedState, Status},
        id::ComponentId,
    };

    #[test]
    fn conditions_combine_and_missing_members_match_nothing() {
        let bare = Component::new(ComponentId::parse("x1").expect("valid"));
        let busy = Component {
            enabled: Some(true),
            session: Some("s1".to_owned()),
            staged_state: Some(StagedState { session: Some("s2".to_owned()), ..StagedState::default() }),
            status: Some(Status { phase: Some(Phase::Configuring), status_override: None }),
            ..bare.clone()
        };
        let any = ComponentFilter::default();
        let session = |name: &str| ComponentFilter { session: Some(name.to_owned()), ..any.clone() };
        let staged = |name: &str| ComponentFilter { staged_session: Some(name.to_owned()), ..any.clone() };
        let phase = |phase| ComponentFilter { phase: Some(phase), ..any.clone() };
        let statuses = |words: &[&str]| ComponentFilter {
            statuses: words.iter().map(|word| (*word).to_owned()).collect(),
            ..any.clone()
        };
        let of = |tenant: &str| Some(Tenant::parse(tenant).expect("valid"));
        let owned = Component {
            session_tenant: of("a"),
            staged_state: Some(StagedState { tenant: of("b"), ..busy.staged_state.clone().expect("staged") }),
            ..busy.clone()
        };
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
