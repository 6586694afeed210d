//! The contract of a watch as rules over a recorded history. No IO here.
//!
//! All observations of watchers and lists are merged into one *truth*: revision by revision, the changed component and
//! its new state. Then every watcher is replayed against the truth, with a copy of the components as a client would
//! keep it.
//!
//! A slow watcher may get the newest state of a component rather than every step. So at a bookmark its copy may lack a
//! change only if a newer change of the same component, one beyond the bookmark, may already have been committed when
//! the bookmark arrived; the newer change is then due at the bookmark that covers it.

mod streams;
#[cfg(test)]
mod tests;
mod truth;

use std::fmt;

use crate::history::RunHistory;

/// A rule of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchRule {
    /// No change arrives twice on one stream, or at all once a bookmark covers it.
    NoDuplicate,
    /// Revisions only grow: within a list of a batch, from batch to batch, and over everything that one watcher does.
    NoTimeTravel,
    /// A batch holds nothing beyond its own bookmark: a client that resumes there would get it twice.
    WithinBookmark,
    /// At a bookmark the copy of a watcher has every change up to it, or a newer one of the same component. The
    /// bookmark of a list is the revision that it names.
    NoGap,
    /// A revision is one change: all watchers see the same.
    OneTruth,
    /// Every delivered state was written, by a write that had begun and was not refused.
    Written,
    /// A write is committed at a later revision than any that was known when it began, and at the revision in its
    /// answer or an earlier one.
    InOrder,
    /// The effect of an acknowledged write is delivered, unless an overlapping or later write overwrote it.
    Seen,
    /// A change keeps the lanes that it does not set: no value returns after an acknowledged write has overwritten it.
    NothingLost,
    /// A watch or list that begins after a write was acknowledged shows it or something newer.
    Fresh,
    /// After a deletion was acknowledged, no watcher that catches up has the component: forgotten deletions are never
    /// skipped in silence.
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
pub struct RuleViolation {
    pub rule: WatchRule,
    /// Watcher or write that met the violation.
    pub who: String,
    pub what: String,
}

impl fmt::Display for RuleViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}: {}", self.rule, self.who, self.what)
    }
}

/// Limits of the registries under test.
#[derive(Debug, Clone, Copy)]
pub struct WatchContract {
    /// Deletions that they remember at least.
    pub remembered: usize,
}

/// Returns every rule that `history` breaks.
pub fn check(history: &RunHistory, contract: WatchContract) -> Vec<RuleViolation> {
    let (truth, mut findings) = truth::ObservedTruth::of(history);
    findings.extend(truth.judge());
    for (name, entries) in &history.watchers {
        findings.extend(streams::replay(&truth, contract, name, entries));
    }
    findings
}
