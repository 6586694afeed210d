//! The limits of every field of a template (BOS reference 2.3, 2.8.1, 2.8.2).

use super::{BootSet, Cfs, SessionTemplate};
use crate::core::{
    id::check_name,
    invalid::{Invalid, check_length},
    limits::{
        LONGEST_DESCRIPTION, LONGEST_ETAG, LONGEST_KERNEL_PARAMETERS, LONGEST_NAME, LONGEST_PASSTHROUGH,
        LONGEST_PATH, LONGEST_PROVIDER, MOST_BOOT_SETS, MOST_GROUPS, MOST_NODES, MOST_ROLES,
    },
};

/// Most entries of `node_list`, `node_roles_groups` and `node_groups`.
const MOST_ENTRIES: [usize; 3] = [MOST_NODES, MOST_ROLES, MOST_GROUPS];

/// Checks every field of `template` against its limits, but not the keys of boot sets: BOS checks these last (BOS
/// reference 2.8.2).
///
/// # Errors
/// Names the first field that breaks a limit, such as `boot_sets.compute.node_list[3]`.
pub fn check_limits(template: &SessionTemplate) -> Result<(), Invalid> {
    check_name("name", &template.name)?;
    optional("description", template.description.as_deref(), 1, LONGEST_DESCRIPTION)?;
    configuration(template.cfs.as_ref())?;
    match template.boot_sets.len() {
        0 => return Err(Invalid::new("boot_sets", "has no boot set but needs at least one")),
        1..=MOST_BOOT_SETS => {}
        many => {
            let reason = format!("has {many} boot sets but may have at most {MOST_BOOT_SETS}");
            return Err(Invalid::new("boot_sets", reason));
        }
    }
    for (name, boot_set) in template.in_order() {
        check_boot_set(boot_set).map_err(|e| e.within(&format!("boot_sets.{name}")))?;
    }
    Ok(())
}

/// Checks the keys of boot sets, which are their names.
///
/// # Errors
/// Quotes the first key that is no name.
pub(super) fn check_names(template: &SessionTemplate) -> Result<(), Invalid> {
    template.in_order().try_for_each(|(name, _)| check_name("boot_sets", name))
}

fn check_boot_set(boot_set: &BootSet) -> Result<(), Invalid> {
    if let Some(name) = &boot_set.name {
        check_name("name", name)?;
    }
    check_length("path", &boot_set.path, 1, LONGEST_PATH)?;
    check_length("type", &boot_set.kind, 1, LONGEST_NAME)?;
    optional("etag", boot_set.etag.as_deref(), 0, LONGEST_ETAG)?;
    optional("kernel_parameters", boot_set.kernel_parameters.as_deref(), 0, LONGEST_KERNEL_PARAMETERS)?;
    optional("rootfs_provider", boot_set.rootfs_provider.as_deref(), 1, LONGEST_PROVIDER)?;
    optional(
        "rootfs_provider_passthrough",
        boot_set.rootfs_provider_passthrough.as_deref(),
        0,
        LONGEST_PASSTHROUGH,
    )?;
    for ((field, entries), most) in boot_set.specifiers().into_iter().zip(MOST_ENTRIES) {
        check_entries(field, entries, most)?;
    }
    configuration(boot_set.cfs.as_ref())
}

fn optional(field: &str, text: Option<&str>, least: usize, most: usize) -> Result<(), Invalid> {
    text.map_or(Ok(()), |text| check_length(field, text, least, most))
}

fn configuration(cfs: Option<&Cfs>) -> Result<(), Invalid> {
    optional("cfs.configuration", cfs.and_then(|cfs| cfs.configuration.as_deref()), 0, LONGEST_NAME)
}

fn check_entries(field: &str, entries: Option<&[String]>, most: usize) -> Result<(), Invalid> {
    let Some(entries) = entries else { return Ok(()) };
    if entries.is_empty() {
        return Err(Invalid::new(field, "has no entry but needs at least one"));
    }
    if entries.len() > most {
        let reason = format!("has {} entries but may have at most {most}", entries.len());
        return Err(Invalid::new(field, reason));
    }
    for (index, entry) in entries.iter().enumerate() {
        check_length("", entry, 1, LONGEST_NAME)
            .map_err(|e| Invalid::new(format!("{field}[{index}]"), e.reason))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{boot_set, cfs, template},
        *,
    };

    /// Returns the first invalid field; empty: none.
    fn field(template: &SessionTemplate) -> String {
        check_limits(template).and_then(|()| check_names(template)).err().map(|e| e.field).unwrap_or_default()
    }

    #[test]
    fn fields_of_a_template_have_limits() {
        let good = || template([("b", boot_set("n0"))]);
        let long = |length: usize| Some("ä".repeat(length));
        let many = (0..128).map(|i| (format!("b{i}"), boot_set("n0"))).collect();
        for (template, expected) in [
            (good(), ""),
            (SessionTemplate { name: "-".to_owned(), ..good() }, "name"),
            (SessionTemplate { description: long(1023), ..good() }, ""),
            (SessionTemplate { description: long(1024), ..good() }, "description"),
            (SessionTemplate { description: long(0), ..good() }, "description"),
            (SessionTemplate { cfs: cfs(""), ..good() }, ""),
            (SessionTemplate { cfs: cfs(&"c".repeat(128)), ..good() }, "cfs.configuration"),
            (template([]), "boot_sets"),
            (SessionTemplate { boot_sets: many, ..good() }, "boot_sets"),
            (template([("b-", boot_set("n0"))]), "boot_sets"),
        ] {
            assert_eq!(field(&template), expected, "{template:?}");
        }
    }

    #[test]
    fn fields_of_a_boot_set_have_limits() {
        let good = || boot_set("n0");
        let text = |length: usize| "s".repeat(length);
        let list = |entries: usize, length: usize| Some(vec![text(length); entries]);
        for (boot_set, expected) in [
            (good(), ""),
            (boot_set(""), ""),
            (BootSet { name: Some("b".to_owned()), ..good() }, ""),
            (BootSet { name: Some(String::new()), ..good() }, "boot_sets.b.name"),
            (BootSet { path: text(0), ..good() }, "boot_sets.b.path"),
            (BootSet { path: text(4096), ..good() }, "boot_sets.b.path"),
            (BootSet { kind: text(0), ..good() }, "boot_sets.b.type"),
            (BootSet { kind: text(128), ..good() }, "boot_sets.b.type"),
            (BootSet { etag: Some(text(0)), ..good() }, ""),
            (BootSet { etag: Some(text(65_537)), ..good() }, "boot_sets.b.etag"),
            (BootSet { kernel_parameters: Some(text(4096)), ..good() }, ""),
            (BootSet { kernel_parameters: Some(text(4097)), ..good() }, "boot_sets.b.kernel_parameters"),
            (BootSet { rootfs_provider: Some(text(0)), ..good() }, "boot_sets.b.rootfs_provider"),
            (BootSet { rootfs_provider: Some(text(512)), ..good() }, "boot_sets.b.rootfs_provider"),
            (BootSet { rootfs_provider_passthrough: Some(text(0)), ..good() }, ""),
            (
                BootSet { rootfs_provider_passthrough: Some(text(4097)), ..good() },
                "boot_sets.b.rootfs_provider_passthrough",
            ),
            (BootSet { node_list: list(65_535, 1), ..good() }, ""),
            (BootSet { node_list: list(65_536, 1), ..good() }, "boot_sets.b.node_list"),
            (BootSet { node_list: list(0, 1), ..good() }, "boot_sets.b.node_list"),
            (BootSet { node_list: list(2, 128), ..good() }, "boot_sets.b.node_list[0]"),
            (BootSet { node_roles_groups: list(1024, 1), ..good() }, "boot_sets.b.node_roles_groups"),
            (BootSet { node_groups: list(1, 0), ..good() }, "boot_sets.b.node_groups[0]"),
            (BootSet { node_groups: list(4096, 1), ..good() }, "boot_sets.b.node_groups"),
            (BootSet { cfs: cfs(&text(128)), ..good() }, "boot_sets.b.cfs.configuration"),
        ] {
            let path = field(&template([("b", boot_set)]));
            assert_eq!(path, expected);
        }
    }
}
