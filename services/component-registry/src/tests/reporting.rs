//! Nodes that repeat their reports.

use std::time::Duration;

use chassis::{Context, Settings, process::clock, store::ledger::Ledger};
use domain::core::{id::ComponentId, time::Timestamp};
use futures_util::future::join_all;
use proto::{
    component::{
        Action, ActionReport, ActualState, BootArtifacts, BootToken, Component, InventoryListing,
        PatchComponentsRequest, PatchEach, Phase, PreparationReport, PutComponentsRequest,
        ReportActionsRequest, ReportPreparationsRequest, ReportStatusesRequest, StatusReport,
        WatchComponentsRequest, WatchComponentsResponse, patch_components_request::Selection,
        report_service_client::ReportServiceClient,
    },
    option::{Options, UpdateOptionsRequest, options_service_client::OptionsServiceClient},
};
use test_databases::EmptyDatabase;
use tonic::Streaming;

use super::{N0, Site, eventually, smd::Smd};
use crate::{ComponentTable, RegistryMigrator};

/// Age at which the time stamp of a report is renewed.
const OLD: Duration = Duration::from_secs(20 * 60);

async fn site(database: &EmptyDatabase) -> Site {
    site_of(&Smd::start().await, database).await
}

async fn site_of(smd: &Smd, database: &EmptyDatabase) -> Site {
    Site::with_smd(smd, |settings| settings.component_registry.database_url.clone_from(&database.url)).await
}

fn reported(id: &str, kernel: &str) -> Component {
    let boot_artifacts = BootArtifacts { kernel: Some(kernel.into()), ..BootArtifacts::default() };
    let actual_state = ActualState { boot_artifacts: Some(boot_artifacts), ..ActualState::default() };
    Component { id: id.into(), actual_state: Some(actual_state), ..Component::default() }
}

impl Site {
    /// Stores components that have reported, enabled or not.
    async fn put_reported(&self, ids: &[&str], enabled: bool) {
        let components = ids.iter().map(|id| Component { enabled: Some(enabled), ..reported(id, "k") });
        let request = PutComponentsRequest { components: components.collect(), ..Default::default() };
        self.components().put_components(request).await.unwrap();
    }

    /// Reports a boot like a node, and returns the record.
    async fn report(&self, id: &str, kernel: &str) -> Component {
        let selection = Some(Selection::Each(PatchEach { patches: vec![reported(id, kernel)] }));
        let request = PatchComponentsRequest {
            selection,
            guard_actual_state: true,
            ..PatchComponentsRequest::default()
        };
        self.components().patch_components(request).await.unwrap();
        self.component(id).await.unwrap()
    }

    /// Waits until a repeated report is not written: with a shared database, until the age of the records in memory
    /// is known.
    async fn until_repeats_are_known(&self, id: &str) {
        eventually(async || {
            let before = self.component(id).await.unwrap();
            self.report(id, "k").await == before
        })
        .await;
    }

    /// Returns whether the record has the artifacts that the node booted.
    async fn runs(&self, id: &str) -> bool {
        let artifacts = self.component(id).await.and_then(|one| one.actual_state?.boot_artifacts);
        artifacts.is_some_and(|artifacts| !artifacts.kernel().is_empty())
    }

    async fn forget_reports_after(&self, age: &str) {
        let options = Options { component_actual_state_ttl: Some(age.into()), ..Options::default() };
        let request = UpdateOptionsRequest { options: Some(options), ..UpdateOptionsRequest::default() };
        OptionsServiceClient::new(self.channel.clone()).update_options(request).await.unwrap();
    }

    async fn watch(&self) -> Streaming<WatchComponentsResponse> {
        let request = WatchComponentsRequest { resume_revision: 0 };
        let mut watch = self.components().watch_components(request).await.unwrap().into_inner();
        while !watch.message().await.unwrap().unwrap().synced {}
        watch
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_report_is_not_written() {
    for database in test_databases::every_kind().await {
        let site = site(&database).await;
        site.put_reported(&["x1"], false).await;
        site.put_reported(&["x2"], true).await;
        site.until_repeats_are_known("x1").await;
        let before = site.component("x1").await.unwrap();
        for _ in 0..20 {
            assert_eq!(site.report("x1", "k").await, before, "{}", database.kind);
        }

        let other = site.report("x1", "other").await;
        assert!(other.revision > before.revision, "{}: another boot is news", database.kind);
        site.patch("x2", Component { status: stable(), ..Component::default() }).await;
        let acted_on = site.component("x2").await.unwrap();
        let again = site.report("x2", "k").await;
        assert!(again.revision > acted_on.revision, "{}: somebody acts on it", database.kind);
        site.stop().await;
    }
}

/// Status of an enabled component in which its node may report.
fn stable() -> Option<proto::component::Status> {
    Some(proto::component::Status { status_override: Some("stable".into()), ..Default::default() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_of_another_replica_is_no_repeat() {
    let Some(url) = test_databases::on_postgres().await else { return };
    let database = EmptyDatabase::at(url);
    let (one, other) = (site(&database).await, site(&database).await);
    one.put_reported(&["x1"], false).await;
    other.until_repeats_are_known("x1").await;
    let booted = one.report("x1", "other").await;
    eventually(async || other.component("x1").await.is_some_and(|seen| seen == booted)).await;
    let back = other.report("x1", "k").await;
    assert!(back.revision > booted.revision, "what it repeats was overwritten");
    one.stop().await;
    other.stop().await;
}

/// Stores components whose last report has that age, as an earlier process would.
async fn leave_behind(database: &EmptyDatabase, ids: &[String], age: Duration) {
    let context = Context::new(Settings::default());
    let connection = chassis::store::database::connect::<RegistryMigrator>(&database.url).await.unwrap();
    let ledger = Ledger::<ComponentTable>::open(&context, connection.clone()).await.unwrap();
    let at = Timestamp(clock::now().0 - i64::try_from(age.as_millis()).unwrap());
    let components: Vec<_> = ids
        .iter()
        .map(|id| {
            let kernel = Some("k".into());
            let boot_artifacts =
                domain::boot::component::artifacts::BootArtifacts { kernel, ..Default::default() };
            let actual_state = domain::boot::component::ActualState {
                boot_artifacts: Some(boot_artifacts.into()),
                bss_token: None,
                last_updated: Some(at),
            };
            let id = ComponentId::parse(id).unwrap();
            domain::boot::component::Component::new(id)
                .with(|one| one.reported.actual_state = Some(actual_state))
        })
        .collect();
    let put = ledger.write(move |draft| {
        components.into_iter().for_each(|component| draft.put(component));
        Ok(())
    });
    put.await.unwrap();
    context.tasks.shutdown().cancel();
    context.tasks.finished(Duration::from_secs(5)).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_expired_reports_are_deleted() {
    for database in test_databases::every_kind().await {
        leave_behind(&database, &["x1".to_owned(), "x2".to_owned()], Duration::from_secs(2 * 60 * 60)).await;
        let site = site(&database).await;
        site.report("x2", "other").await;
        assert!(site.runs("x1").await, "{}: it is young enough", database.kind);
        site.forget_reports_after("1h").await;
        eventually(async || !site.runs("x1").await).await;
        assert!(site.runs("x2").await, "{}: it has reported since", database.kind);
        site.report("x1", "k").await;
        assert!(site.runs("x1").await, "{}: it has reported again", database.kind);
        site.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_time_stamps_are_written_together() {
    const NODES: usize = 40;
    let ids: Vec<_> = (0..NODES).map(|n| format!("x{n}")).collect();
    for database in test_databases::every_kind().await {
        leave_behind(&database, &ids, OLD).await;
        let site = site(&database).await;
        site.put_reported(&["y"], false).await;
        site.until_repeats_are_known("y").await;
        let before = site.component("x0").await.unwrap();
        let mut watch = site.watch().await;
        let after = join_all(ids.iter().map(|id| site.report(id, "k"))).await;
        let stamp = |component: &Component| component.actual_state.as_ref().unwrap().last_updated.unwrap();
        assert!(stamp(&after[0]).seconds > stamp(&before).seconds, "{}", database.kind);

        let (mut batches, mut seen) = (0, 0);
        while seen < NODES {
            batches += 1;
            seen += watch.message().await.unwrap().unwrap().components.len();
        }
        assert!(batches <= 4, "{}: {batches} transactions of {NODES} time stamps", database.kind);
        drop(watch);
        site.stop().await;
    }
}

/// Prepares and begins a power-on of the component under `token`.
async fn power_on(site: &Site, id: &str, token: &str) {
    let powering_on = proto::component::Status {
        phase: Some(Phase::PoweringOn.into()),
        status_override: Some(String::new()),
        ..Default::default()
    };
    site.enable(id, true).await;
    site.patch(id, Component { status: Some(powering_on), ..Component::default() }).await;
    site.until(id, InventoryListing::Listed).await;
    let mut registry = ReportServiceClient::new(site.channel.clone());
    // Nothing begins before the evaluator has decided.
    let decision = StatusReport {
        id: id.into(),
        revision: site.component(id).await.unwrap().revision,
        phase: Phase::PoweringOn.into(),
        ..StatusReport::default()
    };
    let decided = ReportStatusesRequest { reports: vec![decision] };
    assert!(registry.report_statuses(decided).await.unwrap().into_inner().stale_ids.is_empty());
    let stored = site.component(id).await.unwrap();
    let attempt = stored.event_stats.and_then(|stats| stats.power_on_attempts).unwrap_or(0) + 1;
    let boot_artifacts = Some(BootArtifacts { kernel: Some("k".into()), ..BootArtifacts::default() });
    let prepared = ReportPreparationsRequest {
        reports: vec![PreparationReport {
            id: id.into(),
            generation: stored.generation,
            attempt,
            bss_token: token.into(),
            ..PreparationReport::default()
        }],
        tokens: vec![BootToken { token: token.into(), boot_artifacts }],
    };
    // Reported twice, as after a lost answer.
    for _ in 0..2 {
        let stale = registry.report_preparations(prepared.clone()).await.unwrap().into_inner().stale_ids;
        assert!(stale.is_empty());
    }
    let begun = ActionReport {
        id: id.into(),
        generation: stored.generation,
        action: Action::PoweringOn.into(),
        attempt,
        ..ActionReport::default()
    };
    let request = ReportActionsRequest { reports: vec![begun] };
    assert!(registry.report_actions(request).await.unwrap().into_inner().stale_ids.is_empty());
}

/// Reports that the node booted with `token`.
async fn found(site: &Site, id: &str, token: &str) -> Component {
    let actual_state = Some(ActualState { bss_token: Some(token.into()), ..ActualState::default() });
    let patches = vec![Component { id: id.into(), actual_state, ..Component::default() }];
    let request = PatchComponentsRequest {
        selection: Some(Selection::Each(PatchEach { patches })),
        guard_actual_state: true,
        ..PatchComponentsRequest::default()
    };
    let answer = site.components().patch_components(request).await.unwrap().into_inner();
    answer.components.into_iter().next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_of_the_previous_boot_changes_no_state() {
    for database in test_databases::every_kind().await {
        let smd = Smd::start().await;
        smd.add_node(N0);
        let site = site_of(&smd, &database).await;
        site.put_reported(&[N0], false).await;
        power_on(&site, N0, "first").await;
        assert!(found(&site, N0, "first").await.boot.unwrap().reported, "{}", database.kind);
        power_on(&site, N0, "second").await;

        let before = site.component(N0).await.unwrap();
        let late = found(&site, N0, "first").await;
        assert_eq!(late.late_report.as_ref().unwrap().token, "first");
        assert_eq!((&late.actual_state, &late.boot), (&before.actual_state, &before.boot));
        assert!(!late.boot.as_ref().unwrap().reported, "{}", database.kind);
        let again = found(&site, N0, "first").await;
        assert_eq!(again.late_report, late.late_report, "{}: noted once", database.kind);

        let current = found(&site, N0, "second").await;
        assert!(current.boot.unwrap().reported, "{}", database.kind);
        assert_eq!(current.actual_state.unwrap().bss_token(), "second");
        site.stop().await;
    }
}
