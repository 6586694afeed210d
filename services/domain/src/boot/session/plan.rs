//! Plans: the effects that a session would have, judged by the rules of its setup while nothing is changed.
//!
//! Members, left-out nodes and target states come from the functions that set sessions up, and the expected power
//! actions from the evaluation of the record that an assignment would leave. So a plan and its session can differ only
//! where the machine has changed in between, which the [hash](PlanHash) shows.

mod change;
mod finding;
mod hash;
mod node;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

pub use change::{MemberChange, StateChange, StateMember};
pub use finding::{FindingReason, PlanFinding, Severity};
pub use hash::{MalformedHash, PlanBasis, PlanChange, PlanHash};
pub use node::{PlannedAction, PlannedNode};

use self::{
    change::ChangeTable,
    finding::findings,
    node::{Holders, expected},
};
use crate::{
    boot::{
        bos::options::Options,
        component::{Component, report::Assignment},
        power::PowerObservation,
        session::{
            Session,
            guard::UnconfirmedSize,
            lacking::LackingName,
            membership::{LeftOut, Memberships, left_out},
        },
        template::{Finding, SessionTemplate, target::TargetState},
    },
    core::{
        id::ComponentId,
        time::Timestamp,
        trouble::{Trouble, TroubleKind},
    },
};

/// Target states by the name of their boot set, as far as there are any; the error is the reason why there is none.
pub type Targets = BTreeMap<String, Result<TargetState, String>>;

/// Judgement of a template for a session: its warnings, or the first error.
pub type TemplateJudgement = Result<Vec<Finding>, Finding>;

/// Evidence for a plan. All of it was read, and nothing written.
#[derive(Debug, Clone, Copy)]
pub struct PlanInputs<'a> {
    /// Session that the request would create.
    pub session: &'a Session,
    /// Template of the session.
    pub template: &'a SessionTemplate,
    /// Judgement of the template.
    pub judgement: &'a TemplateJudgement,
    /// Options in force.
    pub options: &'a Options,
    /// Members and left-out nodes by boot set; or the reason why the template's nodes cannot be used at all.
    pub memberships: Result<&'a Memberships, &'a str>,
    /// Names of template and limit that mean nothing in the inventory.
    pub lacking: &'a [LackingName],
    /// Target states of boot sets with members.
    pub targets: &'a Targets,
    /// Sessions that are not over.
    pub under_way: &'a [Session],
    /// Whether an applied stage that is kept releases its session.
    pub complete_applied: bool,
    /// Nodes that the reader may see; `None`: every node.
    pub visible: Option<&'a BTreeSet<ComponentId>>,
    /// Power of the nodes; a node that is not there is unknown.
    pub power: &'a HashMap<String, PowerObservation>,
    /// Outages of upstreams, each in words with its begin.
    pub outages: &'a [String],
    /// Reason why a session of that size needs a confirmation, if it does.
    pub unconfirmed: Option<&'a UnconfirmedSize>,
    /// Time of the plan.
    pub now: Timestamp,
}

/// Effects that a session would have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPlan {
    /// Hash by which a session can be bound to this plan; `None`: the session would be refused or take no node.
    pub hash: Option<PlanHash>,
    /// Facts about the session as a whole, the gravest first.
    pub findings: Vec<PlanFinding>,
    /// Number of nodes by expected action.
    pub actions: BTreeMap<PlannedAction, usize>,
    /// Nodes that the session would take, sorted by id.
    pub nodes: Vec<PlannedNode>,
    /// Differences between the present and the planned boot of nodes, in the order of their first node.
    pub changes: Vec<StateChange>,
    /// Nodes, groups and roles that the session would leave out.
    pub left_out: Vec<LeftOut>,
}

/// Returns the effects that a session would have. `component` returns the record of a node.
pub fn plan(
    inputs: PlanInputs<'_>,
    component: impl Fn(&ComponentId) -> Option<Arc<Component>>,
) -> SessionPlan {
    let none = Memberships::new();
    let memberships = inputs.memberships.unwrap_or(&none);
    let (nodes, changes) = planned_nodes(inputs, memberships, &component);
    let left_out = left_out(memberships, |id| component(id).is_some()).into_iter();
    let left_out: Vec<_> =
        left_out.map(|one| one.seen(inputs.visible)).filter(|one| !one.names.is_empty()).collect();
    let findings = findings(inputs, &nodes, &left_out);
    let mut actions = BTreeMap::new();
    nodes.iter().for_each(|node| *actions.entry(node.action).or_default() += 1);
    let is_refused = findings.iter().any(|finding| finding.severity == Severity::Error);
    let hash = (!is_refused).then(|| {
        let targets = inputs.targets.iter().filter_map(|(name, target)| Some((name, target.as_ref().ok()?)));
        PlanBasis { session: inputs.session, template: inputs.template, options: inputs.options }
            .hash(targets, nodes.iter().map(|node| (&node.id, &*node.boot_set)))
    });
    SessionPlan { hash, findings, actions, nodes, changes, left_out }
}

/// Returns the nodes that the session takes, sorted by id, and the differences between states.
fn planned_nodes(
    inputs: PlanInputs<'_>,
    memberships: &Memberships,
    component: impl Fn(&ComponentId) -> Option<Arc<Component>>,
) -> (Vec<PlannedNode>, Vec<StateChange>) {
    let holders = Holders::of(inputs);
    let mut changes = ChangeTable::default();
    let mut nodes = Vec::new();
    for (name, membership) in memberships {
        let boot_set: Arc<str> = name.as_str().into();
        let target = inputs.targets.get(name).and_then(|target| target.as_ref().ok());
        let assignment = target.map(|target| assignment(inputs.session, target));
        for id in &membership.members {
            let Some(component) = component(id) else { continue };
            let power = inputs.power.get(id.as_str()).unwrap_or(&PowerObservation::Unknown);
            let action = assignment.as_ref().map_or(PlannedAction::Unknown, |assignment| {
                expected(&component, assignment, power, inputs.options, inputs.now)
            });
            nodes.push(PlannedNode {
                change: assignment.as_ref().and_then(|wanted| changes.number(&boot_set, &component, wanted)),
                boot_set: Arc::clone(&boot_set),
                power: power.clone(),
                action,
                held_by: holders.of_component(&component),
                id: component.id.clone(),
            });
        }
    }
    nodes.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    (nodes, changes.finish())
}

/// Returns the assignment that the session would send for the members of a boot set.
fn assignment(session: &Session, target: &TargetState) -> Assignment {
    Assignment {
        assignment_id: session.id.as_str().into(),
        session: session.name.as_str().into(),
        tenant: session.tenant.clone(),
        boot_artifacts: Arc::new(target.boot_artifacts.clone()),
        configuration: target.configuration.as_str().into(),
        clear_actual_state: target.clear_actual_state,
        clear_bss_token: target.clear_bss_token,
        stage: session.stage,
        pause: None,
        trace: Arc::clone(&session.trace),
    }
}

/// Most outages that a plan tells of. One cause may be told by every node in its own words.
const MOST_OUTAGES: usize = 10;

/// Returns the outages that a plan tells of: those of its own calls, and those that components wait for, whichever session
/// they belong to.
pub fn outages<'a>(own: Vec<Trouble>, components: impl IntoIterator<Item = &'a Component>) -> Vec<String> {
    let mut texts: BTreeSet<Arc<str>> = own.iter().map(|trouble| Arc::clone(trouble.text())).collect();
    for component in components {
        if texts.len() >= MOST_OUTAGES {
            break;
        }
        let trouble = component.error_trouble().filter(|_| component.is_enabled());
        texts.extend(
            trouble.filter(|one| one.kind() == TroubleKind::Waiting).map(|one| Arc::clone(one.text())),
        );
    }
    texts.into_iter().take(MOST_OUTAGES).map(|text| text.to_string()).collect()
}
