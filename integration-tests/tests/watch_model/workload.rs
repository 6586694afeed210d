//! Everything at once: writers, watchers and weather.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use integration_tests::eventually;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use crate::{
    faults::FAULTS,
    history::{RunHistory, RunRecorder, WatcherEntry},
    site::{RegistryEnd, RegistrySite},
    watchers::{ModelWatcher, ResumePoint, WatcherHabits},
    weather,
    wire::RegistryClient,
    writers::{self, ModelWriter},
};

/// Window in bytes of an unread stream.
const WINDOW: u32 = 1 << 20;

/// Window of a slow reader: so small that the reader falls behind soon.
const SMALL_WINDOW: u32 = 2048;

/// Writers at the same time.
const WRITERS: u64 = 4;

/// Parameters of a run.
#[derive(Debug, Clone)]
pub struct RunWorkload {
    pub seed: u64,
    pub registries: usize,
    pub end: RegistryEnd,
    /// Time for which writers write.
    pub duration: Duration,
    /// Whether registries are ended and started meanwhile.
    pub restarts: bool,
    /// Whether watchers with planted faults take part.
    pub lies: bool,
    /// Components that are deleted beside the writers.
    pub churn: usize,
}

/// Figures of a run.
pub struct RunSummary {
    pub writes: usize,
    pub batches: usize,
    pub resumed: usize,
    pub broke: usize,
    pub expired: usize,
}

impl RunWorkload {
    /// Runs it on an empty database.
    pub async fn run(&self, database: &str) -> RunHistory {
        let site = RegistrySite::start(database, self.registries, self.end).await;
        let urls = site.urls();
        let clients = |window| urls.iter().map(|url| RegistryClient::new(url, window)).collect::<Vec<_>>();
        let recorder = Arc::new(RunRecorder::default());
        writers::make_all(&clients(WINDOW)[0], &recorder).await;

        let (stop, stopped) = watch::channel(false);
        let (last, told) = watch::channel(0);
        let mut watchers = JoinSet::new();
        for ((name, habits), seed) in self.watchers().into_iter().zip(self.seed + 1000..) {
            let window = if habits.pauses.is_some() { SMALL_WINDOW } else { WINDOW };
            let watcher =
                ModelWatcher::new(seed, habits, clients(window), Arc::clone(&recorder), told.clone());
            watchers.spawn(async move { (name, watcher.run().await) });
        }
        let mut writing = JoinSet::new();
        for seed in self.seed..self.seed + WRITERS {
            writing
                .spawn(ModelWriter::new(seed, clients(WINDOW), Arc::clone(&recorder)).run(stopped.clone()));
        }
        let weather = tokio::spawn(self.weather(site, stopped));
        let (client, churning) = (clients(WINDOW).swap_remove(0), Arc::clone(&recorder));
        tokio::join!(sleep(self.duration), writers::churn(&client, &churning, self.churn));
        stop.send_replace(true);
        let site = weather.await.unwrap();
        writing.join_all().await;

        let revision = last_revision(&clients(WINDOW)).await;
        last.send_replace(revision);
        let mut watchers = watchers.join_all().await;
        watchers
            .push(("whoever looks in the end".to_owned(), look(&clients(WINDOW), &recorder, revision).await));
        watchers.sort_by(|(one, _), (other, _)| one.cmp(other));
        site.stop().await;
        RunHistory { writes: recorder.writes(), watchers, last: revision }
    }

    fn weather(
        &self,
        site: RegistrySite,
        mut stopped: watch::Receiver<bool>,
    ) -> impl Future<Output = RegistrySite> + use<> {
        let (seed, restarts) = (self.seed, self.restarts);
        async move {
            match restarts {
                true => weather::blow(site, seed, stopped).await,
                false => {
                    let _stopped = stopped.wait_for(|stopped| *stopped).await;
                    site
                }
            }
        }
    }

    fn watchers(&self) -> Vec<(String, WatcherHabits)> {
        let habits = WatcherHabits::default;
        let leaving = |returns| WatcherHabits { leaves: Some(1..60), returns, ..habits() };
        let mut watchers = vec![
            ("steady".to_owned(), habits()),
            ("lists".to_owned(), WatcherHabits { lists: true, ..habits() }),
            ("resumes".to_owned(), leaving(ResumePoint::Last)),
            ("resumes earlier".to_owned(), leaving(ResumePoint::Earlier)),
            (
                "resumes at its first".to_owned(),
                WatcherHabits { leaves: Some(40..400), ..leaving(ResumePoint::First) },
            ),
            ("starts over".to_owned(), WatcherHabits { leaves: Some(10..100), ..leaving(ResumePoint::Zero) }),
            ("slow".to_owned(), WatcherHabits { pauses: Some(300..900), ..habits() }),
            (
                "slow and leaves".to_owned(),
                WatcherHabits { pauses: Some(300..900), ..leaving(ResumePoint::Last) },
            ),
            ("sleeps".to_owned(), WatcherHabits { sleeps: true, ..habits() }),
        ];
        if self.lies {
            watchers.extend(FAULTS.map(|fault| {
                let fault = WatcherHabits { fault: Some(fault), leaves: Some(10..40), ..habits() };
                (format!("{:?}", fault.fault.unwrap()), fault)
            }));
        }
        watchers
    }
}

/// The highest revision of all registries after the last write.
async fn last_revision(clients: &[RegistryClient]) -> u64 {
    let mut last = 0;
    for client in clients {
        let listed = eventually("a list", async || client.list().await.ok().flatten()).await;
        last = last.max(listed.1);
    }
    last
}

/// Reads a list of every registry that has come so far.
async fn look(clients: &[RegistryClient], recorder: &RunRecorder, last: u64) -> Vec<WatcherEntry> {
    let mut entries = Vec::new();
    for client in clients {
        let entry = eventually("a list of everything", async || {
            let asked = recorder.now();
            let (events, revision) = client.list().await.ok().flatten()?;
            (revision >= last).then(|| WatcherEntry::Listed { asked, at: recorder.now(), events, revision })
        });
        entries.push(entry.await);
    }
    entries
}

impl fmt::Display for RunSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, batches, resumed, broke, expired } = self;
        write!(
            f,
            "{writes} writes; {batches} batches, {resumed} resumed, {broke} cut, {expired} started over"
        )
    }
}

/// Counts the events of a run.
pub fn summary(history: &RunHistory) -> RunSummary {
    let entries = || history.watchers.iter().flat_map(|(_, entries)| entries);
    let count = |wanted: fn(&WatcherEntry) -> bool| entries().filter(|entry| wanted(entry)).count();
    RunSummary {
        writes: history.writes.len(),
        batches: count(|entry| matches!(entry, WatcherEntry::Told { .. })),
        resumed: count(|entry| matches!(entry, WatcherEntry::Opened { from, .. } if *from > 0)),
        broke: count(|entry| matches!(entry, WatcherEntry::Broke { .. })),
        expired: count(|entry| matches!(entry, WatcherEntry::Expired)),
    }
}
