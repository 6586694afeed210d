//! An observation of one node, and its form on record.

use std::sync::Arc;

use chassis::mesh::time;
use domain::{
    boot::configuration::ConfigurationObservation,
    core::{id::ComponentId, time::Timestamp},
};
use proto::{
    configuration::{ConfigurationReading, ConfigurationState},
    meta::TroubleKind,
};

/// Observation of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObservedConfiguration {
    /// The upstream described the node.
    Known { desired: Option<String>, status: String },
    /// The upstream does not have the node.
    Missing,
    /// The upstream does not answer: the text has the awaited peer, the beginning of the outage, and the last error.
    Lost(Arc<str>),
}

impl ObservedConfiguration {
    /// Returns the observation in an answer; `None` if it cannot be used.
    pub(crate) fn of(observation: ConfigurationObservation) -> Option<Self> {
        match observation {
            ConfigurationObservation::Known { desired, status } => Some(Self::Known { desired, status }),
            ConfigurationObservation::Missing => Some(Self::Missing),
            ConfigurationObservation::Unknown => None,
        }
    }

    /// Returns the state that replaces `kept` once that is out of date.
    pub(crate) fn withdrawn(kept: &ConfigurationState) -> ConfigurationState {
        ConfigurationState {
            reading: ConfigurationReading::Unspecified.into(),
            desired_configuration: None,
            status: String::new(),
            error: String::new(),
            error_kind: TroubleKind::Unspecified.into(),
            ..kept.clone()
        }
    }

    /// Returns the state that replaces `kept`; `None` if `kept` is the same.
    pub(crate) fn replaces(
        self,
        kept: Option<&ConfigurationState>,
        id: &ComponentId,
        generation: u64,
        at: Timestamp,
    ) -> Option<ConfigurationState> {
        let observed_at = match self {
            Self::Known { .. } | Self::Missing => Some(time::to_wire(at)),
            // Time of the last observation, so that operators see its age.
            Self::Lost(_) => kept.and_then(|kept| kept.observed_at),
        };
        let mut state = ConfigurationState {
            id: id.as_str().to_owned(),
            observed_at,
            generation,
            ..ConfigurationState::default()
        };
        match self {
            Self::Known { desired, status } => {
                if let Some(standing) = standing(kept, generation, desired.as_deref()) {
                    state.error.clone_from(&standing.error);
                    state.error_kind = standing.error_kind;
                }
                state.reading = ConfigurationReading::Known.into();
                state.desired_configuration = desired;
                state.status = status;
            }
            Self::Missing => state.reading = ConfigurationReading::Missing.into(),
            Self::Lost(error) => {
                state.error = error.to_string();
                state.error_kind = TroubleKind::Waiting.into();
            }
        }
        let same = kept.is_some_and(|kept| {
            // A confirmation of the known state is not written, so its time does not count.
            let observed_at = state.observed_at;
            ConfigurationState { revision: state.revision, observed_at, ..kept.clone() } == state
        });
        (!same).then_some(state)
    }
}

/// Returns the state with the reason why another configuration could not be set; the reason counts until one is set.
fn standing<'a>(
    kept: Option<&'a ConfigurationState>,
    generation: u64,
    desired: Option<&str>,
) -> Option<&'a ConfigurationState> {
    kept.filter(|kept| {
        kept.reading() == ConfigurationReading::Known
            && kept.generation == generation
            && kept.desired_configuration.as_deref() == desired
    })
}

#[cfg(test)]
mod tests {
    use chassis::kinds::observation;
    use expect_test::expect;

    use super::*;

    #[test]
    fn only_what_differs_is_written() {
        let id = ComponentId::parse("x1").unwrap();
        let known = |desired: Option<&str>, status: &str| ObservedConfiguration::Known {
            desired: desired.map(str::to_owned),
            status: status.to_owned(),
        };
        let at = Timestamp(7_000);
        let kept = known(Some("base"), "pending").replaces(None, &id, 2, at).unwrap();
        let mut rows = String::new();
        for (observed, generation) in [
            (known(Some("base"), "pending"), 2),
            (known(Some("base"), "configured"), 2),
            (known(Some(""), "pending"), 2),
            (known(None, "pending"), 2),
            (known(Some("base"), "pending"), 3),
            (ObservedConfiguration::Missing, 2),
            (ObservedConfiguration::Lost("waiting for CFS".into()), 2),
        ] {
            let written = observed.clone().replaces(Some(&kept), &id, generation, Timestamp(9_000));
            let written = written.map(|state| {
                let at = state.observed_at.map(|at| at.seconds);
                (observation::configuration(Some(&state), generation), state.error, at)
            });
            rows += &format!("{observed:?} of {generation}:\n    {written:?}\n");
        }
        expect![[r#"
            Known { desired: Some("base"), status: "pending" } of 2:
                None
            Known { desired: Some("base"), status: "configured" } of 2:
                Some((Known { desired: Some("base"), status: "configured" }, "", Some(9)))
            Known { desired: Some(""), status: "pending" } of 2:
                Some((Known { desired: Some(""), status: "pending" }, "", Some(9)))
            Known { desired: None, status: "pending" } of 2:
                Some((Known { desired: None, status: "pending" }, "", Some(9)))
            Known { desired: Some("base"), status: "pending" } of 3:
                Some((Known { desired: Some("base"), status: "pending" }, "", Some(9)))
            Missing of 2:
                Some((Missing, "", Some(9)))
            Lost("waiting for CFS") of 2:
                Some((Unknown, "waiting for CFS", Some(7)))
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn the_same_silence_is_written_once() {
        let id = ComponentId::parse("x1").unwrap();
        let lost = |text: &str| ObservedConfiguration::Lost(text.into());
        let kept = lost("waiting for CFS").replaces(None, &id, 2, Timestamp(7_000)).unwrap();
        let again = |text: &str, generation| {
            lost(text).replaces(Some(&kept), &id, generation, Timestamp(9_000)).is_some()
        };
        assert_eq!(
            [again("waiting for CFS", 2), again("waiting for CFS", 3), again("waiting for another", 2)],
            [false, true, true]
        );
    }
}
