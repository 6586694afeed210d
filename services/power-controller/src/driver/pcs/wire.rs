//! Messages to and from the power control service (BOS reference 6.3).

use std::{collections::HashSet, time::Duration};

use chrono::DateTime;
use domain::{
    boot::component::Action,
    core::{bos_time, time::Timestamp},
};
use proto::power::PowerReading;
use serde::{Deserialize, Serialize};

use crate::driver::{
    NodeReading, UpstreamTransition,
    progress::{TaskState, TransitionProgress, UpstreamRecord, UpstreamTask},
};

/// Longest text of the service that is passed on, in characters.
const LONGEST: usize = 300;

/// Meaning of the management state `unavailable`.
const UNREACHABLE: &str = "PCS cannot reach the node's BMC";

/// Errors of tasks that the service ended before it asked anything of the node, in its own words: the service gives no
/// other sign.
const NOT_BEGUN: [&str; 4] = [RESERVED, "Missing xname", "Invalid xname", "Xname not found in HSM"];

/// Beginnings of the error of a task that the service sent to the node, and whose effect it did not see in time. The
/// service gives no other sign, and truncates long texts. The errors of all other failed tasks are about the BMC.
const ASKED: [&str; 3] =
    ["Timeout waiting for transition", "Failed to confirm transition", "Aborted. Last status - Confirming"];

/// Error of a task that did not begin because another transition holds the node, or the node is locked.
const RESERVED: &str = "Unable to reserve component";

/// Body of `POST /power-status`. An empty list would request every node.
#[derive(Debug, Serialize)]
pub(super) struct PowerQuery<'a> {
    pub(super) xname: &'a [String],
}

#[derive(Debug, Deserialize)]
pub(super) struct PowerAnswer {
    pub(super) status: Vec<WireNodePower>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireNodePower {
    pub(super) xname: String,
    power_state: Option<String>,
    management_state: Option<String>,
    error: Option<String>,
    last_updated: Option<String>,
}

impl WireNodePower {
    /// Returns the reading of the entry. Only the two known words count as a state.
    pub(super) fn reading(self) -> NodeReading {
        let error = one_line(&self.error.unwrap_or_default());
        let as_of = self.last_updated.as_deref().and_then(time);
        // A reading from before the BMC fell silent is not current.
        if self.management_state.is_some_and(|state| state.eq_ignore_ascii_case("unavailable")) {
            let words = if error.is_empty() { error } else { format!(" ({error})") };
            return NodeReading { as_of, ..NodeReading::undefined(format!("{UNREACHABLE}{words}")) };
        }
        let state = self.power_state.unwrap_or_default();
        let (reading, error) = match state.to_ascii_lowercase().as_str() {
            "on" => (PowerReading::On, error),
            "off" => (PowerReading::Off, error),
            "" | "undefined" => (PowerReading::Undefined, error),
            _ if error.is_empty() => {
                (PowerReading::Undefined, format!("PCS reports the power state '{}'", one_line(&state)))
            }
            _ => (PowerReading::Undefined, error),
        };
        NodeReading { reading, error, as_of }
    }
}

/// Body of `POST /transitions`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewTransition<'a> {
    pub(super) operation: &'static str,
    pub(super) task_deadline_minutes: u64,
    pub(super) location: Vec<TransitionLocation<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct TransitionLocation<'a> {
    pub(super) xname: &'a str,
}

#[derive(Debug, Deserialize)]
pub(super) struct CreatedTransition {
    #[serde(rename = "transitionID")]
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct TransitionList {
    pub(super) transitions: Vec<WireTransition>,
}

/// Transition as listed, without tasks, or read alone with them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireTransition {
    #[serde(rename = "transitionID")]
    pub(super) id: String,
    #[serde(default)]
    operation: String,
    create_time: Option<String>,
    #[serde(default)]
    transition_status: String,
    task_counts: Option<WireTaskCounts>,
    tasks: Option<Vec<WireTask>>,
}

#[derive(Debug, Deserialize)]
struct WireTaskCounts {
    #[serde(default)]
    total: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireTask {
    xname: String,
    #[serde(default)]
    task_status: String,
    task_status_description: Option<String>,
    error: Option<String>,
}

impl WireTransition {
    /// Returns the action; `None`: an operation that we never request.
    pub(super) fn action(&self) -> Option<Action> {
        ACTIONS.into_iter().find(|action| {
            operation_of(*action).is_some_and(|operation| operation.eq_ignore_ascii_case(&self.operation))
        })
    }

    /// Returns when the transition was taken. A transition without a time may be as recent as any.
    pub(super) fn created_at(&self) -> Timestamp {
        self.create_time.as_deref().and_then(time).unwrap_or(Timestamp(i64::MAX))
    }

    /// Returns the granularity of the time at which the transition was taken. The service itself reports nanoseconds,
    /// others may report whole seconds.
    pub(super) fn resolution(&self) -> Duration {
        let is_fine = self.create_time.as_deref().is_some_and(|text| text.contains('.'));
        if is_fine { Duration::ZERO } else { Duration::from_secs(1) }
    }

    /// Returns the number of nodes; `None`: not reported, or still being worked out.
    pub(super) fn size(&self) -> Option<usize> {
        let total = self.task_counts.as_ref()?.total;
        (total > 0 && !self.is_new()).then_some(total)
    }

    /// Returns the nodes, sorted, and whether they are complete: tasks are created only after the transition was
    /// accepted.
    pub(super) fn nodes(&self) -> (Vec<String>, bool) {
        let mut ids: Vec<_> = self.tasks.iter().flatten().map(|task| task.xname.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        let complete = self.is_over() || (!self.is_new() && !ids.is_empty());
        (ids, complete)
    }

    /// Returns the progress of the transition. It holds its nodes until all of it is over, whatever their tasks say.
    pub(super) fn progress(self) -> TransitionProgress {
        let (ended, record) = (self.is_over(), UpstreamRecord::Found(self.record()));
        let tasks = self.tasks.into_iter().flatten().map(WireTask::task);
        TransitionProgress { tasks: tasks.collect(), ended, record }
    }

    /// Returns the nodes, the action and the time of the transition.
    pub(super) fn record(&self) -> UpstreamTransition {
        let (ids, complete) = self.nodes();
        UpstreamTransition {
            id: self.id.clone(),
            action: self.action(),
            ids,
            complete,
            at: self.created_at(),
            resolution: self.resolution(),
            open: !self.is_over(),
        }
    }

    /// Returns [`Self::record`] without the nodes on which the transition is not begun: it does not hold them, and has no
    /// effect on them.
    pub(super) fn record_of_begun(&self) -> UpstreamTransition {
        let mut record = self.record();
        let refused: HashSet<_> = self
            .tasks
            .iter()
            .flatten()
            .filter(|task| task.is_refused())
            .map(|task| task.xname.as_str())
            .collect();
        record.ids.retain(|id| !refused.contains(id.as_str()));
        record
    }

    fn is_new(&self) -> bool {
        self.transition_status.eq_ignore_ascii_case("new")
    }

    pub(super) fn is_over(&self) -> bool {
        ["completed", "aborted"].iter().any(|word| word.eq_ignore_ascii_case(&self.transition_status))
    }
}

impl WireTask {
    fn task(self) -> UpstreamTask {
        let state = self.state();
        UpstreamTask { id: self.xname, state }
    }

    fn state(&self) -> TaskState {
        match self.task_status.to_ascii_lowercase().as_str() {
            "succeeded" => TaskState::Succeeded,
            "failed" if self.error.as_deref().is_some_and(|error| NOT_BEGUN.contains(&error)) => {
                let reserved = self.error.as_deref() == Some(RESERVED);
                TaskState::Refused { words: self.words(), reserved }
            }
            "failed" if self.was_asked() => TaskState::TimedOut(self.words()),
            "failed" => TaskState::Failed(self.words()),
            "unsupported" | "un-supported" => TaskState::Refused { words: self.words(), reserved: false },
            "in-progress" => TaskState::Begun,
            _ => TaskState::Pending,
        }
    }

    /// Returns whether the service did not begin the task.
    fn is_refused(&self) -> bool {
        matches!(self.state(), TaskState::Refused { .. })
    }

    /// Returns whether the node was asked before the task failed.
    fn was_asked(&self) -> bool {
        let texts = [&self.error, &self.task_status_description];
        texts.into_iter().flatten().any(|text| ASKED.iter().any(|begin| text.starts_with(begin)))
    }

    /// Returns the reason of the failure.
    fn words(&self) -> String {
        let text = |text: &Option<String>| one_line(text.as_deref().unwrap_or_default());
        match (text(&self.error).as_str(), text(&self.task_status_description).as_str()) {
            ("", "") => format!("PCS reports the task as {}", self.task_status),
            (error, "") => format!("PCS: {error}"),
            ("", description) => format!("PCS: {description}"),
            (error, description) => format!("PCS: {error} ({description})"),
        }
    }
}

const ACTIONS: [Action; 3] =
    [Action::PoweringOn, Action::PoweringOffGracefully, Action::PoweringOffForcefully];

/// Returns the service's word for the action; `None` if the action has nothing to do with power.
pub(super) fn operation_of(action: Action) -> Option<&'static str> {
    match action {
        Action::PoweringOn => Some("On"),
        Action::PoweringOffGracefully => Some("Soft-Off"),
        Action::PoweringOffForcefully => Some("Force-Off"),
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            None
        }
    }
}

/// Parses a time in RFC 3339; a time without a zone is in UTC.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    let zoned = DateTime::parse_from_rfc3339(text).map(|time| Timestamp(time.timestamp_millis()));
    zoned.ok().or_else(|| bos_time::read(text))
}

/// Returns the text in a form for records: one line of bounded length, without control characters.
fn one_line(text: &str) -> String {
    let printable = text.replace(char::is_control, " ");
    printable.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST).collect()
}
