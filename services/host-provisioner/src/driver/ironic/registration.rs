//! Registration of a host: its node, with the settings and the port that it needs.

use domain::host::record::{
    call::{DoneFacts, DriverAnswer, RegisterCall},
    state::HostState,
};
use http::StatusCode;
use serde_json::json;
use upstream::FailureKind;

use ironic::{
    answers::{LATER, SOON, Step, after_change, after_read, failed, running},
    node::{IronicNode, ProvisionState, ProvisionVerb},
};

use super::{
    enrolment::{NodeSettings, node_settings},
    operation::{HostOperation, sight},
    step::{NodeGoal, NodeStep, next_step},
};

impl HostOperation<'_> {
    /// Makes the node of the host, or brings its settings up to date, and has Ironic verify the BMC.
    pub(super) async fn register(&self, call: &RegisterCall) -> Step<DriverAnswer> {
        let version = self.access.backend.version().await.map_err(after_read)?;
        let settings = node_settings(self.access.host, self.address, call, &self.fleet.site, version);
        let settings = settings.map_err(|reason| failed(&reason))?;
        let is_leaving = call.state == HostState::PoweringOffBeforeDelete;
        let goal = NodeGoal::Register { is_leaving };
        let node = match self.access.node().await? {
            None => self.create(&settings).await?,
            Some(node) => self.bring_up_to_date(node, &settings, goal).await?,
        };
        self.fleet.note_home(&self.access.host.key, self.place);
        match next_step(goal, sight(&node, &self.name())) {
            NodeStep::Done => {
                self.add_port(&node).await?;
                let id = Some(node.uuid.as_str().into());
                Ok(DriverAnswer::Done(DoneFacts { id, ..DoneFacts::default() }))
            }
            NodeStep::Begin(verb) => {
                self.add_port(&node).await?;
                self.request(&node, verb, json!({})).await?;
                Ok(running(SOON, false))
            }
            NodeStep::Failed => Err(failed(&self.access.failure(&node).await?)),
            step => self.take(&node, step, false).await,
        }
    }

    async fn create(&self, settings: &NodeSettings) -> Step<IronicNode> {
        let mark = self.mark("", ProvisionVerb::Manage, false);
        let password = self.access.host.login.as_ref().map(|login| login.password.clone());
        let node = settings.node(mark.extra());
        match self.access.backend.create(&node, password.clone()).await {
            // Ironic may have refused the hardware type because none of its workers had begun to work.
            Err(failure) if failure.kind == FailureKind::Refused => {
                self.access.await_workers().await?;
                self.access.backend.create(&node, password).await.map_err(after_change)
            }
            created => created.map_err(after_change),
        }
    }

    /// Sends all settings, the login among them, once for each registration: Ironic does not show the login that it has.
    async fn bring_up_to_date(
        &self,
        node: IronicNode,
        settings: &NodeSettings,
        goal: NodeGoal,
    ) -> Step<IronicNode> {
        if node.mark_of(&self.name()).is_some() {
            return Ok(node);
        }
        match next_step(goal, sight(&node, &self.name())) {
            NodeStep::Wait { is_short } => Err(running(if is_short { SOON } else { LATER }, false)),
            NodeStep::Done if node.state.is_passing() => Ok(node),
            _ => {
                let mark = self.mark(&node.state_changed_at, ProvisionVerb::Manage, false);
                let mut changes = settings.changes(&node.properties, is_early(node.state));
                changes.push(mark.patch());
                self.change(&node, &changes).await
            }
        }
    }

    /// Makes the port that the host boots from, unless it is there.
    async fn add_port(&self, node: &IronicNode) -> Step<()> {
        let Some(mac) = self.access.host.boot_mac.as_deref() else { return Ok(()) };
        if self.access.backend.has_port(node, mac).await.map_err(after_read)? {
            return Ok(());
        }
        match self.access.backend.create_port(node, mac).await {
            Err(failure) if failure.status == Some(StatusCode::CONFLICT) => Err(failed(&failure.text)),
            created => created.map_err(after_change),
        }
    }
}

/// Returns whether a node takes changes of its interfaces.
fn is_early(state: ProvisionState) -> bool {
    matches!(state, ProvisionState::Enroll | ProvisionState::Manageable | ProvisionState::Available)
}
