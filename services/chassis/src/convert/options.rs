//! The options.

use domain::boot::bos::options::{Options, OptionsPatch};
use proto::option as wire;

/// Decodes a change of the options; their limits are checked by the rules.
pub fn patch_from_wire(options: wire::Options) -> OptionsPatch {
    OptionsPatch {
        bss_read_timeout: options.bss_read_timeout,
        cfs_read_timeout: options.cfs_read_timeout,
        hsm_read_timeout: options.hsm_read_timeout,
        ims_read_timeout: options.ims_read_timeout,
        pcs_read_timeout: options.pcs_read_timeout,
        cleanup_completed_session_ttl: options.cleanup_completed_session_ttl,
        clear_stage: options.clear_stage,
        component_actual_state_ttl: options.component_actual_state_ttl,
        default_retry_policy: options.default_retry_policy,
        discovery_frequency: options.discovery_frequency,
        ims_errors_fatal: options.ims_errors_fatal,
        ims_images_must_exist: options.ims_images_must_exist,
        logging_level: options.logging_level,
        max_boot_wait_time: options.max_boot_wait_time,
        max_component_batch_size: options.max_component_batch_size,
        max_power_off_wait_time: options.max_power_off_wait_time,
        max_power_on_wait_time: options.max_power_on_wait_time,
        polling_frequency: options.polling_frequency,
        reject_nids: options.reject_nids,
        session_limit_required: options.session_limit_required,
        disable_components_on_completion: options.disable_components_on_completion,
    }
}

/// Every option, as it goes out.
pub fn to_wire(options: Options) -> wire::Options {
    wire::Options {
        bss_read_timeout: Some(options.bss_read_timeout),
        cfs_read_timeout: Some(options.cfs_read_timeout),
        hsm_read_timeout: Some(options.hsm_read_timeout),
        ims_read_timeout: Some(options.ims_read_timeout),
        pcs_read_timeout: Some(options.pcs_read_timeout),
        cleanup_completed_session_ttl: Some(options.cleanup_completed_session_ttl),
        clear_stage: Some(options.clear_stage),
        component_actual_state_ttl: Some(options.component_actual_state_ttl),
        default_retry_policy: Some(options.default_retry_policy),
        discovery_frequency: Some(options.discovery_frequency),
        ims_errors_fatal: Some(options.ims_errors_fatal),
        ims_images_must_exist: Some(options.ims_images_must_exist),
        logging_level: Some(options.logging_level),
        max_boot_wait_time: Some(options.max_boot_wait_time),
        max_component_batch_size: Some(options.max_component_batch_size),
        max_power_off_wait_time: Some(options.max_power_off_wait_time),
        max_power_on_wait_time: Some(options.max_power_on_wait_time),
        polling_frequency: Some(options.polling_frequency),
        reject_nids: Some(options.reject_nids),
        session_limit_required: Some(options.session_limit_required),
        disable_components_on_completion: Some(options.disable_components_on_completion),
    }
}
