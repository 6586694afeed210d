//! The order of readings, so that the answer to an older request never replaces that to a newer one.

use chassis::observe::reading_clock::{LogicalTime, ReadingClock};
use domain::{
    boot::configuration::reading::{ArrivingReading, ReadingSource, counts_for},
    core::id::ComponentId,
};

/// Order of readings, each with the generation that it is evidence for.
pub(crate) type ConfigurationClock = ReadingClock<ComponentId, u64>;

/// Returns the generation that a reading of `source`, requested or pushed at `time`, is evidence for; it then is the
/// newest one. `None`: the reading is not stored. `generation`: that of the component at the request.
pub(crate) fn admit(
    clock: &mut ConfigurationClock,
    source: ReadingSource,
    id: &ComponentId,
    time: LogicalTime,
    generation: u64,
) -> Option<u64> {
    let arriving = ArrivingReading { source, generation, is_overtaken: clock.is_overtaken(id, time) };
    let generation = counts_for(arriving, clock.newest(id).copied())?;
    if source != ReadingSource::Outage {
        clock.note(id.clone(), time, generation);
    }
    Some(generation)
}

#[cfg(test)]
mod tests {
    use ReadingSource::{Answer, Confirmation, Push};

    use super::*;

    fn id() -> ComponentId {
        ComponentId::parse("x1").unwrap()
    }

    #[test]
    fn an_answer_never_replaces_one_that_was_asked_for_later() {
        let mut clock = ConfigurationClock::default();
        let (first, second) = (clock.tick(), clock.tick());
        assert_eq!(admit(&mut clock, Answer, &id(), second, 1), Some(1));
        assert_eq!(admit(&mut clock, Answer, &id(), first, 1), None);
        let again = admit(&mut clock, Answer, &id(), second, 1);
        assert_eq!(again, Some(1), "one answer may describe a node twice");
        clock.forget(&id());
        assert_eq!(admit(&mut clock, Answer, &id(), first, 1), Some(1));
    }

    #[test]
    fn news_count_for_the_generation_that_was_asked_about() {
        let mut clock = ConfigurationClock::default();
        let told = clock.tick();
        assert_eq!(admit(&mut clock, Push, &id(), told, 5), None, "never asked about");
        let asked = clock.tick();
        assert_eq!(admit(&mut clock, Answer, &id(), asked, 5), Some(5));
        // Generation 6 begins and is being requested.
        let asked = clock.tick();
        let told = clock.tick();
        assert_eq!(admit(&mut clock, Push, &id(), told, 6), Some(5));
        let overtaken = admit(&mut clock, Answer, &id(), asked, 6);
        assert_eq!(overtaken, None, "nobody knows which of the two is true now");
        let asked = clock.tick();
        assert_eq!(admit(&mut clock, Answer, &id(), asked, 6), Some(6));
        let told = clock.tick();
        assert_eq!(admit(&mut clock, Push, &id(), told, 6), Some(6));
    }

    #[test]
    fn a_confirmation_replaces_answers_that_were_asked_for_before_it_came() {
        let mut clock = ConfigurationClock::default();
        let asked = clock.tick();
        assert_eq!(admit(&mut clock, Answer, &id(), asked, 5), Some(5));
        let (late, told) = (clock.tick(), clock.tick());
        assert_eq!(admit(&mut clock, Confirmation, &id(), told, 5), Some(5));
        let overtaken = admit(&mut clock, Answer, &id(), late, 5);
        assert_eq!(overtaken, None, "it may say what was so before");
        let asked = clock.tick();
        assert_eq!(admit(&mut clock, Answer, &id(), asked, 6), Some(6));
        let told = clock.tick();
        assert_eq!(admit(&mut clock, Confirmation, &id(), told, 5), None, "of an older generation");
    }

    #[test]
    fn what_was_said_before_a_gap_is_not_fresh() {
        let mut clock = ConfigurationClock::default();
        let asked = clock.tick();
        admit(&mut clock, Answer, &id(), asked, 1);
        assert!(clock.fresh(&id()).is_some());
        clock.note_gap();
        assert!(clock.fresh(&id()).is_none());
        let asked = clock.tick();
        admit(&mut clock, Answer, &id(), asked, 1);
        assert!(clock.fresh(&id()).is_some());
    }

    #[test]
    fn an_outage_withdraws_only_what_was_asked_for_before_it() {
        let mut clock = ConfigurationClock::default();
        let (hung, asked) = (clock.tick(), clock.tick());
        assert_eq!(admit(&mut clock, Answer, &id(), asked, 1), Some(1));
        assert_eq!(admit(&mut clock, ReadingSource::Outage, &id(), hung, 1), None);
        let silent = clock.tick();
        assert_eq!(admit(&mut clock, ReadingSource::Outage, &id(), silent, 1), Some(1));
        assert!(!clock.is_overtaken(&id(), asked), "an outage is no reading");
    }
}
