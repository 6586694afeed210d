//! Everything at once: writers, watchers and weather.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use integration_tests::eventually;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use crate::{
    faults::FAULTS,
    history::{Entry, History, Recorder},
    site::{End, Site},
    watchers::{Habits, Return, Watcher},
    weather,
    wire::Client,
    writers::{self, Writer},
};

/// Bytes that a stream takes whose reader does not read.
const WINDOW: u32 = 1 << 20;

/// The same for those who read slowly: so few that they are behind soon.
const SMALL_WINDOW: u32 = 2048;

/// Writers at the same time.
const WRITERS: u64 = 4;

/// What a run is like.
#[derive(Debug, Clone)]
pub struct Workload {
    pub seed: u64,
    pub registries: usize,
    pub end: End,
    /// How long writers write.
    pub duration: Duration,
    /// Whether registries are ended and started meanwhile.
    pub restarts: bool,
    /// Whether there are also watchers who are lied to.
    pub lies: bool,
    /// Components that are deleted besides what writers do.
    pub churn: usize,
}

/// What a run was like.
pub struct Summary {
    pub writes: usize,
    pub batches: usize,
    pub resumed: usize,
    pub broke: usize,
    pub expired: usize,
}

impl Workload {
    /// Runs it on an empty database.
    pub async fn run(&self, database: &str) -> History {
        let site = Site::start(database, self.registries, self.end).await;
        let urls = site.urls();
        let clients = |window| urls.iter().map(|url| Client::new(url, window)).collect::<Vec<_>>();
        let recorder = Arc::new(Recorder::default());
        writers::make_all(&clients(WINDOW)[0], &recorder).await;

        let (stop, stopped) = watch::channel(false);
        let (last, told) = watch::channel(0);
        let mut watchers = JoinSet::new();
        for ((name, habits), seed) in self.watchers().into_iter().zip(self.seed + 1000..) {
            let window = if habits.pauses.is_some() { SMALL_WINDOW } else { WINDOW };
            let watcher = Watcher::new(seed, habits, clients(window), Arc::clone(&recorder), told.clone());
            watchers.spawn(async move { (name, watcher.run().await) });
        }
        let mut writing = JoinSet::new();
        for seed in self.seed..self.seed + WRITERS {
            writing.spawn(Writer::new(seed, clients(WINDOW), Arc::clone(&recorder)).run(stopped.clone()));
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
        History { writes: recorder.writes(), watchers, last: revision }
    }

    fn weather(&self, site: Site, mut stopped: watch::Receiver<bool>) -> impl Future<Output = Site> + use<> {
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

    fn watchers(&self) -> Vec<(String, Habits)> {
        let habits = Habits::default;
        let leaving = |returns| Habits { leaves: Some(1..60), returns, ..habits() };
        let mut watchers = vec![
            ("steady".to_owned(), habits()),
            ("lists".to_owned(), Habits { lists: true, ..habits() }),
            ("resumes".to_owned(), leaving(Return::Last)),
            ("resumes earlier".to_owned(), leaving(Return::Earlier)),
            ("resumes at its first".to_owned(), Habits { leaves: Some(40..400), ..leaving(Return::First) }),
            ("starts over".to_owned(), Habits { leaves: Some(10..100), ..leaving(Return::Zero) }),
            ("slow".to_owned(), Habits { pauses: Some(300..900), ..habits() }),
            ("slow and leaves".to_owned(), Habits { pauses: Some(300..900), ..leaving(Return::Last) }),
            ("sleeps".to_owned(), Habits { sleeps: true, ..habits() }),
        ];
        if self.lies {
            watchers.extend(FAULTS.map(|fault| {
                let fault = Habits { fault: Some(fault), leaves: Some(10..40), ..habits() };
                (format!("{:?}", fault.fault.unwrap()), fault)
            }));
        }
        watchers
    }
}

/// The highest revision of all registries, now that nobody writes.
async fn last_revision(clients: &[Client]) -> u64 {
    let mut last = 0;
    for client in clients {
        let listed = eventually("a list", async || client.list().await.ok().flatten()).await;
        last = last.max(listed.1);
    }
    last
}

/// Reads a list of every registry that has come so far.
async fn look(clients: &[Client], recorder: &Recorder, last: u64) -> Vec<Entry> {
    let mut entries = Vec::new();
    for client in clients {
        let entry = eventually("a list of everything", async || {
            let asked = recorder.now();
            let (events, revision) = client.list().await.ok().flatten()?;
            (revision >= last).then(|| Entry::Listed { asked, at: recorder.now(), events, revision })
        });
        entries.push(entry.await);
    }
    entries
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, batches, resumed, broke, expired } = self;
        write!(
            f,
            "{writes} writes; {batches} batches, {resumed} resumed, {broke} cut, {expired} started over"
        )
    }
}

/// Counts what happened.
pub fn summary(history: &History) -> Summary {
    let entries = || history.watchers.iter().flat_map(|(_, entries)| entries);
    let count = |wanted: fn(&Entry) -> bool| entries().filter(|entry| wanted(entry)).count();
    Summary {
        writes: history.writes.len(),
        batches: count(|entry| matches!(entry, Entry::Told { .. })),
        resumed: count(|entry| matches!(entry, Entry::Opened { from, .. } if *from > 0)),
        broke: count(|entry| matches!(entry, Entry::Broke { .. })),
        expired: count(|entry| matches!(entry, Entry::Expired)),
    }
}
