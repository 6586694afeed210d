use std::{sync::Arc, time::Duration};

use domain::{
    core::{
        condition::{Condition, ConditionStatus},
        time::Timestamp,
    },
    host::{
        evidence::{DriverSight, DriverView, HardwareHealth},
        record::{
            annotations::RebootMode,
            call::{
                DoneFacts, DriverAnswer, DriverCall, DriverReport, DriverTrouble, InspectCall,
                PreparationParts, PrepareCall, ProvisionCall, RamdiskImage, RegisterCall, Registration,
                ServiceCall,
            },
            condition::{ConditionKind, ConditionReason},
            history::{AttemptEnd, AttemptLog, AttemptRecord, OperationHistory, OperationTimes},
            operation::OperationKind,
            progress::{
                CallCarrier, HostProgress, HostRest, HostWait, HostWork, SlotClaim, TransientTrouble,
            },
            reason::WaitReason,
            spec::{BootMode, HostImage, InspectionMode},
            state::HostState,
            status::{
                CredentialsRecord, HostError, HostErrorKind, HostInventory, HostStatus, OperationalStatus,
                ProvisioningStatus, WantedSystem,
            },
        },
    },
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use proto::host as wire;

use super::{
    annotations, call, evidence, progress,
    record::host,
    spec::{hints, hints_to_wire, raid, raid_to_wire},
    status,
};

fn text() -> impl Strategy<Value = Arc<str>> {
    "[a-z]{0,4}".prop_map(Into::into)
}

fn at() -> impl Strategy<Value = Timestamp> {
    (-1_000_000_000_000..4_000_000_000_000_i64).prop_map(Timestamp)
}

fn image() -> impl Strategy<Value = HostImage> {
    (text(), text(), text(), text(), text()).prop_map(
        |(url, checksum, checksum_type, format, pull_secret)| HostImage {
            url,
            checksum,
            checksum_type,
            format,
            pull_secret,
        },
    )
}

fn wire_hints() -> impl Strategy<Value = wire::RootDeviceHints> {
    let text = || option::of("[a-z0-9]{0,3}");
    let texts = (text(), text(), text(), text(), text(), text(), text(), text());
    (texts, option::of(0..999_i64), option::of(any::<bool>())).prop_map(|(texts, size, rotational)| {
        let (device_name, hctl, model, vendor, serial_number, wwn, with_extension, extension) = texts;
        wire::RootDeviceHints {
            device_name,
            hctl,
            model,
            vendor,
            serial_number,
            min_size_gigabytes: size,
            wwn,
            wwn_with_extension: with_extension,
            wwn_vendor_extension: extension,
            rotational,
        }
    })
}

fn hardware_volume() -> impl Strategy<Value = wire::HardwareRaidVolume> {
    let disks = vec("[a-z0-9:]{0,4}", 0..13);
    let rest = (option::of(1..9_u32), option::of(any::<bool>()), option::of(0..999_i64));
    ("[015]", "[a-z]{0,3}", "[a-z]{0,3}", disks, rest).prop_map(|(level, name, controller, disks, rest)| {
        wire::HardwareRaidVolume {
            level,
            name,
            number_of_physical_disks: rest.0,
            physical_disks: disks,
            controller,
            rotational: rest.1,
            size_gibibytes: rest.2,
        }
    })
}

fn wire_raid() -> impl Strategy<Value = wire::RaidConfig> {
    let software = ("[01]", vec(wire_hints(), 0..13), any::<bool>(), option::of(0..999_i64)).prop_map(
        |(level, physical_disks, root_volume, size_gibibytes)| wire::SoftwareRaidVolume {
            level,
            physical_disks,
            root_volume,
            size_gibibytes,
        },
    );
    let hardware = option::of(vec(hardware_volume(), 0..3));
    (hardware, option::of(vec(software, 0..3))).prop_map(|(hardware, software)| wire::RaidConfig {
        hardware: hardware.map(|volumes| wire::HardwareRaidVolumes { volumes }),
        software: software.map(|volumes| wire::SoftwareRaidVolumes { volumes }),
    })
}

fn system() -> impl Strategy<Value = WantedSystem> {
    (option::of(image()), option::of(text())).prop_map(|(image, procedure)| WantedSystem { image, procedure })
}

fn inventory() -> impl Strategy<Value = Arc<HostInventory>> {
    (text(), text()).prop_map(|(architecture, details)| Arc::new(HostInventory { architecture, details }))
}

fn times() -> impl Strategy<Value = OperationTimes> {
    (option::of(at()), option::of(at())).prop_map(|(start, end)| OperationTimes { start, end })
}

fn provisioning() -> impl Strategy<Value = ProvisioningStatus> {
    let applied = (option::of(wire_hints()), option::of(wire_raid()));
    let rest = (option::of(image()), option::of(text()), option::of(select(&BootMode::ALL[..])));
    (select(&HostState::ALL[..]), text(), rest, applied).prop_map(|(state, id, rest, applied)| {
        let (image, custom_deploy, boot_mode) = rest;
        let (root_device_hints, raid_volumes) = applied;
        ProvisioningStatus {
            state,
            id,
            image,
            custom_deploy,
            boot_mode,
            root_device_hints: root_device_hints.as_ref().map(hints),
            raid: raid_volumes.as_ref().map(raid),
        }
    })
}

fn condition() -> impl Strategy<Value = Condition<ConditionKind, ConditionReason>> {
    let status = select(&ConditionStatus::ALL[..]);
    (select(&ConditionKind::ALL[..]), status, select(&ConditionReason::ALL[..]), at())
        .prop_map(|(kind, status, reason, since)| Condition { kind, status, reason, since })
}

fn any_status() -> impl Strategy<Value = HostStatus> {
    let error = (select(&HostErrorKind::ALL[..]), text()).prop_map(|(kind, text)| HostError { kind, text });
    let login =
        || option::of((text(), text()).prop_map(|(name, version)| CredentialsRecord { name, version }));
    let counts = (any::<u32>(), any::<u32>(), any::<bool>(), option::of(at()));
    let known = (option::of(system()), text(), option::of(inventory()), provisioning());
    let history = (times(), times(), times(), times());
    let head = (select(&OperationalStatus::ALL[..]), option::of(error), counts, known);
    (head, login(), login(), history, vec(condition(), 0..4)).prop_map(
        |((operational, error, counts, known), good, tried, history, conditions)| HostStatus {
            operational,
            error,
            error_count: counts.0,
            provisioning_fail_count: counts.1,
            last_attempt: known.0,
            last_updated: counts.3,
            hardware_profile: known.1,
            hardware: known.2,
            powered_on: counts.2,
            provisioning: known.3,
            good_credentials: good,
            tried_credentials: tried,
            history: OperationHistory {
                register: history.0,
                inspect: history.1,
                provision: history.2,
                deprovision: history.3,
            },
            conditions,
        },
    )
}

fn registration() -> impl Strategy<Value = Registration> {
    let ramdisk =
        (text(), text()).prop_map(|(url, network_version)| Arc::new(RamdiskImage { url, network_version }));
    let modes = (select(&BootMode::ALL[..]), select(&InspectionMode::ALL[..]));
    let kept = (option::of(text()), option::of(image()), option::of(ramdisk));
    (text(), modes, kept, any::<[bool; 4]>()).prop_map(|(address, modes, kept, flags)| Registration {
        address,
        disable_certificate_verification: flags[0],
        boot_mac: kept.0,
        boot_mode: modes.0,
        cleaning_disabled: flags[1],
        image: kept.1,
        has_procedure: flags[2],
        disable_power_off: flags[3],
        ramdisk: kept.2,
        inspection: modes.1,
    })
}

fn parts() -> impl Strategy<Value = PreparationParts> {
    any::<[bool; 3]>().prop_map(|[storage, settings, components]| PreparationParts {
        storage,
        settings,
        components,
    })
}

fn driver_call() -> impl Strategy<Value = DriverCall> {
    let register = (registration(), select(&HostState::ALL[..]), select(&OperationalStatus::ALL[..]), text())
        .prop_map(|(registration, state, operational, architecture)| {
            DriverCall::Register(Box::new(RegisterCall {
                registration,
                state,
                operational,
                architecture,
                credentials_changed: true,
                restart: false,
            }))
        });
    let inspect = (select(&BootMode::ALL[..]), select(&InspectionMode::ALL[..]), text(), any::<[bool; 3]>())
        .prop_map(|(boot_mode, mode, architecture, [restart, refresh, force_reboot])| {
            DriverCall::Inspect(InspectCall { boot_mode, mode, architecture, restart, refresh, force_reboot })
        });
    let raids = (option::of(wire_raid()), option::of(wire_raid()), option::of(wire_hints()));
    let prepare = (raids, parts(), any::<[bool; 2]>()).prop_map(|(raids, parts, [unprepared, restart])| {
        DriverCall::Prepare(Box::new(PrepareCall {
            target_raid: raids.0.as_ref().map(raid),
            actual_raid: raids.1.as_ref().map(raid),
            hints: raids.2.as_ref().map(hints),
            parts,
            unprepared,
            restart,
        }))
    });
    let provision = (system(), select(&BootMode::ALL[..]), option::of(wire_hints()), any::<bool>()).prop_map(
        |(system, boot_mode, disk, force_reboot)| {
            let hints = disk.as_ref().map(hints);
            DriverCall::Provision(Box::new(ProvisionCall { system, boot_mode, hints, force_reboot }))
        },
    );
    prop_oneof![register, inspect, prepare, provision, plain_call()]
}

fn plain_call() -> impl Strategy<Value = DriverCall> {
    (0..10, any::<[bool; 3]>(), parts(), select(&HostState::ALL[..]), text()).prop_map(
        |(kind, [restart, hard, cleaning_disabled], parts, state, url)| match kind {
            0 => DriverCall::Service(ServiceCall { parts, restart }),
            1 => DriverCall::Adopt { state, restart },
            2 => DriverCall::Deprovision { restart, cleaning_disabled },
            3 => DriverCall::PowerOn { force: restart },
            4 | 5 => {
                let mode = if hard { RebootMode::Hard } else { RebootMode::Soft };
                DriverCall::PowerOff { mode, force: restart, cleaning_disabled }
            }
            6 => DriverCall::Detach { force: restart },
            7 => DriverCall::Delete,
            8 => DriverCall::AttachDataImage { url },
            _ => DriverCall::DetachDataImage,
        },
    )
}

fn reason() -> impl Strategy<Value = WaitReason> {
    select(&WaitReason::ALL[..])
}

fn attempts() -> impl Strategy<Value = AttemptLog> {
    use AttemptEnd::{Done, Failed, NotRegistered, Refused, Replaced};
    let end = option::of((at(), select(vec![Done, Failed, NotRegistered, Refused, Replaced])));
    let attempt = (select(&OperationKind::ALL[..]), at(), end)
        .prop_map(|(operation, start, end)| AttemptRecord { operation, start, end });
    vec(attempt, 0..4).prop_map(AttemptLog::of)
}

fn slot() -> impl Strategy<Value = SlotClaim> {
    (0..4, at()).prop_map(|(kind, since)| match kind {
        0 => SlotClaim::Nothing,
        1 => SlotClaim::Waiting { since },
        2 => SlotClaim::Aside { since },
        _ => SlotClaim::Held,
    })
}

fn any_progress() -> impl Strategy<Value = HostProgress> {
    let carrier = select(vec![CallCarrier::HostProvisioner, CallCarrier::PowerController]);
    let work = (any::<u64>(), driver_call(), at(), carrier, parts(), any::<u64>(), any::<bool>()).prop_map(
        |(number, call, since, carrier, parts, changed_by, is_accepted)| HostWork {
            number,
            call,
            since,
            carrier,
            parts,
            changed_by,
            is_accepted,
        },
    );
    let trouble = (reason(), text(), any::<u64>(), at(), any::<u32>(), at()).prop_map(
        |(reason, text, number, at, attempts, retry_at)| TransientTrouble {
            reason,
            text,
            number,
            at,
            attempts,
            retry_at,
        },
    );
    let rest = (reason(), option::of(at()), any::<u64>()).prop_map(|(reason, until, change)| HostRest {
        reason,
        until,
        change,
    });
    let wait = (reason(), at(), option::of(at())).prop_map(|(reason, since, until)| HostWait {
        reason,
        since,
        until,
    });
    let times = (option::of(at()), option::of(at()), option::of(at()));
    let waits = (option::of(trouble), option::of(rest), option::of(wait), slot());
    let counts = (any::<u64>(), any::<u32>(), any::<bool>(), option::of(text()));
    (counts, option::of(work), option::of(registration()), times, waits, attempts()).prop_map(
        |(counts, work, registered, times, (trouble, rest, wait, slot), attempts)| HostProgress {
            calls: counts.0,
            work,
            registered,
            answered_at: times.0,
            firmware_changed_at: times.1,
            interrupted_at: times.2,
            trouble,
            rest,
            wait,
            slot,
            boots_without_slot: counts.2,
            network_secret: counts.3,
            data_image_failures: counts.1,
            attempts,
        },
    )
}

fn driver_sight() -> impl Strategy<Value = DriverSight> {
    use HardwareHealth::{Critical, Healthy, Unknown, Warning};
    let health = option::of(select(vec![Healthy, Warning, Critical, Unknown]));
    let view = (at(), option::of(any::<bool>()), health, any::<[bool; 5]>()).prop_map(
        |(asked_at, powered_on, health, flags)| {
            DriverSight::Known(DriverView {
                asked_at,
                powered_on,
                has_power_failure: flags[0],
                health,
                needs_adoption: flags[1],
                is_busy: flags[2],
                boots_without_slot: flags[3],
                wants_ramdisk: flags[4],
            })
        },
    );
    let absent = at().prop_map(|asked_at| DriverSight::Absent { asked_at });
    prop_oneof![Just(DriverSight::Unlisted), Just(DriverSight::NotReady), absent, view]
}

fn driver_report() -> impl Strategy<Value = DriverReport> {
    let done = (option::of(text()), option::of(inventory()), any::<bool>())
        .prop_map(|(id, inventory, started)| DriverAnswer::Done(DoneFacts { id, inventory, started }));
    let running = (0..9_999_999_u64, any::<bool>()).prop_map(|(again_in, started)| {
        DriverAnswer::InProgress { again_in: Duration::from_millis(again_in), started }
    });
    let other = (0..6, text()).prop_map(|(kind, text)| match kind {
        0 => DriverAnswer::Failed { text },
        1 => DriverAnswer::NotRegistered,
        2 => DriverAnswer::NeedsSlot,
        3 => DriverAnswer::NeedsRamdisk,
        4 => DriverAnswer::Trouble { kind: DriverTrouble::Busy, text },
        _ => DriverAnswer::Trouble { kind: DriverTrouble::Unreachable, text },
    });
    (any::<u64>(), at(), prop_oneof![done, running, other]).prop_map(|(number, at, answer)| DriverReport {
        number,
        at,
        answer,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn storage_wishes_survive_the_rules(volumes in wire_raid(), disk in wire_hints()) {
        prop_assert_eq!(raid_to_wire(&raid(&volumes)), volumes);
        prop_assert_eq!(hints_to_wire(&hints(&disk)), disk);
    }

    #[test]
    fn status_survives_the_wire(known in any_status()) {
        prop_assert_eq!(status::from_wire(&status::to_wire(&known)), Ok(known));
    }

    #[test]
    fn progress_survives_the_wire(known in any_progress()) {
        prop_assert_eq!(progress::from_wire(&progress::to_wire(&known)), Ok(known));
    }

    #[test]
    fn call_survives_the_wire(asked in driver_call()) {
        prop_assert_eq!(call::from_wire(&call::to_wire(&asked)), Ok(asked));
    }

    #[test]
    fn news_of_drivers_survive_the_wire(seen in driver_sight(), report in driver_report()) {
        prop_assert_eq!(evidence::sight(Some(&evidence::sight_to_wire(&seen))), seen);
        prop_assert_eq!(evidence::report(&evidence::report_to_wire(&report)), Ok(report));
    }
}

#[test]
fn annotations_are_read_from_their_texts() {
    let rows = [
        ("baremetalhost.metal3.io/paused", "", "paused: true"),
        ("baremetalhost.metal3.io/detached", "yes", "delays_deletion: false"),
        ("baremetalhost.metal3.io/detached", r#"{"force":true}"#, "force: true"),
        ("baremetalhost.metal3.io/detached", r#"{"deleteAction":"delay"}"#, "delays_deletion: true"),
        ("reboot.metal3.io", "", "key: None, mode: Soft, force: false, is_unreadable: false"),
        ("reboot.metal3.io", r#"{"mode":"hard"}"#, "mode: Hard"),
        ("reboot.metal3.io/me", r#"{"force":true}"#, r#"key: Some("me"), mode: Soft, force: true"#),
        ("reboot.metal3.io", "now", "is_unreadable: true"),
        ("inspect.metal3.io", "", "inspect: Some(Again)"),
        ("inspect.metal3.io", "disabled", "inspect: Some(Disabled)"),
        ("inspect.metal3.io/hardwaredetails", r#"{"cpu":{"arch":"arm"}}"#, r#"architecture: "arm""#),
        (
            "inspect.metal3.io/hardwaredetails",
            r#"{"cpu":{"colour":"red"}}"#,
            "hardware_details: Some(Err(UnreadableText))",
        ),
        ("inspect.metal3.io/hardwaredetails", "[]", "hardware_details: Some(Err(UnreadableText))"),
        ("other", "", "inspect: None"),
    ];
    for (name, text, expected) in rows {
        let annotations = [(name.to_owned(), text.to_owned())].into();
        let read = format!("{:?}", annotations::from_wire(&annotations));
        assert!(read.contains(expected), "{name}={text}: {read}");
    }
}

#[test]
fn marks_of_a_node_are_read_from_their_texts() {
    let read = |annotations: &[(&str, &str)], group: &str| {
        let pair = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let meta = wire::ObjectMeta {
            annotations: annotations.iter().map(pair).collect(),
            labels: [("reveille.io/group".to_owned(), group.to_owned())].into(),
            ..wire::ObjectMeta::default()
        };
        let marks = annotations::node_marks(&meta);
        format!("{:?} {:?} {:?}", marks.xname, marks.nid, marks.group)
    };
    assert_eq!(read(&[], ""), "None None None");
    let full = [("reveille.io/xname", "x1c0s0b0n0"), ("reveille.io/nid", "7")];
    assert_eq!(read(&full, "blue"), r#"Some("x1c0s0b0n0") Some(Ok(7)) Some("blue")"#);
    assert_eq!(read(&[("reveille.io/nid", "seven")], ""), "None Some(Err(UnreadableText)) None");
}

#[test]
fn status_is_restored_from_the_form_of_the_contract() {
    let text = r#"{"operationalStatus":"OK","errorMessage":"","errorCount":2,"provisioningFailCount":0,
        "lastUpdated":"2025-01-01T00:20:00Z","hardwareProfile":"unknown","poweredOn":true,
        "hardware":{"cpu":{"arch":"x86_64"}},
        "provisioning":{"state":"provisioned","ID":"7ab3","bootMode":"UEFI","image":{"url":"http://a/b","checksum":"c"},
            "rootDeviceHints":{"deviceName":"/dev/sda"},"raid":{"hardwareRAIDVolumes":null,"softwareRAIDVolumes":[]}},
        "goodCredentials":{"credentials":{"name":"login","namespace":"m"},"credentialsVersion":"77"},
        "triedCredentials":{},
        "operationHistory":{"register":{"start":"2025-01-01T00:00:01Z","end":null}},
        "conditions":[{"type":"Ready","status":"True","reason":"Provisioned","message":"",
            "lastTransitionTime":"2025-01-01T00:18:00Z"}]}"#;
    let read = |text: &str| {
        let annotations = [("baremetalhost.metal3.io/status".to_owned(), text.to_owned())].into();
        annotations::from_wire(&annotations).status.unwrap().ok().map(|status| *status)
    };
    let status = read(text).unwrap();
    assert_eq!(status.provisioning.state, HostState::Provisioned);
    assert_eq!(status.provisioning.raid.as_ref().unwrap().software, Some(Vec::new()));
    assert_eq!((status.error_count, status.conditions.len()), (2, 1));
    assert_eq!(status.last_updated, Some(Timestamp(1_735_690_800_000)));
    assert_eq!(status.history.register.start, Some(Timestamp(1_735_689_601_000)));
    assert_eq!((status.good_credentials.is_some(), status.tried_credentials), (true, None));
    for (known, unknown) in [("errorCount", "errors"), ("provisioned", "installed"), ("2025-01", "new-01")] {
        assert_eq!(read(&text.replace(known, unknown)), None, "{unknown}");
    }
}

#[test]
fn host_with_an_unknown_word_names_its_field() {
    let spec = wire::HostSpec { boot_mode: "bios".to_owned(), ..wire::HostSpec::default() };
    let record = wire::Host { spec: Some(spec), ..wire::Host::default() };
    let refused = host(&record).map_err(|invalid| invalid.to_string());
    assert_eq!(refused.err().as_deref(), Some("spec.bootMode: 'bios' is unknown"));
}
