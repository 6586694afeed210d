//! Lives of hosts beside a driver that does everything at once, as people describe them.

use std::{fmt::Write, sync::Arc, time::Duration};

use expect_test::{Expect, expect};

use super::{
    scene::{BEFORE, MOMENT, Scene, report_by, scene},
    show,
};
use crate::host::{
    dispatch,
    evidence::{DriverSight, DriverView, HostMoment},
    record::{
        annotations::AnnotationName,
        call::{DoneFacts, DriverAnswer, DriverCall, DriverReport},
        operation::OperationKind,
        progress::CallCarrier,
        state::HostState,
        status::OperationalStatus,
    },
    step,
};

/// Decisions after which a life is taken to have no end.
const MOST_DECISIONS: u32 = 60;

struct Life {
    scene: Scene,
    moment: HostMoment,
    trace: String,
    shown: Option<(HostState, OperationalStatus, bool)>,
}

impl Life {
    fn of(words: &str) -> Self {
        Self { scene: scene(words), moment: MOMENT, trace: String::new(), shown: None }
    }

    /// Decides until the host rests, and writes down its states and calls.
    fn rest(&mut self) {
        for _ in 0..MOST_DECISIONS {
            self.moment.now = self.moment.now.plus(Duration::from_secs(1));
            self.look();
            let Scene { host, seen, policy } = &mut self.scene;
            let decision = step(host, seen, policy, self.moment);
            *host = decision.host.clone();
            self.show();
            match &decision.call {
                Some(work) => self.answer(work.number, &work.call.clone()),
                None if decision.look == Some(self.moment.now) => {}
                None => {
                    writeln!(self.trace, "{}", decision.reason.word()).expect("a string takes every text");
                    return;
                }
            }
        }
        panic!("a life without end: {}", self.trace);
    }

    /// Changes the host as people do, and lets it come to rest.
    fn then(&mut self, words: &str, change: fn(&mut Scene)) {
        write!(self.trace, "{words}: ").expect("a string takes every text");
        change(&mut self.scene);
        self.scene.host.meta.change += 1;
        self.rest();
    }

    fn look(&mut self) {
        if let DriverSight::Known(view) = &mut self.scene.seen.driver {
            *view = DriverView { asked_at: self.moment.now, ..*view };
        }
    }

    fn show(&mut self) {
        let status = &self.scene.host.status;
        let shown = (self.scene.host.state(), status.operational, status.powered_on);
        if self.shown != Some(shown) {
            let power = if shown.2 { "on" } else { "off" };
            write!(self.trace, "[{}, {}, {power}] ", shown.0.word(), shown.1.word())
                .expect("a string takes every text");
        }
        self.shown = Some(shown);
    }

    fn answer(&mut self, number: u64, call: &DriverCall) {
        write!(self.trace, "{} ", show::call(call)).expect("a string takes every text");
        let facts = DoneFacts {
            id: Some("id".into()),
            inventory: Some(Arc::default()),
            started: call.kind() != OperationKind::Adopt,
        };
        let never_off = self.scene.host.spec.disable_power_off;
        if let DriverSight::Known(view) = &mut self.scene.seen.driver {
            match call.kind() {
                OperationKind::PowerOn | OperationKind::Provision => view.powered_on = Some(true),
                OperationKind::PowerOff | OperationKind::Deprovision => view.powered_on = Some(never_off),
                _ => {}
            }
        }
        let answer = DriverAnswer::Done(facts);
        let carrier = dispatch::carrier(call.kind(), self.scene.policy.power_carrier);
        let report = DriverReport { number, at: self.moment.now, answer };
        report_by(&mut self.scene.seen, carrier, Some(report));
    }
}

fn check(mut life: Life, expected: Expect) {
    life.trace = life.trace.trim_end().to_owned();
    expected.assert_eq(&life.trace);
}

/// Returns a life that has come to rest once.
fn lived(words: &str) -> Life {
    let mut life = Life::of(words);
    life.rest();
    life
}

#[test]
fn number_of_a_call_is_new_to_record_and_reports() {
    for (name, calls, reported, expected) in [
        ("the first call", 0, None, 1),
        ("the last one was answered", 6, Some(6), 7),
        ("the reports were lost", 6, None, 7),
        ("the reports have lost commits", 6, Some(4), 7),
        ("the record has lost commits", 4, Some(6), 7),
    ] {
        for carrier in [CallCarrier::HostProvisioner, CallCarrier::PowerController] {
            let mut scene = scene("in:provisioned has:a image:a online on reboot");
            scene.host.progress.calls = calls;
            let answer = DriverAnswer::Done(DoneFacts::default());
            let report = reported.map(|number| DriverReport { number, at: BEFORE, answer });
            report_by(&mut scene.seen, carrier, report);
            let decision = step(&scene.host, &scene.seen, &scene.policy, MOMENT);
            assert_eq!(decision.call.map(|work| work.number), Some(expected), "{name}, {carrier:?}");
        }
    }
}

#[test]
fn new_hosts_become_available() {
    check(
        lived("new bare no-address no-secret-name"),
        expect!["[, , off] [unmanaged, discovered, off] Unmanaged"],
    );
    let mut life = lived("new bare online");
    assert!(life.scene.host.status.hardware.is_some());
    assert!(!life.scene.host.status.history.inspect.is_open());
    life.then("deleted", |scene| {
        scene.host.meta.deletion = Some(crate::host::record::HostDeletion::Orderly);
    });
    check(
        life,
        expect![[r#"
        [, , off] [registering, , off] register+new-login [registering, OK, off] [inspecting, OK, off] inspect [preparing, OK, off] prepare [available, OK, off] power_on [available, OK, on] Settled
        deleted: [powering off before delete, OK, on] power_off+hard [deleting, OK, off] delete Gone"#]],
    );
    check(
        lived("new bare no-inspection"),
        expect![
            "[, , off] [registering, , off] register+new-login [registering, OK, off] [preparing, OK, off] prepare [available, OK, off] Settled"
        ],
    );
    check(
        lived("new bare external online"),
        expect![
            "[, , off] [registering, , off] register+new-login [registering, OK, off] [externally provisioned, OK, off] power_on [externally provisioned, OK, on] Settled"
        ],
    );
    check(
        lived("in:preparing external online"),
        expect![
            "[preparing, OK, off] prepare [available, OK, off] [externally provisioned, OK, off] power_on [externally provisioned, OK, on] Settled"
        ],
    );
}

#[test]
fn images_are_installed_changed_and_removed() {
    let mut life = lived("in:available online image:a custom:m");
    life.then("another image", |scene| scene.host.spec.image.as_mut().expect("one").url = "b".into());
    life.then("another checksum", |scene| {
        scene.host.spec.image.as_mut().expect("one").checksum = "other".into();
    });
    life.then("no image", |scene| {
        scene.host.spec.image = None;
        scene.host.spec.custom_deploy = None;
    });
    check(
        life,
        expect![[r#"
        [provisioning, OK, off] register provision [provisioned, OK, off] [provisioned, OK, on] Settled
        another image: [deprovisioning, OK, on] deprovision [available, OK, on] register [provisioning, OK, on] register provision [provisioned, OK, on] Settled
        another checksum: Settled
        no image: [deprovisioning, OK, on] deprovision [available, OK, on] register [available, OK, off] power_on [available, OK, on] Settled"#]],
    );
}

#[test]
fn reboots_end() {
    let mut life = lived("in:provisioned has:a image:a online on reboot");
    life.then("held off", |scene| {
        let key = Some("me".into());
        let request = crate::host::record::annotations::RebootRequest { key, ..Default::default() };
        scene.host.meta.annotations.reboots.push(request);
    });
    life.then("let go", |scene| scene.host.meta.annotations.reboots.clear());
    life.then("never off", |scene| scene.host.spec.disable_power_off = true);
    life.then("rebooted", |scene| scene.host.meta.annotations.reboots.push(Default::default()));
    assert!(!life.scene.host.meta.annotations.remove(AnnotationName::Reboot));
    check(
        life,
        expect![[r#"
        [provisioned, OK, on] power_off [provisioned, OK, off] power_on [provisioned, OK, on] Settled
        held off: power_off [provisioned, OK, off] HeldOff
        let go: power_on [provisioned, OK, on] Settled
        never off: register Settled
        rebooted: power_off Settled"#]],
    );
}

#[test]
fn firmware_changes_in_the_middle_of_a_reboot() {
    check(
        lived("in:provisioned has:a image:a online on reboot settings:changed versions:changed on-reboot"),
        expect![
            "[provisioned, OK, on] power_off [provisioned, OK, off] [provisioned, servicing, off] service+settings+versions [provisioned, OK, off] power_on [provisioned, OK, on] Settled"
        ],
    );
    check(
        lived("in:provisioned has:a image:a online on reboot settings:changed"),
        expect![
            "[provisioned, OK, on] power_off [provisioned, OK, off] power_on [provisioned, OK, on] Settled"
        ],
    );
}

#[test]
fn detached_hosts_come_back() {
    let mut life = lived("in:provisioned has:a image:a online on detached");
    life.then("back", |scene| scene.host.meta.annotations.detached = None);
    check(
        life,
        expect![[r#"
        [provisioned, OK, on] detach [provisioned, detached, on] Detached
        back: [provisioned, OK, on] register Settled"#]],
    );
}

#[test]
fn hosts_are_deleted_from_every_state() {
    for words in [
        "new bare del",
        "in:unmanaged no-address no-secret-name del",
        "in:registering secret:missing error:registration del",
        "in:available del",
        "in:available secret:missing del",
        "in:provisioned has:a image:a on online del",
        "in:provisioned has:a image:a on online never-off del",
        "in:externally-provisioned external on online del",
        "in:provisioned has:a image:a on online detached op:detached del",
    ] {
        let life = lived(words);
        assert!(life.trace.trim_end().ends_with("Gone"), "{words}: {}", life.trace);
        assert!(life.trace.contains("delete"), "{words}: {}", life.trace);
        assert!(!life.scene.host.meta.has_finalizer, "{words}");
    }
}
