//! The holder of a role, and its writes.

use std::{pin::pin, sync::mpsc, time::Duration};

use chassis::{
    Fault, Settings,
    lease::{Fence, Role, Term},
};
use futures_util::StreamExt;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, Statement, TransactionTrait};
use test_databases::EmptyDatabase;

use super::{
    PATIENCE, Replica, eventually, long_leases,
    note::{self, Note},
    proxy::{Cut, Proxy},
    served::Served,
    shared_database, short_leases,
};

/// A replica that takes part in holding a role.
struct Holder {
    replica: Replica,
    role: Role,
}

impl Holder {
    async fn start(settings: Settings, database: &EmptyDatabase) -> Self {
        let holder = Self::stand_by(settings, database).await;
        holder.role.take_part();
        holder
    }

    /// Starts a replica that does not take part yet.
    async fn stand_by(settings: Settings, database: &EmptyDatabase) -> Self {
        let replica = Replica::with(settings, database).await;
        let role = Role::start(&replica.context, "test", &replica.database).await.unwrap();
        Self { replica, role }
    }

    /// Waits until this replica holds the role.
    async fn term(&self) -> Term {
        let mut terms = pin!(self.role.terms());
        let next = async {
            loop {
                if let Some(term) = terms.next().await.unwrap().filter(Term::is_current) {
                    return term;
                }
            }
        };
        tokio::time::timeout(PATIENCE, next).await.unwrap()
    }

    async fn put(&self, name: &'static str, fence: Fence) -> Result<(), Fault> {
        let put = self.replica.ledger.write_fenced(fence, move |draft| {
            draft.put(Note::new(name, ""));
            Ok(())
        });
        put.await.map(drop)
    }

    async fn notes(&self) -> i64 {
        self.replica.row("SELECT count(*) AS n FROM notes").await.try_get("", "n").unwrap()
    }
}

/// Returns the epoch of the role.
async fn epoch(replica: &Replica) -> i64 {
    replica.row("SELECT epoch FROM roles").await.try_get("", "epoch").unwrap()
}

/// Waits for some renewals.
async fn renewals(replica: &Replica) {
    let expiry = "SELECT CAST(expires_at AS text) AS at FROM roles";
    for _ in 0..3 {
        let at: String = replica.row(expiry).await.try_get("", "at").unwrap();
        eventually("a lease is renewed", async || {
            replica.row(expiry).await.try_get::<String>("", "at").unwrap() != at
        })
        .await;
    }
}

#[tokio::test]
async fn role_goes_to_a_standby_when_its_holder_leaves() {
    let Some(database) = shared_database().await else { return };
    // No lease expires here: the role only changes hands by a release.
    let one = Holder::start(long_leases(), &database).await;
    let first = one.term().await;
    let two = Holder::start(long_leases(), &database).await;
    assert!(!two.role.is_held() && first.is_current());
    one.replica.stop().await;
    let second = two.term().await;
    assert!(!first.is_current() && second.fence() != first.fence());
    two.replica.stop().await;
}

#[tokio::test]
async fn replica_that_does_not_take_part_leaves_the_role_to_others() {
    let Some(database) = shared_database().await else { return };
    let unready = Holder::stand_by(long_leases(), &database).await;
    let other = Holder::start(long_leases(), &database).await;
    let term = other.term().await;
    other.replica.stop().await;
    assert!(!term.is_current() && !unready.role.is_held());
    unready.role.take_part();
    assert!(unready.term().await.fence() != term.fence());
    unready.replica.stop().await;
}

#[tokio::test]
async fn standby_learns_that_the_holder_has_taken_over() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(short_leases(), &database).await;
    let term = one.term().await;
    let two = Holder::start(short_leases(), &database).await;
    renewals(&one.replica).await;
    let early = tokio::time::timeout(Duration::ZERO, two.role.taken_over()).await;
    assert!(early.is_err(), "the holder has not looked at anything yet");
    term.took_over();
    tokio::time::timeout(PATIENCE, two.role.taken_over()).await.unwrap();
    two.replica.stop().await;
    one.replica.stop().await;
}

#[tokio::test]
async fn write_under_a_lease_that_is_over_changes_nothing() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(long_leases(), &database).await;
    let fence = one.term().await.fence();
    one.put("a", fence.clone()).await.unwrap();
    // Another replica acquired the role, and released it again.
    one.replica.sql("UPDATE roles SET holder = '', epoch = epoch + 1").await;
    let unfenced = one.replica.ledger.write(|draft| {
        draft.put(Note::new("b", ""));
        Ok(())
    });
    let (stale, good) = tokio::join!(one.put("c", fence), unfenced);
    assert_eq!(stale, Err(Fault::stale("test")));
    assert!(good.is_ok(), "a write beside a stale one is not held up: {good:?}");
    assert_eq!((one.notes().await, one.replica.ledger.view().len()), (2, 2));
    one.replica.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lease_lost_between_two_attempts_of_a_write_is_noticed() {
    let Some(database) = shared_database().await else { return };
    let proxy = Proxy::start(&database).await;
    let one = Holder::start(long_leases(), &proxy.database).await;
    let fence = one.term().await.fence();
    let thief = note::connect(&database).await;
    let take = "WITH free AS (SELECT part FROM roles WHERE part = 'test' FOR UPDATE) \
                UPDATE roles SET holder = 'thief', epoch = epoch + 1 FROM free WHERE roles.part = free.part";
    let (decided, is_decided) = tokio::sync::oneshot::channel();
    let (queued, wait) = mpsc::channel();
    let write = one.replica.ledger.write_fenced(fence, move |draft| {
        // The thief waits for the locks of this transaction, and so is the first to have them when it ends.
        decided.send(()).unwrap();
        // A task that blocks a thread of the runtime has to announce it, or tasks queued behind it never run.
        tokio::task::block_in_place(|| wait.recv().unwrap());
        draft.put(Note::new("a", "late"));
        Ok(())
    });
    let steal = async {
        is_decided.await.unwrap();
        let taken = tokio::spawn({
            let thief = thief.clone();
            async move { thief.execute_unprepared(take).await }
        });
        let waiting = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
                       AND wait_event_type = 'Lock' AND query LIKE '%thief%' AND pid <> pg_backend_pid()";
        let waits = async || {
            let statement = Statement::from_string(DbBackend::Postgres, waiting);
            thief.query_one_raw(statement).await.unwrap().is_some()
        };
        eventually("the thief waits", waits).await;
        proxy.cut(Cut::BeforeCommit);
        queued.send(()).unwrap();
        taken.await.unwrap().unwrap();
    };
    let (written, ()) = tokio::join!(write, steal);
    assert!(proxy.was_cut());
    assert!(matches!(written, Err(Fault::Unavailable { .. })), "{written:?}");
    assert_eq!(one.notes().await, 0);
    one.replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_holder_changes_nothing_when_it_goes_on() {
    let Some(database) = shared_database().await else { return };
    let (paused, is_paused) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let url = database.url.clone();
    // The runtime has one thread: a task that blocks it stops all of the replica.
    let sleeper = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let database = EmptyDatabase::at(url);
            let one = Holder::start(short_leases(), &database).await;
            let term = one.term().await;
            paused.send(()).unwrap();
            wait.recv().unwrap();
            let held = term.is_current();
            let written = one.put("a", term.fence()).await;
            one.replica.stop().await;
            (held, written)
        })
    });
    tokio::task::spawn_blocking(move || is_paused.recv().unwrap()).await.unwrap();
    let two = Holder::start(short_leases(), &database).await;
    two.term().await;
    go_on.send(()).unwrap();
    let woken = tokio::task::spawn_blocking(move || sleeper.join().unwrap()).await.unwrap();
    assert_eq!(woken, (false, Err(Fault::stale("test"))));
    assert_eq!(two.notes().await, 0);
    two.replica.stop().await;
}

#[tokio::test]
async fn clock_of_the_database_ends_a_lease() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(short_leases(), &database).await;
    one.term().await;
    one.replica.stop().await;
    let watcher = Replica::start(&database).await;
    // A replica vanishes, with a lease for another hour.
    let ghost = "UPDATE roles SET holder = 'ghost', epoch = epoch + 1, expires_at = now() + interval '1 hour', \
                 taken_over = true";
    watcher.sql(ghost).await;
    let two = Holder::start(short_leases(), &database).await;
    tokio::time::timeout(PATIENCE, two.role.taken_over()).await.unwrap();
    assert!(!two.role.is_held());
    watcher.sql("UPDATE roles SET expires_at = now() - interval '1 second'").await;
    two.term().await;
    two.replica.stop().await;
    watcher.stop().await;
}

#[tokio::test]
async fn engine_without_progress_loses_its_role_to_a_standby() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(short_leases(), &database).await;
    let term = one.term().await;
    let two = Holder::start(short_leases(), &database).await;
    let hanging = term.turn("test");
    let second = two.term().await;
    assert!(!term.is_current() && !one.role.is_held());
    two.replica.stop().await;
    assert!(!second.is_current());
    drop(hanging);
    one.term().await;
    one.replica.stop().await;
}

#[tokio::test]
async fn busy_pool_costs_no_lease() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(short_leases(), &database).await;
    one.term().await;
    let watcher = Replica::start(&database).await;
    let mut hogs = Vec::new();
    for _ in 0..4 {
        hogs.push(one.replica.database.begin().await.unwrap());
    }
    let before = epoch(&watcher).await;
    renewals(&watcher).await;
    assert_eq!(before, epoch(&watcher).await, "no lease was lost");
    assert!(one.replica.ledger.fresh().await.is_ok(), "reads are fresh all the same");
    drop(hogs);
    one.replica.stop().await;
    watcher.stop().await;
}

#[tokio::test]
async fn holder_that_cannot_renew_stops_and_begins_a_new_term() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(short_leases(), &database).await;
    let term = one.term().await;
    one.replica.sql("ALTER TABLE roles RENAME TO elsewhere").await;
    eventually("the role is not held any more", async || !one.role.is_held()).await;
    one.replica.sql("ALTER TABLE elsewhere RENAME TO roles").await;
    let next = one.term().await;
    // No other replica held the role, and work that was requested meanwhile was dropped.
    assert!(next.is_current() && !term.is_current());
    assert_eq!(one.put("a", term.fence()).await, Err(Fault::stale("test")));
    one.replica.stop().await;
}

#[tokio::test]
async fn holder_that_cannot_renew_is_unready_whatever_is_written() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(short_leases(), &database).await;
    let served = Served::start(&one.replica.context).await;
    one.term().await;
    served.eventually_is(true).await;
    one.replica.sql("ALTER TABLE roles RENAME TO elsewhere").await;
    served.eventually_is(false).await;
    one.replica.put("a", "").await;
    served.stays_unready().await;
    one.replica.sql("ALTER TABLE elsewhere RENAME TO roles").await;
    served.eventually_is(true).await;
    one.replica.stop().await;
}

/// Begins a long write, without the server's limit for idle transactions.
async fn begin_long(replica: &Replica, lock: &str) -> DatabaseTransaction {
    let transaction = replica.database.begin().await.unwrap();
    let patience = "SET LOCAL idle_in_transaction_session_timeout = 0";
    transaction.execute_unprepared(patience).await.unwrap();
    transaction.execute_unprepared(&format!("SELECT part FROM roles {lock}")).await.unwrap();
    transaction
}

#[tokio::test]
async fn long_write_costs_no_lease_and_is_waited_for() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(short_leases(), &database).await;
    one.term().await;
    let watcher = Replica::start(&database).await;
    let before = epoch(&watcher).await;
    let write = begin_long(&watcher, "FOR KEY SHARE").await;
    renewals(&watcher).await;
    assert_eq!(before, epoch(&watcher).await, "no lease was lost");
    watcher.sql("UPDATE roles SET expires_at = now() - interval '1 second'").await;
    let two = Holder::start(short_leases(), &database).await;
    eventually("the lease is over", async || !one.role.is_held()).await;
    // The pause lets both try several times; without it, less is tested.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!one.role.is_held() && !two.role.is_held(), "the write may be under the last epoch");
    write.rollback().await.unwrap();
    eventually("the role is acquired", async || one.role.is_held() || two.role.is_held()).await;
    two.replica.stop().await;
    one.replica.stop().await;
    watcher.stop().await;
}

#[tokio::test]
async fn write_waits_for_a_replica_that_acquires_its_role() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(long_leases(), &database).await;
    let fence = one.term().await.fence();
    let watcher = Replica::start(&database).await;
    let taking = begin_long(&watcher, "FOR UPDATE").await;
    taking.execute_unprepared("UPDATE roles SET holder = 'other', epoch = epoch + 1").await.unwrap();
    let taken = async {
        // The pause lets the write reach the lock; without it, less is tested.
        tokio::time::sleep(Duration::from_millis(200)).await;
        taking.commit().await.unwrap();
    };
    let (written, ()) = tokio::join!(one.put("a", fence), taken);
    assert_eq!(written, Err(Fault::stale("test")));
    assert_eq!(one.notes().await, 0);
    one.replica.stop().await;
    watcher.stop().await;
}

/// Tables of a replica of the previous version, which renews shards, and its leases.
const SHARDS: &str = "DELETE FROM seaql_migrations WHERE version = 'roles'; DROP TABLE roles; \
    CREATE TABLE leases (part text NOT NULL, shard bigint NOT NULL, holder text NOT NULL, \
    epoch bigint NOT NULL, expires_at timestamptz NOT NULL, PRIMARY KEY (part, shard)); \
    CREATE TABLE replicas (part text NOT NULL, id text NOT NULL, expires_at timestamptz NOT NULL, \
    PRIMARY KEY (part, id)); \
    INSERT INTO leases SELECT 'test', shard, CASE WHEN shard % 2 = 0 THEN 'old' ELSE '' END, shard, \
    now() + CASE WHEN shard = 40 THEN 2 ELSE 0 END * interval '1 second' FROM generate_series(0, 63) AS shard";

#[tokio::test]
async fn role_begins_when_the_last_lease_of_a_shard_is_over() {
    let Some(database) = shared_database().await else { return };
    let old = Replica::start(&database).await;
    old.sql(SHARDS).await;
    let over = "SELECT max(expires_at) > clock_timestamp() AS held FROM leases";
    assert!(old.row(over).await.try_get::<bool>("", "held").unwrap());
    let at: String =
        old.row("SELECT CAST(max(expires_at) AS text) AS at FROM leases").await.try_get("", "at").unwrap();
    let new = Holder::start(short_leases(), &database).await;
    new.term().await;
    let is_over = format!("SELECT clock_timestamp() >= CAST('{at}' AS timestamptz) AS over");
    assert!(old.row(&is_over).await.try_get::<bool>("", "over").unwrap(), "two versions act");
    assert_eq!(epoch(&new.replica).await, 64);
    new.replica.stop().await;
    old.stop().await;
}
