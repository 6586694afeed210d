//! Writers: operators, nodes and sessions, all at once and to the same components.

use std::{sync::Arc, time::Duration};

use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    history::{ERROR, Key, LANES, Lanes, REPORT, RunRecorder, SESSION, WriteChange},
    wire::{RegistryClient, WriteCall, has_no_effect},
};

/// Components that all writers share. Few, so that writes collide.
const CONTENDED: usize = 24;

/// Components besides, which are there so that sets come in several batches.
const OTHERS: usize = 1_200;

/// Pause before the retry of a call that no registry took.
const PAUSE: Duration = Duration::from_millis(5);

/// Deletions of one churn that are under way at the same time.
const AT_ONCE: usize = 256;

/// Components that come and go together in a churn.
const CHURNED: usize = 2_500;

/// Ids of the contended components.
pub fn contended() -> Vec<Key> {
    (0..CONTENDED).map(|index| format!("x{index}").into()).collect()
}

/// Writes, and records the outcome. Returns whether the write is durable.
pub async fn write(client: &RegistryClient, recorder: &RunRecorder, call: WriteCall, keys: Vec<Key>) -> bool {
    write_text(client, recorder, call, keys, str::to_owned).await
}

/// Writes as [`write`] does, with `text` applied to the unique text of the write.
pub async fn write_text(
    client: &RegistryClient,
    recorder: &RunRecorder,
    call: WriteCall,
    keys: Vec<Key>,
    text: impl Fn(&str) -> String,
) -> bool {
    write_lane(client, recorder, call, ERROR, keys, text).await
}

async fn write_lane(
    client: &RegistryClient,
    recorder: &RunRecorder,
    call: WriteCall,
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

fn change(call: WriteCall, lane: usize, text: &str) -> WriteChange {
    let mut lanes = [const { None }; LANES];
    match call {
        WriteCall::Put => {
            let mut lanes = Lanes::default();
            lanes[lane] = text.into();
            return WriteChange::Replace(lanes);
        }
        WriteCall::Delete => return WriteChange::Delete,
        WriteCall::PatchEach | WriteCall::PatchMany => lanes[lane] = Some(text.into()),
        WriteCall::Assign => {
            lanes[SESSION] = Some(text.into());
            lanes[ERROR] = Some("".into());
        }
    }
    WriteChange::Merge(lanes)
}

/// Makes all components.
pub async fn make_all(client: &RegistryClient, recorder: &RunRecorder) {
    assert!(write(client, recorder, WriteCall::Put, contended()).await);
    assert!(write(client, recorder, WriteCall::Put, others()).await);
}

fn others() -> Vec<Key> {
    (0..OTHERS).map(|index| format!("y{index}").into()).collect()
}

/// A writer of the model.
pub struct ModelWriter {
    rng: SmallRng,
    clients: Vec<RegistryClient>,
    recorder: Arc<RunRecorder>,
    contended: Vec<Key>,
}

impl ModelWriter {
    /// A writer with random choices from `seed`.
    pub fn new(seed: u64, clients: Vec<RegistryClient>, recorder: Arc<RunRecorder>) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed), clients, recorder, contended: contended() }
    }

    /// Writes until signalled.
    pub async fn run(mut self, stopped: watch::Receiver<bool>) {
        while !*stopped.borrow() {
            let client = self.clients.choose(&mut self.rng).unwrap().clone();
            let (call, lane, keys) = self.next();
            if !write_lane(&client, &self.recorder, call, lane, keys, str::to_owned).await {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    fn next(&mut self) -> (WriteCall, usize, Vec<Key>) {
        match self.rng.random_range(0..1000) {
            0..300 => (WriteCall::PatchEach, ERROR, self.some(1)),
            300..500 => (WriteCall::PatchEach, REPORT, self.some(1)),
            500..600 => (WriteCall::PatchEach, REPORT, self.some(4)),
            600..700 => (WriteCall::PatchMany, ERROR, self.some(12)),
            700..780 => (WriteCall::Assign, SESSION, self.some(3)),
            780..880 => (WriteCall::Delete, ERROR, self.some(1)),
            880..990 => (WriteCall::Put, ERROR, self.some(2)),
            _ => (WriteCall::PatchMany, ERROR, others()),
        }
    }

    fn some(&mut self, most: usize) -> Vec<Key> {
        let count = self.rng.random_range(1..=most);
        self.contended.choose_multiple(&mut self.rng, count).cloned().collect()
    }
}

/// Makes and deletes components until that many were deleted, which is more than need be remembered.
pub async fn churn(client: &RegistryClient, recorder: &Arc<RunRecorder>, deletions: usize) {
    let keys: Vec<Key> = (0..CHURNED).map(|index| format!("z{index}").into()).collect();
    let mut deleted = 0;
    while deleted < deletions {
        if !write(client, recorder, WriteCall::Put, keys.clone()).await {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let mut under_way = JoinSet::new();
        for chunk in keys.chunks(keys.len().div_ceil(AT_ONCE)) {
            let (client, recorder, chunk) = (client.clone(), Arc::clone(recorder), chunk.to_vec());
            under_way.spawn(async move {
                let mut deleted = 0;
                for key in chunk {
                    deleted += usize::from(write(&client, &recorder, WriteCall::Delete, vec![key]).await);
                }
                deleted
            });
        }
        deleted += under_way.join_all().await.into_iter().sum::<usize>();
    }
}
