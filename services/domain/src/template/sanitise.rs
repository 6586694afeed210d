//! What becomes of a template before it is stored (BOS reference 2.8.3).

use super::{BootSet, Cfs, SessionTemplate, canonical_xname, validate};
use crate::invalid::Invalid;

/// The template as it is to be stored: names of boot sets agree with their keys and are dropped, missing
/// architectures filled in, empty `cfs` dropped, node names in their one spelling, every limit kept.
///
/// # Errors
/// Names boot set and field when a name disagrees with its key, no nodes are specified, a node looks like a
/// numeric node id while `reject_nids` is set, or a limit is broken.
pub fn sanitise(mut template: SessionTemplate, reject_nids: bool) -> Result<SessionTemplate, Invalid> {
    for (key, boot_set) in &mut template.boot_sets {
        prepare(key, boot_set).map_err(|e| e.within(&format!("boot_sets.{key}")))?;
    }
    if reject_nids && let Some((name, _)) = template.boot_sets.iter().find(|(_, set)| set.has_nid()) {
        let reason = "has an entry that looks like a numeric node id, which option reject_nids forbids";
        return Err(Invalid::new(format!("boot_sets.{name}.node_list"), reason));
    }
    for name in template.boot_sets.values_mut().flat_map(|boot_set| &mut boot_set.node_list).flatten() {
        *name = canonical_xname(name);
    }
    template.cfs.take_if(|cfs| cfs.is_empty());
    validate(&template)?;
    for boot_set in template.boot_sets.values_mut() {
        boot_set.name = None;
    }
    Ok(template)
}

fn prepare(key: &str, boot_set: &mut BootSet) -> Result<(), Invalid> {
    if let Some(name) = boot_set.name.as_deref().filter(|name| *name != key) {
        return Err(Invalid::new("name", format!("'{name}' is not the key of the boot set")));
    }
    boot_set.arch.get_or_insert_default();
    boot_set.cfs.take_if(|cfs: &mut Cfs| cfs.is_empty());
    if boot_set.specifiers().iter().all(|(_, entries)| entries.is_none_or(<[_]>::is_empty)) {
        return Err(Invalid::new("", "needs node_list, node_roles_groups or node_groups with an entry"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            Arch,
            tests::{boot_set, cfs, template, texts},
        },
        *,
    };

    #[test]
    fn templates_are_stored_in_their_one_form() {
        let sent = SessionTemplate {
            cfs: cfs(""),
            ..template([
                (
                    "a",
                    BootSet {
                        name: Some("a".to_owned()),
                        cfs: Some(Cfs::default()),
                        ..boot_set("X01C0S0B0N00")
                    },
                ),
                ("b", BootSet { arch: Some(Arch::Arm), cfs: cfs("c"), ..boot_set("NID5 nid6") }),
            ])
        };
        let stored = template([
            ("a", BootSet { arch: Some(Arch::X86), ..boot_set("x1c0s0b0n0") }),
            ("b", BootSet { arch: Some(Arch::Arm), cfs: cfs("c"), ..boot_set("nid5 nid6") }),
        ]);
        assert_eq!(sanitise(sent, false), Ok(stored.clone()));
        assert_eq!(sanitise(stored.clone(), false), Ok(stored));
    }

    #[test]
    fn refusals_name_boot_set_and_field() {
        let named = BootSet { name: Some("c".to_owned()), ..boot_set("n0") };
        let empty_lists = BootSet { node_groups: Some(vec![]), ..boot_set("") };
        let by_role = BootSet { node_roles_groups: Some(texts("nid_role")), ..boot_set("") };
        for (boot_set, reject_nids, expected) in [
            (named, false, "boot_sets.b.name: 'c' is not the key of the boot set"),
            (
                boot_set(""),
                false,
                "boot_sets.b: needs node_list, node_roles_groups or node_groups with an entry",
            ),
            (
                empty_lists,
                false,
                "boot_sets.b: needs node_list, node_roles_groups or node_groups with an entry",
            ),
            (
                boot_set("x1 NID5"),
                true,
                "boot_sets.b.node_list: has an entry that looks like a numeric node id, which option reject_nids \
                 forbids",
            ),
            (by_role, true, ""),
            (
                BootSet { path: String::new(), ..boot_set("n0") },
                false,
                "boot_sets.b.path: has 0 characters but needs at least 1",
            ),
        ] {
            let refusal = sanitise(template([("b", boot_set)]), reject_nids).err();
            assert_eq!(refusal.map(|e| e.to_string()).unwrap_or_default(), expected);
        }
    }
}
