//! Plans of sessions: what a session would do, from the same reads and rules as its setup. Nothing is written.

use std::sync::Arc;

use chassis::{
    Fault,
    process::{clock::now, pause},
    store::ledger::Responses,
};
use domain::{
    boot::{
        session::{
            NewSession, Progress, Session,
            membership::{Memberships, NoMembers},
            plan::{self, PlanInputs, PlannedAction, SessionPlan, Targets, TemplateJudgement},
        },
        template::Rules,
    },
    core::{id::ComponentId, time::Timestamp},
};
use futures_util::future::join;
use proto::session::{CreatePlanRequest, CreatePlanResponse, plan_service_server::PlanService};
use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::{Request, Response, Status, async_trait};

use crate::{
    convert,
    dependency::{Dependency, DependencyError},
    lookup::ImageLookup,
    power_reads::{PowerAnswer, PowerReads},
    setup::{
        SetupPeers,
        plan::{FoundMembers, FoundTargets, find, taken, targets},
    },
    shared::{ManagerState, SessionBasis, SessionDraft},
};

/// Plans that are made at the same time. Each reads the inventory and the power of all its nodes, and holds an entry for
/// each node until its client has taken the last one.
const AT_A_TIME: usize = 4;

pub(crate) struct PlanRpc {
    pub(crate) shared: ManagerState,
    pub(crate) peers: SetupPeers,
    pub(crate) lookup: Arc<ImageLookup>,
    pub(crate) power: PowerReads,
    pub(crate) places: Semaphore,
}

/// Evidence of a plan that was read for it.
struct PlanEvidence {
    draft: SessionDraft,
    judgement: TemplateJudgement,
    found: FoundMembers,
    targets: Targets,
    power: PowerAnswer,
}

#[async_trait]
impl PlanService for PlanRpc {
    type CreatePlanStream = Responses<CreatePlanResponse>;

    async fn create_plan(
        &self,
        request: Request<CreatePlanRequest>,
    ) -> Result<Response<Self::CreatePlanStream>, Status> {
        let _place = self.place()?;
        let wish = convert::plan::wish_from_wire(request.into_inner()).map_err(Fault::Invalid)?;
        let evidence = self.read(wish).await?;
        let session = evidence.draft.session.clone();
        let (plan, planned_at) = self.judge(evidence);
        let expected = self.shared.expectation(&session, switched(&plan));
        Ok(self.shared.sessions.respond(convert::plan::to_wire(plan, expected, planned_at)))
    }
}

impl PlanRpc {
    /// Returns how many plans are made at the same time.
    pub(crate) fn places() -> Semaphore {
        Semaphore::new(AT_A_TIME)
    }

    fn place(&self) -> Result<SemaphorePermit<'_>, Fault> {
        self.places.try_acquire().map_err(|_| Fault::Busy {
            reason: format!("{AT_A_TIME} plans are being made already"),
            retry_after: pause::retry_after(),
        })
    }

    async fn read(&self, wish: NewSession) -> Result<PlanEvidence, Fault> {
        let draft = self.shared.draft(wish).await?;
        let SessionDraft { session, basis } = &draft;
        let SessionBasis { template, options } = basis;
        let rules = Rules { options, compatibility: self.shared.compatibility };
        let judged = self.lookup.findings(template, session.operation, rules);
        let (judgement, found) = join(judged, find(&self.shared, &self.peers, session, basis)).await;
        let found = found.map_err(unavailable)?;
        self.shared.registry.wait_for_mirror(&self.shared.components).await?;
        let none = Memberships::new();
        let memberships = found.memberships.as_ref().unwrap_or(&none);
        let found_targets = targets(&self.peers, session.operation, template, memberships, options);
        let power = self.power(session, memberships);
        let (found_targets, power) = join(found_targets, power).await;
        let targets = reasons(found_targets);
        Ok(PlanEvidence { draft, judgement, found, targets, power })
    }

    /// Reads the power of the members that are components, which the session would act on at once.
    async fn power(&self, session: &Session, memberships: &Memberships) -> PowerAnswer {
        if session.stage {
            return PowerAnswer::default();
        }
        let members = memberships.values().flat_map(|membership| &membership.members);
        let taken = members.filter(|id| self.shared.components.get(id.as_str()).is_some());
        self.power.read(taken.map(|id| id.as_str().to_owned()).collect()).await
    }

    fn judge(&self, evidence: PlanEvidence) -> (SessionPlan, Timestamp) {
        let PlanEvidence { draft, judgement, found, targets, power } = evidence;
        let PowerAnswer { power, outages } = power;
        let refusal = found.memberships.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let visible = found.tenant_nodes.as_deref().map(|nodes| &nodes.elements);
        let components = self.shared.components.all();
        let shown = components.iter().map(|one| &**one);
        let shown = shown.filter(|one| visible.is_none_or(|nodes| nodes.contains(&one.id)));
        let planned_at = now();
        let is_component = |id: &ComponentId| self.shared.components.get(id.as_str()).is_some();
        let nodes = found.memberships.as_ref().map_or(0, |all| taken(all, is_component).len());
        let unconfirmed = self.shared.guard.objection(&self.shared.size(nodes, found.guarded_roles));
        let inputs = PlanInputs {
            session: &draft.session,
            template: &draft.basis.template,
            judgement: &judgement,
            options: &draft.basis.options,
            memberships: match &found.memberships {
                Ok(memberships) | Err(NoMembers::Nobody(memberships)) => Ok(memberships),
                Err(NoMembers::Foreign(_) | NoMembers::Malformed(_)) => Err(refusal.as_str()),
            },
            lacking: &found.lacking.into_iter().collect::<Vec<_>>(),
            targets: &targets,
            under_way: &self.under_way(&draft.session),
            complete_applied: self.shared.complete_applied,
            visible,
            power: &power,
            outages: &plan::outages(outages, shown),
            unconfirmed: unconfirmed.as_ref(),
            now: planned_at,
        };
        (plan::plan(inputs, |id| self.shared.components.get(id.as_str())), planned_at)
    }

    /// Returns the sessions that are not over, as far as the tenant of the plan may know them.
    fn under_way(&self, planned: &Session) -> Vec<Session> {
        let all = self.shared.sessions.view().all();
        let open = all.iter().map(|record| &record.session);
        let open = open.filter(|session| session.progress != Progress::Complete);
        let seen = open.filter(|one| planned.tenant.is_none() || one.tenant == planned.tenant);
        seen.cloned().collect()
    }
}

/// Returns the number of nodes that the session would switch at once.
fn switched(plan: &SessionPlan) -> usize {
    let is_switched = |action| match action {
        PlannedAction::PowerOn
        | PlannedAction::PowerOff
        | PlannedAction::Restart
        | PlannedAction::Unknown => true,
        PlannedAction::Nothing | PlannedAction::Configure | PlannedAction::Stage => false,
    };
    plan.nodes.iter().filter(|node| is_switched(node.action)).count()
}

/// Returns the targets with errors as texts.
fn reasons(found: FoundTargets) -> Targets {
    found.into_iter().map(|(name, target)| (name, target.map_err(DependencyError::text))).collect()
}

/// Returns the fault of a plan that cannot be made without the dependency.
fn unavailable(error: DependencyError) -> Fault {
    match error {
        DependencyError::Retryable(outage) => Fault::unavailable(outage.what.text(), outage.error),
        DependencyError::Fatal(reason) | DependencyError::Idle { error: reason, .. } => {
            Fault::unavailable(Dependency::Inventory.text(), reason)
        }
    }
}
