//! Changing some members of a template (BOS reference 2.8.4).

use std::collections::BTreeMap;

use super::{BootSet, Cfs, SessionTemplate};

/// Change of some members; those that are `None` stay. No member can be removed, except that an empty configuration
/// removes its `cfs` when the result is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplatePatch {
    /// Replaces the description.
    pub description: Option<String>,
    /// Replaces the switch.
    pub enable_cfs: Option<bool>,
    /// Merged member by member.
    pub cfs: Option<Cfs>,
    /// Boot sets to add, or to merge member by member into those of the same key. Lists are replaced; path and kind
    /// always are, because every boot set must have them.
    pub boot_sets: BTreeMap<String, BootSet>,
    /// Names of these boot sets in the order in which they were given. Added ones come last.
    pub boot_set_order: Vec<String>,
}

/// Returns the stored template with `patch` merged in. The result must still be checked and
/// [prepared](super::prepare()) like any other.
#[must_use]
pub fn merge(stored: SessionTemplate, patch: TemplatePatch) -> SessionTemplate {
    let mut order = stored.names_in_order();
    order.extend(patch.boot_set_order);
    let mut merged = SessionTemplate {
        description: patch.description.or(stored.description),
        enable_cfs: patch.enable_cfs.or(stored.enable_cfs),
        cfs: merge_cfs(stored.cfs, patch.cfs),
        ..stored
    };
    for (name, change) in patch.boot_sets {
        let before = merged.boot_sets.remove(&name).unwrap_or_default();
        merged.boot_sets.insert(name, merge_boot_set(before, change));
    }
    merged.boot_set_order = order;
    merged.boot_set_order = merged.names_in_order();
    merged
}

fn merge_boot_set(stored: BootSet, patch: BootSet) -> BootSet {
    BootSet {
        name: patch.name.or(stored.name),
        path: patch.path,
        kind: patch.kind,
        etag: patch.etag.or(stored.etag),
        kernel_parameters: patch.kernel_parameters.or(stored.kernel_parameters),
        node_list: patch.node_list.or(stored.node_list),
        node_roles_groups: patch.node_roles_groups.or(stored.node_roles_groups),
        node_groups: patch.node_groups.or(stored.node_groups),
        arch: patch.arch.or(stored.arch),
        rootfs_provider: patch.rootfs_provider.or(stored.rootfs_provider),
        rootfs_provider_passthrough: patch.rootfs_provider_passthrough.or(stored.rootfs_provider_passthrough),
        cfs: merge_cfs(stored.cfs, patch.cfs),
    }
}

fn merge_cfs(stored: Option<Cfs>, patch: Option<Cfs>) -> Option<Cfs> {
    let Some(patch) = patch else { return stored };
    Some(Cfs { configuration: patch.configuration.or(stored.and_then(|cfs| cfs.configuration)) })
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            Arch,
            tests::{boot_set, cfs, given, template, texts},
        },
        *,
    };

    fn full() -> BootSet {
        let text = |text: &str| Some(text.to_owned());
        BootSet {
            name: None,
            etag: text("e"),
            kernel_parameters: text("k"),
            node_roles_groups: Some(texts("r")),
            node_groups: Some(texts("g")),
            arch: Some(Arch::Arm),
            rootfs_provider: text("sbps"),
            rootfs_provider_passthrough: text("p"),
            cfs: cfs("c"),
            ..boot_set("n0 n1")
        }
    }

    #[test]
    fn an_empty_patch_changes_nothing() {
        let stored = SessionTemplate {
            description: Some("d".to_owned()),
            enable_cfs: Some(false),
            cfs: cfs("t"),
            ..given("a", template([("a", full())]))
        };
        assert_eq!(merge(stored.clone(), TemplatePatch::default()), stored);
        let bare = TemplatePatch { cfs: Some(Cfs::default()), ..TemplatePatch::default() };
        assert_eq!(merge(stored.clone(), bare), stored);
    }

    #[test]
    fn boot_sets_are_merged_by_key_and_member() {
        let change = BootSet {
            path: "s3://other".to_owned(),
            kernel_parameters: Some(String::new()),
            node_list: Some(texts("n2")),
            cfs: cfs(""),
            ..boot_set("")
        };
        let patch = TemplatePatch {
            description: Some("new".to_owned()),
            enable_cfs: Some(true),
            cfs: cfs("t"),
            boot_sets: [("a".to_owned(), change.clone()), ("aa".to_owned(), boot_set("n3"))].into(),
            boot_set_order: texts("aa a"),
        };
        let expected = SessionTemplate {
            description: Some("new".to_owned()),
            enable_cfs: Some(true),
            cfs: cfs("t"),
            ..template([
                (
                    "a",
                    BootSet {
                        path: change.path,
                        kernel_parameters: Some(String::new()),
                        node_list: Some(texts("n2")),
                        cfs: cfs(""),
                        ..full()
                    },
                ),
                ("b", full()),
                ("aa", boot_set("n3")),
            ])
        };
        let stored = template([("a", full()), ("b", full())]);
        assert_eq!(merge(stored.clone(), patch.clone()), given("a b aa", expected.clone()));
        assert_eq!(merge(given("b a", stored), patch), given("b a aa", expected));
    }
}
