//! Hints between the hosts of a simulation that have the same disk in memory.

use std::{convert::Infallible, sync::Arc};

use sea_orm::DbErr;
use tokio::{
    sync::broadcast::error::RecvError,
    time::{Instant, MissedTickBehavior, interval},
};

use super::{HintHub, LOOK};
use crate::{process::pause, store::disk::SimulatedDisk};

/// Forwards the hints on `disk` to `hub`, without end.
pub(super) async fn listen(hub: Arc<HintHub>, disk: SimulatedDisk) -> anyhow::Result<Infallible> {
    let mut failures = 0;
    loop {
        let Err(error) = listen_once(&hub, &disk, &mut failures).await;
        failures += 1;
        tracing::warn!(%error, "no hints from other replicas");
        tokio::time::sleep(pause::after(failures)).await;
    }
}

async fn listen_once(hub: &HintHub, disk: &SimulatedDisk, failures: &mut u32) -> Result<Infallible, DbErr> {
    let mut hints = disk.hints();
    hub.tell_all();
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            heard = hints.recv() => match heard {
                Ok((topic, revision)) => hub.tell(&topic, revision),
                Err(RecvError::Lagged(_) | RecvError::Closed) => hub.tell_all(),
            },
            _ = looks.tick() => {
                let began = Instant::now();
                for (kind, revision) in disk.positions().await? {
                    hub.tell(kind, Some(revision));
                }
                hub.looked(began);
                *failures = 0;
            }
        }
    }
}
