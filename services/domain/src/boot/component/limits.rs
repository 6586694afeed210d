//! Limits of the members of a component.

use super::{ActualState, ComponentPatch, DesiredState, EventStats, StagedState};
use crate::{
    boot::component::artifacts::BootArtifacts,
    core::{
        id::check_name,
        invalid::{Invalid, check_length},
        limits::{
            LONGEST_ERROR, LONGEST_KERNEL_PARAMETERS, LONGEST_NAME, LONGEST_PATH, LONGEST_TOKEN,
            MOST_ATTEMPTS,
        },
    },
};

/// Checks the write of a client (BOS reference 2.3, 2.6.8).
///
/// # Errors
/// Names the first field that breaks a limit, such as `desired_state.boot_artifacts.kernel`.
pub fn validate(patch: &ComponentPatch) -> Result<(), Invalid> {
    if let Some(actual) = &patch.actual_state {
        validate_actual(actual).map_err(|invalid| invalid.within("actual_state"))?;
    }
    if let Some(desired) = &patch.desired_state {
        validate_desired(desired).map_err(|invalid| invalid.within("desired_state"))?;
    }
    if let Some(staged) = &patch.staged_state {
        validate_staged(staged).map_err(|invalid| invalid.within("staged_state"))?;
    }
    if let Some(stats) = &patch.event_stats {
        validate_stats(stats).map_err(|invalid| invalid.within("event_stats"))?;
    }
    let status_override = patch.status.as_ref().and_then(|status| status.status_override.as_deref());
    at_most("status.status_override", status_override, LONGEST_ERROR)?;
    at_most("error", patch.error.as_deref(), LONGEST_ERROR)?;
    name_or_empty("session", patch.session.as_deref())?;
    count("retry_policy", patch.retry_policy)
}

fn validate_actual(actual: &ActualState) -> Result<(), Invalid> {
    validate_artifacts(actual.boot_artifacts.as_deref())?;
    at_most("bss_token", actual.bss_token.as_deref(), LONGEST_TOKEN)
}

fn validate_desired(desired: &DesiredState) -> Result<(), Invalid> {
    validate_artifacts(desired.boot_artifacts.as_deref())?;
    at_most("configuration", desired.configuration.as_deref(), LONGEST_NAME)?;
    at_most("bss_token", desired.bss_token.as_deref(), LONGEST_TOKEN)
}

fn validate_staged(staged: &StagedState) -> Result<(), Invalid> {
    validate_artifacts(staged.boot_artifacts.as_deref())?;
    at_most("configuration", staged.configuration.as_deref(), LONGEST_NAME)?;
    name_or_empty("session", staged.session.as_deref())
}

fn validate_artifacts(artifacts: Option<&BootArtifacts>) -> Result<(), Invalid> {
    let Some(artifacts) = artifacts else { return Ok(()) };
    at_most("kernel", artifacts.kernel.as_deref(), LONGEST_PATH)
        .and_then(|()| {
            at_most("kernel_parameters", artifacts.kernel_parameters.as_deref(), LONGEST_KERNEL_PARAMETERS)
        })
        .and_then(|()| at_most("initrd", artifacts.initrd.as_deref(), LONGEST_PATH))
        .map_err(|invalid| invalid.within("boot_artifacts"))
}

fn validate_stats(stats: &EventStats) -> Result<(), Invalid> {
    count("power_on_attempts", stats.power_on_attempts)?;
    count("power_off_graceful_attempts", stats.power_off_graceful_attempts)?;
    count("power_off_forceful_attempts", stats.power_off_forceful_attempts)
}

fn at_most(field: &str, text: Option<&str>, most: usize) -> Result<(), Invalid> {
    text.map_or(Ok(()), |text| check_length(field, text, 0, most))
}

fn name_or_empty(field: &str, text: Option<&str>) -> Result<(), Invalid> {
    match text {
        None | Some("") => Ok(()),
        Some(name) => check_name(field, name),
    }
}

fn count(field: &str, value: Option<u32>) -> Result<(), Invalid> {
    match value {
        Some(value) if value > MOST_ATTEMPTS => {
            Err(Invalid::new(field, format!("{value} is more than {MOST_ATTEMPTS}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::component::Status;

    fn check(change: impl FnOnce(&mut ComponentPatch)) -> Result<(), String> {
        let mut patch = ComponentPatch::default();
        change(&mut patch);
        validate(&patch).map_err(|invalid| invalid.field)
    }

    fn kernel(length: usize) -> Option<BootArtifacts> {
        Some(BootArtifacts { kernel: Some("k".repeat(length).into()), ..BootArtifacts::default() })
    }

    fn parameters(length: usize) -> Option<BootArtifacts> {
        // Each character has two bytes: the limit counts characters.
        Some(BootArtifacts {
            kernel_parameters: Some("ä".repeat(length).into()), ..BootArtifacts::default()
        })
    }

    fn initrd(length: usize) -> Option<BootArtifacts> {
        Some(BootArtifacts { initrd: Some("i".repeat(length).into()), ..BootArtifacts::default() })
    }

    /// Field, its limit, and a change that sets a value of a length or number.
    type LimitRow = (&'static str, usize, Box<dyn Fn(&mut ComponentPatch, usize)>);

    fn check_limits(rows: Vec<LimitRow>) {
        for (field, most, change) in rows {
            assert_eq!(check(|c| change(c, most)), Ok(()), "{field}");
            assert_eq!(check(|c| change(c, most + 1)), Err(field.to_owned()), "{field}");
        }
    }

    #[test]
    fn lengths_within_states_are_limited() {
        check_limits(vec![
            (
                "desired_state.boot_artifacts.kernel",
                4095,
                Box::new(|c, n| {
                    c.desired_state = Some(DesiredState {
                        boot_artifacts: kernel(n).map(Into::into),
                        ..Default::default()
                    });
                }),
            ),
            (
                "desired_state.boot_artifacts.kernel_parameters",
                4096,
                Box::new(|c, n| {
                    c.desired_state = Some(DesiredState {
                        boot_artifacts: parameters(n).map(Into::into),
                        ..Default::default()
                    });
                }),
            ),
            (
                "desired_state.configuration",
                127,
                Box::new(|c, n| {
                    let configuration = Some("c".repeat(n));
                    c.desired_state = Some(DesiredState {
                        configuration: configuration.map(Into::into),
                        ..Default::default()
                    });
                }),
            ),
            (
                "desired_state.bss_token",
                65535,
                Box::new(|c, n| {
                    let bss_token = Some("t".repeat(n));
                    c.desired_state =
                        Some(DesiredState { bss_token: bss_token.map(Into::into), ..Default::default() });
                }),
            ),
            (
                "actual_state.boot_artifacts.initrd",
                4095,
                Box::new(|c, n| {
                    c.actual_state =
                        Some(ActualState { boot_artifacts: initrd(n).map(Into::into), ..Default::default() });
                }),
            ),
            (
                "actual_state.bss_token",
                65535,
                Box::new(|c, n| {
                    c.actual_state =
                        Some(ActualState { bss_token: Some("t".repeat(n).into()), ..Default::default() });
                }),
            ),
            (
                "staged_state.boot_artifacts.kernel",
                4095,
                Box::new(|c, n| {
                    c.staged_state = Some(
                        StagedState { boot_artifacts: kernel(n).map(Into::into), ..Default::default() }
                            .into(),
                    );
                }),
            ),
            (
                "staged_state.configuration",
                127,
                Box::new(|c, n| {
                    let configuration = Some("c".repeat(n));
                    c.staged_state = Some(
                        StagedState { configuration: configuration.map(Into::into), ..Default::default() }
                            .into(),
                    );
                }),
            ),
            (
                "staged_state.session",
                127,
                Box::new(|c, n| {
                    c.staged_state = Some(
                        StagedState { session: Some("s".repeat(n).into()), ..Default::default() }.into(),
                    );
                }),
            ),
        ]);
    }

    #[test]
    fn other_lengths_and_counts_are_limited() {
        check_limits(vec![
            (
                "event_stats.power_on_attempts",
                1_048_576,
                Box::new(|c, n| {
                    c.event_stats =
                        Some(EventStats { power_on_attempts: Some(n as u32), ..Default::default() });
                }),
            ),
            (
                "event_stats.power_off_graceful_attempts",
                1_048_576,
                Box::new(|c, n| {
                    let power_off_graceful_attempts = Some(n as u32);
                    c.event_stats = Some(EventStats { power_off_graceful_attempts, ..Default::default() });
                }),
            ),
            (
                "event_stats.power_off_forceful_attempts",
                1_048_576,
                Box::new(|c, n| {
                    let power_off_forceful_attempts = Some(n as u32);
                    c.event_stats = Some(EventStats { power_off_forceful_attempts, ..Default::default() });
                }),
            ),
            (
                "status.status_override",
                65536,
                Box::new(|c, n| {
                    c.status =
                        Some(Status { status_override: Some("o".repeat(n).into()), ..Default::default() });
                }),
            ),
            ("error", 65536, Box::new(|c, n| c.error = Some("e".repeat(n).into()))),
            ("session", 127, Box::new(|c, n| c.session = Some("s".repeat(n).into()))),
            ("retry_policy", 1_048_576, Box::new(|c, n| c.retry_policy = Some(n as u32))),
        ]);
    }

    #[test]
    fn session_names_follow_the_pattern_or_are_empty() {
        let rows = [("", Ok(())), ("s-1", Ok(())), ("-s", Err("session".to_owned()))];
        for (name, expected) in rows {
            assert_eq!(check(|c| c.session = Some(name.into())), expected, "{name}");
        }
        let staged = StagedState { session: Some("a b".into()), ..Default::default() };
        assert_eq!(check(|c| c.staged_state = Some(staged.into())), Err("staged_state.session".to_owned()));
    }
}
