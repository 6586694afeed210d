//! States of configuration.

use std::sync::Arc;

use proto::configuration::{
    ConfigurationState, WatchConfigurationStatesRequest,
    configuration_service_client::ConfigurationServiceClient,
};
use tonic::Status;

use super::{batches, deletions};
use crate::{
    Channel,
    mesh::channel::LARGEST_MESSAGE,
    observe::mirror::{Mirrored, Watch},
    store::{
        ledger::ResumeToken,
        resource::{Batch, Resource},
    },
};

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
