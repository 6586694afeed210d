//! Session templates.

use std::collections::{BTreeMap, HashMap};

use domain::{
    id::Tenant,
    invalid::Invalid,
    template::{Arch, BootSet, Cfs, SessionTemplate, TemplatePatch},
};
use proto::template as wire;

/// A template from the wire or from storage.
///
/// # Errors
/// Names the field that cannot be read.
pub(crate) fn from_wire(template: wire::SessionTemplate) -> Result<SessionTemplate, Invalid> {
    Ok(SessionTemplate {
        tenant: Tenant::parse(&template.tenant)?,
        name: template.name,
        description: template.description,
        enable_cfs: template.enable_cfs,
        cfs: template.cfs.map(cfs_from_wire),
        boot_sets: boot_sets_from_wire(template.boot_sets)?,
        boot_set_order: template.boot_set_order,
        revision: template.revision,
    })
}

/// The change that the members of a template stand for; name and tenant say what is changed.
///
/// # Errors
/// Names the field that cannot be read.
pub(crate) fn patch_from_wire(template: wire::SessionTemplate) -> Result<TemplatePatch, Invalid> {
    Ok(TemplatePatch {
        description: template.description,
        enable_cfs: template.enable_cfs,
        cfs: template.cfs.map(cfs_from_wire),
        boot_sets: boot_sets_from_wire(template.boot_sets)?,
        boot_set_order: template.boot_set_order,
    })
}

/// A template as it goes out or to storage.
pub(crate) fn to_wire(template: &SessionTemplate) -> wire::SessionTemplate {
    let boot_sets = template.boot_sets.iter();
    wire::SessionTemplate {
        name: template.name.clone(),
        tenant: template.tenant.as_str().to_owned(),
        description: template.description.clone(),
        enable_cfs: template.enable_cfs,
        cfs: template.cfs.as_ref().map(cfs_to_wire),
        boot_sets: boot_sets.map(|(name, set)| (name.clone(), boot_set_to_wire(set))).collect(),
        boot_set_order: template.boot_set_order.clone(),
        revision: template.revision,
    }
}

fn boot_sets_from_wire(sets: HashMap<String, wire::BootSet>) -> Result<BTreeMap<String, BootSet>, Invalid> {
    let read = |(name, set)| match boot_set_from_wire(set) {
        Ok(set) => Ok((name, set)),
        Err(invalid) => Err(invalid.within(&format!("boot_sets.{name}"))),
    };
    sets.into_iter().map(read).collect()
}

fn boot_set_from_wire(set: wire::BootSet) -> Result<BootSet, Invalid> {
    let list = |list: Option<wire::StringList>| list.map(|list| list.values);
    Ok(BootSet {
        arch: set.arch.map(|word| Arch::parse("arch", &word)).transpose()?,
        name: set.name,
        path: set.path,
        kind: set.r#type,
        etag: set.etag,
        kernel_parameters: set.kernel_parameters,
        node_list: list(set.node_list),
        node_roles_groups: list(set.node_roles_groups),
        node_groups: list(set.node_groups),
        rootfs_provider: set.rootfs_provider,
        rootfs_provider_passthrough: set.rootfs_provider_passthrough,
        cfs: set.cfs.map(cfs_from_wire),
    })
}

fn boot_set_to_wire(set: &BootSet) -> wire::BootSet {
    let list = |list: &Option<Vec<String>>| list.clone().map(|values| wire::StringList { values });
    wire::BootSet {
        name: set.name.clone(),
        path: set.path.clone(),
        r#type: set.kind.clone(),
        etag: set.etag.clone(),
        kernel_parameters: set.kernel_parameters.clone(),
        node_list: list(&set.node_list),
        node_roles_groups: list(&set.node_roles_groups),
        node_groups: list(&set.node_groups),
        arch: set.arch.map(|arch| arch.word().to_owned()),
        rootfs_provider: set.rootfs_provider.clone(),
        rootfs_provider_passthrough: set.rootfs_provider_passthrough.clone(),
        cfs: set.cfs.as_ref().map(cfs_to_wire),
    }
}

fn cfs_from_wire(cfs: wire::Cfs) -> Cfs {
    Cfs { configuration: cfs.configuration }
}

fn cfs_to_wire(cfs: &Cfs) -> wire::Cfs {
    wire::Cfs { configuration: cfs.configuration.clone() }
}
