//! The limit of a session: the selection from a template's nodes (BOS reference 5.4.2).

use std::collections::BTreeSet;

use crate::{
    boot::session::inventory::Inventory,
    core::{
        id::ComponentId,
        invalid::{Invalid, check_length},
        limits::LONGEST_LIMIT,
    },
};

/// Effect of an item on the nodes selected so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// No sign: adds.
    Add,
    /// `&`: keeps only.
    Keep,
    /// `!`: removes.
    Remove,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    operator: Operator,
    name: String,
}

/// Parsed limit. Without items it selects every node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limit {
    items: Vec<Item>,
}

impl Limit {
    /// Parses comma-separated items, each a name with an optional single `&` or `!` in front. Texts are not trimmed and
    /// names are taken as they are.
    ///
    /// # Errors
    /// On field `limit`: when it is too long or an item is empty.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        check_length("limit", text, 0, LONGEST_LIMIT)?;
        if text.is_empty() {
            return Ok(Self::default());
        }
        let items = text.split(',').enumerate().map(|(index, item)| match item {
            "" => Err(Invalid::new("limit", format!("item {} is empty", index + 1))),
            _ => Ok(Item::read(item)),
        });
        Ok(Self { items: items.collect::<Result<_, _>>()? })
    }

    /// Returns whether every node is selected, because the limit has no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the names in the limit that mean nothing in the inventory: no node, and no set with members.
    pub fn lacking<'a>(&'a self, inventory: &'a Inventory) -> impl Iterator<Item = &'a str> {
        let names = self.items.iter().filter(|item| !item.name.is_empty() && item.is_lacking(inventory));
        names.map(|item| item.name.as_str())
    }

    /// Returns the selected candidates: the items are applied from left to right to a selection that starts empty, so a
    /// limit that only removes selects nothing.
    pub fn select<'a>(
        &self,
        candidates: &'a BTreeSet<ComponentId>,
        inventory: &Inventory,
    ) -> BTreeSet<&'a ComponentId> {
        if self.is_empty() {
            return candidates.iter().collect();
        }
        let mut selected = BTreeSet::new();
        for item in &self.items {
            // Only candidates can be selected in the end, so only candidates are added.
            match (item.operator, item.set(inventory)) {
                (Operator::Add, set) => selected.extend(set.among(candidates)),
                (Operator::Keep, set) => selected.retain(|id| set.holds(id)),
                (Operator::Remove, set) => {
                    for id in set.among(candidates) {
                        selected.remove(id);
                    }
                }
            }
        }
        selected
    }
}

impl Item {
    fn read(text: &str) -> Self {
        let (operator, name) = match text.split_at_checked(1) {
            Some(("&", name)) => (Operator::Keep, name),
            Some(("!", name)) => (Operator::Remove, name),
            _ => (Operator::Add, text),
        };
        Self { operator, name: name.to_owned() }
    }

    fn is_lacking(&self, inventory: &Inventory) -> bool {
        match self.set(inventory) {
            Set::All => false,
            Set::Many(ids) => ids.is_empty(),
            Set::One(name) => inventory.get(name).is_none(),
        }
    }

    fn set<'a>(&'a self, inventory: &'a Inventory) -> Set<'a> {
        if self.name == "all" || self.name == "*" {
            return Set::All;
        }
        inventory.named(&self.name).map_or(Set::One(&self.name), Set::Many)
    }
}

/// Meaning of a name in a limit.
enum Set<'a> {
    /// Every candidate.
    All,
    /// The members of a role, partition or group.
    Many(&'a BTreeSet<ComponentId>),
    /// The node with that name.
    One(&'a str),
}

impl Set<'_> {
    fn holds(&self, id: &ComponentId) -> bool {
        match self {
            Self::All => true,
            Self::Many(ids) => ids.contains(id),
            Self::One(name) => id.as_str() == *name,
        }
    }

    fn among<'a>(&self, candidates: &'a BTreeSet<ComponentId>) -> Vec<&'a ComponentId> {
        match self {
            Self::One(name) => candidates.get(*name).into_iter().collect(),
            Self::All | Self::Many(_) => candidates.iter().filter(|id| self.holds(id)).collect(),
        }
    }
}

/// Returns whether an item of a limit looks like a numeric node id: `nid` after any number of `&` and `!`. Only small
/// letters count (BOS reference 2.9.1, step 4).
pub fn names_nid(limit: &str) -> bool {
    limit.split(',').any(|item| item.trim_start_matches(['&', '!']).starts_with("nid"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::session::inventory::{
        Hardware,
        tests::{group, ids, node},
    };

    #[test]
    fn items_are_followed_from_left_to_right() {
        let gpu = Hardware { sub_role: Some("GPU".into()), ..node("n1") };
        let inventory = Inventory::new([node("n0"), gpu, node("n2")], [group("g1", "n0 n1 n2")], []);
        let candidates: BTreeSet<_> = ids("n0 n1").into_iter().collect();
        for (limit, expected) in [
            ("", "n0 n1"),
            ("all", "n0 n1"),
            ("*", "n0 n1"),
            ("n0", "n0"),
            ("n2", ""),
            ("n2,n1", "n1"),
            ("g1,&Compute_GPU", "n1"),
            ("all,!n0", "n1"),
            ("all,&n0", "n0"),
            ("all,!Compute_GPU", "n0"),
            ("Compute", "n0 n1"),
            ("!n0", ""),
            ("&g1", ""),
            ("g1,!n0,n0", "n0 n1"),
            ("!all", ""),
            ("all,!*", ""),
            ("all,&all", "n0 n1"),
            (" g1", ""),
            ("&&g1", ""),
            ("all,&&g1", ""),
            ("all,!!n0", "n0 n1"),
            ("&", ""),
            ("all,!", "n0 n1"),
            ("N0", ""),
            ("ä,n0", "n0"),
        ] {
            let selected = Limit::parse(limit).expect("valid").select(&candidates, &inventory);
            assert_eq!(selected, ids(expected).iter().collect(), "'{limit}'");
        }
    }

    #[test]
    fn an_empty_item_is_refused() {
        for (limit, item) in [("g1,", 2), (",g1", 1), ("a,,b", 2), (",", 1)] {
            let expected = Invalid::new("limit", format!("item {item} is empty"));
            assert_eq!(Limit::parse(limit), Err(expected), "{limit}");
        }
        assert!(Limit::parse(&"x".repeat(LONGEST_LIMIT)).is_ok());
        assert!(Limit::parse(&"x".repeat(LONGEST_LIMIT + 1)).is_err());
    }

    #[test]
    fn nids_are_spotted_behind_operators() {
        for (limit, expected) in [
            ("", false),
            ("nid000001", true),
            ("&nid1", true),
            ("!&!nid1", true),
            ("g1,nid1", true),
            ("nidhogg", true),
            ("xnid1", false),
            ("NID1", false),
            (" nid1", false),
        ] {
            assert_eq!(names_nid(limit), expected, "{limit}");
        }
    }
}
