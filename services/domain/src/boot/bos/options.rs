//! The settings that operators may change while Reveille runs: the twenty of BOS (BOS reference 4), and one that
//! BOS had until 2.47 (BOS reference 10.3, row 8).
//!
//! Every service follows them by a watch, so that a change holds at once, including for nodes that are under way.

use std::{ops::RangeInclusive, time::Duration};

use crate::{
    boot::bos::compatibility::Compatibility,
    core::{
        invalid::{Invalid, check_length},
        limits::{BATCHES, COUNTS, DISCOVERY, LOGGING_LEVELS, LONGEST_AGE, READ_TIMEOUTS},
        time::Age,
    },
};

/// Default age at which a report is distrusted.
const DEFAULT_ACTUAL_STATE_TTL: Duration = Duration::from_secs(4 * 60 * 60);

/// Shortest time between polls of a peer that pushes nothing. A frequency of zero would allow no pause, and would keep
/// the peer busy with nothing else.
const LEAST_PERIOD: Duration = Duration::from_secs(1);

/// Settings in force. A read timeout is the time within which a peer has to begin an answer; it holds for every call of
/// that peer, whatever the settings of the site have for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Read timeout for the boot script server, seconds.
    pub bss_read_timeout: u32,
    /// Read timeout for the configuration service, seconds.
    pub cfs_read_timeout: u32,
    /// Read timeout for the inventory, seconds.
    pub hsm_read_timeout: u32,
    /// Read timeout for the image service and for the store of images, seconds.
    pub ims_read_timeout: u32,
    /// Read timeout for the power service, seconds.
    pub pcs_read_timeout: u32,
    /// Age since their start at which complete sessions are deleted; any zero: never.
    pub cleanup_completed_session_ttl: String,
    /// Whether applying a staged state erases it.
    pub clear_stage: bool,
    /// Age from which a report of a node is no longer believed; nodes learn from it when to repeat theirs. Any
    /// letter case is taken and lower case is kept, because nodes understand no other (BUG-07).
    pub component_actual_state_ttl: String,
    /// Most attempts per power action of a component without a policy of its own; 0: none.
    pub default_retry_policy: u32,
    /// Seconds between polls for new nodes.
    pub discovery_frequency: u32,
    /// Whether an unreachable image service is an error of a template.
    pub ims_errors_fatal: bool,
    /// Whether an image that the image service lacks is an error of a template.
    pub ims_images_must_exist: bool,
    /// Verbosity of logs: one of five words in any letter case. Every process follows it, on top of the log filter of
    /// its own settings.
    pub logging_level: String,
    /// Seconds from power-on until a node that runs but did not report the wanted boot is rebooted.
    pub max_boot_wait_time: u32,
    /// Most components in one call to a peer that takes many; 0: no limit but the peer's own, which always holds.
    pub max_component_batch_size: u32,
    /// Seconds until a power-off without effect is forced, or forced again.
    pub max_power_off_wait_time: u32,
    /// Seconds until a power-on without effect is repeated.
    pub max_power_on_wait_time: u32,
    /// Seconds until a node is requested again that an upstream left out or knew nothing about, because the return of a
    /// node is not pushed, or whose configuration is awaited, because pushes may get lost. All other changes are pushed
    /// and not polled for.
    pub polling_frequency: u32,
    /// Whether names that look like node numbers are errors.
    pub reject_nids: bool,
    /// Whether every session needs a limit.
    pub session_limit_required: bool,
    /// Whether a component that has reached its target is not acted on any more. If not, it stays enabled, and is
    /// brought back whenever it leaves the target. BOS lost this option with 2.48.
    pub disable_components_on_completion: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bss_read_timeout: 20,
            cfs_read_timeout: 20,
            hsm_read_timeout: 20,
            ims_read_timeout: 20,
            pcs_read_timeout: 20,
            cleanup_completed_session_ttl: "7d".to_owned(),
            clear_stage: false,
            component_actual_state_ttl: "4h".to_owned(),
            default_retry_policy: 3,
            discovery_frequency: 300,
            ims_errors_fatal: false,
            ims_images_must_exist: false,
            logging_level: "INFO".to_owned(),
            max_boot_wait_time: 1200,
            max_component_batch_size: 2800,
            max_power_off_wait_time: 300,
            max_power_on_wait_time: 120,
            polling_frequency: 15,
            reject_nids: false,
            session_limit_required: false,
            disable_components_on_completion: true,
        }
    }
}

/// Change of some settings; those that are `None` stay. The members are those of [`Options`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "every member is documented where it is stored, in Options")]
pub struct OptionsPatch {
    pub bss_read_timeout: Option<u32>,
    pub cfs_read_timeout: Option<u32>,
    pub hsm_read_timeout: Option<u32>,
    pub ims_read_timeout: Option<u32>,
    pub pcs_read_timeout: Option<u32>,
    pub cleanup_completed_session_ttl: Option<String>,
    pub clear_stage: Option<bool>,
    pub component_actual_state_ttl: Option<String>,
    pub default_retry_policy: Option<u32>,
    pub discovery_frequency: Option<u32>,
    pub ims_errors_fatal: Option<bool>,
    pub ims_images_must_exist: Option<bool>,
    pub logging_level: Option<String>,
    pub max_boot_wait_time: Option<u32>,
    pub max_component_batch_size: Option<u32>,
    pub max_power_off_wait_time: Option<u32>,
    pub max_power_on_wait_time: Option<u32>,
    pub polling_frequency: Option<u32>,
    pub reject_nids: Option<bool>,
    pub session_limit_required: Option<bool>,
    pub disable_components_on_completion: Option<bool>,
}

impl Options {
    /// Returns the options without settings that the followed version of BOS does not have.
    #[must_use]
    pub fn heeded(self, compatibility: Compatibility) -> Self {
        let disable_components_on_completion =
            compatibility.strict_bos || self.disable_components_on_completion;
        Self { disable_components_on_completion, ..self }
    }

    /// Returns the settings with `patch` applied, all of it or none.
    ///
    /// # Errors
    /// Names the first member of the patch that breaks its limit.
    pub fn apply(&self, patch: OptionsPatch) -> Result<Self, Invalid> {
        validate(&patch)?;
        let stay = self.clone();
        Ok(Self {
            bss_read_timeout: patch.bss_read_timeout.unwrap_or(stay.bss_read_timeout),
            cfs_read_timeout: patch.cfs_read_timeout.unwrap_or(stay.cfs_read_timeout),
            hsm_read_timeout: patch.hsm_read_timeout.unwrap_or(stay.hsm_read_timeout),
            ims_read_timeout: patch.ims_read_timeout.unwrap_or(stay.ims_read_timeout),
            pcs_read_timeout: patch.pcs_read_timeout.unwrap_or(stay.pcs_read_timeout),
            cleanup_completed_session_ttl: patch
                .cleanup_completed_session_ttl
                .unwrap_or(stay.cleanup_completed_session_ttl),
            clear_stage: patch.clear_stage.unwrap_or(stay.clear_stage),
            component_actual_state_ttl: patch
                .component_actual_state_ttl
                .map_or(stay.component_actual_state_ttl, |ttl| ttl.to_ascii_lowercase()),
            default_retry_policy: patch.default_retry_policy.unwrap_or(stay.default_retry_policy),
            discovery_frequency: patch.discovery_frequency.unwrap_or(stay.discovery_frequency),
            ims_errors_fatal: patch.ims_errors_fatal.unwrap_or(stay.ims_errors_fatal),
            ims_images_must_exist: patch.ims_images_must_exist.unwrap_or(stay.ims_images_must_exist),
            logging_level: patch.logging_level.unwrap_or(stay.logging_level),
            max_boot_wait_time: patch.max_boot_wait_time.unwrap_or(stay.max_boot_wait_time),
            max_component_batch_size: patch.max_component_batch_size.unwrap_or(stay.max_component_batch_size),
            max_power_off_wait_time: patch.max_power_off_wait_time.unwrap_or(stay.max_power_off_wait_time),
            max_power_on_wait_time: patch.max_power_on_wait_time.unwrap_or(stay.max_power_on_wait_time),
            polling_frequency: patch.polling_frequency.unwrap_or(stay.polling_frequency),
            reject_nids: patch.reject_nids.unwrap_or(stay.reject_nids),
            session_limit_required: patch.session_limit_required.unwrap_or(stay.session_limit_required),
            disable_components_on_completion: patch
                .disable_components_on_completion
                .unwrap_or(stay.disable_components_on_completion),
        })
    }

    /// Returns the time for a running node to report the wanted boot after its power-on.
    pub fn boot_wait(&self) -> Duration {
        Duration::from_secs(self.max_boot_wait_time.into())
    }

    /// Returns the time for a power-off to have its effect.
    pub fn power_off_wait(&self) -> Duration {
        Duration::from_secs(self.max_power_off_wait_time.into())
    }

    /// Returns the time for a power-on to have its effect.
    pub fn power_on_wait(&self) -> Duration {
        Duration::from_secs(self.max_power_on_wait_time.into())
    }

    /// Returns the age since their start at which complete sessions are deleted; `None`: never. A text that
    /// [`Options::apply`] would have refused deletes none either, because a deletion is final.
    pub fn completed_session_ttl(&self) -> Option<Duration> {
        let age = Age::parse("cleanup_completed_session_ttl", &self.cleanup_completed_session_ttl).ok()?;
        Some(age.duration()).filter(|age| !age.is_zero())
    }

    /// Returns the age at which a reported boot is distrusted. A text that [`Options::apply`] would have refused counts
    /// as the default, so that a damaged setting never makes every report too old at once.
    pub fn actual_state_ttl(&self) -> Duration {
        match ttl("component_actual_state_ttl", &self.component_actual_state_ttl) {
            Ok(age) => age.duration(),
            Err(_) => DEFAULT_ACTUAL_STATE_TTL,
        }
    }

    /// Returns the same age for the kernel command line of nodes, which understand lower case only.
    pub fn actual_state_ttl_parameter(&self) -> String {
        self.component_actual_state_ttl.to_ascii_lowercase()
    }

    /// Returns the most components in one call to a peer that takes `peer_takes` of them.
    pub fn batch_size(&self, peer_takes: usize) -> usize {
        match usize::try_from(self.max_component_batch_size) {
            Ok(0) | Err(_) => peer_takes,
            Ok(most) => most.min(peer_takes),
        }
    }

    /// Returns the time until a node is requested again that an upstream left out, or did not know for certain, and the
    /// least time until one is whose configuration is awaited.
    pub fn polling_period(&self) -> Duration {
        Duration::from_secs(self.polling_frequency.into()).max(LEAST_PERIOD)
    }

    /// Returns the time between polls for new nodes.
    pub fn discovery_period(&self) -> Duration {
        Duration::from_secs(self.discovery_frequency.into()).max(LEAST_PERIOD)
    }
}

fn validate(patch: &OptionsPatch) -> Result<(), Invalid> {
    for (field, value, limits) in [
        ("bss_read_timeout", patch.bss_read_timeout, READ_TIMEOUTS),
        ("cfs_read_timeout", patch.cfs_read_timeout, READ_TIMEOUTS),
        ("hsm_read_timeout", patch.hsm_read_timeout, READ_TIMEOUTS),
        ("ims_read_timeout", patch.ims_read_timeout, READ_TIMEOUTS),
        ("pcs_read_timeout", patch.pcs_read_timeout, READ_TIMEOUTS),
        ("default_retry_policy", patch.default_retry_policy, COUNTS),
        ("discovery_frequency", patch.discovery_frequency, DISCOVERY),
        ("max_boot_wait_time", patch.max_boot_wait_time, COUNTS),
        ("max_component_batch_size", patch.max_component_batch_size, BATCHES),
        ("max_power_off_wait_time", patch.max_power_off_wait_time, COUNTS),
        ("max_power_on_wait_time", patch.max_power_on_wait_time, COUNTS),
        ("polling_frequency", patch.polling_frequency, COUNTS),
    ] {
        within(field, value, limits)?;
    }
    if let Some(text) = &patch.cleanup_completed_session_ttl {
        Age::parse("cleanup_completed_session_ttl", text)?;
    }
    if let Some(text) = &patch.component_actual_state_ttl {
        ttl("component_actual_state_ttl", text)?;
    }
    patch.logging_level.as_deref().map_or(Ok(()), logging_level)
}

fn within(field: &str, value: Option<u32>, limits: RangeInclusive<u32>) -> Result<(), Invalid> {
    match value {
        Some(value) if !limits.contains(&value) => {
            let (least, most) = limits.into_inner();
            Err(Invalid::new(field, format!("{value} is not between {least} and {most}")))
        }
        _ => Ok(()),
    }
}

/// Parses an age of at least one hour: neither minutes nor zero (BOS reference 2.3, "TtlString").
fn ttl(field: &str, text: &str) -> Result<Age, Invalid> {
    check_length(field, text, 2, LONGEST_AGE)?;
    let age = Age::parse(field, text)?;
    if age.duration().is_zero() || text.ends_with(['m', 'M']) {
        return Err(Invalid::new(
            field,
            format!("'{text}' is not a number of hours, days or weeks above zero"),
        ));
    }
    Ok(age)
}

fn logging_level(text: &str) -> Result<(), Invalid> {
    if LOGGING_LEVELS.iter().any(|level| level.eq_ignore_ascii_case(text)) {
        return Ok(());
    }
    Err(Invalid::new("logging_level", format!("'{text}' is not one of {}", LOGGING_LEVELS.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change<V> = fn(&mut OptionsPatch, V);

    fn check<V>(change: Change<V>, value: V) -> Result<(), String> {
        let mut patch = OptionsPatch::default();
        change(&mut patch, value);
        Options::default().apply(patch).map(|_| ()).map_err(|invalid| invalid.field)
    }

    #[test]
    fn numbers_have_limits() {
        let rows: [(&str, u32, u32, Change<u32>); 12] = [
            ("bss_read_timeout", 10, 86_400, |p, v| p.bss_read_timeout = Some(v)),
            ("cfs_read_timeout", 10, 86_400, |p, v| p.cfs_read_timeout = Some(v)),
            ("hsm_read_timeout", 10, 86_400, |p, v| p.hsm_read_timeout = Some(v)),
            ("ims_read_timeout", 10, 86_400, |p, v| p.ims_read_timeout = Some(v)),
            ("pcs_read_timeout", 10, 86_400, |p, v| p.pcs_read_timeout = Some(v)),
            ("default_retry_policy", 0, 1_048_576, |p, v| p.default_retry_policy = Some(v)),
            ("discovery_frequency", 0, 33_554_432, |p, v| p.discovery_frequency = Some(v)),
            ("max_boot_wait_time", 0, 1_048_576, |p, v| p.max_boot_wait_time = Some(v)),
            ("max_component_batch_size", 0, 131_071, |p, v| p.max_component_batch_size = Some(v)),
            ("max_power_off_wait_time", 0, 1_048_576, |p, v| p.max_power_off_wait_time = Some(v)),
            ("max_power_on_wait_time", 0, 1_048_576, |p, v| p.max_power_on_wait_time = Some(v)),
            ("polling_frequency", 0, 1_048_576, |p, v| p.polling_frequency = Some(v)),
        ];
        for (field, least, most, change) in rows {
            assert_eq!(check(change, least), Ok(()), "{field}");
            assert_eq!(check(change, most), Ok(()), "{field}");
            assert_eq!(check(change, most + 1), Err(field.to_owned()), "{field}");
            if let Some(less) = least.checked_sub(1) {
                assert_eq!(check(change, less), Err(field.to_owned()), "{field}");
            }
        }
    }

    #[test]
    fn reports_are_trusted_for_an_hour_at_least() {
        let change: Change<&str> = |p, v| p.component_actual_state_ttl = Some(v.to_owned());
        for good in ["1h", "4H", "9999999w", "2d", "1W"] {
            assert_eq!(check(change, good), Ok(()), "{good}");
        }
        for bad in ["", "0", "0h", "60m", "1M", "04h", "h", "99999999w", "1s", "1 h"] {
            assert_eq!(check(change, bad), Err("component_actual_state_ttl".to_owned()), "{bad}");
        }
    }

    #[test]
    fn finished_sessions_may_be_kept_for_ever() {
        let change: Change<&str> = |p, v| p.cleanup_completed_session_ttl = Some(v.to_owned());
        for good in ["0", "0W", "1m", "90M", "7d"] {
            assert_eq!(check(change, good), Ok(()), "{good}");
        }
        for bad in ["", "7", "1y", "07d"] {
            assert_eq!(check(change, bad), Err("cleanup_completed_session_ttl".to_owned()), "{bad}");
        }
    }

    #[test]
    fn logging_levels_are_five_words() {
        let change: Change<&str> = |p, v| p.logging_level = Some(v.to_owned());
        for good in ["INFO", "info", "Warning", "critical", "DEBUG", "error"] {
            assert_eq!(check(change, good), Ok(()), "{good}");
        }
        for bad in ["WARN", "", "trace"] {
            assert_eq!(check(change, bad), Err("logging_level".to_owned()), "{bad}");
        }
    }

    #[test]
    fn no_batch_is_larger_than_peer_and_option_allow() {
        for (option, peer_takes, expected) in
            [(2800, 1000, 1000), (2800, 10_000, 2800), (0, 10_000, 10_000), (1, 1000, 1), (131_071, 7, 7)]
        {
            let options = Options { max_component_batch_size: option, ..Options::default() };
            assert_eq!(options.batch_size(peer_takes), expected, "{option} {peer_takes}");
        }
    }

    #[test]
    fn a_frequency_of_zero_keeps_nobody_busy() {
        for (seconds, expected) in [(0, 1), (1, 1), (15, 15)] {
            let options =
                Options { polling_frequency: seconds, discovery_frequency: seconds, ..Options::default() };
            let expected = Duration::from_secs(expected);
            assert_eq!((options.polling_period(), options.discovery_period()), (expected, expected));
        }
    }

    #[test]
    fn an_option_that_bos_lost_is_heeded_unless_bos_is_followed_strictly() {
        let patch = OptionsPatch { disable_components_on_completion: Some(false), ..OptionsPatch::default() };
        for strict_bos in [false, true] {
            let options = Options::default().apply(patch.clone()).expect("valid");
            let options = options.heeded(Compatibility { strict_bos });
            assert_eq!(options.disable_components_on_completion, strict_bos);
        }
    }

    #[test]
    fn upper_case_ages_are_taken_and_kept_as_nodes_understand_them() {
        let patch =
            OptionsPatch { component_actual_state_ttl: Some("2H".to_owned()), ..OptionsPatch::default() };
        let options = Options::default().apply(patch).expect("valid");
        assert_eq!(options.component_actual_state_ttl, "2h");
        assert_eq!(options.actual_state_ttl(), Duration::from_secs(7200));
        assert_eq!(options.actual_state_ttl_parameter(), "2h");
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let patch = OptionsPatch {
            max_boot_wait_time: Some(5),
            clear_stage: Some(true),
            logging_level: Some("debug".to_owned()),
            ..OptionsPatch::default()
        };
        let expected = Options {
            max_boot_wait_time: 5,
            clear_stage: true,
            logging_level: "debug".to_owned(),
            ..Options::default()
        };
        assert_eq!(Options::default().apply(patch), Ok(expected));
        assert_eq!(Options::default().apply(OptionsPatch::default()), Ok(Options::default()));
    }

    #[test]
    fn one_wrong_member_refuses_the_whole_patch() {
        let patch = OptionsPatch {
            max_boot_wait_time: Some(5),
            pcs_read_timeout: Some(9),
            ..OptionsPatch::default()
        };
        let error = Options::default().apply(patch).expect_err("a timeout is too short");
        assert_eq!(error.to_string(), "pcs_read_timeout: 9 is not between 10 and 86400");
    }
}
