//! The power control service (BOS reference 6.3).
//!
//! The service takes a transition before it has checked hardware or locks; the outcome of each node is in the tasks of
//! the transition. The service polls hardware and answers power requests from its last poll.

mod aside;
mod listing;
mod wire;

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chassis::settings;
use domain::{
    boot::{
        component::Action,
        power::{TASK_DEADLINE, foreign},
    },
    core::{
        clock_offset::ClockOffset,
        refusal::{self, RefusalMemory, RefusalStep, RefusedBatch},
    },
};
use futures_util::{StreamExt, stream};
use http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;
use upstream::{CredentialUse, Peer, Request};

use self::{
    aside::{NodesAside, RequestedNodes},
    listing::SharedListing,
};
use super::{
    DriverFailure, ForeignAnswer, ForeignQuery, FoundTransitions, NodeReading, OpenTransitions,
    UpstreamSearch, UpstreamTransition,
};
use crate::driver::progress::{TransitionProgress, UpstreamRecord};

/// Transitions that are read at a time, for people, who wait for the answer.
const READS: usize = 8;

/// Smallest batch size to which refusals of the service reduce transitions. A service that does not take so few nodes
/// has another trouble than their number.
const FEWEST_NODES: usize = 100;

/// Power control service at one address. Clones share their knowledge of the service.
#[derive(Clone)]
pub(crate) struct PcsDriver {
    peer: Peer,
    /// Most nodes in one transition, as far as is known.
    most_nodes: Arc<AtomicUsize>,
    refusals: Arc<Mutex<PowerRefusals>>,
    listing: Arc<SharedListing>,
}

/// Refusals of power requests.
#[derive(Default)]
struct PowerRefusals {
    memory: RefusalMemory<String>,
    aside: NodesAside,
    /// Whether the last request was refused for every node.
    refuses_all: bool,
}

/// Power request, cut into as many calls as its refusals need.
struct PowerQuestion {
    /// Nodes of the calls that are still to be made, the next call last.
    parts: Vec<Vec<String>>,
    batch: RefusedBatch,
    round: u32,
    readings: Vec<(String, NodeReading)>,
    /// Nodes that were refused alone, with the reason.
    refused: Vec<(String, String)>,
}

impl PcsDriver {
    /// Returns a driver of the service that the settings name.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(settings: &settings::Peer) -> anyhow::Result<Self> {
        let peer = Peer::new("PCS", settings).map_err(|error| anyhow::anyhow!("power.pcs.{error}"))?;
        peer.check_credentials("power.pcs", CredentialUse::Header);
        let most_nodes = Arc::new(AtomicUsize::new(peer.batch_size()));
        Ok(Self { peer, most_nodes, refusals: Arc::default(), listing: Arc::default() })
    }

    pub(crate) fn most_nodes(&self) -> usize {
        self.most_nodes.load(Ordering::Relaxed)
    }

    /// Reads the power of nodes. The service refuses all nodes together if it does not accept one of them as a node
    /// (BUG-30), so the nodes are requested in ever smaller parts until that one is alone. It then has no state but an
    /// error with the reason. If every node is refused the trouble is the service's, and no node is searched for.
    pub(crate) async fn power(
        &self,
        ids: Vec<String>,
        deadline: Duration,
    ) -> Result<Vec<(String, NodeReading)>, DriverFailure> {
        let mut question = self.begin(ids);
        let mut words = String::new();
        while let Some(part) = question.parts.pop() {
            // The probes are requested first: if none was taken, the rest is not requested.
            if part.len() > 1 && question.batch.is_refused() {
                break;
            }
            match self.read(&part, deadline).await {
                Ok(found) => {
                    question.batch.take();
                    let mut refusals = self.refusals.lock();
                    refusals.memory.take(&part, Instant::now().into_std());
                    refusals.aside.forget(&part);
                    question.readings.extend(found);
                }
                Err(DriverFailure::TooLarge(_)) if part.len() > 1 => question.halve(part),
                Err(DriverFailure::Refused(text) | DriverFailure::TooLarge(text)) => {
                    words.clone_from(&text);
                    self.refuse(&mut question, part, text);
                }
                Err(failure) => return Err(failure),
            }
        }
        self.judge(question).ok_or(DriverFailure::Unreachable(words))
    }

    /// Begins a request for the nodes that are not left out. While every node is refused, a single node is requested first.
    /// Nodes that were refused before come last, apart from the others.
    fn begin(&self, ids: Vec<String>) -> PowerQuestion {
        let mut refusals = self.refusals.lock();
        let RequestedNodes { fresh: ids, again, left_out: readings } =
            refusals.aside.sort(ids, Instant::now());
        let round = refusals.memory.next_round();
        let (batch, parts) = if refusals.refuses_all {
            let (first, rest) = refusal::split_probes(ids, 1, round);
            (RefusedBatch::probed(Instant::now().into_std()), vec![again, rest, first])
        } else {
            (RefusedBatch::default(), vec![again, ids])
        };
        let parts = parts.into_iter().filter(|part| !part.is_empty()).collect();
        PowerQuestion { parts, batch, round, readings, refused: Vec::new() }
    }

    /// Decides how a request continues after a `part` of it was refused.
    fn refuse(&self, question: &mut PowerQuestion, part: Vec<String>, text: String) {
        let now = Instant::now().into_std();
        let Some(first) = part.first() else { return };
        let mut refusals = self.refusals.lock();
        refusals.memory.refuse(part.iter().map(|id| (id, 0)), now);
        let witness = refusals.memory.witness(first, question.batch.is_taken(), now);
        match question.batch.next_step(part.len(), witness, now) {
            RefusalStep::Probe(count) => question.probe(part, count),
            RefusalStep::Halve => question.halve(part),
            RefusalStep::SetAside | RefusalStep::BackOff => {
                question.refused.extend(part.into_iter().map(|id| (id, text.clone())));
            }
        }
    }

    /// Returns the readings of a completed request; `None` if the service is to blame for its refusals.
    fn judge(&self, question: PowerQuestion) -> Option<Vec<(String, NodeReading)>> {
        let PowerQuestion { batch, mut readings, refused, .. } = question;
        let (now, mut refusals) = (Instant::now(), self.refusals.lock());
        refusals.refuses_all = batch.is_refused();
        if refusals.refuses_all {
            return None;
        }
        for (id, text) in refused {
            refusals.memory.blame(&id, batch.is_taken(), now.into_std())?;
            refusals.aside.put(&id, text.clone(), now);
            readings.push((id, NodeReading::undefined(text)));
        }
        Some(readings)
    }

    /// Requests the node again even if it was refused recently.
    pub(crate) fn reconsider(&self, id: &str) {
        let mut refusals = self.refusals.lock();
        let id = id.to_owned();
        refusals.aside.forget([&id]);
        refusals.memory.forget([&id]);
    }

    pub(crate) fn clock(&self) -> Option<ClockOffset> {
        self.peer.clock()
    }

    async fn read(
        &self,
        ids: &[String],
        deadline: Duration,
    ) -> Result<Vec<(String, NodeReading)>, DriverFailure> {
        let request = Request::post("power_status", "/power-status")
            .json(&wire::PowerQuery { xname: ids })
            .items(ids.len())
            .answer_within(deadline);
        let answer: wire::PowerAnswer = self.peer.json(request).await.map_err(sort)?;
        let nodes = answer.status.into_iter();
        Ok(nodes.map(|node| (node.xname.clone(), node.reading())).collect())
    }

    pub(crate) async fn start(
        &self,
        action: Action,
        ids: Vec<String>,
        deadline: Duration,
        still_ours: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<String, DriverFailure> {
        let Some(operation) = wire::operation_of(action) else {
            return Err(DriverFailure::Refused(format!("'{}' is not an action on power", action.word())));
        };
        let body = wire::NewTransition {
            operation,
            task_deadline_minutes: TASK_DEADLINE.as_secs() / 60,
            location: ids.iter().map(|xname| wire::TransitionLocation { xname }).collect(),
        };
        let request = Request::post("transitions_create", "/transitions")
            .json(&body)
            .items(ids.len())
            .answer_within(deadline)
            .while_wanted(still_ours);
        match self.peer.json::<wire::CreatedTransition>(request).await {
            Ok(created) if is_id(&created.id) => Ok(created.id),
            Ok(_) => Err(DriverFailure::Ambiguous("PCS took the transition and gave it no id".to_owned())),
            Err(failure) => {
                if is_too_large(&failure) {
                    self.most_nodes.fetch_min((ids.len() / 2).max(FEWEST_NODES), Ordering::Relaxed);
                }
                Err(sort(failure))
            }
        }
    }

    pub(crate) async fn follow(
        &self,
        id: &str,
        deadline: Duration,
    ) -> Result<TransitionProgress, DriverFailure> {
        Ok(match self.transition(id, deadline).await? {
            Some(transition) => transition.progress(),
            None => TransitionProgress::forgotten(UpstreamRecord::Missing),
        })
    }

    /// Returns the transition; `None`: the service has forgotten it, and its list confirms that.
    async fn transition(
        &self,
        id: &str,
        deadline: Duration,
    ) -> Result<Option<wire::WireTransition>, DriverFailure> {
        let request = Request::get("transitions_get", format!("/transitions/{id}")).answer_within(deadline);
        match self.peer.json::<wire::WireTransition>(request).await {
            Ok(transition) if transition.id == id => Ok(Some(transition)),
            Ok(other) => {
                let other = if is_id(&other.id) { other.id } else { "another".to_owned() };
                Err(DriverFailure::Ambiguous(format!(
                    "PCS, which answered about transition {other} in place of {id}"
                )))
            }
            Err(failure) if failure.status == Some(StatusCode::NOT_FOUND) => {
                self.check_forgotten(id, failure, deadline).await.map(|()| None)
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns the record of the transition with this id; `None`: there is none. One that cannot be read is returned as it is
    /// listed, without nodes.
    pub(crate) async fn look_up(
        &self,
        id: &str,
        deadline: Duration,
    ) -> Result<Option<UpstreamTransition>, DriverFailure> {
        if !is_id(id) {
            return Ok(None);
        }
        match self.transition(id, deadline).await {
            Ok(found) => Ok(found.as_ref().map(wire::WireTransition::record)),
            Err(failure) => {
                let listed = self.list(deadline).await?.into_iter().find(|one| one.id == id);
                listed.map(|one| Some(one.record())).ok_or(failure)
            }
        }
    }

    /// Checks that the list of the service lacks a transition that the service did not find. A proxy may answer in
    /// place of the service, and a transition that is taken for forgotten releases its nodes.
    async fn check_forgotten(
        &self,
        id: &str,
        not_found: upstream::Failure,
        deadline: Duration,
    ) -> Result<(), DriverFailure> {
        let listed = self.listing.listed_from(Instant::now(), || async {
            Ok(self.list(deadline).await?.into_iter().map(|one| one.id).collect())
        });
        match listed.await?.contains(id) {
            true => Err(DriverFailure::Ambiguous(super::still_listed(&not_found.text))),
            false => Ok(()),
        }
    }

    pub(crate) async fn abort(
        &self,
        id: &str,
        deadline: Duration,
        still_ours: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<(), DriverFailure> {
        let request = Request::delete("transitions_abort", format!("/transitions/{id}"))
            .answer_within(deadline)
            .while_wanted(still_ours);
        match self.peer.call(request).await {
            Ok(_) => Ok(()),
            // The transition has ended already.
            Err(failure) if failure.status == Some(StatusCode::BAD_REQUEST) => Ok(()),
            Err(failure) if failure.status == Some(StatusCode::NOT_FOUND) => {
                self.check_forgotten(id, failure, deadline).await
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns the transitions that match. The list names no nodes, so each unknown transition that fits is read by
    /// itself, the newest first.
    pub(crate) async fn find(
        &self,
        search: &UpstreamSearch,
        deadline: Duration,
    ) -> Result<FoundTransitions, DriverFailure> {
        let mut candidates = self.list(deadline).await?;
        let clock = self.clock();
        candidates.retain(|one| {
            search.may_be(&one.record(), clock) && one.size().is_none_or(|size| search.sizes.contains(&size))
        });
        Ok(FoundTransitions { accepted: self.look_into(candidates, deadline).await?, clock })
    }

    /// Returns the transitions that have not ended and hold one of these nodes, the newest first.
    pub(crate) async fn holders(
        &self,
        ids: &HashSet<String>,
        deadline: Duration,
    ) -> Result<Vec<UpstreamTransition>, DriverFailure> {
        let mut open = self.list(deadline).await?;
        open.retain(|one| !one.is_over());
        let mut held = self.begun(open, deadline).await?;
        held.retain(|one| one.open && one.ids.iter().any(|id| ids.contains(id)));
        Ok(held)
    }

    /// Returns the transitions that have not ended, without the `known` ones.
    pub(crate) async fn open_beside(
        &self,
        known: &HashSet<String>,
        deadline: Duration,
    ) -> Result<OpenTransitions, DriverFailure> {
        let mut listed = self.list(deadline).await?;
        listed.retain(|one| !one.is_over() && !known.contains(&one.id));
        listed.sort_by_key(|one| std::cmp::Reverse(one.created_at()));
        let reads = listed.into_iter().map(|one| async move {
            let found = self.transition(&one.id, deadline).await;
            (one.id, found)
        });
        let mut reads = stream::iter(reads).buffered(READS);
        let mut open = OpenTransitions::default();
        while let Some((id, found)) = reads.next().await {
            match found {
                Ok(found) => open.read.extend(found.map(|one| one.record_of_begun()).filter(|one| one.open)),
                Err(failure) => {
                    let failure = failure.about(&id);
                    open.unread.push((id, failure));
                }
            }
        }
        Ok(open)
    }

    /// Returns the transitions without a record that have not ended, or that have since the last answer, and those that are
    /// over on record and open here; the newest first.
    /// Nodes on which a transition was not begun are left out.
    pub(crate) async fn foreign(
        &self,
        query: &ForeignQuery,
        deadline: Duration,
    ) -> Result<ForeignAnswer, DriverFailure> {
        let mut candidates = self.list(deadline).await?;
        let clock = self.clock();
        let listed = candidates.iter().map(|one| one.id.clone()).collect();
        candidates.retain(|one| query.is_unrecorded(&one.id, !one.is_over()));
        let over = candidates.iter().filter(|one| one.is_over());
        let ended = over.map(|one| one.id.clone()).collect();
        candidates.retain(|one| {
            let is_recent = |since| foreign::may_be_since(one.created_at(), one.resolution(), clock, since);
            !one.is_over() || query.wants_ended(&one.id, is_recent)
        });
        let found = self.begun(candidates, deadline).await?;
        Ok(ForeignAnswer { found, clock, listed: Arc::new(listed), ended: Arc::new(ended) })
    }

    /// Reads the `listed` transitions, each without nodes on which it was not begun.
    async fn begun(
        &self,
        listed: Vec<wire::WireTransition>,
        deadline: Duration,
    ) -> Result<Vec<UpstreamTransition>, DriverFailure> {
        let read = self.read_each(listed, deadline).await?;
        Ok(read.iter().map(wire::WireTransition::record_of_begun).collect())
    }

    async fn list(&self, deadline: Duration) -> Result<Vec<wire::WireTransition>, DriverFailure> {
        let request = Request::get("transitions_list", "/transitions").answer_within(deadline);
        let list: wire::TransitionList = self.peer.json(request).await?;
        Ok(list.transitions.into_iter().filter(|one| is_id(&one.id)).collect())
    }

    async fn look_into(
        &self,
        listed: Vec<wire::WireTransition>,
        deadline: Duration,
    ) -> Result<Vec<UpstreamTransition>, DriverFailure> {
        let read = self.read_each(listed, deadline).await?;
        Ok(read.iter().map(wire::WireTransition::record).collect())
    }

    /// Reads each of the `listed` transitions, the newest first, without those that the service has forgotten since.
    async fn read_each(
        &self,
        mut listed: Vec<wire::WireTransition>,
        deadline: Duration,
    ) -> Result<Vec<wire::WireTransition>, DriverFailure> {
        listed.sort_by_key(|one| std::cmp::Reverse(one.created_at()));
        let mut read = Vec::with_capacity(listed.len());
        for one in listed {
            let found = self.transition(&one.id, deadline).await;
            read.extend(found.map_err(|failure| failure.about(&one.id))?);
        }
        Ok(read)
    }
}

impl PowerQuestion {
    /// Requests a few nodes alone before the rest.
    fn probe(&mut self, part: Vec<String>, count: usize) {
        let (probes, rest) = refusal::split_probes(part, count, self.round);
        self.parts.extend((!rest.is_empty()).then_some(rest));
        self.parts.extend(probes.into_iter().map(|probe| vec![probe]));
    }

    fn halve(&mut self, mut part: Vec<String>) {
        let rest = part.split_off(part.len() / 2);
        self.parts.extend([rest, part]);
    }
}

/// Returns whether an id can stand in a path as it is.
fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Classifies the failure of a call with a list of nodes. A list too large for the store of the service is reported as
/// a server error and had no effect. An unknown path is no fault of the nodes.
fn sort(failure: upstream::Failure) -> DriverFailure {
    match failure.status {
        _ if is_too_large(&failure) => DriverFailure::TooLarge(failure.text),
        Some(StatusCode::NOT_FOUND) => DriverFailure::Denied(failure.text),
        _ => failure.into(),
    }
}

fn is_too_large(failure: &upstream::Failure) -> bool {
    match failure.status {
        Some(StatusCode::PAYLOAD_TOO_LARGE) => true,
        Some(StatusCode::INTERNAL_SERVER_ERROR) => failure.text.to_lowercase().contains("too large"),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
