//! A crash while tables are made leaves a database that the next start can use.

use std::{fs, sync::Arc, time::Duration};

use integration_tests::{
    PATIENCE, eventually, failpoints::Failpoints, postgres::Postgres, processes::Processes,
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

/// Passed after each statement.
const STATEMENT: &str = "database.statement";

/// The parts that keep something.
const OWNERS: [&str; 4] = ["component_registry", "session_manager", "power_controller", "config_coordinator"];

/// A part that starts on an empty database.
struct FirstStart {
    mesh: Processes,
    points: Failpoints,
    part: &'static str,
}

impl FirstStart {
    fn new(part: &'static str, database: Option<String>) -> Self {
        let (mut mesh, points) = (Processes::prepare(), Failpoints::new());
        mesh.set_variable(chassis::process::failpoint::DIRECTORY, points.variable());
        if let Some(url) = database {
            mesh.set(&format!("[{part}]\ndatabase_url = \"{url}\"\n"));
        }
        Self { mesh, points, part }
    }

    /// Starts the part, and again whenever it aborts, until it listens.
    async fn until_it_listens(&mut self) {
        self.mesh.start_part(self.part);
        let Self { mesh, part, .. } = self;
        let until = Instant::now() + PATIENCE;
        while !mesh.log(part).contains("listening") {
            mesh.replace_aborted();
            assert!(Instant::now() < until, "{part} does not listen:\n{}", mesh.log(part));
            sleep(Duration::from_millis(10)).await;
        }
    }

    fn statements(&self) -> u32 {
        self.points.passed().get(STATEMENT).copied().unwrap_or_default()
    }
}

/// Every statement of a first start, in turn, is the last one of a process.
async fn survives(part: &'static str, server: Option<Arc<Postgres>>, step: usize) {
    let database = async |number: u32| match &server {
        Some(server) => Some(server.create(&format!("{part}_{number}")).await),
        None => None,
    };
    let mut whole = FirstStart::new(part, database(0).await);
    whole.until_it_listens().await;
    let statements = whole.statements();
    assert!(statements > 3, "{part} made its tables with {statements} statements");
    for statement in (1..=statements).step_by(step) {
        let mut start = FirstStart::new(part, database(statement).await);
        start.points.arm(STATEMENT, statement);
        start.until_it_listens().await;
        assert!(!start.points.is_armed(STATEMENT) || start.statements() < statement, "statement {statement}");
    }
    eprintln!("{part} survived a crash at one in {step} of {statements} statements");
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_at_any_statement_of_first_start_leaves_database_usable() {
    let mut parts = JoinSet::new();
    for part in OWNERS {
        parts.spawn(survives(part, None, 1));
    }
    parts.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_on_postgresql() {
    let Some(server) = Postgres::start().await else { return };
    let (server, mut parts) = (Arc::new(server), JoinSet::new());
    for part in OWNERS {
        // A start takes longer there, and a server has no statements that it keeps half.
        parts.spawn(survives(part, Some(Arc::clone(&server)), 4));
    }
    parts.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn file_that_is_no_database_is_refused_and_left_alone() {
    let mut start = FirstStart::new("component_registry", None);
    let file = start.mesh.directory.path().join("component-registry.sqlite");
    fs::write(&file, "this is no database, and longer than the header of one. ".repeat(20)).unwrap();
    let before = fs::read(&file).unwrap();
    start.mesh.start_part("component_registry");
    eventually("a reason", async || start.mesh.log("component_registry").contains("error: ").then_some(()))
        .await;
    let log = start.mesh.log("component_registry");
    assert!(log.contains("file is not a database"), "{log}");
    assert_eq!(fs::read(&file).unwrap(), before);
}
