//! A watcher that does not read at all costs bounded memory, and nobody else notices.

use futures_util::StreamExt;
use integration_tests::PATIENCE;
use tokio::time::timeout;

use crate::{
    history::Recorder,
    site::{End, Site},
    wire::{Batches, Call, Client},
    writers::{contended, write_text},
};

/// Commits while nobody reads, one component each.
const COMMITS: usize = 1_000;

/// Bytes of each component that is told: large ones, so that what is under way on the network is few of them.
const SIZE: usize = 32_000;

/// Bytes that may be under way: what a stream takes unread, what the registry had put into messages before it noticed,
/// and what both ends of a connection buffer.
const UNDER_WAY: usize = 4 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_is_told_the_newest_and_keeps_nobody_else() {
    let database = test_databases::every_kind().await.swap_remove(0);
    let site = Site::start(&database.url, 1, End::Orderly).await;
    let url = &site.urls()[0];
    let (client, stopped) = (Client::new(url, 1 << 20), Client::new(url, 1 << 20));
    let recorder = Recorder::default();
    write_text(&client, &recorder, Call::Put, contended(), str::to_owned).await;
    let mut stopped = stopped.watch(0).await.unwrap();
    let mut reader = client.watch(0).await.unwrap();
    let begin = reach(&mut reader, 1).await.revision;
    let end = begin + COMMITS as u64;
    let reading = tokio::spawn(async move { reach(&mut reader, end).await });
    let keys = contended();
    for index in 0..COMMITS {
        let keys = vec![keys[index % keys.len()].clone()];
        let large = |text: &str| format!("{text}{}", " ".repeat(SIZE));
        assert!(write_text(&client, &recorder, Call::PatchEach, keys, large).await);
    }
    let read = reading.await.unwrap();
    let unread = reach(&mut stopped, end).await;
    println!("told to who read: {read:?}; to who did not: {unread:?}");
    assert_eq!(unread.revision, read.revision);
    // It missed almost everything, so what it gets beyond what was under way is each component once.
    let most = UNDER_WAY / SIZE + 2 * keys.len();
    assert!(unread.components <= most, "{unread:?}: more than {most} were kept for it");
    site.stop().await;
}

/// What a watch told.
#[derive(Debug, Default)]
struct Told {
    revision: u64,
    components: usize,
}

/// Reads on to a revision.
async fn reach(batches: &mut Batches, revision: u64) -> Told {
    let mut told = Told::default();
    while told.revision < revision {
        let batch = timeout(PATIENCE, batches.next()).await.expect("a batch in time").unwrap().unwrap();
        told.revision = batch.revision;
        told.components += batch.components.len();
    }
    told
}
