//! Conversion between messages and domain types, for messages that only the registry handles.

use std::{collections::HashMap, sync::Arc, time::Duration};

pub(crate) use chassis::kinds::component::{reference_to_wire, to_wire};
use chassis::{
    Fault,
    kinds::{
        Interner,
        component::{
            action_from_wire, artifacts_from_wire, decided_by_from_wire, pause_from_wire, phase_from_wire,
            reference_from_wire,
        },
        trouble,
    },
    store::ledger::Draft,
};
use domain::{
    boot::{
        component::{
            Component, Phase, SessionReference,
            artifacts::BootArtifacts,
            filter::ComponentFilter,
            report::{ActionReport, Assignment, PauseReport, PreparationReport, StatusReport},
            write::KnownToken,
        },
        session::staging::Standing,
        template::Operation,
    },
    core::{
        id::{ComponentId, Tenant},
        invalid::Invalid,
        time::Timestamp,
        trouble::ErrorChange,
    },
};
use proto::{component as wire, session};
use tokio::time::Instant;

use crate::store::BootToken;

/// Reports that a required member of a request is missing.
pub(crate) fn missing(field: &str) -> Invalid {
    Invalid::new(field, "is missing")
}

/// Reads the mark of a paused session for the components of these ids.
pub(crate) fn pause_report(request: wire::PauseComponentsRequest) -> (PauseReport, Vec<String>) {
    let wire::PauseComponentsRequest { session, assignment, pause, ids } = request;
    let mut interner = Interner::default();
    let pause = pause.map(|mark| Arc::new(pause_from_wire(mark, &mut interner)));
    (PauseReport { session: session.into(), assignment: assignment.into(), pause }, ids)
}

/// Stored tokens that one request names.
pub(crate) struct RequestTokens {
    known: HashMap<String, KnownToken>,
    looked_up_at: Instant,
}

impl RequestTokens {
    pub(crate) fn new<'a>(known: impl IntoIterator<Item = &'a BootToken>) -> Self {
        let known = known.into_iter().map(|token| {
            let boot_artifacts = Arc::clone(&token.boot_artifacts);
            (token.token.clone(), KnownToken { boot_artifacts, number: token.revision })
        });
        Self { known: known.collect(), looked_up_at: Instant::now() }
    }

    /// Returns the artifacts and the number of `token`; `None` for an unknown token.
    pub(crate) fn get(&self, token: &str) -> Option<KnownToken> {
        self.known.get(token).cloned()
    }

    /// Checks that the tokens belong to the history of the components that they are written to.
    ///
    /// # Errors
    /// The database has lost commits since they were looked up.
    pub(crate) fn check(&self, draft: &Draft<'_, Component>) -> Result<(), Fault> {
        self.check_loss(draft.since_loss())
    }

    fn check_loss(&self, since_loss: Option<Duration>) -> Result<(), Fault> {
        match since_loss {
            Some(age) if !self.known.is_empty() && age <= self.looked_up_at.elapsed() => {
                Err(Fault::unavailable("database", "it has lost commits; tokens are looked up again"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Reads the conditions of a list request. Ids are not conditions: they select the records to search.
///
/// # Errors
/// A tenant's name is invalid.
pub(crate) fn filter(filter: wire::ComponentFilter) -> Result<ComponentFilter, Invalid> {
    Ok(ComponentFilter {
        enabled: filter.enabled,
        session: filter.session,
        staged_session: filter.staged_session,
        phase: phase_from_wire(filter.phase),
        statuses: filter.statuses.into_iter().collect(),
        session_tenant: filter.session_tenant.as_deref().map(Tenant::parse).transpose()?,
    })
}

/// Reads the assignments of a session, each with the ids of its members.
pub(crate) fn assignments(
    request: wire::AssignSessionRequest,
    interner: &mut Interner,
) -> Result<Vec<(Vec<String>, Assignment)>, Fault> {
    if request.assignment_id.is_empty() {
        return Err(missing("assignment_id").into());
    }
    domain::core::id::check_name("session", &request.session)?;
    let tenant = Tenant::parse(&request.tenant)?;
    let id = interner.share(&request.assignment_id);
    let session = interner.share(&request.session);
    let pause = request.pause.map(|mark| Arc::new(pause_from_wire(mark, interner)));
    let trace = interner.share(&request.trace_parent);
    let assignments = request.assignments.into_iter().map(|one| {
        let assignment = Assignment {
            assignment_id: Arc::clone(&id),
            session: Arc::clone(&session),
            tenant: tenant.clone(),
            boot_artifacts: artifacts_from_wire(one.boot_artifacts.unwrap_or_default(), interner),
            configuration: interner.share(&one.configuration),
            clear_actual_state: one.clear_actual_state,
            clear_bss_token: one.clear_bss_token,
            stage: request.stage,
            pause: pause.clone(),
            trace: Arc::clone(&trace),
        };
        (one.ids, assignment)
    });
    Ok(assignments.collect())
}

/// Reads the sessions that components name in their staged state.
pub(crate) fn staged_sessions(
    sessions: Vec<wire::StagedSession>,
) -> Result<HashMap<SessionReference, Standing>, Fault> {
    let known = sessions.into_iter().map(|session| {
        let reference = session.reference.ok_or_else(|| missing("sessions.reference"))?;
        let standing = match session.standing {
            None => Standing::Gone,
            Some(wire::staged_session::Standing::Foreign(wire::ForeignSession {})) => Standing::Foreign,
            Some(wire::staged_session::Standing::Own(own)) => Standing::Own {
                operation: operation(own.operation()).ok_or_else(|| missing("sessions.own.operation"))?,
                id: own.assignment_id.into(),
            },
        };
        Ok((reference_from_wire(reference)?, standing))
    });
    known.collect()
}

fn operation(operation: session::Operation) -> Option<Operation> {
    match operation {
        session::Operation::Unspecified => None,
        session::Operation::Boot => Some(Operation::Boot),
        session::Operation::Reboot => Some(Operation::Reboot),
        session::Operation::Shutdown => Some(Operation::Shutdown),
    }
}

/// Reads reports of the status evaluator.
pub(crate) fn status_reports(
    request: wire::ReportStatusesRequest,
    interner: &mut Interner,
) -> Result<Vec<StatusReport>, Fault> {
    let reports = request.reports.into_iter().map(|report| {
        Ok(StatusReport {
            id: ComponentId::parse(&report.id)?,
            revision: report.revision,
            phase: phase_from_wire(report.phase).unwrap_or(Phase::None),
            status_override: interner.share(&report.status_override),
            settled: report.settled,
            action_failed: report.action_failed,
            awaits_evidence: report.awaits_evidence,
            error: error_change(report.error.as_deref(), report.error_kind, interner),
            decided_by: report.decided_by.map(decided_by_from_wire).unwrap_or_default(),
            reason: interner.share(&report.reason),
        })
    });
    reports.collect()
}

/// Reads the change that a report makes to the error. Without an `error` the old one stays.
fn error_change(error: Option<&str>, kind: i32, interner: &mut Interner) -> ErrorChange {
    let Some(error) = error else { return ErrorChange::Keep };
    let trouble = trouble::from_wire(kind, interner.share(error));
    trouble.map_or(ErrorChange::Clear, ErrorChange::Show)
}

/// Reads reports of the power controller.
pub(crate) fn action_reports(
    request: wire::ReportActionsRequest,
    interner: &mut Interner,
) -> Result<Vec<ActionReport>, Fault> {
    let reports = request.reports.into_iter().map(|report| {
        Ok(ActionReport {
            id: ComponentId::parse(&report.id)?,
            generation: report.generation,
            action: action_from_wire(report.action).ok_or_else(|| missing("reports.action"))?,
            attempt: report.attempt,
            trouble: interner.trouble(report.error_kind, &report.error),
            failed: report.failed,
        })
    });
    reports.collect()
}

/// Reads reports of the config coordinator, whose tokens are stored already.
pub(crate) fn preparation_reports(
    request: wire::ReportPreparationsRequest,
    tokens: &RequestTokens,
    interner: &mut Interner,
) -> Result<Vec<PreparationReport>, Fault> {
    let reports = request.reports.into_iter().map(|report| {
        Ok(PreparationReport {
            id: ComponentId::parse(&report.id)?,
            generation: report.generation,
            attempt: report.attempt,
            token_number: tokens.get(&report.bss_token).map_or(0, |token| token.number),
            bss_token: interner.share(&report.bss_token),
            trouble: interner.trouble(report.error_kind, &report.error),
            refused: report.refused,
        })
    });
    reports.collect()
}

/// Reads tokens, with `now` as the time at which they are stored.
pub(crate) fn boot_tokens(
    tokens: Vec<wire::BootToken>,
    now: Timestamp,
    interner: &mut Interner,
) -> Vec<BootToken> {
    let tokens = tokens.into_iter().map(|token| BootToken {
        token: token.token,
        boot_artifacts: Arc::new(BootArtifacts {
            timestamp: Some(now),
            ..Arc::unwrap_or_clone(artifacts_from_wire(token.boot_artifacts.unwrap_or_default(), interner))
        }),
        revision: 0,
    });
    tokens.collect()
}

#[cfg(test)]
mod tests {
    use chassis::kinds::component::action_to_wire;
    use domain::{
        boot::component::Action,
        core::trouble::{Trouble, TroubleKind},
    };
    use proto::meta;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tokens_looked_up_before_a_loss_do_not_count() {
        let boot_artifacts = Arc::new(BootArtifacts::empty());
        let token = BootToken { token: "t".into(), boot_artifacts, revision: 1 };
        let (named, none) = (RequestTokens::new([&token]), RequestTokens::new([]));
        tokio::time::advance(Duration::from_secs(2)).await;
        for (since_loss, is_taken) in [(None, true), (Some(3), true), (Some(2), false), (Some(0), false)] {
            let since_loss = since_loss.map(Duration::from_secs);
            assert_eq!(named.check_loss(since_loss).is_ok(), is_taken, "{since_loss:?}");
            assert!(none.check_loss(since_loss).is_ok());
        }
    }

    fn action_trouble(kind: meta::TroubleKind) -> Option<Trouble> {
        let report = wire::ActionReport {
            id: "x1".into(),
            action: action_to_wire(Action::PoweringOn).into(),
            error: "waiting for the BMC".into(),
            error_kind: kind.into(),
            ..Default::default()
        };
        let request = wire::ReportActionsRequest { reports: vec![report] };
        let reports = action_reports(request, &mut Interner::default()).unwrap();
        reports[0].trouble.as_deref().cloned()
    }

    #[test]
    fn reports_of_earlier_versions_get_kinds() {
        let kind = |trouble: Option<Trouble>| trouble.map(|trouble| trouble.kind());
        assert_eq!(kind(action_trouble(meta::TroubleKind::Unspecified)), Some(TroubleKind::Waiting));
        assert_eq!(kind(action_trouble(meta::TroubleKind::Failed)), Some(TroubleKind::Failed));

        let report = wire::PreparationReport {
            id: "x1".into(),
            error: "Error encountered setting CFS information: no".into(),
            ..Default::default()
        };
        let request = wire::ReportPreparationsRequest { reports: vec![report], tokens: vec![] };
        let reports =
            preparation_reports(request, &RequestTokens::new([]), &mut Interner::default()).unwrap();
        let trouble = reports[0].trouble.as_deref().cloned();
        assert_eq!(kind(trouble), Some(TroubleKind::ConfigurationRefused));
    }

    #[test]
    fn status_reports_change_errors_by_kind() {
        let change = |error: Option<&str>, kind: meta::TroubleKind| {
            let report = wire::StatusReport {
                id: "x1".into(),
                error: error.map(str::to_owned),
                error_kind: kind.into(),
                ..Default::default()
            };
            let request = wire::ReportStatusesRequest { reports: vec![report] };
            status_reports(request, &mut Interner::default()).unwrap().swap_remove(0).error
        };
        let unspecified = meta::TroubleKind::Unspecified;
        assert_eq!(change(None, unspecified), ErrorChange::Keep);
        assert_eq!(change(Some(""), unspecified), ErrorChange::Clear);
        let text = "waiting for PCS";
        let shown = |kind| Trouble::new(kind, text.into()).map_or(ErrorChange::Clear, ErrorChange::Show);
        assert_eq!(change(Some(text), unspecified), shown(TroubleKind::Waiting));
        assert_eq!(change(Some(text), meta::TroubleKind::Failed), shown(TroubleKind::Failed));
    }
}
