//! The actions of people: sessions that begin, overlap, are deleted; components that are switched off and on.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{
    Channel,
    store::ledger::{ResumeToken, named_incarnation},
    within,
};
use parking_lot::Mutex;
use proto::{
    component::{
        Component, DeleteComponentRequest, GetComponentRequest, PatchComponentsRequest, PatchMany,
        component_service_client::ComponentServiceClient, patch_components_request::Selection,
    },
    option::{Options, UpdateOptionsRequest, options_service_client::OptionsServiceClient},
    session::{
        ApplyStagedRequest, CreateSessionRequest, DeleteSessionRequest, GetSessionRequest,
        ListSessionsRequest, Operation, Progress, WatchSessionsRequest,
        session_service_client::SessionServiceClient,
    },
    template::{
        BootSet, Cfs, PutSessionTemplateRequest, SessionTemplate, StringList,
        session_template_service_client::SessionTemplateServiceClient,
    },
};
use rand::{Rng, seq::IndexedRandom};
use tonic::{Code, Status};

use crate::{
    invariants, trace,
    world::{Part, World},
};

/// Time for which people wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time until every service answers again once the faults are over.
const RETURNS: Duration = Duration::from_secs(60);

/// Time for which a person watches the sessions before a break.
const WINDOW: Duration = Duration::from_secs(20);

/// Templates that people use.
const TEMPLATES: [&str; 2] = ["halves", "plain"];

/// Users of the mesh.
pub struct People {
    world: Arc<World>,
    nodes: Vec<String>,
    /// Sessions that were promised, and whether they must still exist.
    promised: Mutex<BTreeMap<String, bool>>,
}

impl People {
    /// Creates people that know these nodes.
    pub fn new(world: Arc<World>, nodes: Vec<String>) -> Self {
        Self { world, nodes, promised: Mutex::default() }
    }

    fn sessions(&self) -> anyhow::Result<SessionServiceClient<Channel>> {
        Ok(SessionServiceClient::new(self.world.channel(Part::Sessions)?))
    }

    /// Sets the mesh up: options and templates.
    ///
    /// # Errors
    /// When a request is refused for good.
    pub async fn set_up(&self) -> anyhow::Result<()> {
        again(async || self.set_options().await).await.context("options")?;
        let mut templates = SessionTemplateServiceClient::new(self.world.channel(Part::Sessions)?);
        for name in TEMPLATES {
            let request = PutSessionTemplateRequest {
                session_template: Some(self.template(name)),
                ..Default::default()
            };
            again(async || templates.put_session_template(request.clone()).await.map(drop))
                .await
                .context(name)?;
        }
        Ok(())
    }

    async fn set_options(&self) -> Result<(), Status> {
        let registry = self.world.channel(Part::Registry);
        let registry = registry.map_err(|error| Status::internal(error.to_string()))?;
        let wanted = Options {
            max_boot_wait_time: Some(180),
            max_power_on_wait_time: Some(60),
            max_power_off_wait_time: Some(60),
            polling_frequency: Some(5),
            discovery_frequency: Some(60),
            ..Default::default()
        };
        let request = UpdateOptionsRequest { options: Some(wanted), ..Default::default() };
        OptionsServiceClient::new(registry).update_options(request).await.map(drop)
    }

    fn template(&self, name: &str) -> SessionTemplate {
        let set = |image: &str, nodes: &[String]| BootSet {
            path: format!("s3://boot-images/{image}/manifest.json"),
            r#type: "s3".to_owned(),
            kernel_parameters: Some("quiet".to_owned()),
            node_list: Some(StringList { values: nodes.to_vec() }),
            ..Default::default()
        };
        let (one, other) = self.nodes.split_at(self.nodes.len() / 2);
        let boot_sets = match name {
            "halves" => {
                [("one", set("alpha", one)), ("other", set("beta", other))].into_iter().collect::<Vec<_>>()
            }
            _ => vec![("all", set("gamma", &self.nodes))],
        };
        let boot_sets = boot_sets
            .into_iter()
            .filter(|(_, set)| set.node_list.as_ref().is_some_and(|list| !list.values.is_empty()));
        SessionTemplate {
            name: name.to_owned(),
            enable_cfs: Some(name == "halves"),
            cfs: Some(Cfs { configuration: Some("settings-1".to_owned()) }),
            boot_sets: boot_sets.map(|(name, set)| (name.to_owned(), set)).collect(),
            ..Default::default()
        }
    }

    /// Makes random requests, without end.
    pub async fn act(&self) -> anyhow::Result<()> {
        let mut number = 0;
        loop {
            number += 1;
            self.mend().await?;
            match self.draw(10) {
                _ if number == 1 => self.create("s1", true).await?,
                0..=5 => self.create(&format!("s{number}"), false).await?,
                6 => self.delete().await?,
                7 => self.switch().await?,
                8 => self.apply().await?,
                _ => self.create_twice(&format!("s{number}")).await?,
            }
            let pause = self.world.trouble.draw(|chance| chance.random_range(1_000..30_000));
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    fn draw(&self, below: u32) -> u32 {
        self.world.trouble.draw(|chance| chance.random_range(0..below))
    }

    fn some_nodes(&self) -> Vec<String> {
        let count = self.draw(u32::try_from(self.nodes.len()).unwrap_or(1)) as usize + 1;
        self.world.trouble.draw(|chance| self.nodes.choose_multiple(chance, count).cloned().collect())
    }

    fn wish(&self, name: &str, everybody: bool) -> CreateSessionRequest {
        let limit = if everybody || self.draw(3) == 0 { String::new() } else { self.some_nodes().join(",") };
        let operation = match self.draw(4) {
            0 | 1 => Operation::Boot,
            2 => Operation::Reboot,
            _ => Operation::Shutdown,
        };
        CreateSessionRequest {
            name: name.to_owned(),
            operation: if everybody { Operation::Boot } else { operation }.into(),
            template_name: TEMPLATES[self.draw(2) as usize].to_owned(),
            limit,
            stage: !everybody && self.draw(6) == 0,
            ..Default::default()
        }
    }

    /// Applies the staged states of some nodes.
    async fn apply(&self) -> anyhow::Result<()> {
        let ids = self.some_nodes();
        let request = ApplyStagedRequest { component_ids: ids.clone(), ..Default::default() };
        let applied = within(PATIENCE, self.sessions()?.apply_staged(request)).await.map(drop);
        trace::note(|| format!("apply what is staged for {ids:?}: {}", word(&applied)));
        Ok(())
    }

    async fn create(&self, name: &str, everybody: bool) -> anyhow::Result<()> {
        let wish = self.wish(name, everybody);
        let (operation, template, limit) = (wish.operation(), wish.template_name.clone(), wish.limit.clone());
        let created = within(PATIENCE, self.sessions()?.create_session(wish)).await.map(drop);
        trace::note(|| format!("{operation:?} {name} of {template} for {limit:?}: {}", word(&created)));
        if created.is_ok() {
            self.promised.lock().insert(name.to_owned(), true);
        }
        Ok(())
    }

    /// Requests two sessions of the same name at once.
    async fn create_twice(&self, name: &str) -> anyhow::Result<()> {
        self.world.trouble.count("same session asked for twice");
        let (mut one, mut other) = (self.sessions()?, self.sessions()?);
        let wish = self.wish(name, false);
        let first = within(PATIENCE, one.create_session(wish.clone()));
        let second = within(PATIENCE, other.create_session(wish));
        let (first, second) = tokio::join!(first, second);
        let (first, second) = (first.map(drop), second.map(drop));
        trace::note(|| format!("{name} asked for twice: {}, {}", word(&first), word(&second)));
        if first.is_ok() && second.is_ok() {
            self.world.journal.violated("I16", format!("session {name} was created twice"));
        }
        if first.is_ok() || second.is_ok() {
            self.promised.lock().insert(name.to_owned(), true);
        }
        Ok(())
    }

    /// Deletes a session, in any state.
    async fn delete(&self) -> anyhow::Result<()> {
        let there: Vec<String> =
            self.promised.lock().iter().filter(|(_, there)| **there).map(|(name, _)| name.clone()).collect();
        let Some(name) = self.world.trouble.draw(|chance| there.choose(chance).cloned()) else {
            return Ok(());
        };
        self.world.trouble.count("session deleted");
        // The deletion may happen without an answer.
        self.promised.lock().insert(name.clone(), false);
        let request = DeleteSessionRequest { name: name.clone(), ..Default::default() };
        let deleted = within(PATIENCE, self.sessions()?.delete_session(request)).await.map(drop);
        trace::note(|| format!("delete {name}: {}", word(&deleted)));
        Ok(())
    }

    /// Writes to components that are being changed.
    async fn switch(&self) -> anyhow::Result<()> {
        let (ids, enabled) = (self.some_nodes(), self.draw(2) == 0);
        self.world.trouble.count("components written by hand");
        let patch = Component { enabled: Some(enabled), ..Default::default() };
        let many = PatchMany { patch: Some(patch), ids: ids.clone(), ..Default::default() };
        let request = PatchComponentsRequest { selection: Some(Selection::Many(many)), ..Default::default() };
        let mut components = ComponentServiceClient::new(self.world.channel(Part::Registry)?);
        let done = within(PATIENCE, components.patch_components(request)).await.map(drop);
        trace::note(|| format!("enabled={enabled} for {ids:?}: {}", word(&done)));
        Ok(())
    }

    /// Deletes records that people miss because their rows cannot be read. A node is then discovered again. Options are
    /// set again, because the defaults hold where they cannot be read.
    ///
    /// # Errors
    /// When an address is invalid.
    pub async fn mend(&self) -> anyhow::Result<()> {
        if !self.world.spoilt(Part::Registry, "options").is_empty() {
            let set = within(PATIENCE, self.set_options()).await;
            trace::note(|| format!("set options, which cannot be read: {}", word(&set)));
        }
        let mut components = ComponentServiceClient::new(self.world.channel(Part::Registry)?);
        for id in self.world.spoilt(Part::Registry, "component") {
            let get = GetComponentRequest { id: id.clone(), ..Default::default() };
            if !is_missing(within(PATIENCE, components.get_component(get)).await) {
                continue;
            }
            let request = DeleteComponentRequest { id: id.clone(), ..Default::default() };
            let deleted = within(PATIENCE, components.delete_component(request)).await.map(drop);
            self.judge_mending(Part::Registry, "component", &id, &deleted);
        }
        for key in self.world.spoilt(Part::Sessions, "session") {
            // The key begins with the tenant, which is none.
            let name = key.trim_start().to_owned();
            let get = GetSessionRequest { name: name.clone(), ..Default::default() };
            if !is_missing(within(PATIENCE, self.sessions()?.get_session(get)).await) {
                continue;
            }
            self.promised.lock().insert(name.clone(), false);
            let request = DeleteSessionRequest { name: name.clone(), ..Default::default() };
            let deleted = within(PATIENCE, self.sessions()?.delete_session(request)).await.map(drop);
            self.judge_mending(Part::Sessions, "session", &key, &deleted);
        }
        Ok(())
    }

    /// I18: judges that a record that cannot be read can be deleted.
    fn judge_mending(&self, part: Part, kind: &str, key: &str, deleted: &Result<(), Status>) {
        trace::note(|| format!("delete {kind} {key:?}, which cannot be read: {}", word(deleted)));
        let is_there = self.world.spoilt(part, kind).iter().any(|one| one == key);
        let refused = deleted.as_ref().is_err_and(|status| status.code() == Code::NotFound);
        if is_there && refused {
            self.world.journal.violated("I18", format!("nobody can delete {kind} {key:?}"));
        }
    }

    /// I6: judges that every session that was promised and not deleted exists, unless the database has lost it, or its
    /// row cannot be read and only some replicas have it in memory.
    ///
    /// # Errors
    /// When an address is invalid.
    pub async fn check_promises(&self) -> anyhow::Result<()> {
        if self.world.journal.was_set_back(Part::Sessions) {
            return Ok(());
        }
        let promised: Vec<String> =
            self.promised.lock().iter().filter(|(_, there)| **there).map(|(name, _)| name.clone()).collect();
        let mut sessions = self.sessions()?;
        let spoilt = self.world.spoilt(Part::Sessions, "session");
        let is_spoilt = |name: &String| spoilt.iter().any(|key| key.trim_start() == name);
        for name in promised.into_iter().filter(|name| !is_spoilt(name)) {
            let request = GetSessionRequest { name: name.clone(), ..Default::default() };
            // A paused replica still answers when it continues.
            let found = again(async || sessions.get_session(request.clone()).await.map(drop));
            let found = tokio::time::timeout(RETURNS, found).await;
            let found = found.unwrap_or_else(|_| Err(Status::unavailable("nobody answers")));
            if let Err(status) = found {
                self.world.journal.violated("I6", format!("session {name} was promised: {status}"));
            }
        }
        Ok(())
    }

    /// Returns the sessions that are not complete; `None` without an answer.
    pub async fn running(&self) -> Option<Vec<String>> {
        let mut stream =
            within(PATIENCE, self.sessions().ok()?.list_sessions(ListSessionsRequest::default()))
                .await
                .ok()?
                .into_inner();
        let mut running = Vec::new();
        while let Some(page) = within(PATIENCE, stream.message()).await.ok()? {
            // A staged session waits until it is applied.
            let left = page
                .sessions
                .into_iter()
                .filter(|session| session.progress() != Progress::Complete && !session.stage);
            running.extend(left.map(|session| {
                format!("{} ({:?}) {}", session.name, session.progress(), session.waiting_for)
            }));
        }
        Some(running)
    }

    /// I9: follows every session, and judges that no complete one continues, unless the database may have lost its
    /// completion. A broken watch resumes; where its token has expired, it starts again.
    pub async fn follow_sessions(&self) -> anyhow::Result<()> {
        let (mut complete, mut resume) = (BTreeMap::new(), ResumeToken::default());
        loop {
            let Err(ended) = self.follow_on(&mut complete, &mut resume).await;
            if ended.code() == Code::OutOfRange {
                self.world.trouble.count("watch resumed too late");
                resume = ResumeToken::default();
                if self.world.journal.was_set_back(Part::Sessions) {
                    complete.clear();
                }
            }
            // People close their windows.
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }

    async fn follow_on(
        &self,
        complete: &mut BTreeMap<String, bool>,
        resume: &mut ResumeToken,
    ) -> Result<Infallible, Status> {
        let mut sessions = self.sessions().map_err(|error| Status::internal(error.to_string()))?;
        let request = WatchSessionsRequest { resume_revision: resume.revision };
        let answer = sessions.watch_sessions(resume.request(request)).await?;
        resume.incarnation = named_incarnation(answer.metadata());
        let mut messages = answer.into_inner();
        let over = tokio::time::Instant::now() + WINDOW;
        while let Ok(message) = tokio::time::timeout_at(over, messages.message()).await {
            let Some(message) = message? else { break };
            for session in message.sessions {
                let is_complete = session.progress() == Progress::Complete;
                let before = complete.insert(session.id.clone(), is_complete);
                let was_complete = before.unwrap_or(false);
                if is_complete && before == Some(false) {
                    let unreadable = self.world.spoilt(Part::Registry, "component");
                    self.world.journal.completed(&session.name, &session.id, &unreadable);
                }
                if let Err(what) = invariants::completion_stays(was_complete, is_complete, &session.name) {
                    self.world.journal.violated("I9", what);
                }
            }
            let changed = message.deletions.iter().map(|deletion| deletion.revision).collect::<Vec<_>>();
            if let Err(what) = invariants::watch_moves_on(resume.revision, message.revision, &changed) {
                self.world.journal.violated("I8", format!("watch of sessions: {what}"));
            }
            resume.revision = message.revision;
        }
        Err(Status::unavailable("the window was closed"))
    }
}

/// Repeats a call while its service is not reachable.
async fn again(mut call: impl AsyncFnMut() -> Result<(), Status>) -> Result<(), Status> {
    loop {
        match within(PATIENCE, call()).await {
            Err(status)
                if matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded | Code::Unknown) =>
            {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            outcome => return outcome,
        }
    }
}

fn is_missing<T>(outcome: Result<T, Status>) -> bool {
    outcome.is_err_and(|status| status.code() == Code::NotFound)
}

fn word(outcome: &Result<(), Status>) -> String {
    match outcome {
        Ok(()) => "done".to_owned(),
        Err(status) => format!("{:?} {}", status.code(), status.message()),
    }
}
