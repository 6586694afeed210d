//! Hints between replicas that share a database: a kind has changed, never how.
//!
//! One task for each database listens to the hints of other replicas. Hints may be lost, so it also polls the revisions
//! of all kinds every second, in one small query.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use parking_lot::Mutex;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbBackend, DbErr, Statement,
    sqlx::postgres::{PgConnectOptions, PgListener},
};
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval, timeout},
};

#[cfg(feature = "simulation")]
use crate::store::disk::SimulatedDisk;
use crate::{Tasks, process::pause, store::database};

#[cfg(feature = "simulation")]
mod simulated;

/// The channel of hints. A payload is a topic, for a kind followed by the revision it has reached.
pub(crate) const CHANNEL: &str = "reveille";

/// Period of the poll of all revisions, in case a hint was lost.
const LOOK: Duration = Duration::from_secs(1);

/// Limit of a poll, after which the connection is given up.
const PATIENCE: Duration = Duration::from_secs(5);

/// The databases that the parts of this process share with other replicas. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct HintHubs {
    databases: Arc<Mutex<Vec<Arc<HintConnections>>>>,
    #[cfg(feature = "simulation")]
    of_disk: Arc<std::sync::OnceLock<Arc<HintHub>>>,
}

/// Hints from the other replicas on one database.
#[derive(Default)]
pub(crate) struct HintHub {
    topics: Mutex<HashMap<String, watch::Sender<u64>>>,
    /// Beginning of the last poll of all revisions that succeeded; `None`: no poll yet.
    looked: Mutex<Option<Instant>>,
}

/// The connections that feed a hub.
pub(crate) struct HintConnections {
    pub(crate) hub: Arc<HintHub>,
    /// Shared by all clones of a pool, and so identifies the pool.
    identity: Arc<PgConnectOptions>,
    /// A connection of its own, so that reads are fresh under any load. Another one receives hints.
    pub(crate) database: DatabaseConnection,
}

impl HintHubs {
    /// The connections to the shared `database`; its task starts at the first call.
    pub(crate) fn of(&self, tasks: &Tasks, database: &DatabaseConnection) -> Arc<HintConnections> {
        let identity = database.get_postgres_connection_pool().connect_options();
        let mut databases = self.databases.lock();
        if let Some(known) =
            databases.iter().find(|connections| Arc::ptr_eq(&connections.identity, &identity))
        {
            return Arc::clone(known);
        }
        let connections =
            HintConnections { hub: Arc::default(), identity, database: database::reserved(database, 1) };
        let connections = Arc::new(connections);
        databases.push(Arc::clone(&connections));
        tasks.spawn_until_shutdown("hints", Arc::clone(&connections).run());
        connections
    }

    /// Returns the hub of a disk in memory, of which a context has one.
    #[cfg(feature = "simulation")]
    pub(crate) fn of_disk(&self, tasks: &Tasks, disk: &SimulatedDisk) -> Arc<HintHub> {
        let start = || {
            let hub = Arc::<HintHub>::default();
            let listening = simulated::listen(Arc::clone(&hub), disk.clone());
            tasks.spawn_until_shutdown("hints", listening);
            hub
        };
        Arc::clone(self.of_disk.get_or_init(start))
    }
}

impl HintConnections {
    async fn run(self: Arc<Self>) -> anyhow::Result<Infallible> {
        let mut failures = 0;
        loop {
            let Err(error) = self.listen(&mut failures).await;
            failures += 1;
            tracing::warn!(%error, "no hints from other replicas");
            tokio::time::sleep(pause::after(failures)).await;
        }
    }

    /// Listens until the connection breaks.
    async fn listen(&self, failures: &mut u32) -> Result<Infallible, DbErr> {
        let broken = |error: sea_orm::sqlx::Error| DbErr::Custom(error.to_string());
        // A listener that is given up talks to its connection for as long as the system keeps it, so it has a pool of its
        // own.
        let own = database::reserved(&self.database, 1);
        let connect = async {
            let mut listener = PgListener::connect_with(own.get_postgres_connection_pool()).await?;
            listener.eager_reconnect(false);
            listener.listen(CHANNEL).await.map(|()| listener)
        };
        let listener = timeout(PATIENCE, connect).await;
        let mut listener = listener.map_err(|_| database::silent())?.map_err(broken)?;
        self.hub.tell_all();
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                heard = listener.try_recv() => match heard.map_err(broken)? {
                    Some(hint) => self.hub.heard(hint.payload()),
                    None => return Err(DbErr::Custom("the connection broke".to_owned())),
                },
                _ = looks.tick() => {
                    let look = timeout(PATIENCE, self.look()).await;
                    look.map_err(|_| database::silent())??;
                    *failures = 0;
                }
            }
        }
    }

    /// Asks where every kind stands.
    async fn look(&self) -> Result<(), DbErr> {
        let began = Instant::now();
        let all = Statement::from_string(DbBackend::Postgres, "SELECT kind, revision FROM revisions");
        for row in self.database.query_all_raw(all).await? {
            let (kind, revision): (String, i64) = (row.try_get("", "kind")?, row.try_get("", "revision")?);
            self.hub.tell(&kind, Some(revision.cast_unsigned()));
        }
        self.hub.looked(began);
        Ok(())
    }
}

impl HintHub {
    /// The newest revision of a kind in hints; for any other topic a number that changes with every hint.
    pub(crate) fn subscribe(&self, topic: &str) -> watch::Receiver<u64> {
        let mut topics = self.topics.lock();
        topics.entry(topic.to_owned()).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    fn heard(&self, payload: &str) {
        match payload.split_once(' ') {
            Some((kind, revision)) => self.tell(kind, revision.parse().ok()),
            None => self.tell(payload, None),
        }
    }

    /// Forwards a hint to the subscribers of its topic.
    pub(crate) fn tell(&self, topic: &str, revision: Option<u64>) {
        let topics = self.topics.lock();
        let Some(told) = topics.get(topic) else { return };
        match revision {
            Some(revision) => {
                told.send_if_modified(|known| std::mem::replace(known, revision) != revision);
            }
            None => told.send_modify(|count| *count += 1),
        }
    }

    /// Notes a poll of all revisions that began at `began`.
    pub(crate) fn looked(&self, began: Instant) {
        *self.looked.lock() = Some(began);
    }

    /// Returns a revision of a kind that is no older than `age`; `None` if it is not known that well.
    pub(crate) fn known_within(&self, kind: &str, age: Duration) -> Option<u64> {
        self.looked.lock().filter(|began| began.elapsed() <= age)?;
        self.topics.lock().get(kind).map(|told| *told.borrow())
    }

    /// Wakes all subscribers, because any earlier hint may have been missed.
    pub(crate) fn tell_all(&self) {
        for told in self.topics.lock().values() {
            told.send_modify(|_| {});
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_known_of_a_kind_ages_with_the_last_look() {
        let (hub, age) = (HintHub::default(), Duration::from_secs(3));
        let _heard = hub.subscribe("component");
        hub.tell("component", Some(4));
        assert_eq!(hub.known_within("component", age), None, "a hint says nothing of what was missed");
        hub.looked(Instant::now());
        tokio::time::advance(age).await;
        assert_eq!(hub.known_within("component", age), Some(4));
        assert_eq!(hub.known_within("option", age), None);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(hub.known_within("component", age), None);
    }
}
