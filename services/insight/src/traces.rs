//! Histories of nodes, which other services keep.

use std::collections::HashMap;

use domain::boot::explanation::{BatchSight, HistoryEvent, HolderSight, ScriptEvidence, TransitionResult};
use futures_util::future::join_all;
use tonic::Status;

use crate::peers::InsightPeers;

/// Names of the services in answers.
const REGISTRY: &str = "component registry";
const POWER: &str = "power controller";
const COORDINATOR: &str = "config coordinator";

/// Histories of one node.
pub(crate) struct NodeTraces {
    /// Events, the oldest first; `None`: not read.
    pub(crate) history: Option<Vec<HistoryEvent>>,
    /// Power transitions; `None`: not read.
    pub(crate) transitions: Option<Vec<TransitionResult>>,
    /// Transition that holds the node at the power service; `None`: none does, or it was not read.
    pub(crate) holder: Option<HolderSight>,
    /// Requests for the boot script.
    pub(crate) script: ScriptEvidence,
    /// Batch that the node waits for; `None`: it waits for none, or it was not read.
    pub(crate) batch: Option<BatchSight>,
}

impl NodeTraces {
    /// Histories that nobody asked for.
    pub(crate) const UNREAD: Self =
        Self { history: None, transitions: None, holder: None, script: ScriptEvidence::Unknown, batch: None };

    /// Reads the histories of nodes, and notes the services that do not answer.
    pub(crate) async fn read(
        peers: &InsightPeers,
        ids: &[String],
        unanswered: &mut UnansweredParts,
    ) -> HashMap<String, Self> {
        if ids.is_empty() {
            return HashMap::new();
        }
        let (events, transitions, scripts) = tokio::join!(
            peers.history(ids.to_vec()),
            join_all(ids.iter().map(|id| peers.transitions(id))),
            peers.scripts(ids.to_vec())
        );
        let mut events = unanswered.note(REGISTRY, events).map(by_component);
        let mut scripts = unanswered.note(COORDINATOR, scripts).unwrap_or_default().into_iter();
        let mut traces = HashMap::with_capacity(ids.len());
        for (id, transitions) in ids.iter().zip(transitions) {
            let history = events.as_mut().map(|events| events.remove(id).unwrap_or_default());
            let transitions = unanswered.note(POWER, transitions);
            let script = scripts.next().unwrap_or(ScriptEvidence::Unknown);
            traces.insert(id.clone(), Self { history, transitions, script, ..Self::UNREAD });
        }
        traces
    }
}

fn by_component(events: Vec<(String, HistoryEvent)>) -> HashMap<String, Vec<HistoryEvent>> {
    let mut histories: HashMap<String, Vec<HistoryEvent>> = HashMap::new();
    for (id, event) in events {
        histories.entry(id).or_default().push(event);
    }
    histories
}

/// Services that did not answer, each once.
#[derive(Default)]
pub(crate) struct UnansweredParts(pub(crate) Vec<String>);

impl UnansweredParts {
    /// Returns the answer of the service `part`, or notes that there is none.
    pub(crate) fn note<T>(&mut self, part: &str, answer: Result<T, Status>) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(status) => {
                tracing::info!(part, %status, "evidence not read");
                if !self.0.iter().any(|known| known == part) {
                    self.0.push(part.to_owned());
                }
                None
            }
        }
    }
}
