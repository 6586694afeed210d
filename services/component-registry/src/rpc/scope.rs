//! Components that are visible to a caller (BOS reference 9.3).

use std::collections::BTreeSet;

use domain::core::{id::ComponentId, invalid::Invalid};
use proto::component as wire;

/// Most ids in the text of a refusal.
const NAMED: usize = 10;

/// Components that are visible to a caller.
pub(super) enum VisibleScope {
    /// All components.
    Everything,
    /// The components of these ids.
    Only(BTreeSet<String>),
}

impl From<Option<wire::Scope>> for VisibleScope {
    fn from(scope: Option<wire::Scope>) -> Self {
        scope.map_or(Self::Everything, |scope| Self::Only(scope.ids.into_iter().collect()))
    }
}

impl VisibleScope {
    /// Returns whether the component of that id is visible, if it exists.
    pub(super) fn has(&self, id: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(ids) => ids.contains(id),
        }
    }

    /// Returns the part of `wanted` in the scope; an empty set wants all.
    pub(super) fn among(self, wanted: BTreeSet<String>) -> Self {
        match self {
            Self::Everything if wanted.is_empty() => Self::Everything,
            Self::Everything => Self::Only(wanted),
            Self::Only(ids) if wanted.is_empty() => Self::Only(ids),
            Self::Only(ids) => Self::Only(wanted.into_iter().filter(|id| ids.contains(id)).collect()),
        }
    }

    /// Refuses writes of other components.
    ///
    /// # Errors
    /// Names the first of these components.
    pub(super) fn check<'a>(
        &self,
        written: impl Iterator<Item = &'a ComponentId> + Clone,
    ) -> Result<(), Invalid> {
        let foreign = || written.clone().map(ComponentId::as_str).filter(|id| !self.has(id));
        let named: Vec<_> = foreign().take(NAMED).collect();
        if named.is_empty() {
            return Ok(());
        }
        let more = if foreign().nth(NAMED).is_some() { "..." } else { "" };
        Err(Invalid::new("", format!("components that the tenant does not have: {}{more}", named.join(","))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> BTreeSet<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn scope(text: Option<&str>) -> VisibleScope {
        let ids = text.map(|text| wire::Scope { ids: ids(text).into_iter().collect() });
        VisibleScope::from(ids)
    }

    #[test]
    fn a_scope_and_wanted_ids_narrow_each_other() {
        for (own, wanted, expected) in [
            (None, "", None),
            (None, "a b", Some("a b")),
            (Some("a b"), "", Some("a b")),
            (Some("a b"), "b c", Some("b")),
            (Some("a b"), "c", Some("")),
            (Some(""), "", Some("")),
            (Some(""), "a", Some("")),
        ] {
            let among = match scope(own).among(ids(wanted)) {
                VisibleScope::Everything => None,
                VisibleScope::Only(ids) => Some(ids),
            };
            assert_eq!(among, expected.map(ids), "{own:?} {wanted}");
        }
    }

    #[test]
    fn refusals_name_the_foreign_components() {
        let ids_of = |text: &str| -> Vec<_> {
            text.split_whitespace().map(|id| ComponentId::parse(id).unwrap()).collect()
        };
        let many = (10..22).map(|n| format!("n{n} ")).collect::<String>();
        for (own, put, expected) in [
            (None, "a b", None),
            (Some("a b"), "b a", None),
            (Some("a b"), "", None),
            (Some("a b"), "a c b d", Some("c,d")),
            (Some(""), "a", Some("a")),
            (Some(""), many.as_str(), Some("n10,n11,n12,n13,n14,n15,n16,n17,n18,n19...")),
        ] {
            let refused = scope(own).check(ids_of(put).iter()).err().map(|invalid| invalid.reason);
            let expected = expected.map(|ids| format!("components that the tenant does not have: {ids}"));
            assert_eq!(refused, expected, "{own:?} {put}");
        }
    }
}
