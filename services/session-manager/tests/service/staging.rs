//! Sessions that stage states, and the effect of applying them.

use chassis::{
    Fault,
    settings::{Settings, TenantsDriver},
};
use proto::{
    option::Options,
    session::{
        ApplyStagedRequest, ApplyStagedResponse, CreateSessionRequest, DeleteSessionRequest, Operation,
        Progress,
    },
};

use crate::{
    site::{Site, peer},
    world::{World, asked, template, wish},
};

impl World {
    /// Stages a session of `tenant` on `nodes` and returns its id.
    async fn staged(&self, tenant: &str, name: &str, nodes: &[&str]) -> String {
        self.put_template(template(tenant, name, nodes)).await.unwrap();
        let wish = CreateSessionRequest {
            stage: true,
            tenant: tenant.to_owned(),
            ..wish(Operation::Shutdown, name, name)
        };
        let id = self.create(wish).await.unwrap().id;
        self.session_when(name, |session| session.id == id && session.progress() == Progress::Running).await;
        id
    }

    /// Makes applied states go from their stages.
    async fn clear_stages(&self) {
        self.registry.set_options(Options { clear_stage: Some(true), ..Options::default() }).await;
    }

    async fn apply(&self, tenant: &str, ids: &[&str]) -> Result<ApplyStagedResponse, Fault> {
        let component_ids = ids.iter().map(|&id| id.to_owned()).collect();
        let request = ApplyStagedRequest { tenant: tenant.to_owned(), component_ids };
        asked(self.sessions.clone().apply_staged(request)).await
    }
}

fn lists(answer: &ApplyStagedResponse) -> [String; 3] {
    [&answer.succeeded_ids, &answer.failed_ids, &answer.ignored_ids].map(|ids| ids.join(" "))
}

#[tokio::test]
async fn a_session_completes_once_its_staged_states_have_settled() {
    let world = World::start().await;
    world.clear_stages().await;
    world.staged("", "s", &["n1", "n2"]).await;
    let answer = world.apply("", &["n2", "n5", "strange", "n2"]).await.unwrap();
    assert_eq!(lists(&answer), ["n2", "", "n5 strange n2"]);
    let status = world.status("s").await;
    assert_eq!((status.managed_components_count, status.percent_staged), (2, 50.0));
    world.registry.settle(["n2"]).await;
    world.apply("", &["n1"]).await.unwrap();
    assert_eq!(world.status("s").await.percent_staged, 0.0);
    assert_eq!(world.running("s").await.components, ["n1", "n2"]);
    world.registry.settle(["n1"]).await;
    world.complete("s").await;
}

#[tokio::test]
async fn the_registry_receives_the_sessions_that_it_requests() {
    let world = World::start().await;
    world.clear_stages().await;
    world.staged("", "first", &["n1", "n2"]).await;
    world.staged("", "second", &["n3"]).await;
    world.staged("a", "first", &["n4"]).await;
    let deleted = DeleteSessionRequest { name: "second".to_owned(), tenant: String::new() };
    asked(world.sessions.clone().delete_session(deleted)).await.unwrap();
    let answer = world.apply("", &["n3", "n2", "n4", "n1"]).await.unwrap();
    assert_eq!(lists(&answer), ["n2 n1", "n3 n4", ""]);
    let applications = world.registry.proxy.requests::<proto::component::ApplyStagedRequest>("ApplyStaged");
    let asked: Vec<_> = applications.iter().map(|call| call.sessions.len()).collect();
    assert_eq!(asked, [0, 3], "however many components there are");
    let none = world.apply("", &[]).await.unwrap();
    assert_eq!(lists(&none), ["", "", ""]);
}

#[tokio::test]
async fn namesakes_of_different_tenants_complete_apart() {
    let world = World::start().await;
    let own = world.staged("", "s", &["n1"]).await;
    let of_a = world.staged("a", "s", &["n2"]).await;
    assert_eq!(world.status("s").await.managed_components_count, 1);
    assert_eq!(lists(&world.apply("", &["n2"]).await.unwrap()), ["", "n2", ""]);
    world.clear_stages().await;
    assert_eq!(lists(&world.apply("", &["n1"]).await.unwrap()), ["n1", "", ""]);
    world.registry.settle(["n1"]).await;
    let complete = world.session_when("s", |session| session.progress() == Progress::Complete).await;
    assert_eq!(complete.id, own);
    assert_eq!(lists(&world.apply("a", &["n2", "n1"]).await.unwrap()), ["n2", "", "n1"]);
    world.registry.settle(["n2"]).await;
    world.session_when("s", |one| one.id == of_a && one.progress() == Progress::Complete).await;
}

#[tokio::test]
async fn tenants_apply_to_their_own_nodes() {
    let site = Site::start().await;
    let url = format!("{}/v1alpha3", site.url);
    let world = World::start_with(|settings: &mut Settings| {
        settings.tenants.driver = TenantsDriver::Tapms;
        settings.tenants.tapms = peer(&url, settings.tenants.tapms.clone());
    })
    .await;
    let resources = r#"{"status": {"tenantresources": [{"xnames": ["n1", "n2"]}]}}"#;
    site.says("/v1alpha3/tenants/a", 200, resources);
    world.staged("a", "s", &["n1", "n2"]).await;
    let answer = world.apply("a", &["n7", "n2", "strange", "n1", "n7"]).await.unwrap();
    assert_eq!(lists(&answer), ["n2 n1", "", "n7 strange n7"]);
    site.says("/v1alpha3/tenants/stranger", 404, r#"{"message": "Tenant stranger not found"}"#);
    site.says("/v1alpha3/tenants", 200, "[]");
    assert_eq!(world.apply("stranger", &[]).await.unwrap_err(), Fault::not_found("tenant", "stranger"));
    site.says("/v1alpha3/tenants/silent", 500, "{}");
    let silent = world.apply("silent", &["n1"]).await.unwrap_err();
    assert!(matches!(silent, Fault::Unavailable { .. }), "{silent:?}");
    let many = vec!["n1"; 32_769];
    assert_eq!(
        world.apply("", &many).await.unwrap_err().to_string(),
        "component_ids: has 32769 items but may have at most 32768"
    );
}

#[tokio::test]
async fn a_kept_stage_holds_its_session_by_default() {
    for complete_applied in [false, true] {
        let world = World::start_with(|settings| settings.sessions.complete_applied = complete_applied).await;
        world.staged("", "s", &["n1"]).await;
        world.apply("", &["n1"]).await.unwrap();
        world.registry.settle(["n1"]).await;
        if complete_applied {
            world.complete("s").await;
        } else {
            let revision = world.running("s").await.revision;
            // The completion of another session shows that no work is left for this one.
            world.staged("", "other", &["n2"]).await;
            world.registry.unstage("n2").await;
            world.complete("other").await;
            assert_eq!(world.running("s").await.revision, revision);
        }
    }
}
