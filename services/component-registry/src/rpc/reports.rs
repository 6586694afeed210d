//! Reports of the mesh's own services: the rules of `domain::boot::component::report`, applied to the newest records.

use chassis::{Fault, process::clock, store::ledger::Draft};
use domain::{
    boot::component::{
        Component, InventoryPresence,
        boot_token::superseded,
        report::{self, ActionReport, AuthorReport, PreparationReport, Stale, StatusReport},
    },
    core::event::Actor,
};
use proto::component::{
    ApplyStagedRequest, ApplyStagedResponse, AssignSessionRequest, AssignSessionResponse,
    PauseComponentsRequest, PauseComponentsResponse, ReportActionsRequest, ReportActionsResponse,
    ReportPreparationsRequest, ReportPreparationsResponse, ReportStatusesRequest, ReportStatusesResponse,
    report_service_server::ReportService,
};
use tonic::{Request, Response, Status, async_trait};

use crate::{RegistryState, convert, store::BootToken};

/// Number of tokens below which a search for superseded ones is not worthwhile.
const MANY_TOKENS: usize = 10_000;

/// Author of assignments, in events.
pub(super) const SESSION_MANAGER: Actor = Actor::Service("session-manager");

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
                    match report::record(&component, assignment, now) {
                        Ok(Some(mut changed)) => {
                            if changed.generation > component.generation && is_listed(id) {
                                changed.inventory.presence = InventoryPresence::Listed;
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

    async fn pause_components(
        &self,
        request: Request<PauseComponentsRequest>,
    ) -> Result<Response<PauseComponentsResponse>, Status> {
        let (report, ids) = convert::pause_report(request.into_inner());
        let pause = move |draft: &mut Draft<'_, Component>| {
            let now = clock::now();
            let mut stale_ids = Vec::new();
            for id in ids {
                let found = draft.get(&id).ok_or(Stale);
                match found.and_then(|component| report::record(&component, &report, now)) {
                    Ok(Some(changed)) => draft.put(changed),
                    Ok(None) => {}
                    Err(Stale) => stale_ids.push(id),
                }
            }
            Ok(stale_ids)
        };
        let (stale_ids, _revision) = self.components.write_by(SESSION_MANAGER, pause).await?;
        Ok(Response::new(PauseComponentsResponse { stale_ids }))
    }

    async fn report_statuses(
        &self,
        request: Request<ReportStatusesRequest>,
    ) -> Result<Response<ReportStatusesResponse>, Status> {
        let reports = convert::status_reports(request.into_inner(), &mut self.interner.lock())?;
        let stale_ids = self.note(reports).await?;
        Ok(Response::new(ReportStatusesResponse { stale_ids }))
    }

    async fn report_actions(
        &self,
        request: Request<ReportActionsRequest>,
    ) -> Result<Response<ReportActionsResponse>, Status> {
        let mut reports = convert::action_reports(request.into_inner(), &mut self.interner.lock())?;
        // A host is claimed before the attempt counts: no operation on it begins from then on.
        let mut stale_ids = self.claim_hosts(&reports).await?;
        reports.retain(|report| !stale_ids.contains(report.id.as_str()));
        stale_ids.extend(self.note(reports).await?);
        let stale_ids = stale_ids.into_iter().collect();
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
        let stale_ids = self.note(reports).await?;
        Ok(Response::new(ReportPreparationsResponse { stale_ids }))
    }
}

/// Report about one component.
trait ComponentReport: AuthorReport + Send + 'static {
    /// Author of all reports of the kind.
    const AUTHOR: Actor;

    /// Returns the id of the component.
    fn id(&self) -> &str;

    /// Returns the word for the rule that decided the report; empty: none did.
    fn reason(&self) -> &str {
        ""
    }
}

impl ComponentReport for StatusReport {
    const AUTHOR: Actor = Actor::Service("status-evaluator");

    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn reason(&self) -> &str {
        &self.reason
    }
}

impl ComponentReport for ActionReport {
    const AUTHOR: Actor = Actor::Service("power-controller");

    fn id(&self) -> &str {
        self.id.as_str()
    }
}

impl ComponentReport for PreparationReport {
    const AUTHOR: Actor = Actor::Service("config-coordinator");

    fn id(&self) -> &str {
        self.id.as_str()
    }
}

impl RegistryState {
    /// Applies each report to its component in one transaction and returns the ids of stale ones. A report about a
    /// deleted component is stale too.
    async fn note<R: ComponentReport>(&self, reports: Vec<R>) -> Result<Vec<String>, Fault> {
        let note = move |draft: &mut Draft<'_, Component>| {
            let now = clock::now();
            let mut stale = Vec::new();
            for report in &reports {
                let outcome = draft
                    .get(report.id())
                    .ok_or(Stale)
                    .and_then(|component| report::record(&component, report, now));
                match outcome {
                    Ok(Some(changed)) => draft.put_because(changed, report.reason()),
                    Ok(None) => {}
                    Err(Stale) => stale.push(report.id().to_owned()),
                }
            }
            Ok(stale)
        };
        Ok(self.components.write_by(R::AUTHOR, note).await?.0)
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
