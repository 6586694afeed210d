use std::time::Duration;

use chassis::{Context, Settings, kinds::NodeState, store::ledger::Ledger};
use domain::boot::power::transition::{PowerTransition, TaskOutcome, TransitionDelivery, TransitionMember};
use proto::power::{PowerReading, PowerState};
use sea_orm::{ConnectionTrait, Database, DbBackend};

use super::*;

fn state(id: &str, reading: PowerReading) -> PowerState {
    PowerState {
        id: id.into(),
        reading: reading.into(),
        error: "bmc is gone".into(),
        generation: 3,
        ..Default::default()
    }
}

fn transition(id: &str, delivery: TransitionDelivery) -> PowerTransition {
    let members = (0..3).map(|n| TransitionMember {
        id: format!("x{n}"),
        generation: 7,
        attempt: 2,
        outcome: TaskOutcome::Failed,
        error: "Unable to reserve component".into(),
        held_by: "t-9".into(),
        reservations: 2,
    });
    PowerTransition { id: id.into(), delivery, members: members.collect(), ..Default::default() }
}

/// One run of the service on the database at `url`.
async fn run<T>(url: &str, work: impl AsyncFn(Ledger<PowerStateTable>, Ledger<TransitionTable>) -> T) -> T {
    let context = Context::new(Settings::default());
    let database = chassis::store::database::connect::<Migrator>(url).await.unwrap();
    let states = Ledger::open(&context, database.clone()).await.unwrap();
    let transitions = Ledger::open(&context, database.clone()).await.unwrap();
    let outcome = work(states, transitions).await;
    context.tasks.shutdown().cancel();
    context.tasks.finished(Duration::from_secs(5)).await.unwrap();
    database.close().await.unwrap();
    outcome
}

async fn what_was_written_is_there_after_a_restart(url: &str) {
    run(url, async |states, transitions| {
        let write = states.write(|draft| {
            (0..1200).for_each(|n| draft.put(NodeState::of(state(&format!("x{n:04}"), PowerReading::Off))));
            Ok(())
        });
        write.await.unwrap();
        let write = states.write(|draft| {
            draft.put(NodeState::of(state("x0000", PowerReading::On)));
            draft.delete("x0001");
            Ok(())
        });
        write.await.unwrap();
        let write = transitions.write(|draft| {
            draft.put(transition("a", TransitionDelivery::Sent));
            draft.put(transition("b", TransitionDelivery::Prepared));
            Ok(())
        });
        write.await.unwrap();
        let write = transitions.write(|draft| {
            draft.put(transition("a", TransitionDelivery::Accepted));
            draft.delete("b");
            Ok(())
        });
        write.await.unwrap();
    })
    .await;
    run(url, async |states, transitions| {
        assert_eq!((states.view().len(), states.view().revision()), (1199, 1202));
        let first = state("x0000", PowerReading::On);
        let kept = states.view().get("x0000").unwrap().message();
        assert_eq!(kept, PowerState { revision: 1201, ..first });
        let accepted = transition("a", TransitionDelivery::Accepted);
        let found: Vec<_> = transitions.view().all().iter().map(|one| PowerTransition::clone(one)).collect();
        assert_eq!(found, [PowerTransition { revision: 3, ..accepted }]);
    })
    .await;
}

#[tokio::test]
async fn every_database_keeps_what_was_written() {
    for database in test_databases::every_kind().await {
        what_was_written_is_there_after_a_restart(&database.url).await;
    }
}

/// Tables of a release that made them by migrations of its own, which did not begin with `additive_`.
const EARLIER: [&str; 5] = [
    "CREATE TABLE power_states (id varchar NOT NULL PRIMARY KEY, revision bigint NOT NULL, \
     generation bigint NOT NULL, reading varchar NOT NULL, record BYTES NOT NULL)",
    "CREATE TABLE transitions (id varchar NOT NULL PRIMARY KEY, revision bigint NOT NULL, \
     action varchar NOT NULL, delivery varchar NOT NULL, record BYTES NOT NULL)",
    "INSERT INTO seaql_migrations (version, applied_at) VALUES ('migration', 1), ('revision_indexes', 1)",
    "CREATE INDEX power_states_revision ON power_states (revision)",
    "CREATE INDEX transitions_revision ON transitions (revision)",
];

#[tokio::test]
async fn database_of_an_earlier_release_goes_on() {
    for empty in test_databases::every_kind().await {
        let database = Database::connect(&empty.url).await.unwrap();
        Migrator::up(&database, Some(1)).await.unwrap();
        let bytes = if database.get_database_backend() == DbBackend::Postgres { "bytea" } else { "blob" };
        for statement in EARLIER {
            database.execute_unprepared(&statement.replace("BYTES", bytes)).await.unwrap();
        }
        what_was_written_is_there_after_a_restart(&empty.url).await;
    }
}
