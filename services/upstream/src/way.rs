//! The gates that a call has to pass: that of its operation and, if it is about one thing, that of this thing.

use std::{collections::HashMap, sync::Arc};

use http::StatusCode;
use parking_lot::Mutex;

use crate::{
    failure::Trouble,
    lane::{Denial, Lane, Lasting, Leave},
    meter::Meter,
    outage::Outage,
};

/// Things in trouble that are remembered. With more, those that nobody calls about just now get a fresh start.
const MOST_SUBJECTS: usize = 1000;

/// Every gate of one peer.
pub(crate) struct Ways {
    peer: Arc<str>,
    /// What the peer is counted as.
    label: Arc<str>,
    outage: Arc<Outage>,
    operations: Mutex<HashMap<&'static str, Arc<Lane>>>,
    /// Those that are not in use and have nothing to remember are dropped.
    subjects: Mutex<HashMap<Subject, Arc<Lane>>>,
}

/// An operation, and a thing that its calls are about.
type Subject = (&'static str, Arc<str>);

/// The gates of one call.
pub(crate) struct Way {
    pub(crate) operation: Arc<Lane>,
    subject: Option<Arc<Lane>>,
}

/// Leave to make one call. One that is dropped says that nobody waited for the end of the call.
pub(crate) struct Passage<'a> {
    operation: Leave<'a>,
    subject: Option<Leave<'a>>,
}

impl Ways {
    /// No gates yet for the peer of that name.
    pub(crate) fn new(peer: &str, label: Arc<str>) -> Self {
        Self {
            peer: peer.into(),
            label,
            outage: Arc::default(),
            operations: Mutex::default(),
            subjects: Mutex::default(),
        }
    }

    /// The gates of a call of `operation` about `subject`.
    pub(crate) fn of(&self, operation: &'static str, subject: Option<&Arc<str>>) -> Way {
        Way {
            operation: self.operation(operation),
            subject: subject.map(|subject| self.subject(operation, subject)),
        }
    }

    fn operation(&self, operation: &'static str) -> Arc<Lane> {
        let mut operations = self.operations.lock();
        let lane = operations
            .entry(operation)
            .or_insert_with(|| self.lane(Meter::new(Arc::clone(&self.label), operation)));
        Arc::clone(lane)
    }

    fn subject(&self, operation: &'static str, subject: &Arc<str>) -> Arc<Lane> {
        let mut subjects = self.subjects.lock();
        let is_full = subjects.len() >= MOST_SUBJECTS;
        let is_used = |lane: &Arc<Lane>| Arc::strong_count(lane) > 1;
        subjects.retain(|_, lane| is_used(lane) || !is_full && lane.trouble().is_some());
        let lane = subjects
            .entry((operation, Arc::clone(subject)))
            .or_insert_with(|| self.lane(Meter::of_subject(Arc::clone(&self.label), operation)));
        Arc::clone(lane)
    }

    fn lane(&self, meter: Meter) -> Arc<Lane> {
        Arc::new(Lane::new(Arc::clone(&self.peer), Arc::clone(&self.outage), meter))
    }
}

impl Way {
    /// Why a call that came now would not be let through, if so.
    pub(crate) fn closed(&self) -> Option<Lasting> {
        self.operation.closed().or_else(|| self.subject.as_ref()?.closed())
    }

    /// What is wrong, if anything is.
    pub(crate) fn trouble(&self) -> Option<Lasting> {
        self.operation.trouble().or_else(|| self.subject.as_ref()?.trouble())
    }

    /// Lets a call through, or says why not.
    pub(crate) fn enter(&self) -> Result<Passage<'_>, Lasting> {
        let operation = self.operation.enter()?;
        let subject = self.subject.as_ref().map(|subject| subject.enter()).transpose()?;
        Ok(Passage { operation, subject })
    }
}

impl Passage<'_> {
    /// The peer works, whatever it thinks of what the call was about.
    pub(crate) fn works(self) {
        self.operation.works();
        if let Some(subject) = self.subject {
            subject.works();
        }
    }

    /// The peer works, and takes no calls of this kind. Gives back what it says since when.
    pub(crate) fn denied(self, status: StatusCode, words: String) -> Denial {
        self.operation.denied(status, words)
    }

    /// It does not work, for this thing or at all: an answer about one thing says nothing about others, unless the peer
    /// asks for a pause. Gives back what is wrong since when.
    pub(crate) fn fails(self, trouble: Trouble) -> Lasting {
        match self.subject {
            Some(subject) if trouble.is_answer() => {
                self.operation.works();
                subject.fails(trouble)
            }
            Some(_) | None => self.operation.fails(trouble),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways() -> Ways {
        Ways::new("TAPMS", "tapms".into())
    }

    fn about(ways: &Ways, subject: &str) -> Way {
        ways.of("tenant_get", Some(&subject.into()))
    }

    fn answer(status: u16) -> Trouble {
        Trouble { status: StatusCode::from_u16(status).ok(), ..Trouble::ambiguous("etcd is gone") }
    }

    /// Calls about `a` that come to `trouble`, until the gate is shut.
    fn fail(ways: &Ways, trouble: &Trouble) {
        while let Ok(passage) = about(ways, "a").enter() {
            passage.fails(trouble.clone());
        }
    }

    #[test]
    fn a_bad_answer_about_one_thing_keeps_nobody_from_others() {
        let pause = Trouble { retry_after: Some(std::time::Duration::from_secs(9)), ..answer(503) };
        for (trouble, about_others, about_any) in [
            (answer(500), true, true),
            (answer(200), true, true),
            (answer(429), false, false),
            (pause, false, false),
            (Trouble::unreachable("connection refused"), false, false),
            (Trouble::ambiguous("no answer within 9 s"), false, false),
        ] {
            let ways = ways();
            fail(&ways, &trouble);
            assert!(about(&ways, "a").closed().is_some());
            let open = [about(&ways, "b"), ways.of("tenant_get", None)].map(|way| way.closed().is_none());
            assert_eq!(open, [about_others, about_any], "{trouble:?}");
        }
    }

    #[test]
    fn things_that_are_well_are_forgotten() {
        let ways = ways();
        fail(&ways, &answer(500));
        for n in 0..10 {
            about(&ways, &format!("well {n}")).enter().unwrap().works();
        }
        assert_eq!(ways.subjects.lock().len(), 2, "the one in trouble and the last");
        for n in 0..2 * MOST_SUBJECTS {
            about(&ways, &format!("ill {n}")).enter().unwrap().fails(answer(500));
        }
        assert!(ways.subjects.lock().len() <= MOST_SUBJECTS);
    }
}
