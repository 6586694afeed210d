//! Explanations: the values that every kind of subject shares, and the filling of their texts.
//!
//! A subject is explained by causes, evidence and one next step. Reasons are enums of the capability that decides; each
//! has a row with its class, its outcome and its texts. [`RecordExplanation`] serves subjects whose record tells everything.
//! A boot has stages and attempts in addition, and so has an explanation of its own.

use crate::core::time::Timestamp;

mod record;
mod wording;

pub use record::{CausePeer, RecordCause, RecordExplanation, RecordReason, RecordRow};
pub(crate) use wording::{fill, is_plain, seen_text, shown, since_text, words_text};

/// Kind of people or systems that a cause is a matter of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CauseClass {
    /// Time has to pass; there is no fault.
    Waiting,
    /// A person decided it, or has to.
    Operator,
    /// The subject belongs to another tenant.
    Tenant,
    /// A system that Reveille calls.
    Upstream,
    /// The machine or its BMC.
    Hardware,
    /// The network of the machine.
    Network,
    /// The service of boot scripts, or the reporter of the machine.
    BootService,
    /// The image.
    Image,
    /// The configuration.
    Configuration,
    /// Too few resources for all of the work at once.
    Capacity,
}

impl CauseClass {
    /// Returns the class as one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Operator => "operator",
            Self::Tenant => "tenant",
            Self::Upstream => "upstream",
            Self::Hardware => "hardware",
            Self::Network => "network",
            Self::BootService => "boot_service",
            Self::Image => "image",
            Self::Configuration => "configuration",
            Self::Capacity => "capacity",
        }
    }
}

/// Outcome so far, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CauseOutcome {
    /// The subject is as wanted.
    AsWanted,
    /// Work is under way and within its time.
    Progressing,
    /// A session leaves the subject out.
    LeftOut,
    /// The work waits and goes on by itself.
    Waiting,
    /// The work stands still until a person acts.
    Held,
    /// An attempt failed.
    Failed,
}

impl CauseOutcome {
    /// Returns the outcome as one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::AsWanted => "as_wanted",
            Self::Progressing => "progressing",
            Self::LeftOut => "left_out",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Failed => "failed",
        }
    }
}

/// Meaning of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EvidenceVerdict {
    /// The source has it.
    Present,
    /// The source was asked after the event could have happened, and does not have it.
    Absent,
    /// The source did not answer, or its answer may be too old.
    Unknown,
    /// The source of this site has no such evidence.
    NotOffered,
}

impl EvidenceVerdict {
    /// Returns the verdict as one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
            Self::NotOffered => "not_offered",
        }
    }
}

/// Piece of evidence from a source `S`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceItem<S> {
    /// Origin.
    pub source: S,
    /// Content, for people.
    pub content: String,
    /// Time to which the content belongs; `None`: now, or unknown.
    pub observed_at: Option<Timestamp>,
    /// Meaning.
    pub verdict: EvidenceVerdict,
}

impl<S> EvidenceItem<S> {
    /// Creates a piece of evidence without a time.
    pub(crate) fn new(source: S, verdict: EvidenceVerdict, content: impl Into<String>) -> Self {
        Self { source, content: content.into(), observed_at: None, verdict }
    }

    /// Returns the evidence with the time to which it belongs.
    pub(crate) fn at(self, observed_at: Option<Timestamp>) -> Self {
        Self { observed_at, ..self }
    }
}

/// Next step of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    /// Text for people.
    pub text: String,
    /// Command to type; empty: the subject has characters that a shell would read.
    pub command: String,
}
