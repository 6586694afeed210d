//! Which of several evaluators a record is left to.

/// Version of the rules by which components are judged. It is raised with every change of them after which the same
/// evidence can lead to another decision.
pub const RULES_VERSION: u32 = 2;

/// Rules and options that a decision was made with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct DecisionVersion {
    /// [`RULES_VERSION`] of the evaluator; 0: one that did not tell.
    pub rules: u32,
    /// Revision of the options; 0: not known.
    pub options: u64,
}

impl DecisionVersion {
    /// The rules of this crate with options of that revision.
    pub fn current(options: u64) -> Self {
        Self { rules: RULES_VERSION, options }
    }

    /// Whether decisions of this version give way to one of the `other`. Rules count before options, because evaluators of
    /// every version follow the same options.
    #[must_use]
    pub fn is_older_than(self, other: Self) -> bool {
        let older_options = self.options != 0 && self.options < other.options;
        self.rules < other.rules || (self.rules == other.rules && older_options)
    }
}
