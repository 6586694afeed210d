//! The contract of a watch as rules over a recorded history. Nothing here talks to anybody.
//!
//! All that watchers and lists ever showed is put together to one *truth*: revision by revision, which component was
//! changed and how. Then every watcher is replayed against it, with a copy of the components as a client would keep it.
//!
//! A watcher that is behind may be told the newest state of a component rather than every step. So at a bookmark its
//! copy may lack a change only if a newer change of the same component, one beyond the bookmark, may already have been
//! committed when the bookmark arrived; and that one is then due at the bookmark that covers it.

mod streams;
#[cfg(test)]
mod tests;
mod truth;

use std::fmt;

use crate::history::History;

/// A rule of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Nothing is told twice on one stream, and no more at all once a bookmark covers it.
    NoDuplicate,
    /// Revisions only grow: within a list of a batch, from batch to batch, and over everything that one watcher does.
    NoTimeTravel,
    /// A batch tells nothing beyond its own bookmark: who resumes there would be told again.
    WithinBookmark,
    /// At a bookmark the copy of a watcher has every change up to it, or a newer one of the same component. The
    /// bookmark of a list is the revision that it names.
    NoGap,
    /// A revision is one change: all who see it see the same.
    OneTruth,
    /// What is told was written, by a write that had begun and was not refused.
    Written,
    /// A write is committed at a later revision than any that was known when it began, and at none later than the one
    /// that its answer names.
    InOrder,
    /// What an acknowledged write did is seen, unless a write that did not end before it began overwrote it.
    Seen,
    /// A change leaves alone what it does not name: it does not bring back what an acknowledged write had overwritten.
    NothingLost,
    /// A watch or list that begins after a write was acknowledged shows it or something newer.
    Fresh,
    /// After a deletion was acknowledged, who catches up no longer has the component: deletions that are not
    /// remembered are never skipped in silence.
    Gone,
    /// A revision is refused only if it was never reached, or so many deletions ago that they need not be remembered.
    Remembered,
    /// The end of the initial set is marked once in a stream.
    SyncedOnce,
    /// A watch ends for a known reason only.
    EndsInOrder,
    /// Once writers are quiet, every watcher reaches the last revision.
    Arrives,
}

/// A rule that was broken.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub rule: Rule,
    /// Who met it: a watcher, or a write.
    pub who: String,
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}: {}", self.rule, self.who, self.what)
    }
}

/// What may be asked of the registries in question.
#[derive(Debug, Clone, Copy)]
pub struct Contract {
    /// Deletions that they remember at least.
    pub remembered: usize,
}

/// Every rule that `history` breaks.
pub fn check(history: &History, contract: Contract) -> Vec<Finding> {
    let (truth, mut findings) = truth::Truth::of(history);
    findings.extend(truth.judge());
    for (name, entries) in &history.watchers {
        findings.extend(streams::replay(&truth, contract, name, entries));
    }
    findings
}
