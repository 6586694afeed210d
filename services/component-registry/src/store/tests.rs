use std::{sync::Arc, time::Duration};

use chassis::{
    Context, Settings,
    kinds::options::OptionsRecord,
    store::ledger::{Ledger, Table},
};
use domain::{
    boot::{
        bos::options::Options,
        component::{
            Action, ActualState, Component, DesiredState, InventoryPresence, PowerTurns,
            artifacts::BootArtifacts, write::newly_discovered,
        },
    },
    core::{decision::DecisionVersion, id::ComponentId, time::Timestamp},
};
use sea_orm::{ConnectionTrait, DatabaseConnection, Statement};

use super::*;

const NOW: Timestamp = Timestamp(1_732_119_012_345);

fn artifacts(image: &str) -> BootArtifacts {
    BootArtifacts {
        kernel: Some(format!("s3://images/{image}/kernel").into()),
        kernel_parameters: Some("quiet".into()),
        initrd: None,
        timestamp: None,
    }
}

fn component(id: &str, wanted: BootArtifacts, booted: BootArtifacts) -> Component {
    let discovered = newly_discovered(ComponentId::parse(id).unwrap(), NOW);
    discovered.with(|one| {
        one.wish.desired_state =
            Some(DesiredState { boot_artifacts: Some(wanted.into()), ..DesiredState::default() });
        one.wish.assignment = "session-id".into();
        one.reported.actual_state = Some(ActualState {
            boot_artifacts: Some(BootArtifacts { timestamp: Some(NOW), ..booted }.into()),
            ..ActualState::default()
        });
        one.inventory.locked = true;
        one.inventory.presence = InventoryPresence::Absent { since: NOW };
        one.evaluation.decided_by = DecisionVersion { rules: 2, options: 9 };
        one.power.turns = PowerTurns { count: 4, last: Some(Action::PoweringOn) };
    })
}

/// Writes through a ledger, then reads with a new one, as after a restart.
async fn written_and_read<T: Table>(database: &DatabaseConnection, records: Vec<T::Kind>) -> Vec<T::Kind> {
    let context = Context::new(Settings::default());
    let ledger = Ledger::<T>::open(&context, database.clone()).await.unwrap();
    let put = ledger.write(move |draft| {
        records.into_iter().for_each(|record| draft.put(record));
        Ok(())
    });
    put.await.unwrap();
    let reopened = Ledger::<T>::open(&context, database.clone()).await.unwrap();
    let read = reopened.view().all().into_iter().map(Arc::unwrap_or_clone).collect();
    context.tasks.shutdown().cancel();
    context.tasks.finished(Duration::from_secs(5)).await.unwrap();
    read
}

#[tokio::test]
async fn loaded_components_share_their_artifacts() {
    for empty in test_databases::every_kind().await {
        let database = chassis::store::database::connect::<RegistryMigrator>(&empty.url).await.unwrap();
        let bare = Component::new(ComponentId::parse("bare").unwrap());
        let first = component("x1", artifacts("one"), artifacts("two"));
        let second = component("x2", artifacts("one"), BootArtifacts::default());
        let read =
            written_and_read::<ComponentTable>(&database, vec![bare.clone(), first.clone(), second.clone()])
                .await;
        let numbered = [bare, first, second].into_iter().zip(1..);
        let numbered: Vec<_> =
            numbered.map(|(one, revision)| Component { revision, last_event: revision, ..one }).collect();
        assert_eq!(read, numbered, "{}", empty.kind);

        let backend = database.get_database_backend();
        let count = Statement::from_string(backend, "SELECT COUNT(*) AS sets FROM boot_artifacts");
        let row = database.query_one_raw(count).await.unwrap().unwrap();
        // The sets are `one`, `two` and the empty set.
        assert_eq!(row.try_get::<i64>("", "sets").unwrap(), 3, "{}", empty.kind);
    }
}

#[tokio::test]
async fn tokens_and_options_survive_the_database_unchanged() {
    for empty in test_databases::every_kind().await {
        let database = chassis::store::database::connect::<RegistryMigrator>(&empty.url).await.unwrap();
        let stored = BootArtifacts { timestamp: Some(NOW), ..artifacts("one") };
        let token = BootToken { token: "t".into(), boot_artifacts: stored.into(), revision: 1 };
        assert_eq!(written_and_read::<BootTokens>(&database, vec![token.clone()]).await, [token]);

        let options = Options { clear_stage: true, ..Options::default() };
        let record = OptionsRecord { options, revision: 1 };
        assert_eq!(written_and_read::<StoredOptions>(&database, vec![record.clone()]).await, [record]);
    }
}

/// Returns the kernels of the stored sets; `-` for a set without one.
async fn stored_sets(database: &DatabaseConnection) -> Vec<String> {
    let backend = database.get_database_backend();
    let sets = Statement::from_string(backend, "SELECT COALESCE(kernel, '-') AS kernel FROM boot_artifacts");
    let rows = database.query_all_raw(sets).await.unwrap();
    let mut kernels: Vec<String> = rows.iter().map(|row| row.try_get("", "kernel").unwrap()).collect();
    kernels.sort_unstable();
    kernels
}

#[tokio::test]
async fn unreferenced_artifacts_are_deleted() {
    for empty in test_databases::every_kind().await {
        let database = chassis::store::database::connect::<RegistryMigrator>(&empty.url).await.unwrap();
        let first = component("x1", artifacts("wanted"), artifacts("booted"));
        written_and_read::<ComponentTable>(&database, vec![first]).await;
        let stored = BootArtifacts { timestamp: Some(NOW), ..artifacts("given") };
        let token = BootToken { token: "t".into(), boot_artifacts: stored.into(), revision: 1 };
        written_and_read::<BootTokens>(&database, vec![token]).await;
        assert_eq!(delete_unused_artifacts(&database).await.unwrap(), 0, "{}", empty.kind);

        let other = component("x1", artifacts("wanted"), artifacts("other"));
        let read = written_and_read::<ComponentTable>(&database, vec![other.clone()]).await;
        assert_eq!(delete_unused_artifacts(&database).await.unwrap(), 1, "{}", empty.kind);
        let kernel = |image: &str| format!("s3://images/{image}/kernel");
        let kept = [kernel("given"), kernel("other"), kernel("wanted")];
        assert_eq!(stored_sets(&database).await, kept, "{}", empty.kind);

        // A deleted set is stored again for its next boot.
        let again = component("x1", artifacts("booted"), BootArtifacts::default());
        let read_again = written_and_read::<ComponentTable>(&database, vec![again.clone()]).await;
        assert_eq!(
            read_again[0].wish.desired_state, again.wish.desired_state,
            "{} after {read:?}",
            empty.kind
        );
    }
}
