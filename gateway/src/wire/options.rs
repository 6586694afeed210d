//! Options (BOS reference 4).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::strict::{count, given};

/// The twenty options, or a change of some of them. What they mean stands with the message of the same name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Options {
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub bss_read_timeout: Option<u32>,
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub cfs_read_timeout: Option<u32>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub cleanup_completed_session_ttl: Option<String>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub clear_stage: Option<bool>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub component_actual_state_ttl: Option<String>,
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub default_retry_policy: Option<u32>,
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub discovery_frequency: Option<u32>,
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub hsm_read_timeout: Option<u32>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub ims_errors_fatal: Option<bool>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub ims_images_must_exist: Option<bool>,
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub ims_read_timeout: Option<u32>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub logging_level: Option<String>,
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub max_boot_wait_time: Option<u32>,
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub max_component_batch_size: Option<u32>,
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub max_power_off_wait_time: Option<u32>,
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub max_power_on_wait_time: Option<u32>,
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub pcs_read_timeout: Option<u32>,
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub polling_frequency: Option<u32>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub reject_nids: Option<bool>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub session_limit_required: Option<bool>,
    /// Members that are no option. A patch may carry them, and its answer repeats them (BOS reference 2.5).
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}
