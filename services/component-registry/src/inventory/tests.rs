use super::*;

fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings);
    settings
}

#[test]
fn a_setting_that_cannot_be_used_is_named() {
    let subscribed = |settings: &mut Settings| {
        settings.inventory.driver = InventoryDriver::Hsm;
        settings.inventory.hsm.url = "https://hsm/hsm/v2".into();
        settings.inventory.notifications.subscribe = true;
        settings.inventory.notifications.webhook_url = "http://gateway/scn".into();
    };
    let rows: Vec<(&str, Settings)> = vec![
        ("inventory.lock_poll_seconds", settings(|all| all.inventory.lock_poll_seconds = 0.0)),
        ("inventory.lock_poll_seconds", settings(|all| all.inventory.lock_poll_seconds = f64::NAN)),
        ("simulator.url", settings(|all| all.simulator.url = "no address".into())),
        ("inventory.hsm.url", settings(|all| all.inventory.driver = InventoryDriver::Hsm)),
        (
            "inventory.hsm.ca_file",
            settings(|all| {
                subscribed(all);
                all.inventory.hsm.ca_file = "/nowhere/ca.pem".into();
            }),
        ),
        ("machine_file", settings(|all| all.inventory.driver = InventoryDriver::File)),
        (
            "machine_file",
            settings(|all| {
                all.inventory.driver = InventoryDriver::File;
                all.machine_file = "/nowhere/machine.toml".into();
            }),
        ),
        ("inventory.notifications.subscribe", settings(|all| all.inventory.notifications.subscribe = true)),
        (
            "inventory.notifications.subscriber",
            settings(|all| {
                subscribed(all);
                all.inventory.notifications.subscriber = String::new();
            }),
        ),
        (
            "inventory.notifications.webhook_url",
            settings(|all| {
                subscribed(all);
                all.inventory.notifications.webhook_url = "gateway/scn".into();
            }),
        ),
    ];
    for (key, settings) in rows {
        let error =
            InventorySource::new(&settings).err().map(|error| format!("{error:#}")).unwrap_or_default();
        assert!(error.starts_with(&format!("{key}: ")), "{key}: {error:?}");
    }
    assert!(InventorySource::new(&settings(subscribed)).is_ok());
}

#[test]
fn messages_are_small_and_keep_everything() {
    let hardware: Vec<_> = (0..HARDWARE + 1)
        .map(|number| Hardware { id: number.to_string(), locked: number == 7, ..Hardware::default() })
        .collect();
    let ids = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
    let group = |label: &str, count| Group { label: label.to_owned(), ids: ids(count) };
    let snapshot = InventorySnapshot::new(
        hardware.clone(),
        vec![group("none", 0), group("many", MEMBERS * 2 + 1)],
        vec![group("p", 1)],
    );
    let sizes = snapshot.parts.iter().map(|part| {
        let sets = part.groups.iter().chain(&part.partitions);
        let sets: Vec<_> = sets.map(|set| format!("{} {}", set.label, set.ids.len())).collect();
        format!("{} {}", part.hardware.len(), sets.join(", "))
    });
    assert_eq!(
        sizes.collect::<Vec<_>>(),
        ["2000 ", "1 ", "0 none 0", "0 many 5000", "0 many 5000", "0 many 1", "0 p 1"]
    );
    assert_eq!(snapshot.hardware().cloned().collect::<Vec<_>>(), hardware);
    assert_eq!(*snapshot.locked, LockedIds::from(["7".to_owned()]));
}
