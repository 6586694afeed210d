//! Two replicas on one database.

use sea_orm::{ConnectionTrait, Database};

use super::{crossing::later, *};

#[tokio::test(flavor = "multi_thread")]
async fn standby_follows_what_the_last_holder_began() {
    let Some(database) = test_databases::on_postgres().await else { return };
    let mut mesh = ControllerMesh::new(Options::default()).await;
    mesh.settings.power_controller.database_url = database;
    mesh.start().await;
    mesh.power_off(&["x1", "x2"]).await;
    assert_eq!(mesh.until_taken(1).await, ["Soft-Off x1 x2"]);
    mesh.until_delivery(Delivery::Accepted).await;

    let other_way = FakePcs::start().await;
    other_way.set_power(&["x1", "x2"], "on", LONG_AGO);
    other_way.add_transition(mesh.pcs.newest_transition());
    let mut settings = mesh.settings.clone();
    settings.power.pcs.url.clone_from(&other_way.url);
    let standby = run(settings).await;
    let request = || WatchPowerStatesRequest::default();
    let watched = PowerServiceClient::new(standby.1.clone()).watch_power_states(request()).await;
    assert!(watched.is_ok(), "a standby serves watches: {:?}", watched.err());
    assert_eq!(other_way.count("GET /transitions/t-1"), 0, "the first replica holds the role");
    mesh.stop().await;
    let called = |call: &'static str| {
        let other_way = &other_way;
        async move { until(call, || async { (other_way.count(call) > 0).then_some(()) }).await }
    };
    called("GET /transitions/t-1").await;
    // The shutdown has had its time.
    mesh.registry.set_options(Options { max_power_off_wait_time: Some(1), ..Options::default() }).await;
    called("DELETE /transitions/t-1").await;
    standby.0.tasks.shutdown().cancel();
}

/// Deletes every commit of a `kind`, as a standby does that took over without them.
pub(super) async fn lose(kind: &str, table: &str, url: &str) {
    let sql = format!(
        "BEGIN; DELETE FROM {table}; UPDATE revisions SET revision = 0 WHERE kind = '{kind}'; COMMIT"
    );
    Database::connect(url).await.unwrap().execute_unprepared(&sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transition_that_the_database_loses_is_waited_for_and_not_recorded_again() {
    let Some(url) = test_databases::on_postgres().await else { return };
    let mut mesh = ControllerMesh::new(Options::default()).await;
    mesh.settings.power_controller.database_url.clone_from(&url);
    mesh.start().await;
    mesh.power_off(&["x1"]).await;
    assert_eq!(mesh.until_taken(1).await, ["Soft-Off x1"]);
    mesh.until_delivery(Delivery::Accepted).await;
    mesh.until_read("x1", PowerReading::On).await;
    lose("transition", "transitions", &url).await;
    // A newer generation that would be done with a node that is on.
    mesh.registry.assign(["x1"], &SessionWish::default()).await;
    mesh.registry.report_phase(["x1"], Phase::PoweringOn).await;
    let waits = || async { mesh.state("x1").await.filter(|state| !state.error.is_empty()) };
    let waits = until("the wait for the lost transition", waits).await;
    // The look that knows when the transition began may come later.
    let text = "waiting for transition t-1 of the power upstream to end";
    assert_eq!(waits.reading(), PowerReading::Unspecified);
    assert!(waits.error.starts_with(text), "{}", waits.error);
    mesh.until_called("POST /power-status", 2).await;
    assert_eq!(mesh.state("x1").await.unwrap().reading(), PowerReading::Unspecified, "it is still on");
    assert!(mesh.transitions().await.is_empty(), "nothing is recorded from memory");

    mesh.pcs.set_power(&["x1"], "off", &later());
    mesh.until_called("POST /power-status", 2).await;
    assert_eq!(mesh.state("x1").await.unwrap().reading(), PowerReading::Unspecified, "it has not ended");
    mesh.pcs.set_tasks(&["x1"], "succeeded", "Transition confirmed, gracefulshutdown", "");
    mesh.pcs.set_status("completed");
    mesh.until_read("x1", PowerReading::Off).await;
    assert_eq!(mesh.pcs.count("DELETE"), 0);
    mesh.registry.report_prepared(["x1"]).await;
    assert_eq!(mesh.until_taken(2).await[1], "On x1", "nothing is in its way");
}

#[tokio::test(flavor = "multi_thread")]
async fn power_states_that_the_database_loses_are_read_again_during_a_transition() {
    let Some(url) = test_databases::on_postgres().await else { return };
    let mut mesh = ControllerMesh::new(Options::default()).await;
    mesh.settings.power_controller.database_url.clone_from(&url);
    mesh.start().await;
    mesh.power_off(&["x1"]).await;
    assert_eq!(mesh.until_taken(1).await, ["Soft-Off x1"]);
    mesh.until_delivery(Delivery::Accepted).await;
    let read = mesh.until_read("x1", PowerReading::On).await;

    lose("power_state", "power_states", &url).await;
    let again = || async { mesh.state("x1").await.filter(|state| state.revision > read.revision) };
    let again = until("a power state of after the loss", again).await;
    assert_eq!((again.reading(), again.generation), (PowerReading::On, 2));
    assert_eq!(mesh.pcs.taken().len(), 1);
}
