//! Plans the assignment of a session: its members and their target states.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use chassis::process::clock::now;
use domain::{
    boot::{
        bos::options::Options,
        session::{
            IdleReason, Session,
            lacking::{InventoryDoubt, lacking},
            limit::Limit,
            membership::{self, LeftOut, Memberships, NoMembers, Selection, left_out},
        },
        template::{
            Operation, SessionTemplate,
            image::ImageArtifacts,
            target::{self, TargetState},
        },
    },
    core::id::{ComponentId, Tenant},
};
use futures_util::future::try_join_all;
use proto::component::{AssignSessionRequest, Assignment};

use super::SetupPeers;
use crate::{
    convert::target::{assign_session, assignment},
    dependency::{Dependency, DependencyError, DependencyOutage},
    shared::ManagerState,
};

/// Extra time for the registry beyond the deadline of its own upstream.
const MARGIN: Duration = Duration::from_secs(2);

/// Members of a session, and nodes that it leaves out.
pub(super) struct MemberChoice {
    template: SessionTemplate,
    options: Options,
    /// Members of every boot set, or the reason why there are none at all.
    memberships: Result<Memberships, String>,
    /// Nodes of the template that the session leaves out.
    pub(super) left_out: Arc<[LeftOut]>,
}

/// Selects the members of a pending session.
pub(super) async fn choose(
    shared: &ManagerState,
    peers: &SetupPeers,
    session: &Session,
    doubt: &mut InventoryDoubt,
) -> Result<MemberChoice, DependencyError> {
    let options = shared.registry.options().await;
    let options = options.map_err(|fault| DependencyError::from_mesh(Dependency::Registry, fault))?;
    // Another replica may have stored the template.
    let fresh = shared.templates.fresh().await;
    fresh.map_err(|fault| DependencyError::from_mesh(Dependency::Database, fault))?;
    let template = shared.template(&session.tenant, &session.template_name);
    let template = template
        .ok_or_else(|| DependencyError::Fatal(no_template(&session.tenant, &session.template_name)))?;
    let found = memberships(shared, peers, session, &template, &options, doubt).await?;
    let shown = shared.registry.wait_for_mirror(&shared.components).await;
    shown.map_err(|fault| DependencyError::from_mesh(Dependency::Registry, fault))?;
    let is_component = |id: &ComponentId| shared.components.get(id.as_str()).is_some();
    let (left_out, memberships) = match found {
        Ok(memberships) => (left_out(&memberships, is_component), Ok(memberships)),
        Err(nobody) => {
            let error = nobody.to_string();
            let NoMembers::Nobody(memberships) = nobody else { return Err(DependencyError::Fatal(error)) };
            (left_out(&memberships, is_component), Err(error))
        }
    };
    log_left_out(session, &left_out);
    Ok(MemberChoice { template, options, memberships, left_out: left_out.into() })
}

impl MemberChoice {
    /// Plans the target states of the members.
    pub(super) async fn plan(
        self,
        peers: &SetupPeers,
        session: &Session,
    ) -> Result<AssignSessionRequest, DependencyError> {
        let memberships =
            self.memberships.map_err(|error| DependencyError::Idle { reason: IdleReason::NoNodes, error })?;
        let targets = targets(peers, session.operation, &self.template, &memberships, &self.options).await?;
        Ok(assign_session(session, assignments(&memberships, &targets)))
    }
}

fn no_template(tenant: &Tenant, name: &str) -> String {
    match tenant.as_str() {
        "" => format!("Session template '{name}' does not exist"),
        tenant => format!("Session template for tenant '{tenant}' '{name}' does not exist"),
    }
}

/// Returns the members of every boot set, or the reason why there are none. An inventory may lack names of the session for
/// a moment only: until a later answer confirms that, the setup waits, and asks for nothing. The inventory of the whole
/// machine is dropped here, before the wait for images.
async fn memberships(
    shared: &ManagerState,
    peers: &SetupPeers,
    session: &Session,
    template: &SessionTemplate,
    options: &Options,
    doubt: &mut InventoryDoubt,
) -> Result<Result<Memberships, NoMembers>, DependencyError> {
    let limit =
        Limit::parse(&session.limit).map_err(|invalid| DependencyError::Fatal(invalid.to_string()))?;
    if doubt.ask_in(now()).is_some_and(|wait| !wait.is_zero()) {
        check(doubt)?;
    }
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
    let found = membership::resolve(template, &inventory, selection);
    if let Ok(memberships) | Err(NoMembers::Nobody(memberships)) = &found {
        *doubt = doubt.believe(lacking(template, &limit, &inventory, memberships), now());
        check(doubt)?;
    }
    Ok(found)
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

/// Computes the target state of every boot set that has members.
async fn targets(
    peers: &SetupPeers,
    operation: Operation,
    template: &SessionTemplate,
    memberships: &Memberships,
    options: &Options,
) -> Result<BTreeMap<String, TargetState>, DependencyError> {
    let peopled = memberships.iter().filter(|(_, membership)| !membership.members.is_empty());
    let names: Vec<&String> = peopled.map(|(name, _)| name).collect();
    let build = match operation {
        Operation::Shutdown => {
            return Ok(names.into_iter().map(|name| (name.clone(), target::shutdown())).collect());
        }
        Operation::Boot => target::boot,
        Operation::Reboot => target::reboot,
    };
    let images = images(peers, template, &names, options).await?;
    let frequency = options.actual_state_ttl_parameter();
    let mut targets = BTreeMap::new();
    for name in names {
        let boot_set = &template.boot_sets[name];
        let image = &images[&(boot_set.kind.as_str(), boot_set.path.as_str())];
        let target = build(template, name, image, &frequency);
        let target = target.map_err(|unbootable| DependencyError::Fatal(unbootable.to_string()))?;
        targets.insert(name.clone(), target);
    }
    Ok(targets)
}

/// Images by kind of store and path; boot sets often share an image.
type Images<'a> = BTreeMap<(&'a str, &'a str), ImageArtifacts>;

/// Reads the images of these boot sets concurrently, each image once.
async fn images<'a>(
    peers: &SetupPeers,
    template: &'a SessionTemplate,
    boot_sets: &[&String],
    options: &Options,
) -> Result<Images<'a>, DependencyError> {
    let deadline = Duration::from_secs(options.ims_read_timeout.into());
    let boot_sets = boot_sets.iter().filter_map(|name| template.boot_sets.get(*name));
    let wanted: BTreeSet<_> = boot_sets.map(|set| (set.kind.as_str(), set.path.as_str())).collect();
    let images = wanted.into_iter().map(|(kind, path)| async move {
        let image = peers.images.get(kind, path, deadline).await?;
        Ok(((kind, path), image))
    });
    Ok(try_join_all(images).await?.into_iter().collect())
}

fn assignments(memberships: &Memberships, targets: &BTreeMap<String, TargetState>) -> Vec<Assignment> {
    let peopled = targets.iter().filter_map(|(name, target)| Some((memberships.get(name)?, target)));
    peopled.map(|(membership, target)| assignment(&membership.members, target)).collect()
}
