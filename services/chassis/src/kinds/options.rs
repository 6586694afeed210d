//! The options.

use std::{borrow::Cow, convert::Infallible, pin::pin};

use domain::{
    boot::bos::options::{Options, OptionsPatch},
    core::invalid::Invalid,
};
use futures_util::StreamExt;
use proto::option as wire;

use crate::{
    Channel, Context,
    observe::mirror::{Change, Mirror, MirroredKind},
    process::telemetry,
    store::{
        ledger::{Ledger, Table},
        resource::{Resource, WireForm},
    },
};

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

/// Returns every option in the form of the wire.
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

/// The options with the revision of their last change. There is one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionsRecord {
    /// The options in force.
    pub options: Options,
    /// Revision of the last change.
    pub revision: u64,
}

impl OptionsRecord {
    /// The key of the one record.
    pub const KEY: &'static str = "options";
}

impl<T: Table<Kind = OptionsRecord>> Ledger<T> {
    /// Keeps the process's log level as the options of this ledger set it, without end. For the owner of the options,
    /// which has no mirror of them.
    pub async fn log_as_they_say(self) -> anyhow::Result<Infallible> {
        let mut changes = pin!(self.follow());
        while let Some(batch) = changes.next().await {
            batch.changed.iter().for_each(|record| log_as_set(record));
        }
        std::future::pending().await
    }
}

impl Mirror<OptionsRecord> {
    /// Follows the options of the component registry behind `channel`: calls `changed` after each change, and keeps the
    /// process's log level as they set it.
    pub fn of_options(
        context: &Context,
        channel: Channel,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self::start(context, channel, move |changes: &[Change<OptionsRecord>]| {
            changes.iter().filter_map(|change| change.current.as_deref()).for_each(log_as_set);
            changed();
        })
    }

    /// The options as they were last seen; the defaults before they were seen at all.
    pub fn in_force(&self) -> Options {
        self.get(OptionsRecord::KEY).map(|record| record.options.clone()).unwrap_or_default()
    }
}

/// Sets the log level of the process to that of the options.
fn log_as_set(record: &OptionsRecord) {
    telemetry::follow(record.revision, &record.options.logging_level);
}

impl Resource for OptionsRecord {
    const KIND: &'static str = "options";

    fn key(&self) -> &str {
        Self::KEY
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
}

impl WireForm for OptionsRecord {
    type Message = wire::OptionsRecord;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, wire::OptionsRecord> {
        let options = Some(to_wire(self.options.clone()));
        Cow::Owned(wire::OptionsRecord { options, revision: self.revision })
    }

    /// Reads the record. An option that is newer than its writer takes its default.
    fn from_wire(message: wire::OptionsRecord, (): &mut ()) -> Result<Self, Invalid> {
        let patch = patch_from_wire(message.options.unwrap_or_default());
        Ok(Self { options: Options::default().apply(patch)?, revision: message.revision })
    }
}

impl MirroredKind for OptionsRecord {}
