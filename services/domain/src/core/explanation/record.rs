//! Explanation of a subject whose record tells everything.

use std::sync::Arc;

use super::{
    CauseClass, CauseOutcome, EvidenceItem, NextStep, fill, is_plain, seen_text, shown, since_text,
    words_text,
};
use crate::core::time::Timestamp;

/// Explanation of one record by causes of the reasons `R` and evidence of the sources `S`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordExplanation<R, S> {
    /// Namespace of the record; empty: it has none.
    pub namespace: Arc<str>,
    /// Name of the record.
    pub name: Arc<str>,
    /// First cause to act on.
    pub head: RecordCause<R>,
    /// Further causes.
    pub others: Vec<RecordCause<R>>,
    /// Evidence that was examined.
    pub evidence: Vec<EvidenceItem<S>>,
}

impl<R: RecordReason, S> RecordExplanation<R, S> {
    /// Returns the outcome so far, which the first cause decides.
    pub fn outcome(&self) -> CauseOutcome {
        self.head.reason.row().outcome
    }

    /// Returns the single next step, that of the first cause.
    pub fn next_step(&self) -> NextStep {
        self.head.next_step(&self.namespace, &self.name)
    }

    /// Returns the causes, the first to act on in front.
    pub fn causes(&self) -> impl Iterator<Item = &RecordCause<R>> {
        std::iter::once(&self.head).chain(&self.others)
    }

    /// Returns the name with its namespace, such as `metal3/h1`.
    pub fn subject(&self) -> String {
        if self.namespace.is_empty() {
            self.name.to_string()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    /// Returns one sentence about a cause of this explanation.
    pub fn sentence(&self, cause: &RecordCause<R>) -> String {
        fill(cause.reason.row().sentence, &cause.values(&self.namespace, &self.name)) + "."
    }

    /// Returns the row of a test: outcome, causes, first sentence and next step.
    #[cfg(test)]
    pub(crate) fn test_row(&self) -> String {
        let causes: Vec<_> = self.causes().map(|cause| cause.reason.row().word).collect();
        let NextStep { text, command } = self.next_step();
        let (outcome, causes) = (self.outcome().word(), causes.join(" < "));
        format!("{outcome}: {causes}\n    {}\n    {text} | {command}\n", self.sentence(&self.head))
    }
}

/// Cause with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordCause<R> {
    /// Reason, by which programs decide.
    pub reason: R,
    /// Time at which it became true; `None`: unknown.
    pub since: Option<Timestamp>,
    /// Time at which it ends or is tried again; `None`: unknown, or only a change ends it.
    pub until: Option<Timestamp>,
    /// Words of the peer, or of the rule that found the cause; empty: none.
    pub words: Arc<str>,
}

impl<R: RecordReason> RecordCause<R> {
    /// Creates a cause without values.
    pub(crate) fn new(reason: R) -> Self {
        Self { reason, since: None, until: None, words: Arc::default() }
    }

    pub(crate) fn since(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }

    pub(crate) fn until(self, until: Option<Timestamp>) -> Self {
        Self { until, ..self }
    }

    pub(crate) fn saying(self, words: impl Into<Arc<str>>) -> Self {
        Self { words: words.into(), ..self }
    }

    fn next_step(&self, namespace: &str, name: &str) -> NextStep {
        let values = self.values(namespace, name);
        let is_safe = is_plain(namespace) && is_plain(name);
        let command = if is_safe { fill(self.reason.row().command, &values) } else { String::new() };
        NextStep { text: fill(self.reason.row().advice, &values), command }
    }

    fn values(&self, namespace: &str, name: &str) -> [(&'static str, String); 6] {
        [
            ("{name}", name.to_owned()),
            ("{namespace}", namespace.to_owned()),
            ("{since}", since_text(self.since)),
            ("{at}", seen_text(self.since)),
            ("{until}", self.until.map(|until| format!(" until {}", shown(until))).unwrap_or_default()),
            ("{words}", words_text(&self.words)),
        ]
    }
}

/// Reason of a cause, with its row in the table of the capability.
pub trait RecordReason: Copy + Eq + 'static {
    /// Returns the row of the table.
    fn row(self) -> &'static RecordRow;
}

/// Row of a table of causes. Texts have the places `{name}`, `{namespace}`, `{since}`, `{at}`, `{until}` and `{words}`.
#[derive(Debug, PartialEq, Eq)]
pub struct RecordRow {
    /// Reason as one word.
    pub word: &'static str,
    /// Kind of people or systems that the cause is a matter of.
    pub class: CauseClass,
    /// Outcome of a subject with this first cause.
    pub outcome: CauseOutcome,
    /// Peer whose words the cause repeats; `None`: none has a part in it.
    pub peer: Option<CausePeer>,
    /// Sentence without its full stop.
    pub sentence: &'static str,
    /// Advice to an operator.
    pub advice: &'static str,
    /// Command of the next step.
    pub command: &'static str,
}

/// Peer that has a part in a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CausePeer {
    /// Backend that carries out the work on a machine.
    Backend,
    /// Agent that works on the machine itself.
    Agent,
}
