//! Session templates.

use proto::template as message;

use super::none_if_empty;
use crate::bos::wire::{named::NamedMembers, strict::JsonObject, template as wire};

/// The template `name` of `tenant`, or a patch of it.
pub(crate) fn named(
    template: wire::SessionTemplate,
    name: String,
    tenant: String,
) -> message::SessionTemplate {
    let NamedMembers(sets) = template.boot_sets.unwrap_or_default();
    message::SessionTemplate {
        name,
        tenant,
        description: template.description,
        enable_cfs: template.enable_cfs,
        cfs: template.cfs.map(Into::into),
        boot_set_order: sets.iter().map(|(name, _)| name.clone()).collect(),
        boot_sets: sets.into_iter().map(|(name, JsonObject(set))| (name, set.into())).collect(),
        revision: 0,
    }
}

impl From<message::SessionTemplate> for wire::SessionTemplate {
    fn from(template: message::SessionTemplate) -> Self {
        let sets = template.boot_sets.into_iter().map(|(name, set)| (name, JsonObject(set.into())));
        Self {
            boot_sets: Some(NamedMembers::sorted(sets)),
            cfs: template.cfs.map(Into::into),
            description: template.description,
            enable_cfs: template.enable_cfs,
            name: template.name,
            tenant: none_if_empty(template.tenant),
        }
    }
}

impl From<wire::Cfs> for message::Cfs {
    fn from(cfs: wire::Cfs) -> Self {
        Self { configuration: cfs.configuration }
    }
}

impl From<message::Cfs> for wire::Cfs {
    fn from(cfs: message::Cfs) -> Self {
        Self { configuration: cfs.configuration }
    }
}

impl From<wire::BootSet> for message::BootSet {
    fn from(set: wire::BootSet) -> Self {
        Self {
            name: set.name,
            path: set.path,
            r#type: set.kind,
            etag: set.etag,
            kernel_parameters: set.kernel_parameters,
            node_list: set.node_list.map(list),
            node_roles_groups: set.node_roles_groups.map(list),
            node_groups: set.node_groups.map(list),
            arch: set.arch,
            rootfs_provider: set.rootfs_provider,
            rootfs_provider_passthrough: set.rootfs_provider_passthrough,
            cfs: set.cfs.map(Into::into),
        }
    }
}

fn list(values: Vec<String>) -> message::StringList {
    message::StringList { values }
}

impl From<message::BootSet> for wire::BootSet {
    fn from(set: message::BootSet) -> Self {
        Self {
            arch: set.arch,
            cfs: set.cfs.map(Into::into),
            etag: set.etag,
            kernel_parameters: set.kernel_parameters,
            name: set.name,
            node_groups: set.node_groups.map(|list| list.values),
            node_list: set.node_list.map(|list| list.values),
            node_roles_groups: set.node_roles_groups.map(|list| list.values),
            path: set.path,
            rootfs_provider: set.rootfs_provider,
            rootfs_provider_passthrough: set.rootfs_provider_passthrough,
            kind: set.r#type,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn boot_sets_are_passed_on_in_the_order_of_the_request() {
        let body = r#"{"boot_sets": {"c": {"path": "p", "type": "s3"}, "a": {"path": "p", "type": "s3"},
            "b": {"path": "p", "type": "s3"}, "c": {"path": "last", "type": "s3"}}}"#;
        let message = named(serde_json::from_str(body).unwrap(), "t1".into(), String::new());
        assert_eq!(message.boot_set_order, ["c", "a", "b"]);
        assert_eq!(message.boot_sets["c"].path, "last");
        let NamedMembers(shown) = wire::SessionTemplate::from(message).boot_sets.unwrap();
        assert_eq!(shown.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn templates_come_back_as_they_were_sent() {
        let set = json!({
            "path": "p", "type": "s3", "etag": "", "kernel_parameters": "k=v", "node_list": ["x1"],
            "node_groups": ["g"], "node_roles_groups": [], "arch": "X86", "rootfs_provider": "sbps",
            "rootfs_provider_passthrough": "p", "cfs": {"configuration": "c"},
        });
        let mut body = json!({
            "boot_sets": {"c": set, "d": {"path": "p", "type": "s3"}}, "cfs": {}, "description": "text",
            "enable_cfs": false,
        });
        let template: wire::SessionTemplate = serde_json::from_value(body.clone()).unwrap();
        let kept = wire::SessionTemplate::from(named(template, "t1".into(), String::new()));
        body["name"] = json!("t1");
        body["tenant"] = Value::Null;
        assert_eq!(serde_json::to_value(kept).unwrap(), body);
    }
}
