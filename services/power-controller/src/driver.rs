//! The power upstream: who is asked for power states and transitions.

use std::{error::Error, io, time::Duration};

use chassis::{Channel, channel::LARGEST_MESSAGE, convert::time, within};
use domain::{component::Action, time::Timestamp};
use futures_util::{Stream, StreamExt};
use proto::{
    power::PowerReading,
    simulation::{
        CreateTransitionRequest, GetPowerRequest, ListTransitionsRequest, NodePower, TransitionOperation,
        WatchPowerRequest, fleet_service_client::FleetServiceClient,
    },
};
use tonic::{Code, ConnectError, Status};

/// How long a watch may take to begin. It is answered before anything happens, so a peer that needs longer
/// than this is not there.
const WATCH_DEADLINE: Duration = Duration::from_secs(5);

/// What the upstream said of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) reading: PowerReading,
    /// What was said beside the reading; empty: nothing.
    pub(crate) error: String,
}

impl Reading {
    /// The upstream answered and left the node out.
    pub(crate) fn missing() -> Self {
        Self { reading: PowerReading::Missing, error: String::new() }
    }
}

/// A transition that the upstream has on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) id: String,
    pub(crate) action: Option<Action>,
    /// Sorted.
    pub(crate) ids: Vec<String>,
    /// By the clock of the upstream.
    pub(crate) at: Timestamp,
}

/// Why the upstream did not do as asked, by what is known about its state now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// It refused these nodes together. It may take some of them.
    #[error("{0}")]
    Refused(String),
    /// It refuses this kind of call, whichever the nodes.
    #[error("{0}")]
    Denied(String),
    /// It was not reached, so nothing happened.
    #[error("{0}")]
    Unreachable(String),
    /// It may have done it or not, or may still do it.
    #[error("{0}")]
    Ambiguous(String),
}

/// The upstreams that can be driven.
#[derive(Clone)]
pub(crate) enum Driver {
    /// The simulated fleet.
    Simulated(Box<FleetServiceClient<Channel>>),
}

impl Driver {
    /// Drives the simulated fleet at `url`.
    pub(crate) fn simulated(url: &str) -> anyhow::Result<Self> {
        let client =
            FleetServiceClient::new(chassis::channel(url)?).max_decoding_message_size(LARGEST_MESSAGE);
        Ok(Self::Simulated(Box::new(client)))
    }

    /// Reads the power of nodes. Those that the upstream does not know are left out.
    pub(crate) async fn power(
        &self,
        ids: Vec<String>,
        deadline: Duration,
    ) -> Result<Vec<(String, Reading)>, Failure> {
        match self {
            Self::Simulated(client) => {
                let mut client = client.clone();
                let answer = within(deadline, client.get_power(GetPowerRequest { ids })).await?;
                Ok(answer.into_inner().nodes.into_iter().map(reading).collect())
            }
        }
    }

    /// Readings as they change from now on. What happens after this has returned is not missed while the
    /// stream lasts; it ends with its first error.
    pub(crate) async fn watch_power(
        &self,
    ) -> Result<impl Stream<Item = Result<Vec<(String, Reading)>, Failure>> + Send + 'static, Failure> {
        match self {
            Self::Simulated(client) => {
                let mut client = client.clone();
                let messages = within(WATCH_DEADLINE, client.watch_power(WatchPowerRequest {})).await?;
                let readings = messages.into_inner().map(|message| {
                    let nodes = message?.nodes.into_iter();
                    Ok(nodes.map(reading).collect())
                });
                Ok(readings)
            }
        }
    }

    /// Asks for an action on the power of nodes. Gives the id under which the upstream took it.
    pub(crate) async fn start(
        &self,
        action: Action,
        ids: Vec<String>,
        deadline: Duration,
    ) -> Result<String, Failure> {
        let Some(operation) = operation_of(action) else {
            return Err(Failure::Denied(format!("'{}' is not an action on power", action.word())));
        };
        match self {
            Self::Simulated(client) => {
                let mut client = client.clone();
                let request = CreateTransitionRequest { operation: operation.into(), ids };
                Ok(within(deadline, client.create_transition(request)).await?.into_inner().transition_id)
            }
        }
    }

    /// The transitions that the upstream took at `since` or later.
    pub(crate) async fn accepted_since(
        &self,
        since: Timestamp,
        deadline: Duration,
    ) -> Result<Vec<Accepted>, Failure> {
        match self {
            Self::Simulated(client) => {
                let mut client = client.clone();
                let request =
                    ListTransitionsRequest { since: Some(time::to_wire(since.max(Timestamp::default()))) };
                let answer = within(deadline, client.list_transitions(request)).await?;
                let accepted = answer.into_inner().transitions.into_iter().map(|one| {
                    let action = action_of(one.operation());
                    // Without a time of its own it may be as recent as any.
                    let at = one.created_at.map_or(Timestamp(i64::MAX), time::from_wire);
                    let mut ids = one.ids;
                    ids.sort_unstable();
                    Accepted { id: one.transition_id, action, ids, at }
                });
                Ok(accepted.collect())
            }
        }
    }
}

impl From<Status> for Failure {
    /// Sorts a failed call. Only what certainly had no effect may count as refused or unreachable: a repeated
    /// power action would be the price of a wrong guess.
    fn from(status: Status) -> Self {
        let text = status.message().to_owned();
        match status.code() {
            _ if never_connected(&status) => Self::Unreachable(format!("power upstream not reached: {text}")),
            Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition => Self::Refused(text),
            Code::PermissionDenied | Code::Unauthenticated | Code::Unimplemented => Self::Denied(text),
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::AlreadyExists
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::OutOfRange
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss => Self::Ambiguous(text),
        }
    }
}

/// What an upstream says of one node. A peer that names no reading does not know it.
fn reading(node: NodePower) -> (String, Reading) {
    let reading = match node.reading() {
        PowerReading::Unspecified => PowerReading::Undefined,
        known @ (PowerReading::On | PowerReading::Off | PowerReading::Undefined | PowerReading::Missing) => {
            known
        }
    };
    (node.id, Reading { reading, error: node.error })
}

/// What the upstream has to do for an action; none if the action has nothing to do with power.
fn operation_of(action: Action) -> Option<TransitionOperation> {
    match action {
        Action::PoweringOn => Some(TransitionOperation::On),
        Action::PoweringOffGracefully => Some(TransitionOperation::SoftOff),
        Action::PoweringOffForcefully => Some(TransitionOperation::ForceOff),
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            None
        }
    }
}

/// The action of an upstream's operation; none if it has no name.
fn action_of(operation: TransitionOperation) -> Option<Action> {
    match operation {
        TransitionOperation::Unspecified => None,
        TransitionOperation::On => Some(Action::PoweringOn),
        TransitionOperation::SoftOff => Some(Action::PoweringOffGracefully),
        TransitionOperation::ForceOff => Some(Action::PoweringOffForcefully),
    }
}

/// Whether there was no connection over which the call could have gone.
fn never_connected(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        let refused = error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if refused || error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn only_what_had_no_effect_counts_as_refused() {
        let mut seen = String::new();
        for code in 0..17 {
            let failure = match Status::new(Code::from_i32(code), "words of the peer").into() {
                Failure::Refused(_) => "refused",
                Failure::Denied(_) => "denied",
                Failure::Unreachable(_) => "unreachable",
                Failure::Ambiguous(_) => "ambiguous",
            };
            seen += &format!("{:?}: {failure}\n", Code::from_i32(code));
        }
        expect![[r#"
            Ok: ambiguous
            Cancelled: ambiguous
            Unknown: ambiguous
            InvalidArgument: refused
            DeadlineExceeded: ambiguous
            NotFound: refused
            AlreadyExists: ambiguous
            PermissionDenied: denied
            ResourceExhausted: ambiguous
            FailedPrecondition: refused
            Aborted: ambiguous
            OutOfRange: ambiguous
            Unimplemented: denied
            Internal: ambiguous
            Unavailable: ambiguous
            DataLoss: ambiguous
            Unauthenticated: denied
        "#]]
        .assert_eq(&seen);
    }

    async fn start(listener: Option<TcpListener>, url: &str) -> Failure {
        let peer = tokio::spawn(async move {
            let Some(listener) = listener else { return };
            // Takes the call and vanishes.
            let (connection, _) = listener.accept().await.unwrap();
            connection.readable().await.unwrap();
        });
        let driver = Driver::simulated(url).unwrap();
        let started = driver.start(Action::PoweringOn, vec!["x1".into()], Duration::from_secs(5)).await;
        peer.await.unwrap();
        started.unwrap_err()
    }

    #[tokio::test]
    async fn a_peer_that_is_not_there_was_not_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let failure = start(None, &url).await;
        assert!(matches!(failure, Failure::Unreachable(_)), "{failure:?}");
    }

    #[tokio::test]
    async fn a_peer_that_vanishes_during_the_call_leaves_a_doubt() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let failure = start(Some(listener), &url).await;
        assert!(matches!(failure, Failure::Ambiguous(_)), "{failure:?}");
    }
}
