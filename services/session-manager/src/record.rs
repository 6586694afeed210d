//! Records in the ledgers of this service.

use std::{borrow::Cow, sync::Arc};

use chassis::{
    Fault,
    kinds::history::session_key,
    process::clock,
    store::resource::{Resource, WireForm},
};
use domain::{
    boot::{
        session::{Progress, Session, membership::LeftOut},
        template::SessionTemplate,
    },
    core::{
        id::{Tenant, check_name},
        invalid::Invalid,
    },
};
use proto::{
    component::AssignSessionRequest,
    session::{self as wire, SessionStatus},
};

use crate::{convert, durations::LearnedDurations};

/// Returns the key of a record of that tenant, or of no tenant.
pub(crate) fn key(tenant: &Tenant, name: &str) -> Arc<str> {
    session_key(tenant.as_str(), name).into()
}

/// Returns the key that a call names.
///
/// # Errors
/// [`Fault::NotFound`] of `kind` if no record can have such a tenant or name.
pub(crate) fn wanted_key(kind: &str, tenant: &str, name: &str) -> Result<Arc<str>, Fault> {
    let absent = |_| Fault::not_found(kind, name);
    check_name("name", name).map_err(absent)?;
    Ok(key(&Tenant::parse(tenant).map_err(absent)?, name))
}

/// A session, with the intent of its assignment and its saved status. All three are one record: a completion or
/// deletion of the session covers them whatever crashes, and a later session of the same name never inherits them.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRecord {
    /// Key within the kind.
    pub(crate) key: Arc<str>,
    /// The session.
    pub session: Session,
    /// Assignment of a pending session, once it is planned; it may have been sent already.
    pub(crate) intent: Option<Arc<AssignSessionRequest>>,
    /// Extended status as last saved, if ever.
    pub(crate) saved_status: Option<SessionStatus>,
    /// Nodes that the session leaves out, if this record changes them; `None`: unchanged. The database returns them on
    /// request.
    pub(crate) left_out: Option<Arc<[LeftOut]>>,
    /// Revision of the latest change that has events; 0: there is none.
    pub(crate) last_event: u64,
}

impl SessionRecord {
    /// Creates a record with the session alone.
    pub(crate) fn new(session: Session) -> Self {
        let key = key(&session.tenant, &session.name);
        Self { key, session, intent: None, saved_status: None, left_out: None, last_event: 0 }
    }

    /// Replaces the session. A session that is not pending loses its intent: if it becomes pending again, its members
    /// are selected again.
    pub(crate) fn with(self, session: Session) -> Self {
        let session = session.with_begin(&self.session, clock::now());
        let intent = self.intent.filter(|_| session.progress == Progress::Pending);
        Self { session, intent, ..self }
    }

    /// Returns the saved status of a complete session, whose members may belong to other sessions by now. The saved
    /// status of any other session is outdated.
    pub(crate) fn final_status(&self) -> Option<&SessionStatus> {
        self.saved_status.as_ref().filter(|_| self.session.progress == Progress::Complete)
    }

    /// Returns whether the record still holds the session of that `id` with that `progress`. A later session may have
    /// the same name.
    pub(crate) fn is_still(&self, id: &str, progress: Progress) -> bool {
        self.session.id == id && self.session.progress == progress
    }
}

impl Resource for SessionRecord {
    const KIND: &'static str = "session";

    fn key(&self) -> &str {
        &self.key
    }

    fn revision(&self) -> u64 {
        self.session.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.session.revision = revision;
    }

    fn last_event(&self) -> u64 {
        self.last_event
    }

    fn set_last_event(&mut self, revision: u64) {
        self.last_event = revision;
    }
}

impl WireForm for SessionRecord {
    type Message = wire::Session;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, wire::Session> {
        Cow::Owned(convert::session::to_wire(&self.session))
    }

    fn from_wire(message: wire::Session, (): &mut ()) -> Result<Self, Invalid> {
        Ok(Self::new(convert::session::from_wire(message)?))
    }
}

/// Time that nodes took in sessions of one operation and template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DurationRecord {
    /// Key within the kind.
    pub(crate) key: Arc<str>,
    /// The durations.
    pub(crate) learned: LearnedDurations,
}

impl DurationRecord {
    /// Creates the record of durations.
    pub(crate) fn new(learned: LearnedDurations) -> Self {
        Self { key: learned.key(), learned }
    }
}

impl Resource for DurationRecord {
    const KIND: &'static str = "session_durations";

    fn key(&self) -> &str {
        &self.key
    }

    fn revision(&self) -> u64 {
        self.learned.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.learned.revision = revision;
    }
}

impl WireForm for DurationRecord {
    type Message = wire::SessionDurations;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, wire::SessionDurations> {
        Cow::Owned(convert::durations::to_wire(&self.learned))
    }

    fn from_wire(message: wire::SessionDurations, (): &mut ()) -> Result<Self, Invalid> {
        Ok(Self::new(convert::durations::from_wire(message)?))
    }
}

/// A session template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateRecord {
    /// Key within the kind.
    pub(crate) key: Arc<str>,
    /// The template.
    pub(crate) template: SessionTemplate,
}

impl TemplateRecord {
    /// Creates the record of a template.
    pub(crate) fn new(template: SessionTemplate) -> Self {
        Self { key: key(&template.tenant, &template.name), template }
    }
}

impl Resource for TemplateRecord {
    const KIND: &'static str = "session_template";

    fn key(&self) -> &str {
        &self.key
    }

    fn revision(&self) -> u64 {
        self.template.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.template.revision = revision;
    }
}

impl WireForm for TemplateRecord {
    type Message = proto::template::SessionTemplate;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, proto::template::SessionTemplate> {
        Cow::Owned(convert::template::to_wire(&self.template))
    }

    fn from_wire(message: proto::template::SessionTemplate, (): &mut ()) -> Result<Self, Invalid> {
        Ok(Self::new(convert::template::from_wire(message)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_by_tenant_and_name() {
        let mut keys: Vec<_> = [("b", "a"), ("a-b", "x"), ("", "z"), ("a", "y"), ("a", "b"), ("", "a")]
            .into_iter()
            .map(|(tenant, name)| key(&Tenant::parse(tenant).unwrap(), name))
            .collect();
        keys.sort_unstable();
        assert_eq!(
            keys.iter().map(|key| &**key).collect::<Vec<_>>(),
            ["\ta", "\tz", "a\tb", "a\ty", "a-b\tx", "b\ta"]
        );
    }

    #[test]
    fn no_other_name_finds_a_tenants_record() {
        let stored = key(&Tenant::parse("a\tb").unwrap(), "c");
        assert_eq!(wanted_key("session", "a\tb", "c").unwrap(), stored);
        assert_eq!(wanted_key("session", "a", "b\tc"), Err(Fault::not_found("session", "b\tc")));
    }
}
