//! Selects the finished transitions that are kept: for operators to see, and to recognise them among the upstream's
//! transitions.

use std::{cmp::Reverse, collections::HashSet, sync::Arc, time::Duration};

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

/// Returns the ids of those `finished` transitions that are deleted at `now`. An abandoned one stays as long as the upstream
/// may list it, since it would be waited for again: `listed` are the ids that the upstream listed last; `None`: not known. Of
/// the others go all that are too old, and those that
/// ended first when there are too many or they have too many members. A transition that ends in this very transaction,
/// and so has no revision yet, stays however slow it was: others have to learn how it ended.
pub(crate) fn surplus(
    mut finished: Vec<Arc<PowerTransition>>,
    listed: Option<&HashSet<String>>,
    now: Timestamp,
) -> Vec<String> {
    let may_be_listed = |one: &PowerTransition| listed.is_none_or(|listed| listed.contains(&one.upstream_id));
    finished.retain(|one| one.abandoned_at.is_none() || one.upstream_id.is_empty() || !may_be_listed(one));
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
            let mut surplus = surplus(finished, None, NOW);
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
        assert!(surplus(vec![recorded(LONGEST - Duration::from_secs(1))], None, NOW).is_empty());
        assert_eq!(surplus(vec![recorded(LONGEST)], None, NOW).len(), 1);
    }

    #[test]
    fn one_that_ends_now_stays_however_slow_it_was() {
        let mut finished = transitions(MOST_TRANSITIONS as u64, 1, Duration::ZERO);
        let slow = PowerTransition { id: "slow".into(), revision: 0, ..PowerTransition::default() };
        finished.push(Arc::new(slow));
        assert_eq!(surplus(finished, None, NOW), ["1"]);
    }

    #[test]
    fn abandoned_one_stays_as_long_as_the_upstream_may_list_it() {
        let mut finished = transitions(MOST_TRANSITIONS as u64 + 3, 1, LONGEST);
        for one in &mut finished {
            let one = Arc::make_mut(one);
            (one.upstream_id, one.abandoned_at) = (format!("t-{}", one.id), Some(NOW));
        }
        let listed = HashSet::from(["t-1".to_owned(), "t-3".to_owned()]);
        assert!(surplus(finished.clone(), None, NOW).is_empty(), "it is not known what the upstream lists");
        let surplus = surplus(finished, Some(&listed), NOW);
        assert_eq!(surplus.len(), MOST_TRANSITIONS + 1);
        assert!(!surplus.contains(&"1".to_owned()) && !surplus.contains(&"3".to_owned()));
    }
}
