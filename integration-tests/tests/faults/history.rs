//! Calls of a mesh as the systems around it recorded them, and checks that they were safe.

use std::collections::BTreeMap;

use upstreams::{EventKind, NodeEvent, PowerRecord, Upstreams};

/// Position in the history of each node at one time.
pub struct HistoryMark(BTreeMap<String, u64>);

impl HistoryMark {
    /// Now.
    pub fn now(upstreams: &Upstreams) -> Self {
        let last = |id: &String| upstreams.history(id).unwrap().last().map_or(0, |event| event.sequence);
        Self(upstreams.ids().into_iter().map(|id| (id.clone(), last(&id))).collect())
    }

    /// Events of each node since the mark.
    pub fn since(&self, upstreams: &Upstreams) -> BTreeMap<String, Vec<NodeEvent>> {
        let later = |(id, last): (&String, &u64)| {
            let events = upstreams.history(id).unwrap().into_iter();
            (id.clone(), events.filter(|event| event.sequence > *last).collect())
        };
        self.0.iter().map(later).collect()
    }
}

/// Each node was asked for exactly `operations`, in this order; it was turned on only after its boot data and its
/// configuration had been taken, and booted just these data.
pub fn is_safe(upstreams: &Upstreams, mark: &HistoryMark, operations: &[&str]) {
    for (id, events) in mark.since(upstreams) {
        let seen = || format!("{id}: {events:#?}");
        let (mut asked, mut token, mut configured) = (Vec::new(), None, false);
        for event in &events {
            match &event.what {
                EventKind::BootData { token: given } => token = Some(given),
                EventKind::Configuration { enabled: false, cleared: true, .. } => configured = true,
                EventKind::Asked { operation, .. } => {
                    assert!(*operation != "On" || (token.is_some() && configured), "unprepared {}", seen());
                    asked.push(*operation);
                }
                EventKind::Booted { token: found } => {
                    assert_eq!(Some(found), token, "something else was booted by {}", seen());
                }
                _ => {}
            }
        }
        assert_eq!(asked, operations, "{}", seen());
    }
    is_orderly(upstreams);
}

/// Checks that no node was asked for two actions at once, or while it was reserved elsewhere.
pub fn is_orderly(upstreams: &Upstreams) {
    let power = upstreams.summary().power;
    let PowerRecord { crossings, overlaps, refused_reservations, .. } = power;
    assert_eq!((crossings, overlaps, refused_reservations), (0, 0, 0), "{power:?}");
}
