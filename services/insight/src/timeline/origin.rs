//! Origins of the sessions that events name.

use std::collections::{BTreeSet, HashMap};

use chassis::kinds::history::session_key;
use proto::{
    event::Event,
    insight::{SessionOrigin, TimelineEntry},
};

/// Creations of sessions by the keys of these, in any order: a name may have been taken again.
#[derive(Debug, Default)]
pub(super) struct SessionOrigins(HashMap<String, Vec<SessionOrigin>>);

impl SessionOrigins {
    /// Takes events of creations.
    pub(super) fn of(creations: Vec<Event>) -> Self {
        let mut origins: HashMap<_, Vec<_>> = HashMap::new();
        for event in creations {
            let key = event.key.clone();
            origins.entry(key).or_default().push(origin(event));
        }
        Self(origins)
    }

    /// Returns an event with the origin of its session: the latest creation that is no later than the event. Clocks of two
    /// services differ, so an event before every creation belongs to the earliest.
    pub(super) fn entry(&self, event: Event) -> TimelineEntry {
        let origins = key(&event).and_then(|key| self.0.get(&key)).map(Vec::as_slice).unwrap_or_default();
        let moment = |time: Option<prost_types::Timestamp>| time.map(|time| (time.seconds, time.nanos));
        let earlier = origins.iter().filter(|origin| moment(origin.created_at) <= moment(event.time));
        let latest = earlier.max_by_key(|origin| moment(origin.created_at));
        let found = latest.or_else(|| origins.iter().min_by_key(|origin| moment(origin.created_at)));
        TimelineEntry { origin: found.cloned(), event: Some(event) }
    }
}

/// Returns the keys of the sessions that events name.
pub(super) fn sessions(events: &[Event]) -> Vec<String> {
    let keys: BTreeSet<_> = events.iter().filter_map(key).collect();
    keys.into_iter().collect()
}

/// Returns the key of the session that an event names.
fn key(event: &Event) -> Option<String> {
    let body = event.body.as_ref().filter(|body| !body.session.is_empty())?;
    Some(session_key(&body.session_tenant, &body.session))
}

fn origin(event: Event) -> SessionOrigin {
    let body = event.body.unwrap_or_default();
    let template = body.details.into_iter().find(|detail| detail.name == "template");
    SessionOrigin {
        operation: body.reason,
        template: template.map(|detail| detail.value).unwrap_or_default(),
        actor: event.actor,
        request_id: event.request_id,
        created_at: event.time,
    }
}

#[cfg(test)]
mod tests {
    use proto::event::EventBody;

    use super::*;

    fn at(seconds: i64, key: &str, body: EventBody) -> Event {
        let time = Some(prost_types::Timestamp { seconds, nanos: 0 });
        Event { key: key.to_owned(), time, body: Some(body), ..Event::default() }
    }

    #[test]
    fn a_name_that_was_taken_again_has_the_origin_of_its_time() {
        let creation = |seconds, key, operation: &str| {
            at(seconds, key, EventBody { reason: operation.to_owned(), ..EventBody::default() })
        };
        let origins = SessionOrigins::of(vec![
            creation(50, "\ts", "reboot"),
            creation(10, "\ts", "boot"),
            creation(20, "blue\ts", "shutdown"),
        ]);
        let entry = |seconds, session: &str, tenant: &str| {
            let (session, session_tenant) = (session.to_owned(), tenant.to_owned());
            let entry = origins.entry(at(
                seconds,
                "x1",
                EventBody { session, session_tenant, ..EventBody::default() },
            ));
            entry.origin.map(|origin| origin.operation)
        };
        for (seconds, session, tenant, expected) in [
            (9, "s", "", Some("boot")),
            (10, "s", "", Some("boot")),
            (49, "s", "", Some("boot")),
            (50, "s", "", Some("reboot")),
            (99, "s", "blue", Some("shutdown")),
            (99, "t", "", None),
            (99, "", "", None),
        ] {
            assert_eq!(entry(seconds, session, tenant).as_deref(), expected, "{seconds} {session} {tenant}");
        }
    }
}
