//! The task that takes, renews and gives back leases.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use metrics::{counter, gauge};
use sea_orm::{DatabaseConnection, DbErr};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Held, Leases, Rows, SHARDS, Shard, Taken};
use crate::{
    Context, database,
    health::{Health, Work},
};

/// How soon to look again when there are shards to be had that could not be taken.
const AGAIN: Duration = Duration::from_millis(200);

const SHARDS_HELD: &str = "reveille_shards_held";
const HANDOVERS: &str = "reveille_shard_handovers_total";

/// How long giving back may take when the process stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// Owns the leases of this replica.
pub(super) struct Keeper {
    part: &'static str,
    rows: Rows,
    ttl: Duration,
    renewal: Duration,
    margin: Duration,
    hints: watch::Receiver<u64>,
    told: watch::Sender<Arc<Held>>,
    taken: Taken,
    /// Since when the surplus is kept.
    keeps_since: Option<Instant>,
    /// Is told what becomes of renewals.
    health: Health,
}

/// What one round found.
struct Round {
    held: Held,
    /// When to have the next one at the latest.
    next: Duration,
}

impl Keeper {
    pub(super) async fn new(
        context: &Context,
        leases: &Leases,
        database: &DatabaseConnection,
        told: watch::Sender<Arc<Held>>,
    ) -> Result<Self, DbErr> {
        metrics::describe_gauge!(SHARDS_HELD, "Shards of the work of a part that this replica holds");
        metrics::describe_counter!(HANDOVERS, "Shards that came to this replica and that went from it");
        let settings = &context.settings.leases;
        settings.check().map_err(|why| DbErr::Custom(format!("leases: {why}")))?;
        let (ttl, renewal, margin) = (settings.ttl(), settings.renewal(), settings.margin());
        let (part, taken) = (leases.part, Arc::clone(&leases.taken));
        let rows = Rows::new(context, part, Arc::clone(&leases.holder), ttl, database);
        let hints = rows.hints();
        rows.make().await?;
        let (keeps_since, health) = (None, context.health.clone());
        Ok(Self { part, rows, ttl, renewal, margin, hints, told, taken, keeps_since, health })
    }

    pub(super) async fn run(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let mut failures = 0;
        while !shutdown.is_cancelled() {
            let round = tokio::select! {
                // Not longer than a renewal: whatever the database does, there is time for another try.
                round = timeout(self.renewal, self.round()) => round,
                () = shutdown.cancelled() => break,
            };
            let pause = match round {
                Ok(Ok(round)) => {
                    failures = 0;
                    self.health.took(Work::Leases);
                    if self.tell_unless_lapsed(round.held) { round.next } else { Duration::ZERO }
                }
                Ok(Err(error)) => self.failed(&mut failures, &error),
                Err(_) => self.failed(&mut failures, &database::silent()),
            };
            self.rest(pause, &shutdown).await;
        }
        self.leave().await;
        Ok(())
    }

    /// Waits for the next round. When time runs out on what is held meanwhile, it is told as lost.
    async fn rest(&mut self, pause: Duration, shutdown: &CancellationToken) {
        let wake = Instant::now() + pause;
        let held = Arc::clone(&self.told.borrow());
        let until = held.until.filter(|_| !held.epochs.is_empty());
        let lost = until.filter(|until| *until < wake);
        tokio::select! {
            () = tokio::time::sleep_until(lost.unwrap_or(wake)) => {}
            _ = self.hints.changed() => {}
            () = shutdown.cancelled() => {}
        }
        if until.is_some_and(|until| until <= Instant::now()) {
            tracing::warn!(part = self.part, "leases ran out");
            self.tell(Held::nothing());
        }
    }

    fn failed(&mut self, failures: &mut u32, error: &DbErr) -> Duration {
        *failures += 1;
        // Nobody could take over meanwhile.
        self.keeps_since = None;
        // Replicas that get into each other's way once do not make the database one that renews nothing.
        if *failures > 1 || !database::is_transient(error) {
            self.health.refused(Work::Leases, error);
        }
        tracing::warn!(part = self.part, %error, "leases cannot be renewed");
        crate::pause::after(*failures).min(self.renewal)
    }

    /// Renews what is held, gives back what is beyond the fair share, or takes what is missing of it.
    async fn round(&mut self) -> Result<Round, DbErr> {
        // Before anything is asked, so that the lease lasts longer in the database than here.
        let began = Instant::now();
        let acted_upon = self.told.borrow().acted_upon();
        if acted_upon.is_empty() {
            // A backup may have been restored from before the rows were made.
            self.rows.make().await?;
        }
        let transaction = self.rows.begin().await?;
        let (alive, is_new) = transaction.live().await?;
        let mut epochs = transaction.renew(&acted_upon).await?;
        let share = fair_share(alive);
        let keeps = epochs.len() > share && self.still_takes_over(&epochs);
        if !keeps {
            self.keeps_since = None;
            self.stop_acting_on(&surplus(&mut epochs, share));
        }
        let missing = share.saturating_sub(epochs.len());
        if missing > 0 {
            epochs.extend(transaction.take(missing, &acted_upon).await?);
        }
        let held = epochs.keys().copied().collect::<Vec<_>>();
        let released = transaction.release_others(&held).await?;
        let change = transaction.next_change(&held, held.len() < share).await?;
        let change = if keeps { Some(AGAIN) } else { change };
        if is_new || released > 0 {
            transaction.hint().await?;
        }
        transaction.commit().await?;
        let until = Some(began + self.ttl - self.margin);
        let next = change.map_or(self.renewal, |change| self.renewal.min(change.max(AGAIN)));
        Ok(Round { held: Held { epochs, until }, next })
    }

    /// Whether what is held is still looked at, so that nothing of it is given away yet. After half the time of a lease it
    /// is given away all the same: one that never ends must not keep the others idle.
    fn still_takes_over(&mut self, held: &BTreeMap<Shard, u64>) -> bool {
        let taken = self.taken.read();
        let Some(taken) = taken.as_ref() else { return false };
        let is_taken = held.iter().all(|(shard, epoch)| taken.get(shard) == Some(epoch));
        let since = *self.keeps_since.get_or_insert_with(Instant::now);
        !is_taken && since.elapsed() < self.ttl / 2
    }

    /// Before they are somebody else's, so that they are never acted upon by two.
    fn stop_acting_on(&self, shards: &[Shard]) {
        if shards.is_empty() {
            return;
        }
        let mut held = Held::clone(&self.told.borrow());
        held.epochs.retain(|shard, _| !shards.contains(shard));
        self.tell(held);
    }

    /// Tells what a round has found. When time has run out meanwhile on something that goes on under the same epoch,
    /// nothing is told as held, and the next round takes it under a new one. Gives whether it was told.
    fn tell_unless_lapsed(&self, held: Held) -> bool {
        let mut lapsed = false;
        let before = Arc::clone(&self.told.borrow());
        // Under the lock, so that nobody asks between the look at the clock and the news.
        self.told.send_modify(|told| {
            lapsed = told.lapses_before(&held);
            *told = Arc::new(if lapsed { Held::nothing() } else { held });
        });
        if lapsed {
            tracing::warn!(part = self.part, "leases were renewed too late, taking them anew");
        }
        self.count(&before);
        !lapsed
    }

    fn tell(&self, held: Held) {
        let before = self.told.send_replace(Arc::new(held));
        self.count(&before);
    }

    /// Counts what has changed since `before` was told.
    fn count(&self, before: &Held) {
        let held = Arc::clone(&self.told.borrow());
        let (part, before) = (self.part, &before.epochs);
        let lost = before.iter().filter(|(shard, epoch)| held.epochs.get(shard) != Some(epoch)).count();
        let gained = held.epochs.iter().filter(|(shard, epoch)| before.get(shard) != Some(epoch)).count();
        if gained + lost > 0 {
            tracing::info!(part, shards = held.epochs.len(), gained, lost, "leases changed");
            let count = |shards| u64::try_from(shards).unwrap_or_default();
            counter!(HANDOVERS, "part" => part, "way" => "in").increment(count(gained));
            counter!(HANDOVERS, "part" => part, "way" => "out").increment(count(lost));
        }
        gauge!(SHARDS_HELD, "part" => part).set(u32::try_from(held.epochs.len()).map_or(f64::MAX, f64::from));
    }

    async fn leave(&self) {
        self.tell(Held::nothing());
        let leave = async {
            let transaction = self.rows.begin().await?;
            transaction.leave().await?;
            transaction.hint().await?;
            transaction.commit().await
        };
        match timeout(FAREWELL, leave).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "leases could not be given back; they will run out"),
            Err(_) => tracing::warn!("leases could not be given back in time; they will run out"),
        }
    }
}

/// Takes what is beyond a `share` out of what is `held`.
fn surplus(held: &mut BTreeMap<Shard, u64>, share: usize) -> Vec<Shard> {
    let beyond = held.len().saturating_sub(share);
    (0..beyond).filter_map(|_| held.pop_last()).map(|(shard, _)| shard).collect()
}

/// How many shards each of `alive` replicas may hold.
fn fair_share(alive: u64) -> usize {
    let share = u64::from(SHARDS).div_ceil(alive.max(1));
    usize::try_from(share).unwrap_or(usize::from(SHARDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything() {
        let shares = [0, 1, 2, 3, 5, 64, 100].map(fair_share);
        assert_eq!(shares, [64, 64, 32, 22, 13, 1, 1]);
    }
}
