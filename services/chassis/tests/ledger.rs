//! The guarantees of the ledger and the mirror, on every database that the environment offers.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod events;
mod note;
mod served;

use std::{sync::Arc, time::Duration};

use chassis::{
    Context, Fault, Settings,
    store::{
        backup,
        ledger::{Draft, Ledger, ResumeToken, Selection},
    },
};
use expect_test::expect;
use futures_util::{FutureExt, StreamExt, future::join_all};
use note::{Note, Notes};
use sea_orm::{ConnectionTrait, Statement};
use served::Served;

/// Timeout that only a lost wake-up exceeds.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    for database in test_databases::every_kind().await {
        let context = Context::new(Settings::default());
        let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
        put(&ledger, "a", "one").await;
        put(&ledger, "b", "two").await;
        ledger
            .write(|draft| {
                draft.delete("a");
                Ok(())
            })
            .await
            .unwrap();
        stop(context).await;

        let context = Context::new(Settings::default());
        let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
        assert_eq!(texts(&ledger), ["b=two@2"], "{}", database.kind);
        assert_eq!(ledger.view().revision(), 3);
        stop(context).await;
    }
}

/// Rows of large tables are read in pages of thousands.
#[tokio::test]
async fn of_large_tables_every_row_is_there_after_a_restart() {
    for database in test_databases::every_kind().await {
        for count in [2_000, 4_001] {
            let context = Context::new(Settings::default());
            let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
            ledger
                .write(move |draft| {
                    (0..count).for_each(|n| draft.put(Note::new(&format!("n{n:05}"), "")));
                    Ok(())
                })
                .await
                .unwrap();
            let written = texts(&ledger);
            stop(context).await;

            let context = Context::new(Settings::default());
            let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
            assert_eq!(ledger.view().len(), count, "{}", database.kind);
            assert_eq!(texts(&ledger), written, "{}", database.kind);
            stop(context).await;
        }
    }
}

#[tokio::test]
async fn what_a_later_version_has_added_outlives_writes_of_this_one() {
    for database in test_databases::every_kind().await {
        let context = Context::new(Settings::default());
        let connection = note::connect(&database).await;
        let ledger: Ledger<Notes> = Ledger::open(&context, connection.clone()).await.unwrap();
        put(&ledger, "a", "one").await;
        stop(context).await;
        for statement in [
            "ALTER TABLE notes ADD COLUMN colour TEXT",
            "UPDATE notes SET colour = 'red'",
            "INSERT INTO seaql_migrations (version, applied_at) VALUES ('additive_colours', 1)",
        ] {
            connection.execute_unprepared(statement).await.unwrap();
        }

        let context = Context::new(Settings::default());
        let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
        put(&ledger, "a", "two").await;
        put(&ledger, "b", "three").await;
        assert_eq!(texts(&ledger), ["a=two@2", "b=three@3"], "{}", database.kind);
        let colours = "SELECT name FROM notes WHERE colour = 'red' AND text = 'two'";
        let colours = Statement::from_string(connection.get_database_backend(), colours);
        assert_eq!(connection.query_all_raw(colours).await.unwrap().len(), 1, "{}", database.kind);
        stop(context).await;
    }
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_not_done() {
    for database in test_databases::every_kind().await {
        let context = Context::new(Settings::default());
        let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
        let given_up = ledger.write(|draft| {
            draft.put(Note::new("a", "late"));
            Ok(())
        });
        // The write waits for its turn: the writer runs on the same thread.
        assert!(given_up.now_or_never().is_none());
        put(&ledger, "b", "in time").await;
        assert_eq!(texts(&ledger), ["b=in time@1"], "{}", database.kind);
        stop(context).await;
    }
}

#[tokio::test]
async fn a_refused_change_leaves_nothing_behind() {
    for database in test_databases::every_kind().await {
        let context = Context::new(Settings::default());
        let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
        let refused = ledger
            .write(|draft| -> Result<(), Fault> {
                draft.put(Note::new("a", "half"));
                Err(Fault::not_found("note", "b"))
            })
            .await;
        assert_eq!(refused, Err(Fault::not_found("note", "b")));
        assert!(ledger.view().is_empty());
        stop(context).await;
    }
}

#[tokio::test]
async fn concurrent_changes_of_one_resource_are_all_kept() {
    for database in test_databases::every_kind().await {
        let context = Context::new(Settings::default());
        let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
        put(&ledger, "a", "").await;
        let append = |_| {
            let ledger = ledger.clone();
            async move {
                let grow = |draft: &mut chassis::store::ledger::Draft<'_, Note>| {
                    let note = draft.get("a").expect("it was put");
                    draft.put(Note::new("a", &format!("{}x", note.text)));
                    Ok(())
                };
                ledger.write(grow).await.unwrap();
            }
        };
        futures_util::future::join_all((0..200).map(append)).await;
        assert_eq!(ledger.view().get("a").unwrap().text.len(), 200, "{}", database.kind);
        stop(context).await;
    }
}

#[tokio::test]
async fn a_change_that_names_a_revision_sees_others_of_the_same_transaction() {
    let database = test_databases::every_kind().await.remove(0);
    let context = Context::new(Settings::default());
    let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
    put(&ledger, "a", "").await;
    let replace = |n: u32| {
        let ledger = ledger.clone();
        async move {
            let if_unchanged = move |draft: &mut chassis::store::ledger::Draft<'_, Note>| {
                let unchanged = draft.get("a").filter(|note| note.revision == 1);
                if let Some(note) = &unchanged {
                    draft.put(Note { text: n.to_string(), ..Note::clone(note) });
                }
                Ok(unchanged.is_some())
            };
            ledger.write(if_unchanged).await.unwrap().0
        }
    };
    let replaced = futures_util::future::join_all((0..100).map(replace)).await;
    assert_eq!(replaced.into_iter().filter(|replaced| *replaced).count(), 1);
    stop(context).await;
}

#[tokio::test]
async fn a_second_writer_of_a_file_loses_no_update() {
    let database = test_databases::every_kind().await.remove(0);
    let context = Context::new(Settings::default());
    let first: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
    let second: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
    put(&first, "a", "first").await;
    let fenced = second
        .write(|draft| {
            draft.put(Note::new("a", "second"));
            Ok(())
        })
        .await;
    assert!(matches!(fenced, Err(Fault::Unavailable { .. })), "{fenced:?}");
    // After the refusal, the second writer reads the difference and can continue.
    second
        .write(|draft| {
            let text = draft.get("a").expect("caught up").text.clone();
            draft.put(Note::new("a", &(text + "+second")));
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!(texts(&second), ["a=first+second@2"], "{}", database.kind);
    stop(context).await;
}

#[tokio::test]
async fn a_refusal_that_rests_on_a_change_falls_with_it() {
    let database = test_databases::every_kind().await.remove(0);
    let context = Context::new(Settings::default());
    let first: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
    let second: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
    put(&first, "a", "").await;
    let create = || {
        second.write(|draft| match draft.get("b") {
            Some(_) => Err(Fault::AlreadyExists { kind: "note".into(), name: "b".into() }),
            None => {
                draft.put(Note::new("b", ""));
                Ok(())
            }
        })
    };
    // Both writes are in one transaction, which the first ledger has made impossible.
    let (created, refused) = tokio::join!(create(), create());
    assert!(matches!(created, Err(Fault::Unavailable { .. })), "{created:?}");
    assert_eq!(refused, created);
    stop(context).await;
}

#[tokio::test]
async fn a_large_change_comes_in_parts_that_can_be_resumed_from() {
    let database = test_databases::every_kind().await.remove(0);
    let context = Context::new(Settings::default());
    let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
    put(&ledger, "gone", "").await;
    let mut watch = Box::pin(ledger.watch(0).unwrap().batches());
    assert!(next(&mut watch).await.synced);
    ledger
        .write(|draft| {
            draft.delete("gone");
            (0..7_000).for_each(|n| draft.put(Note::new(&format!("n{n:05}"), "")));
            Ok(())
        })
        .await
        .unwrap();
    let mut parts = Vec::new();
    for _ in 0..3 {
        let part = next(&mut watch).await;
        parts.push((part.changed.len(), part.deleted.len(), part.revision, part.synced));
    }
    assert_eq!(parts, [(2500, 1, 2502, false), (2500, 0, 5002, false), (2000, 0, 7002, false)]);
    let resumed = next(&mut Box::pin(ledger.watch(5002).unwrap().batches())).await;
    assert_eq!((resumed.changed.len(), resumed.revision), (1000, 6002));
    stop(context).await;
}

#[tokio::test]
async fn a_watch_delivers_what_exists_then_every_change_in_order() {
    for database in test_databases::every_kind().await {
        let context = Context::new(Settings::default());
        let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
        put(&ledger, "a", "one").await;
        let mut watch = Box::pin(ledger.watch(0).unwrap().batches());
        let initial = next(&mut watch).await;
        assert!(initial.synced);
        assert_eq!((initial.changed.len(), initial.revision), (1, 1));

        put(&ledger, "b", "two").await;
        ledger
            .write(|draft| {
                draft.delete("a");
                Ok(())
            })
            .await
            .unwrap();
        let (second, third) = (next(&mut watch).await, next(&mut watch).await);
        assert_eq!((second.revision, third.revision), (2, 3));
        assert_eq!(third.deleted[0].key.as_ref(), "a");

        let mut resumed = Box::pin(ledger.watch(1).unwrap().batches());
        let missed = next(&mut resumed).await;
        assert_eq!(
            (missed.changed.len(), missed.deleted.len(), missed.revision, missed.synced),
            (1, 1, 3, true)
        );
        assert_eq!(ledger.watch(4).err(), Some(Fault::ResumeExpired(4)));
        stop(context).await;
    }
}

#[tokio::test]
async fn a_watch_that_falls_behind_gets_the_newest_state_in_bounded_memory() {
    let database = test_databases::every_kind().await.remove(0);
    let context = Context::new(Settings::default());
    let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
    let mut slow = Box::pin(ledger.watch(0).unwrap().batches());
    assert!(next(&mut slow).await.synced);
    for n in 0..600 {
        put(&ledger, &format!("n{}", n % 7), &n.to_string()).await;
    }
    let (mut seen, mut last, mut batches) = (std::collections::BTreeMap::new(), 0, 0);
    while last < 600 {
        let batch = next(&mut slow).await;
        assert!(batch.revision > last, "revisions go up");
        last = batch.revision;
        batches += 1;
        seen.extend(batch.changed.iter().map(|note| (note.name.clone(), note.text.clone())));
    }
    assert!(batches < 600, "{batches} batches");
    assert_eq!(
        seen.values().map(String::as_str).collect::<Vec<_>>(),
        ["595", "596", "597", "598", "599", "593", "594"]
    );
    stop(context).await;
}

#[tokio::test]
async fn lists_show_what_is_selected_in_order_and_in_pages() {
    let database = test_databases::every_kind().await.remove(0);
    let context = Context::new(Settings::default());
    let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
    ledger
        .write(|draft| {
            (0..6000).for_each(|n| draft.put(Note::new(&format!("n{n:04}"), "")));
            Ok(())
        })
        .await
        .unwrap();
    let all = Selection::default;
    let some = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
    let rows: [(&str, Selection<Note>); 7] = [
        ("all", all()),
        ("most", Selection { most: 5, ..all() }),
        ("the end", Selection { after: "n5997".into(), ..all() }),
        ("far apart", Selection { wanted: Box::new(|note| note.name.ends_with("499")), ..all() }),
        ("nothing", Selection { wanted: Box::new(|_| false), ..all() }),
        ("by key", Selection { keys: some(&["n0007", "x", "n0003", "n0005"]), ..all() }),
        (
            "all at once",
            Selection {
                keys: some(&["n0007", "n0003", "n0005", "n0009", "n0008"]),
                after: "n0003".into(),
                most: 2,
                wanted: Box::new(|note| note.name != "n0005"),
                ..all()
            },
        ),
    ];
    let mut seen = String::new();
    for (label, selection) in rows {
        let names = |found: &[Arc<Note>]| found.iter().map(|note| note.name.clone()).collect::<Vec<_>>();
        let pages: Vec<_> = ledger.serve_list(selection, 2, names).into_inner().collect().await;
        let pages: Vec<_> = pages.into_iter().map(Result::unwrap).collect();
        assert!(pages.concat().is_sorted(), "{label}");
        let shown: Vec<_> = pages.iter().take(4).map(|page| page.join(" ")).collect();
        seen += &format!("{label}: {} in {}: {}\n", pages.concat().len(), pages.len(), shown.join(", "));
    }
    expect![[r#"
        all: 6000 in 3000: n0000 n0001, n0002 n0003, n0004 n0005, n0006 n0007
        most: 5 in 3: n0000 n0001, n0002 n0003, n0004
        the end: 2 in 1: n5998 n5999
        far apart: 6 in 3: n0499 n1499, n2499 n3499, n4499 n5499
        nothing: 0 in 1: 
        by key: 3 in 2: n0003 n0005, n0007
        all at once: 2 in 1: n0007 n0008
    "#]]
    .assert_eq(&seen);
    stop(context).await;
}

#[tokio::test]
async fn a_watch_that_is_served_ends_with_the_service() {
    let database = test_databases::every_kind().await.remove(0);
    let context = Context::new(Settings::default());
    let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
    put(&ledger, "a", "one").await;
    let mut watch = ledger.serve_watch(0).await.unwrap().into_inner();
    let told = watch.next().await.unwrap().unwrap();
    assert_eq!(note::names(&told), "a");
    stop(context).await;
    assert!(tokio::time::timeout(PATIENCE, watch.next()).await.unwrap().is_none());
    let refused = ledger.serve_watch(9).await.err().map(Fault::from);
    assert_eq!(refused, Some(Fault::ResumeExpired(9)));
}

/// Returns the incarnation that a watch names, and the token of its last delivery.
async fn watched(ledger: &Ledger<Notes>, resume: ResumeToken) -> Result<ResumeToken, Fault> {
    let response = ledger.serve_watch(resume).await?;
    let mut request = tonic::Request::new(ledger.view().revision());
    *request.metadata_mut() = response.metadata().clone();
    Ok(ResumeToken::received(&request, |revision| *revision))
}

#[tokio::test]
async fn restored_file_refuses_watches_of_the_lost_history() {
    let directory = tempfile::tempdir().unwrap();
    let (file, backup) = (directory.path().join("notes.db"), directory.path().join("backup.db"));
    let database = test_databases::EmptyDatabase::at(format!("sqlite://{}?mode=rwc", file.display()));
    let open = async || {
        let (context, connection) = (Context::new(Settings::default()), note::connect(&database).await);
        let ledger: Ledger<Notes> = Ledger::open(&context, connection.clone()).await.unwrap();
        (context, connection, ledger)
    };
    let close = async |context: Context, connection: sea_orm::DatabaseConnection| {
        stop(context).await;
        connection.close().await.unwrap();
    };
    let (context, connection, ledger) = open().await;
    put(&ledger, "a", "kept").await;
    let kept = watched(&ledger, ResumeToken::default()).await.unwrap();
    drop(ledger);
    close(context, connection).await;
    std::fs::copy(&file, &backup).unwrap();

    let (context, connection, ledger) = open().await;
    let restarted = watched(&ledger, kept).await.unwrap();
    assert_ne!(restarted.incarnation, kept.incarnation, "nobody can tell that the file is the same");
    put(&ledger, "b", "lost").await;
    let lost = watched(&ledger, restarted).await.unwrap();
    drop(ledger);
    close(context, connection).await;
    std::fs::copy(&backup, &file).unwrap();

    let (context, connection, ledger) = open().await;
    put(&ledger, "c", "instead").await;
    put(&ledger, "d", "more").await;
    assert_eq!(watched(&ledger, lost).await, Err(Fault::ResumeExpired(2)));
    assert!(watched(&ledger, kept).await.is_ok(), "both histories have it");
    close(context, connection).await;
}

#[tokio::test]
async fn backup_begins_another_incarnation_when_it_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let [file, backup] = ["notes.db", "backup.db"].map(|name| directory.path().join(name));
    let [database, restored] = [&file, &backup]
        .map(|file| test_databases::EmptyDatabase::at(format!("sqlite://{}?mode=rwc", file.display())));
    let context = Context::new(Settings::default());
    let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
    put(&ledger, "a", "one").await;
    put(&ledger, "b", note::DOUBTFUL).await;
    let kept = watched(&ledger, ResumeToken::default()).await.unwrap();
    backup::copy_database(&file, &backup).await.unwrap();
    stop(context).await;

    let again = directory.path().join("again.db");
    std::fs::copy(&backup, &again).unwrap();
    let again = test_databases::EmptyDatabase::at(format!("sqlite://{}", again.display()));
    let reopened = async |database: &test_databases::EmptyDatabase| {
        let context = Context::new(Settings::default());
        let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(database).await).await.unwrap();
        let watch = watched(&ledger, kept).await;
        let found = (texts(&ledger), ledger.view().revision());
        stop(context).await;
        (found, watch)
    };
    let ((texts, revision), watch) = reopened(&restored).await;
    assert_eq!(texts, ["a=one@1".to_owned(), format!("b=as of {}@{revision}", revision - 1)]);
    assert_eq!(watch, Err(Fault::ResumeExpired(2)));
    let ((_, same), _) = reopened(&restored).await;
    assert_eq!(same, revision, "it is a database like any other from then on");
    let ((_, other), _) = reopened(&again).await;
    assert!(other > revision, "what followed the same backup before has other revisions");
}

#[tokio::test]
async fn without_what_writes_begin_with_a_part_is_not_ready() {
    for (lose, restore) in [
        ("ALTER TABLE revisions RENAME TO elsewhere", "ALTER TABLE elsewhere RENAME TO revisions"),
        (
            "UPDATE revisions SET kind = 'elsewhere' WHERE kind = 'note'",
            "UPDATE revisions SET kind = 'note' WHERE kind = 'elsewhere'",
        ),
    ] {
        for database in test_databases::every_kind().await {
            let context = Context::new(Settings::default());
            let connection = note::connect(&database).await;
            let ledger: Ledger<Notes> = Ledger::open(&context, connection.clone()).await.unwrap();
            let served = Served::start(&context).await;
            served.eventually_is(true).await;
            connection.execute_unprepared(lose).await.unwrap();
            let refused = ledger.write(|draft| {
                draft.put(Note::new("a", ""));
                Ok(())
            });
            assert!(refused.await.is_err(), "{} {lose}", database.kind);
            served.eventually_is(false).await;
            served.stays_unready().await;
            connection.execute_unprepared(restore).await.unwrap();
            served.eventually_is(true).await;
            put(&ledger, "a", "").await;
            stop(context).await;
        }
    }
}

#[tokio::test]
async fn what_changes_is_encoded_once_for_all_watches() {
    let database = test_databases::every_kind().await.remove(0);
    let context = Context::new(Settings::default());
    let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
    let mut watches = Vec::new();
    for resume in [0, 0, 0] {
        let mut watch = ledger.serve_watch(resume).await.unwrap().into_inner();
        watch.next().await.unwrap().unwrap();
        watches.push(watch);
    }
    put(&ledger, "a", "one").await;
    let many = |draft: &mut Draft<'_, Note>| {
        (0..3_000).for_each(|number| draft.put(Note::new(&format!("n{number:04}"), "")));
        Ok(())
    };
    ledger.write(many).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let told = join_all(watches.iter_mut().map(StreamExt::next)).await;
        let told: Vec<_> = told.into_iter().map(|told| told.unwrap().unwrap()).collect();
        assert!(told.iter().all(|other| other.bytes().as_ptr() == told[0].bytes().as_ptr()));
        let names = note::names(&told[0]);
        seen.push((names[..names.len().min(5)].to_owned(), names.split(' ').count()));
    }
    let parts = [("a", 1), ("n0000", 2_500), ("n2500", 500)];
    assert_eq!(seen, parts.map(|(first, count)| (first.to_owned(), count)));
    stop(context).await;
}

#[tokio::test]
async fn a_list_that_the_end_of_the_service_cuts_off_fails() {
    for database in test_databases::every_kind().await {
        let context = Context::new(Settings::default());
        let ledger: Ledger<Notes> = Ledger::open(&context, note::connect(&database).await).await.unwrap();
        for name in ["a", "b", "c"] {
            put(&ledger, name, "").await;
        }
        let names = |notes: &[Arc<Note>]| notes.len();
        let mut pages = ledger.serve_list(Selection::default(), 1, names).into_inner();
        assert!(matches!(pages.next().await, Some(Ok(1))));
        context.tasks.shutdown().cancel();
        let rest: Vec<_> = pages.collect().await;
        assert_eq!(rest[0].as_ref().unwrap_err().code(), tonic::Code::Unavailable);
    }
}

async fn put(ledger: &Ledger<Notes>, name: &str, text: &str) {
    let note = Note::new(name, text);
    ledger
        .write(move |draft| {
            draft.put(note);
            Ok(())
        })
        .await
        .unwrap();
}

fn texts(ledger: &Ledger<Notes>) -> Vec<String> {
    ledger.view().all().iter().map(|note| format!("{}={}@{}", note.name, note.text, note.revision)).collect()
}

async fn next<S>(watch: &mut S) -> Arc<chassis::store::resource::Batch<Note>>
where
    S: futures_util::Stream<Item = Result<Arc<chassis::store::resource::Batch<Note>>, Fault>> + Unpin,
{
    tokio::time::timeout(PATIENCE, watch.next()).await.expect("in time").expect("no end").expect("no fault")
}

async fn stop(context: Context) {
    context.tasks.shutdown().cancel();
    context.tasks.finished(PATIENCE).await.unwrap();
}
