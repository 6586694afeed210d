//! Sizes of sessions, some of which need a confirmation.

use std::{collections::BTreeSet, time::Duration};

use anyhow::ensure;
use chassis::{Fault, settings::SessionSettings, store::resource::Resource as _};
use domain::boot::session::{
    Session,
    guard::{SessionSize, SizeGuard},
};
use tokio::time::timeout;

use crate::{
    record::SessionRecord,
    setup::{SetupPeers, plan::requested},
    shared::ManagerState,
};

/// Most time for which a request waits for the size of its session. The gateway waits not much longer for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the guard of the settings.
///
/// # Errors
/// A bound is no share of a machine.
pub(crate) fn size_guard(settings: &SessionSettings) -> anyhow::Result<SizeGuard> {
    let percent = settings.confirm_above_percent;
    ensure!(percent <= 100, "sessions.confirm_above_percent: {percent} is more than 100");
    let bound = |most: u32| (most > 0).then_some(most);
    Ok(SizeGuard {
        most_nodes: bound(settings.confirm_above_nodes),
        most_percent: bound(percent).filter(|&most| most < 100),
        roles: settings.confirm_roles.iter().cloned().collect(),
    })
}

impl ManagerState {
    /// Returns the size of a session of so many nodes.
    pub(crate) fn size(&self, nodes: usize, roles: BTreeSet<String>) -> SessionSize {
        let machine = if self.guard.most_percent.is_some() { self.components.all().len() } else { 0 };
        SessionSize { nodes, machine, roles }
    }

    /// Rejects a request for a session whose size is not confirmed. A size that cannot be found out soon is checked when
    /// the session is set up.
    ///
    /// # Errors
    /// The size has to be confirmed.
    pub(crate) async fn check_size(&self, peers: &SetupPeers, session: &Session) -> Result<(), Fault> {
        if !self.guard.concerns(session) {
            return Ok(());
        }
        let Ok(Ok(requested)) = timeout(PATIENCE, requested(self, peers, session)).await else {
            return Ok(());
        };
        let size = self.size(requested.members.len(), requested.guarded_roles);
        self.guard.admit(session, &size).map_err(|refusal| Fault::Locked {
            kind: SessionRecord::KIND.into(),
            name: session.name.clone(),
            reason: refusal.to_string(),
        })
    }
}
