//! Objects whose members have names that the client chose.

use std::{collections::HashMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};

/// An object with names of the client's choice, its members in the order in which they were given. Of several members
/// with one name the last counts, in the place of the first (BOS reference 2.1).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedMembers<T>(pub Vec<(String, T)>);

impl<T> Default for NamedMembers<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> NamedMembers<T> {
    /// The members in the order of their names, as answers show them.
    pub(crate) fn sorted(members: impl Iterator<Item = (String, T)>) -> Self {
        let mut members: Vec<_> = members.collect();
        members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Self(members)
    }
}

impl<T: Serialize> Serialize for NamedMembers<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, member)| (name, member)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NamedMembers<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamedVisitor(PhantomData)).map(Self)
    }
}

struct NamedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedVisitor<T> {
    type Value = Vec<(String, T)>;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut given: A) -> Result<Self::Value, A::Error> {
        let mut members = Self::Value::new();
        let mut places = HashMap::new();
        while let Some((name, member)) = given.next_entry::<String, T>()? {
            match places.get(&name) {
                Some(&place) => {
                    let (_, before): &mut (String, T) = &mut members[place];
                    *before = member;
                }
                None => {
                    places.insert(name.clone(), members.len());
                    members.push((name, member));
                }
            }
        }
        Ok(members)
    }
}
