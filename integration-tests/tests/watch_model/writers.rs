//! Those who write: operators, nodes and sessions, all at once and to the same components.

use std::{sync::Arc, time::Duration};

use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    history::{Change, ERROR, Key, LANES, Lanes, REPORT, Recorder, SESSION},
    wire::{Call, Client, has_no_effect},
};

/// Components that everybody writes to. Few, so that writes meet.
const CONTENDED: usize = 24;

/// Components besides, which are there so that sets come in several batches.
const OTHERS: usize = 1_200;

/// What is refused for want of a registry is tried again after this.
const PAUSE: Duration = Duration::from_millis(5);

/// Deletions of one churn that are under way at the same time.
const AT_ONCE: usize = 256;

/// Components that come and go together in a churn.
const CHURNED: usize = 2_500;

/// Ids of the contended components.
pub fn contended() -> Vec<Key> {
    (0..CONTENDED).map(|index| format!("x{index}").into()).collect()
}

/// Writes, and notes what becomes of it. Says whether it is durable.
pub async fn write(client: &Client, recorder: &Recorder, call: Call, keys: Vec<Key>) -> bool {
    write_text(client, recorder, call, keys, str::to_owned).await
}

/// The same; `text` makes what is written from a text that no other write has.
pub async fn write_text(
    client: &Client,
    recorder: &Recorder,
    call: Call,
    keys: Vec<Key>,
    text: impl Fn(&str) -> String,
) -> bool {
    write_lane(client, recorder, call, ERROR, keys, text).await
}

async fn write_lane(
    client: &Client,
    recorder: &Recorder,
    call: Call,
    lane: usize,
    keys: Vec<Key>,
    text: impl Fn(&str) -> String,
) -> bool {
    let (index, change) = recorder.begin(keys.clone(), |own| change(call, lane, &text(own)));
    match client.write(call, &keys, &change).await {
        Ok((changed, revision)) => {
            recorder.acknowledge(index, changed, revision);
            true
        }
        Err(status) => {
            if has_no_effect(&status) {
                recorder.refuse(index);
            }
            false
        }
    }
}

fn change(call: Call, lane: usize, text: &str) -> Change {
    let mut lanes = [const { None }; LANES];
    match call {
        Call::Put => {
            let mut lanes = Lanes::default();
            lanes[lane] = text.into();
            return Change::Replace(lanes);
        }
        Call::Delete => return Change::Delete,
        Call::PatchEach | Call::PatchMany => lanes[lane] = Some(text.into()),
        Call::Assign => {
            lanes[SESSION] = Some(text.into());
            lanes[ERROR] = Some("".into());
        }
    }
    Change::Merge(lanes)
}

/// Makes all components.
pub async fn make_all(client: &Client, recorder: &Recorder) {
    assert!(write(client, recorder, Call::Put, contended()).await);
    assert!(write(client, recorder, Call::Put, others()).await);
}

fn others() -> Vec<Key> {
    (0..OTHERS).map(|index| format!("y{index}").into()).collect()
}

/// One of those who write.
pub struct Writer {
    rng: SmallRng,
    clients: Vec<Client>,
    recorder: Arc<Recorder>,
    contended: Vec<Key>,
}

impl Writer {
    /// A writer that does what `seed` says.
    pub fn new(seed: u64, clients: Vec<Client>, recorder: Arc<Recorder>) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed), clients, recorder, contended: contended() }
    }

    /// Writes until it is told to stop.
    pub async fn run(mut self, stopped: watch::Receiver<bool>) {
        while !*stopped.borrow() {
            let client = self.clients.choose(&mut self.rng).unwrap().clone();
            let (call, lane, keys) = self.next();
            if !write_lane(&client, &self.recorder, call, lane, keys, str::to_owned).await {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    fn next(&mut self) -> (Call, usize, Vec<Key>) {
        match self.rng.random_range(0..1000) {
            0..300 => (Call::PatchEach, ERROR, self.some(1)),
            300..500 => (Call::PatchEach, REPORT, self.some(1)),
            500..600 => (Call::PatchEach, REPORT, self.some(4)),
            600..700 => (Call::PatchMany, ERROR, self.some(12)),
            700..780 => (Call::Assign, SESSION, self.some(3)),
            780..880 => (Call::Delete, ERROR, self.some(1)),
            880..990 => (Call::Put, ERROR, self.some(2)),
            _ => (Call::PatchMany, ERROR, others()),
        }
    }

    fn some(&mut self, most: usize) -> Vec<Key> {
        let count = self.rng.random_range(1..=most);
        self.contended.choose_multiple(&mut self.rng, count).cloned().collect()
    }
}

/// Makes and deletes components until that many were deleted, which is more than need be remembered.
pub async fn churn(client: &Client, recorder: &Arc<Recorder>, deletions: usize) {
    let keys: Vec<Key> = (0..CHURNED).map(|index| format!("z{index}").into()).collect();
    let mut deleted = 0;
    while deleted < deletions {
        if !write(client, recorder, Call::Put, keys.clone()).await {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let mut under_way = JoinSet::new();
        for chunk in keys.chunks(keys.len().div_ceil(AT_ONCE)) {
            let (client, recorder, chunk) = (client.clone(), Arc::clone(recorder), chunk.to_vec());
            under_way.spawn(async move {
                let mut deleted = 0;
                for key in chunk {
                    deleted += usize::from(write(&client, &recorder, Call::Delete, vec![key]).await);
                }
                deleted
            });
        }
        deleted += under_way.join_all().await.into_iter().sum::<usize>();
    }
}
