//! Which of two readings of a node's configuration stands.
//!
//! | arrives | while the newest reading is | then |
//! |---|---|---|
//! | answer to a request | requested earlier, or absent | the answer stands, for the generation at its request |
//! | answer to a request | requested or pushed later | the newest one stands |
//! | confirmation of a call that set a configuration | older, and of no later generation | the confirmation stands, for the generation before the call |
//! | confirmation of a call | of a later time or generation | the newest one stands |
//! | pushed change | any | the change stands, for the generation of the newest reading |
//! | pushed change | absent | nothing: it may be older than the generation that is requested next |
//! | failed request, after three seconds without answers | requested earlier, or absent | the reading is withdrawn, and shown with its age and the outage |
//! | failed request | requested or pushed later | the newest one stands |
//!
//! Independent of any reading that arrives:
//!
//! | event | effect |
//! |---|---|
//! | listening begins, for the first time or after a break | readings stand, and are requested again |
//! | the stream of changes is broken for three seconds | readings are withdrawn, with the outage |
//! | the process slept, the database lost readings, or a term begins | readings are withdrawn and requested again |

/// Source of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadingSource {
    /// Answer to a request about the node.
    Answer,
    /// Answer to a call that set the configuration. An earlier answer may predate the call, even if it was requested
    /// while the call was in flight.
    Confirmation,
    /// Change that the upstream pushed. The push may have been on its way since before the newest generation began.
    Push,
    /// Request without an answer, after too long an outage. It withdraws a reading and is none itself.
    Outage,
}

/// Reading that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivingReading {
    /// Source of the reading.
    pub source: ReadingSource,
    /// Generation of the component at the request, which a push does not have: it is ignored there.
    pub generation: u64,
    /// Whether a reading has arrived since that was requested or pushed later.
    pub is_overtaken: bool,
}

/// Returns the generation that an arriving reading is evidence for, beside the generation of the `newest` reading of the
/// node; `None`: the newest one stands.
pub fn counts_for(arriving: ArrivingReading, newest: Option<u64>) -> Option<u64> {
    let ArrivingReading { source, generation, is_overtaken } = arriving;
    match source {
        ReadingSource::Answer | ReadingSource::Outage => (!is_overtaken).then_some(generation),
        ReadingSource::Confirmation => {
            let is_of_before = newest.is_some_and(|newest| newest > generation);
            (!is_overtaken && !is_of_before).then_some(generation)
        }
        ReadingSource::Push => newest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_has_its_rows() {
        use ReadingSource::{Answer, Confirmation, Outage, Push};
        let rows = [
            ("first answer", Answer, 5, false, None, Some(5)),
            ("answer in order", Answer, 5, false, Some(5), Some(5)),
            ("answer about a node that began again", Answer, 6, false, Some(5), Some(6)),
            ("answer that a later request overtook", Answer, 5, true, Some(5), None),
            ("answer that a push overtook: which of the two is true now?", Answer, 6, true, Some(5), None),
            ("first confirmation", Confirmation, 5, false, None, Some(5)),
            ("confirmation in order", Confirmation, 5, false, Some(5), Some(5)),
            ("confirmation of an older generation", Confirmation, 5, false, Some(6), None),
            ("confirmation that an answer overtook", Confirmation, 5, true, Some(5), None),
            ("push about a node that was never requested", Push, 0, false, None, None),
            ("push", Push, 0, false, Some(5), Some(5)),
            ("outage", Outage, 5, false, Some(5), Some(5)),
            ("outage from the beginning on", Outage, 5, false, None, Some(5)),
            ("outage of a request that another one overtook", Outage, 5, true, Some(5), None),
        ];
        for (name, source, generation, is_overtaken, newest, expected) in rows {
            let arriving = ArrivingReading { source, generation, is_overtaken };
            assert_eq!(counts_for(arriving, newest), expected, "{name}");
        }
    }
}
