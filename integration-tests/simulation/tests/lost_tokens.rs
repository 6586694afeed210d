//! After a restore of the registry's database no report is judged by a boot token of the lost history.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::time::Duration;

use chassis::{
    Channel, Context, Settings,
    store::disk::{CommitOutcome, DiskController, KeptCommit, SimulatedDisk},
};
use proto::component::{
    ActualState, BootArtifacts, BootToken, Component, PatchComponentsRequest, PatchEach,
    PutComponentsRequest, ReportPreparationsRequest, component_service_client::ComponentServiceClient,
    patch_components_request::Selection, report_service_client::ReportServiceClient,
};
use tokio::{net::TcpListener, time::sleep};

/// Time of the commits that are lost.
const LOST: Duration = Duration::from_millis(500);

/// Keeps every commit.
struct Keeper;

impl DiskController for Keeper {
    fn outcome(&self, _: &'static str) -> (Duration, CommitOutcome) {
        (Duration::ZERO, CommitOutcome::Kept)
    }

    fn kept(&self, _: &KeptCommit<'_>) {}

    fn dies(&self, _: u64) {}

    fn pauses(&self, _: u64) {}
}

/// Starts a registry on `disk`.
async fn start(disk: &SimulatedDisk) -> Channel {
    let mut settings = Settings::default();
    settings.component_registry.database_url = "sqlite::memory:".to_owned();
    let context = Context::new(settings);
    disk.mount().attach(&context);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    component_registry::start(context, listener.into()).await.unwrap();
    chassis::plain_channel(&url).unwrap()
}

async fn put(registry: &Channel, id: &str) {
    let components = vec![Component { id: id.to_owned(), ..Component::default() }];
    let request = PutComponentsRequest { components, ..PutComponentsRequest::default() };
    ComponentServiceClient::new(registry.clone()).put_components(request).await.unwrap();
}

async fn store_token(registry: &Channel, token: &str) {
    let boot_artifacts =
        Some(BootArtifacts { kernel: Some("s3://k".to_owned()), ..BootArtifacts::default() });
    let tokens = vec![BootToken { token: token.to_owned(), boot_artifacts }];
    let request = ReportPreparationsRequest { reports: Vec::new(), tokens };
    ReportServiceClient::new(registry.clone()).report_preparations(request).await.unwrap();
}

/// Reports that the node has booted with `token`, and returns the kernel that the registry notes.
async fn kernel_reported_by(registry: &Channel, id: &str, token: &str) -> Option<String> {
    let actual_state = ActualState { bss_token: Some(token.to_owned()), ..ActualState::default() };
    let patch = Component { id: id.to_owned(), actual_state: Some(actual_state), ..Component::default() };
    let selection = Some(Selection::Each(PatchEach { patches: vec![patch] }));
    let request = PatchComponentsRequest { selection, ..PatchComponentsRequest::default() };
    let answer = ComponentServiceClient::new(registry.clone()).patch_components(request).await.unwrap();
    let component = answer.into_inner().components.remove(0);
    component.actual_state?.boot_artifacts?.kernel.filter(|kernel| !kernel.is_empty())
}

#[tokio::test]
async fn tokens_of_a_lost_history_judge_no_report() {
    for disk in [SimulatedDisk::new(Keeper), SimulatedDisk::shared(Keeper)] {
        let registry = start(&disk).await;
        put(&registry, "n1").await;
        put(&registry, "n2").await;
        store_token(&registry, "kept").await;
        sleep(2 * LOST).await;
        store_token(&registry, "lost").await;
        assert!(kernel_reported_by(&registry, "n1", "lost").await.is_some());
        disk.set_back(LOST);
        // The next change of components notices the loss, before any token is stored or named.
        put(&registry, "n3").await;
        assert_eq!(kernel_reported_by(&registry, "n2", "lost").await, None);
        assert!(kernel_reported_by(&registry, "n2", "kept").await.is_some());
    }
}
