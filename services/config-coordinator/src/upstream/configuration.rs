//! The upstream that configures nodes.

use std::{collections::HashMap, time::Duration};

use ::upstream::FirstCall;
use anyhow::Context as _;
use chassis::{Settings, kinds::observation, settings::ConfigurationDriver};
use domain::{boot::configuration::ConfigurationObservation, core::id::ComponentId};
use futures_util::{Stream, StreamExt, stream};
use proto::simulation::{
    GetConfigurationsRequest, NodeConfiguration, SetConfigurationsRequest, WatchConfigurationsRequest,
};

use self::cfs::CfsDriver;
use super::{Failure, FailureKind, malformed, of_a_list, peer, simulated::SimulatedBootDriver};

mod cfs;

/// Most nodes in one call to the simulated fleet.
const MOST_NODES: usize = 1000;

/// Most time until a watch begins. The service answers a watch before anything happens, so a service that needs longer
/// is not there.
const WATCH_DEADLINE: Duration = Duration::from_secs(5);

/// Shortest time between polls of a service, which has other work.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

/// Upstreams that configure nodes.
#[derive(Clone)]
pub(crate) enum ConfigurationUpstream {
    /// The simulated fleet. It pushes changes.
    Simulated(SimulatedBootDriver),
    /// The configuration framework service. It is polled.
    Cfs(CfsDriver, Duration),
    /// No upstream: every node has the configuration that it wants, and counts as configured once it has booted.
    Nobody,
}

/// Request for the state of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigurationQuery {
    pub(crate) id: ComponentId,
    /// Generation of the component at the time of the request.
    pub(crate) generation: u64,
    /// Configuration that the component wants.
    pub(crate) wanted: Option<String>,
    /// Name of the session of the component; empty: none.
    pub(crate) session: String,
    /// Whether the last answer of the service lacked the node.
    pub(crate) missing: bool,
}

/// Answer about one node. [`ConfigurationObservation::Unknown`]: the answer names the node without readable contents.
pub(crate) type NamedObservation = (String, ConfigurationObservation);

/// Changes found by a poll.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PolledChanges {
    pub(crate) said: Vec<NamedObservation>,
    /// Pages of lists that were read for them.
    pub(crate) pages: usize,
}

/// Configuration to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConfigurationOrder<'a> {
    /// Name of the configuration; empty: none.
    pub(crate) configuration: &'a str,
    /// Name of the session on whose behalf the configuration is set; empty: none.
    pub(crate) session: &'a str,
    pub(crate) mode: ConfigurationMode,
}

/// Way of setting a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigurationMode {
    /// For a node that is about to boot: not to be configured until the node enables itself, and earlier results are
    /// forgotten (BOS reference 5.5, step 5).
    BeforeBoot,
    /// For a running node: to be configured now; earlier results stay on record (BOS reference 5.8).
    Running,
}

impl ConfigurationUpstream {
    /// Returns the driver that the settings name.
    ///
    /// # Errors
    /// When it cannot be called with these settings.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Self> {
        let chosen = &settings.configuration;
        Ok(match chosen.driver {
            ConfigurationDriver::Simulated => Self::Simulated(
                SimulatedBootDriver::at(&settings.tls, &settings.simulator.url).context("simulator.url")?,
            ),
            ConfigurationDriver::Cfs => {
                let period = Duration::try_from_secs_f64(chosen.poll_seconds)
                    .context("configuration.poll_seconds")?
                    .max(SHORTEST_PERIOD);
                Self::Cfs(CfsDriver::new(&chosen.cfs)?, period)
            }
            ConfigurationDriver::None => Self::Nobody,
        })
    }

    /// Returns the call by which the upstream shows at the start that it can be used.
    pub(crate) fn first_call(&self) -> Option<FirstCall> {
        match self {
            Self::Simulated(_) | Self::Nobody => None,
            Self::Cfs(cfs, _) => Some(cfs.first_call()),
        }
    }

    /// Returns the most nodes in one call that sets their configuration.
    pub(crate) fn most_nodes(&self) -> usize {
        match self {
            Self::Simulated(_) => MOST_NODES,
            Self::Cfs(cfs, _) => cfs.most_nodes(),
            Self::Nobody => usize::MAX,
        }
    }

    /// Returns whether the state of a node may change.
    pub(crate) fn may_change(&self) -> bool {
        match self {
            Self::Simulated(_) | Self::Cfs(..) => true,
            Self::Nobody => false,
        }
    }

    /// Returns the least time between polls for changes; `None` where changes are pushed, or where there are none.
    pub(crate) fn poll_period(&self) -> Option<Duration> {
        match self {
            Self::Simulated(_) | Self::Nobody => None,
            Self::Cfs(_, period) => Some(*period),
        }
    }

    /// Returns the state of each of `about`. Nodes that the result leaves out have to be requested again.
    pub(crate) async fn ask(
        &self,
        about: &[ConfigurationQuery],
        deadline: Duration,
    ) -> Result<Vec<NamedObservation>, Failure> {
        match self {
            Self::Simulated(fleet) => ask_simulated(fleet, about, deadline).await,
            Self::Cfs(cfs, _) => cfs.ask(about, deadline).await,
            Self::Nobody => Ok(about.iter().map(configured).collect()),
        }
    }

    /// Returns the changes of `about`, as far as they can be found cheaply. Nodes that the result leaves out may have
    /// changed all the same.
    pub(crate) async fn changes(
        &self,
        about: &[ConfigurationQuery],
        deadline: Duration,
    ) -> Result<PolledChanges, Failure> {
        match self {
            Self::Cfs(cfs, _) => cfs.changes(about, deadline).await,
            // The fleet pushes its changes.
            Self::Simulated(_) | Self::Nobody => Ok(PolledChanges::default()),
        }
    }

    /// Returns the stream of pushes from now on; `None` if the service pushes nothing. No change after the return of
    /// this call is missed while the stream lasts; it ends with its first error.
    pub(crate) async fn watch(
        &self,
    ) -> Result<
        Option<impl Stream<Item = Result<Vec<NamedObservation>, Failure>> + Send + Unpin + 'static>,
        Failure,
    > {
        match self {
            Self::Simulated(fleet) => watch_simulated(fleet).await.map(Some),
            Self::Cfs(..) | Self::Nobody => Ok(None),
        }
    }

    /// Sets the configuration of `ids`, at most [`Self::most_nodes`]. Returns the states of the nodes that the service
    /// confirmed; the others, which it may not know, have to be requested.
    pub(crate) async fn set(
        &self,
        ids: &[ComponentId],
        order: ConfigurationOrder<'_>,
        deadline: Duration,
    ) -> Result<Vec<NamedObservation>, Failure> {
        match self {
            Self::Simulated(fleet) => set_simulated(fleet, ids, order, deadline).await,
            Self::Cfs(cfs, _) => cfs.set(ids, order, deadline).await,
            Self::Nobody => Ok(Vec::new()),
        }
    }
}

/// Returns the state of a node without a configuration upstream: it works towards the wanted configuration, and is
/// done.
fn configured(query: &ConfigurationQuery) -> NamedObservation {
    let desired = query.wanted.clone();
    let observation = ConfigurationObservation::Known { desired, status: "configured".to_owned() };
    (query.id.as_str().to_owned(), observation)
}

async fn ask_simulated(
    fleet: &SimulatedBootDriver,
    about: &[ConfigurationQuery],
    deadline: Duration,
) -> Result<Vec<NamedObservation>, Failure> {
    let mut known = Vec::with_capacity(about.len());
    for about in about.chunks(MOST_NODES) {
        let ids = about.iter().map(|one| one.id.as_str().to_owned()).collect();
        let mut client = fleet.client();
        let answer =
            fleet.answer(deadline, client.get_configurations(GetConfigurationsRequest { ids })).await?;
        let mut answer: HashMap<_, _> = answer.nodes.into_iter().map(said).collect();
        known.extend(about.iter().map(|one| {
            let observation = answer.remove(one.id.as_str());
            (one.id.as_str().to_owned(), observation.unwrap_or(ConfigurationObservation::Missing))
        }));
    }
    Ok(known)
}

async fn watch_simulated(
    fleet: &SimulatedBootDriver,
) -> Result<impl Stream<Item = Result<Vec<NamedObservation>, Failure>> + Send + Unpin + 'static, Failure> {
    let mut client = fleet.client();
    let call = client.watch_configurations(WatchConfigurationsRequest {});
    let messages = fleet.answer(WATCH_DEADLINE, call).await?;
    let fleet = fleet.clone();
    let said = messages.map(move |message| match message {
        Ok(message) => Ok(message.nodes.into_iter().map(said).collect()),
        Err(status) => Err(fleet.failure(&status)),
    });
    let end = Failure {
        kind: FailureKind::Ambiguous,
        status: None,
        text: "the simulated fleet: the stream of changes ended".to_owned(),
    };
    Ok(said.chain(stream::iter([Err(end)])))
}

async fn set_simulated(
    fleet: &SimulatedBootDriver,
    ids: &[ComponentId],
    order: ConfigurationOrder<'_>,
    deadline: Duration,
) -> Result<Vec<NamedObservation>, Failure> {
    let request = SetConfigurationsRequest {
        ids: ids.iter().map(|id| id.as_str().to_owned()).collect(),
        desired_configuration: order.configuration.to_owned(),
        enabled: order.mode == ConfigurationMode::Running,
        session: order.session.to_owned(),
        clear_state: order.mode == ConfigurationMode::BeforeBoot,
    };
    fleet.answer(deadline, fleet.client().set_configurations(request)).await?;
    Ok(Vec::new())
}

fn said(node: NodeConfiguration) -> NamedObservation {
    let reading = node.reading();
    (node.id, observation::configuration_read(reading, node.desired_configuration, node.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn where_nobody_configures_a_node_has_what_it_wants() {
        let about = [Some("base"), Some(""), None].map(|wanted| ConfigurationQuery {
            id: ComponentId::parse("x1").unwrap(),
            generation: 1,
            wanted: wanted.map(str::to_owned),
            session: String::new(),
            missing: false,
        });
        let said = ConfigurationUpstream::Nobody.ask(&about, Duration::ZERO).await.unwrap();
        let known = |desired: Option<&str>| ConfigurationObservation::Known {
            desired: desired.map(str::to_owned),
            status: "configured".to_owned(),
        };
        let expected = [Some("base"), Some(""), None].map(|desired| ("x1".to_owned(), known(desired)));
        assert_eq!(said, expected);
        assert!(ConfigurationUpstream::Nobody.watch().await.unwrap().is_none());
    }
}
