//! Session templates: named recipes with the nodes to act on and their wanted state (BOS reference 2.8).

pub mod event;
mod findings;
pub mod image;
mod known;
mod merge;
mod sanitise;
pub mod target;
mod validate;

use std::collections::BTreeMap;

pub use findings::{Finding, Rules, catalogue_findings, findings, store_findings, wanted};
pub use known::{Known, Wanted, with_new_images};
pub use merge::{TemplatePatch, merge};
pub use sanitise::{finish, prepare};
pub use validate::check_limits;

use crate::core::{id::Tenant, invalid::Invalid};

/// Operation of a session on the nodes of its template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Brings nodes to run the target, except nodes that run it already.
    Boot,
    /// Restarts nodes into the target.
    Reboot,
    /// Switches nodes off.
    Shutdown,
}

impl Operation {
    /// The word of the REST contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Boot => "boot",
            Self::Reboot => "reboot",
            Self::Shutdown => "shutdown",
        }
    }
}

/// Named recipe for sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTemplate {
    /// Name, unique within the tenant.
    pub name: String,
    /// Tenant that owns the template.
    pub tenant: Tenant,
    /// Purpose of the template, for operators.
    pub description: Option<String>,
    /// Whether nodes are to be configured; missing counts as true and stays missing.
    pub enable_cfs: Option<bool>,
    /// Configuration of the nodes whose boot set has none.
    pub cfs: Option<Cfs>,
    /// Wanted states of some of the nodes, by the name of the boot set.
    pub boot_sets: BTreeMap<String, BootSet>,
    /// Names of the boot sets in the order in which they were given.
    pub boot_set_order: Vec<String>,
    /// Revision of the last change; the store sets it.
    pub revision: u64,
}

impl SessionTemplate {
    /// Returns the boot sets in the order in which they were given, which decides the order of findings (BOS reference
    /// 7.1). Boot sets without a recorded position come last, sorted by name.
    pub fn in_order(&self) -> impl Iterator<Item = (&String, &BootSet)> {
        let place = |name: &String| self.boot_set_order.iter().position(|one| one == name);
        let mut boot_sets: Vec<_> = self.boot_sets.iter().collect();
        boot_sets.sort_by_cached_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        boot_sets.into_iter()
    }

    /// Returns the names of [all boot sets in order](Self::in_order()).
    fn names_in_order(&self) -> Vec<String> {
        self.in_order().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the configuration for nodes of `boot_set`: its own, else the template's; empty: none, as always when the
    /// template turns configuration off (BOS reference 5.4.4).
    pub fn configuration<'a>(&'a self, boot_set: &'a BootSet) -> &'a str {
        if self.enable_cfs == Some(false) {
            return "";
        }
        let named = |cfs: &'a Option<Cfs>| cfs.as_ref().and_then(|cfs| cfs.configuration.as_deref());
        let own = named(&boot_set.cfs).filter(|name| !name.is_empty());
        own.or_else(|| named(&self.cfs)).unwrap_or_default()
    }
}

/// Configuration of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cfs {
    /// Name of the configuration; empty: none.
    pub configuration: Option<String>,
}

impl Cfs {
    /// Returns whether no configuration is named.
    fn is_empty(&self) -> bool {
        self.configuration.as_deref().unwrap_or_default().is_empty()
    }
}

/// Wanted state of some of the nodes, and the selection of these nodes. A list that was given empty differs from one
/// that was not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BootSet {
    /// Copy of the key in requests; never stored.
    pub name: Option<String>,
    /// Path of the image's manifest.
    pub path: String,
    /// Kind of store of `path`; only `s3` works.
    pub kind: String,
    /// Version of the manifest.
    pub etag: Option<String>,
    /// Kernel parameters that follow those of the image.
    pub kernel_parameters: Option<String>,
    /// Nodes by name.
    pub node_list: Option<Vec<String>>,
    /// Nodes by role, or by role and sub-role as `Role_SubRole`.
    pub node_roles_groups: Option<Vec<String>>,
    /// Nodes by group.
    pub node_groups: Option<Vec<String>>,
    /// Architecture of the image; missing counts as [`Arch::X86`], and is stored so.
    pub arch: Option<Arch>,
    /// Provider of the root file system; only `sbps` works.
    pub rootfs_provider: Option<String>,
    /// Parameters for the provider, in its own language.
    pub rootfs_provider_passthrough: Option<String>,
    /// Configuration of the nodes.
    pub cfs: Option<Cfs>,
}

impl BootSet {
    /// Returns the three lists of nodes with their field names, in the order of the contract.
    fn specifiers(&self) -> [(&'static str, Option<&[String]>); 3] {
        [
            ("node_list", self.node_list.as_deref()),
            ("node_roles_groups", self.node_roles_groups.as_deref()),
            ("node_groups", self.node_groups.as_deref()),
        ]
    }

    /// Returns whether a named node looks like a numeric node id: `nid` at the start, in any letter case because names
    /// are stored in small letters.
    fn has_nid(&self) -> bool {
        let looks_like_nid =
            |name: &String| name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("nid"));
        self.node_list.iter().flatten().any(looks_like_nid)
    }
}

/// Architecture of an image (BOS reference 2.3, "Arch").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Arch {
    /// 64-bit x86.
    #[default]
    X86,
    /// 64-bit ARM.
    Arm,
    /// Another architecture.
    Other,
    /// Unknown architecture.
    Unknown,
}

impl Arch {
    /// Every architecture.
    pub const ALL: [Self; 4] = [Self::X86, Self::Arm, Self::Other, Self::Unknown];

    /// Returns the word of the REST contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::X86 => "X86",
            Self::Arm => "ARM",
            Self::Other => "Other",
            Self::Unknown => "Unknown",
        }
    }

    /// Parses the word of the REST contract; letter case counts.
    ///
    /// # Errors
    /// Names `field` when the word is none of the four.
    pub fn parse(field: &str, word: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|arch| arch.word() == word);
        found.ok_or_else(|| Invalid::new(field, format!("'{word}' is not one of X86, ARM, Other, Unknown")))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a boot set of nodes by name, space-separated.
    pub(crate) fn boot_set(node_list: &str) -> BootSet {
        BootSet {
            path: "s3://boot-images/1/manifest.json".to_owned(),
            kind: "s3".to_owned(),
            node_list: (!node_list.is_empty()).then(|| texts(node_list)),
            ..BootSet::default()
        }
    }

    /// Returns a template of boot sets by name.
    pub(crate) fn template(boot_sets: impl IntoIterator<Item = (&'static str, BootSet)>) -> SessionTemplate {
        SessionTemplate {
            name: "t".to_owned(),
            boot_sets: boot_sets.into_iter().map(|(name, boot_set)| (name.to_owned(), boot_set)).collect(),
            ..SessionTemplate::default()
        }
    }

    /// Returns the same template, its boot sets given in the order of these names, space-separated.
    pub(crate) fn given(order: &str, template: SessionTemplate) -> SessionTemplate {
        SessionTemplate { boot_set_order: texts(order), ..template }
    }

    pub(crate) fn texts(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    pub(crate) fn cfs(configuration: &str) -> Option<Cfs> {
        Some(Cfs { configuration: Some(configuration.to_owned()) })
    }

    #[test]
    fn the_configuration_of_the_boot_set_beats_that_of_the_template() {
        for (enable_cfs, of_template, of_boot_set, expected) in [
            (None, None, None, ""),
            (None, cfs("t"), None, "t"),
            (None, cfs("t"), cfs("b"), "b"),
            (Some(true), cfs("t"), cfs(""), "t"),
            (Some(true), None, cfs("b"), "b"),
            (Some(true), Some(Cfs::default()), Some(Cfs::default()), ""),
            (Some(false), cfs("t"), cfs("b"), ""),
        ] {
            let template = SessionTemplate { enable_cfs, cfs: of_template, ..template([]) };
            let boot_set = BootSet { cfs: of_boot_set, ..boot_set("n0") };
            assert_eq!(template.configuration(&boot_set), expected, "{template:?} {boot_set:?}");
        }
    }

    #[test]
    fn boot_sets_have_the_order_in_which_they_were_given() {
        for (order, expected) in
            [("", "a b c"), ("c b a", "c b a"), ("b", "b a c"), ("gone c b c a", "c b a")]
        {
            let template = given(order, template(["a", "b", "c"].map(|name| (name, boot_set("n0")))));
            assert_eq!(template.names_in_order(), texts(expected), "'{order}'");
        }
    }

    #[test]
    fn architectures_are_read_exactly() {
        for arch in Arch::ALL {
            assert_eq!(Arch::parse("arch", arch.word()), Ok(arch));
        }
        for bad in ["", "x86", "UNKNOWN", "arm"] {
            assert!(Arch::parse("arch", bad).is_err(), "{bad}");
        }
    }
}
