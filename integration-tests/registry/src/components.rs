//! Components of the registry, changed as the parts of a mesh change them.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    sync::atomic::Ordering,
    time::Duration,
};

use chassis::{
    Channel,
    kinds::{
        Interner,
        component::{artifacts_to_wire, from_wire, phase_to_wire},
        options,
    },
};
use domain::boot::{
    bos::options::Options,
    component::{Component, Phase, artifacts::BootArtifacts},
};
use proto::{
    component::{
        self as wire, AssignSessionRequest, Assignment, GetComponentRequest, ListComponentsRequest,
        PatchComponentsRequest, PatchEach, PreparationReport, PutComponentsRequest,
        ReportPreparationsRequest, ReportStatusesRequest, StatusReport,
        component_service_client::ComponentServiceClient, patch_components_request::Selection,
        report_service_client::ReportServiceClient,
    },
    inventory::{ListInventoryRequest, inventory_service_client::InventoryServiceClient},
    option::{self as wire_options, UpdateOptionsRequest, options_service_client::OptionsServiceClient},
};
use tokio::time::Instant;

use crate::{PATIENCE, TestRegistry};

/// Pause between two looks at the registry.
const PAUSE: Duration = Duration::from_millis(10);

/// Wish of a session for its members.
#[derive(Debug, Clone)]
pub struct SessionWish {
    /// Name of the session.
    pub session: String,
    /// Artifacts to boot.
    pub boot_artifacts: BootArtifacts,
    /// Wanted configuration; empty: none.
    pub configuration: String,
}

impl Default for SessionWish {
    fn default() -> Self {
        Self {
            session: "s1".to_owned(),
            boot_artifacts: BootArtifacts::default(),
            configuration: String::new(),
        }
    }
}

impl TestRegistry {
    /// Makes the inventory list nodes, which become components.
    ///
    /// # Panics
    /// When a call fails.
    pub async fn list(&self, ids: impl IntoIterator<Item: AsRef<str>>) {
        let ids = owned(ids);
        let known: BTreeSet<String> =
            self.all().await.into_iter().map(|one| one.id.as_str().to_owned()).collect();
        self.change_inventory(|nodes| nodes.extend(ids.iter().map(|id| (id.clone(), false))));
        let component = |id: &String| wire::Component {
            id: id.clone(),
            enabled: Some(false),
            ..wire::Component::default()
        };
        let new: Vec<_> = ids.iter().filter(|id| !known.contains(*id)).map(component).collect();
        if !new.is_empty() {
            self.put(new).await;
        }
        // Sessions read the inventory before they assign their members, which then are listed.
        let mut client = InventoryServiceClient::new(self.channel());
        let mut parts =
            client.list_inventory(ListInventoryRequest {}).await.expect("an inventory").into_inner();
        while parts.message().await.expect("a part of the inventory").is_some() {}
    }

    /// Makes the inventory lack a node.
    ///
    /// # Panics
    /// When the inventory cannot be written.
    pub fn unlist(&self, id: &str) {
        self.change_inventory(|nodes| nodes.retain(|listed, _| listed != id));
    }

    /// Locks or unlocks a node in the inventory.
    ///
    /// # Panics
    /// When the inventory cannot be written.
    pub fn lock(&self, id: &str, is_locked: bool) {
        self.change_inventory(|nodes| nodes.extend([(id.to_owned(), is_locked)]));
    }

    fn change_inventory(&self, change: impl FnOnce(&mut BTreeMap<String, bool>)) {
        let mut nodes = self.nodes.lock();
        change(&mut nodes);
        let entries =
            nodes.iter().map(|(id, locked)| format!("[[node]]\nid = \"{id}\"\nlocked = {locked}\n"));
        let file = &self.settings.machine_file;
        let written = file.with_extension("new");
        fs::write(&written, entries.collect::<String>()).expect("a machine file");
        // The registry may read the file at any time.
        fs::rename(written, file).expect("a machine file");
    }

    /// Puts components as an operator does.
    ///
    /// # Panics
    /// When the call fails.
    pub async fn put(&self, components: Vec<wire::Component>) {
        let request = PutComponentsRequest { components, ..PutComponentsRequest::default() };
        self.components().put_components(request).await.expect("stored components");
    }

    /// Patches components, each by its own patch, as an operator or a node does.
    ///
    /// # Panics
    /// When the call fails.
    pub async fn patch(&self, patches: Vec<wire::Component>) {
        let selection = Some(Selection::Each(PatchEach { patches }));
        let request = PatchComponentsRequest { selection, ..PatchComponentsRequest::default() };
        self.components().patch_components(request).await.expect("patched components");
    }

    /// Clears the staged state of a component as an operator does.
    ///
    /// # Panics
    /// When the call fails.
    pub async fn unstage(&self, id: &str) {
        let cleared = wire::StagedState { session: Some(String::new()), ..wire::StagedState::default() };
        let patch =
            wire::Component { id: id.to_owned(), staged_state: Some(cleared), ..wire::Component::default() };
        self.patch(vec![patch]).await;
    }

    /// Waits until the registry has so many components.
    ///
    /// # Panics
    /// When that takes too long.
    pub async fn discovered(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.all().await.len() < count {
            assert!(Instant::now() < deadline, "the registry never had {count} components");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Lists nodes in the inventory and gives them to a new session: each begins a generation and is held.
    ///
    /// # Panics
    /// When a call fails.
    pub async fn assign(&self, ids: impl IntoIterator<Item: AsRef<str>>, wish: &SessionWish) {
        let ids = owned(ids);
        let count = ids.len();
        self.list(&ids).await;
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        let assignment = Assignment {
            ids,
            boot_artifacts: Some(artifacts_to_wire(&wish.boot_artifacts)),
            configuration: wish.configuration.clone(),
            ..Assignment::default()
        };
        let request = AssignSessionRequest {
            assignment_id: format!("session-{number:08}"),
            session: wish.session.clone(),
            assignments: vec![assignment],
            ..AssignSessionRequest::default()
        };
        let answer = self.reports().assign_session(request).await.expect("an assignment").into_inner();
        assert_eq!(answer.assigned_ids.len(), count, "{answer:?}");
    }

    /// Reports as the config coordinator does that the first power-on of each component is prepared.
    ///
    /// # Panics
    /// When a call fails.
    pub async fn report_prepared(&self, ids: impl IntoIterator<Item: AsRef<str>>) {
        let ids: HashSet<_> = owned(ids).into_iter().collect();
        let all = self.all().await;
        let prepared = all.iter().filter(|one| ids.contains(one.id.as_str()));
        let report = |one: &Component| PreparationReport {
            id: one.id.as_str().to_owned(),
            generation: one.generation,
            attempt: 1,
            ..PreparationReport::default()
        };
        let request =
            ReportPreparationsRequest { reports: prepared.map(report).collect(), ..Default::default() };
        let answer = self.reports().report_preparations(request).await.expect("reports").into_inner();
        assert!(answer.stale_ids.is_empty(), "{answer:?}");
    }

    /// Reports as the status evaluator does that components are in `phase` and acted on.
    ///
    /// # Panics
    /// When the call fails, or the reports are always stale.
    pub async fn report_phase(&self, ids: impl IntoIterator<Item: AsRef<str>>, phase: Phase) {
        self.report_statuses(
            ids,
            StatusReport { phase: phase_to_wire(phase).into(), ..StatusReport::default() },
        )
        .await;
    }

    /// Reports as the status evaluator does that components are done, which disables them.
    ///
    /// # Panics
    /// As [`Self::report_phase`].
    pub async fn settle(&self, ids: impl IntoIterator<Item: AsRef<str>>) {
        self.report_statuses(ids, StatusReport { settled: true, ..StatusReport::default() }).await;
    }

    /// Makes a report of the status evaluator about the newest revision of each component.
    ///
    /// # Panics
    /// As [`Self::report_phase`].
    pub async fn report_statuses(&self, ids: impl IntoIterator<Item: AsRef<str>>, report: StatusReport) {
        let mut ids: BTreeSet<_> = owned(ids).into_iter().collect();
        let deadline = Instant::now() + PATIENCE;
        while !ids.is_empty() {
            assert!(Instant::now() < deadline, "reports about {ids:?} are always stale");
            let newest = self.all().await.into_iter().filter(|one| ids.contains(one.id.as_str()));
            let about = |one: Component| StatusReport {
                id: one.id.as_str().to_owned(),
                revision: one.revision,
                ..report.clone()
            };
            let request = ReportStatusesRequest { reports: newest.map(about).collect() };
            let answer = self.reports().report_statuses(request).await.expect("reports").into_inner();
            ids = answer.stale_ids.into_iter().collect();
        }
    }

    /// Reports as nodes do that they run the artifacts that they should.
    ///
    /// # Panics
    /// When a call fails.
    pub async fn report_boots(&self, ids: impl IntoIterator<Item: AsRef<str>>) {
        let ids: HashSet<_> = owned(ids).into_iter().collect();
        let all = self.all().await;
        let booted = all.iter().filter(|one| ids.contains(one.id.as_str())).map(|one| wire::Component {
            id: one.id.as_str().to_owned(),
            actual_state: Some(wire::ActualState {
                boot_artifacts: one.desired_artifacts().map(artifacts_to_wire),
                ..wire::ActualState::default()
            }),
            ..wire::Component::default()
        });
        self.patch(booted.collect()).await;
    }

    /// Sets the options; those that are not set have their defaults.
    ///
    /// # Panics
    /// When an option is invalid, or the call fails.
    pub async fn set_options(&self, options: wire_options::Options) {
        let all = Options::default().apply(options::patch_from_wire(options)).expect("valid options");
        let request =
            UpdateOptionsRequest { options: Some(options::to_wire(all)), ..UpdateOptionsRequest::default() };
        OptionsServiceClient::new(self.channel()).update_options(request).await.expect("changed options");
    }

    /// Returns a component.
    ///
    /// # Panics
    /// When there is none with this id.
    pub async fn get(&self, id: &str) -> Component {
        let request = GetComponentRequest { id: id.to_owned(), scope: None };
        let answer = self.components().get_component(request).await.expect("a component").into_inner();
        from_wire(answer.component.expect("a component"), &mut Interner::default()).expect("a component")
    }

    /// Returns all components.
    ///
    /// # Panics
    /// When the call fails.
    pub async fn all(&self) -> Vec<Component> {
        let list = self.components().list_components(ListComponentsRequest::default()).await;
        let mut pages = list.expect("a list").into_inner();
        let (mut all, mut interner) = (Vec::new(), Interner::default());
        while let Some(page) = pages.message().await.expect("a page") {
            let components = page.components.into_iter();
            all.extend(components.map(|one| from_wire(one, &mut interner).expect("a component")));
        }
        all
    }

    /// Waits until a component is as `wanted`.
    ///
    /// # Panics
    /// When that takes too long; the message has `what` and the component.
    pub async fn until(&self, id: &str, what: &str, wanted: impl Fn(&Component) -> bool) -> Component {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let component = self.get(id).await;
            if wanted(&component) {
                return component;
            }
            assert!(Instant::now() < deadline, "waited in vain for {what}: {component:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Client of components past the proxy.
    #[must_use]
    pub fn components(&self) -> ComponentServiceClient<Channel> {
        ComponentServiceClient::new(self.channel())
    }

    /// Client of reports past the proxy.
    #[must_use]
    pub fn reports(&self) -> ReportServiceClient<Channel> {
        ReportServiceClient::new(self.channel())
    }
}

fn owned(ids: impl IntoIterator<Item: AsRef<str>>) -> Vec<String> {
    ids.into_iter().map(|id| id.as_ref().to_owned()).collect()
}
