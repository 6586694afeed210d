//! Times for setting the configuration of a node that already runs the wanted artifacts (BOS reference 5.8).

use std::time::Duration;

use crate::{
    boot::{
        component::{
            Component,
            status::{ComponentProgress, ComponentStatus, computed_progress, computed_status},
        },
        power::PowerObservation,
    },
    core::time::Timestamp,
};

pub mod boot_script;
pub mod preparation;
pub mod reading;

/// Time for which the configuration upstream's knowledge of a node counts.
const KNOWN_FOR: Duration = Duration::from_secs(60 * 60);

/// Known configuration of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigurationObservation {
    /// No observation yet, or none since the current generation began.
    Unknown,
    /// The upstream answered and left the node out.
    Missing,
    /// The upstream described the node.
    Known {
        /// Configuration that the upstream works towards; `None`: it has none on record.
        desired: Option<String>,
        /// Upstream's word for the progress, in any letter case.
        status: String,
    },
}

impl ConfigurationObservation {
    /// Returns this observation if it belongs to the component's generation, else [`Self::Unknown`].
    #[must_use]
    pub fn of(self, observed_generation: u64, component_generation: u64) -> Self {
        if observed_generation == component_generation { self } else { Self::Unknown }
    }

    /// Returns whether the upstream works towards the wanted configuration of the component (BOS reference 5.2,
    /// "configuration set"); `None`: unknown.
    ///
    /// An empty name differs from a missing one, with one exception: a component without a configuration accepts the
    /// empty name, since setting "none" leaves the empty name on record.
    pub fn is_set(&self, component: &Component) -> Option<bool> {
        let Self::Known { desired, .. } = self else { return None };
        let wanted = component.desired_configuration();
        Some(desired.as_deref() == wanted || (wanted.is_none() && desired.as_deref() == Some("")))
    }
}

/// Next step for the configuration of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigurationDecision {
    /// Set and enable this configuration, and keep its state.
    Set {
        /// The wanted configuration; empty: none.
        configuration: String,
        /// Name of the session to note beside it; empty: none.
        session: String,
    },
    /// Do nothing until record or observation change.
    Nothing {
        /// Reason for doing nothing.
        reason: ConfigurationIdle,
    },
}

/// Reason for not setting a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfigurationIdle {
    /// The component is not enabled.
    NotEnabled,
    /// The component is not being configured.
    NotConfiguring,
    /// The configuration that the upstream works towards is unknown.
    NotObserved,
    /// The upstream works towards the wanted configuration.
    AlreadySet,
    /// The session of the component is paused.
    Paused,
}

/// Decides whether the configuration of `component` has to be set. Each component is judged alone: one that the
/// upstream does not know delays no other (BUG-10).
pub fn decide(component: &Component, observation: &ConfigurationObservation) -> ConfigurationDecision {
    if !component.is_enabled() {
        return nothing(ConfigurationIdle::NotEnabled);
    }
    let is_configuring = computed_progress(component) == ComponentProgress::Configuring;
    if !component.status_override().is_empty() || !is_configuring {
        return nothing(ConfigurationIdle::NotConfiguring);
    }
    match observation.is_set(component) {
        None => nothing(ConfigurationIdle::NotObserved),
        Some(true) => nothing(ConfigurationIdle::AlreadySet),
        Some(false) if component.is_paused() => nothing(ConfigurationIdle::Paused),
        Some(false) => ConfigurationDecision::Set {
            configuration: component.desired_configuration().unwrap_or_default().to_owned(),
            session: component.session_name().to_owned(),
        },
    }
}

/// Returns whether the decision about `component` depends on its configuration: the component runs the wanted
/// artifacts, and is neither finished nor given up (rows 5 to 10 of BOS reference 5.3.1).
pub fn decides(component: &Component) -> bool {
    component.is_enabled()
        && computed_status(component) != ComponentStatus::Failed
        && component.kernel_wanted()
        && component.runs_wanted()
}

/// Returns whether the configuration of `component` need not be known in this generation yet.
///
/// A node that has to boot first is not judged by its configuration before it has. Until then only its presence at the
/// upstream matters. The upstream had the node at `known_at`, in whichever generation, and confirms it again by taking
/// the configuration for its boot. A node that the upstream did not have then, or that was not requested for long, must
/// be held before any action on it. The same holds for a node that runs by its `power`: before it is switched off the
/// upstream has to be asked in this generation.
pub fn can_wait(
    component: &Component,
    power: &PowerObservation,
    known_at: Option<Timestamp>,
    now: Timestamp,
) -> bool {
    let is_known = known_at.is_some_and(|at| now.since(at) <= KNOWN_FOR);
    is_known && component.kernel_wanted() && !component.runs_wanted() && !power.is_on()
}

/// Returns the time between audits of `nodes` nodes whose configuration decides about them: in an audit the upstream is
/// asked about all of them, whatever was pushed or polled meanwhile. `least` is the shortest time; for many nodes it
/// grows, so that no more than ten answers of a thousand nodes are requested in a minute. It doubles, so that the
/// moments of longer periods are moments of shorter ones too, and nodes that are added while others leave are requested
/// together.
pub fn audit_period(least: Duration, nodes: usize) -> Duration {
    const EACH: Duration = Duration::from_millis(6);
    let wanted = EACH.saturating_mul(u32::try_from(nodes).unwrap_or(u32::MAX));
    let times = wanted.as_nanos().div_ceil(least.as_nanos().max(1)).next_power_of_two();
    least.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX))
}

fn nothing(reason: ConfigurationIdle) -> ConfigurationDecision {
    ConfigurationDecision::Nothing { reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::component::{
        ActualState, ComponentEvaluation, ComponentWish, DesiredState, PauseMark, Phase, ReportedBoots,
        Status,
        view::{artifacts, bare},
    };

    fn configuring(configuration: Option<&str>) -> Component {
        Component {
            wish: ComponentWish {
                enabled: Some(true),
                desired_state: Some(DesiredState {
                    configuration: configuration.map(Into::into),
                    ..DesiredState::default()
                }),
                session: Some("s1".into()),
                ..ComponentWish::default()
            }
            .into(),
            evaluation: ComponentEvaluation {
                status: Some(Status { phase: Some(Phase::Configuring), status_override: None }),
                ..ComponentEvaluation::default()
            }
            .into(),
            ..bare()
        }
    }

    fn known(desired: Option<&str>) -> ConfigurationObservation {
        ConfigurationObservation::Known { desired: desired.map(str::to_owned), status: "pending".to_owned() }
    }

    fn set(configuration: &str) -> ConfigurationDecision {
        ConfigurationDecision::Set { configuration: configuration.to_owned(), session: "s1".to_owned() }
    }

    #[test]
    fn configurations_that_differ_are_set() {
        let already = nothing(ConfigurationIdle::AlreadySet);
        let unseen = nothing(ConfigurationIdle::NotObserved);
        let rows = [
            (Some("c"), known(Some("c")), already.clone()),
            (Some("c"), known(Some("d")), set("c")),
            (Some("c"), known(None), set("c")),
            (Some(""), known(Some("d")), set("")),
            (Some(""), known(None), set("")),
            (None, known(Some("d")), set("")),
            (None, known(None), already.clone()),
            // The name that setting "none" leaves on record; otherwise it would be set for ever.
            (None, known(Some("")), already),
            (Some("c"), ConfigurationObservation::Unknown, unseen.clone()),
            (Some("c"), ConfigurationObservation::Missing, unseen),
        ];
        for (wanted, observation, expected) in rows {
            assert_eq!(decide(&configuring(wanted), &observation), expected, "{wanted:?} {observation:?}");
        }
    }

    #[test]
    fn no_configuration_is_set_during_a_pause() {
        let mark = PauseMark::by("alice", Timestamp(0));
        let paused = configuring(Some("c")).with(|one| one.wish.pause = Some(mark.into()));
        let rows = [
            (known(Some("d")), ConfigurationIdle::Paused),
            (known(Some("c")), ConfigurationIdle::AlreadySet),
            (ConfigurationObservation::Unknown, ConfigurationIdle::NotObserved),
        ];
        for (observation, reason) in rows {
            assert_eq!(decide(&paused, &observation), nothing(reason), "{observation:?}");
        }
    }

    #[test]
    fn only_nodes_that_are_being_configured_are_touched() {
        let at = |phase, word: &str| {
            configuring(Some("c")).with(|one| {
                one.evaluation.status =
                    Some(Status { phase: Some(phase), status_override: Some(word.into()) })
            })
        };
        let disabled = configuring(Some("c")).with(|one| one.wish.enabled = None);
        let rows = [
            ("disabled", disabled, ConfigurationIdle::NotEnabled),
            ("held", at(Phase::Configuring, "on_hold"), ConfigurationIdle::NotConfiguring),
            ("misleading", at(Phase::None, "configuring"), ConfigurationIdle::NotConfiguring),
            ("failed", at(Phase::Configuring, "failed"), ConfigurationIdle::NotConfiguring),
            ("booting", at(Phase::PoweringOn, ""), ConfigurationIdle::NotConfiguring),
        ];
        for (name, component, reason) in rows {
            assert_eq!(decide(&component, &known(None)), nothing(reason), "{name}");
        }
    }

    #[test]
    fn the_configuration_matters_once_a_node_runs_what_it_should() {
        let runs = |kernel: &str, wanted: &str| Component {
            wish: ComponentWish {
                enabled: Some(true),
                desired_state: Some(DesiredState {
                    boot_artifacts: Some(artifacts(wanted)),
                    ..DesiredState::default()
                }),
                ..ComponentWish::default()
            }
            .into(),
            reported: ReportedBoots {
                actual_state: Some(ActualState {
                    boot_artifacts: Some(artifacts(kernel)),
                    ..ActualState::default()
                }),
                ..ReportedBoots::default()
            },
            ..bare()
        };
        let held = |word: &str| {
            runs("k p i", "k p i").with(|one| {
                one.evaluation.status =
                    Some(Status { phase: Some(Phase::Configuring), status_override: Some(word.into()) })
            })
        };
        let rows = [
            ("runs it", runs("k p i", "k p i"), true),
            ("runs another", runs("j p i", "k p i"), false),
            ("has not reported", runs("k p i", "k p i").with(|one| one.reported.actual_state = None), false),
            (
                "should be off",
                runs("", "").with(|one| {
                    one.wish.desired_state = None;
                    one.reported.actual_state = None;
                }),
                false,
            ),
            ("not enabled", runs("k p i", "k p i").with(|one| one.wish.enabled = None), false),
            ("held", held("on_hold"), true),
            ("given up", held("failed"), false),
        ];
        for (name, component, expected) in rows {
            assert_eq!(decides(&component), expected, "{name}");
        }
    }

    #[test]
    fn evidence_of_nodes_that_boot_first_can_wait() {
        let component = |actual: Option<&str>, wanted: &str| Component {
            wish: ComponentWish {
                enabled: Some(true),
                desired_state: Some(DesiredState {
                    boot_artifacts: Some(artifacts(wanted)),
                    ..DesiredState::default()
                }),
                ..ComponentWish::default()
            }
            .into(),
            reported: ReportedBoots {
                actual_state: actual.map(|actual| ActualState {
                    boot_artifacts: Some(artifacts(actual)),
                    ..ActualState::default()
                }),
                ..ReportedBoots::default()
            },
            ..bare()
        };
        let rows = [
            ("is to boot", component(None, "k p i"), true),
            ("runs another", component(Some("j p i"), "k p i"), true),
            ("runs it", component(Some("k p i"), "k p i"), false),
            ("should be off", component(Some("j p i"), ". - -"), false),
            (
                "should be off and is",
                component(None, ". - -").with(|one| one.wish.desired_state = None),
                false,
            ),
        ];
        let now = Timestamp(0);
        let ago = |age: Duration| Some(Timestamp(now.0 - i64::try_from(age.as_millis()).unwrap()));
        for (name, component, expected) in rows {
            for (power, may_wait) in [
                (PowerObservation::Unknown, true),
                (PowerObservation::Off, true),
                (PowerObservation::On, false),
            ] {
                let waits = can_wait(&component, &power, ago(KNOWN_FOR), now);
                assert_eq!(waits, expected && may_wait, "{name}, {power:?}");
            }
            for known_at in [None, ago(KNOWN_FOR + Duration::from_secs(1))] {
                let waits = can_wait(&component, &PowerObservation::Off, known_at, now);
                assert!(!waits, "{name}, known at {known_at:?}");
            }
        }
    }

    #[test]
    fn many_nodes_are_audited_less_often() {
        let least = Duration::from_secs(15);
        for (nodes, seconds) in
            [(0, 15), (1, 15), (2_500, 15), (2_501, 30), (5_000, 30), (10_000, 60), (100_000, 960)]
        {
            assert_eq!(audit_period(least, nodes), Duration::from_secs(seconds), "{nodes}");
        }
        assert!(audit_period(least, usize::MAX) > least);
        assert_eq!(audit_period(Duration::ZERO, 1), Duration::ZERO);
    }

    #[test]
    fn observations_count_for_their_generation_only() {
        let known = ConfigurationObservation::Known {
            desired: Some("c".to_owned()),
            status: "configured".to_owned(),
        };
        assert_eq!(known.clone().of(7, 7), known);
        assert_eq!(known.of(6, 7), ConfigurationObservation::Unknown);
    }
}
