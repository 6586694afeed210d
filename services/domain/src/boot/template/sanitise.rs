//! Changes to a template before it is stored (BOS reference 2.8.3).

use super::{BootSet, Cfs, SessionTemplate, validate::check_names};
use crate::core::{invalid::Invalid, xname::canonical_xname};

/// Returns the template for the checks of its images, once its [limits](super::check_limits()) were checked: names of
/// boot sets in agreement with their keys, missing architectures filled in, empty `cfs` dropped (steps 3 and 4).
///
/// # Errors
/// Names the boot set whose name disagrees with its key.
pub fn prepare(mut template: SessionTemplate) -> Result<SessionTemplate, Invalid> {
    for (key, boot_set) in template.in_order() {
        if let Some(name) = boot_set.name.as_deref().filter(|name| name != key) {
            let reason = format!("'{name}' is not the key of the boot set");
            return Err(Invalid::new("name", reason).within(&format!("boot_sets.{key}")));
        }
    }
    for boot_set in template.boot_sets.values_mut() {
        boot_set.arch.get_or_insert_default();
        boot_set.cfs.take_if(|cfs: &mut Cfs| cfs.is_empty());
    }
    Ok(template)
}

/// Returns the template to store, after it was [prepared](prepare()) and its images were judged: node names in their
/// one spelling, names of boot sets and an empty `cfs` dropped (steps 7 to 11).
///
/// # Errors
/// Names boot set and field when no nodes are specified, a node looks like a numeric node id while `reject_nids` is
/// set, or a key is not the name of a boot set.
pub fn finish(mut template: SessionTemplate, reject_nids: bool) -> Result<SessionTemplate, Invalid> {
    for (key, boot_set) in template.in_order() {
        check_nodes(boot_set, reject_nids).map_err(|e| e.within(&format!("boot_sets.{key}")))?;
    }
    for boot_set in template.boot_sets.values_mut() {
        for name in boot_set.node_list.iter_mut().flatten() {
            *name = canonical_xname(name);
        }
    }
    template.cfs.take_if(|cfs| cfs.is_empty());
    check_names(&template)?;
    for boot_set in template.boot_sets.values_mut() {
        boot_set.name = None;
    }
    template.boot_set_order = template.names_in_order();
    Ok(template)
}

fn check_nodes(boot_set: &BootSet, reject_nids: bool) -> Result<(), Invalid> {
    if boot_set.specifiers().iter().all(|(_, entries)| entries.is_none_or(<[_]>::is_empty)) {
        return Err(Invalid::new("", "needs node_list, node_roles_groups or node_groups with an entry"));
    }
    if reject_nids && boot_set.has_nid() {
        let reason = "has an entry that looks like a numeric node id, which option reject_nids forbids";
        return Err(Invalid::new("node_list", reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            Arch, check_limits,
            tests::{boot_set, cfs, given, template, texts},
        },
        *,
    };

    fn sanitise(template: SessionTemplate, reject_nids: bool) -> Result<SessionTemplate, Invalid> {
        check_limits(&template)?;
        finish(prepare(template)?, reject_nids)
    }

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
        let stored = given("b a", stored);
        assert_eq!(sanitise(given("gone b", sent), false), Ok(stored.clone()));
        assert_eq!(sanitise(stored.clone(), false), Ok(stored));
    }

    #[test]
    fn the_boot_set_that_was_given_first_is_refused_first() {
        let misnamed = |nodes| BootSet { name: Some("c".to_owned()), ..boot_set(nodes) };
        let pathless = |nodes| BootSet { path: String::new(), ..boot_set(nodes) };
        for (bad, field) in [(misnamed as fn(_) -> _, ".name"), (pathless, ".path"), (|_| boot_set(""), "")] {
            for (order, first) in [("", "a"), ("b a", "b")] {
                let refusal = sanitise(given(order, template([("a", bad("n0")), ("b", bad("n1"))])), false);
                assert_eq!(refusal.map_err(|e| e.field), Err(format!("boot_sets.{first}{field}")));
            }
        }
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
            (empty_lists, false, "boot_sets.b.node_groups: has no entry but needs at least one"),
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
