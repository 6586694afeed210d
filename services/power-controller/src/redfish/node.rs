//! One node and where its power is.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::{
    bmc::Bmc,
    system::Power,
    task::{Order, Task},
};
use crate::progress::TaskState;

/// A node of the machine file.
#[derive(Clone)]
pub(super) struct Node {
    /// Its BMC, or why there is none that can be called.
    pub(super) bmc: Result<Arc<Bmc>, String>,
    /// Path of its system at the BMC; empty: the only one.
    pub(super) system: Arc<str>,
}

impl Node {
    /// The power of the node, or why it is not known. The BMC has `deadline` to be free.
    pub(super) async fn power(&self, deadline: Duration) -> Result<Power, String> {
        let bmc = self.bmc.as_ref().map_err(String::clone)?;
        let Ok(mut turn) = timeout_at(Instant::now() + deadline, bmc.turn()).await else {
            return Err(format!(
                "{} was not asked within {deadline:?}: it was busy, or so many others that \
                 power.redfish.calls_in_flight allowed no more",
                bmc.name()
            ));
        };
        turn.system(&self.system).await.map(|(_, system)| system.power).map_err(|failure| failure.text)
    }

    /// Does what is ordered, and looks until its effect shows.
    pub(super) async fn carry_out(&self, order: &Order) -> TaskState {
        match &self.bmc {
            Ok(bmc) => Task { bmc, system: &self.system, order }.carry_out().await,
            Err(reason) => TaskState::Failed(reason.clone()),
        }
    }
}
