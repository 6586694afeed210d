//! What the systems around a mesh saw of it, and whether that was safe.

use std::collections::BTreeMap;

use upstreams::{Event, PowerRecord, Upstreams, What};

/// Where the history of each node was at one time.
pub struct Mark(BTreeMap<String, u64>);

impl Mark {
    /// Now.
    pub fn now(upstreams: &Upstreams) -> Self {
        let last = |id: &String| upstreams.history(id).unwrap().last().map_or(0, |event| event.sequence);
        Self(upstreams.ids().into_iter().map(|id| (id.clone(), last(&id))).collect())
    }

    /// What happened to each node since.
    pub fn since(&self, upstreams: &Upstreams) -> BTreeMap<String, Vec<Event>> {
        let later = |(id, last): (&String, &u64)| {
            let events = upstreams.history(id).unwrap().into_iter();
            (id.clone(), events.filter(|event| event.sequence > *last).collect())
        };
        self.0.iter().map(later).collect()
    }
}

/// Each node was asked for exactly `operations`, in this order; it was turned on only after its boot data and its
/// configuration had been taken, and booted just these data.
pub fn is_safe(upstreams: &Upstreams, mark: &Mark, operations: &[&str]) {
    for (id, events) in mark.since(upstreams) {
        let seen = || format!("{id}: {events:#?}");
        let (mut asked, mut token, mut configured) = (Vec::new(), None, false);
        for event in &events {
            match &event.what {
                What::BootData { token: given } => token = Some(given),
                What::Configuration { enabled: false, cleared: true, .. } => configured = true,
                What::Asked { operation, .. } => {
                    assert!(*operation != "On" || (token.is_some() && configured), "unprepared {}", seen());
                    asked.push(*operation);
                }
                What::Booted { token: found } => {
                    assert_eq!(Some(found), token, "something else was booted by {}", seen());
                }
                _ => {}
            }
        }
        assert_eq!(asked, operations, "{}", seen());
    }
    is_orderly(upstreams);
}

/// No node was ever asked for two things at once, or while somebody else held it.
pub fn is_orderly(upstreams: &Upstreams) {
    let power = upstreams.summary().power;
    let PowerRecord { crossings, overlaps, refused_reservations, .. } = power;
    assert_eq!((crossings, overlaps, refused_reservations), (0, 0, 0), "{power:?}");
}
