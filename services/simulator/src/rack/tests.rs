use expect_test::expect;

use super::*;

fn rack(speed: f64, faults: &str) -> SimulatedRack {
    SimulatedRack::new(RackBlueprint {
        timing: RackTiming::new(speed).unwrap(),
        faults: faults.parse().unwrap(),
        seed: 1,
        username: "admin".to_owned(),
        password: "password".to_owned(),
    })
}

fn request(name: &str, operation: RackOperation, id: &str) -> OperateRackHostRequest {
    OperateRackHostRequest {
        name: name.to_owned(),
        operation: operation.into(),
        operation_id: id.to_owned(),
        username: "admin".to_owned(),
        password: "password".to_owned(),
        image: "http://img/os".to_owned(),
        ..OperateRackHostRequest::default()
    }
}

fn show(response: OperateRackHostResponse) -> String {
    match response.outcome.unwrap() {
        Outcome::Done(done) if done.inventory.is_empty() => "done".to_owned(),
        Outcome::Done(done) => format!("done, {} with {} bytes", done.architecture, done.inventory.len()),
        Outcome::Running(running) => format!("running for {}", running.remaining_millis / 1000),
        Outcome::Failure(text) => format!("failed: {text}"),
        Outcome::Unknown(RackUnknown {}) => "unknown".to_owned(),
        Outcome::Busy(busy) => format!("busy: {}", busy.operation),
    }
}

/// Asks for operations, each at its second, and shows the answers and the host.
fn story(rack: &mut SimulatedRack, name: &str, steps: &[(u64, RackOperation, &str)]) -> String {
    let mut lines = String::new();
    for (second, operation, id) in steps {
        let now = Duration::from_secs(*second);
        let answer = show(rack.operate(&request(name, *operation, id), now));
        let host = rack.list(now).into_iter().next();
        let power = match host.as_ref().map(|host| host.powered_on) {
            None => "gone",
            Some(None) => "?",
            Some(Some(true)) => "on",
            Some(Some(false)) => "off",
        };
        lines += &format!("{second} {} {id}: {answer} ({power})\n", operation.as_str_name());
    }
    lines + &format!("begun: {}\n", rack.begun(name).len())
}

#[test]
fn an_operation_is_begun_once_for_its_id() {
    use RackOperation::{Delete, Deprovision, HardPowerOff, Inspect, PowerOn, Provision, Register};
    let lines = story(
        &mut rack(1.0, ""),
        "m/h",
        &[
            (0, PowerOn, "a"),
            (0, Register, "b"),
            (1, Register, "b"),
            (10, Register, "b"),
            (10, Inspect, "c"),
            (11, Inspect, "c"),
            (12, Provision, "d"),
            (13, Register, "e"),
            (500, Inspect, "c"),
            (501, Provision, "d"),
            (502, HardPowerOff, "f"),
            (2000, Provision, "d"),
            (2001, Deprovision, "g"),
            (3000, Deprovision, "g"),
            (3001, Delete, "h"),
            (3010, Delete, "h"),
            (3011, Delete, "h"),
        ],
    );
    expect![[r#"
        0 RACK_OPERATION_POWER_ON a: unknown (gone)
        0 RACK_OPERATION_REGISTER b: running for 4 (off)
        1 RACK_OPERATION_REGISTER b: running for 3 (off)
        10 RACK_OPERATION_REGISTER b: done (off)
        10 RACK_OPERATION_INSPECT c: running for 330 (off)
        11 RACK_OPERATION_INSPECT c: running for 329 (off)
        12 RACK_OPERATION_PROVISION d: busy: RACK_OPERATION_INSPECT (off)
        13 RACK_OPERATION_REGISTER e: done (off)
        500 RACK_OPERATION_INSPECT c: done, x86_64 with 974 bytes (off)
        501 RACK_OPERATION_PROVISION d: running for 412 (off)
        502 RACK_OPERATION_HARD_POWER_OFF f: busy: RACK_OPERATION_PROVISION (off)
        2000 RACK_OPERATION_PROVISION d: done (on)
        2001 RACK_OPERATION_DEPROVISION g: running for 165 (on)
        3000 RACK_OPERATION_DEPROVISION g: done (off)
        3001 RACK_OPERATION_DELETE h: running for 1 (off)
        3010 RACK_OPERATION_DELETE h: done (gone)
        3011 RACK_OPERATION_DELETE h: done (gone)
        begun: 5
    "#]]
    .assert_eq(&lines);
}

#[test]
fn a_rack_without_delay_is_done_at_once_and_faults_are_named() {
    use RackOperation::{HardPowerOff, Inspect, PowerOn, Register, SoftPowerOff};
    let steps = [
        (0, Register, "a"),
        (0, Inspect, "b"),
        (0, PowerOn, "c"),
        (0, SoftPowerOff, "d"),
        (0, HardPowerOff, "e"),
    ];
    let lines: Vec<_> = ["m/h", "m/dead-bmc", "m/fails-inspection", "m/h7", "m/stuck-inspecting"]
        .map(|name| format!("{name}\n{}", story(&mut rack(0.0, "ignores-soft-power-off=h7"), name, &steps)))
        .into();
    expect![[r#"
        m/h
        0 RACK_OPERATION_REGISTER a: done (off)
        0 RACK_OPERATION_INSPECT b: done, x86_64 with 974 bytes (off)
        0 RACK_OPERATION_POWER_ON c: done (on)
        0 RACK_OPERATION_SOFT_POWER_OFF d: done (off)
        0 RACK_OPERATION_HARD_POWER_OFF e: done (off)
        begun: 5
        m/dead-bmc
        0 RACK_OPERATION_REGISTER a: failed: the BMC does not answer (gone)
        0 RACK_OPERATION_INSPECT b: unknown (gone)
        0 RACK_OPERATION_POWER_ON c: unknown (gone)
        0 RACK_OPERATION_SOFT_POWER_OFF d: unknown (gone)
        0 RACK_OPERATION_HARD_POWER_OFF e: unknown (gone)
        begun: 0
        m/fails-inspection
        0 RACK_OPERATION_REGISTER a: done (off)
        0 RACK_OPERATION_INSPECT b: failed: the ramdisk reported no inventory (off)
        0 RACK_OPERATION_POWER_ON c: done (on)
        0 RACK_OPERATION_SOFT_POWER_OFF d: done (off)
        0 RACK_OPERATION_HARD_POWER_OFF e: done (off)
        begun: 5
        m/h7
        0 RACK_OPERATION_REGISTER a: done (off)
        0 RACK_OPERATION_INSPECT b: done, x86_64 with 841 bytes (off)
        0 RACK_OPERATION_POWER_ON c: done (on)
        0 RACK_OPERATION_SOFT_POWER_OFF d: failed: the system did not shut down in time (on)
        0 RACK_OPERATION_HARD_POWER_OFF e: done (off)
        begun: 5
        m/stuck-inspecting
        0 RACK_OPERATION_REGISTER a: done (off)
        0 RACK_OPERATION_INSPECT b: running for 60 (off)
        0 RACK_OPERATION_POWER_ON c: busy: RACK_OPERATION_INSPECT (off)
        0 RACK_OPERATION_SOFT_POWER_OFF d: busy: RACK_OPERATION_INSPECT (off)
        0 RACK_OPERATION_HARD_POWER_OFF e: done (off)
        begun: 3
    "#]]
    .assert_eq(&lines.concat());
}

#[test]
fn faults_that_cannot_be_read_are_refused() {
    let text = "dead=h".parse::<RackFaults>().unwrap_err().to_string();
    expect![[r#""dead=h" is not a list such as dead-bmc=rack-7,fails-power=node-12; the faults are dead-bmc, wrong-password, fails-inspection, stuck-inspecting, fails-preparing, fails-provisioning, stuck-provisioning, fails-deprovisioning, fails-power, ignores-soft-power-off"#]].assert_eq(&text);
}

#[test]
fn a_host_that_is_a_node_has_the_power_of_the_node() {
    let mut rack = rack(0.0, "");
    let now = Duration::ZERO;
    let registered = OperateRackHostRequest {
        address: "redfish://bmc/redfish/v1/Systems/x1".to_owned(),
        ..request("m/h", RackOperation::Register, "a")
    };
    rack.operate(&registered, now);
    let mut switched = String::new();
    for (power, operation, id) in [
        (false, RackOperation::PowerOn, "b"),
        (false, RackOperation::PowerOn, "b"),
        (true, RackOperation::PowerOn, "b"),
        (true, RackOperation::SoftPowerOff, "c"),
        (true, RackOperation::HardPowerOff, "d"),
        (false, RackOperation::HardPowerOff, "d"),
        (true, RackOperation::HardPowerOff, "d"),
    ] {
        rack.follow_nodes(|node| (node == "x1").then_some(power));
        let answer = show(rack.operate(&request("m/h", operation, id), now));
        let is_on = rack.list(now)[0].powered_on.unwrap();
        switched += &format!("{id}: {answer}, on: {is_on}, {:?}\n", rack.take_orders());
    }
    expect![[r#"
        b: running for 0, on: false, [("x1", On)]
        b: running for 0, on: false, []
        b: done, on: true, []
        c: running for 0, on: true, [("x1", SoftOff)]
        d: running for 0, on: true, [("x1", ForceOff)]
        d: done, on: false, []
        d: done, on: true, []
    "#]]
    .assert_eq(&switched);
}
