//! Fleets and template versions over gRPC.

use std::pin::pin;

use futures_util::TryStreamExt as _;
use proto::fleet::{
    DeleteFleetRequest, Fleet, GetFleetRequest, GetTemplateVersionRequest, ListFleetsRequest,
    ReplaceFleetRequest, WatchFleetsRequest,
};
use tonic::Code;

use super::world::{World, spec};

const FIRST: &str = r#"{"applications":[]}"#;
const SECOND: &str = r#"{"applications":[{"name":"till"}]}"#;

async fn listed(world: &World, request: ListFleetsRequest) -> Vec<String> {
    let pages = world.fleets().list_fleets(request).await.unwrap().into_inner();
    let pages: Vec<_> = pages.try_collect().await.unwrap();
    pages.into_iter().flat_map(|page| page.fleets).map(|fleet| fleet.name).collect()
}

async fn delete(world: &World, name: &str) {
    world.fleets().delete_fleet(DeleteFleetRequest { name: name.to_owned() }).await.unwrap();
}

fn versions(fleet: &Fleet) -> (u64, &str) {
    (fleet.generation, &fleet.template_version)
}

#[tokio::test(flavor = "multi_thread")]
async fn another_template_is_another_version() {
    for database in test_databases::every_kind().await {
        let mut world = World::start(database).await;
        let first = world.create_fleet("kiosk", &[("x", "1")], FIRST).await;
        assert_eq!(versions(&first), (1, "v1"));
        assert_eq!(versions(&world.replace_fleet("kiosk", &[("x", "2")], FIRST).await), (2, "v1"));
        assert_eq!(versions(&world.replace_fleet("kiosk", &[("x", "2")], SECOND).await), (3, "v3"));
        let same = world.replace_fleet("kiosk", &[("x", "2")], SECOND).await;
        assert_eq!(versions(&same), (3, "v3"));
        world.restart(async |_| {}).await;
        let stored: Vec<_> = world.versions("kiosk").await;
        let stored = stored.iter().map(|one| (&*one.name, &*one.template.as_ref().unwrap().document_json));
        assert_eq!(stored.collect::<Vec<_>>(), [("v1", FIRST), ("v3", SECOND)]);
        let wanted = GetTemplateVersionRequest { fleet: "kiosk".to_owned(), name: "v2".to_owned() };
        assert_eq!(world.fleets().get_template_version(wanted).await.unwrap_err().code(), Code::NotFound);
        assert_eq!(
            world.fleet_story("kiosk").await,
            ["ResourceCreated", "ResourceUpdated", "ResourceUpdated"]
        );
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_fleet_leaves_no_version_behind() {
    for database in test_databases::every_kind().await {
        let world = World::start(database).await;
        world.create_fleet("kiosk", &[("x", "1")], FIRST).await;
        world.replace_fleet("kiosk", &[("x", "1")], SECOND).await;
        delete(&world, "kiosk").await;
        delete(&world, "kiosk").await;
        let gone = GetFleetRequest { name: "kiosk".to_owned() };
        assert_eq!(world.fleets().get_fleet(gone).await.unwrap_err().code(), Code::NotFound);
        world.create_fleet("kiosk", &[("x", "1")], SECOND).await;
        let stored = world.versions("kiosk").await;
        assert_eq!(stored.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["v1"]);
        assert_eq!(stored[0].template.as_ref().unwrap().document_json, SECOND);
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fleets_are_selected_and_watched() {
    for database in test_databases::every_kind().await {
        let world = World::start(database).await;
        for name in ["c", "a", "b"] {
            world.create_fleet(name, &[("x", name)], FIRST).await;
        }
        let all = || ListFleetsRequest::default();
        assert_eq!(listed(&world, all()).await, ["a", "b", "c"]);
        assert_eq!(
            listed(&world, ListFleetsRequest { page_size: 1, start_after: "a".to_owned(), ..all() }).await,
            ["b"]
        );
        let named = ListFleetsRequest { field_selector: "metadata.name in (a,c)".to_owned(), ..all() };
        assert_eq!(listed(&world, named).await, ["a", "c"]);
        let labelled = ListFleetsRequest { label_selector: "site".to_owned(), ..all() };
        assert!(listed(&world, labelled).await.is_empty());
        let watch = world.fleets().watch_fleets(WatchFleetsRequest { resume_revision: 0 }).await.unwrap();
        let first = pin!(watch.into_inner()).try_next().await.unwrap().unwrap();
        assert_eq!((first.fleets.len(), first.synced), (3, true));
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_break_a_rule_are_refused() {
    let database = test_databases::every_kind().await.swap_remove(0);
    let world = World::start(database).await;
    let fleet = world.create_fleet("kiosk", &[("x", "1")], FIRST).await;
    let replace = |name: &str, expected_revision, document: &str| ReplaceFleetRequest {
        name: name.to_owned(),
        spec: Some(spec(&[("x", "1")], document)),
        expected_revision,
        ..ReplaceFleetRequest::default()
    };
    for (request, code) in [
        (replace("other", 0, FIRST), Code::NotFound),
        (replace("kiosk", fleet.revision + 1, FIRST), Code::Aborted),
        (replace("kiosk", 0, "[]"), Code::InvalidArgument),
        (replace("kiosk", 0, r#"{"decommissioning":{}}"#), Code::InvalidArgument),
    ] {
        assert_eq!(world.fleets().replace_fleet(request).await.unwrap_err().code(), code);
    }
    world.stop().await;
}
