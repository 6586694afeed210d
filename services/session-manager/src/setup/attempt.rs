//! One attempt at setting a session up.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use chassis::{Channel, channel::LARGEST_MESSAGE, within};
use domain::{
    id::{ComponentId, Tenant},
    limit::Limit,
    membership::{self, Exclusion, Membership, Selection},
    options::Options,
    session::{Operation, Progress, Session},
    target::{self, ImageArtifacts, TargetState},
    template::SessionTemplate,
};
use futures_util::future::try_join_all;
use proto::component::{AssignSessionResponse, Assignment, report_service_client::ReportServiceClient};

use crate::{
    convert::target::{assign_session, assignment},
    images,
    inventories::Inventories,
    record::key,
    setback::Setback,
    shared::Shared,
};

/// Who cannot be asked, in texts for people.
const REGISTRY: &str = "component registry";

/// How much longer than its upstream may take the registry gets to tell the inventory.
const MARGIN: Duration = Duration::from_secs(2);

/// How long the registry gets to assign members: a hundred thousand take it a few seconds.
const ASSIGNMENT: Duration = Duration::from_secs(60);

/// What a session comes to when none of its nodes is a component (BOS reference A.2).
const NO_COMPONENTS: &str = "All nodes found to act upon do not exist as BOS components";

/// Who is asked and told during a setup. Clones share the connections.
#[derive(Clone)]
pub(crate) struct Peers {
    inventories: Arc<Inventories>,
    registry: ReportServiceClient<Channel>,
    images: images::Driver,
}

impl Peers {
    /// The registry behind `registry`, and images by `images`.
    pub(crate) fn new(registry: Channel, images: images::Driver) -> Self {
        let inventories = Arc::new(Inventories::new(registry.clone()));
        let registry = ReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE);
        Self { inventories, registry, images }
    }
}

/// The members that a session got, and the revision of the registry that includes that.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    pub(super) members: Vec<ComponentId>,
    pub(super) revision: u64,
}

/// Finds the members of a pending session and gives them what they are to run, all or none.
pub(super) async fn attempt(shared: &Shared, peers: &Peers, session: &Session) -> Result<Assigned, Setback> {
    let options = shared.options().map_err(|fault| Setback::from_peer(REGISTRY, fault))?;
    let template = shared.template(&session.tenant, &session.template_name);
    let template =
        template.ok_or_else(|| Setback::Fail(no_template(&session.tenant, &session.template_name)))?;
    let limit = Limit::parse(&session.limit).map_err(|invalid| Setback::Fail(invalid.to_string()))?;
    let deadline = Duration::from_secs(options.hsm_read_timeout.into()) + MARGIN;
    let inventory = peers.inventories.read(deadline).await?;
    let selection = Selection {
        limit: &limit,
        include_disabled: session.include_disabled,
        // No service tells yet which nodes a tenant has, so a tenant's session may use every node.
        tenant_nodes: None,
        compatibility: shared.compatibility,
    };
    let memberships = membership::resolve(&template, &inventory, selection);
    let memberships = memberships.map_err(|nobody| Setback::Fail(nobody.to_string()))?;
    log_exclusions(session, &memberships);
    let targets = targets(peers, session.operation, &template, &memberships, &options).await?;
    check_wanted(shared, session)?;
    assign(peers, session, assignments(&memberships, &targets)).await
}

/// Peers may have taken long to answer, and who deleted the session meanwhile wants no node to be touched.
fn check_wanted(shared: &Shared, session: &Session) -> Result<(), Setback> {
    let newest = shared.sessions.view().get(&key(&session.tenant, &session.name));
    match newest.filter(|newest| newest.is_still(&session.id, Progress::Pending)) {
        Some(_) => Ok(()),
        None => Err(Setback::Wait("it was deleted or ended while it was set up".to_owned())),
    }
}

fn no_template(tenant: &Tenant, name: &str) -> String {
    match tenant.as_str() {
        "" => format!("Session template '{name}' does not exist"),
        tenant => format!("Session template for tenant '{tenant}' '{name}' does not exist"),
    }
}

/// Says how many nodes were left alone and why.
fn log_exclusions(session: &Session, memberships: &BTreeMap<String, Membership>) {
    for (boot_set, membership) in memberships {
        for reason in Exclusion::ALL {
            let nodes = membership.excluded.iter().filter(|(_, excluded)| *excluded == reason).count();
            if nodes > 0 {
                tracing::info!(
                    session = session.name,
                    boot_set,
                    reason = reason.word(),
                    nodes,
                    "nodes left alone"
                );
            }
        }
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
        let image = peers.images.image(kind, path, deadline).await?;
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

async fn assign(peers: &Peers, session: &Session, assignments: Vec<Assignment>) -> Result<Assigned, Setback> {
    let mut registry = peers.registry.clone();
    let request = assign_session(session, assignments);
    let answer = within(ASSIGNMENT, registry.assign_session(request)).await;
    let AssignSessionResponse { assigned_ids, revision } =
        answer.map_err(|status| Setback::from_peer(REGISTRY, status))?.into_inner();
    if assigned_ids.is_empty() {
        return Err(Setback::Fail(NO_COMPONENTS.to_owned()));
    }
    let members = assigned_ids.iter().map(|id| ComponentId::parse(id)).collect::<Result<_, _>>();
    let members = members.map_err(|invalid| Setback::Wait(format!("{REGISTRY}: {invalid}")))?;
    Ok(Assigned { members, revision })
}
