//! Session templates (BOS reference 2.8).

use std::borrow::Cow;

use chassis::limits::MOST_BOOT_SETS;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    named::NamedMembers,
    primitive::{
        ArchitectureName, BootSetType, ConfigurationName, Description, Etag, KernelParameters, ManifestPath,
        NodeGroupList, NodeList, NodeRoleList, Passthrough, Provider, ResourceName, TenantName,
    },
    strict::{JsonObject, given, object},
};

/// A session template, or a patch of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SessionTemplate {
    /// Boot sets by name. The name is of the same kind as that of the template.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BootSets")]
    pub boot_sets: Option<NamedMembers<JsonObject<BootSet>>>,
    /// Configuration of boot sets that have none of their own.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Cfs")]
    pub cfs: Option<Cfs>,
    /// Description for people.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Description")]
    pub description: Option<String>,
    /// True if nodes are configured after they booted.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub enable_cfs: Option<bool>,
    /// Unique within the tenant; comes from the path of a request.
    #[serde(skip_deserializing)]
    #[schemars(with = "ResourceName", extend("readOnly" = true))]
    pub name: String,
    /// Tenant that owns the template; comes from the header of a request.
    #[serde(skip_deserializing)]
    #[schemars(with = "Option<TenantName>", extend("readOnly" = true))]
    pub tenant: Option<String>,
}

/// The configuration of nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Cfs {
    /// Name of the configuration.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ConfigurationName")]
    pub configuration: Option<String>,
}

/// A group of nodes, and the state in which they should be (BOS reference 2.8.2).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("anyOf" = json!(NODE_FIELDS.map(|field| json!({ "required": [field] })))))]
#[serde(deny_unknown_fields)]
pub(crate) struct BootSet {
    /// Architecture of the nodes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ArchitectureName")]
    pub arch: Option<String>,
    /// Configuration of these nodes.
    #[serde(default, deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Cfs")]
    pub cfs: Option<Cfs>,
    /// Fingerprint of the manifest.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Etag")]
    pub etag: Option<String>,
    /// Kernel parameters beside those of the image.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "KernelParameters")]
    pub kernel_parameters: Option<String>,
    /// Name of the boot set, which is its key.
    #[serde(default, deserialize_with = "given", skip_serializing)]
    #[schemars(with = "ResourceName")]
    pub name: Option<String>,
    /// Nodes by the label of a group.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NodeGroupList")]
    pub node_groups: Option<Vec<String>>,
    /// Nodes by name.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NodeList")]
    pub node_list: Option<Vec<String>>,
    /// Nodes by role.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NodeRoleList")]
    pub node_roles_groups: Option<Vec<String>>,
    /// Path of the manifest of the image.
    #[schemars(with = "ManifestPath")]
    pub path: String,
    /// Provider of the root file system.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Provider")]
    pub rootfs_provider: Option<String>,
    /// Parameters for the provider.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Passthrough")]
    pub rootfs_provider_passthrough: Option<String>,
    /// Kind of store that the path points into.
    #[serde(rename = "type")]
    #[schemars(with = "BootSetType")]
    pub kind: String,
}

/// Members of which a boot set has at least one.
const NODE_FIELDS: [&str; 3] = ["node_list", "node_roles_groups", "node_groups"];

/// Boot sets by name, as the description of the contract shows them.
struct BootSets;

impl JsonSchema for BootSets {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "BootSets".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "additionalProperties": generator.subschema_for::<BootSet>(),
            "minProperties": 1,
            "maxProperties": MOST_BOOT_SETS,
        })
    }
}
