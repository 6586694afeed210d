//! When to set the configuration of a node that already runs what it should (BOS reference 5.8).

use crate::{
    component::Component,
    evaluation::ConfigurationObservation,
    status::{self, computed_status},
};

/// What to do about the configuration of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigurationDecision {
    /// Set and enable this configuration, leaving its state alone.
    Set {
        /// The wanted configuration; empty: none.
        configuration: String,
        /// Name of the session to note beside it; empty: none.
        session: String,
    },
    /// Leave it alone until record or observation change.
    Nothing {
        /// Why.
        reason: ConfigurationIdle,
    },
}

/// Why no configuration is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfigurationIdle {
    /// The component is not enabled.
    NotEnabled,
    /// The component is not being configured.
    NotConfiguring,
    /// It is not known what the upstream works towards.
    NotObserved,
    /// The upstream works towards the wanted configuration.
    AlreadySet,
}

impl ConfigurationIdle {
    /// The reason as one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotEnabled => "not_enabled",
            Self::NotConfiguring => "not_configuring",
            Self::NotObserved => "not_observed",
            Self::AlreadySet => "already_set",
        }
    }
}

/// Decides whether the configuration of `component` has to be set. Each component is judged by itself: one
/// that the upstream does not know keeps no other waiting (BUG-10).
pub fn decide(component: &Component, observation: &ConfigurationObservation) -> ConfigurationDecision {
    if !component.is_enabled() {
        return nothing(ConfigurationIdle::NotEnabled);
    }
    if computed_status(component) != status::CONFIGURING {
        return nothing(ConfigurationIdle::NotConfiguring);
    }
    match observation.is_set(component) {
        None => nothing(ConfigurationIdle::NotObserved),
        Some(true) => nothing(ConfigurationIdle::AlreadySet),
        Some(false) => ConfigurationDecision::Set {
            configuration: component.desired_configuration().unwrap_or_default().to_owned(),
            session: component.session_name().to_owned(),
        },
    }
}

fn nothing(reason: ConfigurationIdle) -> ConfigurationDecision {
    ConfigurationDecision::Nothing { reason }
}
