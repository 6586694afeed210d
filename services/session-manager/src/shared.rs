//! What the calls and the loops of this service have in common.

use std::{sync::Arc, time::Duration};

use chassis::{
    Fault,
    convert::time::{self, now},
    kinds::OptionsRecord,
    lease::{Custody, Fence},
    ledger::Ledger,
    mirror::Mirror,
};
use domain::{
    compatibility::Compatibility,
    component::Component,
    id::{ComponentId, Tenant},
    options::Options,
    session::{self, Progress, Session},
    session_status::session_status,
    template::SessionTemplate,
};
use proto::session::SessionStatus;

use crate::{
    confirmation::Confirmation,
    convert,
    members::Members,
    record::{SessionRecord, key},
    registry::Registry,
    store::{LeftOutMembers, Sessions, Templates},
    tenants::{Nodes, Tenants},
};

/// How long after a loss of sessions none is completed. The stores of a mesh are restored one after the other, and a
/// registry that is restored later may give a session its nodes back.
const RESTORED: Duration = Duration::from_secs(30);

/// The collections that this service owns, and its copies of what others own. Clones share them.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) sessions: Ledger<Sessions>,
    pub(crate) left_out: LeftOutMembers,
    pub(crate) templates: Ledger<Templates>,
    pub(crate) options: Mirror<OptionsRecord>,
    pub(crate) components: Mirror<Component>,
    /// The owner of both, for requests that must not be judged by what a mirror does not show yet.
    pub(crate) registry: Registry,
    pub(crate) members: Arc<Members>,
    pub(crate) tenants: Arc<Tenants>,
    pub(crate) compatibility: Compatibility,
    /// Which sessions are this replica's to set up, complete and delete.
    pub(crate) custody: Custody,
    /// Complete sessions that are kept, whatever their age.
    pub(crate) most_complete: usize,
    /// Whether a stage that was applied and is kept holds its session no longer.
    pub(crate) complete_applied: bool,
    pub(crate) confirmation: Confirmation,
}

impl Shared {
    /// The options as they were last seen, for what no request waits for.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] before they were seen at all: the defaults may be far from what people set.
    pub(crate) fn options_seen(&self) -> Result<Options, Fault> {
        if self.options.revision() == 0 {
            return Err(Fault::unavailable("component registry", "it has not told the options yet"));
        }
        Ok(self.options.in_force())
    }

    /// Whether sessions were lost so short a time ago that none is completed.
    pub(crate) fn is_just_restored(&self) -> bool {
        self.sessions.view().since_loss().is_some_and(|age| age < RESTORED)
    }

    /// The template of that tenant, as it is now.
    pub(crate) fn template(&self, tenant: &Tenant, name: &str) -> Option<SessionTemplate> {
        self.templates.view().get(&key(tenant, name)).map(|record| record.template.clone())
    }

    /// The extended status of `session` as far as the copy of the components tells. Only the `visible` ones count: a
    /// node may have gone to another tenant since (BOS reference 3.8). The status says since when some are in doubt.
    pub(crate) fn status(&self, session: &Session, visible: &Nodes) -> SessionStatus {
        let members = self.members.named(&session.name);
        let is_visible = |id: &ComponentId| visible.as_ref().is_none_or(|nodes| nodes.elements.contains(id));
        let components = members.iter().map(|component| &**component).filter(|one| is_visible(&one.id));
        let status = session_status(session, components, self.compatibility, now());
        let in_doubt = |id: &ComponentId| visible.as_ref().and_then(|nodes| nodes.in_doubt.get(id).copied());
        let in_doubt_since = members.iter().filter_map(|member| in_doubt(&member.id)).min();
        SessionStatus {
            members_in_doubt_since: in_doubt_since.map(time::to_wire),
            ..convert::session::status_to_wire(status)
        }
    }

    /// Says what a running session waits for, and with which `error` it will end, provided it still runs.
    ///
    /// # Errors
    /// When the write is not taken or may not have been.
    pub(crate) async fn note(
        &self,
        seen: &SessionRecord,
        waiting_for: String,
        error: Option<String>,
        fence: Fence,
    ) -> Result<(), Fault> {
        let (key, id) = (Arc::clone(&seen.key), seen.session.id.clone());
        let write = self.sessions.write_fenced(fence, move |draft| {
            let record = draft.get(&key).filter(|record| record.is_still(&id, Progress::Running));
            let Some(record) = record else { return Ok(()) };
            let session = Session { waiting_for, ..record.session.clone() };
            let session = match &error {
                Some(error) => session::with_error(session, error),
                None => session,
            };
            draft.put(SessionRecord::clone(&record).with(session));
            Ok(())
        });
        write.await.map(|((), _revision)| ())
    }

    /// Ends a running session and saves its status as far as the nodes are `visible`, both in one write, provided it
    /// still runs.
    ///
    /// # Errors
    /// When the write is not taken or may not have been.
    pub(crate) async fn complete(
        &self,
        record: &SessionRecord,
        visible: Nodes,
        fence: Fence,
    ) -> Result<(), Fault> {
        self.end(record, Progress::Running, None, visible, fence).await
    }

    /// Ends a session that has no nodes yet, provided it is still pending. The `error` says why it could not do its work.
    ///
    /// # Errors
    /// When the write is not taken or may not have been.
    pub(crate) async fn fail(
        &self,
        record: &SessionRecord,
        error: String,
        fence: Fence,
    ) -> Result<(), Fault> {
        self.end(record, Progress::Pending, Some(error), None, fence).await
    }

    /// Ends the session that was seen, provided it is as far as `from`.
    async fn end(
        &self,
        seen: &SessionRecord,
        from: Progress,
        error: Option<String>,
        visible: Nodes,
        fence: Fence,
    ) -> Result<(), Fault> {
        let (key, id) = (Arc::clone(&seen.key), seen.session.id.clone());
        let shared = self.clone();
        let write = self.sessions.write_fenced(fence, move |draft| {
            let record = draft.get(&key).filter(|record| record.is_still(&id, from));
            let Some(record) = record else { return Ok(()) };
            if from == Progress::Running && shared.is_just_restored() {
                // The loss was noticed by this very write: what the registry said was about the history before.
                return Err(Fault::unavailable("sessions", "commits were lost just now"));
            }
            let session = session::complete(record.session.clone(), now(), error);
            tracing::info!(session = session.name, id, error = session.error, "session complete");
            let saved_status = Some(shared.status(&session, &visible));
            let record = SessionRecord::clone(&record).with(session);
            draft.put(SessionRecord { saved_status, left_out: None, ..record });
            Ok(())
        });
        write.await.map(|((), _revision)| ())
    }
}
