//! Components (BOS reference 2.6.8).

use proto::component::{Action, Phase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    primitive::{
        ArtifactPath, Attempts, ComponentId, ConfigurationName, ErrorText, KernelParameters, NameOrEmpty,
        Token,
    },
    stamp::BosTime,
    strict::{component_id, count, given, object},
    words::SpelledEnum,
};

/// A component record, or a patch of one: absent members were not given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Component {
    /// State that the node reported.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ActualState")]
    pub actual_state: Option<ActualState>,
    /// State in which the node should be.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DesiredState")]
    pub desired_state: Option<DesiredState>,
    /// True if the component is acted on.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub enabled: Option<bool>,
    /// Description of the present error, for people.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ErrorText")]
    pub error: Option<String>,
    /// Number of attempts of each power action.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "EventStats")]
    pub event_stats: Option<EventStats>,
    /// Id of the component.
    #[serde(deserialize_with = "component_id", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ComponentId")]
    pub id: Option<String>,
    /// Last action on the component.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LastAction")]
    pub last_action: Option<LastAction>,
    /// Most attempts per power action.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Attempts")]
    pub retry_policy: Option<u32>,
    /// Name of the session that owns the component.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NameOrEmpty")]
    pub session: Option<String>,
    /// State that becomes the desired state once the stage is applied.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "StagedState")]
    pub staged_state: Option<StagedState>,
    /// Status of the component.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ComponentStatus")]
    pub status: Option<ComponentStatus>,
}

/// The three artifacts that identify a boot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct BootArtifacts {
    /// Path of the initial RAM disk.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ArtifactPath")]
    pub initrd: Option<String>,
    /// Path of the kernel.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ArtifactPath")]
    pub kernel: Option<String>,
    /// Kernel command line.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "KernelParameters")]
    pub kernel_parameters: Option<String>,
    /// Time at which the token of these artifacts was stored.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BosTime", extend("readOnly" = true))]
    pub timestamp: Option<BosTime>,
}

/// The state that the node reported.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ActualState {
    /// Artifacts that were booted.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BootArtifacts")]
    pub boot_artifacts: Option<BootArtifacts>,
    /// Token that the node reported.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Token")]
    pub bss_token: Option<String>,
    /// Time of the report.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BosTime", extend("readOnly" = true))]
    pub last_updated: Option<BosTime>,
}

/// The state in which the node should be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DesiredState {
    /// Artifacts to boot.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BootArtifacts")]
    pub boot_artifacts: Option<BootArtifacts>,
    /// Token under which the boot data were accepted.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Token")]
    pub bss_token: Option<String>,
    /// Name of the wanted configuration.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ConfigurationName")]
    pub configuration: Option<String>,
    /// Time of the last change.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BosTime", extend("readOnly" = true))]
    pub last_updated: Option<BosTime>,
}

/// The state that becomes the desired state once the stage is applied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StagedState {
    /// Artifacts to boot.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BootArtifacts")]
    pub boot_artifacts: Option<BootArtifacts>,
    /// Name of the wanted configuration.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ConfigurationName")]
    pub configuration: Option<String>,
    /// Time of the last change.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BosTime", extend("readOnly" = true))]
    pub last_updated: Option<BosTime>,
    /// Name of the session that staged this state.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NameOrEmpty")]
    pub session: Option<String>,
}

/// The last action on a component.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LastAction {
    /// Name of the action.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SpelledEnum<Action>")]
    pub action: Option<SpelledEnum<Action>>,
    /// True if the action is known to have had no effect.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub failed: Option<bool>,
    /// Time of the action.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BosTime", extend("readOnly" = true))]
    pub last_updated: Option<BosTime>,
}

/// Number of attempts of each power action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EventStats {
    /// Forced power-offs.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Attempts")]
    pub power_off_forceful_attempts: Option<u32>,
    /// Graceful power-offs.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Attempts")]
    pub power_off_graceful_attempts: Option<u32>,
    /// Power-ons.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Attempts")]
    pub power_on_attempts: Option<u32>,
}

/// The status of a component.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Status", default, deny_unknown_fields)]
pub(crate) struct ComponentStatus {
    /// Phase of the work on the component.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SpelledEnum<Phase>")]
    pub phase: Option<SpelledEnum<Phase>>,
    /// The computed word.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("readOnly" = true))]
    pub status: Option<String>,
    /// Word that replaces the computed one.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ErrorText")]
    pub status_override: Option<String>,
}
