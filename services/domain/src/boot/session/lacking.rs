//! Names in a session that the inventory lacks.
//!
//! An inventory that restarts, or has lost a part of its database, answers with fewer nodes or groups for a while. Such an
//! answer would decide a session for good: its nodes are chosen once. So a name that the inventory lacks counts like any
//! shrinking set only once a later answer agrees. A set that shrinks and keeps a member cannot be seen by one session.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    boot::{
        session::{
            inventory::Inventory,
            limit::Limit,
            membership::{LeftOutReason, Memberships},
        },
        template::SessionTemplate,
    },
    core::{
        confirmed_set::{CONFIRMATION, ConfirmedSet, SetAnswer},
        time::Timestamp,
    },
};

/// Most names that a text shows.
const MOST_NAMES: usize = 3;

/// Name in a template or a limit that means nothing in the inventory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LackingName {
    /// Hardware of any kind.
    Hardware,
    /// Node of the template, named by itself or by its group.
    Node(String),
    /// Group or role of the template that is unknown or has no members.
    Set(String),
    /// Node or set in the limit.
    InLimit(String),
}

impl LackingName {
    /// Returns the name; `None`: hardware of any kind.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Hardware => None,
            Self::Node(name) | Self::Set(name) | Self::InLimit(name) => Some(name),
        }
    }
}

/// Returns the names of a session that mean nothing in `inventory`. A role without nodes counts only in a boot set without
/// members. `memberships` is the membership of the template's boot
/// sets by this inventory.
pub fn lacking(
    template: &SessionTemplate,
    limit: &Limit,
    inventory: &Inventory,
    memberships: &Memberships,
) -> BTreeSet<LackingName> {
    let mut lacking: BTreeSet<_> =
        limit.lacking(inventory).map(|name| LackingName::InLimit(name.to_owned())).collect();
    if inventory.is_empty() {
        lacking.insert(LackingName::Hardware);
    }
    for membership in memberships.values() {
        let nodes = membership.left_out.iter();
        let unlisted = nodes.filter(|(_, reason)| *reason == LeftOutReason::UnknownToInventory);
        lacking.extend(unlisted.map(|(id, _)| LackingName::Node(id.as_str().to_owned())));
        // Many templates name roles that their machine has no node of.
        let counts = |reason| reason != LeftOutReason::UnknownRole || membership.members.is_empty();
        let unheard = membership.unheard.iter().filter(|(_, reason)| counts(*reason));
        lacking.extend(unheard.map(|(name, _)| LackingName::Set(name.clone())));
    }
    let groups = template.boot_sets.values().flat_map(|boot_set| boot_set.node_groups.iter().flatten());
    let is_empty = |name: &&String| inventory.groups().get(*name).is_some_and(BTreeSet::is_empty);
    lacking.extend(groups.filter(is_empty).map(|name| LackingName::Set(name.clone())));
    lacking
}

/// Belief of one pending session that the inventory lacks names. The belief is the session's own, since the inventory may
/// have been filled and emptied between two sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InventoryDoubt(ConfirmedSet<LackingName>);

impl InventoryDoubt {
    /// Returns the belief after the inventory was read at `now` and lacked these names.
    #[must_use]
    pub fn believe(&self, lacking: BTreeSet<LackingName>, now: Timestamp) -> Self {
        let found = self.0.elements.difference(&lacking).cloned().collect();
        Self(self.0.believe(SetAnswer::Elements(found), lacking, now))
    }

    /// Returns how long to wait at `now` for the answer that confirms every doubt; `None`: nothing is in doubt.
    pub fn ask_in(&self, now: Timestamp) -> Option<Duration> {
        let newest = self.0.in_doubt.values().max()?;
        Some(CONFIRMATION.saturating_sub(now.since(*newest)))
    }

    /// Returns the text about the names in doubt, for people; `None`: nothing is in doubt. Its subject is the inventory.
    pub fn text(&self) -> Option<String> {
        let in_doubt = &self.0.in_doubt;
        if in_doubt.is_empty() {
            return None;
        }
        if in_doubt.contains_key(&LackingName::Hardware) {
            return Some("it lists no hardware at all; it is read once more after ten seconds".to_owned());
        }
        let names: BTreeSet<&str> = in_doubt.keys().filter_map(LackingName::name).collect();
        let shown = names.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
        let more = match names.len().saturating_sub(MOST_NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!("it has no {shown}{more}; it is read once more after ten seconds"))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::boot::{
        bos::compatibility::Compatibility,
        session::{
            inventory::{
                Hardware,
                tests::{group, node},
            },
            membership::{NoMembers, Selection, resolve},
        },
        template::tests::{boot_set, template, texts},
    };

    /// Returns the names that `inventory` lacks of a session with that limit. Its template names two nodes, a group, and
    /// a role.
    fn lacked(inventory: &Inventory, limit: &str) -> String {
        let mut named = boot_set("n0 n1");
        (named.node_groups, named.node_roles_groups) = (Some(texts("blue")), Some(texts("Compute")));
        let template = template([("compute", named)]);
        let limit = Limit::parse(limit).expect("valid");
        let selection = Selection {
            limit: &limit,
            include_disabled: false,
            tenant_nodes: None,
            compatibility: Compatibility::default(),
        };
        let memberships = match resolve(&template, inventory, selection) {
            Ok(memberships) | Err(NoMembers::Nobody(memberships)) => memberships,
            Err(error) => panic!("{error}"),
        };
        format!("{:?}", lacking(&template, &limit, inventory, &memberships))
    }

    #[test]
    fn names_without_a_meaning_are_found() {
        let whole = Inventory::new([node("n0"), node("n1"), node("n2")], [group("blue", "n2")], []);
        let half = Inventory::new([node("n0")], [group("blue", "n0 n2")], []);
        let bmc = Hardware { kind: "NodeBMC".into(), role: None, ..node("b0") };
        let plain = ["n0", "n1"].map(|id| Hardware { role: None, ..node(id) });
        let rows = [
            ("whole", &whole, ""),
            ("whole", &whole, "all,!n1,&blue,Compute"),
            ("whole", &whole, "n7,!maintenance,&"),
            ("half", &half, ""),
            ("half", &half, "n0"),
            ("no groups", &Inventory::new([node("n0"), node("n1")], [], []), ""),
            ("empty group", &Inventory::new([node("n0"), node("n1")], [group("blue", "")], []), "blue"),
            ("no roles", &Inventory::new(plain, [group("blue", "n0")], []), ""),
            ("BMC alone", &Inventory::new([bmc], [group("blue", "n2")], []), ""),
            ("nothing", &Inventory::default(), ""),
        ];
        let rows: String = rows
            .iter()
            .map(|(name, inventory, limit)| format!("{name} '{limit}': {}\n", lacked(inventory, limit)))
            .collect();
        expect![[r#"
            whole '': {}
            whole 'all,!n1,&blue,Compute': {}
            whole 'n7,!maintenance,&': {InLimit("maintenance"), InLimit("n7")}
            half '': {Node("n1"), Node("n2")}
            half 'n0': {}
            no groups '': {Set("blue")}
            empty group 'blue': {Set("blue"), InLimit("blue")}
            no roles '': {}
            BMC alone '': {Node("n0"), Node("n1"), Node("n2"), Set("Compute")}
            nothing '': {Hardware, Node("n0"), Node("n1"), Set("Compute"), Set("blue")}
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn lacking_name_counts_once_a_later_answer_agrees() {
        let names = |text: &str| text.split_whitespace().map(|name| LackingName::Node(name.into())).collect();
        let mut doubt = InventoryDoubt::default();
        let mut rows = String::new();
        for (second, lacking) in [
            (0, "a b"),
            (1, "b c"),
            (10, "b c"),
            (11, "b c"),
            (12, "a"),
            (13, ""),
            (14, "b"),
            (90, "b"),
            (100, "b"),
        ] {
            let now = Timestamp(second * 1000);
            doubt = doubt.believe(names(lacking), now);
            rows += &format!("{second} s {lacking}: {:?}, ask in {:?}\n", doubt.text(), doubt.ask_in(now));
        }
        expect![[r#"
            0 s a b: Some("it has no a, b; it is read once more after ten seconds"), ask in Some(10s)
            1 s b c: Some("it has no b, c; it is read once more after ten seconds"), ask in Some(10s)
            10 s b c: Some("it has no c; it is read once more after ten seconds"), ask in Some(1s)
            11 s b c: None, ask in None
            12 s a: Some("it has no a; it is read once more after ten seconds"), ask in Some(10s)
            13 s : None, ask in None
            14 s b: Some("it has no b; it is read once more after ten seconds"), ask in Some(10s)
            90 s b: Some("it has no b; it is read once more after ten seconds"), ask in Some(10s)
            100 s b: None, ask in None
        "#]]
        .assert_eq(&rows);
        let nothing = InventoryDoubt::default().believe([LackingName::Hardware].into(), Timestamp(0));
        let text = "it lists no hardware at all; it is read once more after ten seconds";
        assert_eq!(nothing.text().as_deref(), Some(text));
    }
}
