//! Gathers answers to polls that arrive at the same time: one message about all nodes that are ready leads to one round
//! of reports and commits, with as few calls as possible.

use std::{mem, time::Duration};

use tokio::time::Instant;

use crate::engine::PollAnswer;

/// Least time for which the answer to one poll waits for answers to others.
const MOMENT: Duration = Duration::from_millis(20);

/// Answers that are not processed yet.
#[derive(Default)]
pub(super) struct PollAnswers {
    answers: Vec<PollAnswer>,
    /// Time until which they wait for more.
    until: Option<Instant>,
}

impl PollAnswers {
    /// Adds an answer, which waits no longer than `patience`.
    pub(super) fn add(&mut self, answer: PollAnswer, patience: Duration) {
        // The other transitions have the same action, and so take about as long.
        let elapsed = Instant::now().saturating_duration_since(answer.began.into());
        let patience = (elapsed * 2).min(patience).max(MOMENT);
        self.until.get_or_insert_with(|| Instant::now() + patience);
        self.answers.push(answer);
    }

    /// Returns when to process the answers; `None` while there are none. `is_last`: no other poll is under way.
    pub(super) fn due(&self, is_last: bool) -> Option<Instant> {
        self.until.map(|until| if is_last { Instant::now() } else { until })
    }

    pub(super) fn take(&mut self) -> Vec<PollAnswer> {
        self.until = None;
        mem::take(&mut self.answers)
    }
}
