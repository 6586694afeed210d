//! Selects the finished transitions that are kept: for operators to see, and to recognise them among the upstream's
//! transitions.

use std::{cmp::Reverse, sync::Arc, time::Duration};

use domain::{boot::power::transition::PowerTransition, core::time::Timestamp};

/// Most finished transitions that are kept.
pub(crate) const MOST_TRANSITIONS: usize = 1000;

/// Most members of all kept transitions together, about ten megabytes. The registry counts attempts, so a forgotten
/// attempt is not made again.
const MOST_MEMBERS: usize = 100_000;

/// Time for which finished transitions are kept: as long as complete sessions by default, which they explain. Power
/// services forget their transitions after a day, and until then the search for a lost transition must recognise ours.
/// (Setting the clock forward by as much forgets all of them.)
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Returns the ids of those `finished` transitions that are deleted at `now`: all that are too old, and those that
/// ended first when there are too many or they have too many members. A transition that ends in this very transaction,
/// and so has no revision yet, stays however slow it was: others have to learn how it ended.
pub(crate) fn surplus(mut finished: Vec<Arc<PowerTransition>>, now: Timestamp) -> Vec<String> {
    // Finishing is the last change of a transition.
    let order = |one: &PowerTransition| if one.revision == 0 { u64::MAX } else { one.revision };
    finished.sort_by_key(|one| Reverse(order(one)));
    let (mut count, mut members) = (0, 0);
    finished.retain(|one| {
        count += 1;
        members += one.members.len();
        let too_many = count > MOST_TRANSITIONS || members > MOST_MEMBERS;
        one.revision > 0 && (too_many || now.since(last_begun(one)) >= LONGEST)
    });
    finished.into_iter().map(|one| one.id.clone()).collect()
}

/// Returns the later of the times at which the transition was recorded and sent.
fn last_begun(transition: &PowerTransition) -> Timestamp {
    let times = [transition.created_at, transition.sent_at];
    times.into_iter().flatten().max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use domain::boot::power::transition::TransitionMember;

    use super::*;

    const NOW: Timestamp = Timestamp(1_732_119_012_345);

    /// Returns `count` transitions of `members` members each, numbered from the oldest; the newest was sent `age` ago.
    fn transitions(count: u64, members: usize, age: Duration) -> Vec<Arc<PowerTransition>> {
        let members = vec![TransitionMember::default(); members];
        let one = |number: u64| {
            let age = age + Duration::from_secs(count - number);
            let sent_at = Timestamp(NOW.0 - i64::try_from(age.as_millis()).unwrap());
            Arc::new(PowerTransition {
                id: number.to_string(),
                members: members.clone(),
                created_at: Some(Timestamp(0)),
                sent_at: Some(sent_at),
                revision: number,
                ..PowerTransition::default()
            })
        };
        (1..=count).map(one).collect()
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_and_all_go_in_the_end() {
        let (hour, week) = (Duration::from_secs(60 * 60), LONGEST);
        let rows = [
            ("as many as may be", transitions(1000, 1, Duration::ZERO), 0),
            ("too many", transitions(1003, 1, Duration::ZERO), 3),
            ("as many members as may be", transitions(40, 2500, Duration::ZERO), 0),
            ("too many members", transitions(41, 2500, Duration::ZERO), 1),
            ("young enough", transitions(100, 1, week - hour), 0),
            ("some are too old", transitions(100, 1, week - Duration::from_secs(30)), 70),
            ("all are too old", transitions(100, 1, week), 100),
        ];
        for (name, mut finished, expected) in rows {
            finished.reverse();
            let mut surplus = surplus(finished, NOW);
            surplus.sort_by_key(|id| id.parse::<usize>().unwrap());
            let oldest: Vec<_> = (1..=expected).map(|number| number.to_string()).collect();
            assert_eq!(surplus, oldest, "{name}");
        }
    }

    #[test]
    fn one_that_was_never_sent_is_as_old_as_its_record() {
        let recorded = |age: Duration| {
            let at = Timestamp(NOW.0 - i64::try_from(age.as_millis()).unwrap());
            Arc::new(PowerTransition { created_at: Some(at), revision: 1, ..PowerTransition::default() })
        };
        assert!(surplus(vec![recorded(LONGEST - Duration::from_secs(1))], NOW).is_empty());
        assert_eq!(surplus(vec![recorded(LONGEST)], NOW).len(), 1);
    }

    #[test]
    fn one_that_ends_now_stays_however_slow_it_was() {
        let mut finished = transitions(MOST_TRANSITIONS as u64, 1, Duration::ZERO);
        let slow = PowerTransition { id: "slow".into(), revision: 0, ..PowerTransition::default() };
        finished.push(Arc::new(slow));
        assert_eq!(surplus(finished, NOW), ["1"]);
    }
}
