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

/// A component record, or a patch of one: what is absent was not given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Component {
    /// What the node said it booted.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ActualState")]
    pub actual_state: Option<ActualState>,
    /// What the node should run.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DesiredState")]
    pub desired_state: Option<DesiredState>,
    /// Whether the component is acted on.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub enabled: Option<bool>,
    /// What is wrong, for people.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ErrorText")]
    pub error: Option<String>,
    /// How often each power action was tried.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "EventStats")]
    pub event_stats: Option<EventStats>,
    /// Which component this is.
    #[serde(deserialize_with = "component_id", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ComponentId")]
    pub id: Option<String>,
    /// What was last done.
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
    /// What the node should run once the stage is applied.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "StagedState")]
    pub staged_state: Option<StagedState>,
    /// Where the component stands.
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
    /// When the token of these artifacts was stored.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BosTime", extend("readOnly" = true))]
    pub timestamp: Option<BosTime>,
}

/// What the node said it booted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ActualState {
    /// What was booted.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BootArtifacts")]
    pub boot_artifacts: Option<BootArtifacts>,
    /// Token that the node reported.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Token")]
    pub bss_token: Option<String>,
    /// When it was reported.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BosTime", extend("readOnly" = true))]
    pub last_updated: Option<BosTime>,
}

/// What the node should run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DesiredState {
    /// What to boot.
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
    /// When it was last set.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BosTime", extend("readOnly" = true))]
    pub last_updated: Option<BosTime>,
}

/// What the node should run once the stage is applied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StagedState {
    /// What to boot.
    #[serde(deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BootArtifacts")]
    pub boot_artifacts: Option<BootArtifacts>,
    /// Name of the wanted configuration.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ConfigurationName")]
    pub configuration: Option<String>,
    /// When it was last set.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BosTime", extend("readOnly" = true))]
    pub last_updated: Option<BosTime>,
    /// Name of the session that staged it.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NameOrEmpty")]
    pub session: Option<String>,
}

/// What was last done to a component.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LastAction {
    /// Which action it was.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SpelledEnum<Action>")]
    pub action: Option<SpelledEnum<Action>>,
    /// Whether it is known to have had no effect.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub failed: Option<bool>,
    /// When it was done.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BosTime", extend("readOnly" = true))]
    pub last_updated: Option<BosTime>,
}

/// How often each power action was tried.
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

/// Where a component stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Status", default, deny_unknown_fields)]
pub(crate) struct ComponentStatus {
    /// What is being done with the component.
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
