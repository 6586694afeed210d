//! Options (BOS reference 4).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    primitive::{AgeText, BatchSize, Count, DiscoveryFrequency, LoggingLevel, ReadTimeout, TtlText},
    strict::{count, given},
};

/// The options, or a change of some of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Options {
    /// Seconds until the boot script server has to have begun an answer.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ReadTimeout")]
    pub bss_read_timeout: Option<u32>,
    /// Seconds until the configuration service has to have begun an answer.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ReadTimeout")]
    pub cfs_read_timeout: Option<u32>,
    /// Age since their start at which complete sessions are deleted; any zero: never.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AgeText")]
    pub cleanup_completed_session_ttl: Option<String>,
    /// True if applying a staged state erases it.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub clear_stage: Option<bool>,
    /// Age at which the report of a node is no longer believed; nodes learn from it how often to report.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TtlText")]
    pub component_actual_state_ttl: Option<String>,
    /// Most attempts per power action of a component that has no policy of its own; 0: none.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Count")]
    pub default_retry_policy: Option<u32>,
    /// True if a component that has reached its desired state is left alone from then on; if false, it is brought back
    /// whenever it departs from that state. BOS had this option until 2.47, so it shows only while it is false: clients
    /// that expect the twenty options of BOS find them and no other.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub disable_components_on_completion: Option<bool>,
    /// Seconds between looks for new nodes.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DiscoveryFrequency")]
    pub discovery_frequency: Option<u32>,
    /// Seconds until the inventory has to have begun an answer.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ReadTimeout")]
    pub hsm_read_timeout: Option<u32>,
    /// True if an image service that cannot be reached makes a template invalid.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub ims_errors_fatal: Option<bool>,
    /// True if an image that the image service does not have makes a template invalid.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub ims_images_must_exist: Option<bool>,
    /// Seconds until the image service has to have begun an answer.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ReadTimeout")]
    pub ims_read_timeout: Option<u32>,
    /// Level of the log: debug, info, warning, error or critical, in any letter case.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LoggingLevel")]
    pub logging_level: Option<String>,
    /// Seconds from power-on until a node that runs but did not boot as wanted is rebooted.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Count")]
    pub max_boot_wait_time: Option<u32>,
    /// Most components in one call of another system; 0: no limit.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BatchSize")]
    pub max_component_batch_size: Option<u32>,
    /// Seconds until a power-off without effect is forced, or forced again.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Count")]
    pub max_power_off_wait_time: Option<u32>,
    /// Seconds until a power-on without effect is repeated.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Count")]
    pub max_power_on_wait_time: Option<u32>,
    /// Seconds until the power service has to have begun an answer.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ReadTimeout")]
    pub pcs_read_timeout: Option<u32>,
    /// Seconds until a node is asked for again that another system left out or knew nothing about.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Count")]
    pub polling_frequency: Option<u32>,
    /// True if names that look like node numbers are errors.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub reject_nids: Option<bool>,
    /// True if every session needs a limit.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub session_limit_required: Option<bool>,
    /// Members that are no option. A patch may carry them, and its answer repeats them (BOS reference 2.5).
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}
