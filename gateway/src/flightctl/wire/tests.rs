use prost_types::Timestamp;
use proto::device::{
    AgentReport, CustomInfo, Device as Record, DeviceAnnotations, DeviceCondition, DeviceMeta, DeviceSpec,
    DeviceStatus as Statuses, OsTarget, RestoreMark, StatusEntry, SystemInfo, os_target::Target,
};
use serde_json::{Value, json};

use super::device::Device;
use crate::http::extract::parse;

const REQUIRED: [&str; 11] = [
    "applications",
    "applicationsSummary",
    "conditions",
    "config",
    "integrity",
    "lifecycle",
    "os",
    "resources",
    "summary",
    "systemInfo",
    "updated",
];

fn condition(kind: &str) -> DeviceCondition {
    DeviceCondition {
        r#type: kind.into(),
        status: "True".into(),
        since: Some(Timestamp { seconds: 1, nanos: 0 }),
        ..Default::default()
    }
}

fn entry(status: &str) -> Option<StatusEntry> {
    Some(StatusEntry { status: status.into(), info: String::new() })
}

fn record() -> Record {
    let mut annotations = DeviceAnnotations { rendered_version: 6, ..Default::default() };
    annotations.set_restore_mark(RestoreMark::ConflictPaused);
    let system_info = SystemInfo {
        architecture: "arm64".into(),
        custom_info: Some(CustomInfo { facts: [("site".into(), "x".into())].into() }),
        others: [("hostname".into(), "edge".into())].into(),
        ..Default::default()
    };
    Record {
        meta: Some(DeviceMeta {
            name: "edge".into(),
            owner_fleet: "kiosk".into(),
            generation: 3,
            annotations: Some(annotations),
            ..Default::default()
        }),
        spec: Some(DeviceSpec {
            os: Some(OsTarget { target: Some(Target::Image("os:2".into())) }),
            document_json: r#"{"applications":[{"name":"till"}]}"#.into(),
            ..Default::default()
        }),
        reported: Some(AgentReport {
            conditions: vec![condition("Updating")],
            system_info: Some(system_info),
            applications_verdict: entry("Healthy"),
            os_mode: "image".into(),
            ..Default::default()
        }),
        conditions: vec![condition("SpecValid")],
        status: Some(Statuses {
            summary: entry("Online"),
            applications: entry("Degraded"),
            ..Default::default()
        }),
        revision: 41,
        ..Default::default()
    }
}

#[test]
fn every_device_has_the_eleven_members_that_clients_insist_on() {
    for record in [Record::default(), record()] {
        let shown = serde_json::to_value(Device::shown(record).unwrap()).unwrap();
        let status = shown["status"].as_object().unwrap();
        assert!(REQUIRED.iter().all(|member| status.contains_key(*member)), "{shown}");
        // Every member is read again, as clients send documents back that they have read.
        assert!(parse::<Device>(shown.to_string().as_bytes()).is_ok(), "{shown}");
    }
}

#[test]
fn records_are_shown_in_the_words_of_the_contract() {
    let shown = serde_json::to_value(Device::shown(record()).unwrap()).unwrap();
    let at = |place: &str| shown.pointer(place).cloned().unwrap_or_default();
    for (place, expected) in [
        ("/metadata/owner", json!("Fleet/kiosk")),
        ("/metadata/resourceVersion", json!("41")),
        ("/metadata/annotations/device-controller~1conflictPaused", json!("true")),
        ("/metadata/annotations/device-controller~1renderedVersion", json!("6")),
        ("/spec/os/image", json!("os:2")),
        ("/spec/applications/0/name", json!("till")),
        ("/status/conditions/0/type", json!("Updating")),
        ("/status/conditions/1/type", json!("SpecValid")),
        ("/status/summary", json!({ "status": "Online" })),
        ("/status/updated/status", json!("Unknown")),
        ("/status/systemInfo/hostname", json!("edge")),
        ("/status/systemInfo/customInfo/site", json!("x")),
        ("/status/capabilities/osMode", json!("image")),
        ("/status/lastSeen", Value::Null),
    ] {
        assert_eq!(at(place), expected, "{place}");
    }
}

#[test]
fn what_is_read_is_what_was_shown() {
    let record = record();
    let shown = Device::shown(record.clone()).unwrap();
    let spec = shown.spec.unwrap().into_record("spec").unwrap();
    assert_eq!(Some(spec), record.spec);
    let report = shown.status.unwrap().into_record().report.unwrap();
    let expected = record.reported.unwrap();
    assert_eq!(report.system_info, expected.system_info);
    assert_eq!(report.os_mode, expected.os_mode);
}
