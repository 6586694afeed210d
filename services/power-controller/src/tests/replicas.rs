//! Two replicas on one database.

use chassis::lease::Shard;
use sea_orm::{ConnectionTrait, Database};

use super::*;

/// Who is alone has everything; of two the second gets the upper half of the shards.
const HALF: u8 = 32;

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_is_ended_by_who_has_the_transition_and_not_by_who_has_the_node() {
    let Some(database) = test_databases::on_postgres().await else { return };
    let mut mesh = Mesh::new(Options::default()).await;
    mesh.settings.power_controller.database_url = database;
    mesh.start().await;
    // The transition goes with its first member, and the other one stays.
    let mut ids = (100..200).map(|number| format!("x{number}"));
    let goes = ids.find(|id| Shard::of(id).number() >= HALF).unwrap();
    let stays = ids.find(|id| Shard::of(id).number() < HALF).unwrap();
    mesh.power_off(&[&goes, &stays]);
    assert_eq!(mesh.until_taken(1).await, [format!("Soft-Off {goes} {stays}")]);
    mesh.until_delivery(Delivery::Accepted).await;

    let other_way = FakePcs::start().await;
    other_way.add_transition(mesh.pcs.newest_transition());
    let mut settings = mesh.settings.clone();
    settings.power.pcs.url.clone_from(&other_way.url);
    let (second, _) = run(settings).await;
    let called = |call: &'static str| {
        let other_way = &other_way;
        async move { until(call, || async { (other_way.count(call) > 0).then_some(()) }).await }
    };
    called("GET /transitions/t-1").await;
    // A shutdown that nobody knows the beginning of has had its time.
    mesh.registry.change(&stays, |node| node.last_action.as_mut().unwrap().last_updated = None);
    called("DELETE /transitions/t-1").await;
    assert_eq!(mesh.pcs.count("DELETE"), 0, "it is another replica's");
    second.tasks.shutdown().cancel();
}

/// As a stand-in that took over without the last commits.
const LOSE_TRANSITIONS: [&str; 2] =
    ["DELETE FROM transitions", "UPDATE revisions SET revision = 0 WHERE kind = 'transition'"];

#[tokio::test(flavor = "multi_thread")]
async fn a_transition_that_the_database_loses_is_seen_through_and_not_asked_for_again() {
    let Some(url) = test_databases::on_postgres().await else { return };
    let mut mesh = Mesh::new(Options::default()).await;
    mesh.settings.power_controller.database_url.clone_from(&url);
    mesh.start().await;
    mesh.power_off(&["x1"]);
    assert_eq!(mesh.until_taken(1).await, ["Soft-Off x1"]);
    let accepted = mesh.until_delivery(Delivery::Accepted).await;

    let database = Database::connect(&url).await.unwrap();
    database.execute_unprepared(&format!("BEGIN; {}; COMMIT", LOSE_TRANSITIONS.join("; "))).await.unwrap();
    let restored = || async { mesh.transitions().await.pop().filter(|one| one.revision > accepted.revision) };
    let restored = until("a transition that is on record again", restored).await;
    assert_eq!((restored.upstream_id.as_str(), restored.delivery()), ("t-1", Delivery::Accepted));

    mesh.pcs.set_tasks(&["x1"], "succeeded", "Transition confirmed, gracefulshutdown", "");
    mesh.pcs.set_status("completed");
    mesh.until_delivery(Delivery::Finished).await;
    mesh.until_read("x1", PowerReading::Off).await;
    assert_eq!(mesh.pcs.taken().len(), 1);
    mesh.registry.change("x1", wants_power_on);
    assert_eq!(mesh.until_taken(2).await[1], "On x1", "nothing is in its way");
}
