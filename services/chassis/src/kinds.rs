//! The kinds of resources that parts of the mesh keep and mirror: how each is named, watched and read.
//!
//! A further kind is one more section here; ledgers, mirrors and faults do not change.

use std::{convert::Infallible, pin::pin, sync::Arc};

use domain::{
    boot::{
        bos::options::Options,
        component::{Component, filter},
    },
    core::{id::ComponentId, time::Timestamp},
};
use futures_util::StreamExt;
use proto::{
    component::{WatchComponentsRequest, component_service_client::ComponentServiceClient},
    configuration::{
        ConfigurationState, WatchConfigurationStatesRequest,
        configuration_service_client::ConfigurationServiceClient,
    },
    option::{WatchOptionsRequest, options_service_client::OptionsServiceClient},
    power::{PowerState, Transition, WatchPowerStatesRequest, power_service_client::PowerServiceClient},
    watch,
};
use tonic::{Response, Status, Streaming};

use crate::{
    Channel, Context, Fault,
    channel::LARGEST_MESSAGE,
    convert::{self, Interner},
    ledger::{Ledger, ResumeToken, Table, named_incarnation},
    mirror::{Change, Mirror, Mirrored, Watch},
    resource::{Batch, Deletion, Facet, Resource},
    telemetry,
};

impl Resource for Component {
    const KIND: &'static str = "component";

    fn key(&self) -> &str {
        self.id.as_str()
    }

    fn shared_key(&self) -> Arc<str> {
        self.id.shared()
    }

    fn share_key(&mut self, other: &Self) {
        self.id = other.id.clone();
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn weight(&self) -> usize {
        size_of::<Self>() + self.error.as_ref().map_or(0, |error| error.len()) + self.power_error().len()
    }

    fn facets(&self) -> impl Iterator<Item = Facet<'_>> {
        filter::facets(self)
    }
}

impl Mirror<Component> {
    /// The ids of the components that are enabled, in no particular order.
    pub fn enabled(&self) -> impl Iterator<Item = ComponentId> {
        let enabled = self.all().into_iter().filter(|component| component.is_enabled());
        enabled.map(|component| component.id.clone())
    }
}

impl Mirrored for Component {
    async fn watch(channel: Channel, resume: ResumeToken) -> Result<Watch<Self>, Status> {
        let mut client = ComponentServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        let request = WatchComponentsRequest { resume_revision: resume.revision };
        let responses = client.watch_components(resume.request(request)).await?;
        let mut interner = Interner::default();
        Ok(batches(responses, move |response| {
            let components = response.components.into_iter();
            let changed =
                components.map(|one| convert::component::from_wire(one, &mut interner).map(Arc::new));
            let changed = changed.collect::<Result<_, _>>().map_err(Fault::Invalid)?;
            Ok(Batch {
                changed,
                deleted: deletions(response.deletions),
                revision: response.revision,
                synced: response.synced,
            })
        }))
    }

    fn began(&self) -> Option<Timestamp> {
        self.last_action_at()
    }

    fn with_began(self: &Arc<Self>, began: Timestamp) -> Arc<Self> {
        let mut component = Self::clone(self);
        if let Some(last) = &mut component.last_action {
            last.last_updated = Some(began);
        }
        Arc::new(component)
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

impl Mirrored for OptionsRecord {
    async fn watch(channel: Channel, resume: ResumeToken) -> Result<Watch<Self>, Status> {
        let mut client = OptionsServiceClient::new(channel);
        let request = WatchOptionsRequest { resume_revision: resume.revision };
        let responses = client.watch_options(resume.request(request)).await?;
        Ok(batches(responses, |response| {
            let records = response.records.into_iter();
            let changed = records.map(|record| {
                let patch = convert::options::patch_from_wire(record.options.unwrap_or_default());
                let options = Options::default().apply(patch)?;
                Ok(Arc::new(Self { options, revision: record.revision }))
            });
            let changed = changed.collect::<Result<_, _>>().map_err(Fault::Invalid)?;
            Ok(Batch { changed, deleted: Vec::new(), revision: response.revision, synced: response.synced })
        }))
    }
}

impl Resource for PowerState {
    const KIND: &'static str = "power_state";

    fn key(&self) -> &str {
        &self.id
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
}

impl Mirrored for PowerState {
    async fn watch(channel: Channel, resume: ResumeToken) -> Result<Watch<Self>, Status> {
        let mut client = PowerServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        let request = WatchPowerStatesRequest { resume_revision: resume.revision };
        let responses = client.watch_power_states(resume.request(request)).await?;
        Ok(batches(responses, |response| {
            Ok(Batch {
                changed: response.power_states.into_iter().map(Arc::new).collect(),
                deleted: deletions(response.deletions),
                revision: response.revision,
                synced: response.synced,
            })
        }))
    }
}

impl Resource for Transition {
    const KIND: &'static str = "transition";

    fn key(&self) -> &str {
        &self.id
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
}

impl Resource for ConfigurationState {
    const KIND: &'static str = "configuration_state";

    fn key(&self) -> &str {
        &self.id
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
}

impl Mirrored for ConfigurationState {
    async fn watch(channel: Channel, resume: ResumeToken) -> Result<Watch<Self>, Status> {
        let mut client = ConfigurationServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        let request = WatchConfigurationStatesRequest { resume_revision: resume.revision };
        let responses = client.watch_configuration_states(resume.request(request)).await?;
        Ok(batches(responses, |response| {
            Ok(Batch {
                changed: response.configuration_states.into_iter().map(Arc::new).collect(),
                deleted: deletions(response.deletions),
                revision: response.revision,
                synced: response.synced,
            })
        }))
    }
}

/// The batches in a stream of responses, and their incarnation.
fn batches<M, R, F>(responses: Response<Streaming<M>>, mut read: F) -> Watch<R>
where
    M: Send + 'static,
    R: Resource,
    F: FnMut(M) -> Result<Batch<R>, Fault> + Send + 'static,
{
    // The mirror drops the stream at the first error, so nothing that follows one is applied.
    let incarnation = named_incarnation(responses.metadata());
    let batches =
        responses.into_inner().map(move |response| response.and_then(|response| Ok(read(response)?)));
    Watch { incarnation, batches: batches.boxed() }
}

fn deletions(deletions: Vec<watch::Deletion>) -> Vec<Deletion> {
    deletions.into_iter().map(|one| Deletion { key: one.key.into(), revision: one.revision }).collect()
}

/// Deletions as they go out.
pub fn deletions_to_wire(deletions: &[Deletion]) -> Vec<watch::Deletion> {
    deletions.iter().map(|one| watch::Deletion { key: one.key.to_string(), revision: one.revision }).collect()
}
