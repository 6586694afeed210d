//! States of power, and the transitions that change them.

use std::sync::Arc;

use proto::power::{
    PowerState, Transition, WatchPowerStatesRequest, power_service_client::PowerServiceClient,
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
