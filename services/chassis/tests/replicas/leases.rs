//! Who does which part of the work.

use std::{collections::BTreeSet, sync::mpsc, time::Duration};

use chassis::{
    Fault, Settings,
    lease::{Custody, Fence, Leases, SHARDS, Shard},
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

/// A replica with its leases.
struct Holder {
    replica: Replica,
    leases: Leases,
}

impl Holder {
    async fn start(settings: Settings, database: &EmptyDatabase) -> Self {
        let replica = Replica::with(settings, database).await;
        let leases = Leases::start(&replica.context, "test", &replica.database).await.unwrap();
        Self { replica, leases }
    }

    fn held(&self) -> BTreeSet<Shard> {
        Shard::all().filter(|shard| self.leases.holds_shard(*shard)).collect()
    }

    async fn holds_everything(&self) {
        eventually("one replica holds everything", async || self.held().len() == usize::from(SHARDS)).await;
    }

    /// Waits for the next round.
    async fn renews(&self) {
        let last = self.renewed().await;
        eventually("the leases are renewed", async || self.renewed().await != last).await;
    }

    async fn renewed(&self) -> String {
        let row = self.replica.row("SELECT CAST(max(expires_at) AS text) AS newest FROM leases").await;
        row.try_get("", "newest").unwrap()
    }

    async fn notes(&self) -> i64 {
        self.replica.row("SELECT count(*) AS n FROM notes").await.try_get("", "n").unwrap()
    }
}

/// Waits until these replicas share everything evenly.
async fn share_evenly(holders: &[&Holder]) {
    let fair = usize::from(SHARDS).div_ceil(holders.len());
    eventually("the replicas share everything evenly", async || {
        let shares: Vec<_> = holders.iter().map(|holder| holder.held()).collect();
        let all: BTreeSet<_> = shares.iter().flatten().collect();
        let sum: usize = shares.iter().map(BTreeSet::len).sum();
        assert_eq!(sum, all.len(), "no shard is held twice");
        sum == usize::from(SHARDS) && shares.iter().all(|share| share.len() <= fair)
    })
    .await;
}

#[tokio::test]
async fn replicas_come_and_go_and_share_evenly() {
    let Some(database) = shared_database().await else { return };
    // Nothing runs out here: whatever changes hands is given.
    let one = Holder::start(long_leases(), &database).await;
    let mut changes = Box::pin(one.leases.changes());
    share_evenly(&[&one]).await;
    let (two, three) =
        (Holder::start(long_leases(), &database).await, Holder::start(long_leases(), &database).await);
    share_evenly(&[&one, &two, &three]).await;
    two.replica.stop().await;
    share_evenly(&[&one, &three]).await;
    // What was told adds up to what is held.
    let mut told = BTreeSet::new();
    while told != one.held() {
        let handover = tokio::time::timeout(PATIENCE, changes.next()).await.unwrap().unwrap();
        told.retain(|shard| !handover.lost.contains(shard));
        told.extend(handover.gained);
    }
    three.replica.stop().await;
    one.holds_everything().await;
    one.replica.stop().await;
}

#[tokio::test]
async fn nothing_is_given_away_before_it_was_taken_over() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(long_leases(), &database).await;
    let custody = Custody::new(one.leases.clone());
    one.holds_everything().await;
    let two = Holder::start(long_leases(), &database).await;
    for _ in 0..3 {
        one.renews().await;
        assert!(two.held().is_empty(), "one has not looked at anything yet");
    }
    let mut takeovers = Box::pin(custody.takeovers());
    let taken = async {
        loop {
            custody.take(&takeovers.next().await.unwrap());
        }
    };
    let both = [&one, &two];
    tokio::select! {
        () = share_evenly(&both) => {}
        () = taken => {}
    }
    one.replica.stop().await;
    two.replica.stop().await;
}

#[tokio::test]
async fn who_never_takes_over_what_it_holds_gives_it_away_after_a_while() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(short_leases(), &database).await;
    let _custody = Custody::new(one.leases.clone());
    one.holds_everything().await;
    let two = Holder::start(short_leases(), &database).await;
    share_evenly(&[&one, &two]).await;
    one.replica.stop().await;
    two.replica.stop().await;
}

#[tokio::test]
async fn a_write_under_a_lease_that_is_over_changes_nothing() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(long_leases(), &database).await;
    one.holds_everything().await;
    let put = |name: &'static str, fence: Fence| {
        one.replica.ledger.write_fenced(fence, move |draft| {
            draft.put(Note::new(name, ""));
            Ok(())
        })
    };
    let fence = |names: &[&'static str]| one.leases.fence(names.iter().copied()).unwrap();
    put("a", fence(&["a"])).await.unwrap();
    let (of_b, of_a, both) = (fence(&["b"]), fence(&["a"]), fence(&["a", "b"]));
    // Somebody else took the shard of one key, and released it again.
    let shard = Shard::of("b");
    assert_ne!(shard, Shard::of("a"));
    let take = format!("UPDATE leases SET holder = '', epoch = epoch + 1 WHERE shard = {shard}");
    one.replica.sql(&take).await;
    let (stale, good) = tokio::join!(put("b", of_b), put("a", of_a));
    assert_eq!(stale, Err(Fault::stale("test")));
    assert!(good.is_ok(), "who waits with a stale one is not held up: {good:?}");
    let stale = one.replica.ledger.write_fenced(both, |draft| {
        draft.put(Note::new("b", ""));
        Ok(())
    });
    assert_eq!(stale.await, Err(Fault::stale("test")), "one of two keys is somebody else's");
    assert_eq!((one.notes().await, one.replica.ledger.view().len()), (1, 1));
    one.replica.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lease_that_goes_to_another_between_two_tries_of_a_write_is_noticed() {
    let Some(database) = shared_database().await else { return };
    let proxy = Proxy::start(&database).await;
    let one = Holder::start(long_leases(), &proxy.database).await;
    one.holds_everything().await;
    let fence = one.leases.fence(["a"]).unwrap();
    let thief = note::connect(&database).await;
    let take = format!(
        "WITH free AS (SELECT part, shard FROM leases WHERE part = 'test' AND shard = {} FOR UPDATE) \
         UPDATE leases SET holder = 'thief', epoch = epoch + 1 FROM free \
         WHERE leases.part = free.part AND leases.shard = free.shard",
        Shard::of("a")
    );
    let (decided, is_decided) = tokio::sync::oneshot::channel();
    let (queued, wait) = mpsc::channel();
    let write = one.replica.ledger.write_fenced(fence, move |draft| {
        // The thief waits for the locks of this transaction, and so is the first to have them when it ends.
        decided.send(()).unwrap();
        // Who blocks a thread of the runtime has to say so, or what is queued behind it never runs.
        tokio::task::block_in_place(|| wait.recv().unwrap());
        draft.put(Note::new("a", "late"));
        Ok(())
    });
    let steal = async {
        is_decided.await.unwrap();
        let taken = tokio::spawn({
            let thief = thief.clone();
            async move { thief.execute_unprepared(&take).await }
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
async fn a_holder_that_was_paused_changes_nothing_when_it_goes_on() {
    let Some(database) = shared_database().await else { return };
    let (paused, is_paused) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let url = database.url.clone();
    // A runtime of one thread: who blocks it stops all of the replica.
    let sleeper = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let database = EmptyDatabase::at(url);
            let one = Holder::start(short_leases(), &database).await;
            one.holds_everything().await;
            let fence = one.leases.fence(["a"]).unwrap();
            paused.send(()).unwrap();
            wait.recv().unwrap();
            let held = one.leases.holds("a");
            let write = one.replica.ledger.write_fenced(fence, |draft| {
                draft.put(Note::new("a", "late"));
                Ok(())
            });
            let written = write.await;
            one.replica.stop().await;
            (held, written.map(|((), revision)| revision))
        })
    });
    tokio::task::spawn_blocking(move || is_paused.recv().unwrap()).await.unwrap();
    let two = Holder::start(short_leases(), &database).await;
    two.holds_everything().await;
    go_on.send(()).unwrap();
    let woken = tokio::task::spawn_blocking(move || sleeper.join().unwrap()).await.unwrap();
    assert_eq!(woken, (false, Err(Fault::stale("test"))));
    assert_eq!(two.notes().await, 0);
    two.replica.stop().await;
}

#[tokio::test]
async fn the_clock_of_the_database_says_when_a_lease_is_over() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(short_leases(), &database).await;
    one.holds_everything().await;
    one.replica.stop().await;
    let watcher = Replica::start(&database).await;
    // A replica that nobody hears of, with leases for another hour.
    watcher
        .sql(
            "INSERT INTO replicas (part, id, expires_at) VALUES ('test', 'ghost', now() + interval '1 hour'); \
             UPDATE leases SET holder = 'ghost', epoch = epoch + 1, expires_at = now() + interval '1 hour'",
        )
        .await;
    let two = Holder::start(short_leases(), &database).await;
    let renewed = "SELECT count(*) AS n FROM replicas WHERE id <> 'ghost'";
    eventually("the second replica takes part", async || {
        watcher.row(renewed).await.try_get::<i64>("", "n").unwrap() == 1
    })
    .await;
    assert!(two.held().is_empty());
    watcher
        .sql(
            "UPDATE replicas SET expires_at = now() - interval '1 second' WHERE id = 'ghost'; \
             UPDATE leases SET expires_at = now() - interval '1 second'",
        )
        .await;
    two.holds_everything().await;
    two.replica.stop().await;
    watcher.stop().await;
}

#[tokio::test]
async fn a_busy_pool_costs_no_lease() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(short_leases(), &database).await;
    one.holds_everything().await;
    let watcher = Replica::start(&database).await;
    let mut hogs = Vec::new();
    for _ in 0..4 {
        hogs.push(one.replica.database.begin().await.unwrap());
    }
    let epochs = "SELECT CAST(sum(epoch) AS bigint) AS n FROM leases";
    let expiry = "SELECT CAST(min(expires_at) AS text) AS at FROM leases";
    let before: i64 = watcher.row(epochs).await.try_get("", "n").unwrap();
    for _ in 0..3 {
        let at: String = watcher.row(expiry).await.try_get("", "at").unwrap();
        eventually("a lease is renewed", async || {
            watcher.row(expiry).await.try_get::<String>("", "at").unwrap() != at
        })
        .await;
    }
    let after: i64 = watcher.row(epochs).await.try_get("", "n").unwrap();
    assert_eq!(before, after, "no lease was lost");
    assert!(one.replica.ledger.fresh().await.is_ok(), "reads are fresh all the same");
    drop(hogs);
    one.replica.stop().await;
    watcher.stop().await;
}

#[tokio::test]
async fn who_cannot_renew_stops_and_goes_on_alone() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(short_leases(), &database).await;
    one.holds_everything().await;
    let mut changes = Box::pin(one.leases.changes());
    let all: BTreeSet<_> = Shard::all().collect();
    assert_eq!(changes.next().await.unwrap().gained, all);
    let fence = one.leases.fence(["a"]).unwrap();
    one.replica.sql("ALTER TABLE leases RENAME TO elsewhere").await;
    eventually("nothing is held any more", async || one.held().is_empty()).await;
    one.replica.sql("ALTER TABLE elsewhere RENAME TO leases").await;
    one.holds_everything().await;
    // Nobody else had them, and whoever asked meanwhile has dropped the work.
    let handover = tokio::time::timeout(PATIENCE, changes.next()).await.unwrap().unwrap();
    assert_eq!((&handover.gained, &handover.lost), (&all, &all));
    let late = one.replica.ledger.write_fenced(fence, |draft| {
        draft.put(Note::new("a", "decided before"));
        Ok(())
    });
    assert_eq!(late.await, Err(Fault::stale("test")));
    one.replica.stop().await;
}

#[tokio::test]
async fn who_cannot_renew_is_not_ready_whatever_is_written() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(short_leases(), &database).await;
    let served = Served::start(&one.replica.context).await;
    one.holds_everything().await;
    served.eventually_is(true).await;
    one.replica.sql("ALTER TABLE leases RENAME TO elsewhere").await;
    served.eventually_is(false).await;
    one.replica.put("a", "").await;
    served.stays_unready().await;
    one.replica.sql("ALTER TABLE elsewhere RENAME TO leases").await;
    served.eventually_is(true).await;
    one.replica.stop().await;
}

/// Begins what a long write does, without the server's limit of patience with it.
async fn begin_long(replica: &Replica, lock: &str) -> DatabaseTransaction {
    let transaction = replica.database.begin().await.unwrap();
    let patience = "SET LOCAL idle_in_transaction_session_timeout = 0";
    transaction.execute_unprepared(patience).await.unwrap();
    let sql = format!("SELECT shard FROM leases ORDER BY shard {lock}");
    transaction.execute_unprepared(&sql).await.unwrap();
    transaction
}

/// Waits for some rounds of renewal.
async fn rounds(watcher: &Replica) {
    let heard = "SELECT CAST(max(expires_at) AS text) AS at FROM leases";
    for _ in 0..3 {
        let at: String = watcher.row(heard).await.try_get("", "at").unwrap();
        eventually("a lease is renewed", async || {
            watcher.row(heard).await.try_get::<String>("", "at").unwrap() != at
        })
        .await;
    }
}

#[tokio::test]
async fn a_long_write_costs_no_lease_and_nobody_takes_what_it_is_under() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(short_leases(), &database).await;
    one.holds_everything().await;
    let watcher = Replica::start(&database).await;
    let epochs = "SELECT CAST(sum(epoch) AS bigint) AS n FROM leases WHERE holder <> ''";
    let before: i64 = watcher.row(epochs).await.try_get("", "n").unwrap();
    let write = begin_long(&watcher, "FOR KEY SHARE").await;
    rounds(&watcher).await;
    let after: i64 = watcher.row(epochs).await.try_get("", "n").unwrap();
    assert_eq!(before, after, "no lease was lost");
    let two = Holder::start(short_leases(), &database).await;
    let fair = usize::from(SHARDS) / 2;
    eventually("the surplus is not acted upon", async || one.held().len() == fair).await;
    rounds(&watcher).await;
    assert!(two.held().is_empty(), "the write may be under any of them");
    write.rollback().await.unwrap();
    share_evenly(&[&one, &two]).await;
    two.replica.stop().await;
    one.replica.stop().await;
    watcher.stop().await;
}

#[tokio::test]
async fn a_write_waits_for_who_is_taking_its_shard() {
    let Some(database) = shared_database().await else { return };
    let one = Holder::start(long_leases(), &database).await;
    one.holds_everything().await;
    let fence = one.leases.fence(["a"]).unwrap();
    let watcher = Replica::start(&database).await;
    let taking = begin_long(&watcher, "FOR UPDATE").await;
    taking.execute_unprepared("UPDATE leases SET holder = 'other', epoch = epoch + 1").await.unwrap();
    let write = one.replica.ledger.write_fenced(fence, |draft| {
        draft.put(Note::new("a", "late"));
        Ok(())
    });
    let taken = async {
        // Time for the write to get to the lock; without that, less is tested.
        tokio::time::sleep(Duration::from_millis(200)).await;
        taking.commit().await.unwrap();
    };
    let (written, ()) = tokio::join!(write, taken);
    assert_eq!(written, Err(Fault::stale("test")));
    assert_eq!(one.notes().await, 0);
    one.replica.stop().await;
    watcher.stop().await;
}
