//! Hosts as nodes of the inventory: which hosts are nodes, and the id of each.

mod index;

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::Arc,
};

use crate::{
    core::{id::ComponentId, limits::LONGEST_NAME, time::Timestamp},
    host::record::{Host, HostKey, annotations::UnreadableText, state::HostState, status::OperationalStatus},
};

pub use index::NodeIndex;

/// Labels and annotations of a host that only its node needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeMarks {
    /// Wanted id of the component.
    pub xname: Option<Arc<str>>,
    /// Numeric node id; `Err`: its text cannot be read.
    pub nid: Option<Result<u32, UnreadableText>>,
    /// Name of the node's group.
    pub group: Option<Arc<str>>,
    /// Creation of the record; `None`: not known.
    pub created_at: Option<Timestamp>,
}

/// Host with the marks of its node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkedHost {
    /// Host.
    pub host: Host,
    /// Marks of its node.
    pub marks: NodeMarks,
}

/// Node that the inventory lists for a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNode {
    /// Host of the node.
    pub host: HostKey,
    /// Id of the component.
    pub id: ComponentId,
    /// Processor architecture in the inventory's words: `X86`, `ARM` or `Other`; empty: not known.
    pub architecture: &'static str,
    /// Numeric node id; 0: none.
    pub nid: u32,
    /// Name of the node's group.
    pub group: Option<Arc<str>>,
    /// Network card that the node boots from; `None`: not known.
    pub boot_mac: Option<Arc<str>>,
    /// Creation of the host; `None`: not known.
    pub created_at: Option<Timestamp>,
    /// Whether an operation on the host is under way, so that the node must not be switched.
    pub is_worked_on: bool,
}

/// Nodes of all hosts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NodeListing {
    /// Nodes with different ids, from the oldest host to the newest.
    pub nodes: Vec<HostNode>,
    /// Hosts that could be nodes and are left out.
    pub left_out: Vec<(HostKey, LeftOutReason)>,
}

/// Reason for which a host is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftOutReason {
    /// The wanted id cannot be the id of a component.
    UnusableXname,
    /// The numeric node id cannot be read.
    UnreadableNid,
    /// An older host has the id.
    SameId {
        /// Id of both hosts.
        id: ComponentId,
        /// Host that has the id.
        other: HostKey,
    },
}

impl fmt::Display for LeftOutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnusableXname => write!(f, "xname: must have 1 to {LONGEST_NAME} characters"),
            Self::UnreadableNid => write!(f, "nid: is not a number from 0 to {}", u32::MAX),
            Self::SameId { id, other } => write!(f, "{id} is the id of {}/{}", other.namespace, other.name),
        }
    }
}

/// Lists the nodes of `hosts`. The oldest of several hosts with the same id keeps it: a host that is created later must
/// not take over a component.
pub fn list(mut hosts: Vec<MarkedHost>) -> NodeListing {
    hosts.retain(|one| is_node(&one.host));
    hosts.sort_by(|one, other| age(one).cmp(&age(other)));
    let mut listing = NodeListing::default();
    let mut owners: HashMap<ComponentId, HostKey> = HashMap::new();
    for one in hosts {
        let key = one.host.meta.key.clone();
        match node(&one).and_then(|node| claim(&mut owners, node)) {
            Ok(node) => listing.nodes.push(node),
            Err(reason) => listing.left_out.push((key, reason)),
        }
    }
    listing
}

/// Returns whether a host can be a node: it is ready for a system or runs one that it was provisioned with, and nothing
/// keeps it from being worked on.
pub fn is_node(host: &Host) -> bool {
    let annotations = &host.meta.annotations;
    let is_detached =
        annotations.detached.is_some() || host.status.operational == OperationalStatus::Detached;
    is_at_rest(host.state()) && !host.is_deleted() && !is_detached && !annotations.paused
}

/// Returns the node of a host.
///
/// # Errors
/// A mark of the host cannot be used.
pub fn node(MarkedHost { host, marks }: &MarkedHost) -> Result<HostNode, LeftOutReason> {
    let key = &host.meta.key;
    let id = id(marks.xname.as_deref(), key)?;
    let nid = marks.nid.unwrap_or(Ok(0)).map_err(|_| LeftOutReason::UnreadableNid)?;
    Ok(HostNode {
        host: key.clone(),
        id,
        architecture: architecture(host),
        nid,
        group: marks.group.clone(),
        boot_mac: host.spec.boot_mac.clone(),
        created_at: marks.created_at,
        is_worked_on: host.progress.work.is_some(),
    })
}

/// Returns the id of the node that a host is or may become.
///
/// # Errors
/// The wanted id cannot be the id of a component.
pub fn id(xname: Option<&str>, key: &HostKey) -> Result<ComponentId, LeftOutReason> {
    match xname {
        Some(xname) => ComponentId::parse(xname).map_err(|_| LeftOutReason::UnusableXname),
        None => Ok(own_id(key)),
    }
}

/// Returns the id of a host that names none: its name, or a name of at most the length of an id with its namespace.
fn own_id(key: &HostKey) -> ComponentId {
    ComponentId::parse(&key.name).unwrap_or_else(|_| {
        let whole = format!("{}-{}", key.namespace, key.name);
        let cut: String = whole.chars().take(LONGEST_NAME).collect();
        ComponentId::parse(&cut).expect("the text has the hyphen, and no more characters than an id")
    })
}

fn claim(owners: &mut HashMap<ComponentId, HostKey>, node: HostNode) -> Result<HostNode, LeftOutReason> {
    match owners.entry(node.id.clone()) {
        Entry::Vacant(place) => {
            place.insert(node.host.clone());
            Ok(node)
        }
        Entry::Occupied(owner) => Err(LeftOutReason::SameId { id: node.id, other: owner.get().clone() }),
    }
}

fn age(one: &MarkedHost) -> (Option<Timestamp>, &HostKey) {
    (one.marks.created_at, &one.host.meta.key)
}

/// Returns whether a host in this state waits for a system or runs its own. Other means installed an externally
/// provisioned host, so no session may boot it.
fn is_at_rest(state: HostState) -> bool {
    match state {
        HostState::Available | HostState::Ready | HostState::Provisioned => true,
        HostState::Unset
        | HostState::Unmanaged
        | HostState::Registering
        | HostState::Inspecting
        | HostState::MatchProfile
        | HostState::Preparing
        | HostState::Provisioning
        | HostState::ExternallyProvisioned
        | HostState::Deprovisioning
        | HostState::PoweringOffBeforeDelete
        | HostState::Deleting => false,
    }
}

fn architecture(host: &Host) -> &'static str {
    let inspected = host.status.hardware.as_ref().map_or("", |hardware| &hardware.architecture);
    let wanted: &str = &host.spec.architecture;
    match if wanted.is_empty() { inspected } else { wanted } {
        "" => "",
        "x86_64" => "X86",
        "aarch64" => "ARM",
        _ => "Other",
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::host::record::{HostDeletion, annotations::DetachMark, status::HostInventory};

    fn host(name: &str, state: HostState, change: impl FnOnce(&mut MarkedHost)) -> MarkedHost {
        let mut one = MarkedHost::default();
        one.host.meta.key = HostKey { namespace: "m".into(), name: name.into() };
        one.host.status.provisioning.state = state;
        change(&mut one);
        one
    }

    fn available(name: &str, change: impl FnOnce(&mut MarkedHost)) -> MarkedHost {
        host(name, HostState::Available, change)
    }

    fn show(hosts: Vec<MarkedHost>) -> String {
        let NodeListing { nodes, left_out } = list(hosts);
        let nodes = nodes.into_iter().map(|node| {
            let group = node.group.as_deref().unwrap_or("-");
            format!("{} is {} {:?} {} {group}\n", node.host.name, node.id, node.architecture, node.nid)
        });
        let left_out = left_out.into_iter().map(|(host, reason)| format!("not {}: {reason}\n", host.name));
        nodes.chain(left_out).collect()
    }

    #[test]
    fn hosts_at_rest_are_nodes() {
        let states = HostState::ALL.map(|state| host(state.word(), state, |_| {}));
        expect![[r#"
            available is available "" 0 -
            provisioned is provisioned "" 0 -
            ready is ready "" 0 -
        "#]]
        .assert_eq(&show(states.into()));
    }

    #[test]
    fn hosts_that_must_be_left_alone_are_no_nodes() {
        let hosts = vec![
            available("deleted", |one| one.host.meta.deletion = Some(HostDeletion::Orderly)),
            available("paused", |one| one.host.meta.annotations.paused = true),
            available("detached", |one| one.host.meta.annotations.detached = Some(DetachMark::default())),
            available("attaching", |one| one.host.status.operational = OperationalStatus::Detached),
        ];
        assert_eq!(show(hosts), "");
    }

    #[test]
    fn nodes_carry_the_marks_of_their_hosts() {
        let arch =
            |name: &str| Some(Arc::new(HostInventory { architecture: name.into(), ..Default::default() }));
        let long = "n".repeat(LONGEST_NAME + 1);
        let hosts = vec![
            available("a-marked", |one| {
                one.marks.xname = Some("x1c0s0b0n0".into());
                one.marks.nid = Some(Ok(7));
                one.marks.group = Some("blue".into());
                one.host.status.hardware = arch("x86_64");
            }),
            available("b-wanted", |one| {
                one.host.spec.architecture = "aarch64".into();
                one.host.status.hardware = arch("x86_64");
            }),
            available("c-odd", |one| one.host.status.hardware = arch("riscv64")),
            available("d-bad-xname", |one| one.marks.xname = Some("".into())),
            available("e-bad-nid", |one| one.marks.nid = Some(Err(UnreadableText))),
        ];
        expect![[r#"
            a-marked is x1c0s0b0n0 "X86" 7 blue
            b-wanted is b-wanted "ARM" 0 -
            c-odd is c-odd "Other" 0 -
            not d-bad-xname: xname: must have 1 to 127 characters
            not e-bad-nid: nid: is not a number from 0 to 4294967295
        "#]]
        .assert_eq(&show(hosts));
        let listing = list(vec![available(&long, |_| {})]);
        assert_eq!(listing.nodes[0].id.as_str(), format!("m-{}", "n".repeat(LONGEST_NAME - 2)));
    }

    #[test]
    fn the_oldest_of_equal_ids_keeps_it() {
        let same = |name: &str, created: i64| {
            available(name, |one| {
                one.marks.xname = Some("x1".into());
                one.marks.created_at = Some(Timestamp(created));
            })
        };
        expect![[r#"
            b is x1 "" 0 -
            c is c "" 0 -
            not a: x1 is the id of m/b
            not d: x1 is the id of m/b
        "#]]
        .assert_eq(&show(vec![
            same("a", 2),
            same("b", 1),
            available("c", |one| one.marks.created_at = Some(Timestamp(1))),
            same("d", 2),
        ]));
    }
}
