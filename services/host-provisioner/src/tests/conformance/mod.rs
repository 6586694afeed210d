//! The contract of drivers, as every driver keeps it.

pub(super) mod emulator;
pub(super) mod ironic;

use std::{collections::BTreeMap, sync::Arc};

use chassis::settings::{HostDriverName, IronicBackendSettings};
use domain::host::{
    firmware::reading::{FirmwareComponent, FirmwareReading, FirmwareUpdate, FirmwareWishes},
    record::{
        HostKey,
        annotations::RebootMode,
        call::{DoneFacts, DriverTrouble, PrepareCall},
        spec::InspectionMode,
        status::HostInventory,
    },
};
use expect_test::{Expect, expect};
use upstream::SecretText;

use super::*;
use crate::driver::{BmcLogin, FirmwareOrder, HostDriver, HostTarget, WorkOrder};
use emulator::RedfishEmulator;
use ironic::IronicServer;

/// Driver with a backend for one host.
struct DriverSubject {
    settings: Settings,
    driver: HostDriver,
    address: String,
    image: String,
    /// Id of the host at the driver.
    driver_id: Arc<str>,
    /// Whether the backend knows no ramdisk, so that it cannot clean, and inspects hosts by their BMC.
    has_no_ramdisk: bool,
    /// Returns the operations that the backend has begun, as far as it counts them.
    begun: Box<dyn Fn() -> Vec<String> + Send + Sync>,
}

impl DriverSubject {
    fn new(
        settings: Settings,
        address: &str,
        image: &str,
        begun: impl Fn() -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let driver = HostDriver::new(&settings).unwrap().unwrap();
        let (address, image) = (address.to_owned(), image.to_owned());
        let begun = Box::new(begun);
        Self { settings, driver, address, image, driver_id: "".into(), has_no_ramdisk: false, begun }
    }

    /// Forgets everything that the driver keeps in memory, as a restart does.
    fn restart(&mut self) {
        self.driver = HostDriver::new(&self.settings).unwrap().unwrap();
    }

    fn target(&self, password: &str) -> HostTarget {
        HostTarget {
            key: HostKey { namespace: "m".into(), name: "h".into() },
            uid: "uid-1".into(),
            driver_id: Arc::clone(&self.driver_id),
            address: self.address.as_str().into(),
            takes_any_certificate: false,
            boot_mac: Some("00:5c:52:31:00:01".into()),
            disable_power_off: false,
            login: Some(BmcLogin { username: "admin".to_owned(), password: SecretText::new(password) }),
        }
    }

    /// Asks once.
    async fn ask(&self, host: &HostTarget, order: &WorkOrder) -> DriverAnswer {
        self.driver.carry_out(host, order).await
    }

    /// Asks until the operation is over, twice each time, and after a restart once: nothing may begin twice.
    async fn carry_out(&mut self, call: DriverCall) -> DriverAnswer {
        let host = self.target("password");
        self.carry_out_on(&host, call).await
    }

    async fn carry_out_on(&mut self, host: &HostTarget, call: DriverCall) -> DriverAnswer {
        self.carry_out_order(host, order(call)).await
    }

    /// Prepares the host with that firmware.
    async fn prepare(&mut self, firmware: FirmwareOrder) -> DriverAnswer {
        let parts = PreparationParts {
            storage: false,
            settings: !firmware.wishes.settings.is_empty(),
            components: !firmware.wishes.updates.is_empty(),
        };
        let call = PrepareCall {
            target_raid: None,
            actual_raid: None,
            hints: None,
            parts,
            unprepared: true,
            restart: false,
        };
        let order = WorkOrder { firmware, ..order(DriverCall::Prepare(Box::new(call))) };
        self.carry_out_order(&self.target("password"), order).await
    }

    async fn carry_out_order(&mut self, host: &HostTarget, mut order: WorkOrder) -> DriverAnswer {
        let mut answer = self.ask(host, &order).await;
        order.call.asked_before = Some(clock::now());
        self.restart();
        while is_open(&answer) {
            tokio::time::sleep(Duration::from_millis(300)).await;
            self.ask(host, &order).await;
            answer = self.ask(host, &order).await;
        }
        answer
    }

    fn register(&self) -> DriverCall {
        let DriverCall::Register(mut call) = register() else { panic!("another call") };
        call.registration.cleaning_disabled = self.has_no_ramdisk;
        DriverCall::Register(call)
    }

    fn inspect(&self) -> DriverCall {
        let DriverCall::Inspect(mut call) = inspect() else { panic!("another call") };
        call.mode = if self.has_no_ramdisk { InspectionMode::Fast } else { InspectionMode::Agent };
        DriverCall::Inspect(call)
    }

    async fn power(&self) -> Option<bool> {
        let host = self.target("password");
        let key = host.key.clone();
        let listing = self.driver.list(&[Arc::new(host)]).await.unwrap();
        listing.hosts.get(&key)?.powered_on
    }
}

/// Returns whether the operation is asked about again. A backend may be busy with the host for other reasons.
fn is_open(answer: &DriverAnswer) -> bool {
    matches!(
        answer,
        DriverAnswer::InProgress { .. } | DriverAnswer::Trouble { kind: DriverTrouble::Busy, .. }
    )
}

/// Begins of `text` that tell what it is about, without the names that differ.
fn kind_of_failure(answer: &DriverAnswer) -> &'static str {
    match answer {
        DriverAnswer::Failed { text } if text.contains("wrong user name or password") => "wrong login",
        DriverAnswer::Failed { .. } => "failed",
        DriverAnswer::Done(_) => "done",
        DriverAnswer::InProgress { .. }
        | DriverAnswer::NotRegistered
        | DriverAnswer::NeedsSlot
        | DriverAnswer::NeedsRamdisk
        | DriverAnswer::Trouble { .. } => "something else",
    }
}

fn inventory_of(answer: &DriverAnswer) -> String {
    let DriverAnswer::Done(facts) = answer else { return format!("{answer:?}") };
    let HostInventory { architecture, details } = facts.inventory.as_deref().unwrap();
    let details: serde_json::Value = serde_json::from_str(details).unwrap();
    let count = |list: &str| details[list].as_array().map_or(0, Vec::len);
    let has = |value: &serde_json::Value| value.as_u64().is_some_and(|number| number > 0);
    format!(
        "{architecture}, CPUs {}, memory {}, {} NICs, {} disks",
        has(&details["cpu"]["count"]),
        has(&details["ramMebibytes"]),
        count("nics").min(1),
        count("storage").min(1),
    )
}

/// Changes a setting and a version as far as the backend offers that, and describes what was seen.
async fn change_firmware(subject: &mut DriverSubject, note: &mut impl FnMut(&str, &str)) {
    let host = subject.target("password");
    let read = subject.driver.read_firmware(&host, true).await.unwrap();
    note("firmware", &firmware_of(&read));
    if read.settings.is_some() {
        let settings = BTreeMap::from([("ProcTurboMode".into(), "Disabled".into())]);
        let wishes = FirmwareWishes { settings, ..FirmwareWishes::default() };
        let order = FirmwareOrder { wishes, ..FirmwareOrder::default() };
        for what in ["settings", "settings again"] {
            let answer = subject.prepare(order.clone()).await;
            let now = subject.driver.read_firmware(&host, false).await.unwrap().settings.unwrap_or_default();
            note(what, &format!("{}, {}", show(&answer), now.values["ProcTurboMode"]));
        }
    }
    // An Ironic changes versions from a ramdisk alone.
    if let Some(known) = read.components.filter(|_| !subject.has_no_ramdisk) {
        let update = FirmwareUpdate { component: "bios".into(), url: subject.image.as_str().into() };
        let wishes = FirmwareWishes { updates: vec![update], ..FirmwareWishes::default() };
        let answer = subject.prepare(FirmwareOrder { wishes, known }).await;
        let now = subject.driver.read_firmware(&host, false).await.unwrap();
        note("update", &format!("{}, {}", show(&answer), firmware_of(&now)));
    }
}

fn firmware_of(reading: &FirmwareReading) -> String {
    let settings = reading.settings.as_ref().map_or_else(
        || "no settings".to_owned(),
        |settings| {
            let rule = settings.rules.as_ref().and_then(|rules| rules.get("ProcTurboMode"));
            let allowed = rule.map_or("no rule".to_owned(), |rule| format!("{:?}", rule.allowed));
            format!("{} settings, {allowed}", settings.values.len())
        },
    );
    let components = reading.components.as_ref().map_or_else(
        || "no updates".to_owned(),
        |components| {
            let one = |one: &FirmwareComponent| format!("{} {}", one.name, one.version);
            components.iter().map(one).collect::<Vec<_>>().join(" ")
        },
    );
    format!("{settings}, {components}")
}

/// Walks a host through its life, and compares what was seen.
async fn conforms(mut subject: DriverSubject, dead: &str, expected: Expect) {
    let mut seen = String::new();
    let mut note = |what: &str, answer: &str| seen += &format!("{what}: {answer}\n");
    let unreachable = HostTarget { address: dead.into(), ..subject.target("password") };
    let [register, inspect] = [subject.register(), subject.inspect()];
    note("dead BMC", kind_of_failure(&subject.carry_out_on(&unreachable, register.clone()).await));
    let stranger = subject.target("guess");
    note("wrong password", kind_of_failure(&subject.carry_out_on(&stranger, register.clone()).await));
    let registered = subject.carry_out(register).await;
    note("register", &show(&registered));
    let DriverAnswer::Done(DoneFacts { id: Some(id), .. }) = registered else { panic!("no id") };
    subject.driver_id = id;
    note("inspect", &inventory_of(&subject.carry_out(inspect).await));
    change_firmware(&mut subject, &mut note).await;
    let image =
        HostImage { url: subject.image.as_str().into(), format: "live-iso".into(), ..HostImage::default() };
    let provision = DriverCall::Provision(Box::new(ProvisionCall {
        system: WantedSystem { image: Some(image), procedure: None },
        boot_mode: BootMode::Uefi,
        hints: None,
        force_reboot: false,
    }));
    let off = |mode| DriverCall::PowerOff { mode, force: false, cleaning_disabled: false };
    let on = || DriverCall::PowerOn { force: false };
    let deprovision = DriverCall::Deprovision { restart: false, cleaning_disabled: subject.has_no_ramdisk };
    for (what, call) in [
        ("power on", on()),
        ("power on again", on()),
        ("soft power off", off(RebootMode::Soft)),
        ("provision", provision),
        ("hard power off", off(RebootMode::Hard)),
        ("deprovision", deprovision),
        ("delete", DriverCall::Delete),
        ("delete again", DriverCall::Delete),
    ] {
        let answer = show(&subject.carry_out(call).await);
        let power = subject.power().await.map_or("", |is_on| if is_on { ", on" } else { ", off" });
        note(what, &format!("{answer}{power}"));
    }
    note("begun", &(subject.begun)().join(" "));
    expected.assert_eq(&seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn simulated_driver_conforms() {
    let mesh = ProvisionerMesh::new(0.001).await;
    let rack = mesh.rack.clone();
    let begun = move || {
        let word = |operation: &proto::simulation::RackOperation| {
            operation.as_str_name().trim_start_matches("RACK_OPERATION_").to_lowercase()
        };
        rack.begun("m/h").iter().map(word).collect()
    };
    let subject = DriverSubject::new(
        mesh.settings.clone(),
        "redfish-virtualmedia://h.bmc/redfish/v1/Systems/1",
        "http://img/live.iso",
        begun,
    );
    conforms(
        subject,
        "redfish://nobody/redfish/v1/Systems/1",
        expect![[r#"
            dead BMC: failed
            wrong password: wrong login
            register: done, id
            inspect: x86_64, CPUs true, memory true, 1 NICs, 1 disks
            firmware: no settings, no updates
            power on: done, on
            power on again: done, on
            soft power off: done, off
            provision: done, on
            hard power off: done, off
            deprovision: done, off
            delete: done
            delete again: done
            begun: register inspect power_on power_on soft_power_off provision hard_power_off deprovision delete
        "#]],
    )
    .await;
    mesh.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redfish_driver_conforms() {
    let Some(emulator) = RedfishEmulator::start().await else {
        eprintln!("not tested: the emulator of BMCs is missing, which integration-tests/run installs");
        return;
    };
    let mut settings = Settings::default();
    settings.host_operations.driver = HostDriverName::Redfish;
    let address = format!("redfish-virtualmedia+http://{}{}", emulator.authority, emulator::SYSTEM);
    let image = emulator.image.clone();
    let subject = DriverSubject::new(settings, &address, &image, move || emulator.resets());
    conforms(
        subject,
        "redfish+http://127.0.0.1:9/redfish/v1/Systems/1",
        expect![[r#"
            dead BMC: failed
            wrong password: wrong login
            register: done, id
            inspect: x86_64, CPUs true, memory true, 1 NICs, 1 disks
            firmware: 3 settings, ["Enabled", "Disabled"], bios 1.0.0 bmc 1.00
            settings: done, Disabled
            settings again: done, Disabled
            update: done, 3 settings, no rule, bios 1.1.0 bmc 1.00
            power on: done, on
            power on again: done, on
            soft power off: done, off
            provision: done, on
            hard power off: done, off
            deprovision: done, off
            delete: done, off
            delete again: done, off
            begun: On ForceOff On GracefulShutdown On ForceOff
        "#]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ironic_driver_conforms() {
    let Some(emulator) = RedfishEmulator::start().await else {
        eprintln!("not tested: the emulator of BMCs is missing, which integration-tests/run installs");
        return;
    };
    let images = emulator.image.trim_end_matches("/live.iso").to_owned();
    let Some(ironic) = IronicServer::start(&images).await else {
        eprintln!("not tested: Ironic is missing, which integration-tests/run installs");
        return;
    };
    let mut settings = Settings::default();
    settings.host_operations.driver = HostDriverName::Ironic;
    settings.host_operations.ironic.calls.plain_http = true;
    let backend = IronicBackendSettings { url: ironic.url.clone(), ..Default::default() };
    settings.host_operations.ironic.backends.insert("one".to_owned(), backend);
    let address = format!("redfish-virtualmedia+http://{}{}", emulator.authority, emulator::SYSTEM);
    let image = emulator.image.clone();
    let mut subject = DriverSubject::new(settings, &address, &image, move || emulator.resets());
    subject.has_no_ramdisk = true;
    conforms(
        subject,
        "redfish-virtualmedia+http://127.0.0.1:9/redfish/v1/Systems/1",
        expect![[r#"
            dead BMC: failed
            wrong password: failed
            register: done, id
            inspect: x86_64, CPUs true, memory true, 1 NICs, 1 disks
            firmware: 3 settings, ["Enabled", "Disabled"], bios 1.0.0 bmc 1.00
            settings: done, Disabled
            settings again: done, Disabled
            power on: done, on
            power on again: done, on
            soft power off: done, off
            provision: done, on
            hard power off: done, off
            deprovision: done, off
            delete: done
            delete again: done
            begun: On GracefulShutdown On ForceOff
        "#]],
    )
    .await;
}

/// Fake hardware of an Ironic takes every step, and shows the settings that it was given.
#[tokio::test(flavor = "multi_thread")]
async fn ironic_changes_firmware_by_cleaning_steps() {
    let Some(ironic) = IronicServer::start("http://127.0.0.1:9").await else {
        eprintln!("not tested: Ironic is missing, which integration-tests/run installs");
        return;
    };
    let mut settings = Settings::default();
    settings.host_operations.driver = HostDriverName::Ironic;
    settings.host_operations.ironic.calls.plain_http = true;
    settings.host_operations.ironic.hardware = "fake-hardware".to_owned();
    let backend = IronicBackendSettings { url: ironic.url.clone(), ..Default::default() };
    settings.host_operations.ironic.backends.insert("one".to_owned(), backend);
    let mut subject = DriverSubject::new(settings, "redfish://h.bmc/redfish/v1/Systems/1", "", Vec::new);
    subject.has_no_ramdisk = true;
    let register = subject.register();
    let DriverAnswer::Done(DoneFacts { id: Some(id), .. }) = subject.carry_out(register).await else {
        panic!("not registered");
    };
    subject.driver_id = id;
    let host = subject.target("password");
    let read = subject.driver.read_firmware(&host, true).await.unwrap();
    assert_eq!(firmware_of(&read), "no settings, no updates");
    let wishes = FirmwareWishes {
        settings: BTreeMap::from([("ProcTurboMode".into(), "Disabled".into())]),
        updates: vec![FirmwareUpdate { component: "bios".into(), url: "http://i/b".into() }],
    };
    let answer = subject.prepare(FirmwareOrder { wishes, known: Vec::new() }).await;
    assert_eq!(show(&answer), "done");
    let read = subject.driver.read_firmware(&host, true).await.unwrap().settings.unwrap();
    assert_eq!(read.values["ProcTurboMode"], "Disabled".into());
}
