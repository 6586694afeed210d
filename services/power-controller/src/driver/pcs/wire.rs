//! What goes to the power control service and comes back (BOS reference 6.3).

use std::time::Duration;

use chrono::DateTime;
use domain::{
    boot::component::Action,
    core::{bos_time, time::Timestamp},
};
use proto::power::PowerReading;
use serde::{Deserialize, Serialize};

use crate::{
    driver::{Accepted, Reading},
    progress::{Progress, Task, TaskState},
};

/// Longest text of the service that is passed on, in characters.
const LONGEST: usize = 300;

/// Meaning of the management state `unavailable`.
const UNREACHABLE: &str = "PCS cannot reach the node's BMC";

/// Errors of tasks that the service ended before it asked anything of the node, in its own words: it has no other sign.
const NOT_BEGUN: [&str; 4] = [RESERVED, "Missing xname", "Invalid xname", "Xname not found in HSM"];

/// How the words begin of a task that the service sent to the node, and of which it did not see the effect in time. It has
/// no other sign, and cuts long words at their end. Those of every other task that failed tell of the BMC.
const ASKED: [&str; 3] =
    ["Timeout waiting for transition", "Failed to confirm transition", "Aborted. Last status - Confirming"];

/// Error of a task that did not begin because another transition holds the node, or the node is locked.
const RESERVED: &str = "Unable to reserve component";

/// Body of `POST /power-status`. An empty list would ask for everything.
#[derive(Debug, Serialize)]
pub(super) struct PowerQuery<'a> {
    pub(super) xname: &'a [String],
}

#[derive(Debug, Deserialize)]
pub(super) struct PowerAnswer {
    pub(super) status: Vec<NodePower>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodePower {
    pub(super) xname: String,
    power_state: Option<String>,
    management_state: Option<String>,
    error: Option<String>,
    last_updated: Option<String>,
}

impl NodePower {
    /// What the entry says. Only the two words that are known count as a state.
    pub(super) fn reading(self) -> Reading {
        let error = one_line(&self.error.unwrap_or_default());
        let as_of = self.last_updated.as_deref().and_then(time);
        // What was read before the BMC fell silent is no reading of now.
        if self.management_state.is_some_and(|state| state.eq_ignore_ascii_case("unavailable")) {
            let words = if error.is_empty() { error } else { format!(" ({error})") };
            return Reading { as_of, ..Reading::undefined(format!("{UNREACHABLE}{words}")) };
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
        Reading { reading, error, as_of }
    }
}

/// Body of `POST /transitions`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewTransition<'a> {
    pub(super) operation: &'static str,
    pub(super) task_deadline_minutes: u64,
    pub(super) location: Vec<Location<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Location<'a> {
    pub(super) xname: &'a str,
}

#[derive(Debug, Deserialize)]
pub(super) struct Created {
    #[serde(rename = "transitionID")]
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct TransitionList {
    pub(super) transitions: Vec<Transition>,
}

/// A transition as it is listed, without tasks, or by itself with them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Transition {
    #[serde(rename = "transitionID")]
    pub(super) id: String,
    #[serde(default)]
    operation: String,
    create_time: Option<String>,
    #[serde(default)]
    transition_status: String,
    task_counts: Option<TaskCounts>,
    tasks: Option<Vec<WireTask>>,
}

#[derive(Debug, Deserialize)]
struct TaskCounts {
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

impl Transition {
    /// None: an operation that we never ask for.
    pub(super) fn action(&self) -> Option<Action> {
        ACTIONS.into_iter().find(|action| {
            operation_of(*action).is_some_and(|operation| operation.eq_ignore_ascii_case(&self.operation))
        })
    }

    /// When it was taken. Without a time of its own it may be as recent as any.
    pub(super) fn created_at(&self) -> Timestamp {
        self.create_time.as_deref().and_then(time).unwrap_or(Timestamp(i64::MAX))
    }

    /// What the time when it was taken is cut to. The service itself tells nanoseconds, others may tell whole seconds.
    fn resolution(&self) -> Duration {
        let is_fine = self.create_time.as_deref().is_some_and(|text| text.contains('.'));
        if is_fine { Duration::ZERO } else { Duration::from_secs(1) }
    }

    /// How many nodes it has; none: not told, or still being worked out.
    pub(super) fn size(&self) -> Option<usize> {
        let total = self.task_counts.as_ref()?.total;
        (total > 0 && !self.is_new()).then_some(total)
    }

    /// Its nodes, sorted, and whether those are all: its tasks are made only after it was accepted.
    pub(super) fn nodes(&self) -> (Vec<String>, bool) {
        let mut ids: Vec<_> = self.tasks.iter().flatten().map(|task| task.xname.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        let complete = self.is_over() || (!self.is_new() && !ids.is_empty());
        (ids, complete)
    }

    /// How it goes. It holds the nodes until all of it is over, whatever their tasks say.
    pub(super) fn progress(self) -> Progress {
        let (ended, record) = (self.is_over(), Some(self.record()));
        let tasks = self.tasks.into_iter().flatten().map(WireTask::task);
        Progress { tasks: tasks.collect(), ended, record }
    }

    /// The nodes and the action that the transition was asked for, and when.
    pub(super) fn record(&self) -> Accepted {
        let (ids, complete) = self.nodes();
        Accepted {
            id: self.id.clone(),
            action: self.action(),
            ids,
            complete,
            at: self.created_at(),
            resolution: self.resolution(),
            open: !self.is_over(),
        }
    }

    fn is_new(&self) -> bool {
        self.transition_status.eq_ignore_ascii_case("new")
    }

    pub(super) fn is_over(&self) -> bool {
        ["completed", "aborted"].iter().any(|word| word.eq_ignore_ascii_case(&self.transition_status))
    }
}

impl WireTask {
    fn task(self) -> Task {
        let state = match self.task_status.to_ascii_lowercase().as_str() {
            "succeeded" => TaskState::Succeeded,
            "failed" if self.error.as_deref().is_some_and(|error| NOT_BEGUN.contains(&error)) => {
                let reserved = self.error.as_deref() == Some(RESERVED);
                TaskState::Refused { words: self.words(), reserved }
            }
            "failed" if self.was_asked() => TaskState::TimedOut(self.words()),
            "failed" => TaskState::Failed(self.words()),
            "unsupported" | "un-supported" => TaskState::Refused { words: self.words(), reserved: false },
            _ => TaskState::Pending,
        };
        Task { id: self.xname, state }
    }

    /// Whether the node was asked before the task failed.
    fn was_asked(&self) -> bool {
        let texts = [&self.error, &self.task_status_description];
        texts.into_iter().flatten().any(|text| ASKED.iter().any(|begin| text.starts_with(begin)))
    }

    /// Why it failed.
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

/// What the service calls the action; none if it has nothing to do with power.
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

/// A time in RFC 3339; one without a zone is in UTC.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    let zoned = DateTime::parse_from_rfc3339(text).map(|time| Timestamp(time.timestamp_millis()));
    zoned.ok().or_else(|| bos_time::read(text))
}

/// Fit for a record: one line of bounded length, without control characters.
fn one_line(text: &str) -> String {
    let printable = text.replace(char::is_control, " ");
    printable.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST).collect()
}
