//! Makes good what the database has lost of transitions: its stand-in took over without the last commits, or a backup
//! was restored.
//!
//! What was asked of the upstream has happened whether that is on record or not, and without the record it would be
//! asked for again. So what this replica knows about its own transitions is written down once more, and what came back
//! although it was over or taken back goes again. Every replica knows what is open of the others, and does the same for
//! what it takes over from one that has died with the database.

use std::{collections::HashSet, sync::Arc};

use chassis::lease::Takeover;
use domain::{
    boot::component::loss::{Record, Remedy, remedy},
    core::trouble::Trouble,
};
use proto::power::{Delivery, Transition};

use crate::{
    act::Actor,
    convert,
    journal::{Changes, is_open},
    takeover::Open,
};

/// Whose transitions are made good.
#[derive(Clone, Copy)]
pub(crate) enum Whose<'a> {
    /// Those of this replica, which hears the answers to what it sends.
    Ours,
    /// Those that come from another replica, whose answers nobody hears. They are not acted upon yet.
    Coming(&'a Takeover),
}

impl Actor {
    /// Compares the record with what is known, once it may have lost something of it.
    pub(crate) async fn make_good(&self, open: &Open, whose: Whose<'_>) {
        let record = self.journal.all().into_iter().filter(|one| open.get(&one.id).is_none());
        let affected: Vec<(Remedy, Arc<Transition>)> = open
            .all()
            .cloned()
            .chain(record)
            .filter_map(|one| {
                let is_over = self.intents.lock().are_over(&one);
                let known = open.get(&one.id).map(|known| known.revision);
                let record = self.journal.get(&one.id);
                let record = record.map(|held| Record { revision: held.revision, is_open: is_open(&held) });
                Some((remedy(known, record, open.has_left(&one.id), is_over)?, one))
            })
            .collect();
        let returned = affected.iter().filter(|(remedy, _)| remedy.is_of_what_came_back());
        let returned: HashSet<String> = returned.map(|(_, one)| one.id.clone()).collect();
        let is_ours = |id: &str| match whose {
            Whose::Ours => self.known.custody.has(id),
            Whose::Coming(takeover) => takeover.gains(id),
        };
        let ours = affected.into_iter().filter(|(_, one)| is_ours(&one.id));
        let mut ours: Vec<_> = ours.collect();
        ours.sort_by_key(|(remedy, _)| *remedy);
        for (remedy, transition) in ours {
            tracing::warn!(transition = transition.id, ?remedy, "the database had lost how it stands");
            self.mend(remedy, &transition, whose, &returned).await;
        }
    }

    /// Those that `returned` are in nobody's way, also where it is for another replica to have them go again.
    async fn mend(
        &self,
        remedy: Remedy,
        transition: &Transition,
        whose: Whose<'_>,
        returned: &HashSet<String>,
    ) {
        let id = [transition.id.as_str()];
        let fence = match whose {
            Whose::Ours => self.known.custody.fence(id),
            Whose::Coming(takeover) => takeover.fence(id),
        };
        let Some(fence) = fence else { return };
        let mended = match remedy {
            Remedy::Close => {
                let over = Transition { delivery: Delivery::Finished.into(), ..transition.clone() };
                let trouble = Trouble::failed("the database had lost its end");
                let over = convert::with_trouble(over, trouble.as_ref());
                self.journal.put(over, &fence).await
            }
            Remedy::Delete => {
                let delete = vec![transition.id.clone()];
                self.journal.write(Changes { put: Vec::new(), delete }, &fence).await
            }
            Remedy::Renew | Remedy::Restore => {
                let restored = self.journal.restore(transition, returned, &fence).await;
                if restored.is_ok() && matches!(whose, Whose::Ours) {
                    self.take_up(transition);
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
    fn take_up(&self, transition: &Transition) {
        if transition.delivery() != Delivery::Unknown {
            self.go_on_with(transition);
        }
    }
}
