//! What a session is going to assign to whom.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use domain::{
    id::{ComponentId, Tenant},
    limit::Limit,
    membership::{self, LeftOut, Membership, NoMembers, Selection, left_out},
    options::Options,
    session::{Operation, Session},
    target::{self, ImageArtifacts, TargetState},
    template::SessionTemplate,
};
use futures_util::future::try_join_all;
use proto::component::{AssignSessionRequest, Assignment};

use super::Peers;
use crate::{
    convert::target::{assign_session, assignment},
    setback::Setback,
    shared::Shared,
};

/// How much longer than its upstream may take the registry gets to tell the inventory.
const MARGIN: Duration = Duration::from_secs(2);

/// Who is in a session and who is not.
pub(super) struct Choice {
    template: SessionTemplate,
    options: Options,
    /// The members of every boot set, or why there are none at all.
    memberships: Result<BTreeMap<String, Membership>, String>,
    /// Whom the session leaves alone although its template names them.
    pub(super) left_out: Arc<[LeftOut]>,
}

/// Finds the members of a pending session.
pub(super) async fn choose(shared: &Shared, peers: &Peers, session: &Session) -> Result<Choice, Setback> {
    let options = shared.registry.options().await;
    let options = options.map_err(|fault| Setback::from_mesh(super::REGISTRY, fault))?;
    // Another replica may have stored the template.
    let fresh = shared.templates.fresh().await;
    fresh.map_err(|fault| Setback::from_mesh(super::DATABASE, fault))?;
    let template = shared.template(&session.tenant, &session.template_name);
    let template =
        template.ok_or_else(|| Setback::Fail(no_template(&session.tenant, &session.template_name)))?;
    let found = memberships(shared, peers, session, &template, &options).await?;
    let shown = shared.registry.shown_by(&shared.components).await;
    shown.map_err(|fault| Setback::from_mesh(super::REGISTRY, fault))?;
    let is_component = |id: &ComponentId| shared.components.get(id.as_str()).is_some();
    let (left_out, memberships) = match found {
        Ok(memberships) => (left_out(&memberships, is_component), Ok(memberships)),
        Err(nobody) => {
            let error = nobody.to_string();
            let NoMembers::Nobody(memberships) = nobody else { return Err(Setback::Fail(error)) };
            (left_out(&memberships, is_component), Err(error))
        }
    };
    log_left_out(session, &left_out);
    Ok(Choice { template, options, memberships, left_out: left_out.into() })
}

impl Choice {
    /// What the members are to run.
    pub(super) async fn plan(
        self,
        peers: &Peers,
        session: &Session,
    ) -> Result<AssignSessionRequest, Setback> {
        let memberships = self.memberships.map_err(Setback::Fail)?;
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

/// The members of every boot set, or why there are none. The picture of the whole machine is let go of here, before
/// images are waited for.
async fn memberships(
    shared: &Shared,
    peers: &Peers,
    session: &Session,
    template: &SessionTemplate,
    options: &Options,
) -> Result<Result<BTreeMap<String, Membership>, NoMembers>, Setback> {
    let limit = Limit::parse(&session.limit).map_err(|invalid| Setback::Fail(invalid.to_string()))?;
    let tenant_nodes = peers.tenants.confirmed_nodes(&session.tenant).await;
    let tenant_nodes = tenant_nodes.map_err(|setback| match setback {
        Setback::Fail(_) if shared.compatibility.strict_bos => {
            Setback::Fail(format!("Data not found for tenant {}", session.tenant.as_str()))
        }
        setback => setback,
    })?;
    let deadline = Duration::from_secs(options.hsm_read_timeout.into()) + MARGIN;
    let inventory = peers.inventories.read(deadline).await?;
    let selection = Selection {
        limit: &limit,
        include_disabled: session.include_disabled,
        tenant_nodes: tenant_nodes.as_deref().map(|nodes| &nodes.elements),
        compatibility: shared.compatibility,
    };
    Ok(membership::resolve(template, &inventory, selection))
}

/// Says how many were left alone and why.
fn log_left_out(session: &Session, left_out: &[LeftOut]) {
    for LeftOut { boot_set, reason, names } in left_out {
        let (reason, many) = (reason.word(), names.len());
        tracing::info!(session = session.name, boot_set, reason, many, "left alone");
    }
}

/// What the members of every boot set that has members are to run.
async fn targets(
    peers: &Peers,
    operation: Operation,
    template: &SessionTemplate,
    memberships: &BTreeMap<String, Membership>,
    options: &Options,
) -> Result<BTreeMap<String, TargetState>, Setback> {
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
    let target = |name: &String| {
        let boot_set = &template.boot_sets[name];
        let image = &images[&(boot_set.kind.as_str(), boot_set.path.as_str())];
        let target = build(template, name, image, &frequency);
        Ok((name.clone(), target.map_err(|unbootable| Setback::Fail(unbootable.to_string()))?))
    };
    names.into_iter().map(target).collect()
}

/// Images by the kind of their store and path; boot sets often share one.
type Images<'a> = BTreeMap<(&'a str, &'a str), ImageArtifacts>;

/// The images of these boot sets, each asked for once and all at the same time.
async fn images<'a>(
    peers: &Peers,
    template: &'a SessionTemplate,
    boot_sets: &[&String],
    options: &Options,
) -> Result<Images<'a>, Setback> {
    let deadline = Duration::from_secs(options.ims_read_timeout.into());
    let boot_sets = boot_sets.iter().filter_map(|name| template.boot_sets.get(*name));
    let wanted: BTreeSet<_> = boot_sets.map(|set| (set.kind.as_str(), set.path.as_str())).collect();
    let images = wanted.into_iter().map(|(kind, path)| async move {
        let image = peers.images.get(kind, path, deadline).await?;
        Ok(((kind, path), image))
    });
    Ok(try_join_all(images).await?.into_iter().collect())
}

fn assignments(
    memberships: &BTreeMap<String, Membership>,
    targets: &BTreeMap<String, TargetState>,
) -> Vec<Assignment> {
    let peopled = targets.iter().filter_map(|(name, target)| Some((memberships.get(name)?, target)));
    peopled.map(|(membership, target)| assignment(&membership.members, target)).collect()
}
