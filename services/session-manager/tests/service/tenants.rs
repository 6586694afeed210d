//! Sessions of tenants.

use std::{collections::BTreeSet, future::Future};

use chassis::{
    Fault,
    settings::{Settings, TenantsDriver},
};
use expect_test::expect;
use proto::{
    component::Phase,
    option::Options,
    session::{
        ApplyStagedRequest, CreateSessionRequest, DeleteSessionsRequest, Operation, Progress, Session,
        SessionFilter,
    },
    tenant::{GetTenantRequest, GetTenantResponse},
};

use crate::{
    site::{Answer, Site, peer},
    world::{World, asked, once, template, wish},
};

/// Returns a world whose tenants are known to the site.
async fn world() -> (World, Site) {
    let site = Site::start().await;
    let url = format!("{}/v1alpha3", site.url);
    let change = |settings: &mut Settings| {
        settings.tenants.driver = TenantsDriver::Tapms;
        settings.tenants.tapms = peer(&url, settings.tenants.tapms.clone());
    };
    let world = World::start_with(change).await;
    site.called(1).await;
    assert_eq!(site.calls(), [LIST], "the service is asked at the start");
    site.forget_calls();
    (world, site)
}

fn owned(tenant: &str, name: &str, template_name: &str) -> CreateSessionRequest {
    CreateSessionRequest { tenant: tenant.to_owned(), ..wish(Operation::Shutdown, name, template_name) }
}

/// Sets the nodes of the tenant `a`.
fn has(site: &Site, nodes: &[&str]) {
    let resource = serde_json::json!({"xnames": nodes});
    let told = serde_json::json!({"status": {"tenantresources": [resource]}});
    site.says(A, 200, &told.to_string());
}

const A: &str = "/v1alpha3/tenants/a";

/// Denial of a tenant in the words of the tenant service.
const DENIAL: &str = r#""Tenant with name/uuid 'x' not found.""#;

/// Path of the list of tenants.
const LIST: &str = "/v1alpha3/tenants";

impl World {
    async fn tenant(&self, name: &str, among: &[&str]) -> Result<GetTenantResponse, Fault> {
        let among = among.iter().map(|&id| id.to_owned()).collect();
        asked(self.tenants.clone().get_tenant(GetTenantRequest { name: name.to_owned(), among })).await
    }

    /// Waits until the tenant `a` has the `wanted` nodes; its former nodes count a while longer.
    async fn a_has(&self, wanted: &[&str]) {
        once(async || self.tenant("a", &[]).await.unwrap().nodes.unwrap().ids, |ids| ids == wanted).await;
    }

    /// The end of setting up a session of `tenant` with a boot set that has `nodes` and the group `blue`.
    async fn set_up(&self, tenant: &str, name: &str, nodes: &[&str]) -> Session {
        let mut template = template(tenant, name, nodes);
        let blue = proto::template::StringList { values: vec!["blue".to_owned()] };
        template.boot_sets.values_mut().for_each(|set| set.node_groups = Some(blue.clone()));
        self.put_template(template).await.unwrap();
        self.create(owned(tenant, name, name)).await.unwrap();
        self.session_when(name, |session| session.end_time.is_some() || !session.components.is_empty()).await
    }
}

#[tokio::test]
async fn a_tenants_session_takes_the_tenants_nodes() {
    let (world, site) = world().await;
    let resources = r#"{"status": {"uuid": "u", "tenantresources": [
        {"type": "compute", "xnames": ["n1", "n2"]}, {"type": "application", "xnames": ["n4"]}, {"xnames": null}]}}"#;
    site.says("/v1alpha3/tenants/a%20b%2F%C3%A4", 200, resources);
    site.says("/v1alpha3/tenants/bare", 200, r#"{"status": {"tenantresources": null}}"#);
    let mut rows = String::new();
    for (tenant, name, nodes) in [
        ("a b/ä", "own", &["n2"][..]),
        ("a b/ä", "any-resource", &["n4"]),
        ("a b/ä", "foreign", &["n2", "n3", "n9"]),
        ("bare", "bare", &["n1"]),
        ("", "nobody", &["n3"]),
    ] {
        let session = world.set_up(tenant, name, nodes).await;
        rows += &format!("{name}: {} {}\n", session.components.join(","), session.error.unwrap_or_default());
    }
    expect![[r#"
        own: n1,n2 
        any-resource: n1,n4 
        foreign:  The session template includes nodes which do not exist or are not available to this tenant: n3,n9
        bare:  The session template includes nodes which do not exist or are not available to this tenant: n1
        nobody: n0,n1,n3 
    "#]].assert_eq(&rows);
    let mut asked = site.calls();
    asked.dedup();
    let tenants = ["a%20b%2F%C3%A4", "bare"].map(|name| format!("/v1alpha3/tenants/{name}"));
    assert_eq!(asked, tenants);
}

#[tokio::test]
async fn a_session_waits_for_its_tenant_service() {
    let (world, site) = world().await;
    has(&site, &["n1"]);
    world.put_template(template("a", "t", &["n1"])).await.unwrap();
    world.fleet.inventory_answers(false);
    world.create(owned("a", "s", "t")).await.unwrap();
    site.says(A, 500, r#"{"message": "etcd is gone"}"#);
    let waits = |session: &Session| session.waiting_for.starts_with("tenant service: ");
    let waiting = world.session_when("s", waits).await.waiting_for;
    assert!(waiting.starts_with("tenant service: TAPMS at 127.0.0.1:"), "{waiting}");
    assert!(waiting.contains("Z: 500 Internal Server Error: etcd is gone) (waiting since "), "{waiting}");
    world.fleet.inventory_answers(true);
    // A tenant without nodes yet, or another document altogether.
    for odd in ["{}", "<html>"] {
        let calls = site.calls().len();
        site.says(A, 200, odd);
        site.called(calls + 1).await;
        assert!(world.session_when("s", |_| true).await.components.is_empty());
    }
    has(&site, &["n1"]);
    assert_eq!(world.running("s").await.components, ["n1"]);
}

#[tokio::test]
async fn a_session_of_a_deleted_tenant_fails() {
    let (world, site) = world().await;
    has(&site, &["n1"]);
    world.put_template(template("a", "t", &["n1"])).await.unwrap();
    world.fleet.inventory_answers(false);
    world.create(owned("a", "s", "t")).await.unwrap();
    site.says(A, 404, DENIAL);
    site.says(LIST, 200, "[]");
    let session = world.complete("s").await;
    assert_eq!(session.error.as_deref(), Some("tenant 'a' does not exist"));
}

#[tokio::test]
async fn a_silent_tenant_service_delays_its_tenants_only() {
    let (world, site) = world().await;
    has(&site, &["n1"]);
    world.put_template(template("a", "t", &["n1"])).await.unwrap();
    world.template("t", &["n2"]).await;
    world.fleet.inventory_answers(false);
    for n in 0..10 {
        world.create(owned("a", &format!("s{n}"), "t")).await.unwrap();
    }
    site.answers(A, Answer::Hangs);
    let called = site.calls().len();
    site.called(called + 1).await;
    world.fleet.inventory_answers(true);
    world.create(owned("", "another", "t")).await.unwrap();
    world.running("another").await;
    assert_eq!(site.calls().len(), called + 1, "one question was asked more than once");
}

#[tokio::test]
async fn tenants_are_served_to_other_services() {
    let (world, site) = world().await;
    has(&site, &["n2", "n1", "n3"]);
    site.says("/v1alpha3/tenants/bare", 200, r#"{"status": {}}"#);
    site.says("/v1alpha3/tenants/stranger", 404, DENIAL);
    site.says(LIST, 200, "[]");
    let mut rows = String::new();
    for (name, among) in [
        ("", &[][..]),
        ("", &["n1"]),
        ("a", &[]),
        ("a", &["n9", "n3", "n1", "n3"]),
        ("a", &["n9"]),
        ("bare", &[]),
        ("bare", &["n1"]),
        ("stranger", &[]),
        ("..", &[]),
    ] {
        let told =
            world.tenant(name, among).await.map(|tenant| tenant.nodes.map(|nodes| nodes.ids.join(",")));
        rows += &format!("{name:?} among {among:?}: {told:?}\n");
    }
    expect![[r#"
        "" among []: Ok(None)
        "" among ["n1"]: Ok(None)
        "a" among []: Ok(Some("n1,n2,n3"))
        "a" among ["n9", "n3", "n1", "n3"]: Ok(Some("n1,n3"))
        "a" among ["n9"]: Ok(Some(""))
        "bare" among []: Ok(Some(""))
        "bare" among ["n1"]: Ok(Some(""))
        "stranger" among []: Err(NotFound { kind: "tenant", name: "stranger" })
        ".." among []: Err(NotFound { kind: "tenant", name: ".." })
    "#]]
    .assert_eq(&rows);
    let odd = world.tenant(&"x".repeat(128), &[]).await;
    assert!(matches!(odd, Err(Fault::Invalid(_))), "{odd:?}");
}

#[tokio::test]
async fn without_a_tenant_service_tenants_have_every_node() {
    let world = World::start().await;
    for among in [&[][..], &["n1"]] {
        assert_eq!(world.tenant("anybody", among).await.unwrap(), GetTenantResponse { nodes: None });
    }
}

#[tokio::test]
async fn concurrent_callers_share_one_call() {
    let (world, site) = world().await;
    has(&site, &["n1"]);
    let many = (0..50).map(|_| world.tenant("a", &[]));
    futures_util::future::join_all(many).await.into_iter().for_each(|told| drop(told.unwrap()));
    assert_eq!(site.calls().len(), 1);
    has(&site, &["n2"]);
    world.a_has(&["n2"]).await;
}

/// The error of a tenant's call while the tenant service fails.
async fn trouble<T: std::fmt::Debug>(call: impl Future<Output = Result<T, Fault>>) -> String {
    match call.await {
        Err(Fault::Unavailable { what, reason }) => format!("{what}: {reason}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_error_names_the_silent_tenant_service() {
    let (world, site) = world().await;
    site.says(A, 500, r#"{"message": "etcd is gone"}"#);
    world.template("t", &["n1"]).await;
    let told = BTreeSet::from([
        trouble(world.tenant("a", &[])).await,
        trouble(world.put_template(template("a", "t", &["n1"]))).await,
        trouble(world.create(owned("a", "s", "t"))).await,
    ]);
    for text in told {
        assert!(text.starts_with("tenant service: TAPMS at 127.0.0.1:"), "{text}");
        assert!(text.ends_with("Z: 500 Internal Server Error: etcd is gone)"), "{text}");
    }
    world.create(owned("", "s", "t")).await.unwrap();
    assert_eq!(world.list(SessionFilter::default()).await, ["/s"]);
}

#[tokio::test]
async fn the_failure_of_one_tenant_concerns_no_other() {
    let (world, site) = world().await;
    for (status, body) in [(500, r#"{"message": "etcd is gone"}"#), (200, "{}")] {
        site.says(A, status, body);
        for n in 0..20 {
            trouble(world.tenant("a", &[])).await;
            let other = format!("b{status}x{n}");
            let told = r#"{"status": {"tenantresources": [{"xnames": ["n2"]}]}}"#;
            site.says(&format!("/v1alpha3/tenants/{other}"), 200, told);
            assert_eq!(world.tenant(&other, &[]).await.unwrap().nodes.unwrap().ids, ["n2"]);
        }
    }
    has(&site, &["n1"]);
    once(async || world.tenant("a", &[]).await.is_ok(), |told| *told).await;
}

#[tokio::test]
async fn nothing_is_stored_for_a_tenant_that_does_not_exist() {
    let (world, site) = world().await;
    site.says("/v1alpha3/tenants/stranger", 404, DENIAL);
    site.says(LIST, 200, "[]");
    world.template("t", &["n1"]).await;
    let unknown = Fault::not_found("tenant", "stranger");
    // The tenant is checked before most errors of the template, and before its existence.
    let mut misnamed = template("stranger", "t", &["n1"]);
    misnamed.boot_sets.values_mut().for_each(|set| set.name = Some("other".to_owned()));
    for template in [template("stranger", "t", &["n1"]), misnamed] {
        assert_eq!(world.put_template(template).await, Err(unknown.clone()));
    }
    for name in ["t", "gone"] {
        assert_eq!(world.create(owned("stranger", "s", name)).await, Err(unknown.clone()));
    }
    assert!(world.list(SessionFilter::default()).await.is_empty());
    assert_eq!(world.status_of("stranger", "s").await, Err(Fault::not_found("session", "s")));
}

#[tokio::test]
async fn a_tenants_status_counts_the_nodes_that_the_tenant_has() {
    let (world, site) = world().await;
    has(&site, &["n1", "n2"]);
    world.put_template(template("a", "t", &["n1", "n2"])).await.unwrap();
    world.create(owned("a", "s", "t")).await.unwrap();
    world.running("s").await;
    for id in ["n1", "n2"] {
        world.report(id, Phase::PoweringOff, &format!("{id} is slow")).await;
    }
    let counts = async |wanted: (u32, usize)| {
        let counted = async || {
            let status = world.status_of("a", "s").await.unwrap();
            (status.managed_components_count, status.error_summary.len())
        };
        once(counted, |counted| *counted == wanted).await;
    };
    counts((2, 2)).await;
    has(&site, &["n2"]);
    counts((1, 1)).await;
    site.says(A, 404, DENIAL);
    site.says(LIST, 200, "[]");
    counts((0, 0)).await;
}

/// A running session of the tenant `a` on `n1` and `n2`, in a world that polls the tenant service every second.
async fn running_session() -> (World, Site) {
    let (world, site) = world().await;
    world.registry.set_options(Options { polling_frequency: Some(1), ..Options::default() }).await;
    has(&site, &["n1", "n2"]);
    world.put_template(template("a", "t", &["n1", "n2"])).await.unwrap();
    world.create(owned("a", "s", "t")).await.unwrap();
    world.running("s").await;
    (world, site)
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn in_doubt(session: &Session) -> bool {
    session.waiting_for.starts_with("tenant membership: ")
}

#[tokio::test]
async fn unconfirmed_absence_neither_ends_nor_begins_a_session() {
    let (world, site) = running_session().await;
    has(&site, &["n1", "n2", "n3"]);
    world.put_template(template("a", "u", &["n3"])).await.unwrap();
    world.a_has(&["n1", "n2", "n3"]).await;
    for (answer, missing) in [(&[][..], &["n1", "n2", "n3"][..]), (&["n1"], &["n2", "n3"])] {
        has(&site, answer);
        let session = world.session_when("s", in_doubt).await;
        assert_eq!(session.progress(), Progress::Running, "{session:?}");
        assert!(
            session.waiting_for.contains("nodes are missing from the tenant's list since"),
            "{session:?}"
        );
        let status = world.status_of("a", "s").await.unwrap();
        assert_eq!(status.managed_components_count, 2);
        assert!(status.members_in_doubt_since.is_some());
        let nodes = world.tenant("a", &[]).await.unwrap().nodes.unwrap();
        assert_eq!((nodes.ids, nodes.in_doubt_ids), (strings(&["n1", "n2", "n3"]), strings(missing)));
        let apply = ApplyStagedRequest { tenant: "a".to_owned(), component_ids: vec!["n2".to_owned()] };
        let applied = asked(world.sessions.clone().apply_staged(apply)).await;
        assert!(matches!(applied, Err(Fault::Unavailable { .. })), "{applied:?}");
        let name = format!("begun-with-{}", answer.len());
        world.create(owned("a", &name, "u")).await.unwrap();
        let begun = world.waiting(&name).await;
        assert!(in_doubt(&begun) && begun.components.is_empty(), "{begun:?}");
        has(&site, &["n1", "n2", "n3"]);
        assert_eq!(world.running(&name).await.components, ["n3"]);
        world.session_when("s", |session| !in_doubt(session)).await;
    }
    let status = world.status_of("a", "s").await.unwrap();
    assert_eq!(status.members_in_doubt_since, None);
}

#[tokio::test]
async fn restarted_manager_expects_the_nodes_of_running_sessions() {
    let (world, site) = running_session().await;
    let world = world.restart(async |_| has(&site, &[])).await;
    let status = world.status_of("a", "s").await.unwrap();
    assert_eq!(status.managed_components_count, 2);
    let session = world.session_when("s", in_doubt).await;
    assert_eq!(session.progress(), Progress::Running, "{session:?}");
}

#[tokio::test]
async fn restarted_manager_confirms_an_answer_without_nodes_of_ended_sessions() {
    let (world, site) = running_session().await;
    world.registry.settle(["n1", "n2"]).await;
    world.complete("s").await;
    let world = world.restart(async |_| has(&site, &["n1"])).await;
    let told = async || world.tenant("a", &[]).await.unwrap().nodes.unwrap();
    once(told, |nodes| nodes.in_doubt_ids == ["n2"]).await;
    assert_eq!(told().await.ids, ["n1", "n2"], "half an answer takes no node away");
    world.put_template(template("a", "u", &["n1"])).await.unwrap();
    world.create(owned("a", "begun", "u")).await.unwrap();
    assert!(in_doubt(&world.waiting("begun").await));
    world.a_has(&["n1"]).await;
    assert_eq!(world.running("begun").await.components, ["n1"]);
}

#[tokio::test]
async fn nodes_that_left_their_tenant_are_released() {
    let (world, site) = running_session().await;
    has(&site, &["n2"]);
    let node = async || {
        world.tenant("a", &[]).await.unwrap();
        world.registry.get("n1").await
    };
    let released = once(node, |one| !one.is_enabled()).await;
    assert_eq!(released.error_text(), "The node has left the tenant whose session was acting on it");
    let session = world.session_when("s", |session| !in_doubt(session)).await;
    assert_eq!(session.progress(), Progress::Running, "{session:?}");
    assert!(world.registry.get("n2").await.is_enabled());
    world.registry.settle(["n2"]).await;
    world.complete("s").await;
}

#[tokio::test]
async fn a_session_ends_while_its_tenant_service_is_silent() {
    let (world, site) = world().await;
    has(&site, &["n1"]);
    world.put_template(template("a", "t", &["n1"])).await.unwrap();
    world.template("t", &["n2"]).await;
    world.create(owned("a", "s", "t")).await.unwrap();
    world.create(owned("", "another", "t")).await.unwrap();
    world.running("s").await;
    world.running("another").await;
    site.says(A, 500, "{}");
    once(async || world.tenant("a", &[]).await.is_err(), |refused| *refused).await;
    world.registry.settle(["n1"]).await;
    world.registry.settle(["n2"]).await;
    world.complete("another").await;
    world.complete("s").await;
    assert_eq!(world.status_of("a", "s").await.unwrap().managed_components_count, 1);
}

/// Waits until the session of the deleted tenant `a` has ended, and checks its nodes.
async fn check_end_of_deleted_tenant(world: &World) {
    let session = world.complete("s").await;
    assert_eq!(session.error.as_deref(), Some("tenant 'a' does not exist"));
    assert_eq!(session.waiting_for, "");
    for id in ["n1", "n2"] {
        let node = world.registry.get(id).await;
        assert_eq!(node.wish.enabled, Some(false), "{id}");
        assert_eq!(node.error_text(), "The node has left the tenant whose session was acting on it", "{id}");
    }
}

#[tokio::test]
async fn deleted_tenant_ends_its_running_session() {
    let (world, site) = running_session().await;
    has(&site, &["n1"]);
    world.session_when("s", in_doubt).await;
    site.says(A, 404, DENIAL);
    site.says(LIST, 200, r#"{"metadata": {}, "items": [{"metadata": {"name": "b"}}]}"#);
    check_end_of_deleted_tenant(&world).await;
}

#[tokio::test]
async fn tenant_deleted_during_a_restart_ends_its_running_session() {
    let (world, site) = running_session().await;
    site.says(LIST, 200, "[]");
    let world = world.restart(async |_| site.says(A, 404, DENIAL)).await;
    check_end_of_deleted_tenant(&world).await;
}

#[tokio::test]
async fn lone_denial_of_a_tenant_ends_no_session() {
    let (world, site) = running_session().await;
    site.says(A, 404, DENIAL);
    let session = world.session_when("s", in_doubt).await;
    assert!(session.waiting_for.contains("says that the tenant does not exist; 2 nodes are missing since"));
    let nodes = world.tenant("a", &[]).await.unwrap().nodes.unwrap();
    assert_eq!((nodes.ids, nodes.in_doubt_ids), (strings(&["n1", "n2"]), strings(&["n1", "n2"])));
    has(&site, &["n1", "n2"]);
    let session = world.session_when("s", |session| !in_doubt(session)).await;
    assert_eq!((session.progress(), session.error), (Progress::Running, None));
    for id in ["n1", "n2"] {
        assert!(world.registry.get(id).await.is_enabled(), "{id}");
    }
}

#[tokio::test]
async fn answers_of_a_proxy_deny_no_tenant() {
    let (world, site) = running_session().await;
    site.says(LIST, 200, "[]");
    for body in ["", "no such thing", "{}", r#"{"kind": "Status", "message": "not found", "code": 404}"#] {
        site.says(A, 404, body);
        site.says("/v1alpha3/tenants/b", 404, body);
        let called = site.calls().len();
        let told = once(async || world.tenant("a", &[]).await, Result::is_err).await.unwrap_err();
        let text = trouble(async { Err::<(), _>(told) }).await;
        assert!(text.ends_with("404 Not Found, which is no statement of TAPMS about the tenant)"), "{text}");
        trouble(world.tenant("b", &[])).await;
        site.called(called + 4).await;
        let session = world.session_when("s", |_| true).await;
        assert_eq!((session.waiting_for.as_str(), session.progress()), ("", Progress::Running), "{body}");
        has(&site, &["n1", "n2"]);
        once(async || world.tenant("a", &[]).await.is_ok(), |told| *told).await;
    }
}

#[tokio::test]
async fn first_denial_is_believed_only_where_the_list_agrees() {
    let (world, site) = world().await;
    let unknown = Fault::not_found("tenant", "a");
    let proxies = [r#"{"message":"no Route matched with those values"}"#, r#"{"detail":"Not Found"}"#];
    for denial in [DENIAL, proxies[0], proxies[1]] {
        site.says(A, 404, denial);
        for (status, list, believed) in [
            (200, "[]", true),
            (404, denial, false),
            (404, "no such thing", false),
            (200, r#"[{"spec": {"tenantname": "a"}}]"#, false),
        ] {
            site.says(LIST, status, list);
            let told = world.tenant("a", &[]).await.unwrap_err();
            assert_eq!(told == unknown, believed, "{denial}, {list}: {told:?}");
            assert!(believed || matches!(told, Fault::Unavailable { .. }), "{told:?}");
        }
    }
}

#[tokio::test]
async fn setup_asks_for_the_nodes_of_its_tenant_anew() {
    let (world, site) = world().await;
    has(&site, &["n1"]);
    world.put_template(template("a", "t", &["n1", "n3"])).await.unwrap();
    assert_eq!(world.tenant("a", &[]).await.unwrap().nodes.unwrap().ids, ["n1"]);
    has(&site, &["n1", "n3"]);
    world.create(owned("a", "s", "t")).await.unwrap();
    let started = |session: &Session| session.end_time.is_some() || !session.components.is_empty();
    let session = world.session_when("s", started).await;
    assert_eq!((session.components, session.error), (strings(&["n1", "n3"]), None));
}

#[tokio::test]
async fn restarted_manager_confirms_the_denial_of_a_tenant_with_sessions() {
    let (world, site) = world().await;
    has(&site, &["n1"]);
    world.put_template(template("a", "t", &["n1"])).await.unwrap();
    world.fleet.inventory_answers(false);
    world.create(owned("a", "s", "t")).await.unwrap();
    world.waiting("s").await;
    site.says(LIST, 200, "[]");
    let world = world.restart(async |_| site.says(A, 404, DENIAL)).await;
    let shown = |session: &Session| session.end_time.is_some() || in_doubt(session);
    let session = world.session_when("s", shown).await;
    let wanted =
        "tenant membership: TAPMS says that tenant 'a' does not exist, and is asked again within ten seconds";
    assert!(session.waiting_for.starts_with(wanted), "{session:?}");
    let session = world.complete("s").await;
    assert_eq!(session.error.as_deref(), Some("tenant 'a' does not exist"));
}

#[tokio::test]
async fn denial_that_the_list_of_tenants_does_not_confirm_ends_no_session() {
    let (world, site) = running_session().await;
    site.says(A, 404, r#"{"message": "no Route matched with those values"}"#);
    let lists_none = |session: &Session| {
        session
            .waiting_for
            .contains("TAPMS says that tenant 'a' does not exist, and its list of tenants cannot be read: ")
    };
    world.session_when("s", lists_none).await;
    site.says(LIST, 200, r#"{"items": [{"spec": {"tenantname": "a"}}]}"#);
    world
        .session_when("s", |session| session.waiting_for.ends_with("tenant 'a' does not exist, and lists it"))
        .await;
    has(&site, &["n1", "n2"]);
    let session = world.session_when("s", |session| session.waiting_for.is_empty()).await;
    assert_eq!((session.progress(), session.error), (Progress::Running, None));
    for id in ["n1", "n2"] {
        assert!(world.registry.get(id).await.is_enabled(), "{id}");
    }
}

#[tokio::test]
async fn answers_about_another_tenant_are_not_believed() {
    let (world, site) = world().await;
    let status = r#""status": {"uuid": "u-1", "tenantresources": [{"xnames": ["n1"]}]}"#;
    let path = |tenant: &str| format!("/v1alpha3/tenants/{tenant}");
    let mut rows = String::new();
    for (tenant, asked, spec) in [
        ("b", "b", r#"{"tenantname": "b"}"#),
        ("u-1", "u%2D1", r#"{"tenantname": "c"}"#),
        ("d", "d", "null"),
        ("e", "e", r#"{"tenantname": ""}"#),
        ("f", "f", "{}"),
        ("g", "g", r#"{"tenantname": "h"}"#),
    ] {
        site.says(&path(asked), 200, &format!(r#"{{"spec": {spec}, {status}}}"#));
        let told = world.tenant(tenant, &[]).await.map(|one| one.nodes.map(|nodes| nodes.ids.join(",")));
        rows += &format!("{tenant}: {told:?}\n");
    }
    expect![[r#"
        b: Ok(Some("n1"))
        u-1: Ok(Some("n1"))
        d: Ok(Some("n1"))
        e: Ok(Some("n1"))
        f: Ok(Some("n1"))
        g: Err(Unavailable { what: "tenant service", reason: "TAPMS was asked about tenant 'g' and answered about 'h'" })
    "#]].assert_eq(&rows);
}

#[tokio::test]
async fn failing_tenant_service_ends_no_session() {
    let (world, site) = running_session().await;
    for (status, body) in [(500, "{}"), (403, "{}"), (200, "{}")] {
        site.says(A, status, body);
        site.called(site.calls().len() + 2).await;
        let session = world.session_when("s", |_| true).await;
        assert_eq!((session.progress(), session.error), (Progress::Running, None), "{status}");
    }
    for id in ["n1", "n2"] {
        assert!(world.registry.get(id).await.is_enabled(), "{id}");
    }
}

#[tokio::test]
async fn a_silent_tenant_service_delays_no_other_completion() {
    let (world, site) = world().await;
    has(&site, &["n1"]);
    world.put_template(template("a", "t", &["n1"])).await.unwrap();
    world.template("t", &["n2"]).await;
    world.create(owned("a", "s", "t")).await.unwrap();
    world.create(owned("", "another", "t")).await.unwrap();
    world.running("s").await;
    world.running("another").await;
    site.answers(A, Answer::Hangs);
    let called = site.calls().len();
    once(
        async || {
            let asking = tokio::time::timeout(std::time::Duration::from_millis(50), world.tenant("a", &[]));
            drop(asking.await);
            site.calls().len()
        },
        |calls| *calls > called,
    )
    .await;
    world.registry.settle(["n1"]).await;
    site.called(called + 2).await;
    world.registry.settle(["n2"]).await;
    world.complete("another").await;
    let waits = world.session_when("s", |_| true).await;
    assert_eq!(waits.progress(), Progress::Running);
}

#[tokio::test]
async fn sessions_of_one_name_are_deleted_by_tenant() {
    let (world, site) = world().await;
    has(&site, &["n1"]);
    site.says("/v1alpha3/tenants/b", 200, r#"{"status": {"tenantresources": [{"xnames": ["n2"]}]}}"#);
    for (tenant, node) in [("", "n3"), ("a", "n1"), ("b", "n2")] {
        world.put_template(template(tenant, "t", &[node])).await.unwrap();
        world.create(owned(tenant, "s", "t")).await.unwrap();
    }
    let complete = async || {
        let filter = SessionFilter { progress: Progress::Complete.into(), ..SessionFilter::default() };
        world.list(filter).await
    };
    once(
        async || {
            let filter = SessionFilter { progress: Progress::Running.into(), ..SessionFilter::default() };
            world.list(filter).await.len()
        },
        |running| *running == 3,
    )
    .await;
    world.registry.settle(["n1"]).await;
    assert_eq!(once(complete, |complete| !complete.is_empty()).await, ["a/s"]);
    let delete = async |filter: SessionFilter| {
        let request = DeleteSessionsRequest { filter: Some(filter) };
        asked(world.sessions.clone().delete_sessions(request)).await.unwrap().deleted
    };
    let done = SessionFilter { progress: Progress::Complete.into(), ..SessionFilter::default() };
    assert_eq!(delete(SessionFilter { tenant: Some("b".to_owned()), ..done.clone() }).await, 0);
    assert_eq!(delete(done).await, 1);
    assert_eq!(world.list(SessionFilter::default()).await, ["/s", "b/s"]);
    assert_eq!(delete(SessionFilter { tenant: Some("b".to_owned()), ..SessionFilter::default() }).await, 1);
    assert_eq!(world.list(SessionFilter::default()).await, ["/s"]);
}
