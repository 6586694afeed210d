//! Actions, from the request to the effect.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

use Action::{PoweringOffForcefully, PoweringOffGracefully, PoweringOn};
use TaskState::Succeeded;

async fn one(hardware: BmcHardware, settings: &settings::Power) -> (Double, RedfishDriver) {
    let bmc = Double::start(hardware).await;
    let redfish = drive(settings, &[("x1", bmc.address, &system("1"))]);
    (bmc, redfish)
}

/// Returns settings with little time for the effect.
fn impatient() -> settings::Power {
    settings::Power { effect_seconds: 0.3, ..quick() }
}

#[tokio::test]
async fn switches_on_off_and_off_by_force() {
    let bmc = Double::start(BmcHardware::of(&["1", "2"])).await;
    let (one, two) = (system("1"), system("2"));
    let redfish = drive(&quick(), &[("x1", bmc.address, &one), ("x2", bmc.address, &two)]);
    for (action, power) in [
        (PoweringOn, "On"),
        (PoweringOffGracefully, "Off"),
        (PoweringOn, "On"),
        (PoweringOffForcefully, "Off"),
    ] {
        assert_eq!(act(&redfish, action, &["x1", "x2"]).await, [Succeeded, Succeeded]);
        assert_eq!((bmc.power("1"), bmc.power("2")), (power.to_owned(), power.to_owned()));
    }
    assert_eq!(act(&redfish, PoweringOffForcefully, &["x1"]).await, [Succeeded]);
    let of_one: Vec<_> = bmc.asked().into_iter().filter(|line| line.starts_with('1')).collect();
    assert_eq!(of_one, ["1: On", "1: GracefulShutdown", "1: On", "1: ForceOff"], "not what is so already");
    assert_eq!(bmc.hardware.lock().most_at_once, 1);
}

#[tokio::test]
async fn asks_only_for_what_the_bmc_takes() {
    let hardware = BmcHardware { allowable: Some(vec!["On", "ForceOff"]), ..BmcHardware::of(&["1"]) };
    let (bmc, redfish) = one(hardware, &quick()).await;
    bmc.set_power("1", "On");
    let text = failure(act(&redfish, PoweringOffGracefully, &["x1"]).await);
    assert!(text.ends_with("takes only On, ForceOff"), "{text}");
    assert_eq!(bmc.asked(), [""; 0]);

    let (bmc, redfish) = one(BmcHardware { allowable: None, ..BmcHardware::of(&["1"]) }, &quick()).await;
    assert_eq!(act(&redfish, PoweringOn, &["x1"]).await, [Succeeded]);
    assert_eq!(bmc.asked(), ["1: ForceOn"], "from the document that the system refers to");
}

#[tokio::test]
async fn a_refusal_is_told_in_the_words_of_the_bmc() {
    let answer = Some((409, redfish_error("The lid is open.")));
    let (bmc, redfish) = one(BmcHardware { answer, works: false, ..BmcHardware::of(&["1"]) }, &quick()).await;
    let states = act(&redfish, PoweringOn, &["x1"]).await;
    let [TaskState::Failed(text)] = &states[..] else { panic!("{states:?}") };
    assert!(text.contains("BMC b0") && text.contains("The lid is open."), "{text}");
    assert_eq!(bmc.asked(), ["1: On"]);
}

#[tokio::test]
async fn a_refusal_because_it_is_so_already_is_a_success() {
    let answer = Some((400, redfish_error("The server is in that state.")));
    let (_bmc, redfish) = one(BmcHardware { answer, ..BmcHardware::of(&["1"]) }, &quick()).await;
    assert_eq!(act(&redfish, PoweringOn, &["x1"]).await, [Succeeded]);
}

#[tokio::test]
async fn a_doubtful_answer_is_not_a_reason_to_ask_again() {
    let answer = Some((500, redfish_error("Internal trouble.")));
    let hardware = BmcHardware { answer: answer.clone(), ..BmcHardware::of(&["1"]) };
    let (bmc, redfish) = one(hardware, &quick()).await;
    assert_eq!(act(&redfish, PoweringOn, &["x1"]).await, [Succeeded], "it had its effect");
    assert_eq!(bmc.asked(), ["1: On"]);

    let (bmc, redfish) =
        one(BmcHardware { answer, works: false, ..BmcHardware::of(&["1"]) }, &impatient()).await;
    let text = failure(act(&redfish, PoweringOn, &["x1"]).await);
    assert!(text.contains("no effect within 300ms: PowerState is 'Off'"), "{text}");
    assert!(text.contains("Internal trouble."), "{text}");
    assert_eq!(bmc.asked(), ["1: On"]);
}

#[tokio::test]
async fn an_effect_that_does_not_come_is_a_failure() {
    let (bmc, redfish) = one(BmcHardware { works: false, ..BmcHardware::of(&["1"]) }, &impatient()).await;
    let text = "BMC b0: power on had no effect within 300ms: PowerState is 'Off'";
    assert_eq!(act(&redfish, PoweringOn, &["x1"]).await, [TaskState::TimedOut(text.to_owned())]);
    assert_eq!(bmc.asked(), ["1: On"]);
}

#[tokio::test]
async fn a_power_that_is_on_its_way_is_waited_for() {
    let (bmc, redfish) = one(BmcHardware::of(&["1"]), &quick()).await;
    bmc.set_power("1", "PoweringOff");
    let id = redfish.start(PoweringOn, ids(&["x1"]), || true);
    while bmc.hardware.lock().log.len() < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(bmc.asked(), [""; 0]);
    bmc.set_power("1", "Off");
    assert_eq!(ended(&redfish, &id).await, [Succeeded]);
}

#[tokio::test]
async fn a_bmc_that_comes_back_is_asked_then() {
    let (bmc, redfish) = one(BmcHardware::of(&["1"]), &quick()).await;
    let address = bmc.address;
    drop(bmc);
    let id = redfish.start(PoweringOn, ids(&["x1"]), || true);
    while !read(&redfish, "x1").await.contains("refused") {}
    assert!(!redfish.follow(&id).unwrap().ended);
    let bmc = Double::start_at(address, BmcHardware::of(&["1"])).await;
    assert_eq!(ended(&redfish, &id).await, [Succeeded]);
    assert_eq!(bmc.asked(), ["1: On"]);
}

#[tokio::test]
async fn a_bmc_that_stays_away_or_hangs_fails_in_time() {
    let (bmc, redfish) = one(BmcHardware::of(&["1"]), &impatient()).await;
    drop(bmc);
    let down = failure(act(&redfish, PoweringOn, &["x1"]).await);
    assert!(down.starts_with("BMC b0 could not be asked for power on within 300ms: "), "{down}");

    let mut settings = impatient();
    settings.redfish.answer_seconds = 0.2;
    let (bmc, redfish) = one(BmcHardware { hangs: true, ..BmcHardware::of(&["1"]) }, &settings).await;
    let hung = failure(act(&redfish, PoweringOn, &["x1"]).await);
    assert!(hung.contains("could not be asked") && hung.contains("no answer within 200ms"), "{hung}");
    assert_eq!(bmc.asked(), [""; 0]);
}

#[tokio::test]
async fn the_opposite_of_what_is_under_way_is_not_begun() {
    let (bmc, redfish) = one(BmcHardware { works: false, ..BmcHardware::of(&["1"]) }, &quick()).await;
    let on = redfish.start(PoweringOn, ids(&["x1"]), || true);
    let text = failure(act(&redfish, PoweringOffForcefully, &["x1"]).await);
    assert_eq!(text, "forced power off not begun: a power on is under way");
    while bmc.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    bmc.set_power("1", "On");
    assert_eq!(ended(&redfish, &on).await, [Succeeded]);
    bmc.hardware.lock().works = true;
    assert_eq!(act(&redfish, PoweringOffForcefully, &["x1"]).await, [Succeeded]);
}

#[tokio::test]
async fn given_up_action_is_in_the_way_of_no_other() {
    let (bmc, redfish) = one(BmcHardware { works: false, ..BmcHardware::of(&["1"]) }, &quick()).await;
    bmc.set_power("1", "On");
    let off = redfish.start(PoweringOffGracefully, ids(&["x1"]), || true);
    while bmc.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    redfish.give_up(&off);
    assert_eq!(redfish.follow(&off), None);
    bmc.set_power("1", "Off");
    bmc.hardware.lock().works = true;
    assert_eq!(act(&redfish, PoweringOn, &["x1"]).await, [Succeeded]);
    assert_eq!(bmc.asked(), ["1: GracefulShutdown", "1: On"]);
}

#[tokio::test]
async fn what_cannot_be_done_fails_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let file = machine_file(&directory.path().join("machine.toml"), "[[node]]\nid = 'x1'");
    let redfish = RedfishDriver::new(file, &quick()).unwrap();
    let states = act(&redfish, PoweringOn, &["x1", "x2"]).await;
    let failed = |text: &str| TaskState::Failed(text.to_owned());
    assert_eq!(
        states,
        [failed("the machine file names no BMC for the node"), failed("x2 is not in the machine file")]
    );
    assert_eq!(
        failure(act(&redfish, Action::SessionSetup, &["x1"]).await),
        "'session_setup' is not an action on power"
    );
    assert_eq!(read(&redfish, "x1").await, "UNDEFINED the machine file names no BMC for the node");
    assert_eq!(redfish.follow("of another process"), None);
}

#[test]
fn settings_that_cannot_be_used_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("machine.toml");
    let check = |settings: settings::Power| {
        let file = machine_file(&path, "[[bmc]]\nname = 'b0'\nurl = 'http://127.0.0.1:1'");
        RedfishDriver::new(file, &settings).err().map(|error| format!("{error:#}")).unwrap_or_default()
    };
    assert!(check(settings::Power { effect_seconds: -1.0, ..quick() }).starts_with("power.effect_seconds: "));
    assert!(check(settings::Power { follow_seconds: 0.0, ..quick() }).starts_with("power.follow_seconds: "));
    let encrypted = check(settings::Power { effect_seconds: 1.0, ..settings::Power::default() });
    assert!(encrypted.starts_with("BMC b0 of the machine file: url: "), "{encrypted}");
}

#[tokio::test]
async fn what_was_handed_over_is_not_asked_for_any_more() {
    let (bmc, redfish) = one(BmcHardware::of(&["1"]), &quick()).await;
    bmc.set_power("1", "PoweringOff");
    let ours = Arc::new(AtomicBool::new(true));
    let still_ours = Arc::clone(&ours);
    let id = redfish.start(PoweringOn, ids(&["x1"]), move || still_ours.load(Ordering::Relaxed));
    while bmc.hardware.lock().log.len() < 3 {
        tokio::task::yield_now().await;
    }
    assert!(!redfish.follow(&id).unwrap().ended);
    ours.store(false, Ordering::Relaxed);
    bmc.set_power("1", "Off");
    while redfish.follow(&id).is_some() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(bmc.asked(), [""; 0]);
    assert_eq!(act(&redfish, PoweringOn, &["x1"]).await, [Succeeded], "it is in nobody's way");
}
