//! An unread watch costs bounded memory, and affects no other client.

use futures_util::StreamExt;
use integration_tests::PATIENCE;
use tokio::time::timeout;

use crate::{
    history::RunRecorder,
    site::{RegistryEnd, RegistrySite},
    wire::{Batches, RegistryClient, WriteCall},
    writers::{contended, write_text},
};

/// Commits during the pause, one component each.
const COMMITS: usize = 1_000;

/// Bytes of each delivered component: large, so that the network holds only a few of them.
const SIZE: usize = 32_000;

/// Bytes in flight: the stream's window, the messages made before the registry noticed, and the buffers of both ends.
const UNDER_WAY: usize = 4 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn unread_watch_skips_to_the_newest_without_delaying_others() {
    let database = test_databases::every_kind().await.swap_remove(0);
    let site = RegistrySite::start(&database.url, 1, RegistryEnd::Orderly).await;
    let url = &site.urls()[0];
    let (client, stopped) = (RegistryClient::new(url, 1 << 20), RegistryClient::new(url, 1 << 20));
    let recorder = RunRecorder::default();
    write_text(&client, &recorder, WriteCall::Put, contended(), str::to_owned).await;
    let mut stopped = stopped.watch(0).await.unwrap();
    let mut reader = client.watch(0).await.unwrap();
    let begin = reach(&mut reader, 1).await.revision;
    let end = begin + COMMITS as u64;
    let reading = tokio::spawn(async move { reach(&mut reader, end).await });
    let keys = contended();
    for index in 0..COMMITS {
        let keys = vec![keys[index % keys.len()].clone()];
        let large = |text: &str| format!("{text}{}", " ".repeat(SIZE));
        assert!(write_text(&client, &recorder, WriteCall::PatchEach, keys, large).await);
    }
    let read = reading.await.unwrap();
    let unread = reach(&mut stopped, end).await;
    println!("told to who read: {read:?}; to who did not: {unread:?}");
    assert_eq!(unread.revision, read.revision);
    // Beyond the bytes in flight, the watch gets each component once.
    let most = UNDER_WAY / SIZE + 2 * keys.len();
    assert!(unread.components <= most, "{unread:?}: more than {most} were kept for it");
    site.stop().await;
}

/// Last revision and number of components of a watch.
#[derive(Debug, Default)]
struct WatchResult {
    revision: u64,
    components: usize,
}

/// Reads on to a revision.
async fn reach(batches: &mut Batches, revision: u64) -> WatchResult {
    let mut told = WatchResult::default();
    while told.revision < revision {
        let batch = timeout(PATIENCE, batches.next()).await.expect("a batch in time").unwrap().unwrap();
        told.revision = batch.revision;
        told.components += batch.components.len();
    }
    told
}
