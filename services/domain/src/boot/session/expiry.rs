//! The time for which complete sessions are kept (BOS reference 5.10).

use std::time::Duration;

use super::{Progress, Session};
use crate::core::time::Timestamp;

/// Returns when a complete session will have been kept for `time_to_live`, counted from its start; `None`: never, since
/// it is not complete or sessions are kept for ever.
pub fn expires_at(session: &Session, time_to_live: Option<Duration>) -> Option<Timestamp> {
    let complete = session.progress == Progress::Complete;
    Some(session.started_at().plus(time_to_live.filter(|_| complete)?))
}

/// Returns whether a session is complete and was kept long enough.
pub fn is_expired(session: &Session, time_to_live: Option<Duration>, now: Timestamp) -> bool {
    expires_at(session, time_to_live).is_some_and(|at| at <= now)
}

/// Returns when the first of `sessions` that is kept at `now` expires.
pub fn next_expiry<'a>(
    sessions: impl IntoIterator<Item = &'a Session>,
    time_to_live: Option<Duration>,
    now: Timestamp,
) -> Option<Timestamp> {
    let expiries = sessions.into_iter().filter_map(|session| expires_at(session, time_to_live));
    expiries.filter(|at| *at > now).min()
}

/// Returns the surplus complete sessions, whatever their age: the oldest ones, so that at most `most` others remain,
/// which have at most `most_members` together. The newest is always kept.
pub fn surplus<'a>(
    sessions: impl IntoIterator<Item = &'a Session>,
    most: usize,
    most_members: usize,
) -> Vec<&'a Session> {
    let mut complete: Vec<_> =
        sessions.into_iter().filter(|session| session.progress == Progress::Complete).collect();
    // Ids sort by their time of creation, which orders two sessions that started in the same second.
    complete.sort_unstable_by(|one, other| (other.started_at(), &other.id).cmp(&(one.started_at(), &one.id)));
    let mut members = 0_usize;
    let kept = complete.iter().take(most.max(1)).enumerate().take_while(|(place, session)| {
        members = members.saturating_add(session.components.len());
        *place == 0 || members <= most_members
    });
    let kept = kept.count();
    complete.split_off(kept)
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{NOW, session},
        *,
    };
    use crate::core::bos_time;

    const MINUTE: i64 = 60_000;
    const HOUR: Option<Duration> = Some(Duration::from_secs(60 * 60));

    fn started(minutes_ago: i64) -> Session {
        Session { start_time: bos_time::text(Timestamp(NOW.0 - minutes_ago * MINUTE)), ..session("s") }
    }

    fn complete(minutes_ago: i64) -> Session {
        Session { progress: Progress::Complete, ..started(minutes_ago) }
    }

    #[test]
    fn complete_sessions_expire_by_start() {
        for (session, time_to_live, expected) in [
            (complete(59), HOUR, false),
            (complete(60), HOUR, true),
            (started(90), HOUR, false),
            (complete(90), None, false),
        ] {
            assert_eq!(is_expired(&session, time_to_live, NOW), expected, "{session:?} {time_to_live:?}");
        }
    }

    #[test]
    fn the_oldest_complete_sessions_are_too_many() {
        let sessions = [complete(40), started(90), complete(20), complete(60), complete(30)];
        let with_members = sessions.map(|session| {
            let node = crate::core::id::ComponentId::parse("x1").unwrap();
            Session { components: vec![node; 10], ..session }
        });
        let minutes = |most, most_members| {
            let surplus = surplus(&with_members, most, most_members).into_iter();
            surplus.map(|one| (NOW.0 / 1000 * 1000 - one.started_at().0) / MINUTE).collect::<Vec<_>>()
        };
        assert_eq!(minutes(4, 40), []);
        assert_eq!(minutes(2, 40), [40, 60]);
        assert_eq!(minutes(4, 39), [60]);
        assert_eq!(minutes(4, 10), [30, 40, 60]);
        assert_eq!(minutes(4, 0), [30, 40, 60], "the newest stays");
        assert_eq!(minutes(0, 40), [30, 40, 60], "the newest stays");
    }

    #[test]
    fn the_next_to_expire_is_the_oldest_that_is_kept() {
        let sessions = [complete(90), complete(20), complete(40), started(50)];
        // Start times lose their fraction of a second.
        let whole_second = NOW.0 / 1000 * 1000;
        assert_eq!(next_expiry(&sessions, HOUR, NOW), Some(Timestamp(whole_second + 20 * MINUTE)));
        assert_eq!(next_expiry(&sessions[..1], HOUR, NOW), None);
        assert_eq!(next_expiry(&sessions, None, NOW), None);
    }
}
