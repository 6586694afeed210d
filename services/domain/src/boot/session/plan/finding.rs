//! Facts about a planned session that an operator wants to know before it is created.

use std::{collections::BTreeMap, sync::Arc};

use super::{PlanInputs, PlannedAction, PlannedNode};
use crate::boot::{
    session::{
        Progress,
        lacking::LackingName,
        limit::names_nid,
        membership::{LeftOut, LeftOutReason},
    },
    template::{Finding, target::TargetState},
};

/// Most names that a finding shows.
const MOST_NAMES: usize = 10;

/// Beginning of the word of a kernel command line that gives the node a console.
const CONSOLE: &str = "console=";

/// Weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The session would be refused, or fail before it touches a node.
    Error,
    /// Fact that an operator may not expect.
    Warning,
    /// Fact to know.
    Info,
}

impl Severity {
    /// Returns the word for the severity.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// Reason of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingReason {
    /// The check of template and images, as for a session, finds a defect.
    Template,
    /// A boot set gives nothing that its nodes could boot, or its image cannot be read.
    Unbootable,
    /// The template names nodes that the session may not use, or entries that are no nodes.
    NodesRefused,
    /// No node would be taken.
    NothingTaken,
    /// An upstream does not answer.
    UpstreamDown,
    /// The inventory lists no hardware.
    InventoryEmpty,
    /// The inventory does not list nodes.
    NodesUnknown,
    /// Groups or roles do not exist, or have no members.
    GroupsUnknown,
    /// Names in the limit mean nothing in the inventory.
    LimitUnknown,
    /// The limit has numeric node ids, which match no node.
    LimitNids,
    /// Nodes have another architecture than their boot set.
    WrongArchitecture,
    /// Nodes of the inventory are no components.
    NotComponents,
    /// The kernel parameters give nodes no console.
    NoConsole,
    /// The power of nodes is unknown, and so are the actions on them.
    PowerUnknown,
    /// Nodes, or stages in them, are taken from a session that is under way.
    Superseded,
    /// Sessions are pending, and may take the same nodes.
    PendingSessions,
    /// A session of that size needs a confirmation.
    Unconfirmed,
}

impl FindingReason {
    /// Returns the word for the reason.
    pub fn word(self) -> &'static str {
        match self {
            Self::Template => "template",
            Self::Unbootable => "unbootable",
            Self::NodesRefused => "nodes_refused",
            Self::NothingTaken => "nothing_taken",
            Self::UpstreamDown => "upstream_down",
            Self::InventoryEmpty => "inventory_empty",
            Self::NodesUnknown => "nodes_unknown",
            Self::GroupsUnknown => "groups_unknown",
            Self::LimitUnknown => "limit_unknown",
            Self::LimitNids => "limit_nids",
            Self::WrongArchitecture => "wrong_architecture",
            Self::NotComponents => "not_components",
            Self::NoConsole => "no_console",
            Self::PowerUnknown => "power_unknown",
            Self::Superseded => "superseded",
            Self::PendingSessions => "pending_sessions",
            Self::Unconfirmed => "unconfirmed",
        }
    }
}

/// Fact about a planned session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFinding {
    /// Weight of the fact.
    pub severity: Severity,
    /// Reason.
    pub reason: FindingReason,
    /// Boot set that the fact is about; `None`: the whole session.
    pub boot_set: Option<Arc<str>>,
    /// Fact in words, for people.
    pub text: String,
    /// The first of the nodes, groups or sessions that the fact is about.
    pub names: Vec<String>,
    /// Number of them; 0: the fact is about none.
    pub count: usize,
}

impl PlanFinding {
    fn new(severity: Severity, reason: FindingReason, text: impl Into<String>) -> Self {
        Self { severity, reason, boot_set: None, text: text.into(), names: Vec::new(), count: 0 }
    }

    fn of_boot_set(self, boot_set: &str) -> Self {
        Self { boot_set: Some(boot_set.into()), ..self }
    }

    /// Returns the finding about these names; `None`: there are none.
    fn about<'a>(self, names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut names = names.into_iter();
        let first: Vec<_> = names.by_ref().take(MOST_NAMES).map(str::to_owned).collect();
        let count = first.len() + names.count();
        (count > 0).then_some(Self { names: first, count, ..self })
    }
}

/// Returns the findings about a planned session, the gravest first.
pub(super) fn findings(
    inputs: PlanInputs<'_>,
    nodes: &[PlannedNode],
    left_out: &[LeftOut],
) -> Vec<PlanFinding> {
    let mut all = of_template(inputs);
    all.extend(of_members(inputs, nodes));
    all.extend(of_names(inputs));
    all.extend(of_left_out(left_out));
    all.extend(
        inputs
            .outages
            .iter()
            .map(|outage| PlanFinding::new(Severity::Warning, FindingReason::UpstreamDown, outage.as_str())),
    );
    all.extend(of_power(nodes));
    all.extend(of_sessions(inputs, nodes));
    all.extend(inputs.unconfirmed.map(|size| {
        let text = format!("{size}, or bind the session to this plan");
        PlanFinding::new(Severity::Info, FindingReason::Unconfirmed, text)
    }));
    all.sort_by_key(|finding| finding.severity);
    all
}

fn of_template(inputs: PlanInputs<'_>) -> Vec<PlanFinding> {
    let judged = |severity, finding: &Finding| {
        let found = PlanFinding::new(severity, FindingReason::Template, finding.to_string());
        match &finding.boot_set {
            Some(boot_set) => found.of_boot_set(boot_set),
            None => found,
        }
    };
    let mut found: Vec<_> = match inputs.judgement {
        Ok(warnings) => warnings.iter().map(|finding| judged(Severity::Warning, finding)).collect(),
        Err(error) => vec![judged(Severity::Error, error)],
    };
    for (name, target) in inputs.targets {
        match target {
            Err(reason) => found.push(
                PlanFinding::new(Severity::Error, FindingReason::Unbootable, reason.as_str())
                    .of_boot_set(name),
            ),
            Ok(target) if lacks_console(target) => found.push(
                PlanFinding::new(
                    Severity::Warning,
                    FindingReason::NoConsole,
                    "the kernel parameters have no console=, so nodes show nothing while they boot",
                )
                .of_boot_set(name),
            ),
            Ok(_) => {}
        }
    }
    found
}

fn lacks_console(target: &TargetState) -> bool {
    let parameters = target.boot_artifacts.kernel_parameters.as_deref().unwrap_or_default();
    target.boot_artifacts.kernel_wanted()
        && !parameters.split_whitespace().any(|word| word.starts_with(CONSOLE))
}

/// Returns the reason why the session takes no node.
fn of_members(inputs: PlanInputs<'_>, nodes: &[PlannedNode]) -> Option<PlanFinding> {
    let error = |reason, text: &str| PlanFinding::new(Severity::Error, reason, text);
    match inputs.memberships {
        Err(text) => Some(error(FindingReason::NodesRefused, text)),
        Ok(_) if nodes.is_empty() => {
            Some(error(FindingReason::NothingTaken, "the session would take no node"))
        }
        Ok(_) => None,
    }
}

/// Returns findings about names that mean nothing.
fn of_names(inputs: PlanInputs<'_>) -> Vec<PlanFinding> {
    let (mut nodes, mut groups, mut limited) = (Vec::new(), Vec::new(), Vec::new());
    let mut found = Vec::new();
    for name in inputs.lacking {
        match name {
            LackingName::Hardware => found.push(PlanFinding::new(
                Severity::Warning,
                FindingReason::InventoryEmpty,
                "the inventory lists no hardware at all",
            )),
            LackingName::Node(name) => nodes.push(name.as_str()),
            LackingName::Set(name) => groups.push(name.as_str()),
            LackingName::InLimit(name) => limited.push(name.as_str()),
        }
    }
    let warning = |reason, text| PlanFinding::new(Severity::Warning, reason, text);
    let about_nodes =
        warning(FindingReason::NodesUnknown, "the inventory does not list nodes of the template");
    let about_groups =
        warning(FindingReason::GroupsUnknown, "groups or roles of the template do not exist or are empty");
    let about_limit =
        warning(FindingReason::LimitUnknown, "names in the limit mean nothing in the inventory");
    found.extend(about_nodes.about(nodes));
    found.extend(about_groups.about(groups));
    found.extend(about_limit.about(limited));
    found.extend(
        names_nid(&inputs.session.limit).then(|| {
            warning(FindingReason::LimitNids, "the limit has numeric node ids, which match no node")
        }),
    );
    found
}

/// Returns findings about left-out nodes that an operator cannot have meant to leave out.
fn of_left_out(left_out: &[LeftOut]) -> Vec<PlanFinding> {
    let found = left_out.iter().filter_map(|left| {
        let (reason, text) = match left.reason {
            LeftOutReason::WrongArchitecture => (
                FindingReason::WrongArchitecture,
                "nodes have another architecture than their boot set, and are left out",
            ),
            LeftOutReason::NotAComponent => (
                FindingReason::NotComponents,
                "nodes of the inventory are no components yet, and are left out",
            ),
            // These are wished, are told with the names that mean nothing, or are counted alone.
            LeftOutReason::NotInLimit
            | LeftOutReason::Locked
            | LeftOutReason::ForeignTenant
            | LeftOutReason::UnknownToInventory
            | LeftOutReason::Disabled
            | LeftOutReason::InLaterBootSet
            | LeftOutReason::UnknownGroup
            | LeftOutReason::UnknownRole => return None,
        };
        let finding = PlanFinding::new(Severity::Warning, reason, text).of_boot_set(&left.boot_set);
        finding.about(left.names.iter().map(String::as_str))
    });
    found.collect()
}

/// Returns the finding about nodes whose action depends on an unknown power.
fn of_power(nodes: &[PlannedNode]) -> Option<PlanFinding> {
    let unknown = nodes.iter().filter(|node| node.action == PlannedAction::Unknown && !node.is_known());
    PlanFinding::new(
        Severity::Warning,
        FindingReason::PowerUnknown,
        "the power of nodes is unknown, and so is what would be done to them",
    )
    .about(unknown.map(|node| node.id.as_str()))
}

/// Returns findings about other sessions that are not over.
fn of_sessions(inputs: PlanInputs<'_>, nodes: &[PlannedNode]) -> Vec<PlanFinding> {
    let mut held: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        if let Some(holder) = &node.held_by {
            held.entry(holder).or_default().push(node.id.as_str());
        }
    }
    let mut found: Vec<_> = held.into_iter().filter_map(|(session, ids)| superseded(session, ids)).collect();
    let pending = inputs.under_way.iter().filter(|session| session.progress == Progress::Pending);
    let finding = PlanFinding::new(
        Severity::Info,
        FindingReason::PendingSessions,
        "sessions are pending, and may take the same nodes",
    );
    found.extend(finding.about(pending.map(|session| session.name.as_str())));
    found
}

fn superseded(session: &str, ids: Vec<&str>) -> Option<PlanFinding> {
    let text = format!("session '{session}' is under way and would lose nodes to this one");
    PlanFinding::new(Severity::Warning, FindingReason::Superseded, text).about(ids)
}
