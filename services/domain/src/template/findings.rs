//! What is wrong with a template that was stored, as far as the template alone shows it (BOS reference 7.2).

use std::{collections::HashMap, fmt};

use super::{BootSet, SessionTemplate};

/// Something wrong with a template, or with one of its boot sets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Finding {
    /// Name of the template.
    pub template: String,
    /// Name of the boot set; `None`: the whole template.
    pub boot_set: Option<String>,
    /// What is wrong, in the words that BOS shows.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session template: '{}' ", self.template)?;
        if let Some(boot_set) = &self.boot_set {
            write!(f, "boot set: '{boot_set}': ")?;
        }
        f.write_str(&self.text)
    }
}

/// The warnings about `template`. Boot sets are looked at in the order of their names.
///
/// # Errors
/// The first error, which hides all warnings: no boot set, a boot set without nodes, or a node that looks
/// like a numeric node id while `reject_nids` is set.
pub fn findings(template: &SessionTemplate, reject_nids: bool) -> Result<Vec<Finding>, Finding> {
    let finding = |boot_set: Option<&String>, text: String| Finding {
        template: template.name.clone(),
        boot_set: boot_set.cloned(),
        text,
    };
    if template.boot_sets.is_empty() {
        return Err(finding(None, "has no boot sets".to_owned()));
    }
    let mut warnings = Vec::new();
    let mut named_before = HashMap::new();
    for (name, boot_set) in &template.boot_sets {
        missing_nodes(boot_set).map_or(Ok(()), |text| Err(finding(Some(name), text)))?;
        warnings.extend(unsupported_provider(boot_set).map(|text| finding(Some(name), text)));
        if boot_set.has_nid() {
            let nid = finding(Some(name), "Has NID in 'node_list'".to_owned());
            if reject_nids {
                return Err(nid);
            }
            warnings.push(nid);
        }
        warnings.extend(named_twice(name, boot_set, &mut named_before).map(|text| finding(Some(name), text)));
    }
    Ok(warnings)
}

fn missing_nodes(boot_set: &BootSet) -> Option<String> {
    let lists = boot_set.specifiers();
    let names = lists.map(|(name, _)| format!("'{name}'")).join(", ");
    if lists.iter().all(|(_, entries)| entries.is_none()) {
        return Some(format!("Missing at least one of the fields {{{names}}}"));
    }
    let empty = lists.iter().all(|(_, entries)| entries.is_none_or(<[_]>::is_empty));
    empty.then(|| format!("All of the fields that name nodes are empty: {{{names}}}"))
}

fn unsupported_provider(boot_set: &BootSet) -> Option<String> {
    let provider = boot_set.rootfs_provider.as_deref().filter(|provider| *provider != "sbps")?;
    Some(format!("Unsupported rootfs_provider ('{provider}') will cause boot/reboot sessions to fail"))
}

/// BOS says nothing of a node in two boot sets; the one whose name sorts last gets it.
fn named_twice<'a>(
    name: &'a str,
    boot_set: &'a BootSet,
    named_before: &mut HashMap<&'a str, &'a str>,
) -> Option<String> {
    let mut first = None;
    for node in boot_set.node_list.iter().flatten() {
        let before = named_before.insert(node, name).filter(|before| *before != name);
        first = first.or_else(|| before.map(|before| (node, before)));
    }
    let (node, before) = first?;
    Some(format!("takes '{node}', and perhaps more nodes, from boot set '{before}', which names it too"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{
        super::tests::{boot_set, template, texts},
        *,
    };

    fn show(template: &SessionTemplate, reject_nids: bool) -> String {
        match findings(template, reject_nids) {
            Err(error) => format!("error: {error}\n"),
            Ok(warnings) => warnings.iter().map(|warning| format!("{warning}\n")).collect(),
        }
    }

    #[test]
    fn findings_name_template_and_boot_set() {
        let provider = |provider: &str| BootSet {
            rootfs_provider: Some(provider.to_owned()),
            node_groups: Some(texts("g")),
            ..boot_set("")
        };
        let rows: String = [
            (template([]), false),
            (template([("b", boot_set(""))]), false),
            (template([("b", BootSet { node_list: Some(vec![]), ..boot_set("") })]), false),
            (template([("a", provider("cpss3")), ("b", boot_set("nid1")), ("c", provider("sbps"))]), false),
            (template([("a", provider("cpss3")), ("b", boot_set("nid1"))]), true),
            (
                template([("a", boot_set("n0 n1 n1")), ("b", boot_set("n2 n1 n0")), ("c", boot_set("n0"))]),
                true,
            ),
        ]
        .iter()
        .map(|(template, reject_nids)| show(template, *reject_nids) + "\n")
        .collect();
        expect![[r#"
            error: Session template: 't' has no boot sets

            error: Session template: 't' boot set: 'b': Missing at least one of the fields {'node_list', 'node_roles_groups', 'node_groups'}

            error: Session template: 't' boot set: 'b': All of the fields that name nodes are empty: {'node_list', 'node_roles_groups', 'node_groups'}

            Session template: 't' boot set: 'a': Unsupported rootfs_provider ('cpss3') will cause boot/reboot sessions to fail
            Session template: 't' boot set: 'b': Has NID in 'node_list'

            error: Session template: 't' boot set: 'b': Has NID in 'node_list'

            Session template: 't' boot set: 'b': takes 'n1', and perhaps more nodes, from boot set 'a', which names it too
            Session template: 't' boot set: 'c': takes 'n0', and perhaps more nodes, from boot set 'b', which names it too

        "#]].assert_eq(&rows);
    }
}
