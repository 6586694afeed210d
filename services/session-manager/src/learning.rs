//! Learns how long nodes take in sessions of each operation and template, and estimates with it when sessions end.

use std::sync::Arc;

use chassis::{Fault, lease::Fence, process::clock::now};
use domain::{
    boot::session::{
        Session,
        estimate::{SessionEstimate, estimate, expected},
        rollout::outcome,
    },
    core::{durations::DurationProfile, id::ComponentId},
};

use crate::{
    durations::{ExpectedDuration, LearnedDurations, durations_key},
    record::DurationRecord,
    shared::ManagerState,
};

/// Most operations and templates with durations on record. The one that was learned from longest ago goes first.
const MOST_TEMPLATES: usize = 1_000;

impl ManagerState {
    /// Adds the durations that were seen in a session that has ended, of which `succeeded` members are as wanted. They are worth
    /// no retry: without them the next estimates rest on the earlier sessions alone.
    pub(crate) async fn learn(
        &self,
        session: &Session,
        seen: DurationProfile,
        succeeded: usize,
        fence: Fence,
    ) {
        // A replica that took over saw the slow members alone, and a cancelled session had the quick ones alone.
        let is_whole = 2 * seen.total() >= succeeded as u64 && session.cancellation.is_none();
        if seen.total() == 0 || !is_whole {
            return;
        }
        let learned = DurationRecord::new(LearnedDurations::new(session, seen, now()));
        if let Err(fault) = self.keep(learned, fence).await {
            tracing::warn!(%fault, session = session.name, "the durations of a session are not learned");
        }
    }

    async fn keep(&self, newer: DurationRecord, fence: Fence) -> Result<(), Fault> {
        let surplus = self.surplus(&newer.key);
        let write = self.durations.write_fenced(fence, move |draft| {
            let older =
                draft.get(&newer.key).map(|record| record.learned.profile.clone()).unwrap_or_default();
            let profile = older.with(&newer.learned.profile);
            draft.put(DurationRecord { learned: LearnedDurations { profile, ..newer.learned }, ..newer });
            if let Some(key) = surplus {
                draft.delete(&key);
            }
            Ok(())
        });
        write.await.map(|((), _revision)| ())
    }

    /// Returns the key of the record that a new one takes the place of, if there are as many as may be.
    fn surplus(&self, key: &str) -> Option<Arc<str>> {
        let view = self.durations.view();
        if view.len() < MOST_TEMPLATES || view.get(key).is_some() {
            return None;
        }
        view.all()
            .into_iter()
            .min_by_key(|record| record.learned.learned_at)
            .map(|record| Arc::clone(&record.key))
    }

    fn learned(&self, session: &Session) -> DurationProfile {
        let record = self.durations.view().get(&durations_key(session));
        record.map(|record| record.learned.profile.clone()).unwrap_or_default()
    }

    /// Returns the expected end of `session`, from the mirror of components; `None`: it does not run, or too little is known.
    pub(crate) fn estimate(&self, session: &Session) -> Option<SessionEstimate> {
        let outcome = |id: &ComponentId| outcome(session, self.components.get(id.as_str()).as_deref());
        estimate(session, &self.learned(session), outcome, now())
    }

    /// Returns how long `count` nodes of `session` will take; `None`: too little is known.
    pub(crate) fn expectation(&self, session: &Session, count: usize) -> Option<ExpectedDuration> {
        let learned = self.learned(session);
        let (likely, late) = expected(&learned, count)?;
        Some(ExpectedDuration { likely, late, learned_from: learned.total() })
    }
}
