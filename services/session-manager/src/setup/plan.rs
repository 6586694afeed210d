//! Selects the members of a session, and plans their target states. A plan for an operator does the same, and stops there.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
    time::Duration,
};

use chassis::process::clock::now;
use domain::{
    boot::{
        bos::options::Options,
        session::{
            IdleReason, Session,
            guard::UnconfirmedSize,
            inventory::Inventory,
            lacking::{InventoryDoubt, LackingName, lacking},
            limit::Limit,
            membership::{self, LeftOut, Memberships, NoMembers, Selection, left_out},
            plan::{PlanBasis, PlanChange, PlanHash},
        },
        template::{
            Operation, SessionTemplate,
            image::ImageArtifacts,
            target::{self, TargetState},
        },
    },
    core::id::{ComponentId, Tenant},
};
use futures_util::future::join_all;
use proto::component::{AssignSessionRequest, Assignment};

use super::SetupPeers;
use crate::{
    convert::target::{assign_session, assignment},
    dependency::{Dependency, DependencyError, DependencyOutage},
    shared::{ManagerState, SessionBasis},
    tenants::Nodes,
};

/// Extra time for the registry beyond the deadline of its own upstream.
const MARGIN: Duration = Duration::from_secs(2);

/// Nodes that a session would take by an inventory.
pub(crate) struct FoundMembers {
    pub(crate) memberships: Result<Memberships, NoMembers>,
    /// Names that mean nothing in the inventory; empty if the template's nodes cannot be used at all.
    pub(crate) lacking: BTreeSet<LackingName>,
    /// Nodes of the session's tenant.
    pub(crate) tenant_nodes: Nodes,
    /// Roles of members that make a confirmation necessary.
    pub(crate) guarded_roles: BTreeSet<String>,
}

/// Members of a session, and nodes that it leaves out.
pub(super) struct MemberChoice {
    basis: SessionBasis,
    /// Members of every boot set, or the reason why there are none at all.
    memberships: Result<Memberships, String>,
    /// Nodes of the template that the session leaves out.
    pub(super) left_out: Arc<[LeftOut]>,
    /// Reason why the size has to be confirmed and is not, if that is so.
    unconfirmed: Option<UnconfirmedSize>,
    /// Hash of the plan that would be made now, if the session is bound to one.
    bound: Option<BoundPlan>,
}

/// Plan to which a session is bound, and the members that are components.
struct BoundPlan {
    planned: PlanHash,
    members: Vec<(ComponentId, String)>,
}

/// Selects the members of a pending session.
pub(super) async fn choose(
    shared: &ManagerState,
    peers: &SetupPeers,
    session: &Session,
    doubt: &mut InventoryDoubt,
) -> Result<MemberChoice, DependencyError> {
    let basis = basis(shared, session).await?;
    let found = undoubted(shared, peers, session, &basis, doubt).await?;
    let shown = shared.registry.wait_for_mirror(&shared.components).await;
    shown.map_err(|fault| DependencyError::from_mesh(Dependency::Registry, fault))?;
    let is_component = |id: &ComponentId| shared.components.get(id.as_str()).is_some();
    let FoundMembers { memberships: found, guarded_roles, .. } = found;
    let members = found.as_ref().ok().map(|found| taken(found, is_component)).unwrap_or_default();
    let size = shared.guard.concerns(session).then(|| shared.size(members.len(), guarded_roles));
    let unconfirmed = size.and_then(|size| shared.guard.admit_late(session, &size).err());
    let (left_out, memberships) = match found {
        Ok(memberships) => (left_out(&memberships, is_component), Ok(memberships)),
        Err(nobody) => {
            let error = nobody.to_string();
            let NoMembers::Nobody(memberships) = nobody else { return Err(DependencyError::Fatal(error)) };
            (left_out(&memberships, is_component), Err(error))
        }
    };
    log_left_out(session, &left_out);
    let bound = session.plan.map(|planned| BoundPlan { planned, members });
    Ok(MemberChoice { basis, memberships, left_out: left_out.into(), unconfirmed, bound })
}

/// Returns the members that are components, with their boot sets.
pub(crate) fn taken(
    memberships: &Memberships,
    is_component: impl Fn(&ComponentId) -> bool,
) -> Vec<(ComponentId, String)> {
    let all = memberships.iter().flat_map(|(name, one)| one.members.iter().map(move |id| (id, name)));
    all.filter(|(id, _)| is_component(id)).map(|(id, name)| (id.clone(), name.clone())).collect()
}

/// Returns the newest template and options of a session.
pub(crate) async fn basis(shared: &ManagerState, session: &Session) -> Result<SessionBasis, DependencyError> {
    let options = shared.registry.options().await;
    let options = options.map_err(|fault| DependencyError::from_mesh(Dependency::Registry, fault))?;
    // Another replica may have stored the template.
    let fresh = shared.templates.fresh().await;
    fresh.map_err(|fault| DependencyError::from_mesh(Dependency::Database, fault))?;
    let template = shared.template(&session.tenant, &session.template_name);
    let template = template
        .ok_or_else(|| DependencyError::Fatal(no_template(&session.tenant, &session.template_name)))?;
    Ok(SessionBasis { template, options })
}

impl MemberChoice {
    /// Plans the target states of the members. A session that is bound to a plan is set up only if the plan still holds.
    pub(super) async fn plan(
        self,
        peers: &SetupPeers,
        session: &Session,
    ) -> Result<AssignSessionRequest, DependencyError> {
        let SessionBasis { template, options } = &self.basis;
        let memberships = match self.memberships {
            Ok(memberships) => memberships,
            Err(error) => {
                check_plan(self.bound, session, &self.basis, &BTreeMap::new())?;
                return Err(DependencyError::Idle { reason: IdleReason::NoNodes, error });
            }
        };
        if let Some(unconfirmed) = self.unconfirmed {
            return Err(DependencyError::Fatal(format!("session not begun: {unconfirmed}")));
        }
        let targets = all_of(targets(peers, session.operation, template, &memberships, options).await)?;
        check_plan(self.bound, session, &self.basis, &targets)?;
        Ok(assign_session(session, assignments(&memberships, &targets)))
    }
}

/// Checks that the plan holds to which the session is bound.
fn check_plan(
    bound: Option<BoundPlan>,
    session: &Session,
    basis: &SessionBasis,
    targets: &BTreeMap<String, TargetState>,
) -> Result<(), DependencyError> {
    let Some(BoundPlan { planned, members }) = bound else { return Ok(()) };
    match planned.change(basis.hash(session, targets, &members)) {
        None => Ok(()),
        Some(change) => {
            Err(DependencyError::Fatal(format!("the plan of the session does not hold any more: {change}")))
        }
    }
}

impl SessionBasis {
    fn hash(
        &self,
        session: &Session,
        targets: &BTreeMap<String, TargetState>,
        members: &[(ComponentId, String)],
    ) -> PlanHash {
        let basis = PlanBasis { session, template: &self.template, options: &self.options };
        basis.hash(targets.iter(), members.iter().map(|(id, boot_set)| (id, boot_set.as_str())))
    }
}

/// Returns the change since the plan to which a new session is bound; `None`: the plan holds, or there is none.
///
/// # Errors
/// A dependency does not answer, or an image cannot be used.
pub(crate) async fn change_since_plan(
    shared: &ManagerState,
    peers: &SetupPeers,
    session: &Session,
) -> Result<Option<PlanChange>, DependencyError> {
    let Some(planned) = session.plan else { return Ok(None) };
    let RequestedMembers { basis, memberships, members, .. } = requested(shared, peers, session).await?;
    let SessionBasis { template, options } = &basis;
    let targets = all_of(targets(peers, session.operation, template, &memberships, options).await)?;
    Ok(planned.change(basis.hash(session, &targets, &members)))
}

/// Members that a requested session would have now.
pub(crate) struct RequestedMembers {
    basis: SessionBasis,
    memberships: Memberships,
    /// Members that are components, with their boot sets.
    pub(crate) members: Vec<(ComponentId, String)>,
    /// Roles of members that make a confirmation necessary.
    pub(crate) guarded_roles: BTreeSet<String>,
}

/// Returns the members that a requested session would have now.
///
/// # Errors
/// A dependency does not answer, or the template's nodes cannot be used.
pub(crate) async fn requested(
    shared: &ManagerState,
    peers: &SetupPeers,
    session: &Session,
) -> Result<RequestedMembers, DependencyError> {
    let basis = basis(shared, session).await?;
    let FoundMembers { memberships, guarded_roles, .. } = find(shared, peers, session, &basis).await?;
    let shown = shared.registry.wait_for_mirror(&shared.components).await;
    shown.map_err(|fault| DependencyError::from_mesh(Dependency::Registry, fault))?;
    let memberships = match memberships {
        Ok(memberships) => memberships,
        Err(NoMembers::Nobody(_)) => Memberships::new(),
        Err(refused) => return Err(DependencyError::Fatal(refused.to_string())),
    };
    let members = taken(&memberships, |id| shared.components.get(id.as_str()).is_some());
    Ok(RequestedMembers { basis, memberships, members, guarded_roles })
}

fn no_template(tenant: &Tenant, name: &str) -> String {
    match tenant.as_str() {
        "" => format!("Session template '{name}' does not exist"),
        tenant => format!("Session template for tenant '{tenant}' '{name}' does not exist"),
    }
}

/// Returns the nodes that a session takes. An inventory may lack names of the session for a moment only: until a later answer
/// confirms that, the setup waits, and asks for nothing. The lacking names are in the doubt then.
async fn undoubted(
    shared: &ManagerState,
    peers: &SetupPeers,
    session: &Session,
    basis: &SessionBasis,
    doubt: &mut InventoryDoubt,
) -> Result<FoundMembers, DependencyError> {
    if doubt.ask_in(now()).is_some_and(|wait| !wait.is_zero()) {
        check(doubt)?;
    }
    let mut found = find(shared, peers, session, basis).await?;
    if let Ok(_) | Err(NoMembers::Nobody(_)) = &found.memberships {
        *doubt = doubt.believe(mem::take(&mut found.lacking), now());
        check(doubt)?;
    }
    Ok(found)
}

/// Returns the nodes that a session would take by the inventory of now. The inventory of the whole machine is dropped
/// here, before the wait for images.
pub(crate) async fn find(
    shared: &ManagerState,
    peers: &SetupPeers,
    session: &Session,
    basis: &SessionBasis,
) -> Result<FoundMembers, DependencyError> {
    let SessionBasis { template, options } = basis;
    let limit =
        Limit::parse(&session.limit).map_err(|invalid| DependencyError::Fatal(invalid.to_string()))?;
    let tenant_nodes = peers.tenants.confirmed_nodes(&session.tenant).await;
    let tenant_nodes = tenant_nodes.map_err(|error| match error {
        DependencyError::Fatal(_) if shared.compatibility.strict_bos => {
            DependencyError::Fatal(format!("Data not found for tenant {}", session.tenant.as_str()))
        }
        error => error,
    })?;
    let deadline = Duration::from_secs(options.hsm_read_timeout.into()) + MARGIN;
    let inventory = peers.inventories.read(deadline).await?;
    let selection = Selection {
        limit: &limit,
        include_disabled: session.include_disabled,
        tenant_nodes: tenant_nodes.as_deref().map(|nodes| &nodes.elements),
        compatibility: shared.compatibility,
    };
    let memberships = membership::resolve(template, &inventory, selection);
    let lacking = match &memberships {
        Ok(found) | Err(NoMembers::Nobody(found)) => lacking(template, &limit, &inventory, found),
        Err(NoMembers::Foreign(_) | NoMembers::Malformed(_)) => BTreeSet::new(),
    };
    let members = memberships.as_ref().ok();
    let guarded_roles = members.map(|found| guarded_roles(shared, &inventory, found)).unwrap_or_default();
    Ok(FoundMembers { memberships, lacking, tenant_nodes, guarded_roles })
}

/// Returns the guarded roles of members that are components.
fn guarded_roles(
    shared: &ManagerState,
    inventory: &Inventory,
    memberships: &Memberships,
) -> BTreeSet<String> {
    let is_taken = |ids: &BTreeSet<ComponentId>| {
        let members = memberships.values().flat_map(|membership| &membership.members);
        members.filter(|id| ids.contains(*id)).any(|id| shared.components.get(id.as_str()).is_some())
    };
    let guarded = shared.guard.roles.iter();
    guarded.filter(|role| inventory.roles().get(*role).is_some_and(is_taken)).cloned().collect()
}

/// Returns an outage while names are in doubt.
fn check(doubt: &InventoryDoubt) -> Result<(), DependencyError> {
    match doubt.text() {
        Some(error) => Err(DependencyError::Retryable(DependencyOutage { what: Dependency::Content, error })),
        None => Ok(()),
    }
}

/// Logs the number of left-out nodes for each reason.
fn log_left_out(session: &Session, left_out: &[LeftOut]) {
    for LeftOut { boot_set, reason, names } in left_out {
        let reason = reason.word();
        let many = names.len();
        tracing::info!(session = session.name, boot_set, reason, many, "nodes left out of session");
    }
}

/// Target states of boot sets, by name, as far as there are any.
pub(crate) type FoundTargets = BTreeMap<String, Result<TargetState, DependencyError>>;

/// Computes the target state of every boot set that has members.
pub(crate) async fn targets(
    peers: &SetupPeers,
    operation: Operation,
    template: &SessionTemplate,
    memberships: &Memberships,
    options: &Options,
) -> FoundTargets {
    let peopled = memberships.iter().filter(|(_, membership)| !membership.members.is_empty());
    let names: Vec<&String> = peopled.map(|(name, _)| name).collect();
    let build = match operation {
        Operation::Shutdown => {
            return names.into_iter().map(|name| (name.clone(), Ok(target::shutdown()))).collect();
        }
        Operation::Boot => target::boot,
        Operation::Reboot => target::reboot,
    };
    let images = images(peers, template, &names, options).await;
    let frequency = options.actual_state_ttl_parameter();
    let target = |name: &String| {
        let boot_set = &template.boot_sets[name];
        let image =
            images[&(boot_set.kind.as_str(), boot_set.path.as_str())].as_ref().map_err(Clone::clone)?;
        let target = build(template, name, image, &frequency);
        target.map_err(|unbootable| DependencyError::Fatal(unbootable.to_string()))
    };
    names.into_iter().map(|name| (name.clone(), target(name))).collect()
}

/// Returns all targets, or the first error. A permanent error counts before an outage, which may take long to pass.
fn all_of(found: FoundTargets) -> Result<BTreeMap<String, TargetState>, DependencyError> {
    let mut targets = BTreeMap::new();
    let mut outage = None;
    for (name, target) in found {
        match target {
            Ok(target) => drop(targets.insert(name, target)),
            Err(error) if error.is_outage() => outage = outage.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    outage.map_or(Ok(targets), Err)
}

/// Images by kind of store and path; boot sets often share an image.
type Images<'a> = BTreeMap<(&'a str, &'a str), Result<ImageArtifacts, DependencyError>>;

/// Reads the images of these boot sets concurrently, each image once.
async fn images<'a>(
    peers: &SetupPeers,
    template: &'a SessionTemplate,
    boot_sets: &[&String],
    options: &Options,
) -> Images<'a> {
    let deadline = Duration::from_secs(options.ims_read_timeout.into());
    let boot_sets = boot_sets.iter().filter_map(|name| template.boot_sets.get(*name));
    let wanted: BTreeSet<_> = boot_sets.map(|set| (set.kind.as_str(), set.path.as_str())).collect();
    let images = wanted
        .into_iter()
        .map(|(kind, path)| async move { ((kind, path), peers.images.get(kind, path, deadline).await) });
    join_all(images).await.into_iter().collect()
}

fn assignments(memberships: &Memberships, targets: &BTreeMap<String, TargetState>) -> Vec<Assignment> {
    let peopled = targets.iter().filter_map(|(name, target)| Some((memberships.get(name)?, target)));
    peopled.map(|(membership, target)| assignment(&membership.members, target)).collect()
}
