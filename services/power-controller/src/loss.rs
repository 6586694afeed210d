//! Makes good what the database has lost of transitions: its stand-in took over without the last commits, or a backup
//! was restored.
//!
//! What was asked of the upstream has happened whether that is on record or not, and without the record it would be
//! asked for again. So what this replica knows about its own transitions is written down once more, and what came back
//! although it was over or taken back goes again. Every replica knows what is open of the others, and does the same for
//! what it takes over from one that has died with the database.

use std::sync::Arc;

use proto::power::{Delivery, Transition};

use crate::{
    act::{Actor, unknown},
    journal::{Changes, is_open},
    takeover::Open,
};

/// What makes good a loss, in the order in which it has to be done: what came back is in the way of what is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Remedy {
    /// It has come back: it is recorded as over, which it is.
    Close,
    /// It has come back: it had been taken back, or cut in two.
    Delete,
    /// It is on record as it was before: it is recorded once more as it is known.
    Renew,
    /// It is missing: the same.
    Restore,
}

/// The remedy for a transition that is `known` to be open, or is not, with this `record`, when everything up to revision
/// `told` was known. `is_over`: it is known what became of each of its attempts.
fn remedy(
    known: Option<&Transition>,
    record: Option<&Transition>,
    told: u64,
    is_over: bool,
) -> Option<Remedy> {
    match (known, record) {
        (Some(_), None) => (!is_over).then_some(Remedy::Restore),
        (Some(known), Some(record)) => (record.revision < known.revision).then_some(Remedy::Renew),
        (None, Some(record)) if is_open(record) && record.revision <= told => {
            Some(if is_over { Remedy::Close } else { Remedy::Delete })
        }
        (None, _) => None,
    }
}

/// Whether who sent a transition is still at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// It is this replica, which hears the answer.
    Here,
    /// It was another replica, whose answer nobody hears.
    Gone,
}

impl Actor {
    /// Compares the record with what is known, once it may have lost something of it.
    pub(crate) async fn make_good(&self, open: &Open, sender: Sender) {
        let record = self.journal.all().into_iter().filter(|one| open.get(&one.id).is_none());
        let all = open.all().cloned().chain(record).filter(|one| self.known.custody.has(&one.id));
        let mut lost: Vec<(Remedy, Arc<Transition>)> = all
            .filter_map(|one| {
                let is_over = self.intents.lock().are_over(&one);
                let record = self.journal.get(&one.id);
                let remedy = remedy(open.get(&one.id), record.as_deref(), open.revision(), is_over)?;
                Some((remedy, one))
            })
            .collect();
        lost.sort_by_key(|(remedy, _)| *remedy);
        for (remedy, transition) in lost {
            tracing::warn!(transition = transition.id, ?remedy, "the database had lost how it stands");
            self.mend(remedy, &transition, sender).await;
        }
    }

    async fn mend(&self, remedy: Remedy, transition: &Transition, sender: Sender) {
        let Some(fence) = self.known.custody.fence([transition.id.as_str()]) else { return };
        let mended = match remedy {
            Remedy::Close => {
                let error = "the database had lost its end".to_owned();
                let over = Transition { delivery: Delivery::Finished.into(), error, ..transition.clone() };
                self.journal.put(over, &fence).await
            }
            Remedy::Delete => {
                let delete = vec![transition.id.clone()];
                self.journal.write(Changes { put: Vec::new(), delete }, &fence).await
            }
            Remedy::Renew | Remedy::Restore => {
                let is_in_doubt = sender == Sender::Gone && transition.delivery() == Delivery::Sent;
                let transition = match is_in_doubt {
                    true => unknown(transition, "the service stopped before the answer came"),
                    false => transition.clone(),
                };
                let restored = self.journal.restore(&transition, &fence).await;
                if restored.is_ok() {
                    self.take_up(&transition, sender);
                }
                restored
            }
        };
        if let Err(lost) = mended {
            // That is for the other replica to do.
            tracing::info!(transition = transition.id, why = %lost, "not recorded once more");
        }
    }

    /// Goes on with what may have been passed by while it was missing. Of what is in doubt this replica may be finding out
    /// at this moment what became of it, and nobody must do so twice at a time.
    fn take_up(&self, transition: &Transition, sender: Sender) {
        if sender == Sender::Gone || transition.delivery() != Delivery::Unknown {
            self.go_on_with(transition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(delivery: Delivery, revision: u64) -> Transition {
        Transition { delivery: delivery.into(), revision, ..Transition::default() }
    }

    #[test]
    fn what_is_missing_is_recorded_again_and_what_came_back_goes_again() {
        use Delivery::{Accepted, Finished, Prepared, Sent, Unknown};
        const TOLD: u64 = 7;
        for (known, record, is_over, expected) in [
            (Some((Prepared, 5)), None, false, Some(Remedy::Restore)),
            (Some((Sent, 5)), None, false, Some(Remedy::Restore)),
            (Some((Unknown, 5)), None, false, Some(Remedy::Restore)),
            (Some((Accepted, 5)), None, false, Some(Remedy::Restore)),
            (Some((Accepted, 5)), None, true, None),
            (Some((Accepted, 5)), Some((Prepared, 3)), false, Some(Remedy::Renew)),
            (Some((Accepted, 5)), Some((Accepted, 5)), false, None),
            (Some((Accepted, 5)), Some((Finished, 6)), true, None),
            (Some((Sent, 5)), Some((Accepted, 9)), false, None),
            (None, Some((Accepted, 4)), true, Some(Remedy::Close)),
            (None, Some((Sent, 4)), false, Some(Remedy::Delete)),
            (None, Some((Prepared, TOLD)), false, Some(Remedy::Delete)),
            (None, Some((Prepared, TOLD + 1)), false, None),
            (None, Some((Finished, 4)), true, None),
            (None, None, true, None),
        ] {
            let [known, record] = [known, record].map(|one| one.map(|(delivery, at_)| at(delivery, at_)));
            let found = remedy(known.as_ref(), record.as_ref(), TOLD, is_over);
            assert_eq!(found, expected, "{known:?} {record:?}");
        }
    }
}
