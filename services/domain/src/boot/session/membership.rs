//! The nodes that a session acts on, and the reasons for leaving others out (BOS reference 5.4.1, 5.4.3).

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::{
    boot::{
        bos::compatibility::Compatibility,
        session::{
            inventory::{Inventory, NamedSets},
            limit::Limit,
        },
        template::{Arch, BootSet, SessionTemplate},
    },
    core::{id::ComponentId, invalid::Invalid},
};

/// Reason why a node, group or role of the template adds no member to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LeftOutReason {
    /// The limit does not select the node.
    NotInLimit,
    /// The node is locked against power operations.
    Locked,
    /// The node belongs to another tenant than the session.
    ForeignTenant,
    /// The inventory does not list the node.
    UnknownToInventory,
    /// The architecture of the node is not that of the boot set.
    WrongArchitecture,
    /// The inventory disables the node.
    Disabled,
    /// A boot set whose name sorts later takes the node.
    InLaterBootSet,
    /// The inventory has no such group.
    UnknownGroup,
    /// The inventory has no such role, or no hardware with it.
    UnknownRole,
    /// The node has no component record, so that no service can act on it.
    NotAComponent,
}

impl LeftOutReason {
    /// Every reason, in the order in which those of a boot set are listed.
    const ALL: [Self; 10] = [
        Self::NotInLimit,
        Self::Locked,
        Self::ForeignTenant,
        Self::UnknownToInventory,
        Self::WrongArchitecture,
        Self::Disabled,
        Self::InLaterBootSet,
        Self::UnknownGroup,
        Self::UnknownRole,
        Self::NotAComponent,
    ];

    /// Returns the word for the reason.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotInLimit => "not_in_limit",
            Self::Locked => "locked",
            Self::ForeignTenant => "foreign_tenant",
            Self::UnknownToInventory => "unknown_to_inventory",
            Self::WrongArchitecture => "wrong_architecture",
            Self::Disabled => "disabled",
            Self::InLaterBootSet => "in_later_boot_set",
            Self::UnknownGroup => "unknown_group",
            Self::UnknownRole => "unknown_role",
            Self::NotAComponent => "not_a_component",
        }
    }

    /// Returns the reason with that word, if there is one.
    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }
}

/// Nodes of one boot set, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Membership {
    /// Nodes of the session.
    pub members: Vec<ComponentId>,
    /// Nodes that the boot set names and the session leaves out.
    pub left_out: Vec<(ComponentId, LeftOutReason)>,
    /// Groups and roles of the boot set without members.
    pub unheard: Vec<(String, LeftOutReason)>,
}

/// Membership of every boot set, by name.
pub type Memberships = BTreeMap<String, Membership>;

/// Nodes, groups or roles that a boot set names and its session leaves out, all for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Name of the boot set.
    pub boot_set: String,
    /// Reason for leaving them out.
    pub reason: LeftOutReason,
    /// Ids of the nodes, or names of the groups or roles, sorted.
    pub names: Vec<String>,
}

impl LeftOut {
    /// Returns the same without nodes that are not `visible` to the reader: groups and roles have nodes of other
    /// tenants too. `None`: every node is visible.
    #[must_use]
    pub fn seen(mut self, visible: Option<&BTreeSet<ComponentId>>) -> Self {
        let has_nodes = !matches!(self.reason, LeftOutReason::UnknownGroup | LeftOutReason::UnknownRole);
        if let Some(visible) = visible.filter(|_| has_nodes) {
            self.names.retain(|name| visible.contains(name.as_str()));
        }
        self
    }
}

/// Returns the nodes that a session leaves out although its template names them, by boot set and reason. A member by
/// another boot set is not left out; a member for which `is_component` is false is left out, because no service can act
/// on it.
pub fn left_out(memberships: &Memberships, is_component: impl Fn(&ComponentId) -> bool) -> Vec<LeftOut> {
    let members: HashSet<_> = memberships.values().flat_map(|membership| &membership.members).collect();
    let mut all = Vec::new();
    for (boot_set, membership) in memberships {
        let nodes = membership.left_out.iter().filter(|(id, _)| !members.contains(id));
        let nodes = nodes.map(|(id, reason)| (*reason, id.as_str()));
        let unheard = membership.unheard.iter().map(|(name, reason)| (*reason, name.as_str()));
        let untold = membership.members.iter().filter(|id| !is_component(id));
        let untold = untold.map(|id| (LeftOutReason::NotAComponent, id.as_str()));
        let mut names: BTreeMap<LeftOutReason, Vec<String>> = BTreeMap::new();
        for (reason, name) in nodes.chain(unheard).chain(untold) {
            names.entry(reason).or_default().push(name.to_owned());
        }
        let of_boot_set = |(reason, names)| LeftOut { boot_set: boot_set.clone(), reason, names };
        all.extend(names.into_iter().map(of_boot_set));
    }
    all
}

/// Selection by a session beyond its template.
#[derive(Debug, Clone, Copy)]
pub struct Selection<'a> {
    /// Limit of the nodes.
    pub limit: &'a Limit,
    /// Whether nodes that the inventory disables are members too.
    pub include_disabled: bool,
    /// Nodes of the session's tenant; `None`: the session has no tenant and may use every node.
    pub tenant_nodes: Option<&'a BTreeSet<ComponentId>>,
    /// Treatment of nodes with an unknown architecture.
    pub compatibility: Compatibility,
}

/// Reason why a session has no members. The first two texts are those of the BOS reference, A.2.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoMembers {
    /// Every boot set is empty, as these memberships show.
    #[error("No nodes were found to act upon.")]
    Nobody(Memberships),
    /// A node list names nodes that the session's tenant does not have.
    #[error(
        "The session template includes nodes which do not exist or are not available to this tenant: {}",
        listed(.0)
    )]
    Foreign(Vec<ComponentId>),
    /// A node list has an entry that cannot be an id.
    #[error("session template: {0}")]
    Malformed(Invalid),
}

fn listed(ids: &[ComponentId]) -> String {
    ids.iter().map(ComponentId::as_str).collect::<Vec<_>>().join(",")
}

/// Returns the membership of every boot set of `template`, by name. No node is a member of two boot sets: the one whose
/// name sorts last takes it.
///
/// # Errors
/// When no node is left to act on, or the template names nodes that the session must not use.
pub fn resolve(
    template: &SessionTemplate,
    inventory: &Inventory,
    selection: Selection<'_>,
) -> Result<Memberships, NoMembers> {
    let mut memberships = BTreeMap::new();
    for (name, boot_set) in &template.boot_sets {
        memberships.insert(name.clone(), members(boot_set, inventory, selection)?);
    }
    let mut taken = BTreeSet::new();
    for membership in memberships.values_mut().rev() {
        leave_to_later(membership, &mut taken);
    }
    if taken.is_empty() { Err(NoMembers::Nobody(memberships)) } else { Ok(memberships) }
}

/// Returns the membership of one boot set alone.
fn members(
    boot_set: &BootSet,
    inventory: &Inventory,
    selection: Selection<'_>,
) -> Result<Membership, NoMembers> {
    let candidates = candidates(boot_set, inventory, selection.tenant_nodes)?;
    let selected = selection.limit.select(&candidates, inventory);
    let arch = boot_set.arch.unwrap_or_default();
    let mut membership = Membership { unheard: unheard(boot_set, inventory), ..Membership::default() };
    for id in &candidates {
        let outside = (!selected.contains(id)).then_some(LeftOutReason::NotInLimit);
        match outside.or_else(|| reason_against(id, arch, inventory, selection)) {
            Some(reason) => membership.left_out.push((id.clone(), reason)),
            None => membership.members.push(id.clone()),
        }
    }
    Ok(membership)
}

/// Returns all nodes that the boot set names: its node list, and the members of those of its groups and roles that the
/// inventory knows.
fn candidates(
    boot_set: &BootSet,
    inventory: &Inventory,
    tenant_nodes: Option<&BTreeSet<ComponentId>>,
) -> Result<BTreeSet<ComponentId>, NoMembers> {
    let listed = boot_set.node_list.iter().flatten().map(|name| ComponentId::parse(name));
    let mut candidates: BTreeSet<_> = listed
        .collect::<Result<_, _>>()
        .map_err(|e| NoMembers::Malformed(Invalid::new("node_list", e.reason)))?;
    if let Some(own) = tenant_nodes {
        let foreign: Vec<_> = candidates.difference(own).cloned().collect();
        if !foreign.is_empty() {
            return Err(NoMembers::Foreign(foreign));
        }
    }
    candidates.extend(named(inventory.groups(), boot_set.node_groups.as_deref()));
    candidates.extend(named(inventory.roles(), boot_set.node_roles_groups.as_deref()));
    Ok(candidates)
}

/// Returns the groups and roles of the boot set that the inventory does not know, sorted.
fn unheard(boot_set: &BootSet, inventory: &Inventory) -> Vec<(String, LeftOutReason)> {
    let unknown = |sets: &NamedSets, names: &Option<Vec<String>>, reason| {
        let names = names.iter().flatten().filter(|name| sets.get(*name).is_none());
        names.map(|name| (name.clone(), reason)).collect::<BTreeSet<_>>()
    };
    let mut all = unknown(inventory.groups(), &boot_set.node_groups, LeftOutReason::UnknownGroup);
    all.extend(unknown(inventory.roles(), &boot_set.node_roles_groups, LeftOutReason::UnknownRole));
    all.into_iter().collect()
}

fn named<'a>(sets: &'a NamedSets, names: Option<&'a [String]>) -> impl Iterator<Item = ComponentId> + 'a {
    names.unwrap_or_default().iter().filter_map(|name| sets.get(name)).flatten().cloned()
}

/// Returns the reason for leaving out a node that passed the limit, if there is one. BOS asks the inventory about many
/// nodes at once and takes all nodes in the answer; here every node is looked up by its own id, so that an id with a
/// special meaning, such as `all`, never means other nodes.
fn reason_against(
    id: &ComponentId,
    arch: Arch,
    inventory: &Inventory,
    selection: Selection<'_>,
) -> Option<LeftOutReason> {
    let known = inventory.get(id.as_str());
    if known.is_some_and(|node| node.locked) {
        return Some(LeftOutReason::Locked);
    }
    if selection.tenant_nodes.is_some_and(|own| !own.contains(id)) {
        return Some(LeftOutReason::ForeignTenant);
    }
    let Some(node) = known else { return Some(LeftOutReason::UnknownToInventory) };
    if !accepts(arch, node.arch.as_deref(), selection.compatibility) {
        return Some(LeftOutReason::WrongArchitecture);
    }
    (!node.enabled && !selection.include_disabled).then_some(LeftOutReason::Disabled)
}

/// Returns whether a boot set of architecture `wanted` may boot a node whose architecture in the inventory is `listed`.
/// A node of unknown architecture counts as X86.
fn accepts(wanted: Arch, listed: Option<&str>, compatibility: Compatibility) -> bool {
    let strict = compatibility.strict_bos;
    match (wanted, listed) {
        (Arch::X86, Some("X86" | "UNKNOWN")) => true,
        (Arch::X86, None) => !strict,
        (Arch::Arm, listed) => listed == Some("ARM"),
        (Arch::Other, listed) => listed == Some("Other"),
        (Arch::Unknown, Some("Unknown") | None) => true,
        (Arch::Unknown, Some("UNKNOWN")) => !strict,
        (Arch::X86 | Arch::Unknown, Some(_)) => false,
    }
}

/// Removes the members that are already `taken`, and adds the others to `taken`.
fn leave_to_later(membership: &mut Membership, taken: &mut BTreeSet<ComponentId>) {
    let (lost, kept): (Vec<_>, Vec<_>) =
        std::mem::take(&mut membership.members).into_iter().partition(|id| taken.contains(id));
    taken.extend(kept.iter().cloned());
    membership.members = kept;
    membership.left_out.extend(lost.into_iter().map(|id| (id, LeftOutReason::InLaterBootSet)));
    membership.left_out.sort_unstable();
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::boot::{
        session::inventory::{
            Hardware,
            tests::{group, ids, node},
        },
        template::tests::{boot_set, template, texts},
    };

    const STRICT: Compatibility = Compatibility { strict_bos: true };

    fn selection(limit: &Limit) -> Selection<'_> {
        Selection {
            limit,
            include_disabled: false,
            tenant_nodes: None,
            compatibility: Compatibility::default(),
        }
    }

    fn show(membership: &Membership) -> String {
        let left_out: String =
            membership.left_out.iter().map(|(id, why)| format!(" {id}:{}", why.word())).collect();
        let unheard: String =
            membership.unheard.iter().map(|(name, why)| format!(" {name}:{}", why.word())).collect();
        format!("{} |{left_out}{unheard}", listed(&membership.members))
    }

    fn machine() -> Inventory {
        Inventory::new(
            [
                node("n0"),
                Hardware { sub_role: Some("GPU".into()), ..node("n1") },
                Hardware { locked: true, enabled: false, ..node("n2") },
                Hardware { enabled: false, ..node("n3") },
                Hardware { arch: Some("ARM".into()), enabled: false, ..node("n4") },
                Hardware { arch: None, role: Some("Service".into()), ..node("n5") },
            ],
            [group("g", "n0 n3 gone"), group("h", "n1")],
            [group("p", "n0 n1")],
        )
    }

    #[test]
    fn every_step_says_whom_it_leaves_out() {
        let by_role = |roles: &str| BootSet { node_roles_groups: Some(texts(roles)), ..boot_set("") };
        let by_group = |groups: &str| BootSet { node_groups: Some(texts(groups)), ..boot_set("") };
        let arm = BootSet { arch: Some(Arch::Arm), ..by_role("Compute") };
        let mixed = BootSet { node_list: Some(texts("n5 n5 gone")), ..by_group("h") };
        let own: BTreeSet<_> = ids("n0 n2 n5").into_iter().collect();
        let limited = |limit| Limit::parse(limit).expect("valid");
        let mut rows = String::new();
        for (case, boot_set, limit, include_disabled, tenant_nodes) in [
            ("node list", boot_set("n1 n0 n9"), "", false, None),
            ("role", by_role("Compute nothing"), "", false, None),
            ("role, disabled too", by_role("Compute"), "", true, None),
            ("sub-role", by_role("Compute_GPU"), "", false, None),
            ("group", by_group("g unheard"), "", false, None),
            ("a partition is no group", by_group("p"), "", false, None),
            ("list and group", mixed, "", false, None),
            ("limit", by_role("Compute"), "p,!n0", false, None),
            ("limit to nobody", by_role("Compute"), "!n0", false, None),
            ("architecture", arm.clone(), "", false, None),
            ("architecture, disabled too", arm, "", true, None),
            ("tenant", by_role("Compute Service"), "", true, Some(&own)),
            ("not the whole machine", boot_set("all s0 n0"), "all", false, None),
        ] {
            let limit = limited(limit);
            let selection = Selection { include_disabled, tenant_nodes, ..selection(&limit) };
            let membership = members(&boot_set, &machine(), selection).expect("possible");
            rows += &format!("{case}: {}\n", show(&membership));
        }
        expect![[r#"
            node list: n0,n1 | n9:unknown_to_inventory
            role: n0,n1 | n2:locked n3:disabled n4:wrong_architecture nothing:unknown_role
            role, disabled too: n0,n1,n3 | n2:locked n4:wrong_architecture
            sub-role: n1 |
            group: n0 | gone:unknown_to_inventory n3:disabled unheard:unknown_group
            a partition is no group:  | p:unknown_group
            list and group: n1,n5 | gone:unknown_to_inventory
            limit: n1 | n0:not_in_limit n2:not_in_limit n3:not_in_limit n4:not_in_limit
            limit to nobody:  | n0:not_in_limit n1:not_in_limit n2:not_in_limit n3:not_in_limit n4:not_in_limit
            architecture:  | n0:wrong_architecture n1:wrong_architecture n2:locked n3:wrong_architecture n4:disabled
            architecture, disabled too: n4 | n0:wrong_architecture n1:wrong_architecture n2:locked n3:wrong_architecture
            tenant: n0,n5 | n1:foreign_tenant n2:locked n3:foreign_tenant n4:foreign_tenant
            not the whole machine: n0 | all:unknown_to_inventory s0:unknown_to_inventory
        "#]].assert_eq(&rows);
    }

    #[test]
    fn nodes_of_unknown_architecture_count_as_x86() {
        let mut rows = String::new();
        for compatibility in [Compatibility::default(), STRICT] {
            for wanted in Arch::ALL {
                let listed =
                    [None, Some("UNKNOWN"), Some("Unknown"), Some("X86"), Some("ARM"), Some("Other")];
                let accepted: Vec<_> = listed
                    .into_iter()
                    .filter(|listed| accepts(wanted, *listed, compatibility))
                    .map(|listed| listed.unwrap_or("(absent)"))
                    .collect();
                let mode = if compatibility == STRICT { "strict" } else { "" };
                rows += &format!("{:8} {mode:6} {}\n", wanted.word(), accepted.join(" "));
            }
        }
        expect![[r#"
            X86             (absent) UNKNOWN X86
            ARM             ARM
            Other           Other
            Unknown         (absent) UNKNOWN Unknown
            X86      strict UNKNOWN X86
            ARM      strict ARM
            Other    strict Other
            Unknown  strict (absent) Unknown
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn a_tenant_is_not_told_of_foreign_nodes() {
        let own = ids("n0 n2").into_iter().collect();
        for (reason, visible, expected) in [
            (LeftOutReason::Locked, None, "n0 n1 n2"),
            (LeftOutReason::Locked, Some(&own), "n0 n2"),
            (LeftOutReason::ForeignTenant, Some(&BTreeSet::new()), ""),
            (LeftOutReason::UnknownGroup, Some(&own), "n0 n1 n2"),
            (LeftOutReason::UnknownRole, Some(&own), "n0 n1 n2"),
        ] {
            let left_out = LeftOut { boot_set: "c".into(), reason, names: texts("n0 n1 n2") };
            assert_eq!(left_out.seen(visible).names, texts(expected), "{reason:?}");
        }
    }

    #[test]
    fn a_tenant_must_own_every_listed_node() {
        let own = ids("n0").into_iter().collect();
        let limit = Limit::default();
        let selection = Selection { tenant_nodes: Some(&own), ..selection(&limit) };
        let refused = members(&boot_set("n1 n0 gone"), &machine(), selection);
        assert_eq!(refused, Err(NoMembers::Foreign(ids("gone n1"))));
        expect![
            "The session template includes nodes which do not exist or are not available to this tenant: gone,n1"
        ]
        .assert_eq(&refused.expect_err("refused").to_string());
    }

    #[test]
    fn a_node_belongs_to_the_boot_set_whose_name_sorts_last() {
        let template = template([
            ("a", boot_set("n0 n1 n3")),
            ("b", boot_set("n0 n3")),
            ("c", BootSet { arch: Some(Arch::Arm), ..boot_set("n1") }),
        ]);
        let limit = Limit::default();
        let memberships = resolve(&template, &machine(), selection(&limit)).expect("somebody");
        let rows: String = memberships.iter().map(|(name, m)| format!("{name}: {}\n", show(m))).collect();
        expect![[r#"
            a: n1 | n0:in_later_boot_set n3:disabled
            b: n0 | n3:disabled
            c:  | n1:wrong_architecture
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn a_session_without_members_says_so() {
        let limit = Limit::parse("!n0").expect("valid");
        let nobody = resolve(&template([("a", boot_set("n0"))]), &machine(), selection(&limit));
        let Err(NoMembers::Nobody(memberships)) = &nobody else { panic!("{nobody:?}") };
        assert_eq!(show(&memberships["a"]), " | n0:not_in_limit");
        assert_eq!(nobody.expect_err("nobody").to_string(), "No nodes were found to act upon.");
        let empty = resolve(&template([]), &machine(), selection(&limit));
        assert_eq!(empty, Err(NoMembers::Nobody(BTreeMap::new())));
    }

    #[test]
    fn who_is_left_alone_is_told_with_boot_set_and_reason() {
        let by_name = BootSet {
            node_groups: Some(texts("g unheard")),
            node_roles_groups: Some(texts("Nobody Compute_GPU")),
            ..boot_set("n2 gone")
        };
        let template = template([
            ("a", by_name),
            ("arm", BootSet { arch: Some(Arch::Arm), ..boot_set("n0 n3 n5") }),
            ("b", boot_set("n1")),
        ]);
        let limit = Limit::parse("all,!n5").expect("valid");
        let memberships = resolve(&template, &machine(), selection(&limit)).expect("somebody");
        let rows: String = left_out(&memberships, |id| id.as_str() != "n1")
            .iter()
            .map(|one| format!("{}: {} {}\n", one.boot_set, one.reason.word(), one.names.join(" ")))
            .collect();
        expect![[r#"
            a: locked n2
            a: unknown_to_inventory gone
            a: disabled n3
            a: unknown_group unheard
            a: unknown_role Nobody
            arm: not_in_limit n5
            arm: wrong_architecture n3
            b: not_a_component n1
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn a_whole_machine_can_be_left_alone() {
        let ids: Vec<_> = (0..100_000).map(|number| format!("x{number}")).collect();
        let template = template([
            ("a", BootSet { node_list: Some(ids.clone()), ..boot_set("") }),
            ("b", boot_set("n0")),
        ]);
        let limit = Limit::parse("n0").expect("valid");
        let memberships = resolve(&template, &machine(), selection(&limit)).expect("somebody");
        let all = left_out(&memberships, |_| true);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].reason, all[0].names.len()), (LeftOutReason::NotInLimit, ids.len()));
    }
}
