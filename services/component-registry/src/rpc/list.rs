//! Which components a list shows.

use std::collections::HashSet;

use chassis::{convert::component::phase_from_wire, ledger::Selection};
use domain::{
    component::{Component, Phase},
    status::computed_status,
};
use proto::component::{ComponentFilter, ListComponentsRequest};

/// The components that a request asks for (BOS reference 2.6.1).
pub(super) fn selection(request: ListComponentsRequest) -> Selection<Component> {
    let mut filter = request.filter.unwrap_or_default();
    let keys = std::mem::take(&mut filter.ids).into_iter().collect();
    let filter = Filter::from(filter);
    Selection {
        keys,
        after: request.start_after_id,
        most: if request.page_size == 0 { usize::MAX } else { request.page_size as usize },
        wanted: Box::new(move |component| filter.picks(component)),
    }
}

/// A list filter, ready to be asked about many components.
struct Filter {
    enabled: Option<bool>,
    session: Option<String>,
    staged_session: Option<String>,
    phase: Option<Phase>,
    statuses: HashSet<String>,
}

impl From<ComponentFilter> for Filter {
    fn from(filter: ComponentFilter) -> Self {
        Self {
            enabled: filter.enabled,
            session: filter.session,
            staged_session: filter.staged_session,
            phase: phase_from_wire(filter.phase),
            statuses: filter.statuses.into_iter().collect(),
        }
    }
}

impl Filter {
    /// Whether the filter, apart from ids, picks `component`. A member that a record lacks equals nothing
    /// that is asked for, except that a missing phase is the phase of nothing.
    fn picks(&self, component: &Component) -> bool {
        let staged_session = component.staged_state.as_ref().and_then(|staged| staged.session.as_deref());
        self.enabled.is_none_or(|enabled| component.enabled == Some(enabled))
            && self.session.as_deref().is_none_or(|session| component.session.as_deref() == Some(session))
            && self.staged_session.as_deref().is_none_or(|session| staged_session == Some(session))
            && self.phase.is_none_or(|phase| component.phase() == phase)
            && (self.statuses.is_empty() || self.statuses.contains(computed_status(component)))
    }
}

#[cfg(test)]
mod tests {
    use domain::{component::Status, id::ComponentId};

    use super::*;

    #[test]
    fn members_combine_with_and_and_missing_ones_match_nothing() {
        let bare = Component::new(ComponentId::parse("x1").unwrap());
        let busy = Component {
            enabled: Some(true),
            session: Some("s1".into()),
            status: Some(Status { phase: Some(Phase::Configuring), status_override: None }),
            ..bare.clone()
        };
        let rows: [(ComponentFilter, bool, bool); 6] = [
            (ComponentFilter::default(), true, true),
            (ComponentFilter { enabled: Some(true), ..Default::default() }, false, true),
            (ComponentFilter { enabled: Some(false), ..Default::default() }, false, false),
            (ComponentFilter { session: Some("s1".into()), ..Default::default() }, false, true),
            (
                ComponentFilter { statuses: vec!["stable".into(), "x".into()], ..Default::default() },
                true,
                false,
            ),
            (
                ComponentFilter { session: Some("s1".into()), enabled: Some(false), ..Default::default() },
                false,
                false,
            ),
        ];
        for (filter, picks_bare, picks_busy) in rows {
            let label = format!("{filter:?}");
            let filter = Filter::from(filter);
            assert_eq!((filter.picks(&bare), filter.picks(&busy)), (picks_bare, picks_busy), "{label}");
        }
    }
}
