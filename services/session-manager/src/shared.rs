//! State that the calls and loops of this service share.

use std::{sync::Arc, time::Duration};

use chassis::{
    Fault,
    kinds::options::OptionsRecord,
    lease::Fence,
    mesh::time,
    observe::mirror::Mirror,
    process::{clock::now, traces},
    store::{ledger::Ledger, resource::Resource as _},
};
use domain::{
    boot::{
        bos::{compatibility::Compatibility, options::Options},
        component::Component,
        session::{
            self, IdleReason, NewSession, Progress, Session, SessionEnd, SessionResult, completion,
            guard::SizeGuard,
            result::{MemberCounts, MemberStanding, result, standing},
            rollout::outcome,
            status::session_status,
        },
        template::SessionTemplate,
    },
    core::{
        id::{ComponentId, Tenant},
        rollout::BatchView,
    },
};
use proto::session::SessionStatus;
use uuid::Uuid;

use crate::{
    confirmation::RegistryConfirmation,
    convert,
    members::SessionMembers,
    pause_marker::PauseMarker,
    record::{SessionRecord, TemplateRecord, key},
    registry::RegistryClient,
    release::ComponentRelease,
    store::{DurationTable, LeftOutMembers, SessionTable, TemplateTable},
    tenants::{Nodes, TenantLookup},
};

/// Period after a loss of sessions in which no session is completed. The stores of a mesh are restored one after the
/// other, and a registry that is restored later may return nodes to a session.
const RESTORED: Duration = Duration::from_secs(30);

/// Facts that choose the members of a session.
pub(crate) struct SessionBasis {
    pub(crate) template: SessionTemplate,
    pub(crate) options: Options,
}

/// Session that is not stored, with the facts that it rests on.
pub(crate) struct SessionDraft {
    pub(crate) session: Session,
    pub(crate) basis: SessionBasis,
}

/// The collections of this service, and the mirrors of other services' collections. Clones share them.
#[derive(Clone)]
pub(crate) struct ManagerState {
    pub(crate) sessions: Ledger<SessionTable>,
    pub(crate) left_out: LeftOutMembers,
    pub(crate) templates: Ledger<TemplateTable>,
    /// How long nodes took in earlier sessions.
    pub(crate) durations: Ledger<DurationTable>,
    pub(crate) options: Mirror<OptionsRecord>,
    pub(crate) components: Mirror<Component>,
    /// Client of the registry, for requests that must not rely on a lagging mirror.
    pub(crate) registry: RegistryClient,
    pub(crate) members: Arc<SessionMembers>,
    pub(crate) tenants: Arc<TenantLookup>,
    pub(crate) compatibility: Compatibility,
    /// Most complete sessions that are kept, whatever their age.
    pub(crate) most_complete: usize,
    /// Whether an applied stage that is kept releases its session.
    pub(crate) complete_applied: bool,
    /// Sizes of sessions that need a confirmation.
    pub(crate) guard: Arc<SizeGuard>,
    pub(crate) confirmation: RegistryConfirmation,
    pub(crate) release: ComponentRelease,
    pub(crate) marker: PauseMarker,
}

impl ManagerState {
    /// Returns the options of the mirror, for work that no request waits for.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] before the first options have arrived: the defaults may differ much from the site's
    /// options.
    pub(crate) fn cached_options(&self) -> Result<Options, Fault> {
        if self.options.revision() == 0 {
            return Err(Fault::unavailable("component registry", "it has not told the options yet"));
        }
        Ok(self.options.in_force())
    }

    /// Returns whether sessions were lost so recently that none may be completed.
    pub(crate) fn is_just_restored(&self) -> bool {
        self.sessions.view().since_loss().is_some_and(|age| age < RESTORED)
    }

    /// Returns the session that a wish would create, with its template and options.
    ///
    /// # Errors
    /// The wish breaks a rule, its tenant or template does not exist, or a dependency does not answer.
    pub(crate) async fn draft(&self, wish: NewSession) -> Result<SessionDraft, Fault> {
        self.tenants.nodes_in_time(&wish.tenant).await?;
        let options = self.registry.options().await?;
        // Ids of this version sort by creation time, which decides the later one of two sessions.
        let id = Uuid::now_v7().to_string();
        let session = session::create(wish, &options, self.compatibility, id, now())?;
        let session = Session { trace: traces::context().into(), ..session };
        self.templates.fresh().await?;
        let template = self.template(&session.tenant, &session.template_name);
        let template =
            template.ok_or_else(|| Fault::not_found(TemplateRecord::KIND, &session.template_name))?;
        Ok(SessionDraft { session, basis: SessionBasis { template, options } })
    }

    /// Returns the current template of that tenant.
    pub(crate) fn template(&self, tenant: &Tenant, name: &str) -> Option<SessionTemplate> {
        self.templates.view().get(&key(tenant, name)).map(|record| record.template.clone())
    }

    /// Computes the extended status of `session` from the mirror of components. Only `visible` nodes count: a node
    /// may have moved to another tenant (BOS reference 3.8). The status includes since when nodes are in doubt.
    pub(crate) fn status(&self, session: &Session, visible: &Nodes) -> SessionStatus {
        let members = self.members.named(&session.name);
        let is_visible = |id: &ComponentId| visible.as_ref().is_none_or(|nodes| nodes.elements.contains(id));
        let components = members.iter().map(|component| &**component).filter(|one| is_visible(&one.id));
        let status = session_status(session, components, self.compatibility, now());
        let nodes = visible.as_deref();
        let in_doubt_since = members.iter().filter_map(|one| nodes?.in_doubt.get(&one.id).copied()).min();
        SessionStatus {
            members_in_doubt_since: in_doubt_since.map(time::to_wire),
            ..convert::session::status_to_wire(status)
        }
    }

    /// Writes the text about the wait of a running session, and the `error` with which it will end, if the session
    /// still runs.
    ///
    /// # Errors
    /// The write failed, or its commit outcome is unknown.
    pub(crate) async fn note(
        &self,
        seen: &SessionRecord,
        waiting_for: String,
        error: Option<String>,
        fence: Fence,
    ) -> Result<(), Fault> {
        let key = Arc::clone(&seen.key);
        let id = seen.session.id.clone();
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

    /// Completes a session and saves its status over the `visible` nodes in one write, if the session still runs.
    ///
    /// # Errors
    /// The write failed, or its commit outcome is unknown.
    pub(crate) async fn complete(
        &self,
        record: &SessionRecord,
        visible: Nodes,
        fence: Fence,
    ) -> Result<(), Fault> {
        let error = record.session.error.clone().or_else(|| self.lost_components(record));
        self.end(record, Progress::Running, error, None, visible, fence).await
    }

    /// Returns the error of a session of which the registry has lost components with its last commits; `None`: it has
    /// lost none.
    fn lost_components(&self, record: &SessionRecord) -> Option<String> {
        let at = self.components.replaced_at()?;
        completion::lost_components(&record.session, self.members.lost(&record.key), at)
    }

    /// Returns the members of `session` and their standing, from the mirror of components.
    pub(crate) fn standings(&self, session: &Session) -> impl Iterator<Item = (ComponentId, MemberStanding)> {
        session.components.iter().map(|id| {
            let component = self.components.get(id.as_str());
            (id.clone(), standing(session, component.as_deref()))
        })
    }

    /// Returns the batches of `session` with the outcomes of their members, from the mirror of components; none: it has no rollout.
    pub(crate) fn batch_views(&self, session: &Session) -> Vec<BatchView> {
        let outcome = |id: &ComponentId| outcome(session, self.components.get(id.as_str()).as_deref());
        session.rollout.as_ref().map(|rollout| rollout.views(outcome)).unwrap_or_default()
    }

    /// Decides the result of `session`, which ends now, from the mirror of components.
    pub(crate) fn result(&self, session: &Session, idle: Option<IdleReason>) -> SessionResult {
        result(session, idle, self.standings(session).map(|(_, standing)| standing))
    }

    /// Completes a session without nodes with an `error`, if the session is still pending. `idle`: the reason why there
    /// are none, if the setup found that out.
    ///
    /// # Errors
    /// The write failed, or its commit outcome is unknown.
    pub(crate) async fn fail(
        &self,
        record: &SessionRecord,
        error: String,
        idle: Option<IdleReason>,
        fence: Fence,
    ) -> Result<(), Fault> {
        self.end(record, Progress::Pending, Some(error), idle, None, fence).await
    }

    /// Completes a session, if its progress is still `from`.
    async fn end(
        &self,
        seen: &SessionRecord,
        from: Progress,
        error: Option<String>,
        idle: Option<IdleReason>,
        visible: Nodes,
        fence: Fence,
    ) -> Result<(), Fault> {
        let key = Arc::clone(&seen.key);
        let id = seen.session.id.clone();
        let seen_durations = self.members.durations(&key);
        let shared = self.clone();
        let write = self.sessions.write_fenced(fence.clone(), move |draft| {
            let record = draft.get(&key).filter(|record| record.is_still(&id, from));
            let Some(record) = record else { return Ok(None) };
            if from == Progress::Running && shared.is_just_restored() {
                // This write itself detected the loss: the registry's answer was about the history before.
                return Err(Fault::unavailable("sessions", "commits were lost just now"));
            }
            let session = match &error {
                Some(error) => session::with_error(record.session.clone(), error),
                None => record.session.clone(),
            };
            let standings: Vec<_> = shared.standings(&session).map(|(_, standing)| standing).collect();
            let members = MemberCounts::of(&standings);
            let result = result(&session, idle, standings);
            let session = session::complete(session, now(), SessionEnd { error: None, result });
            let ended = EndedSession { session: session.clone(), members };
            let saved_status = Some(shared.status(&session, &visible));
            let record = SessionRecord::clone(&record).with(session);
            draft.put(SessionRecord { saved_status, left_out: None, ..record });
            Ok(Some(ended))
        });
        let (ended, _revision) = write.await?;
        if let Some(ended) = ended {
            ended.log();
            self.learn(&ended.session, seen_durations, ended.members.reached, fence).await;
        }
        Ok(())
    }
}

/// Session that has ended, with its members.
struct EndedSession {
    session: Session,
    members: MemberCounts,
}

impl EndedSession {
    fn log(&self) {
        let Self { session, members } = self;
        tracing::info!(
            session = session.name,
            id = session.id,
            result = session.result.as_ref().map(SessionResult::word),
            error = session.error,
            succeeded = members.reached,
            failed = members.failed,
            taken_over = members.taken_over,
            unfinished = members.unfinished,
            seconds = now().since(session.started_at()).as_secs_f64(),
            "session complete"
        );
    }
}
