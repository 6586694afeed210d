//! Sessions of tenants.

use chassis::settings::{Settings, TenantsDriver};
use expect_test::expect;
use proto::session::{CreateSessionRequest, Operation, Session};

use crate::{
    site::{Answer, Site, peer},
    world::{World, template, wish},
};

/// A world whose tenants are known to the site.
async fn world() -> (World, Site) {
    let site = Site::start().await;
    let url = format!("{}/v1alpha3", site.url);
    let change = |settings: &mut Settings| {
        settings.tenants.driver = TenantsDriver::Tapms;
        settings.tenants.tapms = peer(&url, settings.tenants.tapms.clone());
    };
    (World::start_with(change).await, site)
}

fn owned(tenant: &str, name: &str, template_name: &str) -> CreateSessionRequest {
    CreateSessionRequest { tenant: tenant.to_owned(), ..wish(Operation::Shutdown, name, template_name) }
}

impl World {
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
        ("stranger", "stranger", &["n1"]),
        ("..", "dots", &["n1"]),
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
        stranger:  tenant 'stranger' does not exist
        dots:  tenant '..' does not exist
    "#]].assert_eq(&rows);
    let mut asked = site.calls();
    asked.dedup();
    let tenants = ["a%20b%2F%C3%A4", "bare", "stranger"].map(|name| format!("/v1alpha3/tenants/{name}"));
    assert_eq!(asked, tenants);
}

#[tokio::test]
async fn a_tenants_session_waits_for_a_service_that_does_not_know_now() {
    let (world, site) = world().await;
    let tenant = "/v1alpha3/tenants/a";
    site.says(tenant, 500, r#"{"message": "etcd is gone"}"#);
    world.put_template(template("a", "t", &["n1"])).await.unwrap();
    world.create(owned("a", "s", "t")).await.unwrap();
    let waiting = world.waiting("s").await.waiting_for;
    assert!(waiting.starts_with("tenant service: TAPMS at 127.0.0.1:"), "{waiting}");
    assert!(waiting.contains("Z: 500 Internal Server Error: etcd is gone) (waiting since "), "{waiting}");
    // A tenant that was given no nodes yet, or something else altogether.
    for odd in ["{}", "[]", "<html>"] {
        let calls = site.calls().len();
        site.says(tenant, 200, odd);
        site.called(calls + 2).await;
        assert!(world.session_when("s", |_| true).await.components.is_empty());
    }
    site.says(tenant, 200, r#"{"status": {"tenantresources": [{"xnames": ["n1"]}]}}"#);
    assert_eq!(world.running("s").await.components, ["n1"]);
}

#[tokio::test]
async fn a_silent_tenant_service_holds_up_its_tenants_only() {
    let (world, site) = world().await;
    site.answers("/v1alpha3/tenants/a", Answer::Hangs);
    world.put_template(template("a", "t", &["n1"])).await.unwrap();
    world.template("t", &["n2"]).await;
    for n in 0..10 {
        world.create(owned("a", &format!("s{n}"), "t")).await.unwrap();
    }
    site.called(1).await;
    world.create(owned("", "another", "t")).await.unwrap();
    world.running("another").await;
    assert_eq!(site.calls().len(), 1, "one question was asked more than once");
}
