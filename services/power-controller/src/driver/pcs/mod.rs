//! The power control service (BOS reference 6.3).
//!
//! It takes a transition before it has looked at hardware or locks; what becomes of each node is in the tasks of
//! the transition. It reads hardware now and then and answers questions about power from what it read last.

mod wire;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chassis::settings;
use domain::{component::Action, power::TASK_DEADLINE};
use http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;
use upstream::{Peer, Request};

use super::{Accepted, Failure, Reading, Search};
use crate::progress::Progress;

/// How long a node is not asked for again that the service does not take for one. Such a node costs the
/// questions that find it among thousands, and comes from an inventory that people have to mend.
const REFUSED_FOR: Duration = Duration::from_secs(300);

/// Most nodes in a transition to which the service can bring us down. One that does not take so few has another
/// trouble than their number.
const FEWEST_NODES: usize = 100;

/// The power control service at one address. Clones share what they learn about it.
#[derive(Clone)]
pub(crate) struct Pcs {
    peer: Peer,
    /// Most nodes in one transition, as far as is known.
    most_nodes: Arc<AtomicUsize>,
    /// Nodes that were refused by themselves, since when, and why.
    refused: Arc<Mutex<HashMap<String, (Instant, String)>>>,
}

impl Pcs {
    /// Drives the service that the settings name.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(settings: &settings::Peer) -> anyhow::Result<Self> {
        let peer = Peer::new("PCS", settings).map_err(|error| anyhow::anyhow!("power.pcs.{error}"))?;
        peer.check_credentials("power.pcs");
        let most_nodes = Arc::new(AtomicUsize::new(peer.batch_size()));
        Ok(Self { peer, most_nodes, refused: Arc::default() })
    }

    pub(crate) fn most_nodes(&self) -> usize {
        self.most_nodes.load(Ordering::Relaxed)
    }

    /// The service refuses all nodes together if it does not take one of them for a node (BUG-30), so they are
    /// asked for in ever smaller parts until the one is alone. It has no state, and says why.
    pub(crate) async fn power(
        &self,
        ids: Vec<String>,
        deadline: Duration,
    ) -> Result<Vec<(String, Reading)>, Failure> {
        let (ids, mut readings) = self.set_aside(ids);
        let mut parts = vec![ids];
        while let Some(mut part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            match self.read(&part, deadline).await {
                Ok(found) => readings.extend(found),
                Err(Failure::Refused(text)) if part.len() == 1 => {
                    let id = part.remove(0);
                    self.refused.lock().insert(id.clone(), (Instant::now(), text.clone()));
                    readings.push((id, Reading::undefined(text)));
                }
                Err(Failure::Refused(_)) => {
                    let rest = part.split_off(part.len() / 2);
                    parts.extend([rest, part]);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(readings)
    }

    /// Separates nodes that were refused not long ago, and what was said of them.
    fn set_aside(&self, ids: Vec<String>) -> (Vec<String>, Vec<(String, Reading)>) {
        let mut refused = self.refused.lock();
        refused.retain(|_, (since, _)| since.elapsed() < REFUSED_FOR);
        let (mut asked, mut known) = (Vec::with_capacity(ids.len()), Vec::new());
        for id in ids {
            match refused.get(&id) {
                Some((_, text)) => known.push((id, Reading::undefined(text.clone()))),
                None => asked.push(id),
            }
        }
        (asked, known)
    }

    async fn read(&self, ids: &[String], deadline: Duration) -> Result<Vec<(String, Reading)>, Failure> {
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
    ) -> Result<String, Failure> {
        let Some(operation) = wire::operation_of(action) else {
            return Err(Failure::Refused(format!("'{}' is not an action on power", action.word())));
        };
        let body = wire::NewTransition {
            operation,
            task_deadline_minutes: TASK_DEADLINE.as_secs() / 60,
            location: ids.iter().map(|xname| wire::Location { xname }).collect(),
        };
        let request = Request::post("transitions_create", "/transitions")
            .json(&body)
            .items(ids.len())
            .answer_within(deadline)
            .while_wanted(still_ours);
        match self.peer.json::<wire::Created>(request).await {
            Ok(created) if is_id(&created.id) => Ok(created.id),
            Ok(_) => Err(Failure::Ambiguous("PCS took the transition and gave it no id".to_owned())),
            Err(failure) => {
                if is_too_large(&failure) {
                    self.most_nodes.fetch_min((ids.len() / 2).max(FEWEST_NODES), Ordering::Relaxed);
                }
                Err(sort(failure))
            }
        }
    }

    pub(crate) async fn follow(&self, id: &str, deadline: Duration) -> Result<Progress, Failure> {
        Ok(self.transition(id, deadline).await?.map_or_else(super::forgotten, wire::Transition::progress))
    }

    /// None: the service does not know it any more.
    async fn transition(&self, id: &str, deadline: Duration) -> Result<Option<wire::Transition>, Failure> {
        let request = Request::get("transitions_get", format!("/transitions/{id}")).answer_within(deadline);
        match self.peer.json(request).await {
            Ok(transition) => Ok(Some(transition)),
            Err(failure) if failure.status == Some(StatusCode::NOT_FOUND) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    pub(crate) async fn abort(
        &self,
        id: &str,
        deadline: Duration,
        still_ours: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<(), Failure> {
        let request = Request::delete("transitions_abort", format!("/transitions/{id}"))
            .answer_within(deadline)
            .while_wanted(still_ours);
        match self.peer.call(request).await {
            Ok(_) => Ok(()),
            // It has ended already, or is forgotten.
            Err(failure)
                if matches!(failure.status, Some(StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND)) =>
            {
                Ok(())
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// The list names no nodes, so each transition that fits and is not known is asked for by itself, the newest first.
    pub(crate) async fn find(&self, search: &Search, deadline: Duration) -> Result<Vec<Accepted>, Failure> {
        let request = Request::get("transitions_list", "/transitions").answer_within(deadline);
        let list: wire::TransitionList = self.peer.json(request).await?;
        let mut candidates = list.transitions;
        candidates.retain(|one| {
            is_id(&one.id)
                && search.may_be(&one.id, one.action(), one.created_at())
                && (search.known.contains(&one.id)
                    || one.size().is_none_or(|size| search.sizes.contains(&size)))
        });
        candidates.sort_by_key(|one| std::cmp::Reverse(one.created_at()));
        let mut found = Vec::new();
        for listed in candidates {
            if search.known.contains(&listed.id) {
                let (action, at) = (listed.action(), listed.created_at());
                found.push(Accepted { id: listed.id, action, ids: Vec::new(), complete: false, at });
                continue;
            }
            let Some(transition) = self.transition(&listed.id, deadline).await? else { continue };
            let (ids, complete) = transition.nodes();
            found.push(Accepted {
                action: listed.action(),
                at: listed.created_at(),
                id: listed.id,
                ids,
                complete,
            });
        }
        Ok(found)
    }
}

/// Whether an id can stand in a path as it is.
fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Sorts a refused list of nodes. What is too large in its store comes as an error of the server, and had no
/// effect. A path that it does not know is no fault of the nodes.
fn sort(failure: upstream::Failure) -> Failure {
    match failure.status {
        _ if is_too_large(&failure) => Failure::Refused(failure.text),
        Some(StatusCode::NOT_FOUND) => Failure::Denied(failure.text),
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
