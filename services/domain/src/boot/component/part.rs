//! Parts of a component: states, counters and outcomes whose members are mostly optional.

use std::sync::Arc;

use crate::{
    boot::component::{Action, Phase, artifacts::BootArtifacts},
    core::{id::Tenant, time::Timestamp, trouble::Trouble},
};

/// Token of the boot script server with its place in the order of all tokens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NumberedToken {
    /// The token.
    pub token: Arc<str>,
    /// Number of the token: the registry stores a later token under a higher number.
    pub number: u64,
}

/// Boot that began with a power-on by Reveille.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BegunBoot {
    /// Generation of the component that the power-on was for.
    pub generation: u64,
    /// Attempt of the power-on, counted from 1.
    pub attempt: u32,
    /// Token that was prepared for it; reports with a lower number come from an earlier boot.
    pub token: NumberedToken,
    /// Whether the actual state was written since the power-on began; an older one belongs to an earlier boot.
    pub reported: bool,
}

/// Report of a boot that was over when the report arrived.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LateReport {
    /// Token that the node found on its kernel command line.
    pub token: Arc<str>,
    /// Artifacts of that boot.
    pub boot_artifacts: Arc<BootArtifacts>,
    /// Time of the first arrival of the report.
    pub reported_at: Timestamp,
}

/// Boot that the node reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ActualState {
    /// Artifacts of the token.
    pub boot_artifacts: Option<Arc<BootArtifacts>>,
    /// Token that the node found on its kernel command line.
    pub bss_token: Option<Arc<str>>,
    /// Time at which the state was last reported or cleared.
    pub last_updated: Option<Timestamp>,
}

/// Wanted state of the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct DesiredState {
    /// Artifacts to boot; no kernel: the node should be off.
    pub boot_artifacts: Option<Arc<BootArtifacts>>,
    /// Name of the wanted configuration; empty: none.
    pub configuration: Option<Arc<str>>,
    /// Token of the boot data at the boot script server.
    pub bss_token: Option<Arc<str>>,
    /// Time at which artifacts or configuration were last written.
    pub last_updated: Option<Timestamp>,
}

/// Wanted state of the node once the staged session is applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StagedState {
    /// Artifacts to boot.
    pub boot_artifacts: Option<Arc<BootArtifacts>>,
    /// Name of the wanted configuration; empty: none.
    pub configuration: Option<Arc<str>>,
    /// Name of the session that staged this; empty: none.
    pub session: Option<Arc<str>>,
    /// Tenant of that session; `None`: unknown, the session is identified by its name alone.
    pub tenant: Option<Tenant>,
    /// Unique id of that session; empty if an operator wrote its name.
    pub assignment: Arc<str>,
    /// Whether the state was applied since it was staged, and is still kept.
    pub applied: bool,
    /// Time at which the staged state was last written.
    pub last_updated: Option<Timestamp>,
}

/// Reference to a session in a component: by its id where that is known, or else by name and tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionReference {
    /// Name of the session.
    pub name: Arc<str>,
    /// Tenant of the session; `None`: unknown, the session is identified by its name alone.
    pub tenant: Option<Tenant>,
    /// Unique id of the session; empty if an operator wrote its name.
    pub id: Arc<str>,
}

/// Last action on the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct LastAction {
    /// Kind of the action.
    pub action: Option<Action>,
    /// Whether the action is known not to have had its effect.
    pub failed: Option<bool>,
    /// Time at which the action began, or was found to have failed.
    pub last_updated: Option<Timestamp>,
}

/// Number of attempts at each power action since the desired state was set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct EventStats {
    /// Power-ons.
    pub power_on_attempts: Option<u32>,
    /// Power-offs that shut the node down.
    pub power_off_graceful_attempts: Option<u32>,
    /// Power-offs without a shutdown.
    pub power_off_forceful_attempts: Option<u32>,
}

impl EventStats {
    /// Returns counters without attempts.
    pub fn zeros() -> Self {
        Self {
            power_on_attempts: Some(0),
            power_off_graceful_attempts: Some(0),
            power_off_forceful_attempts: Some(0),
        }
    }
}

/// Phase of the node, and its status override.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Status {
    /// Phase of the work on the node.
    pub phase: Option<Phase>,
    /// Word that replaces the computed status, such as `on_hold` or `failed`; empty: none.
    pub status_override: Option<Arc<str>>,
}

/// Outcome of the preparation of one power-on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BootPreparation {
    /// Generation of the component that was prepared.
    pub generation: u64,
    /// Power-on attempt that was prepared, counted from 1.
    pub attempt: u32,
    /// Trouble at the end of the preparation; `None`: it succeeded.
    pub trouble: Option<Arc<Trouble>>,
}

impl BootPreparation {
    /// Returns the text about a failed preparation; empty: it succeeded.
    pub fn error(&self) -> &str {
        self.trouble.as_ref().map_or("", |trouble| trouble.text())
    }
}
