//! Session templates (BOS reference 2.8).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::strict::{Object, given, object};

/// A session template, or a patch of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SessionTemplate {
    /// What some of the nodes should run, by name.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub boot_sets: Option<BTreeMap<String, Object<BootSet>>>,
    /// Configuration of boot sets that have none of their own.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub cfs: Option<Cfs>,
    /// For people.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether nodes are configured after they booted.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub enable_cfs: Option<bool>,
    /// Unique within the tenant; comes from the path of a request.
    #[serde(skip_deserializing)]
    pub name: String,
    /// Tenant that owns the template; comes from the header of a request.
    #[serde(skip_deserializing)]
    pub tenant: Option<String>,
}

/// Which configuration nodes get.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Cfs {
    /// Name of the configuration.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
}

/// What some of the nodes should run, and which (BOS reference 2.8.2).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BootSet {
    /// Architecture of the nodes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Configuration of these nodes.
    #[serde(default, deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub cfs: Option<Cfs>,
    /// Fingerprint of the manifest.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Added to those of the image.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub kernel_parameters: Option<String>,
    /// The same as the key of the boot set.
    #[serde(default, deserialize_with = "given", skip_serializing)]
    pub name: Option<String>,
    /// Nodes by the label of a group.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub node_groups: Option<Vec<String>>,
    /// Nodes by name.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub node_list: Option<Vec<String>>,
    /// Nodes by role.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub node_roles_groups: Option<Vec<String>>,
    /// Where the manifest of the image is.
    pub path: String,
    /// How the root file system reaches the nodes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub rootfs_provider: Option<String>,
    /// Parameters for the provider.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub rootfs_provider_passthrough: Option<String>,
    /// Kind of store that the path points into.
    #[serde(rename = "type")]
    pub kind: String,
}
