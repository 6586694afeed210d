//! Bulk writes and lists of components, through gRPC and through REST.

use std::time::{Duration, Instant};

use integration_tests::mesh::Mesh;
use proto::component::{
    BootArtifacts, Component, DesiredState, ListComponentsRequest, PatchComponentsRequest, PatchEach,
    PutComponentsRequest, component_service_client::ComponentServiceClient,
    patch_components_request::Selection,
};
use serde_json::json;

use crate::figures::Figures;

type Client = ComponentServiceClient<chassis::Channel>;

const PATCHED: usize = 2_000;
const RUNS: usize = 7;

/// Measures on a registry with 10,000 components, then with 100,000.
pub async fn measure(figures: &Figures) {
    if !(figures.wants("patch") || figures.wants("list")) {
        return;
    }
    let mesh = Mesh::start(async |settings| settings.simulator.nodes = 0).await;
    let channel = chassis::channel(&mesh.settings.component_registry.url).expect("an address");
    let client = ComponentServiceClient::new(channel).max_decoding_message_size(usize::MAX);
    let http = reqwest::Client::new();
    let url = format!("{}/apis/bos/v2/components", mesh.settings.gateway.url);

    for (count, label) in [(10_000, "10,000"), (100_000, "100,000")] {
        fill(client.clone(), count).await;
        if count == 10_000 && figures.wants("patch") {
            figures
                .times("patch of 2,000 through gRPC", runs(async || patch_grpc(client.clone()).await).await);
            figures.times("patch of 2,000 through REST", runs(async || patch_rest(&http, &url).await).await);
        }
        if figures.wants("list") {
            print_list(figures, &format!("list of {label} through gRPC"), async || {
                list_grpc(client.clone(), count).await
            })
            .await;
            print_list(figures, &format!("list of {label} through REST"), async || {
                list_rest(&http, &url).await
            })
            .await;
        }
    }
    mesh.stop().await;
}

async fn runs(mut run: impl AsyncFnMut() -> Duration) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        times.push(run().await);
    }
    times
}

async fn print_list(figures: &Figures, name: &str, mut list: impl AsyncFnMut() -> (Duration, Duration)) {
    let (mut first, mut total) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (first_byte, end) = list().await;
        first.push(first_byte);
        total.push(end);
    }
    figures.times(&format!("{name}, first byte"), first);
    figures.times(&format!("{name}, total"), total);
}

/// Creates components of about 2.6 kB each.
async fn fill(mut client: Client, count: usize) {
    let ids: Vec<_> = (0..count).collect();
    for chunk in ids.chunks(5_000) {
        let components = chunk.iter().map(|n| component(*n, "first")).collect();
        client.put_components(PutComponentsRequest { components, scope: None }).await.expect("stored");
    }
}

fn component(n: usize, configuration: &str) -> Component {
    let artifacts = BootArtifacts {
        kernel: Some("s3://boot-images/5c8d9f3e/kernel".into()),
        kernel_parameters: Some("console=ttyS0,115200 ".repeat(57)),
        initrd: Some("s3://boot-images/5c8d9f3e/initrd".into()),
        timestamp: None,
    };
    let desired = DesiredState {
        boot_artifacts: Some(artifacts.clone()),
        configuration: Some(configuration.into()),
        ..DesiredState::default()
    };
    let actual = proto::component::ActualState { boot_artifacts: Some(artifacts), ..Default::default() };
    Component {
        id: id(n),
        desired_state: Some(desired),
        actual_state: Some(actual),
        enabled: Some(false),
        session: Some("bench".into()),
        ..Component::default()
    }
}

fn id(n: usize) -> String {
    format!("x{}c{}s{}b{}n{}", 1000 + n / 256, n / 32 % 8, n / 4 % 8, n / 2 % 2, n % 2)
}

async fn patch_grpc(mut client: Client) -> Duration {
    let patches =
        (0..PATCHED).map(|n| Component { id: id(n), error: Some("noted".into()), ..Component::default() });
    let selection = Some(Selection::Each(PatchEach { patches: patches.collect() }));
    let request = PatchComponentsRequest { selection, ..PatchComponentsRequest::default() };
    let began = Instant::now();
    client.patch_components(request).await.expect("patched");
    began.elapsed()
}

async fn patch_rest(http: &reqwest::Client, url: &str) -> Duration {
    let patches: Vec<_> = (0..PATCHED).map(|n| json!({"id": id(n), "error": "noted"})).collect();
    let began = Instant::now();
    let response = http.patch(url).json(&patches).send().await.expect("an answer");
    assert!(response.status().is_success());
    response.bytes().await.expect("a whole answer");
    began.elapsed()
}

async fn list_grpc(mut client: Client, count: usize) -> (Duration, Duration) {
    let began = Instant::now();
    let mut pages =
        client.list_components(ListComponentsRequest::default()).await.expect("a list").into_inner();
    let (mut first, mut listed) = (None, 0);
    while let Some(page) = pages.message().await.expect("a page") {
        first.get_or_insert_with(|| began.elapsed());
        listed += page.components.len();
    }
    assert_eq!(listed, count);
    (first.unwrap_or_default(), began.elapsed())
}

async fn list_rest(http: &reqwest::Client, url: &str) -> (Duration, Duration) {
    let began = Instant::now();
    let mut response = http.get(url).send().await.expect("a list");
    assert!(response.status().is_success());
    let mut first = None;
    while response.chunk().await.expect("a chunk").is_some() {
        first.get_or_insert_with(|| began.elapsed());
    }
    (first.unwrap_or_default(), began.elapsed())
}
