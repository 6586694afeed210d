//! Options.

use proto::option as message;
use serde_json::Map;

use crate::bos::wire::options as wire;

impl From<wire::Options> for message::Options {
    fn from(options: wire::Options) -> Self {
        Self {
            bss_read_timeout: options.bss_read_timeout,
            cfs_read_timeout: options.cfs_read_timeout,
            cleanup_completed_session_ttl: options.cleanup_completed_session_ttl,
            clear_stage: options.clear_stage,
            component_actual_state_ttl: options.component_actual_state_ttl,
            default_retry_policy: options.default_retry_policy,
            disable_components_on_completion: options.disable_components_on_completion,
            discovery_frequency: options.discovery_frequency,
            hsm_read_timeout: options.hsm_read_timeout,
            ims_errors_fatal: options.ims_errors_fatal,
            ims_images_must_exist: options.ims_images_must_exist,
            ims_read_timeout: options.ims_read_timeout,
            logging_level: options.logging_level,
            max_boot_wait_time: options.max_boot_wait_time,
            max_component_batch_size: options.max_component_batch_size,
            max_power_off_wait_time: options.max_power_off_wait_time,
            max_power_on_wait_time: options.max_power_on_wait_time,
            pcs_read_timeout: options.pcs_read_timeout,
            polling_frequency: options.polling_frequency,
            reject_nids: options.reject_nids,
            session_limit_required: options.session_limit_required,
        }
    }
}

impl From<message::Options> for wire::Options {
    fn from(options: message::Options) -> Self {
        Self {
            bss_read_timeout: options.bss_read_timeout,
            cfs_read_timeout: options.cfs_read_timeout,
            cleanup_completed_session_ttl: options.cleanup_completed_session_ttl,
            clear_stage: options.clear_stage,
            component_actual_state_ttl: options.component_actual_state_ttl,
            default_retry_policy: options.default_retry_policy,
            disable_components_on_completion: options.disable_components_on_completion.filter(|on| !on),
            discovery_frequency: options.discovery_frequency,
            hsm_read_timeout: options.hsm_read_timeout,
            ims_errors_fatal: options.ims_errors_fatal,
            ims_images_must_exist: options.ims_images_must_exist,
            ims_read_timeout: options.ims_read_timeout,
            logging_level: options.logging_level,
            max_boot_wait_time: options.max_boot_wait_time,
            max_component_batch_size: options.max_component_batch_size,
            max_power_off_wait_time: options.max_power_off_wait_time,
            max_power_on_wait_time: options.max_power_on_wait_time,
            pcs_read_timeout: options.pcs_read_timeout,
            polling_frequency: options.polling_frequency,
            reject_nids: options.reject_nids,
            session_limit_required: options.session_limit_required,
            unknown: Map::new(),
        }
    }
}
