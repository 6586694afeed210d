//! The contract of a watch, as any client of the mesh meets it.

use std::fmt::Write;

use chassis::{
    kinds::{configuration::ConfigurationStateRecord, power::PowerStateRecord},
    observe::mirror::{AdmittedWatch, MirroredKind},
    plain_channel,
    store::resource::Batch,
};
use domain::boot::component::Component;
use expect_test::expect;
use futures_util::StreamExt;
use integration_tests::{PATIENCE, mesh::Mesh};
use proto::{
    component::{ListComponentsRequest, component_service_client::ComponentServiceClient},
    session::{WatchSessionsRequest, session_service_client::SessionServiceClient},
};
use reqwest::Method;
use serde_json::json;
use tokio::time::timeout;
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// Further ahead than any service of a test gets.
const FUTURE: u64 = 1_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_where_a_list_began() {
    let mesh = Mesh::start(async |_| {}).await;
    let registry = mesh.settings.component_registry.url.as_str();
    let (ids, listed) = list(registry).await;
    let error = |text: &str| json!({"error": text});
    let path = |index: usize| format!("/v2/components/{}", ids[index]);
    mesh.bos.expect(Method::PATCH, &path(0), Some(&error("first"))).await;
    mesh.bos.expect(Method::DELETE, &path(1), None).await;
    mesh.bos.expect(Method::PATCH, &path(2), Some(&error("last"))).await;

    let mut watch = Component::watch(plain_channel(registry).unwrap(), listed.into()).await.unwrap();
    let mut told = format!("missed: {}", shown(&next(&mut watch).await, listed));
    mesh.bos.expect(Method::PATCH, &path(0), Some(&error("again"))).await;
    told += &format!("then:   {}", shown(&next(&mut watch).await, listed));
    mesh.bos.expect(Method::DELETE, &path(2), None).await;
    told += &format!("then:   {}", shown(&next(&mut watch).await, listed));
    mesh.stop().await;
    assert!(watch.batches.next().await.is_none(), "shutdown ends the watch");
    expect![[r#"
        missed: to +3, x1000c0s0b0n0 +1 first, x1000c0s0b1n0 +3 last, x1000c0s0b0n1 +2 is gone, synced
        then:   to +4, x1000c0s0b0n0 +4 again
        then:   to +5, x1000c0s0b1n0 +5 is gone
    "#]]
    .assert_eq(&told);
}

/// The ids of all components in order, and the revision that belongs to them.
async fn list(registry: &str) -> (Vec<String>, u64) {
    let mut client = ComponentServiceClient::new(plain_channel(registry).unwrap());
    let mut pages = client.list_components(ListComponentsRequest::default()).await.unwrap().into_inner();
    let (mut ids, mut revision) = (Vec::new(), 0);
    while let Some(page) = pages.message().await.unwrap() {
        ids.extend(page.components.into_iter().map(|component| component.id));
        revision = page.revision;
    }
    (ids, revision)
}

async fn next<R>(watch: &mut AdmittedWatch<R>) -> Batch<R> {
    let batch = timeout(PATIENCE, watch.batches.next()).await.expect("a batch in time");
    batch.expect("an open watch").expect("a batch")
}

/// A batch with revisions counted from `start`.
fn shown(batch: &Batch<Component>, start: u64) -> String {
    let mut told = format!("to +{}", batch.revision - start);
    for component in &batch.changed {
        let (id, since, error) =
            (&component.id, component.revision - start, component.evaluation.error.as_deref());
        write!(told, ", {id} +{since} {}", error.unwrap_or_default()).unwrap();
    }
    for deletion in &batch.deleted {
        write!(told, ", {} +{} is gone", deletion.key, deletion.revision - start).unwrap();
    }
    told + if batch.synced { ", synced\n" } else { "\n" }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_resumes_its_watch_and_refuses_the_future() {
    let mesh = Mesh::start(async |_| {}).await;
    mesh.bos.template("image-1").await;
    let name = mesh.bos.session("image-1", "boot").await;
    mesh.bos.complete(&name).await;
    let settings = &mesh.settings;
    let told = [
        kind::<Component>(&settings.component_registry.url).await,
        kind::<chassis::kinds::options::OptionsRecord>(&settings.component_registry.url).await,
        kind::<PowerStateRecord>(&settings.power_controller.url).await,
        kind::<ConfigurationStateRecord>(&settings.config_coordinator.url).await,
        sessions(&settings.session_manager.url).await,
    ];
    mesh.stop().await;
    expect![[r#"
        component: 8, reveille RESUME_TOKEN_EXPIRED
        options: 1, reveille RESUME_TOKEN_EXPIRED
        power_state: 8, reveille RESUME_TOKEN_EXPIRED
        configuration_state: 8, reveille RESUME_TOKEN_EXPIRED
        session: 1, reveille RESUME_TOKEN_EXPIRED
    "#]]
    .assert_eq(&told.concat());
}

/// Watches a kind from the start, from where that ended, and from the future.
async fn kind<R: MirroredKind>(url: &str) -> String {
    let watch = async |revision: u64| R::watch(plain_channel(url).unwrap(), revision.into()).await;
    let all = set(&mut watch(0).await.unwrap()).await;
    let reached = all.last().expect("one batch at least").revision;
    let rest = set(&mut watch(reached).await.unwrap()).await;
    let late = rest.iter().flat_map(|batch| &batch.changed).all(|one| one.revision() > reached);
    assert!(late, "{} was delivered again", R::KIND);
    let there = all.iter().map(|batch| batch.changed.len()).sum::<usize>();
    let Err(refused) = watch(reached + FUTURE).await else { panic!("{} comes from the future", R::KIND) };
    format!("{}: {there}, {}", R::KIND, refusal(&refused))
}

/// The batches up to the one that ends the initial set.
async fn set<R>(watch: &mut AdmittedWatch<R>) -> Vec<Batch<R>> {
    let mut batches = Vec::new();
    while !batches.last().is_some_and(|batch: &Batch<R>| batch.synced) {
        batches.push(next(watch).await);
    }
    batches
}

/// Checks sessions, which no part mirrors, as [`kind`] does.
async fn sessions(url: &str) -> String {
    let mut client = SessionServiceClient::new(plain_channel(url).unwrap());
    let mut watch =
        async |resume_revision| client.watch_sessions(WatchSessionsRequest { resume_revision }).await;
    let all = watch(0).await.unwrap().into_inner().message().await.unwrap().unwrap();
    let rest = watch(all.revision).await.unwrap().into_inner().message().await.unwrap().unwrap();
    assert_eq!((all.synced, rest.synced, rest.sessions.len()), (true, true, 0));
    let refused = watch(all.revision + FUTURE).await.unwrap_err();
    format!("session: {}, {}", all.sessions.len(), refusal(&refused))
}

fn refusal(status: &Status) -> String {
    assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    let details = status.get_error_details();
    let info = details.error_info().expect("error info");
    format!("{} {}\n", info.domain, info.reason)
}
