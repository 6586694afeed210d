//! Reads of the power of nodes at the power controller, for plans. Nothing is switched or recorded by them.

use std::{collections::HashMap, time::Duration};

use chassis::{Channel, Fault, kinds::observation::power_read, mesh::channel::LARGEST_MESSAGE, within};
use domain::{boot::power::PowerObservation, core::trouble::Trouble};
use proto::power::{ReadPowerRequest, power_service_client::PowerServiceClient};
use tonic::Status;

/// Deadline of a read, a bit more than the power controller gives its upstream.
const DEADLINE: Duration = Duration::from_secs(10);

/// Client of the power controller.
#[derive(Clone)]
pub(crate) struct PowerReads {
    client: PowerServiceClient<Channel>,
}

/// Power of nodes, as far as the upstream answered.
#[derive(Debug, Default)]
pub(crate) struct PowerAnswer {
    pub(crate) power: HashMap<String, PowerObservation>,
    /// Reasons why nodes have no answer.
    pub(crate) outages: Vec<Trouble>,
}

impl PowerReads {
    /// Creates a client of the power controller behind `channel`.
    pub(crate) fn new(channel: Channel) -> Self {
        Self { client: PowerServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE) }
    }

    /// Reads the power of nodes with one call. A controller that does not answer leaves the power unknown.
    pub(crate) async fn read(&self, ids: Vec<String>) -> PowerAnswer {
        let mut answer = PowerAnswer::default();
        if ids.is_empty() {
            return answer;
        }
        if let Err(status) = within(DEADLINE, self.collect(ids, &mut answer)).await {
            let fault = Fault::from(status);
            answer.outages.push(Trouble::waiting_for(format_args!("the power controller ({fault})")));
        }
        answer
    }

    async fn collect(&self, ids: Vec<String>, answer: &mut PowerAnswer) -> Result<(), Status> {
        let mut messages = self.client.clone().read_power(ReadPowerRequest { ids }).await?.into_inner();
        while let Some(message) = messages.message().await? {
            let nodes = message.nodes.into_iter();
            answer.power.extend(nodes.map(|node| {
                let power = power_read(node.reading(), &node.error);
                (node.id, power)
            }));
            answer.outages.extend(message.outages.iter().map(Trouble::waiting_for));
        }
        Ok(())
    }
}
