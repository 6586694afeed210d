//! Between the wire and the rules: evidence in, decisions and reports out.

use chassis::convert::{component::phase_to_wire, time};
use domain::{
    component::Component,
    evaluation::{self, ConfigurationObservation, Decision, Evidence, PowerObservation},
    id::ComponentId,
};
use proto::{
    component::StatusReport,
    configuration::{ConfigurationReading, ConfigurationState},
    evaluation as wire,
    power::{PowerReading, PowerState},
};

/// What the stored observations say about a component of `generation`.
pub(crate) fn evidence(
    power: Option<&PowerState>,
    configuration: Option<&ConfigurationState>,
    generation: u64,
) -> Evidence {
    Evidence {
        power: power.map_or(PowerObservation::Unknown, |state| power_observation(state, generation)),
        configuration: configuration.map_or(ConfigurationObservation::Unknown, |state| {
            configuration_observation(state).of(state.generation, generation)
        }),
    }
}

fn power_observation(state: &PowerState, generation: u64) -> PowerObservation {
    let reading = match state.reading() {
        PowerReading::Unspecified => return PowerObservation::Unknown,
        PowerReading::On => evaluation::PowerReading::On,
        PowerReading::Off => evaluation::PowerReading::Off,
        PowerReading::Undefined => evaluation::PowerReading::Undefined,
        PowerReading::Missing => evaluation::PowerReading::Missing,
    };
    PowerObservation::of(reading, &state.error, state.generation, generation)
}

fn configuration_observation(state: &ConfigurationState) -> ConfigurationObservation {
    match state.reading() {
        ConfigurationReading::Unspecified => ConfigurationObservation::Unknown,
        ConfigurationReading::Missing => ConfigurationObservation::Missing,
        ConfigurationReading::Known => ConfigurationObservation::Known {
            desired: state.desired_configuration.clone(),
            status: state.status.clone(),
        },
    }
}

/// A decision as it goes out.
pub(crate) fn decision(id: &ComponentId, decision: &Decision) -> wire::Decision {
    wire::Decision {
        id: id.as_str().to_owned(),
        phase: phase_to_wire(decision.phase).into(),
        status_override: decision.status_override.clone(),
        settled: decision.settled,
        action_failed: decision.action_failed,
        error: decision.error.clone(),
        reason: decision.reason.word().to_owned(),
        until: decision.until.map(time::to_wire),
    }
}

/// What the registry is told about `component`. It counts only while the record is the one decided on.
pub(crate) fn report(component: &Component, decision: &Decision) -> StatusReport {
    StatusReport {
        id: component.id.as_str().to_owned(),
        revision: component.revision,
        phase: phase_to_wire(decision.phase).into(),
        status_override: decision.status_override.clone(),
        settled: decision.settled,
        action_failed: decision.action_failed,
        error: decision.error.clone(),
    }
}

#[cfg(test)]
mod tests {
    use domain::{component::Phase, evaluation::Reason, time::Timestamp};
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
            let power = evidence(Some(&state), None, GENERATION).power;
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
            let configuration = evidence(None, Some(&state), GENERATION).configuration;
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
        let nothing =
            Evidence { power: PowerObservation::Unknown, configuration: ConfigurationObservation::Unknown };
        assert_eq!(evidence(None, None, 0), nothing);
    }

    #[test]
    fn a_report_names_the_record_it_was_decided_on() {
        let mut component = Component::new(ComponentId::parse("x1").unwrap());
        component.revision = 41;
        let made = Decision {
            phase: Phase::Configuring,
            status_override: "failed".into(),
            settled: true,
            action_failed: false,
            error: Some("cfs configuration failed".into()),
            reason: Reason::ConfigurationFailed,
            until: Some(Timestamp(1_500)),
        };
        expect![[r#"
            StatusReport {
                id: "x1",
                revision: 41,
                phase: Configuring,
                status_override: "failed",
                settled: true,
                action_failed: false,
                error: Some(
                    "cfs configuration failed",
                ),
            }
        "#]]
        .assert_debug_eq(&report(&component, &made));
        expect![[r#"
            Decision {
                id: "x1",
                phase: Configuring,
                status_override: "failed",
                settled: true,
                action_failed: false,
                error: Some(
                    "cfs configuration failed",
                ),
                reason: "configuration_failed",
                until: Some(
                    Timestamp {
                        seconds: 1,
                        nanos: 500000000,
                    },
                ),
            }
        "#]]
        .assert_debug_eq(&decision(&component.id, &made));
    }
}
