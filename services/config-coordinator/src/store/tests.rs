//! Written records are read back, on every available database.

use std::sync::Arc;

use chassis::{
    Context, Settings,
    kinds::NodeState,
    store::{database, ledger::Ledger, resource::Resource},
};
use domain::{
    boot::{component::artifacts::BootArtifacts, explanation::ScriptRequests},
    core::{id::ComponentId, time::Timestamp, trouble::Trouble},
};
use proto::configuration::{ConfigurationReading, ConfigurationState};
use sea_orm::{ConnectionTrait, DatabaseConnection, Statement};

use super::{BootScript, BootScriptTable, ConfigurationStateTable, Migrator, PreparationTable};
use crate::{
    preparation::{PreparationPlan, PreparationProgress, PreparationRecord},
    step::PlacingStep,
};

async fn on_every_database<F: Future<Output = ()>>(check: impl Fn(DatabaseConnection) -> F) {
    for database in test_databases::every_kind().await {
        check(database::connect::<Migrator>(&database.url).await.unwrap()).await;
    }
}

fn id(text: &str) -> ComponentId {
    ComponentId::parse(text).unwrap()
}

#[tokio::test]
async fn configuration_states_survive_a_restart() {
    on_every_database(|database| async move {
        let state = |id: &str, reading: ConfigurationReading, desired: Option<&str>| ConfigurationState {
            id: id.into(),
            reading: reading.into(),
            desired_configuration: desired.map(str::to_owned),
            status: "pending".into(),
            observed_at: Some(chassis::mesh::time::to_wire(chassis::process::clock::now())),
            generation: 7,
            revision: 0,
            error: String::new(),
            error_kind: 0,
        };
        let first = vec![
            state("x1", ConfigurationReading::Known, Some("base")),
            state("x2", ConfigurationReading::Known, None),
            state("x3", ConfigurationReading::Missing, None),
        ];
        let context = Context::new(Settings::default());
        let ledger = Ledger::<ConfigurationStateTable>::open(&context, database.clone()).await.unwrap();
        ledger
            .write(move |draft| {
                first.into_iter().for_each(|one| draft.put(NodeState::of(one)));
                Ok(())
            })
            .await
            .unwrap();
        let second = state("x2", ConfigurationReading::Known, Some(""));
        ledger
            .write(move |draft| {
                draft.put(NodeState::of(second));
                draft.delete("x3");
                Ok(())
            })
            .await
            .unwrap();

        let kept: Vec<_> = ledger.view().all().into_iter().map(Arc::unwrap_or_clone).collect();
        let reopened = Ledger::<ConfigurationStateTable>::open(&context, database).await.unwrap();
        let read: Vec<_> = reopened.view().all().into_iter().map(Arc::unwrap_or_clone).collect();
        assert_eq!(read, kept);
        assert_eq!(
            read.iter().map(|one| (one.key(), one.revision())).collect::<Vec<_>>(),
            [("x1", 1), ("x2", 4)]
        );
    })
    .await;
}

#[tokio::test]
async fn preparations_survive_a_restart() {
    on_every_database(|database| async move {
        let record = |text: &str, progress: PreparationProgress| PreparationRecord {
            id: id(text),
            plan: PreparationPlan {
                generation: 7,
                attempt: 2,
                artifacts: "0011".into(),
                configuration: "base".into(),
                session: "s1".into(),
            }
            .into(),
            progress: progress.into(),
            since: Timestamp(1_700_000_000_123),
            revision: 0,
        };
        let waiting = Trouble::waiting_for("BSS");
        let refused = Trouble::failed("waiting for x5 to be known").unwrap();
        let all = vec![
            record("x1", PreparationProgress::Prepared),
            record("x2", PreparationProgress::Accepted { token: "t1".into() }),
            record("x3", PreparationProgress::Accepted { token: "".into() }),
            record(
                "x4",
                PreparationProgress::Failed {
                    trouble: waiting.into(),
                    step: Some(PlacingStep::BootParameters),
                },
            ),
            record("x5", PreparationProgress::Refused { trouble: refused.into() }),
        ];
        let context = Context::new(Settings::default());
        let ledger = Ledger::<PreparationTable>::open(&context, database.clone()).await.unwrap();
        ledger
            .write(move |draft| {
                all.into_iter().for_each(|one| draft.put(one));
                Ok(())
            })
            .await
            .unwrap();
        let later = record("x1", PreparationProgress::Accepted { token: "t2".into() });
        ledger
            .write(move |draft| {
                draft.put(later);
                draft.delete("x4");
                Ok(())
            })
            .await
            .unwrap();

        let reopened = Ledger::<PreparationTable>::open(&context, database).await.unwrap();
        assert_eq!(reopened.view().all(), ledger.view().all());
        assert_eq!(reopened.view().len(), 4);
    })
    .await;
}

#[tokio::test]
async fn preparations_of_earlier_versions_go_on() {
    on_every_database(|database| async move {
        let record = |text: &str, progress: PreparationProgress| PreparationRecord {
            id: id(text),
            plan: PreparationPlan {
                generation: 7,
                attempt: 2,
                artifacts: "0011".into(),
                configuration: "base".into(),
                session: "s1".into(),
            }
            .into(),
            progress: progress.into(),
            since: Timestamp(1_700_000_000_123),
            revision: 0,
        };
        let waiting = Arc::new(Trouble::waiting_for("BSS at b (503)"));
        let refused = Arc::new(Trouble::failed("no such host").unwrap());
        let failed = |step| PreparationProgress::Failed { trouble: Arc::clone(&waiting), step };
        let all = vec![
            record("x1", failed(Some(PlacingStep::BootParameters))),
            record("x2", PreparationProgress::Refused { trouble: Arc::clone(&refused) }),
        ];
        let context = Context::new(Settings::default());
        let ledger = Ledger::<PreparationTable>::open(&context, database.clone()).await.unwrap();
        let put = ledger.write(move |draft| {
            all.into_iter().for_each(|one| draft.put(one));
            Ok(())
        });
        put.await.unwrap();
        let forget = "update boot_preparations set error_kind = null, failed_step = null";
        let forget = Statement::from_string(database.get_database_backend(), forget);
        database.execute_raw(forget).await.unwrap();

        let reopened = Ledger::<PreparationTable>::open(&context, database).await.unwrap();
        let read = reopened.view().all().into_iter().map(|one| PreparationProgress::clone(&one.progress));
        assert_eq!(
            read.collect::<Vec<_>>(),
            [failed(None), PreparationProgress::Refused { trouble: refused }]
        );
    })
    .await;
}

#[tokio::test]
async fn boot_scripts_survive_a_restart_and_share_their_data() {
    on_every_database(|database| async move {
        let script = |text: &str, token: &str, kernel: &str| BootScript {
            id: id(text),
            token: token.into(),
            artifacts: BootArtifacts { kernel: Some(kernel.into()), ..BootArtifacts::default() },
            prepared_at: Some(Timestamp(7)),
            requests: Some(ScriptRequests { first_at: Timestamp(8), last_at: Timestamp(9), count: 2 }),
            revision: 0,
        };
        let context = Context::new(Settings::default());
        let ledger = Ledger::<BootScriptTable>::open(&context, database.clone()).await.unwrap();
        let put = |scripts: Vec<BootScript>| {
            ledger.write(move |draft| {
                scripts.into_iter().for_each(|one| draft.put(one));
                Ok(())
            })
        };
        put(vec![script("x1", "t1", "k1"), script("x2", "t1", "k1"), script("x3", "t2", "k2")])
            .await
            .unwrap();
        // Two nodes get other data, one is deleted; data that only they had are deleted too.
        put(vec![script("x1", "t3", "k3"), script("x2", "t3", "k3")]).await.unwrap();
        ledger
            .write(|draft| {
                draft.delete("x3");
                Ok(())
            })
            .await
            .unwrap();

        let reopened = Ledger::<BootScriptTable>::open(&context, database.clone()).await.unwrap();
        let read = reopened.view().all();
        assert_eq!(read, ledger.view().all());
        assert_eq!(
            read.iter().map(|one| format!("{} {}", one.id, one.token)).collect::<Vec<_>>(),
            ["x1 t3", "x2 t3"]
        );
        let count = Statement::from_string(database.get_database_backend(), "select count(*) from boot_data");
        let count = database.query_one_raw(count).await.unwrap().unwrap();
        assert_eq!(count.try_get_by_index::<i64>(0).unwrap(), 1);
    })
    .await;
}
