//! kube, the client of Kubernetes in Rust, as a client of the face for hosts: its calls, watcher, reflector, and applies.
//!
//! The environment holds the address and the certificate of a running gateway with a simulated rack. Tests of one
//! gateway run at the same time, so each has a namespace of its own.

mod gateway;

use futures_util::StreamExt;
use kube::{
    Api, ResourceExt,
    api::{
        DeleteParams, DynamicObject, GroupVersionKind, ListParams, ObjectList, Patch, PatchParams, PostParams,
    },
    core::PartialObjectMeta,
    discovery::{self, Discovery, Scope},
    runtime::{
        WatchStreamExt, reflector,
        reflector::{ObjectRef, store::Writer},
        wait::{await_condition, conditions},
        watcher,
    },
};
use serde_json::{Value, json};

use crate::gateway::{LIMIT, Namespace, client, code, host, resource};

#[tokio::test]
async fn discovery_finds_hosts() {
    let client = client();
    let gvk = GroupVersionKind::gvk("metal3.io", "v1alpha1", "BareMetalHost");
    let (pinned, capabilities) = discovery::pinned_kind(&client, &gvk).await.unwrap();
    assert_eq!((&*pinned.plural, capabilities.scope), ("baremetalhosts", Scope::Namespaced));
    let all = [
        Discovery::new(client.clone()).run().await.unwrap(),
        Discovery::new(client).run_aggregated().await.unwrap(),
    ];
    for found in all {
        let (resource, capabilities) = found.resolve_gvk(&gvk).unwrap();
        assert_eq!(resource.plural, "baremetalhosts");
        assert_eq!(capabilities.subresources.len(), 1, "{capabilities:?}");
    }
}

#[tokio::test]
async fn a_host_is_led_through_its_life() {
    let namespace = Namespace::create("with-kube-life").await;
    let hosts = namespace.hosts();
    let created = hosts.create(&PostParams::default(), &host("node", 211)).await.unwrap();
    wait(&hosts, "available").await;
    let image = json!({ "url": "http://images/os.qcow2", "checksum": "ab12", "checksumType": "sha256" });
    let wish = json!({ "spec": { "image": image } });
    hosts.patch("node", &PatchParams::default(), &Patch::Merge(wish)).await.unwrap();
    wait(&hosts, "provisioned").await;
    let refused = hosts.patch("node", &PatchParams::default(), &Patch::Strategic(json!({}))).await;
    assert_eq!(code(refused), 415);
    let refused = hosts.replace("node", &PostParams::default(), &created).await;
    assert_eq!(code(refused), 409);
    let uid = created.uid().unwrap();
    let answer = hosts.delete("node", &DeleteParams::background()).await.unwrap();
    assert!(answer.is_left(), "a host stays until its BMC is left alone");
    let gone = await_condition(hosts.clone(), "node", conditions::is_deleted(&uid));
    tokio::time::timeout(LIMIT, gone).await.unwrap().unwrap();
    assert!(hosts.get_opt("node").await.unwrap().is_none());
    namespace.delete().await;
}

async fn wait(hosts: &Api<DynamicObject>, wanted: &str) {
    let is_reached = |host: Option<&DynamicObject>| host.is_some_and(|host| state(host) == Some(wanted));
    let reached = await_condition(hosts.clone(), "node", is_reached);
    tokio::time::timeout(LIMIT, reached).await.unwrap_or_else(|_| panic!("never {wanted}")).unwrap();
}

fn state(host: &DynamicObject) -> Option<&str> {
    host.data["status"]["provisioning"]["state"].as_str()
}

#[tokio::test]
async fn reflectors_follow_lists_and_streamed_lists() {
    let namespace = Namespace::create("with-kube-reflector").await;
    let hosts = namespace.hosts();
    hosts.create(&PostParams::default(), &host("node", 212)).await.unwrap();
    let configs = [watcher::Config::default().page_size(1), watcher::Config::default().streaming_lists()];
    for config in configs {
        let writer = Writer::new(resource());
        let store = writer.as_reader();
        // The end of a list shows what is in it, and touches nothing.
        let mut events = std::pin::pin!(reflector(writer, watcher(hosts.clone(), config)).default_backoff());
        let is_available = async {
            while let Some(event) = events.next().await {
                event.unwrap();
                let place = ObjectRef::new_with("node", resource()).within(&namespace.name);
                if store.get(&place).is_some_and(|host| state(&host) == Some("available")) {
                    return;
                }
            }
        };
        tokio::time::timeout(LIMIT, is_available).await.unwrap();
    }
    hosts.delete("node", &DeleteParams::default()).await.unwrap();
    namespace.delete().await;
}

#[tokio::test]
async fn watches_of_versions_that_are_too_old_are_ended() {
    let namespace = Namespace::create("with-kube-watch").await;
    let refused = namespace.hosts().watch(&Default::default(), "1").await.unwrap();
    let first = tokio::time::timeout(LIMIT, std::pin::pin!(refused).next()).await.unwrap();
    let Some(Ok(kube::core::WatchEvent::Error(status))) = first else { panic!("{first:?}") };
    assert_eq!((status.code, &*status.reason), (410, "Expired"));
    namespace.delete().await;
}

#[tokio::test]
async fn applies_of_several_managers_meet() {
    let namespace = Namespace::create("with-kube-apply").await;
    let hosts = namespace.hosts();
    let wish = |spec: Value| {
        Patch::Apply(json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "spec": spec }))
    };
    let (one, other) = (PatchParams::apply("one"), PatchParams::apply("other"));
    let applied = hosts.patch("node", &one, &wish(json!({ "online": true }))).await.unwrap();
    assert_eq!(applied.managed_fields().len(), 1);
    let off = wish(json!({ "online": false, "description": "other" }));
    assert_eq!(code(hosts.patch("node", &other, &off).await), 409);
    let applied = hosts.patch("node", &other.clone().force(), &off).await.unwrap();
    assert_eq!(applied.data["spec"]["online"], false);
    let applied = hosts.patch("node", &other, &wish(json!({ "online": false }))).await.unwrap();
    assert_eq!(applied.data["spec"]["description"], Value::Null, "nobody else wished it");
    hosts.delete("node", &DeleteParams::default()).await.unwrap();
    namespace.delete().await;
}

#[tokio::test]
async fn lists_come_in_pages_and_as_metadata() {
    let namespace = Namespace::create("with-kube-list").await;
    let hosts = namespace.hosts();
    for name in ["a", "b", "c"] {
        let mut host = DynamicObject::new(name, &resource());
        host.data = json!({ "spec": { "online": false } });
        hosts.create(&PostParams::default(), &host).await.unwrap();
    }
    let first = hosts.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(names(&first), ["a", "b"]);
    let token = first.metadata.continue_.unwrap();
    let second = hosts.list(&ListParams::default().limit(2).continue_token(&token)).await.unwrap();
    assert_eq!(names(&second), ["c"]);
    let metadata: ObjectList<PartialObjectMeta<DynamicObject>> =
        hosts.list_metadata(&ListParams::default().fields("metadata.name!=a")).await.unwrap();
    assert_eq!(metadata.items.len(), 2);
    hosts.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    namespace.delete().await;
}

fn names(list: &ObjectList<DynamicObject>) -> Vec<String> {
    list.items.iter().map(ResourceExt::name_any).collect()
}
