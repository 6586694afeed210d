//! Who configures nodes.

use std::{collections::HashMap, time::Duration};

use anyhow::Context as _;
use chassis::{
    Settings,
    convert::observation,
    settings::ConfigurationDriver::{Cfs as CfsDriver, None as NobodyDriver, Simulated as SimulatedDriver},
};
use domain::{boot::configuration::ConfigurationObservation, core::id::ComponentId};
use futures_util::{Stream, StreamExt, stream};
use proto::simulation::{
    GetConfigurationsRequest, NodeConfiguration, SetConfigurationsRequest, WatchConfigurationsRequest,
};

use super::{Failure, FailureKind, cfs::Cfs, simulated::Simulated};

/// Most nodes in one call to the simulated fleet.
const MOST_NODES: usize = 1000;

/// A watch is answered before anything happens, so a service that needs longer than this is not there.
const WATCH_DEADLINE: Duration = Duration::from_secs(5);

/// Shortest time between looks at a service that has to be polled: it has other things to do.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

/// Those who configure nodes.
#[derive(Clone)]
pub(crate) enum Driver {
    /// The simulated fleet. It tells of changes by itself.
    Simulated(Simulated),
    /// The configuration framework service. It is polled.
    Cfs(Cfs, Duration),
    /// Nobody, so every node has the configuration that it wants, and counts as configured as soon as it has
    /// booted.
    Nobody,
}

/// A node that somebody has to know about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) id: ComponentId,
    /// The generation of the component as the question is asked.
    pub(crate) generation: u64,
    /// The configuration that it wants.
    pub(crate) wanted: Option<String>,
    /// Name of the session that it belongs to; empty: none.
    pub(crate) session: String,
    /// Whether the service did not have it when it was last asked.
    pub(crate) missing: bool,
}

/// What was said of one node. [`ConfigurationObservation::Unknown`]: it was named, and nothing was said that can
/// be used.
pub(crate) type Said = (String, ConfigurationObservation);

/// What has changed, as far as that was found out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) said: Vec<Said>,
    /// Pages of lists that were read for it.
    pub(crate) pages: usize,
}

/// A configuration to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order<'a> {
    /// Empty: none.
    pub(crate) configuration: &'a str,
    /// Name of the session on whose behalf it is set; empty: none.
    pub(crate) session: &'a str,
    pub(crate) mode: Mode,
}

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
    /// The one that the settings name.
    ///
    /// # Errors
    /// When it cannot be called with these settings.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Self> {
        let chosen = &settings.configuration;
        Ok(match chosen.driver {
            SimulatedDriver => {
                Self::Simulated(Simulated::at(&settings.simulator.url).context("simulator.url")?)
            }
            CfsDriver => {
                let period = Duration::try_from_secs_f64(chosen.poll_seconds)
                    .context("configuration.poll_seconds")?
                    .max(SHORTEST_PERIOD);
                Self::Cfs(Cfs::new(&chosen.cfs)?, period)
            }
            NobodyDriver => Self::Nobody,
        })
    }

    /// Most nodes in one call that sets their configuration.
    pub(crate) fn most_nodes(&self) -> usize {
        match self {
            Self::Simulated(_) => MOST_NODES,
            Self::Cfs(cfs, _) => cfs.most_nodes(),
            Self::Nobody => usize::MAX,
        }
    }

    /// Whether what is so for a node may become otherwise.
    pub(crate) fn may_change(&self) -> bool {
        match self {
            Self::Simulated(_) | Self::Cfs(..) => true,
            Self::Nobody => false,
        }
    }

    /// How long to wait at least between looks for changes; none where they are told, or where there are none.
    pub(crate) fn poll_period(&self) -> Option<Duration> {
        match self {
            Self::Simulated(_) | Self::Nobody => None,
            Self::Cfs(_, period) => Some(*period),
        }
    }

    /// What is so for each of `about`. Those who are left out of the outcome have to be asked about again.
    pub(crate) async fn ask(&self, about: &[Question], deadline: Duration) -> Result<Vec<Said>, Failure> {
        match self {
            Self::Simulated(fleet) => ask_simulated(fleet, about, deadline).await,
            Self::Cfs(cfs, _) => cfs.ask(about, deadline).await,
            Self::Nobody => Ok(about.iter().map(configured).collect()),
        }
    }

    /// What has changed of `about`, as far as that can be found out cheaply. Who is left out of the outcome may have
    /// changed all the same.
    pub(crate) async fn news(&self, about: &[Question], deadline: Duration) -> Result<News, Failure> {
        match self {
            Self::Cfs(cfs, _) => cfs.news(about, deadline).await,
            // They are told.
            Self::Simulated(_) | Self::Nobody => Ok(News::default()),
        }
    }

    /// What the service says by itself from now on; none if it says nothing. Nothing that happens after this has
    /// returned is missed while the stream lasts; it ends with its first error.
    pub(crate) async fn watch(
        &self,
    ) -> Result<Option<impl Stream<Item = Result<Vec<Said>, Failure>> + Send + Unpin + 'static>, Failure>
    {
        match self {
            Self::Simulated(fleet) => watch_simulated(fleet).await.map(Some),
            Self::Cfs(..) | Self::Nobody => Ok(None),
        }
    }

    /// Sets what `ids`, at most [`Self::most_nodes`], are to be configured with. Gives what is so for those that
    /// the service confirmed; the others, which it may not know, have to be asked about.
    pub(crate) async fn set(
        &self,
        ids: &[ComponentId],
        order: Order<'_>,
        deadline: Duration,
    ) -> Result<Vec<Said>, Failure> {
        match self {
            Self::Simulated(fleet) => set_simulated(fleet, ids, order, deadline).await,
            Self::Cfs(cfs, _) => cfs.set(ids, order, deadline).await,
            Self::Nobody => Ok(Vec::new()),
        }
    }
}

/// What the evaluation is told where nobody configures nodes: they work towards what is wanted, and are done.
fn configured(question: &Question) -> Said {
    let desired = question.wanted.clone();
    let observation = ConfigurationObservation::Known { desired, status: "configured".to_owned() };
    (question.id.as_str().to_owned(), observation)
}

async fn ask_simulated(
    fleet: &Simulated,
    about: &[Question],
    deadline: Duration,
) -> Result<Vec<Said>, Failure> {
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
    fleet: &Simulated,
) -> Result<impl Stream<Item = Result<Vec<Said>, Failure>> + Send + Unpin + 'static, Failure> {
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
    fleet: &Simulated,
    ids: &[ComponentId],
    order: Order<'_>,
    deadline: Duration,
) -> Result<Vec<Said>, Failure> {
    let request = SetConfigurationsRequest {
        ids: ids.iter().map(|id| id.as_str().to_owned()).collect(),
        desired_configuration: order.configuration.to_owned(),
        enabled: order.mode == Mode::Running,
        session: order.session.to_owned(),
        clear_state: order.mode == Mode::BeforeBoot,
    };
    fleet.answer(deadline, fleet.client().set_configurations(request)).await?;
    Ok(Vec::new())
}

fn said(node: NodeConfiguration) -> Said {
    let reading = node.reading();
    (node.id, observation::configuration_read(reading, node.desired_configuration, node.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn where_nobody_configures_a_node_has_what_it_wants() {
        let about = [Some("base"), Some(""), None].map(|wanted| Question {
            id: ComponentId::parse("x1").unwrap(),
            generation: 1,
            wanted: wanted.map(str::to_owned),
            session: String::new(),
            missing: false,
        });
        let said = Driver::Nobody.ask(&about, Duration::ZERO).await.unwrap();
        let known = |desired: Option<&str>| ConfigurationObservation::Known {
            desired: desired.map(str::to_owned),
            status: "configured".to_owned(),
        };
        let expected = [Some("base"), Some(""), None].map(|desired| ("x1".to_owned(), known(desired)));
        assert_eq!(said, expected);
        assert!(Driver::Nobody.watch().await.unwrap().is_none());
    }
}
