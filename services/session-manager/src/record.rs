//! What the ledgers of this service keep.

use std::sync::Arc;

use chassis::{Fault, resource::Resource};
use domain::{
    id::{Tenant, check_name},
    membership::LeftOut,
    session::{Progress, Session},
    template::SessionTemplate,
};
use proto::{component::AssignSessionRequest, session::SessionStatus};

/// Between tenant and name in a key. It sorts before everything that tenants are made of, so that keys are in
/// the order of tenant and name, and no name has it, so that the last one in a key ends the tenant.
const SEPARATOR: char = '\t';

/// Key of what a tenant, or nobody, has under a name.
pub(crate) fn key(tenant: &Tenant, name: &str) -> Arc<str> {
    format!("{}{SEPARATOR}{name}", tenant.as_str()).into()
}

/// Key of what a call asks for.
///
/// # Errors
/// [`Fault::NotFound`] of `kind` when nothing can have such a tenant or name.
pub(crate) fn wanted_key(kind: &str, tenant: &str, name: &str) -> Result<Arc<str>, Fault> {
    let absent = |_| Fault::not_found(kind, name);
    check_name("name", name).map_err(absent)?;
    Ok(key(&Tenant::parse(tenant).map_err(absent)?, name))
}

/// A session with what it is about to assign and the status that was saved for it. They are one record: what
/// completes or deletes the session does the same to the others, whatever crashes, and a later session of that
/// name never inherits them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SessionRecord {
    /// Key within the kind.
    pub(crate) key: Arc<str>,
    /// The session.
    pub(crate) session: Session,
    /// What a pending session assigns to its members, once that is known; it may have been assigned already.
    pub(crate) intent: Option<Arc<AssignSessionRequest>>,
    /// The extended status when it was last saved, if ever.
    pub(crate) saved_status: Option<SessionStatus>,
    /// Whom the session leaves alone, while that is new; none: what was written before holds. It is read from the
    /// database when somebody asks.
    pub(crate) left_out: Option<Arc<[LeftOut]>>,
}

impl SessionRecord {
    /// A record of nothing but the session.
    pub(crate) fn new(session: Session) -> Self {
        let key = key(&session.tenant, &session.name);
        Self { key, session, intent: None, saved_status: None, left_out: None }
    }

    /// The record with the session as it has become. One that is not pending intends nothing any more: made
    /// pending once more, it looks for its members anew.
    pub(crate) fn with(self, session: Session) -> Self {
        let intent = self.intent.filter(|_| session.progress == Progress::Pending);
        Self { session, intent, ..self }
    }

    /// The saved status of a session that is over: its members may serve others by now. That of any other
    /// session is only how it once was.
    pub(crate) fn final_status(&self) -> Option<&SessionStatus> {
        self.saved_status.as_ref().filter(|_| self.session.progress == Progress::Complete)
    }

    /// Whether this is still the session of that `id`, and as far as `progress`. A name may have changed hands
    /// while somebody thought about its session.
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
    /// The record of a template.
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
