//! Hosts behind BMCs that take their time.

use std::sync::Arc;

use chassis::settings::HostDriverName;
use domain::host::{
    evidence::DriverView,
    record::{HostKey, annotations::RebootMode},
};
use expect_test::{Expect, expect};
use upstream::SecretText;

use super::{bmc::FakeBmc, *};
use crate::driver::{BmcLogin, HostDriver, HostTarget, WorkOrder};

/// Driver of one host, and its BMC.
pub(super) struct BmcScene {
    driver: HostDriver,
    pub(super) bmc: FakeBmc,
    pub(super) order: WorkOrder,
    story: String,
}

impl BmcScene {
    pub(super) async fn of(call: DriverCall) -> Self {
        let driver = Self::start_driver();
        let order = order(call);
        Self { driver, bmc: FakeBmc::start().await, order, story: String::new() }
    }

    fn start_driver() -> HostDriver {
        let mut settings = Settings::default();
        settings.host_operations.driver = HostDriverName::Redfish;
        settings.host_operations.redfish.answer_seconds = 0.5;
        HostDriver::new(&settings).unwrap().unwrap()
    }

    /// Replaces the driver by one that remembers nothing.
    pub(super) fn restart(&mut self) {
        self.driver = Self::start_driver();
    }

    /// Asks as the engine does, and notes the answer and the changes that the BMC was asked for.
    pub(super) async fn ask(&mut self, when: &str) {
        let host = target("h", &self.bmc);
        let answer = self.driver.carry_out(&host, &self.order).await;
        if !matches!(answer, DriverAnswer::Trouble { .. }) {
            self.order.call.asked_before.get_or_insert_with(clock::now);
        }
        let mut changes = self.bmc.take_changes();
        changes.retain(|change| change != "session");
        self.story += &format!("{when}: {} [{}]\n", show(&answer), changes.join(", "));
    }
}

/// Returns a registered host behind a BMC.
fn target(name: &str, bmc: &FakeBmc) -> HostTarget {
    HostTarget {
        key: HostKey { namespace: "m".into(), name: name.into() },
        uid: "uid-1".into(),
        driver_id: "uid-1".into(),
        address: bmc.address().into(),
        takes_any_certificate: false,
        boot_mac: None,
        disable_power_off: false,
        login: Some(BmcLogin { username: "admin".to_owned(), password: SecretText::new("password") }),
    }
}

pub(super) fn check(scene: &BmcScene, expected: Expect) {
    expected.assert_eq(&scene.story);
}

fn boot_image() -> DriverCall {
    let image =
        HostImage { url: "http://img/os.iso".into(), format: "live-iso".into(), ..Default::default() };
    DriverCall::Provision(Box::new(ProvisionCall {
        system: WantedSystem { image: Some(image), procedure: None },
        boot_mode: BootMode::Uefi,
        hints: None,
        force_reboot: false,
    }))
}

#[tokio::test]
async fn a_slow_bmc_is_asked_for_each_change_once() {
    let mut scene = BmcScene::of(boot_image()).await;
    scene.bmc.set(|bmc| bmc.works = false);
    scene.ask("empty").await;
    scene.ask("fetches the image").await;
    scene.bmc.set(|bmc| bmc.image = Some("http://img/os.iso".to_owned()));
    scene.ask("inserted").await;
    scene.ask("switches on").await;
    scene.bmc.set(|bmc| bmc.power = "PoweringOn");
    scene.ask("still").await;
    scene.bmc.set(|bmc| bmc.power = "On");
    scene.ask("on").await;
    check(
        &scene,
        expect![[r#"
            empty: in progress [POST InsertMedia]
            fetches the image: in progress []
            inserted: in progress [PATCH 1, POST ComputerSystem.Reset]
            switches on: in progress []
            still: in progress []
            on: done []
        "#]],
    );
}

#[tokio::test]
async fn an_operation_begins_once_the_power_does_not_change() {
    let off = DriverCall::PowerOff { mode: RebootMode::Hard, force: false, cleaning_disabled: false };
    let mut scene = BmcScene::of(off).await;
    scene.bmc.set(|bmc| bmc.power = "PoweringOn");
    scene.ask("switches on").await;
    scene.bmc.set(|bmc| bmc.power = "On");
    scene.ask("on").await;
    scene.ask("off").await;
    check(
        &scene,
        expect![[r#"
            switches on: trouble: Busy []
            on: in progress [POST ComputerSystem.Reset]
            off: done []
        "#]],
    );
}

#[tokio::test]
async fn an_inspection_without_an_answer_gives_no_inventory() {
    let mut scene = BmcScene::of(inspect()).await;
    scene.bmc.set(|bmc| bmc.hangs_at = "Processors");
    scene.ask("hangs").await;
    scene.bmc.set(|bmc| bmc.hangs_at = "");
    scene.ask("has no processors").await;
    check(
        &scene,
        expect![[r#"
            hangs: trouble: Unreachable []
            has no processors: done, inventory []
        "#]],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_bmcs_keep_no_listing_from_its_end() {
    let mut settings = Settings::default();
    settings.host_operations.driver = HostDriverName::Redfish;
    settings.host_operations.listing_seconds = 0.2;
    settings.host_operations.redfish.calls_in_flight = 4;
    settings.host_operations.redfish.answer_seconds = 1.0;
    let driver = HostDriver::new(&settings).unwrap().unwrap();
    let (answers, hangs) = (FakeBmc::start().await, FakeBmc::start().await);
    hangs.set(|bmc| bmc.hangs_at = "Systems");
    let hosts = ["a", "b", "c", "d", "e"].map(|name| {
        let bmc = if name == "e" { &answers } else { &hangs };
        Arc::new(target(name, bmc))
    });
    let list = async || driver.list(&hosts).await.unwrap().hosts;
    let answered = &hosts[4].key;
    let seen = async || Some(list().await).filter(|seen| seen.contains_key(answered));
    let seen = until("a host whose BMC answers", seen).await;
    assert_eq!(seen[answered].powered_on, Some(false));
    let others = seen.iter().filter(|(key, _)| *key != answered);
    assert_eq!(others.filter(|(_, view)| view.powered_on.is_some()).count(), 0);

    hangs.set(|bmc| bmc.hangs_at = "");
    let is_seen = |view: &DriverView| view.powered_on == Some(false);
    let all = async || {
        Some(list().await).filter(|seen| seen.values().filter(|view| is_seen(view)).count() == hosts.len())
    };
    until("all hosts", all).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_end_with_their_hosts_and_with_the_process() {
    let mut mesh = ProvisionerMesh::new(0.0).await;
    mesh.settings.host_operations.driver = HostDriverName::Redfish;
    mesh.start().await;
    let (gone, stays) = (FakeBmc::start().await, FakeBmc::start().await);
    for (name, bmc) in [("gone", &gone), ("stays", &stays)] {
        let mut host = host(name);
        host.spec.as_mut().unwrap().bmc.as_mut().unwrap().address = bmc.address();
        mesh.ask_about(host, 1, &register(), clock::now()).await;
        mesh.answer(name, 1).await;
    }
    mesh.registry.delete_host("gone").await;
    until("the end of a session", || async { (gone.sessions() == 0).then_some(()) }).await;
    assert_eq!((stays.sessions(), stays.take_changes()), (1, vec!["session".to_owned()]));
    mesh.stop().await;
    assert_eq!(stays.sessions(), 0);
    mesh.end().await;
}
