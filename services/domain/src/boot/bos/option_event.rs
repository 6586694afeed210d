//! Events of the options.

use crate::{boot::bos::options::Options, core::event::EventContent};

/// Words for the kinds of events of the options.
pub const KINDS: [&str; 2] = [CREATED, CHANGED];

const CREATED: &str = "created";
const CHANGED: &str = "options_changed";

/// Returns the event of a change: the options that have another value, with that value.
pub fn event(before: Option<&Options>, after: Option<&Options>) -> Option<EventContent> {
    let Some(before) = before else { return after.map(|_| EventContent::of(CREATED)) };
    let changed = values(after?.clone()).into_iter().zip(values(before.clone()));
    let changed = changed.filter(|(after, before)| after != before).map(|(after, _)| after);
    let content = changed.fold(EventContent::of(CHANGED), |content, (name, value)| {
        // A detail without a value is left out.
        content.with(name, if value.is_empty() { "empty".to_owned() } else { value })
    });
    (!content.details.is_empty()).then_some(content)
}

/// Returns the options with their names. An option that is added to the record has to be added here.
fn values(options: Options) -> [(&'static str, String); 21] {
    let Options {
        bss_read_timeout,
        cfs_read_timeout,
        hsm_read_timeout,
        ims_read_timeout,
        pcs_read_timeout,
        cleanup_completed_session_ttl,
        clear_stage,
        component_actual_state_ttl,
        default_retry_policy,
        discovery_frequency,
        ims_errors_fatal,
        ims_images_must_exist,
        logging_level,
        max_boot_wait_time,
        max_component_batch_size,
        max_power_off_wait_time,
        max_power_on_wait_time,
        polling_frequency,
        reject_nids,
        session_limit_required,
        disable_components_on_completion,
    } = options;
    [
        ("bss_read_timeout", bss_read_timeout.to_string()),
        ("cfs_read_timeout", cfs_read_timeout.to_string()),
        ("hsm_read_timeout", hsm_read_timeout.to_string()),
        ("ims_read_timeout", ims_read_timeout.to_string()),
        ("pcs_read_timeout", pcs_read_timeout.to_string()),
        ("cleanup_completed_session_ttl", cleanup_completed_session_ttl),
        ("clear_stage", clear_stage.to_string()),
        ("component_actual_state_ttl", component_actual_state_ttl),
        ("default_retry_policy", default_retry_policy.to_string()),
        ("discovery_frequency", discovery_frequency.to_string()),
        ("ims_errors_fatal", ims_errors_fatal.to_string()),
        ("ims_images_must_exist", ims_images_must_exist.to_string()),
        ("logging_level", logging_level),
        ("max_boot_wait_time", max_boot_wait_time.to_string()),
        ("max_component_batch_size", max_component_batch_size.to_string()),
        ("max_power_off_wait_time", max_power_off_wait_time.to_string()),
        ("max_power_on_wait_time", max_power_on_wait_time.to_string()),
        ("polling_frequency", polling_frequency.to_string()),
        ("reject_nids", reject_nids.to_string()),
        ("session_limit_required", session_limit_required.to_string()),
        ("disable_components_on_completion", disable_components_on_completion.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_names_the_changed_options() {
        let usual = Options::default();
        let changed = Options { clear_stage: true, bss_read_timeout: 7, ..Options::default() };
        let content = EventContent::of(CHANGED).with("bss_read_timeout", "7").with("clear_stage", "true");
        assert_eq!(event(Some(&usual), Some(&changed)), Some(content));
        assert_eq!(event(Some(&usual), Some(&usual)), None);
        assert_eq!(event(None, Some(&usual)), Some(EventContent::of(CREATED)));
        assert_eq!(event(Some(&usual), None), None);
    }
}
