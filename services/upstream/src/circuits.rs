//! The circuits that a call has to pass: the circuit of its operation and, if the call has a subject, of this
//! subject.

use std::{collections::HashMap, sync::Arc, time::Instant};

use chassis::process::peers::PeerState;
use http::StatusCode;
use parking_lot::Mutex;

use crate::{
    circuit::{LastingDenial, LastingTrouble, OperationCircuit, OperationPermit},
    failure::PeerTrouble,
    meter::CallMeter,
    outage::PeerOutage,
};

/// Most failing subjects that are remembered. Beyond this limit, subjects without a current call are forgotten.
const MOST_SUBJECTS: usize = 1000;

/// The circuits of one peer.
pub(crate) struct PeerCircuits {
    peer: Arc<str>,
    /// Metric label of the peer.
    label: Arc<str>,
    outage: Arc<PeerOutage>,
    operations: Mutex<HashMap<&'static str, Arc<OperationCircuit>>>,
    /// Circuits of subjects. A circuit without a current call and without an error is dropped.
    subjects: Mutex<HashMap<Subject, Arc<OperationCircuit>>>,
}

/// An operation, and the subject of its calls.
type Subject = (&'static str, Arc<str>);

/// The circuits of one call.
pub(crate) struct CallCircuits {
    pub(crate) operation: Arc<OperationCircuit>,
    subject: Option<Arc<OperationCircuit>>,
}

/// Permission to make one call. Dropping the permit means that the end of the call was not awaited.
pub(crate) struct CallPermit<'a> {
    operation: OperationPermit<'a>,
    subject: Option<OperationPermit<'a>>,
}

impl PeerCircuits {
    /// Creates no circuits yet for the peer called `peer`.
    pub(crate) fn new(peer: &str, label: Arc<str>) -> Self {
        Self {
            peer: peer.into(),
            label,
            outage: Arc::default(),
            operations: Mutex::default(),
            subjects: Mutex::default(),
        }
    }

    /// Returns the state of the peer.
    pub(crate) fn peer_state(&self) -> PeerState {
        self.outage.peer_state()
    }

    /// Returns the circuits of a call of `operation` about `subject`.
    pub(crate) fn of(&self, operation: &'static str, subject: Option<&Arc<str>>) -> CallCircuits {
        CallCircuits {
            operation: self.operation(operation),
            subject: subject.map(|subject| self.subject(operation, subject)),
        }
    }

    fn operation(&self, operation: &'static str) -> Arc<OperationCircuit> {
        let mut operations = self.operations.lock();
        let circuit = operations
            .entry(operation)
            .or_insert_with(|| self.circuit(CallMeter::new(Arc::clone(&self.label), operation)));
        Arc::clone(circuit)
    }

    fn subject(&self, operation: &'static str, subject: &Arc<str>) -> Arc<OperationCircuit> {
        let mut subjects = self.subjects.lock();
        let is_full = subjects.len() >= MOST_SUBJECTS;
        subjects.retain(|_, circuit| {
            let is_used = Arc::strong_count(circuit) > 1;
            is_used || !is_full && circuit.trouble().is_some()
        });
        let circuit = subjects
            .entry((operation, Arc::clone(subject)))
            .or_insert_with(|| self.circuit(CallMeter::of_subject(Arc::clone(&self.label), operation)));
        Arc::clone(circuit)
    }

    fn circuit(&self, meter: CallMeter) -> Arc<OperationCircuit> {
        Arc::new(OperationCircuit::new(Arc::clone(&self.peer), Arc::clone(&self.outage), meter))
    }
}

impl CallCircuits {
    /// Returns the error of an open circuit.
    pub(crate) fn open_error(&self) -> Option<LastingTrouble> {
        self.operation.open_error().or_else(|| self.subject.as_ref()?.open_error())
    }

    /// Returns the current error, if there is one.
    pub(crate) fn trouble(&self) -> Option<LastingTrouble> {
        self.operation.trouble().or_else(|| self.subject.as_ref()?.trouble())
    }

    /// Ends outages in which a call has succeeded as soon as none has failed for long enough, in a task of its own.
    pub(crate) fn end_when_quiet(&self) {
        for circuit in [Some(&self.operation), self.subject.as_ref()].into_iter().flatten() {
            let Some(pause) = circuit.quiet_after(Instant::now()) else { continue };
            let circuit = Arc::clone(circuit);
            tokio::spawn(async move {
                tokio::time::sleep(pause).await;
                circuit.end_if_quiet(Instant::now());
            });
        }
    }

    /// Admits a call, or returns the error of an open circuit.
    pub(crate) fn acquire(&self) -> Result<CallPermit<'_>, LastingTrouble> {
        let operation = self.operation.acquire()?;
        let subject = self.subject.as_ref().map(|subject| subject.acquire()).transpose()?;
        Ok(CallPermit { operation, subject })
    }
}

impl CallPermit<'_> {
    /// Records that the peer works, whichever its answer.
    pub(crate) fn works(self) {
        self.operation.works();
        if let Some(subject) = self.subject {
            subject.works();
        }
    }

    /// Records that the peer works and denies calls of this kind. Returns the denial with its beginning.
    pub(crate) fn denied(self, status: StatusCode, words: String) -> LastingDenial {
        self.operation.denied(status, words)
    }

    /// Records that the peer does not work. A bad answer about one subject does not concern other subjects, unless
    /// the peer asks for a pause. Returns the error with its beginning.
    pub(crate) fn fails(self, trouble: PeerTrouble) -> LastingTrouble {
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

    fn circuits() -> PeerCircuits {
        PeerCircuits::new("TAPMS", "tapms".into())
    }

    fn about(circuits: &PeerCircuits, subject: &str) -> CallCircuits {
        circuits.of("tenant_get", Some(&subject.into()))
    }

    fn answer(status: u16) -> PeerTrouble {
        PeerTrouble { status: StatusCode::from_u16(status).ok(), ..PeerTrouble::ambiguous("etcd is gone") }
    }

    /// Fails calls about `a` with `trouble` until the circuit opens.
    fn fail(circuits: &PeerCircuits, trouble: &PeerTrouble) {
        while let Ok(permit) = about(circuits, "a").acquire() {
            permit.fails(trouble.clone());
        }
    }

    #[test]
    fn a_bad_answer_about_one_subject_holds_back_no_others() {
        let pause = PeerTrouble { retry_after: Some(std::time::Duration::from_secs(9)), ..answer(503) };
        for (trouble, about_others, about_any) in [
            (answer(500), true, true),
            (answer(200), true, true),
            (answer(429), false, false),
            (pause, false, false),
            (PeerTrouble::unreachable("connection refused"), false, false),
            (PeerTrouble::ambiguous("no answer within 9 s"), false, false),
        ] {
            let circuits = circuits();
            fail(&circuits, &trouble);
            assert!(about(&circuits, "a").open_error().is_some());
            let open = [about(&circuits, "b"), circuits.of("tenant_get", None)]
                .map(|circuits| circuits.open_error().is_none());
            assert_eq!(open, [about_others, about_any], "{trouble:?}");
        }
    }

    #[test]
    fn healthy_subjects_are_forgotten() {
        let circuits = circuits();
        fail(&circuits, &answer(500));
        for n in 0..10 {
            about(&circuits, &format!("healthy {n}")).acquire().unwrap().works();
        }
        assert_eq!(circuits.subjects.lock().len(), 2, "the failing subject and the last one");
        for n in 0..2 * MOST_SUBJECTS {
            about(&circuits, &format!("failing {n}")).acquire().unwrap().fails(answer(500));
        }
        assert!(circuits.subjects.lock().len() <= MOST_SUBJECTS);
    }
}
