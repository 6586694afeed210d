//! Presence of enabled nodes in the inventory, and precedence of decisions about them.

use proto::component::{
    AssignSessionRequest, Assignment, DecisionVersion, InventoryListing, InventoryPresence, Phase,
    ReportStatusesRequest, StatusReport, report_service_client::ReportServiceClient,
};

use super::*;

const QUERY: &str = "POST /hsm/v2/State/Components/Query";

impl Site {
    async fn presence(&self, id: &str) -> InventoryPresence {
        self.component(id).await.and_then(|component| component.presence).unwrap_or_default()
    }

    /// Waits for that presence in the record.
    pub(super) async fn until(&self, id: &str, listing: InventoryListing) {
        eventually(async || self.presence(id).await.listing() == listing).await;
    }

    fn reports(&self) -> ReportServiceClient<Channel> {
        ReportServiceClient::new(self.channel.clone())
    }

    /// Puts an enabled component directly.
    async fn put_enabled(&self, id: &str) {
        let put = Component { id: id.into(), enabled: Some(true), ..Component::default() };
        let request = PutComponentsRequest { components: vec![put], ..PutComponentsRequest::default() };
        self.components().put_components(request).await.unwrap();
    }

    async fn assign(&self, id: &str) {
        let assignment = Assignment {
            ids: vec![id.into()],
            boot_artifacts: Some(proto::component::BootArtifacts::default()),
            ..Assignment::default()
        };
        let request = AssignSessionRequest {
            assignment_id: "a1".into(),
            session: "s1".into(),
            assignments: vec![assignment],
            ..AssignSessionRequest::default()
        };
        self.reports().assign_session(request).await.unwrap();
    }
}

#[tokio::test]
async fn enabled_node_is_queried_by_its_id() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    let site = Site::with_smd(&smd, |_| {}).await;
    site.discovered(N0).await;
    let listings = smd.count("GET /hsm/v2/State/Components");
    assert_eq!(site.presence(N0).await, InventoryPresence::default(), "nobody acts on it");
    site.enable(N0, true).await;
    site.until(N0, InventoryListing::Listed).await;
    // The node was removed meanwhile, and is enabled again.
    smd.lists(json!([{"ID": N1, "Type": "Node"}]));
    site.enable(N0, true).await;
    site.until(N0, InventoryListing::Doubtful).await;
    let looks = (smd.count(QUERY), smd.count("GET /hsm/v2/State/Components"));
    assert_eq!(looks, (2, listings + 1), "only an answer with nobody is compared with the whole inventory");
    site.stop().await;
}

#[tokio::test]
async fn unlisted_node_goes_on_once_it_is_listed() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    let site = Site::with_smd(&smd, |_| {}).await;
    site.discovered(N0).await;
    site.put_enabled(N1).await;
    site.until(N1, InventoryListing::Doubtful).await;
    smd.add_node(N1);
    site.notify(&[]).await;
    site.until(N1, InventoryListing::Listed).await;
    site.stop().await;
}

#[tokio::test]
async fn node_that_leaves_while_it_is_enabled_is_missed_in_the_next_round() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    smd.add_node(N1);
    let site = Site::with_smd(&smd, |settings| settings.inventory.lock_poll_seconds = 0.3).await;
    site.discovered(N1).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(smd.count(QUERY), 0, "nobody is enabled");

    site.enable(N0, true).await;
    site.enable(N1, true).await;
    site.until(N0, InventoryListing::Listed).await;
    site.until(N1, InventoryListing::Listed).await;
    let (began, before) = (tokio::time::Instant::now(), smd.count(QUERY));
    eventually(async || smd.count(QUERY) >= before + 3).await;
    let rounds = began.elapsed().as_secs_f64() / 0.3 + 1.0;
    let asked = smd.count(QUERY) - before;
    assert!(asked as f64 <= rounds + 1.0, "{asked} queries in {rounds} rounds about two nodes");

    smd.trouble("/State/Components/Query", Trouble::Status(503));
    let listings = smd.count("GET /hsm/v2/State/Components");
    smd.lists(json!([{"ID": N1, "Type": "Node"}]));
    let silent = smd.count(QUERY);
    eventually(async || smd.count(QUERY) > silent + 1).await;
    assert_eq!(site.presence(N0).await.listing(), InventoryListing::Listed, "silence says nothing");
    smd.mend();
    site.until(N0, InventoryListing::Doubtful).await;
    assert_eq!(site.presence(N1).await.listing(), InventoryListing::Listed);
    assert_eq!(smd.count("GET /hsm/v2/State/Components"), listings, "nothing was listed as a whole");
    site.stop().await;
}

#[tokio::test]
async fn inventory_that_lists_nothing_at_all_is_not_believed() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    smd.add_node(N1);
    let site = Site::with_smd(&smd, |settings| settings.inventory.lock_poll_seconds = 0.3).await;
    site.discovered(N1).await;
    for id in [N0, N1] {
        site.enable(id, true).await;
        site.until(id, InventoryListing::Listed).await;
    }
    smd.lists(json!([]));
    let before = smd.count(QUERY);
    eventually(async || smd.count(QUERY) >= before + 3).await;
    for id in [N0, N1] {
        assert_eq!(site.presence(id).await.listing(), InventoryListing::Listed, "{id}");
    }
    smd.lists(json!([{"ID": "x9c0s0b0n0", "Type": "Node"}]));
    for id in [N0, N1] {
        site.until(id, InventoryListing::Doubtful).await;
    }
    site.stop().await;
}

#[tokio::test]
async fn node_that_leaves_the_machine_file_is_missed_with_the_next_look_at_locks() {
    let node = |id: &str| format!("[[node]]\nid = \"{id}\"\n");
    let site = Site::start(|settings, directory| {
        settings.inventory.driver = InventoryDriver::File;
        settings.inventory.lock_poll_seconds = 0.2;
        settings.machine_file = directory.path().join("machine.toml");
        std::fs::write(&settings.machine_file, node(N0) + &node(N1)).unwrap();
    })
    .await;
    site.discovered(N0).await;
    site.enable(N0, true).await;
    site.until(N0, InventoryListing::Listed).await;
    std::fs::write(site.directory.path().join("machine.toml"), node(N1)).unwrap();
    site.until(N0, InventoryListing::Doubtful).await;
    site.stop().await;
}

#[tokio::test]
async fn silent_inventory_is_waited_for_by_name() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    let site = Site::with_smd(&smd, |_| {}).await;
    site.discovered(N0).await;
    smd.trouble("/State/Components/Query", Trouble::Status(503));
    site.enable(N0, true).await;
    eventually(async || !site.presence(N0).await.trouble.is_empty()).await;
    let presence = site.presence(N0).await;
    assert_eq!(presence.listing(), InventoryListing::Unspecified);
    assert!(presence.trouble.starts_with("waiting for HSM at "), "{}", presence.trouble);
    smd.mend();
    site.until(N0, InventoryListing::Listed).await;
    site.stop().await;
}

#[tokio::test]
async fn refused_query_delays_no_node() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    let site = Site::with_smd(&smd, |_| {}).await;
    site.discovered(N0).await;
    smd.trouble("/State/Components/Query", Trouble::Status(400));
    site.enable(N0, true).await;
    site.until(N0, InventoryListing::Listed).await;
    site.stop().await;
}

#[tokio::test]
async fn a_partial_listing_puts_missing_components_in_doubt() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    let site = Site::with_smd(&smd, |_| {}).await;
    site.discovered(N0).await;
    site.enable(N0, true).await;
    site.until(N0, InventoryListing::Listed).await;
    let listed = site.component(N0).await.unwrap();
    smd.lists(json!([]));
    site.hardware().await.unwrap();
    smd.lists(json!([{"ID": N0, "Type": "Node"}, {"ID": N1, "Type": "Node"}]));
    site.notify(&[]).await;
    site.discovered(N1).await;
    assert_eq!(site.component(N0).await.unwrap(), listed);
    smd.lists(json!([{"ID": N1, "Type": "Node"}]));
    site.hardware().await.unwrap();
    site.until(N0, InventoryListing::Doubtful).await;
    site.stop().await;
}

#[tokio::test]
async fn members_of_a_session_are_listed_by_its_read() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    let site = Site::with_smd(&smd, |_| {}).await;
    site.discovered(N0).await;
    site.put_enabled(N1).await;
    site.until(N1, InventoryListing::Doubtful).await;
    let asked = smd.count(QUERY);
    site.hardware().await.unwrap();
    site.assign(N0).await;
    assert_eq!(site.presence(N0).await.listing(), InventoryListing::Listed);
    assert_eq!(smd.count(QUERY), asked);
    site.stop().await;
}

#[tokio::test]
async fn older_rules_leave_newer_decisions_alone() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    let site = Site::with_smd(&smd, |_| {}).await;
    site.discovered(N0).await;
    site.enable(N0, true).await;
    site.until(N0, InventoryListing::Listed).await;
    let report = async |rules, phase: Phase| {
        let revision = site.component(N0).await.unwrap().revision;
        let decided_by = Some(DecisionVersion { rules, options_revision: 1 });
        let report =
            StatusReport { id: N0.into(), revision, phase: phase.into(), decided_by, ..Default::default() };
        let request = ReportStatusesRequest { reports: vec![report] };
        site.reports().report_statuses(request).await.unwrap().into_inner().stale_ids
    };
    assert!(report(7, Phase::PoweringOn).await.is_empty());
    assert_eq!(report(6, Phase::PoweringOff).await, [N0]);
    assert_eq!(report(0, Phase::PoweringOff).await, [N0]);
    // The target is set again.
    site.enable(N0, true).await;
    site.until(N0, InventoryListing::Listed).await;
    assert!(report(6, Phase::PoweringOff).await.is_empty());
    site.stop().await;
}
