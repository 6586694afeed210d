//! Readings of power, and access to BMCs.

use super::*;

const ROOT: &str = "username = 'root'\npassword = 's3cret'";

fn locked(sessions: bool) -> BmcHardware {
    BmcHardware { locked: true, sessions, ..BmcHardware::of(&["1"]) }
}

#[tokio::test]
async fn tells_the_power_that_each_bmc_shows() {
    let bmc = Double::start(BmcHardware::of(&["1", "2", "3"])).await;
    bmc.set_power("2", "On");
    bmc.set_power("3", "Paused");
    let nodes = [
        ("x1", bmc.address, &*system("1")),
        ("x2", bmc.address, &system("2")),
        ("x3", bmc.address, &system("3")),
        ("x4", bmc.address, &system("4")),
    ];
    let redfish = drive(&quick(), &nodes);
    assert_eq!(read(&redfish, "x1").await, "OFF");
    assert_eq!(read(&redfish, "x2").await, "ON");
    assert_eq!(read(&redfish, "x3").await, "UNDEFINED PowerState is 'Paused'");
    let missing = read(&redfish, "x4").await;
    assert!(missing.starts_with("UNDEFINED ") && missing.contains("There is no such system."), "{missing}");
    assert!(redfish.power(ids(&["x9"]), DEADLINE).await.is_empty(), "the machine file does not list it");
}

#[tokio::test]
async fn finds_the_only_system_of_a_bmc() {
    let (one, two) =
        (Double::start(BmcHardware::of(&["Self"])).await, Double::start(BmcHardware::of(&["a", "b"])).await);
    let none = Double::start(BmcHardware::of(&[])).await;
    let nodes = [("x1", one.address, ""), ("x2", two.address, ""), ("x3", none.address, "")];
    let redfish = drive(&quick(), &nodes);
    assert_eq!(read(&redfish, "x1").await, "OFF");
    assert_eq!(read(&redfish, "x1").await, "OFF");
    let looks = one.hardware.lock().log.iter().filter(|line| line.ends_with("/Systems")).count();
    assert_eq!(looks, 1, "looked up once");
    let many = read(&redfish, "x2").await;
    assert!(many.ends_with("has 2 systems, and no path says which"), "{many}");
    assert!(read(&redfish, "x3").await.ends_with("has no system"));
}

#[tokio::test]
async fn follows_changes_of_the_machine_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("machine.toml");
    let settings = with_credentials(&directory.path().join("bmc.toml"), ROOT);
    let (old, new) = (Double::start(locked(true)).await, Double::start(locked(true)).await);
    let (one, none) = (system("1"), Vec::new());
    let nodes = [("x1", old.address, &*one), ("x2", new.address, &one)];
    let redfish = RedfishDriver::new(machine_file(&path, &listed(&nodes[..1])), &settings).unwrap();
    assert_eq!(read(&redfish, "x1").await, "OFF");
    assert_eq!(redfish.power(ids(&["x2"]), DEADLINE).await, none);
    std::fs::write(&path, listed(&nodes)).unwrap();
    assert_eq!(read(&redfish, "x2").await, "OFF");
    assert_eq!(read(&redfish, "x1").await, "OFF");
    assert_eq!(old.asked().len(), 1, "a BMC that is listed as before keeps its session");
    std::fs::write(&path, listed(&nodes).replace("http://", "https://")).unwrap();
    assert!(read(&redfish, "x2").await.starts_with("UNDEFINED BMC b1 at "), "it has no TLS");
    std::fs::write(&path, listed(&nodes[1..])).unwrap();
    assert_eq!(redfish.power(ids(&["x1"]), DEADLINE).await, none);
}

#[tokio::test]
async fn uses_one_session_until_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let bmc = Double::start(locked(true)).await;
    let settings = with_credentials(&directory.path().join("bmc.toml"), ROOT);
    let redfish = drive(&settings, &[("x1", bmc.address, &system("1"))]);
    let begun = "POST /redfish/v1/SessionService/Sessions";
    for _ in 0..3 {
        assert_eq!(read(&redfish, "x1").await, "OFF");
    }
    assert_eq!(bmc.asked(), [begun]);
    bmc.hardware.lock().tokens.clear();
    assert_eq!(read(&redfish, "x1").await, "OFF", "a session that is over is replaced");
    assert_eq!(bmc.asked(), [begun, begun]);
    assert_eq!(bmc.hardware.lock().tokens.len(), 1);
    redfish.close(DEADLINE).await;
    assert!(bmc.hardware.lock().tokens.is_empty(), "nothing is left behind");
}

#[tokio::test]
async fn sends_the_password_where_there_are_no_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let bmc = Double::start(locked(false)).await;
    let settings = with_credentials(&directory.path().join("bmc.toml"), ROOT);
    let redfish = drive(&settings, &[("x1", bmc.address, &system("1"))]);
    assert_eq!(read(&redfish, "x1").await, "OFF");
    assert_eq!(read(&redfish, "x1").await, "OFF");
    let roots = bmc.hardware.lock().log.iter().filter(|line| line.ends_with("/v1/")).count();
    assert_eq!(roots, 1, "asked once whether it has sessions");
}

#[tokio::test]
async fn shows_a_wrong_password_once_and_never_tells_it() {
    for sessions in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bmc.toml");
        let bmc = Double::start(locked(sessions)).await;
        let settings = with_credentials(&path, "username = 'root'\npassword = 'wr0ng'");
        let redfish = drive(&settings, &[("x1", bmc.address, &system("1"))]);
        let first = read(&redfish, "x1").await;
        assert!(
            first.starts_with("UNDEFINED BMC b0 ") && first.ends_with(": wrong user name or password"),
            "{first}"
        );
        assert!(!first.contains("wr0ng"), "{first}");
        let calls = bmc.hardware.lock().log.len();
        assert_eq!(read(&redfish, "x1").await, first);
        assert_eq!(bmc.hardware.lock().log.len(), calls, "an account may be locked by wrong passwords");
        let refused = failure(act(&redfish, Action::PoweringOn, &["x1"]).await);
        assert!(refused.ends_with(": wrong user name or password"), "{refused}");
        std::fs::write(&path, ROOT).unwrap();
        assert_eq!(read(&redfish, "x1").await, "OFF", "the right one is tried at once");
    }
}

#[tokio::test]
async fn says_that_credentials_are_missing() {
    let bmc = Double::start(locked(true)).await;
    let redfish = drive(&quick(), &[("x1", bmc.address, &system("1"))]);
    let text = read(&redfish, "x1").await;
    assert!(text.starts_with("UNDEFINED BMC b0 ") && text.ends_with(": no credentials are set"), "{text}");
}

#[tokio::test]
async fn a_bmc_that_is_down_or_hangs_troubles_only_its_own_nodes() {
    let gone = Double::start(BmcHardware::of(&["1"])).await;
    let hung = Double::start(BmcHardware { hangs: true, ..BmcHardware::of(&["1", "2", "3"]) }).await;
    let fine = Double::start(BmcHardware::of(&["1"])).await;
    let (one, two, three) = (system("1"), system("2"), system("3"));
    let nodes = [
        ("x1", gone.address, &*one),
        ("x2", hung.address, &one),
        ("x3", hung.address, &two),
        ("x4", hung.address, &three),
        ("x5", fine.address, &one),
    ];
    let mut settings = quick();
    settings.redfish.calls_in_flight = 2;
    settings.redfish.answer_seconds = 2.0;
    let redfish = drive(&settings, &nodes);
    drop(gone);
    let hanging = tokio::spawn({
        let redfish = redfish.clone();
        async move { redfish.power(ids(&["x2", "x3", "x4"]), Duration::from_secs(1)).await }
    });
    while hung.hardware.lock().most_at_once == 0 {
        tokio::task::yield_now().await;
    }
    let down = read(&redfish, "x1").await;
    assert!(down.starts_with("UNDEFINED ") && down.contains("BMC b0") && down.contains("refused"), "{down}");
    assert_eq!(read(&redfish, "x5").await, "OFF");
    assert!(!hanging.is_finished(), "others do not wait for the one that hangs");
    let errors: Vec<_> = hanging.await.unwrap().into_iter().map(|(_, reading)| reading.error).collect();
    assert!(errors[0].contains("no answer within 2s"), "{errors:?}");
    assert!(errors[1].starts_with("BMC b1 was not asked within 1s"), "{errors:?}");
    assert_eq!(hung.hardware.lock().most_at_once, 1);
}

#[tokio::test]
async fn calls_no_more_bmcs_at_once_than_allowed() {
    let hung = Double::start(BmcHardware { hangs: true, ..BmcHardware::of(&["1"]) }).await;
    let fine = Double::start(BmcHardware::of(&["1"])).await;
    let one = system("1");
    let mut settings = quick();
    settings.redfish.calls_in_flight = 1;
    settings.redfish.answer_seconds = 0.5;
    let redfish = drive(&settings, &[("x1", hung.address, &one), ("x2", fine.address, &one)]);
    let readings = redfish.power(ids(&["x1", "x2"]), Duration::from_millis(200)).await;
    assert!(readings[1].1.error.starts_with("BMC b1 was not asked within 200ms"), "{readings:?}");
    assert_eq!(fine.hardware.lock().most_at_once, 0);
}
