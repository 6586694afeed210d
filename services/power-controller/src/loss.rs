//! Makes good what the database has lost of the transitions of this replica: its stand-in took over without the last
//! commits, or a backup was restored.
//!
//! What was asked of the upstream has happened whether that is on record or not, and without the record it would be
//! asked for again. So what this replica knows about its own is written down once more. What it only meant to ask for
//! is given up, and decided on anew. About transitions of others nothing is done: whoever has them does the same.

use std::{collections::HashMap, sync::Arc};

use proto::power::{Delivery, Transition};
use tokio::time::Instant;

use crate::{act::Actor, journal::is_open};

/// What makes good a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// Nothing was lost.
    None,
    /// It is recorded once more as it is known.
    Restore,
    /// The upstream has not heard of it: nothing comes of it.
    Withdraw,
    /// It is recorded as over, which it is.
    Close,
}

/// The remedy for a transition that is `known` to be open, or none is known that is, with this `record`. `is_over`: all of
/// its attempts are known to be over.
fn remedy(known: Option<&Transition>, record: Option<&Transition>, is_over: bool) -> Remedy {
    match (known, record) {
        (Some(known), None) if known.delivery() == Delivery::Prepared => Remedy::Withdraw,
        (Some(_), None) => Remedy::Restore,
        (Some(known), Some(record)) if record.revision < known.revision => Remedy::Restore,
        (None, Some(record)) if is_over && is_open(record) => Remedy::Close,
        (Some(_) | None, _) => Remedy::None,
    }
}

impl Actor {
    /// Compares the record with the transitions that are `known` to be open, once it may have lost some of them.
    pub(crate) async fn make_good(&self, known: &HashMap<String, Arc<Transition>>) {
        let record = self.journal.all();
        let unknown = record.iter().filter(|one| !known.contains_key(&one.id)).cloned();
        for transition in known.values().cloned().chain(unknown) {
            if !self.known.custody.has(&transition.id) {
                continue;
            }
            let id = transition.id.as_str();
            let is_over = self.intents.lock().are_over(&transition);
            match remedy(known.get(id).map(|one| &**one), self.journal.get(id).as_deref(), is_over) {
                Remedy::None => {}
                Remedy::Restore => self.restore(&transition).await,
                Remedy::Withdraw => self.give_up(&transition),
                Remedy::Close => {
                    let error = "the database had lost its end".to_owned();
                    let over = Delivery::Finished.into();
                    self.restore(&Transition { delivery: over, error, ..Transition::clone(&transition) })
                        .await;
                }
            }
        }
    }

    async fn restore(&self, transition: &Transition) {
        let id = transition.id.as_str();
        let Some(fence) = self.known.custody.fence([id]) else { return };
        match self.journal.restore(transition, &fence).await {
            Ok(()) => {
                tracing::warn!(transition = id, "the database had lost it, and it is recorded once more")
            }
            // That is for the other replica to do.
            Err(lost) => return tracing::info!(transition = id, why = %lost, "not recorded once more"),
        }
        match transition.delivery() {
            Delivery::Accepted => self.queues.unfollowed.mark([id.into()]),
            // Somebody may be looking what became of it at this moment, and will write that down.
            Delivery::Unknown => {
                let later = Instant::now() + self.known.upstream_deadline() * 2;
                self.queues.undelivered.mark_at(id.into(), later);
            }
            Delivery::Prepared => self.queues.undelivered.mark([id.into()]),
            Delivery::Unspecified | Delivery::Sent | Delivery::Refused | Delivery::Finished => {}
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
    fn what_was_asked_for_is_recorded_again_and_what_was_not_is_given_up() {
        use Delivery::{Accepted, Finished, Prepared, Sent, Unknown};
        for (known, record, is_over, expected) in [
            (Some((Prepared, 5)), None, false, Remedy::Withdraw),
            (Some((Sent, 5)), None, false, Remedy::Restore),
            (Some((Unknown, 5)), None, false, Remedy::Restore),
            (Some((Accepted, 5)), None, false, Remedy::Restore),
            (Some((Accepted, 5)), Some((Prepared, 3)), false, Remedy::Restore),
            (Some((Accepted, 5)), Some((Accepted, 5)), false, Remedy::None),
            (Some((Accepted, 5)), Some((Finished, 6)), false, Remedy::None),
            (Some((Sent, 5)), Some((Accepted, 9)), false, Remedy::None),
            (None, Some((Accepted, 4)), true, Remedy::Close),
            (None, Some((Sent, 4)), true, Remedy::Close),
            (None, Some((Prepared, 4)), false, Remedy::None),
            (None, Some((Finished, 4)), true, Remedy::None),
        ] {
            let [known, record] = [known, record].map(|one| one.map(|(delivery, at_)| at(delivery, at_)));
            let found = remedy(known.as_ref(), record.as_ref(), is_over);
            assert_eq!(found, expected, "{known:?} {record:?}");
        }
    }
}
