//! The registry with a changing inventory.

use std::time::Duration;

use chassis::{Channel, Context, Fault, Settings, settings::InventoryDriver};
use proto::{
    component::{
        Component, GetComponentRequest, ListComponentsRequest, PatchComponentsRequest, PatchMany,
        PutComponentsRequest, component_service_client::ComponentServiceClient,
        patch_components_request::Selection,
    },
    inventory::{
        ListInventoryRequest, NotifyChangeRequest, inventory_service_client::InventoryServiceClient,
    },
};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;

mod collection;
mod devices;
mod events;
mod hosts;
mod presence;
mod reporting;
mod scopes;
pub(crate) mod smd;
mod staging;

use smd::{Smd, Trouble};

/// Deadline for expected events.
const PATIENCE: Duration = Duration::from_secs(150);

const N0: &str = "x1c0s0b0n0";
const N1: &str = "x1c0s0b0n1";

/// A running registry.
struct Site {
    context: Context,
    channel: Channel,
    directory: TempDir,
}

impl Site {
    /// Starts a registry with the inventory `smd` and the settings of `adjust`.
    async fn with_smd(smd: &Smd, adjust: impl FnOnce(&mut Settings)) -> Self {
        Self::start(|settings, _| {
            settings.inventory.driver = InventoryDriver::Hsm;
            settings.inventory.hsm = smd.settings();
            adjust(settings);
        })
        .await
    }

    async fn start(adjust: impl FnOnce(&mut Settings, &TempDir)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
        // Periodic polls are off in these tests, unless a test turns them on.
        settings.inventory.lock_poll_seconds = 3600.0;
        adjust(&mut settings, &directory);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let channel = chassis::plain_channel(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let context = Context::new(settings);
        crate::start(context.clone(), listener.into()).await.unwrap();
        Self { context, channel, directory }
    }

    async fn stop(self) {
        self.context.tasks.shutdown().cancel();
        self.context.tasks.finished(Duration::from_secs(5)).await.unwrap();
    }

    fn components(&self) -> ComponentServiceClient<Channel> {
        ComponentServiceClient::new(self.channel.clone())
    }

    async fn component(&self, id: &str) -> Option<Component> {
        let answer =
            self.components().get_component(GetComponentRequest { id: id.into(), scope: None }).await;
        answer.ok().and_then(|answer| answer.into_inner().component)
    }

    async fn is_locked(&self, id: &str) -> bool {
        self.component(id).await.is_some_and(|component| component.locked)
    }

    async fn patch(&self, id: &str, patch: Component) {
        let many = PatchMany { patch: Some(patch), ids: vec![id.into()], ..PatchMany::default() };
        let selection = Some(Selection::Many(many));
        let request = PatchComponentsRequest { selection, ..PatchComponentsRequest::default() };
        self.components().patch_components(request).await.unwrap();
    }

    async fn enable(&self, id: &str, enabled: bool) {
        self.patch(id, Component { enabled: Some(enabled), ..Component::default() }).await;
    }

    async fn notify(&self, ids: &[&str]) {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        let mut client = InventoryServiceClient::new(self.channel.clone());
        client.notify_change(NotifyChangeRequest { ids }).await.unwrap();
    }

    /// Returns the ids of the hardware that the registry lists.
    async fn hardware(&self) -> Result<Vec<String>, Fault> {
        let mut client = InventoryServiceClient::new(self.channel.clone());
        let mut parts =
            client.list_inventory(ListInventoryRequest {}).await.map_err(Fault::from)?.into_inner();
        let mut ids = Vec::new();
        while let Some(part) = parts.message().await.map_err(Fault::from)? {
            ids.extend(part.hardware.into_iter().map(|item| item.id));
        }
        Ok(ids)
    }

    async fn discovered(&self, id: &str) {
        eventually(async || self.component(id).await.is_some()).await;
    }
}

/// Waits until a condition holds.
async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("what was waited for did not happen");
}

#[tokio::test]
async fn nodes_become_components_with_their_locks() {
    let smd = Smd::start().await;
    smd.lists(json!([
        {"ID": N0, "Type": "Node", "Enabled": true},
        {"ID": "x1c0s0b0", "Type": "NodeBMC", "Enabled": true},
        {"ID": N1, "Type": "Node", "Enabled": true},
    ]));
    smd.lock(N1, true);
    let site = Site::with_smd(&smd, |_| {}).await;
    site.discovered(N1).await;
    let mut list =
        site.components().list_components(ListComponentsRequest::default()).await.unwrap().into_inner();
    let mut listed = Vec::new();
    while let Some(page) = list.message().await.unwrap() {
        listed.extend(page.components.into_iter().map(|one| (one.id, one.locked, one.enabled)));
    }
    assert_eq!(listed, [(N0.into(), false, Some(false)), (N1.into(), true, Some(false))]);
    assert_eq!(site.hardware().await.unwrap(), [N0, "x1c0s0b0", N1]);
    site.stop().await;
}

#[tokio::test]
async fn concurrent_callers_share_one_snapshot() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    smd.trouble("/groups", Trouble::Held);
    let site = Site::with_smd(&smd, |_| {}).await;
    // Discovery reads the inventory too.
    eventually(async || smd.count("GET /hsm/v2/groups") == 1).await;
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let channel = site.channel.clone();
            tokio::spawn(async move {
                let mut client = InventoryServiceClient::new(channel);
                client.list_inventory(ListInventoryRequest {}).await.map(drop)
            })
        })
        .collect();
    // Some calls may arrive after the release and read a snapshot of their own: all of them get time to arrive.
    tokio::time::sleep(Duration::from_millis(300)).await;
    smd.release();
    for one in asking {
        one.await.unwrap().unwrap();
    }
    let read = smd.count("GET /hsm/v2/State/Components");
    assert!(
        (2..=3).contains(&read),
        "{read} snapshots for 21 questions, the first of which was being answered"
    );
    site.stop().await;
}

#[tokio::test]
async fn an_error_is_returned_to_all_waiting_callers() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    let site = Site::with_smd(&smd, |settings| settings.inventory.hsm.total_seconds = 1.0).await;
    // Discovery has its snapshot and reads none during the test.
    site.discovered(N0).await;
    smd.trouble("/groups", Trouble::Silent);
    let first = async { site.hardware().await };
    let others = async {
        eventually(async || smd.count("GET /hsm/v2/groups") == 2).await;
        tokio::join!(site.hardware(), site.hardware(), site.hardware())
    };
    let (first, (second, third, fourth)) = tokio::join!(first, others);
    assert_eq!(smd.count("GET /hsm/v2/groups"), 2, "nobody waited for a second silence");
    for outcome in [first, second, third, fourth] {
        let Err(Fault::Unavailable { reason, .. }) = outcome else { panic!("it was listed") };
        assert!(reason.starts_with("HSM at ") && reason.contains(" (failing since "), "{reason}");
    }
    site.stop().await;
}

#[tokio::test]
async fn a_failing_inventory_is_named_with_its_error() {
    let smd = Smd::start().await;
    smd.trouble("/partitions", Trouble::Status(500));
    let site = Site::with_smd(&smd, |_| {}).await;
    let Err(Fault::Unavailable { what, reason }) = site.hardware().await else { panic!("it was listed") };
    assert_eq!(what, "inventory");
    let address = smd.url.trim_start_matches("http://").trim_end_matches("/hsm/v2");
    let begin = format!("HSM at {address} (failing since ");
    assert!(reason.starts_with(&begin) && reason.contains("on purpose"), "{reason}");
    smd.mend();
    eventually(async || site.hardware().await.is_ok()).await;
    site.stop().await;
}

#[tokio::test]
async fn locks_are_followed_while_a_component_is_enabled() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    smd.add_node(N1);
    let site = Site::with_smd(&smd, |settings| settings.inventory.lock_poll_seconds = 0.2).await;
    site.discovered(N1).await;
    let looks = || smd.count("GET /hsm/v2/locks/status");
    // The snapshot of discovery includes the locks. No component is enabled, so no poll begins, with or without a
    // hint.
    let before = looks();
    site.notify(&[N0]).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(looks(), before);

    site.enable(N0, true).await;
    eventually(async || looks() > before).await;
    smd.lock(N0, true);
    eventually(async || site.is_locked(N0).await).await;
    assert!(!site.is_locked(N1).await);

    // Locks in a direct write do not count.
    let put = Component { id: N0.into(), enabled: Some(true), ..Component::default() };
    site.components()
        .put_components(PutComponentsRequest { components: vec![put], ..Default::default() })
        .await
        .unwrap();
    assert!(site.is_locked(N0).await);
    site.patch(N1, Component { locked: true, error: Some("e".into()), ..Component::default() }).await;
    assert!(!site.is_locked(N1).await);

    // An inventory without an answer changes no locks.
    smd.trouble("/locks/status", Trouble::Status(500));
    smd.lock(N0, false);
    let before = looks();
    eventually(async || looks() > before + 1).await;
    assert!(site.is_locked(N0).await);
    smd.mend();
    // A few answers without the lock do not unlock the node.
    let before = looks();
    eventually(async || looks() > before + 2).await;
    assert!(site.is_locked(N0).await);
    eventually(async || !site.is_locked(N0).await).await;

    // One poll covers all components, and polling ends when the last one is disabled.
    site.enable(N0, false).await;
    eventually(async || {
        let before = looks();
        tokio::time::sleep(Duration::from_millis(500)).await;
        looks() == before
    })
    .await;
    site.stop().await;
}

#[tokio::test]
async fn inventory_that_lists_nothing_releases_no_lock() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    smd.lock(N0, true);
    let site = Site::with_smd(&smd, |settings| settings.inventory.lock_poll_seconds = 0.5).await;
    site.discovered(N0).await;
    site.enable(N0, true).await;
    eventually(async || site.is_locked(N0).await).await;

    // The inventory has lost all records.
    smd.lock(N0, false);
    smd.lists(json!([]));
    tokio::time::sleep(Duration::from_secs(13)).await;
    assert!(site.is_locked(N0).await);

    // The node is listed again, without its lock.
    smd.add_node(N0);
    eventually(async || !site.is_locked(N0).await).await;
    site.stop().await;
}

#[tokio::test]
async fn a_hint_triggers_polls_at_once() {
    let smd = Smd::start().await;
    smd.add_node(N0);
    let site = Site::with_smd(&smd, |_| {}).await;
    site.discovered(N0).await;
    // Discovery polls every five minutes, and locks are polled every hour.
    smd.add_node(N1);
    site.notify(&[N0, N1]).await;
    site.discovered(N1).await;

    site.enable(N0, true).await;
    let looks = || smd.count("GET /hsm/v2/locks/status");
    let before = looks();
    eventually(async || looks() > before).await;
    smd.lock(N0, true);
    let before = looks();
    for _ in 0..50 {
        site.notify(&[N0]).await;
    }
    eventually(async || site.is_locked(N0).await).await;
    assert!(looks() <= before + 2, "{} looks for one burst of hints", looks() - before);
    assert_eq!(smd.count("GET /hsm/v2/groups"), 2, "nothing was said about new nodes");
    site.stop().await;
}

#[tokio::test]
async fn exactly_one_subscription_is_kept_alive() {
    let smd = Smd::start().await;
    let other = json!({"ID": 3, "Subscriber": "hmnfd", "Url": "http://hmnfd/scn", "Enabled": true, "States": ["Off"]});
    smd.subscribe(other.clone());
    smd.subscribe(json!({"ID": 4, "Subscriber": "reveille", "Url": "http://old/scn", "Enabled": true}));
    smd.trouble("/Subscriptions/SCN", Trouble::Status(503));
    let site = Site::with_smd(&smd, |settings| {
        settings.inventory.notifications.subscribe = true;
        settings.inventory.notifications.webhook_url = "http://gateway/scn".into();
    })
    .await;
    eventually(async || smd.count("GET /hsm/v2/Subscriptions/SCN") > 1).await;
    smd.mend();
    let own = json!({"ID": 4, "Subscriber": "reveille", "Url": "http://gateway/scn", "Enabled": true,
        "States": ["Off", "On", "Populated"]});
    eventually(async || smd.subscriptions() == [other.clone(), own.clone()]).await;
    assert_eq!(smd.count("POST /hsm/v2/Subscriptions/SCN"), 1);
    assert_eq!(smd.count("DELETE /hsm/v2/Subscriptions/SCN/4"), 1);
    site.stop().await;
}

#[tokio::test]
async fn a_machine_file_is_an_inventory_too() {
    let file = |directory: &TempDir| directory.path().join("machine.toml");
    let node = |id: &str, rest: &str| format!("[[node]]\nid = \"{id}\"\n{rest}\n");
    let site = Site::start(|settings, directory| {
        settings.inventory.driver = InventoryDriver::File;
        settings.inventory.lock_poll_seconds = 0.2;
        settings.machine_file = file(directory);
        std::fs::write(&settings.machine_file, node(N0, "")).unwrap();
    })
    .await;
    site.discovered(N0).await;
    site.enable(N0, true).await;
    let locked = node(N0, "locked = true") + &node(N1, "");
    std::fs::write(file(&site.directory), locked).unwrap();
    eventually(async || site.is_locked(N0).await).await;
    site.notify(&[]).await;
    site.discovered(N1).await;

    std::fs::write(file(&site.directory), "nodes = 1").unwrap();
    let Err(Fault::Unavailable { reason, .. }) = site.hardware().await else { panic!("it was listed") };
    assert!(reason.contains("machine.toml"), "{reason}");
    assert!(site.is_locked(N0).await, "a file that cannot be read says nothing");
    site.stop().await;
}
