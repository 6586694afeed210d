//! One collection with several replicas.

use std::{collections::BTreeMap, sync::Arc};

use chassis::{Fault, store::resource::Batch};
use futures_util::{Stream, StreamExt};

use super::{
    PATIENCE, Replica, eventually,
    note::{DOUBTFUL, Note, POISON},
    shared_database,
};

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_lose_no_change_and_no_revision() {
    let Some(database) = shared_database().await else { return };
    let (one, two) = (Replica::start(&database).await, Replica::start(&database).await);
    let watches = [&one, &two].map(|replica| Box::pin(replica.ledger.watch(0).unwrap().batches()));
    let write = |n: usize| {
        let (replica, own) = if n.is_multiple_of(2) { (&one, "of one") } else { (&two, "of two") };
        async move {
            replica.append("of both", "x").await.unwrap();
            replica.append(own, "x").await.unwrap()
        }
    };
    let revisions = futures_util::future::join_all((0..100).map(write)).await;
    let last = *revisions.iter().max().unwrap();
    for watch in watches {
        let seen = follow(watch, last).await;
        let lengths = seen.values().map(|note| note.text.len()).collect::<Vec<_>>();
        assert_eq!(lengths, [100, 50, 50], "{:?}", seen.keys());
    }
    for replica in [&one, &two] {
        replica.ledger.fresh().await.unwrap();
        assert_eq!(replica.ledger.view().revision(), last);
    }
    let rows = |replica: &Replica| replica.ledger.view().all();
    assert_eq!(rows(&one), rows(&two));
    one.stop().await;
    two.stop().await;
}

/// Follows a watch up to `last` and returns the newest of its deliveries.
async fn follow(
    mut watch: impl Stream<Item = Result<Arc<Batch<Note>>, Fault>> + Unpin,
    last: u64,
) -> BTreeMap<String, Arc<Note>> {
    let (mut seen, mut at) = (BTreeMap::new(), 0);
    while at < last {
        let batch = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap().unwrap().unwrap();
        assert!(batch.revision > at || batch.synced, "{} follows {at}", batch.revision);
        for note in &batch.changed {
            assert!(note.revision > at && note.revision <= batch.revision, "{note:?} follows {at}");
            seen.insert(note.name.clone(), Arc::clone(note));
        }
        at = batch.revision;
    }
    seen
}

#[tokio::test]
async fn a_read_is_as_fresh_as_the_last_acknowledged_write() {
    let Some(database) = shared_database().await else { return };
    let (one, two) = (Replica::start(&database).await, Replica::start(&database).await);
    for n in 0..50 {
        let text = n.to_string();
        one.put("a", &text).await;
        let (first, second) = tokio::join!(two.ledger.fresh(), two.ledger.fresh());
        assert_eq!((first, second), (Ok(()), Ok(())));
        assert_eq!(two.text("a"), Some(text));
    }
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn a_watch_begins_with_what_another_replica_acknowledged() {
    let Some(database) = shared_database().await else { return };
    let (one, two) = (Replica::start(&database).await, Replica::start(&database).await);
    for n in 0..50 {
        let name = format!("n{n}");
        let resume = one.put(&name, "").await - 1;
        let mut watch = two.ledger.serve_watch(resume).await.unwrap().into_inner();
        let told = watch.next().await.unwrap().unwrap();
        assert_eq!(crate::note::names(&told), name);
    }
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn a_change_is_computed_from_what_another_replica_wrote() {
    let Some(database) = shared_database().await else { return };
    let (one, two) = (Replica::start(&database).await, Replica::start(&database).await);
    for _ in 0..20 {
        one.append("a", "1").await.unwrap();
        two.append("a", "2").await.unwrap();
    }
    assert_eq!(two.text("a"), Some("12".repeat(20)));
    let delete = two.ledger.write(|draft| {
        draft.delete("a");
        Ok(())
    });
    delete.await.unwrap();
    one.append("a", "3").await.unwrap();
    assert_eq!(one.text("a").as_deref(), Some("3"));
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn what_others_wrote_is_shown_with_a_hint_and_without() {
    let Some(database) = shared_database().await else { return };
    let (one, two) = (Replica::start(&database).await, Replica::start(&database).await);
    one.put("hinted", "").await;
    eventually("a hint is followed", async || two.text("hinted").is_some()).await;
    // No part of the ledger makes this change, so no hint is sent.
    one.sql(
        "BEGIN; UPDATE revisions SET revision = 2 WHERE kind = 'note'; \
         INSERT INTO notes (name, text, revision) VALUES ('silent', '', 2); COMMIT",
    )
    .await;
    eventually("a change without a hint is found", async || two.text("silent").is_some()).await;
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_left_aside() {
    for database in test_databases::every_kind().await {
        let first = Replica::start(&database).await;
        first.put("good", "").await;
        first.put("bad", "").await;
        first.sql(&format!("UPDATE notes SET text = '{POISON}' WHERE name = 'bad'")).await;
        first.stop().await;

        let replica = Replica::start(&database).await;
        assert_eq!((replica.text("good").is_some(), replica.text("bad")), (true, None), "{}", database.kind);
        let unreadable =
            |name: &'static str| replica.ledger.write(move |draft| Ok(draft.is_unreadable(name)));
        assert!(unreadable("bad").await.unwrap().0 && !unreadable("good").await.unwrap().0);
        replica.put("good", "again").await;
        replica.put("bad", "mended").await;
        assert!(!unreadable("bad").await.unwrap().0);
        replica.stop().await;
        let reopened = Replica::start(&database).await;
        assert_eq!(reopened.text("bad").as_deref(), Some("mended"));
        reopened.stop().await;
    }
}

#[tokio::test]
async fn a_row_that_becomes_unreadable_is_withdrawn() {
    let Some(database) = shared_database().await else { return };
    let replica = Replica::start(&database).await;
    replica.put("a", "").await;
    replica.put("b", "").await;
    replica
        .sql(&format!(
            "BEGIN; UPDATE revisions SET revision = 3 WHERE kind = 'note'; \
             UPDATE notes SET text = '{POISON}', revision = 3 WHERE name = 'a'; COMMIT"
        ))
        .await;
    replica.ledger.fresh().await.unwrap();
    assert_eq!((replica.text("a"), replica.text("b").is_some()), (None, true));
    let delete = replica.ledger.write(|draft| {
        draft.delete("a");
        Ok(())
    });
    delete.await.unwrap();
    let left: i64 = replica.row("SELECT count(*) AS n FROM notes").await.try_get("", "n").unwrap();
    assert_eq!(left, 1);
    replica.stop().await;
}

/// Returns the incarnation that a watch of that replica names.
async fn incarnation(replica: &Replica) -> Option<String> {
    let watch = replica.ledger.serve_watch(0).await.unwrap();
    let named = watch.metadata().get("reveille-incarnation")?;
    Some(named.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_database_that_lost_commits_is_noticed_and_no_revision_is_given_twice() {
    let Some(database) = shared_database().await else { return };
    let (one, two) = (Replica::start(&database).await, Replica::start(&database).await);
    one.put("kept", "").await;
    one.put("lost", "").await;
    two.ledger.fresh().await.unwrap();
    let before = incarnation(&one).await;
    assert_eq!(incarnation(&two).await, before);
    let mut watch = Box::pin(two.ledger.watch(0).unwrap().batches());
    assert_eq!(watch.next().await.unwrap().unwrap().revision, 2);
    // A standby without the last commit is in this state.
    one.sql(
        "BEGIN; UPDATE revisions SET revision = 1 WHERE kind = 'note'; DELETE FROM notes WHERE name = 'lost'; COMMIT",
    )
    .await;
    let revision = one.put("new", "").await;
    assert!(revision > 2, "{revision}");
    assert_eq!((one.text("lost"), one.text("kept").is_some()), (None, true));
    two.ledger.fresh().await.unwrap();
    assert_eq!((two.text("lost"), two.text("new").is_some()), (None, true));
    assert_eq!(watch.next().await.unwrap().err(), Some(Fault::ResumeExpired(2)));
    assert_eq!(two.ledger.watch(2).err(), Some(Fault::ResumeExpired(2)));
    let after = [incarnation(&one).await, incarnation(&two).await];
    assert!(after[0] == after[1] && after[0] != before, "{before:?}, then {after:?}");
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn commits_that_were_lost_and_overwritten_by_as_many_are_noticed() {
    let Some(database) = shared_database().await else { return };
    let replica = Replica::start(&database).await;
    replica.put("kept", "").await;
    replica.put("lost", "").await;
    let mut watch = Box::pin(replica.ledger.watch(0).unwrap().batches());
    assert_eq!(watch.next().await.unwrap().unwrap().revision, 2);
    // A standby without the last commit, on which another replica has written since, is in this state.
    replica
        .sql(
            "BEGIN; UPDATE revisions SET last_commit = '0193e7a2-0000-7000-8000-000000000001' WHERE kind = 'note'; \
             UPDATE notes SET name = 'instead' WHERE name = 'lost'; COMMIT",
        )
        .await;
    let revision = replica.put("new", "").await;
    assert!(revision > 3, "{revision} was given before, or nobody would start over");
    let texts = ["lost", "instead", "kept"].map(|name| replica.text(name).is_some());
    assert_eq!(texts, [false, true, true]);
    assert_eq!(watch.next().await.unwrap().err(), Some(Fault::ResumeExpired(2)));
    replica.stop().await;
}

#[tokio::test]
async fn what_commits_may_be_lost_of_becomes_what_it_has_to_be_then() {
    let Some(database) = shared_database().await else { return };
    let (one, two) = (Replica::start(&database).await, Replica::start(&database).await);
    one.put("kept", "text").await;
    one.put("doubted", DOUBTFUL).await;
    one.put("lost", "").await;
    one.sql(
        "BEGIN; UPDATE revisions SET revision = 2 WHERE kind = 'note'; DELETE FROM notes WHERE name = 'lost'; COMMIT",
    )
    .await;
    let revision = one.put("new", "").await;
    two.ledger.fresh().await.unwrap();
    // After the break there is one commit for what is doubted, and one for what is new.
    let since_break = format!("as of {}", revision - 2);
    for replica in [&one, &two] {
        assert_eq!(replica.text("kept").as_deref(), Some("text"));
        assert_eq!(replica.text("doubted"), Some(since_break.clone()));
    }
    assert!(revision > 1_000_000_000_000, "{revision} may have been given before");
    let again = Replica::start(&database).await;
    assert_eq!(again.text("doubted"), Some(since_break));
    for replica in [one, two, again] {
        replica.stop().await;
    }
}

#[tokio::test]
async fn what_only_one_replica_has_shown_is_noticed_by_it_when_others_have_written_since() {
    let Some(database) = shared_database().await else { return };
    let ahead = Replica::start(&database).await;
    ahead.put("kept", DOUBTFUL).await;
    for number in 0..5 {
        ahead.put(&format!("lost {number}"), "").await;
    }
    ahead
        .sql("BEGIN; UPDATE revisions SET revision = 1 WHERE kind = 'note'; DELETE FROM notes WHERE name <> 'kept'; COMMIT")
        .await;
    // This replica has shown none of the lost commits, and commits before the other notices the loss.
    let behind = Replica::start(&database).await;
    behind.put("new", "").await;
    ahead.ledger.fresh().await.unwrap();
    assert_eq!((ahead.text("lost 4"), ahead.text("new").is_some()), (None, true));
    behind.ledger.fresh().await.unwrap();
    assert_eq!(ahead.text("kept"), behind.text("kept"));
    behind.stop().await;
    ahead.stop().await;
}

#[tokio::test]
async fn commits_that_are_lost_right_after_they_were_made_are_noticed_without_a_further_write() {
    let Some(database) = shared_database().await else { return };
    let replica = Replica::start(&database).await;
    replica.put("kept", "").await;
    replica.put("lost", "").await;
    replica
        .sql(
            "BEGIN; UPDATE revisions SET revision = 1 WHERE kind = 'note'; DELETE FROM notes WHERE name = 'lost'; COMMIT",
        )
        .await;
    eventually("what was lost is not shown", async || replica.text("lost").is_none()).await;
    assert!(replica.text("kept").is_some());
    replica.stop().await;
}

#[tokio::test]
async fn a_copy_of_a_database_goes_on_above_what_nobody_can_know_that_it_lost() {
    let Some(database) = shared_database().await else { return };
    let first = Replica::start(&database).await;
    first.put("doubted", DOUBTFUL).await;
    // Another server would have written this lineage.
    first.sql("UPDATE revisions SET lineage = '1/00000001' WHERE kind = 'note'").await;
    first.stop().await;
    let (one, two) = (Replica::start(&database).await, Replica::start(&database).await);
    let revision = one.put("new", "").await;
    two.ledger.fresh().await.unwrap();
    // After the break there is one commit for what is doubted, and one for what is new.
    assert_eq!(two.text("doubted"), Some(format!("as of {}", revision - 2)));
    assert_eq!(two.put("next", "").await, revision + 1, "it is known where this database comes from");
    for replica in [one, two] {
        replica.stop().await;
    }
}

/// Checks that a database without a column of revisions, as before the migration that adds it, continues from its
/// position.
async fn is_brought_up_to_date_without(column: &str, migration: &str) {
    for database in test_databases::every_kind().await {
        let first = Replica::start(&database).await;
        first.put("a", "").await;
        first.sql(&format!("ALTER TABLE revisions DROP COLUMN {column}")).await;
        first.sql(&format!("DELETE FROM seaql_migrations WHERE version = '{migration}'")).await;
        first.stop().await;
        let replica = Replica::start(&database).await;
        assert_eq!((replica.text("a").is_some(), replica.put("b", "").await), (true, 2), "{}", database.kind);
        replica.stop().await;
    }
}

#[tokio::test]
async fn a_database_of_before_commits_had_ids_is_brought_up_to_date() {
    is_brought_up_to_date_without("last_commit", "commit_ids").await;
}

#[tokio::test]
async fn a_database_of_before_lineages_is_brought_up_to_date_and_is_no_copy() {
    is_brought_up_to_date_without("lineage", "additive_lineages").await;
}
