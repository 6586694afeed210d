//! What the calls and the loops of this service have in common.

use std::sync::Arc;

use chassis::{Fault, convert::time::now, kinds::OptionsRecord, ledger::Ledger, mirror::Mirror};
use domain::{
    compatibility::Compatibility,
    component::Component,
    id::Tenant,
    options::Options,
    session::{self, Progress, Session},
    session_status::session_status,
    template::SessionTemplate,
};
use proto::session::SessionStatus;

use crate::{
    convert,
    members::Members,
    record::{SessionRecord, key},
    store::{Sessions, Templates},
};

/// The collections that this service owns, and its copies of what others own. Clones share them.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) sessions: Ledger<Sessions>,
    pub(crate) templates: Ledger<Templates>,
    pub(crate) options: Mirror<OptionsRecord>,
    pub(crate) components: Mirror<Component>,
    pub(crate) members: Arc<Members>,
    pub(crate) compatibility: Compatibility,
}

impl Shared {
    /// The options as they were last seen.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] before they were seen at all: the defaults may be far from what people set.
    pub(crate) fn options(&self) -> Result<Options, Fault> {
        if self.options.revision() == 0 {
            return Err(Fault::unavailable("component registry", "it has not told the options yet"));
        }
        Ok(self.options.in_force())
    }

    /// The template of that tenant, as it is now.
    pub(crate) fn template(&self, tenant: &Tenant, name: &str) -> Option<SessionTemplate> {
        self.templates.view().get(&key(tenant, name)).map(|record| record.template.clone())
    }

    /// The extended status of `session` as far as the copy of the components tells.
    pub(crate) fn status(&self, session: &Session) -> SessionStatus {
        let members = self.members.named(&session.name);
        let components = members.iter().map(|component| &**component);
        convert::session::status_to_wire(session_status(session, components, self.compatibility, now()))
    }

    /// Ends the session of that `key` and `id` and saves its status, both in one write, provided it is still
    /// as far as `from`. An `error` says why it could not do its work.
    ///
    /// # Errors
    /// When the write is not taken or may not have been.
    pub(crate) async fn complete(
        &self,
        key: Arc<str>,
        id: String,
        from: Progress,
        error: Option<String>,
    ) -> Result<(), Fault> {
        let shared = self.clone();
        let write = self.sessions.write(move |draft| {
            let record = draft.get(&key).filter(|record| record.is_still(&id, from));
            let Some(record) = record else { return Ok(()) };
            let session = session::complete(record.session.clone(), now(), error);
            tracing::info!(session = session.name, id, error = session.error, "session complete");
            let saved_status = Some(shared.status(&session));
            draft.put(SessionRecord { saved_status, ..SessionRecord::clone(&record).with(session) });
            Ok(())
        });
        write.await.map(|((), _revision)| ())
    }
}
