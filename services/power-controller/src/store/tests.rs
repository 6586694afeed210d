use std::{env, time::Duration};

use chassis::{Context, Settings, ledger::Ledger};
use proto::power::{Delivery, PowerReading, PowerState, Transition, TransitionMember};
use sea_orm::{ConnectionTrait, Database};
use uuid::Uuid;

use super::*;

/// Names a PostgreSQL server with the right to create databases, to run the same tests on it.
const POSTGRES: &str = "REVEILLE_TEST_POSTGRES";

fn state(id: &str, reading: PowerReading) -> PowerState {
    PowerState {
        id: id.into(),
        reading: reading.into(),
        error: "bmc is gone".into(),
        generation: 3,
        ..Default::default()
    }
}

fn transition(id: &str, delivery: Delivery) -> Transition {
    let members = (0..3).map(|n| TransitionMember { id: format!("x{n}"), generation: 7, attempt: 2 });
    Transition { id: id.into(), delivery: delivery.into(), members: members.collect(), ..Default::default() }
}

/// One run of the service on the database at `url`.
async fn run<T>(url: &str, work: impl AsyncFn(Ledger<PowerStates>, Ledger<Transitions>) -> T) -> T {
    let context = Context::new(Settings::default());
    let database = chassis::database::connect::<Migrator>(url).await.unwrap();
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
            (0..1200).for_each(|n| draft.put(state(&format!("x{n:04}"), PowerReading::Off)));
            Ok(())
        });
        write.await.unwrap();
        let write = states.write(|draft| {
            draft.put(state("x0000", PowerReading::On));
            draft.delete("x0001");
            Ok(())
        });
        write.await.unwrap();
        let write = transitions.write(|draft| {
            draft.put(transition("a", Delivery::Sent));
            draft.put(transition("b", Delivery::Prepared));
            Ok(())
        });
        write.await.unwrap();
        let write = transitions.write(|draft| {
            draft.put(transition("a", Delivery::Accepted));
            draft.delete("b");
            Ok(())
        });
        write.await.unwrap();
    })
    .await;
    run(url, async |states, transitions| {
        assert_eq!((states.view().len(), states.view().revision()), (1199, 1202));
        let first = state("x0000", PowerReading::On);
        assert_eq!(*states.view().get("x0000").unwrap(), PowerState { revision: 1201, ..first });
        let accepted = transition("a", Delivery::Accepted);
        let found: Vec<_> = transitions.view().all().iter().map(|one| Transition::clone(one)).collect();
        assert_eq!(found, [Transition { revision: 3, ..accepted }]);
    })
    .await;
}

#[tokio::test]
async fn sqlite_keeps_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("power-controller.sqlite");
    what_was_written_is_there_after_a_restart(&format!("sqlite://{}?mode=rwc", file.display())).await;
}

#[tokio::test]
async fn postgresql_keeps_what_was_written() {
    let Ok(server) = env::var(POSTGRES) else { return };
    let name = format!("reveille_power_{}", Uuid::new_v4().simple());
    let admin = Database::connect(&server).await.unwrap();
    admin.execute_unprepared(&format!("CREATE DATABASE {name}")).await.unwrap();
    let (start, _) = server.rsplit_once('/').unwrap();
    what_was_written_is_there_after_a_restart(&format!("{start}/{name}")).await;
    admin.execute_unprepared(&format!("DROP DATABASE {name}")).await.unwrap();
}
