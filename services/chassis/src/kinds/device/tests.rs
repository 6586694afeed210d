use std::fmt::Write as _;

use domain::device::{
    record::{name::DeviceName, status::SummaryStatus},
    report::StatusDocument,
};
use expect_test::expect;
use proto::device::{DeviceFilter, StatusEntry, os_target::Target};

use super::{selection::DeviceSelection, *};
use crate::mesh::time;

fn entry(status: &str) -> Option<StatusEntry> {
    Some(StatusEntry { status: status.to_owned(), info: format!("{status} it is") })
}

fn condition(kind: &str, status: &str) -> wire::DeviceCondition {
    wire::DeviceCondition {
        r#type: kind.to_owned(),
        status: status.to_owned(),
        reason: "ApplyingUpdate".to_owned(),
        message: "half done".to_owned(),
        since: Some(time::to_wire(Timestamp(7))),
        observed_generation: Some(3),
    }
}

fn report() -> wire::AgentReport {
    let facts = [("hostname".to_owned(), "edge-7".to_owned())];
    wire::AgentReport {
        conditions: vec![condition("Updating", "True")],
        system_info: Some(wire::SystemInfo {
            architecture: "arm64".to_owned(),
            boot_id: "b-1".to_owned(),
            operating_system: "linux".to_owned(),
            agent_version: "v1".to_owned(),
            custom_info: Some(wire::CustomInfo { facts: facts.clone().into() }),
            others: facts.into(),
        }),
        applications: vec![wire::ApplicationReport {
            name: "till".to_owned(),
            status: "Running".to_owned(),
            ready: "1/1".to_owned(),
            restarts: 2,
            embedded: true,
            app_type: "compose".to_owned(),
            run_as: "root".to_owned(),
            volumes: vec![wire::ApplicationVolume { name: "data".to_owned(), reference: "v".to_owned() }],
        }],
        applications_verdict: entry("Healthy"),
        resources: Some(wire::DeviceResources {
            cpu: "Warning".to_owned(),
            memory: "Healthy".to_owned(),
            disk: "Unknown".to_owned(),
        }),
        integrity: Some(wire::DeviceIntegrity {
            overall: entry("Verified"),
            last_verified: Some(time::to_wire(Timestamp(9))),
            device_identity: entry("Failed"),
            tpm: None,
        }),
        rendered_version: "6".to_owned(),
        os: Some(wire::RunningOs { image: "os:2".to_owned(), image_digest: "sha256:0".to_owned() }),
        systemd_json: "[]".to_owned(),
        os_mode: "image".to_owned(),
    }
}

fn message(name: &str) -> wire::Device {
    let labels =
        [("alias", "till"), ("site", "north")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    wire::Device {
        meta: Some(wire::DeviceMeta {
            name: name.to_owned(),
            labels: labels.into(),
            annotations: Some(wire::DeviceAnnotations {
                rendered_version: 6,
                rendered_spec_hash: "cafe".to_owned(),
                restore_mark: wire::RestoreMark::ConflictPaused.into(),
                template_version: "v2".to_owned(),
                rendered_template_version: "v1".to_owned(),
                last_rollout_error: "no label".to_owned(),
            }),
            owner_fleet: "kiosk".to_owned(),
            generation: 4,
            created_at: Some(time::to_wire(Timestamp(5))),
        }),
        spec: Some(wire::DeviceSpec {
            os: Some(wire::OsTarget { target: Some(Target::Image("os:2".to_owned())) }),
            decommissioning: "Unenroll".to_owned(),
            document_json: "{\"config\":[]}".to_owned(),
        }),
        reported: Some(report()),
        conditions: vec![condition("SpecValid", "False")],
        status: Some(wire::DeviceStatus {
            summary: entry("ConflictPaused"),
            updated: entry("OutOfDate"),
            applications: entry("Healthy"),
            lifecycle: entry("Enrolled"),
        }),
        revision: 12,
        last_event: 11,
    }
}

#[test]
fn devices_survive_the_wire() {
    let sent = message("edge-7");
    let record = DeviceRecord::from_wire(sent.clone(), &mut Interner::default()).unwrap();
    assert_eq!(*record.to_wire(), sent);
    assert_eq!((record.key(), record.revision(), record.last_event()), ("edge-7", 12, 11));
    let new = DeviceRecord::of(
        Device::new(DeviceName::parse("a").unwrap(), Timestamp(1)),
        &mut Interner::default(),
    );
    assert_eq!(DeviceRecord::from_wire(new.to_wire().into_owned(), &mut Interner::default()).unwrap(), new);
}

#[test]
fn equal_texts_of_devices_are_one() {
    let mut texts = Interner::default();
    let mut read = |name: &str| DeviceRecord::from_wire(message(name), &mut texts).unwrap().device;
    let (one, other) = (read("a"), read("b"));
    assert!(Arc::ptr_eq(&one.reported.os.image, &other.reported.os.image));
    assert!(Arc::ptr_eq(&one.spec.document, &other.spec.document));
}

#[test]
fn refusals_name_the_field() {
    let mut rows = String::new();
    let mut try_report = |change: &dyn Fn(&mut wire::AgentReport)| {
        let mut report = report();
        change(&mut report);
        let document = wire::StatusDocument { report: Some(report), lifecycle: None };
        let refused = report::document_from_wire(document, &mut Interner::default()).unwrap_err();
        writeln!(rows, "{refused}").unwrap();
    };
    try_report(&|report| report.conditions.push(condition("Updating", "False")));
    try_report(&|report| report.conditions = vec![condition("Sleeping", "False")]);
    try_report(&|report| report.conditions = vec![condition("Updating", "Maybe")]);
    try_report(&|report| report.applications[0].status = "Napping".to_owned());
    try_report(&|report| report.applications[0].app_type = String::new());
    try_report(&|report| report.applications_verdict = entry("Fine"));
    try_report(&|report| report.resources.as_mut().unwrap().disk = "Full".to_owned());
    try_report(&|report| report.integrity.as_mut().unwrap().tpm = entry("Broken"));
    try_report(&|report| report.os_mode = "floppy".to_owned());
    let lifecycle = wire::StatusDocument { report: None, lifecycle: entry("Reborn") };
    let refused = report::document_from_wire(lifecycle, &mut Interner::default()).unwrap_err();
    writeln!(rows, "{refused}").unwrap();
    for document in ["[]", "{", "{\"os\":{}}", "{\"decommissioning\":{}}"] {
        let spec = wire::DeviceSpec { document_json: document.to_owned(), ..wire::DeviceSpec::default() };
        writeln!(rows, "{}", spec::written(spec, &mut Interner::default()).unwrap_err()).unwrap();
    }
    let os = |target| wire::DeviceSpec { os: Some(wire::OsTarget { target }), ..wire::DeviceSpec::default() };
    for target in [Target::Image(String::new()), Target::CatalogItem(wire::CatalogItem::default())] {
        writeln!(rows, "{}", spec::written(os(Some(target)), &mut Interner::default()).unwrap_err()).unwrap();
    }
    expect![[r#"
        status.conditions: has two conditions of the type 'Updating'
        status.conditions.type: 'Sleeping' is not a word of the contract
        status.conditions.status: 'Maybe' is not a word of the contract
        status.applications.status: 'Napping' is not a word of the contract
        status.applications.appType: '' is not a word of the contract
        status.applicationsSummary.status: 'Fine' is not a word of the contract
        status.resources.disk: 'Full' is not a word of the contract
        status.integrity.tpm.status: 'Broken' is not a word of the contract
        status.capabilities.osMode: 'floppy' is not a word of the contract
        status.lifecycle.status: 'Reborn' is not a word of the contract
        spec: is no JSON object: invalid type: sequence, expected a map at line 1 column 0
        spec: is no JSON object: EOF while parsing an object at line 1 column 1
        spec.os: stands in the rest of the document
        spec.decommissioning: stands in the rest of the document
        spec.os.image: is empty
        spec.os.catalogItemRef.catalog: is empty
    "#]]
    .assert_eq(&rows);
}

#[test]
fn equal_specs_have_equal_texts() {
    let read = |document: &str| {
        let spec = wire::DeviceSpec { document_json: document.to_owned(), ..wire::DeviceSpec::default() };
        spec::written(spec, &mut Interner::default()).unwrap().document
    };
    assert_eq!(read("{\"b\": 1, \"a\": {\"d\": 2, \"c\": 3}}"), read("{\"a\":{\"c\":3,\"d\":2},\"b\":1}"));
    assert_eq!(read("{ }"), read(""));
}

#[test]
fn index_finds_every_device_that_is_selected() {
    let filter = |labels: &str, fields: &str| {
        let filter = DeviceFilter { label_selector: labels.to_owned(), field_selector: fields.to_owned() };
        DeviceSelection::parse(Some(&filter)).unwrap()
    };
    let record = DeviceRecord::from_wire(message("edge-7"), &mut Interner::default()).unwrap();
    let meets = |condition: &crate::store::ledger::OneOf| {
        condition.iter().any(|(name, value)| record.facets().any(|facet| facet == (*name, value.as_str())))
    };
    let mut rows = String::new();
    for (labels, fields) in [
        ("", ""),
        ("site=north", ""),
        ("site in (north, south)", ""),
        ("site", ""),
        ("site=south", ""),
        ("!site", ""),
        ("site!=south", ""),
        ("", "metadata.name in (edge-7, edge-8)"),
        ("", "metadata.alias=till"),
        ("", "metadata.owner=Fleet/kiosk"),
        ("", "metadata.owner=kiosk"),
        ("site", "status.summary.status in (Online, ConflictPaused)"),
        ("", "status.updated.status=OutOfDate,status.lifecycle.status!=Unknown"),
        ("", "status.capabilities.osMode=package"),
    ] {
        let selection = filter(labels, fields);
        let (names, conditions) = (selection.names(), selection.conditions());
        let is_found = conditions.iter().all(meets) && (names.is_empty() || names.contains("edge-7"));
        let is_selected = selection.matches(&record);
        assert!(is_found || !is_selected, "{labels} {fields}");
        writeln!(rows, "'{labels}' '{fields}': {is_selected}, {} names, {conditions:?}", names.len())
            .unwrap();
    }
    expect![[r#"
        '' '': true, 0 names, []
        'site=north' '': true, 0 names, [[("label", "site=north")]]
        'site in (north, south)' '': true, 0 names, [[("label", "site=north"), ("label", "site=south")]]
        'site' '': true, 0 names, [[("label", "site")]]
        'site=south' '': false, 0 names, [[("label", "site=south")]]
        '!site' '': false, 0 names, []
        'site!=south' '': true, 0 names, []
        '' 'metadata.name in (edge-7, edge-8)': true, 2 names, []
        '' 'metadata.alias=till': true, 0 names, [[("label", "alias=till")]]
        '' 'metadata.owner=Fleet/kiosk': true, 0 names, [[("metadata.owner", "kiosk")]]
        '' 'metadata.owner=kiosk': false, 0 names, [[]]
        'site' 'status.summary.status in (Online, ConflictPaused)': true, 0 names, [[("label", "site")], [("status.summary.status", "Online"), ("status.summary.status", "ConflictPaused")]]
        '' 'status.updated.status=OutOfDate,status.lifecycle.status!=Unknown': true, 0 names, [[("status.updated.status", "OutOfDate")]]
        '' 'status.capabilities.osMode=package': false, 0 names, [[("status.capabilities.osMode", "package")]]
    "#]].assert_eq(&rows);
}

#[test]
fn sights_of_the_awaited_and_of_earlier_devices_do_not_count() {
    let mut device = Device::new(DeviceName::parse("a").unwrap(), Timestamp(10));
    assert_eq!(last_seen(&device, Some(Timestamp(9))), None);
    assert_eq!(last_seen(&device, Some(Timestamp(10))), Some(Timestamp(10)));
    device.meta.annotations.restore_mark = Some(RestoreMark::AwaitingReconnect);
    assert_eq!(last_seen(&device, Some(Timestamp(20))), None);
}

#[test]
fn absent_parts_are_the_defaults() {
    let empty =
        report::document_from_wire(wire::StatusDocument::default(), &mut Interner::default()).unwrap();
    assert_eq!(empty, StatusDocument::default());
    let status = status::from_wire(wire::DeviceStatus::default(), &mut Interner::default()).unwrap();
    assert_eq!(status.summary.status, SummaryStatus::Unknown);
}
