//! Reports of the mesh's own services: the rules of `domain::boot::component::report`, applied to the newest records.

use chassis::{Fault, process::clock, store::ledger::Draft};
use domain::{
    boot::component::{
        Component, InventoryPresence,
        boot_token::superseded,
        report::{self, Stale},
    },
    core::{event::Actor, time::Timestamp},
};
use proto::component::{
    ApplyStagedRequest, ApplyStagedResponse, AssignSessionRequest, AssignSessionResponse,
    ReportActionsRequest, ReportActionsResponse, ReportPreparationsRequest, ReportPreparationsResponse,
    ReportStatusesRequest, ReportStatusesResponse, report_service_server::ReportService,
};
use tonic::{Request, Response, Status, async_trait};

use crate::{RegistryState, convert, store::BootToken};

/// Number of tokens below which a search for superseded ones is not worthwhile.
const MANY_TOKENS: usize = 10_000;

/// Authors of reports, in events.
pub(super) const SESSION_MANAGER: Actor = Actor::Service("session-manager");
const STATUS_EVALUATOR: Actor = Actor::Service("status-evaluator");
const POWER_CONTROLLER: Actor = Actor::Service("power-controller");
const CONFIG_COORDINATOR: Actor = Actor::Service("config-coordinator");

#[async_trait]
impl ReportService for RegistryState {
    async fn assign_session(
        &self,
        request: Request<AssignSessionRequest>,
    ) -> Result<Response<AssignSessionResponse>, Status> {
        let assignments = convert::assignments(request.into_inner(), &mut self.interner.lock())?;
        let listing = self.freshly_listed();
        let assign = move |draft: &mut Draft<'_, Component>| {
            let now = clock::now();
            let is_listed = |id: &str| listing.as_ref().is_some_and(|listing| listing.ids.contains(id));
            let mut assigned = Vec::new();
            for (ids, assignment) in &assignments {
                for id in ids {
                    let Some(component) = draft.get(id) else { continue };
                    match report::assign(&component, assignment, now) {
                        Ok(Some(mut changed)) => {
                            if changed.generation > component.generation && is_listed(id) {
                                changed.presence = InventoryPresence::Listed;
                            }
                            draft.put(changed);
                        }
                        Ok(None) => {}
                        Err(Stale) => continue,
                    }
                    assigned.push(id.clone());
                }
            }
            assigned.sort_unstable();
            assigned.dedup();
            Ok(assigned)
        };
        let (assigned_ids, revision) = self.components.write_by(SESSION_MANAGER, assign).await?;
        Ok(Response::new(AssignSessionResponse { assigned_ids, revision }))
    }

    async fn apply_staged(
        &self,
        request: Request<ApplyStagedRequest>,
    ) -> Result<Response<ApplyStagedResponse>, Status> {
        Ok(Response::new(self.apply(request.into_inner()).await?))
    }

    async fn report_statuses(
        &self,
        request: Request<ReportStatusesRequest>,
    ) -> Result<Response<ReportStatusesResponse>, Status> {
        let reports = convert::status_reports(request.into_inner(), &mut self.interner.lock())?;
        let rule = ReportRule {
            apply: report::status,
            author: STATUS_EVALUATOR,
            id: |one| one.id.as_str(),
            reason: |one| &one.reason,
        };
        let stale_ids = self.note(reports, rule).await?;
        Ok(Response::new(ReportStatusesResponse { stale_ids }))
    }

    async fn report_actions(
        &self,
        request: Request<ReportActionsRequest>,
    ) -> Result<Response<ReportActionsResponse>, Status> {
        let reports = convert::action_reports(request.into_inner(), &mut self.interner.lock())?;
        let rule = ReportRule {
            apply: report::action,
            author: POWER_CONTROLLER,
            id: |one| one.id.as_str(),
            reason: |_| "",
        };
        let stale_ids = self.note(reports, rule).await?;
        Ok(Response::new(ReportActionsResponse { stale_ids }))
    }

    async fn report_preparations(
        &self,
        request: Request<ReportPreparationsRequest>,
    ) -> Result<Response<ReportPreparationsResponse>, Status> {
        let mut request = request.into_inner();
        let tokens = convert::boot_tokens(
            std::mem::take(&mut request.tokens),
            clock::now(),
            &mut self.interner.lock(),
        );
        // A component must never name a token that is not stored, so tokens are stored first.
        self.store_tokens(tokens).await?;
        self.follow_loss().await?;
        let tokens = self.known_tokens(request.reports.iter().map(|report| report.bss_token.as_str()));
        let reports = convert::preparation_reports(request, &tokens, &mut self.interner.lock())?;
        let rule = ReportRule {
            apply: report::preparation,
            author: CONFIG_COORDINATOR,
            id: |one| one.id.as_str(),
            reason: |_| "",
        };
        let stale_ids = self.note(reports, rule).await?;
        Ok(Response::new(ReportPreparationsResponse { stale_ids }))
    }
}

/// Rule of one kind of report, with its one author.
struct ReportRule<R> {
    apply: fn(&Component, &R, Timestamp) -> Result<Option<Component>, Stale>,
    author: Actor,
    id: fn(&R) -> &str,
    /// Word for the rule that decided the report; empty: none did.
    reason: fn(&R) -> &str,
}

impl RegistryState {
    /// Applies each report to its component in one transaction and returns the ids of stale ones. A report about a
    /// deleted component is stale too.
    async fn note<R: Send + 'static>(
        &self,
        reports: Vec<R>,
        rule: ReportRule<R>,
    ) -> Result<Vec<String>, Fault> {
        let ReportRule { apply, author, id, reason } = rule;
        let note = move |draft: &mut Draft<'_, Component>| {
            let now = clock::now();
            let mut stale = Vec::new();
            for report in &reports {
                let outcome =
                    draft.get(id(report)).ok_or(Stale).and_then(|component| apply(&component, report, now));
                match outcome {
                    Ok(Some(changed)) => draft.put_because(changed, reason(report)),
                    Ok(None) => {}
                    Err(Stale) => stale.push(id(report).to_owned()),
                }
            }
            Ok(stale)
        };
        Ok(self.components.write_by(author, note).await?.0)
    }

    async fn store_tokens(&self, tokens: Vec<BootToken>) -> Result<(), Fault> {
        if tokens.is_empty() {
            return Ok(());
        }
        let superseded = self.superseded_tokens();
        let store = move |draft: &mut Draft<'_, BootToken>| {
            superseded.iter().for_each(|token| draft.delete(token));
            for token in tokens {
                // A repeated report must not make its token a later one.
                if draft.get(&token.token).is_none() {
                    draft.put(token);
                }
            }
            Ok(())
        };
        self.tokens.write(store).await?;
        Ok(())
    }

    /// Returns the tokens that can be deleted. The search runs only if there are many tokens, so that the requests
    /// that create tokens pay for it.
    fn superseded_tokens(&self) -> Vec<String> {
        if self.tokens.view().len() < MANY_TOKENS {
            return Vec::new();
        }
        let tokens = self.tokens.view().all();
        let stored = tokens
            .iter()
            .map(|token| (token.token.as_str(), token.boot_artifacts.timestamp.unwrap_or_default()));
        let components = self.components.view().all();
        superseded(stored, components.iter().map(|component| &**component), clock::now())
    }
}
