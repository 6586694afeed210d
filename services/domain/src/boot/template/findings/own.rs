//! Findings about a boot set alone, without a lookup of its image (BOS reference 7.2).

use std::collections::HashMap;

use super::{Said, Warning};
use crate::boot::template::BootSet;

/// Checks 1 and 2: there must be nodes.
pub(super) fn nodes(boot_set: &BootSet) -> Result<(), Said> {
    let lists = boot_set.specifiers();
    let names = lists.map(|(name, _)| format!("'{name}'")).join(", ");
    if lists.iter().all(|(_, entries)| entries.is_none()) {
        return Err(Said::new("", format!("Missing at least one of the fields {{{names}}}")));
    }
    if lists.iter().all(|(_, entries)| entries.is_none_or(<[_]>::is_empty)) {
        return Err(Said::new("", format!("All of the fields that name nodes are empty: {{{names}}}")));
    }
    Ok(())
}

/// Check 3: the provider of the root file system is supported.
pub(super) fn provider(boot_set: &BootSet) -> Option<Said> {
    let provider = boot_set.rootfs_provider.as_deref().filter(|provider| *provider != "sbps")?;
    let text = format!("Unsupported rootfs_provider ('{provider}') will cause boot/reboot sessions to fail");
    Some(Said::new("rootfs_provider", text))
}

/// Check 4: names look like numeric node ids, in any letter case (BOS reference 12, BUG-36).
pub(super) fn nid(boot_set: &BootSet, reject_nids: bool) -> Warning {
    if !boot_set.has_nid() {
        return Ok(None);
    }
    let said = Said::new("node_list", "Has NID in 'node_list'");
    if reject_nids { Err(said) } else { Ok(Some(said)) }
}

/// Returns a warning about a node in two boot sets; the one whose name sorts last gets the node, and BOS does not warn
/// (BOS reference 12, BUG-39).
pub(super) fn named_twice<'a>(
    name: &'a str,
    boot_set: &'a BootSet,
    named_before: &mut HashMap<&'a str, &'a str>,
) -> Option<Said> {
    let mut first = None;
    for node in boot_set.node_list.iter().flatten() {
        let before = named_before.insert(node, name).filter(|before| *before != name);
        first = first.or_else(|| before.map(|before| (node, before)));
    }
    let (node, before) = first?;
    let text =
        format!("takes '{node}', and perhaps more nodes, from boot set '{before}', which names it too");
    Some(Said::new("node_list", text))
}
