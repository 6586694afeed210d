//! Faults between a ledger and its database.

use chassis::{Fault, settings::DatabaseSettings};
use futures_util::StreamExt;
use sea_orm::{ConnectionTrait, TransactionTrait};

use super::{
    Replica, eventually,
    proxy::{Cut, Proxy},
    shared_database,
};

/// Makes writes of notes fail with this SQLSTATE while a sequence is below `times`.
async fn fail(replica: &Replica, state: &str, times: i64) {
    replica
        .sql(&format!(
            "DROP SEQUENCE IF EXISTS tries CASCADE; CREATE SEQUENCE tries; \
             CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF nextval('tries') <= {times} THEN RAISE EXCEPTION 'on purpose' USING ERRCODE = '{state}'; END IF; \
             RETURN NEW; END $$; \
             CREATE OR REPLACE TRIGGER fail BEFORE INSERT OR UPDATE ON notes FOR EACH ROW EXECUTE FUNCTION fail()"
        ))
        .await;
}

#[tokio::test]
async fn transactions_that_got_into_each_others_way_are_tried_again_with_a_bound() {
    let Some(database) = shared_database().await else { return };
    let (one, two) = (Replica::start(&database).await, Replica::start(&database).await);
    for (n, state) in ["40001", "40P01", "55P03"].into_iter().enumerate() {
        fail(&one, state, 3).await;
        let (first, second) = tokio::join!(one.append("a", "x"), two.append("a", "x"));
        assert!(first.is_ok() && second.is_ok(), "{state}: {first:?} {second:?}");
        one.ledger.fresh().await.unwrap();
        assert_eq!(one.text("a").unwrap().len(), 2 * (n + 1), "{state}");
    }
    fail(&one, "40001", i64::MAX).await;
    let failed = one.append("a", "x").await;
    assert!(matches!(failed, Err(Fault::Unavailable { .. })), "{failed:?}");
    // Any other error fails at once.
    fail(&one, "23514", 1).await;
    assert!(one.append("a", "x").await.is_err());
    one.append("a", "x").await.unwrap();
    two.ledger.fresh().await.unwrap();
    assert_eq!(two.text("a").unwrap().len(), 7);
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn a_commit_without_an_answer_is_found_out() {
    let Some(database) = shared_database().await else { return };
    let proxy = Proxy::start(&database).await;
    let (cut_off, other) = (Replica::start(&proxy.database).await, Replica::start(&database).await);
    cut_off.append("a", "x").await.unwrap();
    for cut in [Cut::AfterCommit, Cut::BeforeCommit, Cut::AfterCommit] {
        let before = cut_off.text("a").unwrap().len();
        proxy.cut(cut);
        // Another replica writes meanwhile, so that the position alone does not identify the commit.
        let (first, second) = tokio::join!(cut_off.append("a", "x"), other.append("a", "x"));
        // An uncommitted write is retried, unless the other one was first; and if the other one has committed after it,
        // no evidence of its commit is left.
        let refused = matches!(first, Err(Fault::Unavailable { .. }));
        assert!((first.is_ok() || refused) && second.is_ok(), "{cut:?}: {first:?} {second:?}");
        assert!(proxy.was_cut(), "{cut:?}");
        cut_off.ledger.fresh().await.unwrap();
        let written = 1 + usize::from(first.is_ok() || cut == Cut::AfterCommit);
        assert_eq!(cut_off.text("a").unwrap().len(), before + written, "{cut:?}");
    }
    cut_off.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_commit_without_an_answer_is_acknowledged_when_nobody_writes_after_it() {
    let Some(database) = shared_database().await else { return };
    let proxy = Proxy::start(&database).await;
    let replica = Replica::start(&proxy.database).await;
    for cut in [Cut::AfterCommit, Cut::BeforeCommit] {
        proxy.cut(cut);
        replica.append("a", "x").await.unwrap();
        assert!(proxy.was_cut(), "{cut:?}");
    }
    assert_eq!(replica.text("a").as_deref(), Some("xx"));
    replica.stop().await;
}

#[tokio::test]
async fn a_host_that_is_gone_costs_no_place_in_a_pool() {
    let Some(database) = shared_database().await else { return };
    let proxy = Proxy::start(&database).await;
    let (cut_off, other) = (Replica::start(&proxy.database).await, Replica::start(&database).await);
    // Only one connection is left, so none may be lost.
    let mut taken = Vec::new();
    for _ in 1..DatabaseSettings::default().connections {
        taken.push(cut_off.database.begin().await.unwrap());
    }
    for n in 1..=2 {
        cut_off.append("a", "x").await.unwrap();
        proxy.fall_silent();
        eventually("it is written again", async || cut_off.append("a", "x").await.is_ok()).await;
        eventually("reads are fresh again", async || cut_off.ledger.fresh().await.is_ok()).await;
        other.append("a", "y").await.unwrap();
        let heard = async || cut_off.text("a").is_some_and(|text| text.matches('y').count() == n);
        eventually("others are heard of again", heard).await;
    }
    drop(taken);
    cut_off.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn after_an_outage_work_goes_on_without_a_storm_of_connections() {
    let Some(database) = shared_database().await else { return };
    let proxy = Proxy::start(&database).await;
    let (cut_off, other) = (Replica::start(&proxy.database).await, Replica::start(&database).await);
    cut_off.append("a", "x").await.unwrap();
    proxy.go_down();
    other.append("a", "x").await.unwrap();
    let refused = cut_off.append("a", "x").await;
    assert!(matches!(refused, Err(Fault::Unavailable { .. })), "{refused:?}");
    let unknown = cut_off.ledger.fresh().await;
    assert!(matches!(unknown, Err(Fault::Unavailable { .. })), "{unknown:?}");
    assert_eq!(cut_off.text("a").as_deref(), Some("x"), "what is held can be read");
    proxy.come_up().await;
    eventually("what was missed is shown", async || cut_off.text("a").as_deref() == Some("xx")).await;
    cut_off.append("a", "x").await.unwrap();
    other.ledger.fresh().await.unwrap();
    assert_eq!(other.text("a").as_deref(), Some("xxx"));
    assert!(proxy.accepted() <= 12, "{} connections", proxy.accepted());
    cut_off.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_watch_goes_on_from_what_is_known_while_the_database_is_away() {
    let Some(database) = shared_database().await else { return };
    let proxy = Proxy::start(&database).await;
    let (cut_off, other) = (Replica::start(&proxy.database).await, Replica::start(&database).await);
    let known = cut_off.append("a", "x").await.unwrap();
    proxy.go_down();
    let ahead = other.append("b", "x").await.unwrap();
    let mut watch = cut_off.ledger.serve_watch(known - 1).await.unwrap().into_inner();
    let refused = cut_off.ledger.serve_watch(ahead).await.err().map(Fault::from);
    assert!(matches!(refused, Some(Fault::Unavailable { .. })), "{refused:?}");
    let mut told = async || crate::note::names(&watch.next().await.unwrap().unwrap());
    assert_eq!(told().await, "a");
    proxy.come_up().await;
    assert_eq!(told().await, "b");
    cut_off.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_database_that_takes_no_writes_fails_cleanly_and_recovers() {
    let Some(database) = shared_database().await else { return };
    let replica = Replica::start(&database).await;
    replica.append("a", "x").await.unwrap();
    read_only(&replica, "on").await;
    let refused = replica.append("a", "x").await;
    assert!(matches!(refused, Err(Fault::Unavailable { .. })), "{refused:?}");
    assert_eq!(replica.text("a").as_deref(), Some("x"));
    replica.ledger.fresh().await.unwrap();
    read_only(&replica, "off").await;
    eventually("writes are taken again", async || replica.append("a", "y").await.is_ok()).await;
    assert_eq!(replica.text("a").as_deref(), Some("xy"));
    replica.stop().await;
}

/// Makes every new connection read-only or not; older ones are closed.
async fn read_only(replica: &Replica, how: &str) {
    let name: String = replica.row("SELECT current_database() AS name").await.try_get("", "name").unwrap();
    let alter = format!("ALTER DATABASE {name} SET default_transaction_read_only = {how}");
    replica.sql(&format!("BEGIN READ WRITE; {alter}; COMMIT")).await;
    let end = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid(); \
         SET default_transaction_read_only = {how}"
    );
    replica.database.execute_unprepared(&end).await.unwrap();
}

#[tokio::test]
async fn a_commit_is_on_disk_whatever_the_server_defaults_to() {
    let Some(database) = shared_database().await else { return };
    let first = Replica::start(&database).await;
    let name: String = first.row("SELECT current_database() AS name").await.try_get("", "name").unwrap();
    first.sql(&format!("ALTER DATABASE {name} SET synchronous_commit = off")).await;
    first.stop().await;
    let replica = Replica::start(&database).await;
    let on: String = replica.row("SHOW synchronous_commit").await.try_get("", "synchronous_commit").unwrap();
    assert_eq!(on, "on");
    replica.sql(&format!("ALTER DATABASE {name} SET synchronous_commit = remote_apply")).await;
    replica.stop().await;
    let replica = Replica::start(&database).await;
    let on: String = replica.row("SHOW synchronous_commit").await.try_get("", "synchronous_commit").unwrap();
    assert_eq!(on, "remote_apply", "more than is needed is left alone");
    replica.stop().await;
}
