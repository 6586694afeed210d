//! The simulated fleet as the power upstream.

use std::{collections::HashSet, error::Error, io, sync::Arc, time::Duration};

use chassis::{
    Channel,
    mesh::{channel::LARGEST_MESSAGE, time},
    process::clock,
    settings::TlsSettings,
    within,
};
use domain::{
    boot::component::Action,
    core::{bos_time, clock_offset::ClockOffset, time::Timestamp},
};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use proto::{
    power::{PowerReading, TaskOutcome},
    simulation::{
        CreateTransitionRequest, GetPowerRequest, GetTransitionRequest, GetTransitionResponse,
        ListTransitionsRequest, NodePower, NodeTask, TransitionOperation, WatchPowerRequest,
        fleet_service_client::FleetServiceClient,
    },
};
use tonic::{Code, ConnectError, Status};

use super::{
    DriverFailure, ForeignAnswer, ForeignQuery, FoundTransitions, NodeReading, OpenTransitions,
    ReadingStream, UpstreamSearch, UpstreamTransition,
};
use crate::driver::progress::{TaskState, TransitionProgress, UpstreamRecord, UpstreamTask};

/// Most time until a watch begins. The fleet answers a watch before anything happens, so a peer that needs longer is
/// not there.
const WATCH_DEADLINE: Duration = Duration::from_secs(5);

/// The simulated fleet at one address.
#[derive(Clone)]
pub(crate) struct SimulatedPowerDriver {
    client: FleetServiceClient<Channel>,
    url: Arc<str>,
    /// Whether the fleet reports the outcome of transitions.
    follows: bool,
    /// Beginning of the current outage.
    silent_since: Arc<Mutex<Option<Timestamp>>>,
}

impl SimulatedPowerDriver {
    /// Returns a driver of the fleet at `url`, which reports the outcome of transitions if it `follows` them.
    ///
    /// # Errors
    /// When `url` is not an address.
    pub(crate) fn new(tls: &TlsSettings, url: &str, follows: bool) -> anyhow::Result<Self> {
        let client = FleetServiceClient::new(chassis::channel(tls, url)?);
        let client = client.max_decoding_message_size(LARGEST_MESSAGE);
        Ok(Self { client, url: url.into(), follows, silent_since: Arc::default() })
    }

    pub(crate) fn follows(&self) -> bool {
        self.follows
    }

    pub(crate) async fn power(
        &self,
        ids: Vec<String>,
        deadline: Duration,
    ) -> Result<Vec<(String, NodeReading)>, DriverFailure> {
        let mut client = self.client.clone();
        let answer = self.told(within(deadline, client.get_power(GetPowerRequest { ids })).await)?;
        Ok(answer.into_inner().nodes.into_iter().map(reading).collect())
    }

    pub(crate) async fn watch_power(&self) -> Result<ReadingStream, DriverFailure> {
        let mut client = self.client.clone();
        let messages = within(WATCH_DEADLINE, client.watch_power(WatchPowerRequest {})).await;
        let (messages, fleet) = (self.told(messages)?.into_inner(), self.clone());
        let end = stream::once(async { Err(Status::unavailable("it ended the watch of power")) });
        Ok(Box::pin(messages.chain(end).map(move |message| {
            let nodes = fleet.told(message)?.nodes.into_iter();
            Ok(nodes.map(reading).collect())
        })))
    }

    pub(crate) async fn start(
        &self,
        action: Action,
        ids: Vec<String>,
        deadline: Duration,
    ) -> Result<String, DriverFailure> {
        let Some(operation) = operation_of(action) else {
            return Err(DriverFailure::Refused(format!("'{}' is not an action on power", action.word())));
        };
        let mut client = self.client.clone();
        let request = CreateTransitionRequest { operation: operation.into(), ids };
        let answer = within(deadline, client.create_transition(request)).await;
        Ok(self.told(answer)?.into_inner().transition_id)
    }

    /// Returns the progress of a transition. A fleet that never reports progress has ended it at once.
    pub(crate) async fn follow(
        &self,
        id: &str,
        deadline: Duration,
    ) -> Result<TransitionProgress, DriverFailure> {
        if !self.follows {
            return Ok(TransitionProgress::forgotten(UpstreamRecord::NotKept));
        }
        let mut client = self.client.clone();
        let request = GetTransitionRequest { transition_id: id.to_owned() };
        match within(deadline, client.get_transition(request)).await {
            Err(status) if status.code() == Code::NotFound => {
                let is_listed = self.list(deadline).await?.accepted.iter().any(|one| one.id == id);
                match is_listed {
                    true => Err(DriverFailure::Ambiguous(super::still_listed(status.message()))),
                    false => Ok(TransitionProgress::forgotten(UpstreamRecord::Missing)),
                }
            }
            outcome => {
                let answer = self.told(outcome)?.into_inner();
                let record = record(id, &answer).map_or(UpstreamRecord::NotKept, UpstreamRecord::Found);
                let ended = answer.ended;
                let tasks = answer.tasks.into_iter().map(task).collect();
                Ok(TransitionProgress { tasks, ended, record })
            }
        }
    }

    pub(crate) async fn find(
        &self,
        search: &UpstreamSearch,
        deadline: Duration,
    ) -> Result<FoundTransitions, DriverFailure> {
        let mut found = self.list(deadline).await?;
        let clock = found.clock;
        found.accepted.retain(|one| search.may_be(one, clock));
        Ok(found)
    }

    /// Returns every transition that the fleet has on record.
    async fn list(&self, deadline: Duration) -> Result<FoundTransitions, DriverFailure> {
        let mut client = self.client.clone();
        let asked_at = clock::now();
        let request = ListTransitionsRequest { since: None };
        let answer = within(deadline, client.list_transitions(request)).await;
        let answer = self.told(answer)?.into_inner();
        let theirs = answer.now.map(time::from_wire);
        let clock = theirs.and_then(|theirs| {
            ClockOffset::measure(asked_at, clock::now(), theirs, Duration::from_millis(1))
        });
        let accepted = answer.transitions.into_iter().map(|one| {
            let action = action_of(one.operation());
            // A transition without a time may be as recent as any.
            let at = one.created_at.map_or(Timestamp(i64::MAX), time::from_wire);
            let mut ids = one.ids;
            ids.sort_unstable();
            // The list does not show whether the fleet still works on a transition.
            UpstreamTransition {
                id: one.transition_id,
                action,
                ids,
                complete: true,
                at,
                resolution: Duration::ZERO,
                open: false,
            }
        });
        Ok(FoundTransitions { accepted: accepted.collect(), clock })
    }

    /// Returns the transitions that the fleet works on and that hold one of these nodes.
    pub(crate) async fn holders(
        &self,
        ids: &HashSet<String>,
        deadline: Duration,
    ) -> Result<Vec<UpstreamTransition>, DriverFailure> {
        let mut listed = self.list(deadline).await?.accepted;
        listed.retain(|one| one.ids.iter().any(|id| ids.contains(id)));
        let mut holders = self.open_among(listed, deadline).await?;
        for one in &mut holders {
            one.ids.retain(|id| ids.contains(id));
        }
        holders.retain(|one| !one.ids.is_empty());
        Ok(holders)
    }

    /// Returns the transitions that the fleet works on, without the `known` ones.
    pub(crate) async fn open_beside(
        &self,
        known: &HashSet<String>,
        deadline: Duration,
    ) -> Result<OpenTransitions, DriverFailure> {
        let mut listed = self.list(deadline).await?.accepted;
        listed.retain(|one| !known.contains(&one.id));
        let read = self.open_among(listed, deadline).await?;
        Ok(OpenTransitions { read, unread: Vec::new() })
    }

    /// Returns the transitions without a record that the fleet works on, or that have ended since the last answer. The
    /// readings of the fleet show an effect at once, so the first answer has no ended ones. The fleet never begins again with
    /// one that is over.
    pub(crate) async fn foreign(
        &self,
        query: &ForeignQuery,
        deadline: Duration,
    ) -> Result<ForeignAnswer, DriverFailure> {
        if !self.follows {
            return Ok(ForeignAnswer::default());
        }
        let FoundTransitions { accepted: mut all, clock } = self.list(deadline).await?;
        let listed = all.iter().map(|one| one.id.clone()).collect();
        all.retain(|one| query.is_unrecorded(&one.id, false));
        let mut ended: HashSet<String> = all.iter().map(|one| one.id.clone()).collect();
        all.retain(|one| query.wants_ended(&one.id, |_| true));
        let mut found = self.open_among(all.clone(), deadline).await?;
        ended.retain(|id| found.iter().all(|one| one.id != *id));
        if query.ended.is_some() {
            all.retain(|one| ended.contains(&one.id));
            found.extend(all);
        }
        Ok(ForeignAnswer { found, clock, listed: Arc::new(listed), ended: Arc::new(ended) })
    }

    /// Returns the record of the transition with this id; `None`: there is none.
    pub(crate) async fn look_up(
        &self,
        id: &str,
        deadline: Duration,
    ) -> Result<Option<UpstreamTransition>, DriverFailure> {
        let mut listed = self.list(deadline).await?.accepted;
        listed.retain(|one| one.id == id);
        let open = self.open_among(listed.clone(), deadline).await?;
        Ok(open.into_iter().chain(listed).next())
    }

    /// Returns those of the `listed` transitions that the fleet works on, with the nodes that it works on.
    async fn open_among(
        &self,
        listed: Vec<UpstreamTransition>,
        deadline: Duration,
    ) -> Result<Vec<UpstreamTransition>, DriverFailure> {
        let mut open = Vec::new();
        for one in listed {
            let progress = self.follow(&one.id, deadline).await?;
            let is_pending = |task: &&UpstreamTask| matches!(task.state, TaskState::Pending);
            let ids: Vec<_> = progress.tasks.iter().filter(is_pending).map(|task| task.id.clone()).collect();
            if !ids.is_empty() {
                open.push(UpstreamTransition { ids, open: true, ..one });
            }
        }
        Ok(open)
    }

    /// Returns the outcome of a call, with a text that names the fleet and, during an outage, its beginning.
    fn told<T>(&self, outcome: Result<T, Status>) -> Result<T, DriverFailure> {
        let failure = match outcome {
            Ok(answer) => {
                *self.silent_since.lock() = None;
                return Ok(answer);
            }
            Err(status) => DriverFailure::from(status),
        };
        let silent = |error: String| {
            let since = *self.silent_since.lock().get_or_insert_with(clock::now);
            format!("simulated fleet at {} (failing since {}Z: {error})", self.url, bos_time::text(since))
        };
        Err(match failure {
            DriverFailure::Unreachable(error) => DriverFailure::Unreachable(silent(error)),
            DriverFailure::Ambiguous(error) => DriverFailure::Ambiguous(silent(error)),
            refused @ (DriverFailure::Refused(_) | DriverFailure::TooLarge(_) | DriverFailure::Denied(_)) => {
                refused
            }
        })
    }
}

impl From<Status> for DriverFailure {
    /// Classifies a failed call. Only calls that certainly had no effect count as refused or unreachable: a wrong guess
    /// would repeat a power action.
    fn from(status: Status) -> Self {
        let text = status.message().to_owned();
        match status.code() {
            _ if never_connected(&status) => Self::Unreachable(text),
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

/// Returns the fleet's reading of one node. A fleet that names no reading does not know it.
fn reading(node: NodePower) -> (String, NodeReading) {
    let reading = match node.reading() {
        PowerReading::Unspecified => PowerReading::Undefined,
        known @ (PowerReading::On | PowerReading::Off | PowerReading::Undefined | PowerReading::Missing) => {
            known
        }
    };
    (node.id, NodeReading { reading, error: node.error, as_of: None })
}

/// Returns the fleet's record under `id`; `None` where the fleet reports no more than tasks.
fn record(id: &str, answer: &GetTransitionResponse) -> Option<UpstreamTransition> {
    let at = answer.created_at.map(time::from_wire)?;
    let mut ids: Vec<_> = answer.tasks.iter().map(|task| task.id.clone()).collect();
    ids.sort_unstable();
    let action = action_of(answer.operation());
    Some(UpstreamTransition {
        id: id.to_owned(),
        action,
        ids,
        complete: true,
        at,
        resolution: Duration::ZERO,
        open: !answer.ended,
    })
}

fn task(task: NodeTask) -> UpstreamTask {
    let outcome = task.outcome();
    let state = match outcome {
        TaskOutcome::Unspecified => TaskState::Pending,
        TaskOutcome::Succeeded => TaskState::Succeeded,
        TaskOutcome::Failed if task.asked => TaskState::TimedOut(task.error),
        TaskOutcome::Failed => TaskState::Failed(task.error),
        // The fleet has no other reason not to begin.
        TaskOutcome::Refused => TaskState::Refused { words: task.error, reserved: true },
    };
    UpstreamTask { id: task.id, state }
}

/// Returns the upstream's operation for an action; `None` if the action has nothing to do with power.
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

/// Returns the action of an upstream's operation; `None` for an operation without a name.
fn action_of(operation: TransitionOperation) -> Option<Action> {
    match operation {
        TransitionOperation::Unspecified => None,
        TransitionOperation::On => Some(Action::PoweringOn),
        TransitionOperation::SoftOff => Some(Action::PoweringOffGracefully),
        TransitionOperation::ForceOff => Some(Action::PoweringOffForcefully),
    }
}

/// Returns whether there was no connection over which the call could have left.
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
                DriverFailure::Refused(_) => "refused",
                DriverFailure::TooLarge(_) => "too large",
                DriverFailure::Denied(_) => "denied",
                DriverFailure::Unreachable(_) => "unreachable",
                DriverFailure::Ambiguous(_) => "ambiguous",
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

    async fn start(listener: Option<TcpListener>, url: &str) -> DriverFailure {
        let peer = tokio::spawn(async move {
            let Some(listener) = listener else { return };
            // The peer takes the call and vanishes.
            let (connection, _) = listener.accept().await.unwrap();
            connection.readable().await.unwrap();
        });
        let fleet = SimulatedPowerDriver::new(&TlsSettings::default(), url, false).unwrap();
        let started = fleet.start(Action::PoweringOn, vec!["x1".into()], Duration::from_secs(5)).await;
        peer.await.unwrap();
        started.unwrap_err()
    }

    #[tokio::test]
    async fn a_peer_that_is_not_there_was_not_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let failure = start(None, &url).await;
        assert!(matches!(failure, DriverFailure::Unreachable(_)), "{failure:?}");
    }

    #[tokio::test]
    async fn a_peer_that_vanishes_during_the_call_leaves_a_doubt() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let failure = start(Some(listener), &url).await;
        assert!(matches!(failure, DriverFailure::Ambiguous(_)), "{failure:?}");
    }
}
