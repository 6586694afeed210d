//! A node and access to its power.

use std::{sync::Arc, time::Duration};

use redfish::{BmcClient, SystemPower};
use tokio::time::{Instant, timeout_at};

use super::task::{ResetOrder, ResetTask};
use crate::driver::progress::TaskState;

/// A node behind its BMC.
#[derive(Clone)]
pub(crate) struct MachineNode {
    /// BMC of the node, or the reason why there is none that can be called.
    pub(crate) bmc: Result<Arc<BmcClient>, String>,
    /// Path of the system at the BMC; empty: the only one.
    pub(crate) system: Arc<str>,
}

impl MachineNode {
    /// Returns the power of the node, or the reason why it is unknown. `deadline` is the time for the BMC to become
    /// free.
    pub(super) async fn power(&self, deadline: Duration) -> Result<SystemPower, String> {
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

    /// Carries the order out, and polls until its effect shows.
    pub(super) async fn carry_out(&self, order: &ResetOrder) -> TaskState {
        match &self.bmc {
            Ok(bmc) => ResetTask { bmc, system: &self.system, order }.carry_out().await,
            Err(reason) => TaskState::Failed(reason.clone()),
        }
    }
}
