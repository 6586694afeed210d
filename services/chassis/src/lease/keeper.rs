//! The task that acquires, renews and releases the lease of a role.

use std::{sync::Arc, time::Duration};

use metrics::{counter, gauge};
use sea_orm::{DatabaseConnection, DbErr};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{HeldEpoch, Role, RoleTable, TakenOver, current, lapses, turns::EngineTurns};
use crate::{
    Context,
    mesh::health::{DatabaseWork, PartHealth},
    store::database,
};

/// Pause before the next attempt at a role that can be had and could not be acquired.
const AGAIN: Duration = Duration::from_millis(200);

const ROLE_HELD: &str = "reveille_role_held";
const ROLE_CHANGES: &str = "reveille_role_changes_total";

/// Limit for the release when the process stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// Owns the lease of this replica.
pub(super) struct LeaseKeeper {
    part: &'static str,
    row: RoleTable,
    ttl: Duration,
    renewal: Duration,
    margin: Duration,
    hints: watch::Receiver<u64>,
    told: watch::Sender<Option<HeldEpoch>>,
    taken_over: TakenOver,
    /// Last epoch under which this replica held the role; 0: none.
    last: u64,
    /// Turns of the engine that runs here.
    turns: EngineTurns,
    /// Longest time in which a turn may make no progress.
    stall: Duration,
    /// Whether the part lets this replica acquire the role.
    joined: watch::Receiver<bool>,
    /// Time at which the replica takes part in holding the role again, after an engine that made no progress.
    resumes: Option<Instant>,
    /// Receives the outcomes of renewals.
    health: PartHealth,
}

/// Result of one round.
struct RenewalRound {
    held: Option<HeldEpoch>,
    /// Longest pause before the next round.
    next: Duration,
}

impl LeaseKeeper {
    pub(super) async fn new(
        context: &Context,
        role: &Role,
        database: &DatabaseConnection,
        told: watch::Sender<Option<HeldEpoch>>,
    ) -> Result<Self, DbErr> {
        metrics::describe_gauge!(ROLE_HELD, "Whether this replica holds the role of a part, and acts");
        metrics::describe_counter!(
            ROLE_CHANGES,
            "How often this replica acquired and lost the role of a part"
        );
        let settings = &context.settings.leases;
        settings.check().map_err(|why| DbErr::Custom(format!("leases: {why}")))?;
        let (ttl, part) = (settings.ttl(), role.part);
        let row = RoleTable::new(context, part, Arc::clone(&role.holder), ttl, database);
        let hints = row.hints();
        row.make().await?;
        gauge!(ROLE_HELD, "part" => part).set(0.0);
        Ok(Self {
            part,
            row,
            ttl,
            renewal: settings.renewal(),
            margin: settings.margin(),
            hints,
            told,
            taken_over: Arc::clone(&role.taken_over),
            last: 0,
            turns: role.turns.clone(),
            stall: settings.stall(),
            joined: role.takes_part.subscribe(),
            resumes: None,
            health: context.health.clone(),
        })
    }

    pub(super) async fn run(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let mut failures = 0;
        while !shutdown.is_cancelled() {
            self.release_if_stalled().await;
            let round = tokio::select! {
                // The round must not take longer than a renewal, so that there is time for another try whatever the
                // database does.
                round = timeout(self.renewal, self.round()) => round,
                () = shutdown.cancelled() => break,
            };
            let pause = match round {
                Ok(Ok(round)) => {
                    failures = 0;
                    self.health.took(DatabaseWork::Leases);
                    self.last = round.held.map_or(self.last, |held| held.epoch);
                    if self.tell_unless_lapsed(round.held) { round.next } else { Duration::ZERO }
                }
                Ok(Err(error)) => self.failed(&mut failures, &error),
                Err(_) => self.failed(&mut failures, &database::silent()),
            };
            self.rest(pause, &shutdown).await;
        }
        self.release(FAREWELL).await;
        Ok(())
    }

    /// Waits for the next round. A lease that runs out meanwhile is lost.
    async fn rest(&mut self, pause: Duration, shutdown: &CancellationToken) {
        let wake = Instant::now() + pause;
        let until = self.told.borrow().and_then(|held| held.until);
        let lost = until.filter(|until| *until < wake);
        tokio::select! {
            () = tokio::time::sleep_until(lost.unwrap_or(wake)) => {}
            _ = self.hints.changed() => {}
            Ok(()) = self.joined.changed() => {}
            () = shutdown.cancelled() => {}
        }
        if until.is_some_and(|until| until <= Instant::now()) {
            tracing::warn!(part = self.part, "lease expired");
            self.tell(None);
        }
    }

    fn failed(&self, failures: &mut u32, error: &DbErr) -> Duration {
        *failures += 1;
        // Replicas that get into each other's way once do not make the database one that renews nothing.
        if *failures > 1 || !database::is_transient(error) {
            self.health.refused(DatabaseWork::Leases, error);
        }
        tracing::warn!(part = self.part, %error, "lease cannot be renewed");
        crate::process::pause::after(*failures).min(self.renewal)
    }

    /// Releases the role if its engine makes no progress, so that another replica acts.
    async fn release_if_stalled(&mut self) {
        let stalled = self.turns.stalled(self.stall).filter(|_| self.told.borrow().is_some());
        let Some((turn, lasts)) = stalled else { return };
        let seconds = lasts.as_secs();
        tracing::error!(part = self.part, turn, seconds, "engine makes no progress, releasing the role");
        self.resumes = Some(Instant::now() + self.ttl);
        self.release(self.renewal).await;
    }

    /// Returns whether this replica takes part in holding the role. A replica whose engine hangs does not: the engine
    /// cannot be dropped.
    fn takes_part(&self, now: Instant) -> bool {
        let resumed = self.resumes.is_none_or(|resumes| resumes <= now);
        *self.joined.borrow() && resumed && self.turns.stalled(self.stall).is_none()
    }

    /// Renews the lease, or acquires the role.
    async fn round(&self) -> Result<RenewalRound, DbErr> {
        // Before anything is asked, so that the lease lasts longer in the database than here.
        let began = Instant::now();
        let until = Some(began + self.ttl - self.margin);
        let acted_under = current(*self.told.borrow());
        if let Some(epoch) = acted_under {
            let taken_over = *self.taken_over.borrow() == Some(epoch);
            if self.row.renew(epoch, taken_over).await? {
                return Ok(RenewalRound { held: Some(HeldEpoch { epoch, until }), next: self.renewal });
            }
        }
        let takes_part = self.takes_part(began);
        if takes_part && let Some(epoch) = self.row.acquire(self.last).await? {
            return Ok(RenewalRound { held: Some(HeldEpoch { epoch, until }), next: self.renewal });
        }
        let next = match self.row.look().await? {
            Some(elsewhere) => {
                if elsewhere.taken_over {
                    self.taken_over.send_replace(Some(elsewhere.epoch));
                }
                if takes_part { elsewhere.left.max(AGAIN) } else { self.renewal }
            }
            None => {
                // A backup may have been restored from before the row was made.
                self.row.make().await?;
                AGAIN
            }
        };
        Ok(RenewalRound { held: None, next: self.renewal.min(next) })
    }

    /// Publishes the result of a round. If the lease lapsed during the round under the same epoch, the role is
    /// published as not held, and the next round acquires it under a new epoch. Returns whether the result was
    /// published.
    fn tell_unless_lapsed(&self, held: Option<HeldEpoch>) -> bool {
        let mut lapsed = false;
        let before = *self.told.borrow();
        // The clock is read under the lock, so that no reader sees the state between the reading and the update.
        self.told.send_modify(|told| {
            lapsed = lapses(*told, held);
            *told = if lapsed { None } else { held };
        });
        if lapsed {
            tracing::warn!(part = self.part, "lease renewed too late, acquiring the role under a new epoch");
        }
        self.count(before);
        !lapsed
    }

    fn tell(&self, held: Option<HeldEpoch>) {
        let before = self.told.send_replace(held);
        self.count(before);
    }

    /// Counts and logs the changes since `before` was published.
    fn count(&self, before: Option<HeldEpoch>) {
        let (part, now) = (self.part, *self.told.borrow());
        let [before, now] = [before, now].map(|held| held.map(|held| held.epoch));
        gauge!(ROLE_HELD, "part" => part).set(if now.is_some() { 1.0 } else { 0.0 });
        if before == now {
            return;
        }
        if before.is_some() {
            tracing::info!(part, epoch = before, "role lost");
            counter!(ROLE_CHANGES, "part" => part, "way" => "out").increment(1);
        }
        if now.is_some() {
            tracing::info!(part, epoch = now, "role acquired");
            counter!(ROLE_CHANGES, "part" => part, "way" => "in").increment(1);
        }
    }

    async fn release(&self, patience: Duration) {
        self.tell(None);
        match timeout(patience, self.row.release()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "lease could not be released; it will expire"),
            Err(_) => tracing::warn!("lease could not be released in time; it will expire"),
        }
    }
}
