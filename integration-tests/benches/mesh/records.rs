//! Made-up components.

use std::sync::atomic::{AtomicUsize, Ordering};

use proto::component::{
    ActualState, BootArtifacts, Component, DesiredState, PatchComponentsRequest, PatchEach,
    PutComponentsRequest, Status, patch_components_request::Selection,
};
use serde_json::{Value, json};
use tonic::Code;

use crate::stage::{Server, Stage};

/// Components in one request that creates them.
const AT_ONCE: usize = 5_000;

/// Attempts of a request. On a loaded machine the pings of a connection may stay unanswered for too long while a
/// million components are created; the failure is reported, and the measurement continues.
const TRIES: u32 = 5;

/// Amount of text in each component.
#[derive(Clone, Copy, Debug)]
pub enum RecordSize {
    /// About a kilobyte of JSON, as the original was measured with.
    Usual,
    /// About 1.6 kilobytes, as on a large machine.
    Long,
}

/// Which components belong to a session of their own and have a status of their own.
pub type Chosen = fn(usize) -> bool;

/// A mesh with inactive components, as [`fill`] makes them.
///
/// # Panics
/// When it does not start.
pub async fn filled(stage: &Stage, count: usize, size: RecordSize, chosen: Chosen) -> Server {
    let server = Server::empty(stage).await;
    fill(&server, count, size, chosen).await;
    server
}

/// Creates components outside any work of the mesh. The chosen ones belong to the session `chosen` and failed, all
/// others belong to `others`.
///
/// # Panics
/// When a call is refused.
pub async fn fill(server: &Server, count: usize, size: RecordSize, chosen: Chosen) {
    let mut registry = server.registry();
    let ids: Vec<_> = (0..count).collect();
    for chunk in ids.chunks(AT_ONCE) {
        let components = chunk.iter().map(|n| component(*n, size, chosen(*n))).collect();
        let request = PutComponentsRequest { components, ..Default::default() };
        let mut tries = 1;
        while let Err(status) = registry.put_components(request.clone()).await {
            assert!(tries < TRIES && status.code() == Code::Unavailable, "components not stored: {status}");
            println!("    components not stored at try {tries}: {status}");
            tries += 1;
        }
    }
}

/// Name of the component at a position.
pub fn id(n: usize) -> String {
    format!("x{}c{}s{}b{}n{}", 1000 + n / 256, n / 32 % 8, n / 4 % 8, n / 2 % 2, n % 2)
}

fn component(n: usize, size: RecordSize, chosen: bool) -> Component {
    let status = |word: &str| Status { status_override: Some(word.into()), ..Status::default() };
    let desired = DesiredState {
        boot_artifacts: Some(artifacts(size)),
        configuration: Some("compute".into()),
        ..DesiredState::default()
    };
    Component {
        id: id(n),
        desired_state: Some(desired),
        actual_state: Some(actual(size)),
        enabled: Some(false),
        session: Some(if chosen { "chosen" } else { "others" }.into()),
        status: chosen.then(|| status("failed")),
        ..Component::default()
    }
}

fn actual(size: RecordSize) -> ActualState {
    ActualState { boot_artifacts: Some(artifacts(size)), ..ActualState::default() }
}

fn artifacts(size: RecordSize) -> BootArtifacts {
    BootArtifacts {
        kernel: Some("s3://boot-images/5c8d9f3e/kernel".into()),
        kernel_parameters: Some(parameters(size)),
        initrd: Some("s3://boot-images/5c8d9f3e/initrd".into()),
        timestamp: None,
    }
}

/// Kernel parameters.
pub fn parameters(size: RecordSize) -> String {
    let words = match size {
        RecordSize::Usual => 12,
        RecordSize::Long => 28,
    };
    "console=ttyS0,115200 ".repeat(words)
}

/// A request to note a text in components, each by a patch of its own.
pub fn patch(numbers: impl Iterator<Item = usize>, noted: &str) -> PatchComponentsRequest {
    let patch = |n| Component { id: id(n), error: Some(noted.into()), ..Component::default() };
    each(numbers.map(patch).collect(), false)
}

/// A request that makes components those of a session, and failed.
pub fn failed_of_session<'a>(ids: impl Iterator<Item = &'a String>, session: &str) -> PatchComponentsRequest {
    let status = Status { status_override: Some("failed".into()), ..Status::default() };
    let patch = |id: &String| Component {
        id: id.clone(),
        session: Some(session.into()),
        status: Some(status.clone()),
        ..Component::default()
    };
    each(ids.map(patch).collect(), false)
}

/// Images that nodes boot by turns.
const BOOTED: [&str; 2] = ["7a41c2d0", "e93b6f18"];

/// Boot reports of nodes. Each names another image than the one before, so that the whole report is news.
pub struct BootReports(Vec<AtomicUsize>);

impl BootReports {
    /// Creates the reports of `count` nodes.
    pub fn of(count: usize) -> Self {
        Self((0..count).map(|_| AtomicUsize::new(0)).collect())
    }

    /// Which of [`BOOTED`] a node boots next.
    pub fn next(&self, n: usize) -> usize {
        self.0[n].fetch_add(1, Ordering::Relaxed) % BOOTED.len()
    }
}

/// The report of one node over gRPC, as the gateway makes it, of one of [`BOOTED`].
pub fn report(n: usize, boot: usize) -> PatchComponentsRequest {
    let artifacts = BootArtifacts {
        kernel: Some(format!("s3://boot-images/{}/kernel", BOOTED[boot])),
        ..artifacts(RecordSize::Usual)
    };
    let actual_state = ActualState { boot_artifacts: Some(artifacts), ..ActualState::default() };
    let report = Component { id: id(n), actual_state: Some(actual_state), ..Component::default() };
    each(vec![report], true)
}

/// Reports of nodes over REST, of each of [`BOOTED`].
pub fn report_bodies() -> [Value; BOOTED.len()] {
    BOOTED.map(|image| {
        json!({"actual_state": {"boot_artifacts": {
            "kernel": format!("s3://boot-images/{image}/kernel"),
            "kernel_parameters": parameters(RecordSize::Usual),
            "initrd": "s3://boot-images/5c8d9f3e/initrd",
        }}})
    })
}

fn each(patches: Vec<Component>, guard_actual_state: bool) -> PatchComponentsRequest {
    let selection = Some(Selection::Each(PatchEach { patches }));
    PatchComponentsRequest { selection, guard_actual_state, ..PatchComponentsRequest::default() }
}
