//! A transition: its operation, its nodes, and the progress of each.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde::Serialize;
use simulator::node::PowerCommand;

/// Operation of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PowerOperation {
    On,
    /// Gracefully, and by force when that did not work in time.
    Off,
    SoftOff,
    ForceOff,
    SoftRestart,
    HardRestart,
    /// A restart that also turns on nodes that are off.
    Init,
}

/// A stage of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandTier {
    Shutdown,
    Force,
    On,
}

impl PowerOperation {
    const ALL: [Self; 7] = [
        Self::On,
        Self::Off,
        Self::SoftOff,
        Self::ForceOff,
        Self::SoftRestart,
        Self::HardRestart,
        Self::Init,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::On => "On",
            Self::Off => "Off",
            Self::SoftOff => "Soft-Off",
            Self::ForceOff => "Force-Off",
            Self::SoftRestart => "Soft-Restart",
            Self::HardRestart => "Hard-Restart",
            Self::Init => "Init",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.word().eq_ignore_ascii_case(word))
    }

    pub(super) fn tiers(self) -> &'static [CommandTier] {
        match self {
            Self::On => &[CommandTier::On],
            Self::SoftOff => &[CommandTier::Shutdown],
            Self::ForceOff => &[CommandTier::Force],
            Self::Off => &[CommandTier::Shutdown, CommandTier::Force],
            Self::SoftRestart | Self::HardRestart | Self::Init => {
                &[CommandTier::Shutdown, CommandTier::Force, CommandTier::On]
            }
        }
    }

    /// Returns whether nodes are on in the end.
    pub(super) fn ends_on(self) -> bool {
        self.tiers().ends_with(&[CommandTier::On])
    }

    /// Returns whether a node that is on already is in the wanted state, or one that is off.
    pub(super) fn is_done(self, on: bool) -> bool {
        match self {
            Self::On => on,
            Self::Off | Self::SoftOff | Self::ForceOff => !on,
            Self::SoftRestart | Self::HardRestart | Self::Init => false,
        }
    }

    /// Returns whether the operation needs a node that is on.
    pub(super) fn needs_on(self) -> bool {
        matches!(self, Self::SoftRestart | Self::HardRestart)
    }
}

impl CommandTier {
    /// The service's word for the operation of the tier.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Shutdown => "gracefulshutdown",
            Self::Force => "forceoff",
            Self::On => "on",
        }
    }

    pub(super) fn command(self) -> PowerCommand {
        match self {
            Self::Shutdown => PowerCommand::SoftOff,
            Self::Force => PowerCommand::ForceOff,
            Self::On => PowerCommand::On,
        }
    }

    /// Returns whether nodes are on after its success.
    pub(super) fn ends_on(self) -> bool {
        self == Self::On
    }
}

/// Deadline of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskDeadline {
    /// No result is awaited: a sent command counts as done.
    NotAwaited,
    After(Duration),
    Never,
}

/// Progress of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransitionStatus {
    New,
    InProgress,
    Completed,
    AbortSignaled,
    Aborted,
}

impl TransitionStatus {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::InProgress => "in-progress",
            Self::Completed => "completed",
            Self::AbortSignaled => "abort-signaled",
            Self::Aborted => "aborted",
        }
    }

    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Aborted)
    }
}

/// Progress of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TaskStatus {
    New,
    InProgress,
    Failed,
    Succeeded,
    Unsupported,
}

impl TaskStatus {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::InProgress => "in-progress",
            Self::Failed => "failed",
            Self::Succeeded => "succeeded",
            Self::Unsupported => "unsupported",
        }
    }

    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::New | Self::InProgress)
    }
}

/// The part of a transition that concerns one node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeTask {
    pub(super) xname: Arc<str>,
    pub(super) task_status: TaskStatus,
    pub(super) task_status_description: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) error: Arc<str>,
    #[serde(skip)]
    pub(super) position: Option<usize>,
    /// The command of the present tier was sent and its effect was not seen.
    #[serde(skip)]
    pub(super) waiting: bool,
    /// An earlier tier had no effect in time.
    #[serde(skip)]
    pub(super) overdue: bool,
    /// Some command was sent for it, by this worker or an earlier one.
    #[serde(skip)]
    pub(super) sent: bool,
    /// The transition reserved the node, which may have lapsed since.
    #[serde(skip)]
    pub(super) reserved: bool,
}

/// Number of tasks by progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct TaskCounts {
    total: usize,
    new: usize,
    in_progress: usize,
    failed: usize,
    succeeded: usize,
    un_supported: usize,
}

/// A transition and its tasks.
#[derive(Debug)]
pub(super) struct PowerTransition {
    pub(super) id: Arc<str>,
    pub(super) operation: PowerOperation,
    pub(super) deadline: TaskDeadline,
    pub(super) created: Duration,
    pub(super) status: TransitionStatus,
    pub(super) tasks: Vec<NodeTask>,
    /// Place of the task of the node at a position.
    pub(super) places: HashMap<usize, usize>,
    /// Which of the operation's tiers is under way.
    pub(super) tier: usize,
    /// Time until which this tier must have its effect.
    pub(super) overdue_at: Option<Duration>,
    /// Time at which its worker died; `None`: the worker is alive.
    pub(super) worker_died: Option<Duration>,
}

impl PowerTransition {
    /// Returns whether the worker died before the transition ended.
    pub(super) fn is_left(&self) -> bool {
        self.worker_died.is_some() && !self.status.is_over()
    }

    /// Cuts the texts of all tasks to so many letters.
    pub(super) fn cut_texts(&mut self, letters: usize) {
        for task in &mut self.tasks {
            task.task_status_description = cut(&task.task_status_description, letters);
            task.error = cut(&task.error, letters).into();
        }
    }

    pub(super) fn counts(&self) -> TaskCounts {
        let mut counts = TaskCounts { total: self.tasks.len(), ..TaskCounts::default() };
        for task in &self.tasks {
            *match task.task_status {
                TaskStatus::New => &mut counts.new,
                TaskStatus::InProgress => &mut counts.in_progress,
                TaskStatus::Failed => &mut counts.failed,
                TaskStatus::Succeeded => &mut counts.succeeded,
                TaskStatus::Unsupported => &mut counts.un_supported,
            } += 1;
        }
        counts
    }
}

fn cut(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
