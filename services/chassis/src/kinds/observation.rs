//! Observations of a component, from the stored answers of the upstreams.

use domain::{
    boot::{
        component::Component,
        configuration::{ConfigurationObservation, preparation::PowerEvidence},
        evaluation::Evidence,
        power::{self, PowerObservation, SeenOff},
    },
    core::{
        bos_time,
        text::text,
        trouble::{Trouble, TroubleKind},
    },
};
use proto::{
    configuration::{ConfigurationReading, ConfigurationState},
    power::{self as wire, PowerReading, PowerState},
};

use super::trouble;
#[cfg(feature = "simulation")]
use super::wrong_power::wrong_power;
use crate::{mesh::time, observe::mirror::OwnerOutage};

/// Author of power states, in texts for people.
pub const POWER_CONTROLLER: &str = "the power controller";

/// Author of configuration states, in texts for people.
pub const CONFIG_COORDINATOR: &str = "the config coordinator";

/// Reads the evidence in stored observations about a component.
pub fn evidence(
    power: Option<&PowerState>,
    configuration: Option<&ConfigurationState>,
    component: &Component,
) -> Evidence {
    Evidence {
        power: power_of(component, power),
        begun_actions: power.map_or(0, |state| state.begun_actions),
        configuration: self::configuration(configuration, component.generation),
        power_trouble: power.and_then(power_trouble),
        configuration_trouble: configuration.and_then(configuration_trouble),
    }
}

/// Converts the outage of the `author` of observations to the trouble of a component.
pub fn outage_trouble(author: &str, outage: Option<OwnerOutage>) -> Option<Trouble> {
    let OwnerOutage { since, error } = outage?;
    let since = bos_time::text(since);
    Some(Trouble::waiting_for(format_args!("{author} (failing since {since}Z: {error})")))
}

/// The observation of power in `state` for a component of `generation`; unknown without a state, or in another
/// generation.
pub fn power(state: Option<&PowerState>, generation: u64) -> PowerObservation {
    #[cfg(feature = "simulation")]
    if let Some(wrong) = wrong_power(state) {
        return wrong;
    }
    let Some(state) = state else { return PowerObservation::Unknown };
    PowerObservation::of(reading_from_wire(state.reading()), &state.error, state.generation, generation)
}

/// The observation of power in `state` for a component: that of its generation, "off" only by a reading from after its last
/// report, and "on again" if the node was off since the last shutdown of that generation began.
pub fn power_of(component: &Component, state: Option<&PowerState>) -> PowerObservation {
    let newer_than = state.and_then(|state| state.newer_than_report).map(time::from_wire);
    power(state, component.generation)
        .against_report(component.reported.running_report, newer_than)
        .after_shutdown(component, state.and_then(seen_off))
}

/// Returns when the node was last seen off; `None`: it was not.
pub fn seen_off(state: &PowerState) -> Option<SeenOff> {
    #[cfg(feature = "simulation")]
    if crate::simulation::PlantedDefect::ForgottenShutdowns.is_planted() {
        return None;
    }
    let wire::SeenOff { generation, begun_actions } = state.seen_off?;
    Some(SeenOff { generation, begun_actions })
}

/// The observation of power by an answer that was requested for no generation, such as that for a plan.
pub fn power_read(reading: PowerReading, error: &str) -> PowerObservation {
    PowerObservation::of(reading_from_wire(reading), error, 0, 0)
}

fn reading_from_wire(reading: PowerReading) -> power::PowerReading {
    match reading {
        PowerReading::Unspecified => power::PowerReading::Unknown,
        PowerReading::On => power::PowerReading::On,
        PowerReading::Off => power::PowerReading::Off,
        PowerReading::Undefined => power::PowerReading::Undefined,
        PowerReading::Missing => power::PowerReading::Missing,
    }
}

/// Evidence in `state` about the power of a component that may have to be prepared for a power-on.
pub fn power_evidence(component: &Component, state: Option<&PowerState>) -> PowerEvidence {
    PowerEvidence {
        observation: power_of(component, state),
        spent_power_ons: state.map_or(0, |state| state.spent_power_ons),
    }
}

/// The observation of configuration in `state` for a component of `generation`; unknown without a state, or in another
/// generation.
pub fn configuration(state: Option<&ConfigurationState>, generation: u64) -> ConfigurationObservation {
    let Some(state) = state else { return ConfigurationObservation::Unknown };
    let (desired, status) = (state.desired_configuration.clone(), state.status.clone());
    #[cfg(feature = "simulation")]
    if crate::simulation::PlantedDefect::OldConfigurations.is_planted() {
        return configuration_read(state.reading(), desired, status);
    }
    configuration_read(state.reading(), desired, status).of(state.generation, generation)
}

/// Returns the trouble of the peer that reports the node's power; `None`: the power is known and the next action waits for
/// nothing there, or the first poll is still under way.
pub fn power_trouble(state: &PowerState) -> Option<Trouble> {
    let waits_for = match state.reading() {
        PowerReading::Unspecified => &state.error,
        PowerReading::On | PowerReading::Off | PowerReading::Undefined | PowerReading::Missing => {
            &state.action_waits_for
        }
    };
    Trouble::new(TroubleKind::Waiting, text(waits_for))
}

/// Returns the trouble of the peer that reports or sets the node's configuration; `None`: as with [`power_trouble`].
pub fn configuration_trouble(state: &ConfigurationState) -> Option<Trouble> {
    trouble::from_wire(state.error_kind, text(&state.error))
}

/// Returns the observation of one reading, whatever its generation.
pub fn configuration_read(
    reading: ConfigurationReading,
    desired: Option<String>,
    status: String,
) -> ConfigurationObservation {
    match reading {
        ConfigurationReading::Unspecified => ConfigurationObservation::Unknown,
        ConfigurationReading::Missing => ConfigurationObservation::Missing,
        ConfigurationReading::Known => ConfigurationObservation::Known { desired, status },
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    const GENERATION: u64 = 3;

    #[test]
    fn power_is_known_only_in_its_generation() {
        let mut rows = String::new();
        for (reading, error, generation) in [
            (PowerReading::On, "", 3),
            (PowerReading::Off, "", 3),
            (PowerReading::Off, "node is sulking", 3),
            (PowerReading::Undefined, "", 3),
            (PowerReading::Missing, "", 3),
            (PowerReading::Unspecified, "", 3),
            (PowerReading::Off, "", 2),
            (PowerReading::Missing, "", 2),
        ] {
            let state =
                PowerState { reading: reading.into(), error: error.into(), generation, ..Default::default() };
            let power = power(Some(&state), GENERATION);
            rows += &format!("{reading:?} {error:?} of {generation}: {power:?}\n");
        }
        expect![[r#"
            On "" of 3: On
            Off "" of 3: Off
            Off "node is sulking" of 3: Undefined { error: "node is sulking" }
            Undefined "" of 3: Undefined { error: "" }
            Missing "" of 3: Missing
            Unspecified "" of 3: Unknown
            Off "" of 2: Unknown
            Missing "" of 2: Unknown
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn configuration_is_known_only_in_its_generation() {
        let mut rows = String::new();
        for (reading, desired, generation) in [
            (ConfigurationReading::Known, Some("base"), 3),
            (ConfigurationReading::Known, Some(""), 3),
            (ConfigurationReading::Known, None, 3),
            (ConfigurationReading::Missing, None, 3),
            (ConfigurationReading::Unspecified, None, 3),
            (ConfigurationReading::Known, Some("base"), 2),
            (ConfigurationReading::Missing, None, 2),
        ] {
            let state = ConfigurationState {
                reading: reading.into(),
                desired_configuration: desired.map(str::to_owned),
                status: "pending".into(),
                generation,
                ..Default::default()
            };
            let configuration = configuration(Some(&state), GENERATION);
            rows += &format!("{reading:?} {desired:?} of {generation}: {configuration:?}\n");
        }
        expect![[r#"
            Known Some("base") of 3: Known { desired: Some("base"), status: "pending" }
            Known Some("") of 3: Known { desired: Some(""), status: "pending" }
            Known None of 3: Known { desired: None, status: "pending" }
            Missing None of 3: Missing
            Unspecified None of 3: Unknown
            Known Some("base") of 2: Unknown
            Missing None of 2: Unknown
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn nothing_seen_is_nothing_known() {
        assert_eq!(power(None, 0), PowerObservation::Unknown);
        assert_eq!(configuration(None, 0), ConfigurationObservation::Unknown);
    }
    #[test]
    fn untyped_trouble_gets_its_kind() {
        for (text, kind) in [
            ("waiting for CFS at cfs (503)", TroubleKind::Waiting),
            ("Error encountered setting CFS information: no", TroubleKind::ConfigurationRefused),
        ] {
            let state = ConfigurationState { error: text.into(), ..Default::default() };
            assert_eq!(configuration_trouble(&state), Trouble::new(kind, text.into()));
            let state = PowerState { error: text.into(), ..Default::default() };
            assert_eq!(power_trouble(&state), Trouble::new(TroubleKind::Waiting, text.into()));
        }
        let known =
            PowerState { reading: PowerReading::Off.into(), error: "waiting".into(), ..Default::default() };
        assert_eq!(power_trouble(&known), None);
        let held = PowerState { action_waits_for: "waiting for t-1".into(), ..known };
        assert_eq!(power_trouble(&held), Trouble::new(TroubleKind::Waiting, "waiting for t-1".into()));
    }
}
