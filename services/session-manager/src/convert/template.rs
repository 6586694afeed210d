//! Session templates.

use std::collections::{BTreeMap, HashMap};

use domain::{
    boot::template::{Arch, BootSet, Cfs, SessionTemplate, TemplatePatch},
    core::{id::Tenant, invalid::Invalid},
};
use proto::template as wire;

/// Reads a template from a call or from storage.
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

/// Reads the change of an update; name and tenant select the template.
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

/// Converts a template for an answer or for storage.
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
    let mut read = BTreeMap::new();
    for (name, set) in sets {
        let set = boot_set_from_wire(set).map_err(|invalid| invalid.within(&format!("boot_sets.{name}")))?;
        read.insert(name, set);
    }
    Ok(read)
}

fn boot_set_from_wire(set: wire::BootSet) -> Result<BootSet, Invalid> {
    Ok(BootSet {
        arch: set.arch.map(|word| Arch::parse("arch", &word)).transpose()?,
        name: set.name,
        path: set.path,
        kind: set.r#type,
        etag: set.etag,
        kernel_parameters: set.kernel_parameters,
        node_list: list_from_wire(set.node_list),
        node_roles_groups: list_from_wire(set.node_roles_groups),
        node_groups: list_from_wire(set.node_groups),
        rootfs_provider: set.rootfs_provider,
        rootfs_provider_passthrough: set.rootfs_provider_passthrough,
        cfs: set.cfs.map(cfs_from_wire),
    })
}

fn boot_set_to_wire(set: &BootSet) -> wire::BootSet {
    wire::BootSet {
        name: set.name.clone(),
        path: set.path.clone(),
        r#type: set.kind.clone(),
        etag: set.etag.clone(),
        kernel_parameters: set.kernel_parameters.clone(),
        node_list: list_to_wire(set.node_list.as_ref()),
        node_roles_groups: list_to_wire(set.node_roles_groups.as_ref()),
        node_groups: list_to_wire(set.node_groups.as_ref()),
        arch: set.arch.map(|arch| arch.word().to_owned()),
        rootfs_provider: set.rootfs_provider.clone(),
        rootfs_provider_passthrough: set.rootfs_provider_passthrough.clone(),
        cfs: set.cfs.as_ref().map(cfs_to_wire),
    }
}

fn list_from_wire(list: Option<wire::StringList>) -> Option<Vec<String>> {
    list.map(|list| list.values)
}

fn list_to_wire(list: Option<&Vec<String>>) -> Option<wire::StringList> {
    list.map(|list| wire::StringList { values: list.clone() })
}

fn cfs_from_wire(cfs: wire::Cfs) -> Cfs {
    Cfs { configuration: cfs.configuration }
}

fn cfs_to_wire(cfs: &Cfs) -> wire::Cfs {
    wire::Cfs { configuration: cfs.configuration.clone() }
}
