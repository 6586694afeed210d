//! Readiness of a part: it has started, is not stopping, and its database accepts writes and, where replicas share it,
//! renewals of leases.
//!
//! Each of the two is judged by its own last outcome: they have connections of their own, of which one may be refused
//! while the other works. Leases are renewed every few seconds. After a refused write, trial writes continue until one
//! succeeds, so that the part recovers also without any caller. While writes succeed nothing is tried: an idle database
//! counts as unchanged.
//!
//! *Ready* and *started* are separate answers. A database without room is the same for every replica, so removing all
//! of them from service would lose the reads as well and gain nothing. A load balancer that removes replicas should ask
//! for *started*.

use std::{fmt, future::Future, sync::Arc};

use domain::core::time::Timestamp;
use parking_lot::Mutex;
use tokio::{sync::watch, time::timeout};

use crate::{
    Tasks,
    mesh::time,
    process::{clock, pause},
};

/// Readiness of a part. Clones are about the same part.
#[derive(Clone, Default)]
pub struct PartHealth(Arc<HealthInner>);

#[derive(Default)]
struct HealthInner {
    state: watch::Sender<HealthState>,
    /// Kinds of the ledgers with trial writes.
    kinds: Mutex<Vec<&'static str>>,
}

/// Work of a part that needs its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatabaseWork {
    /// Accepting the ledgers' writes.
    Writes,
    /// Renewing leases.
    Leases,
}

/// Refusal of work by the database of a part, for no fault of the content.
#[derive(Debug)]
pub(crate) struct DatabaseRefusal {
    /// Whether the database does not answer.
    pub(crate) is_away: bool,
    pub(crate) error: String,
}

/// The state of a part and its database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct HealthState {
    stage: PartStage,
    writes: Option<DatabaseTrouble>,
    /// Refused writes since the last successful one, trials excluded.
    refusals: u32,
    leases: Option<DatabaseTrouble>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PartStage {
    #[default]
    Starting,
    Started,
    Stopping,
}

/// Trouble that prevents work.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DatabaseTrouble {
    work: DatabaseWork,
    /// Whether the database does not answer.
    is_away: bool,
    since: Timestamp,
    error: String,
}

impl fmt::Display for DatabaseTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { work, is_away, since, error } = self;
        let since = prost_types::Timestamp { nanos: 0, ..time::to_wire(*since) };
        let what = match (is_away, work) {
            (true, _) => "does not answer",
            (false, DatabaseWork::Writes) => "takes no writes",
            (false, DatabaseWork::Leases) => "renews no leases",
        };
        write!(f, "the database {what} (since {since}: {error})")
    }
}

impl HealthState {
    fn ready(&self) -> Result<(), String> {
        match (self.stage, self.writes.as_ref().or(self.leases.as_ref())) {
            (PartStage::Stopping, _) => Err("is stopping".to_owned()),
            (_, Some(trouble)) => Err(trouble.to_string()),
            (PartStage::Starting, None) => Err("has not started yet".to_owned()),
            (PartStage::Started, None) => Ok(()),
        }
    }

    fn trouble(&mut self, work: DatabaseWork) -> &mut Option<DatabaseTrouble> {
        match work {
            DatabaseWork::Writes => &mut self.writes,
            DatabaseWork::Leases => &mut self.leases,
        }
    }

    /// Notes a refusal. The beginning of the trouble is kept until it ends, the reason is replaced. Returns whether
    /// this refusal is the first.
    fn refused(&mut self, work: DatabaseWork, now: Timestamp, is_away: bool, error: String) -> bool {
        if work == DatabaseWork::Writes {
            self.refusals = self.refusals.saturating_add(1);
        }
        let trouble = self.trouble(work);
        let since = trouble.as_ref().map_or(now, |trouble| trouble.since);
        trouble.replace(DatabaseTrouble { work, is_away, since, error }).is_none()
    }

    /// Notes a successful trial. The trial needed as much room as most writes do, and a larger write may be refused
    /// again: that counts on, so that trials become less frequent.
    fn tried(&mut self) -> bool {
        self.writes.take().is_some()
    }

    /// Notes a success other than a trial.
    fn took(&mut self, work: DatabaseWork) -> bool {
        if work == DatabaseWork::Writes {
            self.refusals = 0;
        }
        self.trouble(work).take().is_some()
    }
}

impl PartHealth {
    /// Marks the part as started: ready unless its database is in trouble.
    pub(crate) fn started(&self) {
        self.0.state.send_if_modified(|state| {
            let is_starting = state.stage == PartStage::Starting;
            if is_starting {
                state.stage = PartStage::Started;
            }
            is_starting
        });
    }

    /// Marks the part as stopping: neither ready nor started from now on.
    pub(crate) fn stopping(&self) {
        self.0.state.send_modify(|state| state.stage = PartStage::Stopping);
    }

    /// Returns whether the part has started and is not stopping, whatever the state of its database.
    pub(crate) fn has_started(&self) -> bool {
        self.0.state.borrow().stage == PartStage::Started
    }

    /// Returns whether the part can do all of its work.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub(crate) fn ready(&self) -> Result<(), String> {
        self.0.state.borrow().ready()
    }

    /// Signals possible changes of [`Self::has_started`] and [`Self::ready`].
    pub(crate) fn changes(&self) -> HealthChanges {
        HealthChanges(self.0.state.subscribe())
    }

    /// Notes committed work.
    pub(crate) fn took(&self, work: DatabaseWork) {
        self.settle(work, |state| state.took(work));
    }

    /// Notes work that the part's database refused, for no fault of its content.
    pub(crate) fn refused(&self, work: DatabaseWork, refusal: impl Into<DatabaseRefusal>) {
        let DatabaseRefusal { is_away, error } = refusal.into();
        self.0.state.send_modify(|state| {
            if state.refused(work, clock::now(), is_away, error.clone()) {
                tracing::warn!(%error, ?work, "the database is in trouble");
            }
        });
    }

    /// Makes trial writes repeatedly for as long as the database of the part takes no writes of its ledgers, one of
    /// which is of `kind`. A part has one database, so one trial serves all of its kinds: the `trial` of the first
    /// caller.
    pub(crate) fn watch_over<T>(
        &self,
        tasks: &Tasks,
        kind: &'static str,
        trial: impl Fn(Vec<&'static str>) -> T + Send + Sync + 'static,
    ) where
        T: Future<Output = Result<(), DatabaseRefusal>> + Send + 'static,
    {
        let mut kinds = self.0.kinds.lock();
        kinds.push(kind);
        if kinds.len() == 1 {
            tasks.spawn_until_shutdown("health", self.clone().try_again(trial));
        }
    }

    async fn try_again<T>(self, trial: impl Fn(Vec<&'static str>) -> T) -> anyhow::Result<()>
    where
        T: Future<Output = Result<(), DatabaseRefusal>>,
    {
        let mut state = self.0.state.subscribe();
        loop {
            let refusals = state.wait_for(|state| state.writes.is_some()).await?.refusals;
            let over = state.wait_for(|state| state.writes.is_none());
            if timeout(pause::after(refusals), over).await.is_ok() {
                continue;
            }
            let kinds = self.0.kinds.lock().clone();
            match trial(kinds).await {
                Ok(()) => self.settle(DatabaseWork::Writes, HealthState::tried),
                Err(refusal) => self.refused(DatabaseWork::Writes, refusal),
            }
        }
    }

    fn settle(&self, work: DatabaseWork, over: impl FnOnce(&mut HealthState) -> bool) {
        let was_in_trouble = self.0.state.send_if_modified(over);
        if was_in_trouble {
            tracing::info!(?work, "the database is out of trouble");
        }
    }
}

/// Signal of possible changes.
pub(crate) struct HealthChanges(watch::Receiver<HealthState>);

impl HealthChanges {
    /// Returns when an answer may have changed since this was called last.
    pub(crate) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // The holder of this signal keeps the sender alive.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1000)
    }

    /// A change of the state, and its name.
    type Step<'a> = (&'a str, &'a dyn Fn(&mut HealthState));

    /// The readiness after each of these changes.
    fn table(steps: &[Step<'_>]) -> String {
        let (mut table, mut state) = (String::new(), HealthState::default());
        for (name, change) in steps {
            change(&mut state);
            let ready = state.ready().err().unwrap_or_else(|| "ready".to_owned());
            writeln!(table, "{name} {}: {ready}", state.refusals).unwrap();
        }
        table
    }

    #[test]
    fn the_last_write_tells() {
        let work = DatabaseWork::Writes;
        let full = |seconds| {
            move |state: &mut HealthState| {
                state.refused(work, at(seconds), false, "full".into());
            }
        };
        let table = table(&[
            ("nothing", &|_| {}),
            ("refused", &full(1)),
            ("started", &|state| state.stage = PartStage::Started),
            ("away", &|state| assert!(!state.refused(work, at(2), true, "broken pipe".into()))),
            ("refused", &full(3)),
            ("tried", &|state| assert!(state.tried() && !state.tried())),
            ("refused", &full(4)),
            ("took", &|state| assert!(state.took(work) && !state.took(work))),
            ("refused", &full(5)),
            ("stopping", &|state| state.stage = PartStage::Stopping),
        ]);
        expect![[r#"
            nothing 0: has not started yet
            refused 1: the database takes no writes (since 1970-01-01T00:00:01Z: full)
            started 1: the database takes no writes (since 1970-01-01T00:00:01Z: full)
            away 2: the database does not answer (since 1970-01-01T00:00:01Z: broken pipe)
            refused 3: the database takes no writes (since 1970-01-01T00:00:01Z: full)
            tried 3: ready
            refused 4: the database takes no writes (since 1970-01-01T00:00:04Z: full)
            took 0: ready
            refused 1: the database takes no writes (since 1970-01-01T00:00:05Z: full)
            stopping 1: is stopping
            "#]]
        .assert_eq(&table);
    }

    #[test]
    fn writes_and_leases_tell_each_for_itself() {
        let refused = |work, seconds| {
            move |state: &mut HealthState| {
                assert!(state.refused(work, at(seconds), false, format!("{work:?}")))
            }
        };
        let table = table(&[
            ("started", &|state| state.stage = PartStage::Started),
            ("leases", &refused(DatabaseWork::Leases, 1)),
            ("tried", &|state| assert!(!state.tried())),
            ("a write", &|state| assert!(!state.took(DatabaseWork::Writes))),
            ("both", &refused(DatabaseWork::Writes, 2)),
            ("renewed", &|state| assert!(state.took(DatabaseWork::Leases))),
            ("both", &refused(DatabaseWork::Leases, 3)),
            ("tried", &|state| assert!(state.tried())),
            ("renewed", &|state| assert!(state.took(DatabaseWork::Leases))),
        ]);
        expect![[r#"
            started 0: ready
            leases 0: the database renews no leases (since 1970-01-01T00:00:01Z: Leases)
            tried 0: the database renews no leases (since 1970-01-01T00:00:01Z: Leases)
            a write 0: the database renews no leases (since 1970-01-01T00:00:01Z: Leases)
            both 1: the database takes no writes (since 1970-01-01T00:00:02Z: Writes)
            renewed 1: the database takes no writes (since 1970-01-01T00:00:02Z: Writes)
            both 1: the database takes no writes (since 1970-01-01T00:00:02Z: Writes)
            tried 1: the database renews no leases (since 1970-01-01T00:00:03Z: Leases)
            renewed 1: ready
            "#]]
        .assert_eq(&table);
    }

    #[test]
    fn who_stops_does_not_start_any_more() {
        let health = PartHealth::default();
        health.started();
        assert!(health.has_started() && health.ready().is_ok());
        health.stopping();
        health.started();
        assert!(!health.has_started() && health.ready().is_err());
    }
}
