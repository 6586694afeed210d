//! Tables of this service. No other module knows SQL.

mod durations;
mod left_out;
mod sessions;
mod templates;

use chassis::{lease, store::ledger::Migrations};
use sea_orm_migration::{MigrationTrait, MigratorTrait};

pub(crate) use durations::DurationTable;
pub(crate) use left_out::LeftOutMembers;
pub(crate) use sessions::SessionTable;
pub(crate) use templates::TemplateTable;

/// Migrates the database of this service.
pub(crate) struct SessionMigrator;

impl MigratorTrait for SessionMigrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        Migrations::default()
            .replacing(&["migration", "session_intent", "left_out", "revision_indexes"])
            .kind::<SessionTable>()
            .kind::<TemplateTable>()
            .kind::<DurationTable>()
            .side_table::<left_out::Entity>(&["session_key", "session_id"])
            .with(lease::Migration)
            .with(lease::RoleMigration)
            .into_vec()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chassis::store::ledger::Table;
    use domain::{
        boot::{
            session::{
                Cancellation, NewSession, RetriedSession, Session, SessionEnd, SessionPause, SessionResult,
                SessionRollout, complete, create, run,
            },
            template::{BootSet, Cfs, Operation, SessionTemplate},
        },
        core::{
            id::{ComponentId, Tenant},
            rollout::policy::{MissAction, PolicyRequest, RolloutPolicy},
            time::Timestamp,
            xname::NodePlace,
        },
    };
    use prost::Message;
    use proto::{component::AssignSessionRequest, session::SessionStatus};
    use sea_orm::{ConnectionTrait, Database, DatabaseConnection, DbBackend, TransactionTrait};
    use sea_orm_migration::MigratorTrait;
    use test_databases::EmptyDatabase;

    use super::*;
    use crate::record::{SessionRecord, TemplateRecord};

    async fn connect(database: &EmptyDatabase) -> DatabaseConnection {
        chassis::store::database::connect::<SessionMigrator>(&database.url).await.unwrap()
    }

    async fn save<T: Table>(database: &DatabaseConnection, records: &[T::Kind]) {
        let records: Vec<_> = records.iter().cloned().map(Arc::new).collect();
        let transaction = database.begin().await.unwrap();
        T::save(&transaction, &records).await.unwrap();
        transaction.commit().await.unwrap();
    }

    /// Loads the readable records.
    async fn load<T: Table>(database: &DatabaseConnection) -> Vec<T::Kind> {
        T::load(database, None).await.unwrap().into_iter().filter_map(Result::ok).collect()
    }

    async fn delete<T: Table>(database: &DatabaseConnection, key: &str) {
        let transaction = database.begin().await.unwrap();
        T::delete(&transaction, &[key.into()]).await.unwrap();
        transaction.commit().await.unwrap();
    }

    fn session(tenant: &str, name: &str) -> SessionRecord {
        let wish = NewSession {
            name: name.to_owned(),
            tenant: Tenant::parse(tenant).unwrap(),
            operation: Operation::Reboot,
            template_name: "t".to_owned(),
            limit: "blue,!n1".to_owned(),
            stage: true,
            include_disabled: true,
            retry_of: None,
            plan: None,
            confirmed_nodes: None,
            rollout: None,
        };
        let now = Timestamp(1_732_119_012_345);
        SessionRecord::new(
            create(wish, &Default::default(), Default::default(), format!("{name}-id"), now).unwrap(),
        )
    }

    #[tokio::test]
    async fn sessions_survive_the_database_unchanged() {
        for empty in test_databases::every_kind().await {
            let database = connect(&empty).await;
            let pause = SessionPause {
                by: "alice".into(),
                since: Timestamp(1_732_119_013_000),
                reason: "power cap".into(),
                request_id: "r".into(),
            };
            let intent = AssignSessionRequest { assignment_id: "id".to_owned(), ..Default::default() };
            let pending = SessionRecord { intent: Some(Arc::new(intent)), ..session("", "pending") };
            let pending = SessionRecord {
                session: Session { pause: Some(pause), ..pending.session.clone() },
                ..pending
            };
            let ended = session("tenant a", "ended");
            let members = ["n1", "n0"].map(|id| ComponentId::parse(id).unwrap());
            let request = PolicyRequest {
                canary_count: Some(1),
                by: Some(NodePlace::Chassis),
                max_in_flight: Some(7),
                soak_millis: Some(1_500),
                threshold_percent: Some(95),
                on_miss: MissAction::Stop,
                ..PolicyRequest::default()
            };
            let rollout = Some(SessionRollout::new(RolloutPolicy::parse(request).unwrap()));
            let running = run(Session { rollout, ..ended.session.clone() }, members.into(), 7);
            let running = Session {
                cancellation: Some(Cancellation { reason: "wrong image".into() }),
                retry_of: Some(RetriedSession { name: "earlier".to_owned(), id: "earlier-id".to_owned() }),
                ..running
            };
            let result = SessionResult::Superseded { by: "later".into() };
            let end = SessionEnd { error: Some("broken".to_owned()), result };
            let status = SessionStatus { percent_failed: 33.33, ..SessionStatus::default() };
            let ended = SessionRecord {
                session: complete(running, Timestamp(1_732_119_999_999), end),
                saved_status: Some(status),
                ..ended
            };
            save::<SessionTable>(
                &database,
                &[session("", "gone"), pending.clone(), session("tenant a", "ended")],
            )
            .await;
            save::<SessionTable>(&database, std::slice::from_ref(&ended)).await;
            delete::<SessionTable>(&database, &session("", "gone").key).await;
            let mut loaded = load::<SessionTable>(&database).await;
            loaded.sort_unstable_by(|one, other| one.key.cmp(&other.key));
            assert_eq!(loaded, [pending, ended]);
        }
    }

    #[tokio::test]
    async fn a_session_has_any_number_of_members() {
        for empty in test_databases::every_kind().await {
            let database = connect(&empty).await;
            let members = (0..40_000).map(|number| ComponentId::parse(&format!("x{number:014}")).unwrap());
            let large = session("", "large");
            let large = SessionRecord { session: run(large.session.clone(), members.collect(), 7), ..large };
            save::<SessionTable>(&database, std::slice::from_ref(&large)).await;
            assert_eq!(load::<SessionTable>(&database).await, [large]);
        }
    }

    #[tokio::test]
    async fn sessions_of_the_first_release_are_readable() {
        for empty in test_databases::every_kind().await {
            let database = Database::connect(&empty.url).await.unwrap();
            SessionMigrator::up(&database, Some(2)).await.unwrap();
            let bytes = if database.get_database_backend() == DbBackend::Postgres { "bytea" } else { "blob" };
            let table = format!(
                "CREATE TABLE sessions (key text NOT NULL PRIMARY KEY, revision bigint NOT NULL, \
                 tenant text NOT NULL, name text NOT NULL, progress text NOT NULL, \
                 record {bytes} NOT NULL, saved_status {bytes} NULL)"
            );
            database.execute_unprepared(&table).await.unwrap();
            let old = session("tenant a", "old");
            let record = crate::convert::session::to_wire(&old.session).encode_to_vec();
            let row = format!(
                "INSERT INTO sessions (key, revision, tenant, name, progress, record) \
                 SELECT '{}', 0, 'tenant a', 'old', 'pending', {}",
                old.key,
                blob(&database, &record)
            );
            database.execute_unprepared(&row).await.unwrap();
            let database = connect(&empty).await;
            assert_eq!(load::<SessionTable>(&database).await, [old]);
        }
    }

    /// Bytes as the database writes them.
    fn blob(database: &DatabaseConnection, bytes: &[u8]) -> String {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match database.get_database_backend() {
            DbBackend::Postgres => format!("'\\x{digits}'::bytea"),
            _ => format!("x'{digits}'"),
        }
    }

    #[tokio::test]
    async fn templates_survive_the_database_unchanged() {
        for empty in test_databases::every_kind().await {
            let database = connect(&empty).await;
            let boot_set = BootSet {
                path: "s3://images/compute/manifest.json".to_owned(),
                kind: "s3".to_owned(),
                node_groups: Some(Vec::new()),
                node_list: Some(vec!["n1".to_owned()]),
                arch: Some(Default::default()),
                kernel_parameters: Some(String::new()),
                cfs: Some(Cfs { configuration: Some("c".to_owned()) }),
                ..BootSet::default()
            };
            let template = |name: &str| {
                let boot_sets = [("compute".to_owned(), boot_set.clone())].into();
                let name = name.to_owned();
                let enable_cfs = Some(false);
                TemplateRecord::new(SessionTemplate { name, enable_cfs, boot_sets, ..Default::default() })
            };
            save::<TemplateTable>(&database, &[template("gone"), template("t")]).await;
            delete::<TemplateTable>(&database, &template("gone").key).await;
            assert_eq!(load::<TemplateTable>(&database).await, [template("t")]);
        }
    }

    #[tokio::test]
    async fn an_unreadable_row_keeps_no_other_from_loading() {
        for empty in test_databases::every_kind().await {
            let database = connect(&empty).await;
            save::<SessionTable>(&database, &[session("", "good"), session("", "bad")]).await;
            let damage = "UPDATE sessions SET record = other.damage FROM \
                          (SELECT record AS damage FROM session_templates) AS other \
                          WHERE sessions.name = 'bad'";
            let template = SessionTemplate { name: "t".to_owned(), ..Default::default() };
            save::<TemplateTable>(&database, &[TemplateRecord::new(template)]).await;
            database.execute_unprepared(damage).await.unwrap();
            assert_eq!(load::<SessionTable>(&database).await, [session("", "good")]);
        }
    }
}
