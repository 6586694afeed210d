//! The configuration service.

use std::time::Duration;

use chassis::{Channel, channel::LARGEST_MESSAGE, convert::observation, within};
use domain::{evaluation::ConfigurationObservation, id::ComponentId};
use futures_util::{Stream, StreamExt, stream};
use proto::simulation::{
    GetConfigurationsRequest, NodeConfiguration, SetConfigurationsRequest, WatchConfigurationsRequest,
    fleet_service_client::FleetServiceClient,
};

use super::Failure;

/// Most nodes in one call: the limit that BOS keeps to when it sets configurations (BOS reference 6.4).
pub(crate) const MOST_NODES: usize = 1000;

/// A call is about a thousand nodes at most, which the service answers within a second. What takes ten times
/// that is not coming.
const DEADLINE: Duration = Duration::from_secs(10);

/// A watch is answered before anything happens, so a service that needs longer than this is not there.
const WATCH_DEADLINE: Duration = Duration::from_secs(5);

/// The configuration services that can be driven.
#[derive(Clone)]
pub(crate) enum Driver {
    /// The simulated fleet.
    Simulated(Box<FleetServiceClient<Channel>>),
}

/// What the service said of one node. [`ConfigurationObservation::Unknown`]: it named the node and said
/// nothing that can be used.
pub(crate) type Said = (String, ConfigurationObservation);

/// How a configuration is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// For a node that is about to boot: not to be configured until the node enables itself, and whatever
    /// was applied before is forgotten (BOS reference 5.5, step 5).
    BeforeBoot,
    /// For a node that runs: to be configured now; what was applied stays on record (BOS reference 5.8).
    Running,
}

impl Driver {
    /// Drives the simulated fleet at `url`.
    pub(crate) fn simulated(url: &str) -> anyhow::Result<Self> {
        let client =
            FleetServiceClient::new(chassis::channel(url)?).max_decoding_message_size(LARGEST_MESSAGE);
        Ok(Self::Simulated(Box::new(client)))
    }

    /// What the service says of `ids`, at least one. Those that it does not know are left out.
    pub(crate) async fn get(&self, ids: &[ComponentId]) -> Result<Vec<Said>, Failure> {
        match self {
            Self::Simulated(client) => {
                let request = GetConfigurationsRequest { ids: texts(ids) };
                let mut client = client.as_ref().clone();
                let answer = within(DEADLINE, client.get_configurations(request)).await?;
                Ok(answer.into_inner().nodes.into_iter().map(said).collect())
            }
        }
    }

    /// What the service says as it changes from now on. Nothing that happens after this has returned is
    /// missed while the stream lasts; it ends with its first error.
    pub(crate) async fn watch(
        &self,
    ) -> Result<impl Stream<Item = Result<Vec<Said>, Failure>> + Send + Unpin + 'static, Failure> {
        match self {
            Self::Simulated(client) => {
                let mut client = client.as_ref().clone();
                let call = client.watch_configurations(WatchConfigurationsRequest {});
                let messages = within(WATCH_DEADLINE, call).await?.into_inner();
                let said = messages.map(|message| Ok(message?.nodes.into_iter().map(said).collect()));
                let end = stream::iter([Err(Failure("the stream of changes ended".to_owned()))]);
                Ok(said.chain(end))
            }
        }
    }

    /// Sets what `ids`, at most [`MOST_NODES`], are to be configured with. The service passes over those
    /// that it does not know.
    pub(crate) async fn set(
        &self,
        ids: &[ComponentId],
        configuration: &str,
        session: &str,
        mode: Mode,
    ) -> Result<(), Failure> {
        match self {
            Self::Simulated(client) => {
                let request = SetConfigurationsRequest {
                    ids: texts(ids),
                    desired_configuration: configuration.to_owned(),
                    enabled: mode == Mode::Running,
                    session: session.to_owned(),
                    clear_state: mode == Mode::BeforeBoot,
                };
                within(DEADLINE, client.as_ref().clone().set_configurations(request)).await?;
                Ok(())
            }
        }
    }
}

fn texts(ids: &[ComponentId]) -> Vec<String> {
    ids.iter().map(|id| id.as_str().to_owned()).collect()
}

fn said(node: NodeConfiguration) -> Said {
    let reading = node.reading();
    (node.id, observation::configuration_read(reading, node.desired_configuration, node.status))
}
