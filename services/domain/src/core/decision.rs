//! Precedence of two decisions about one record, where several versions of the rules run side by side.

/// Rules and options that a decision was made with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct DecisionVersion {
    /// Version of the rules; 0: the author of the decision did not report it.
    pub rules: u32,
    /// Revision of the options; 0: not known.
    pub options: u64,
}

impl DecisionVersion {
    /// Returns whether decisions of this version give way to one of the `other`. Rules count before options, because
    /// authors of every version follow the same options.
    #[must_use]
    pub fn is_older_than(self, other: Self) -> bool {
        let older_options = self.options != 0 && self.options < other.options;
        self.rules < other.rules || (self.rules == other.rules && older_options)
    }
}
