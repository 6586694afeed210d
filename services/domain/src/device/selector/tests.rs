use std::fmt::Write as _;

use expect_test::expect;
use proptest::prelude::*;

use super::{DeviceField, EventField, FieldSelector, LabelSelector, time};
use crate::{
    core::time::Timestamp,
    device::record::{
        Device, DeviceLabels,
        name::{DeviceName, FleetName},
        report::OsMode,
    },
};

fn device() -> Device {
    let created = time::read("2024-06-01T00:00:00Z").unwrap();
    let mut device = Device::new(DeviceName::parse("edge-7").unwrap(), created);
    device.meta.owner = Some(FleetName::parse("kiosk").unwrap());
    device.meta.labels = [("alias", "till"), ("site", "north"), ("empty", "")]
        .map(|(key, value)| (key.into(), value.into()))
        .into_iter()
        .collect();
    device.reported.os_mode = Some(OsMode::Image);
    device
}

fn fields(rows: &[&str]) -> String {
    let device = device();
    let mut table = String::new();
    for row in rows {
        let result = match FieldSelector::<DeviceField>::parse(row) {
            Ok(selector) => selector.matches_device(&device).to_string(),
            Err(invalid) => invalid.to_string(),
        };
        writeln!(table, "{row} => {result}").unwrap();
    }
    table
}

fn labels(rows: &[&str]) -> String {
    let labels: DeviceLabels = device().meta.labels;
    let mut table = String::new();
    for row in rows {
        let result = match LabelSelector::parse(row) {
            Ok(selector) => selector.matches(&labels).to_string(),
            Err(invalid) => invalid.to_string(),
        };
        writeln!(table, "{row} => {result}").unwrap();
    }
    table
}

#[test]
fn label_selectors_match_by_value_and_presence() {
    let rows = [
        "",
        "site",
        "!site",
        "zone",
        "!zone",
        "! zone",
        "site=north",
        "site == north",
        "site=south",
        "site!=south",
        "zone!=south",
        "site in (south, north)",
        "site in(south,north)",
        "site notin (south)",
        "zone notin (south)",
        "zone in (south)",
        "empty=",
        "empty in (,a)",
        "site=north,alias=till",
        "site=north,alias=desk",
        "example.org/site!=x",
    ];
    expect![[r#"
         => true
        site => true
        !site => false
        zone => false
        !zone => true
        ! zone => true
        site=north => true
        site == north => true
        site=south => false
        site!=south => true
        zone!=south => true
        site in (south, north) => true
        site in(south,north) => true
        site notin (south) => true
        zone notin (south) => true
        zone in (south) => false
        empty= => true
        empty in (,a) => true
        site=north,alias=till => true
        site=north,alias=desk => false
        example.org/site!=x => true
    "#]]
    .assert_eq(&labels(&rows));
}

#[test]
fn label_selectors_are_refused_with_their_requirement() {
    let rows = [
        ",",
        "site=north,",
        "=north",
        "site north",
        "site in north",
        "site in (north",
        "site in ((north))",
        "site in north)",
        "site=(north)",
        "!site=north",
        "site>3",
        "site contains or",
        "-site=a",
        "UPPER.org/site=a",
        "site=a b",
        "site=a\\",
    ];
    expect![[r#"
        , => labelSelector: '' is no requirement
        site=north, => labelSelector: '' is no requirement
        =north => labelSelector: '=north' is no requirement
        site north => labelSelector: 'site north' is no requirement
        site in north => labelSelector: 'site in north' is no requirement
        site in (north => labelSelector: 'site in (north' ends too early
        site in ((north)) => labelSelector: 'site in ((north))' has a parenthesis within another
        site in north) => labelSelector: 'site in north)' closes a parenthesis that is not open
        site=(north) => labelSelector: 'site=(north)' is no requirement
        !site=north => labelSelector: '!site=north' is no requirement
        site>3 => labelSelector: labels have no order and no parts, as 'site' would need
        site contains or => labelSelector: labels have no order and no parts, as 'site' would need
        -site=a => labelSelector: '-site' is not a key of a label: letters, digits and -_., with a letter or a digit at both ends, at most 63
        UPPER.org/site=a => labelSelector: 'UPPER.org' is not made of lower case letters, digits, - and ., with a letter or a digit at both ends of each part, at most 253
        site=a b => labelSelector: 'a b' is not a value of a label: letters, digits and -_., with a letter or a digit at both ends, at most 63
        site=a\ => labelSelector: 'site=a\' ends too early
    "#]].assert_eq(&labels(&rows));
}

#[test]
fn field_selectors_match_the_fields_of_devices() {
    let rows = [
        "",
        "metadata.name=edge-7",
        "metadata.name in (edge-6, edge-7)",
        "metadata.name contains ge",
        "metadata.name notcontains ge",
        "metadata.alias = till",
        "metadata.alias exists",
        "metadata.nameOrAlias contains till",
        "metadata.nameOrAlias contains edge",
        "metadata.nameOrAlias!=till",
        "metadata.owner=Fleet/kiosk",
        "!metadata.owner",
        "metadata.creationTimestamp>=2024-01-01T00:00:00Z, metadata.creationTimestamp < 2025-01-01T00:00:00Z",
        "metadata.creationTimestamp>2024-06-01T00:00:00Z",
        "metadata.creationTimestamp=2024-06-01T02:00:00+02:00",
        "status.summary.status in (Online,Unknown)",
        "status.summary.status notin (Online,Unknown)",
        "status.summary.status=Odd",
        "status.updated.status!=UpToDate",
        "status.applicationsSummary.status=Unknown",
        "status.lifecycle.status=Enrolled",
        "status.capabilities.osMode=image",
        "metadata.alias=a\\,b",
        "metadata.alias==a==b",
    ];
    expect![[r#"
         => true
        metadata.name=edge-7 => true
        metadata.name in (edge-6, edge-7) => true
        metadata.name contains ge => true
        metadata.name notcontains ge => false
        metadata.alias = till => true
        metadata.alias exists => true
        metadata.nameOrAlias contains till => true
        metadata.nameOrAlias contains edge => true
        metadata.nameOrAlias!=till => false
        metadata.owner=Fleet/kiosk => true
        !metadata.owner => false
        metadata.creationTimestamp>=2024-01-01T00:00:00Z, metadata.creationTimestamp < 2025-01-01T00:00:00Z => true
        metadata.creationTimestamp>2024-06-01T00:00:00Z => false
        metadata.creationTimestamp=2024-06-01T02:00:00+02:00 => true
        status.summary.status in (Online,Unknown) => true
        status.summary.status notin (Online,Unknown) => false
        status.summary.status=Odd => false
        status.updated.status!=UpToDate => true
        status.applicationsSummary.status=Unknown => true
        status.lifecycle.status=Enrolled => false
        status.capabilities.osMode=image => true
        metadata.alias=a\,b => false
        metadata.alias==a==b => false
    "#]].assert_eq(&fields(&rows));
}

#[test]
fn field_selectors_are_refused_with_the_reason() {
    let rows = [
        "text",
        "status.lastSeen>2024-01-01T00:00:00Z",
        "metadata.name>a",
        "metadata.creationTimestamp contains 2024",
        "metadata.creationTimestamp>2024",
        "metadata.creationTimestamp<2024-10-24T10:00:00",
        "metadata.name contains",
        "metadata.name exists yes",
        ",",
    ];
    expect![[r#"
        text => fieldSelector: unknown or unsupported selector: 'text'; supported selectors are: [metadata.name metadata.alias metadata.nameOrAlias metadata.owner metadata.creationTimestamp status.summary.status status.updated.status status.applicationsSummary.status status.lifecycle.status status.capabilities.osMode]
        status.lastSeen>2024-01-01T00:00:00Z => fieldSelector: unknown or unsupported selector: 'status.lastSeen'; supported selectors are: [metadata.name metadata.alias metadata.nameOrAlias metadata.owner metadata.creationTimestamp status.summary.status status.updated.status status.applicationsSummary.status status.lifecycle.status status.capabilities.osMode]
        metadata.name>a => fieldSelector: the operator does not fit the field 'metadata.name'
        metadata.creationTimestamp contains 2024 => fieldSelector: the operator does not fit the field 'metadata.creationTimestamp'
        metadata.creationTimestamp>2024 => fieldSelector: '2024' is no time of RFC 3339
        metadata.creationTimestamp<2024-10-24T10:00:00 => fieldSelector: '2024-10-24T10:00:00' is no time of RFC 3339
        metadata.name contains => fieldSelector: 'metadata.name contains' is no requirement
        metadata.name exists yes => fieldSelector: 'metadata.name exists yes' is no requirement
        , => fieldSelector: '' is no requirement
    "#]].assert_eq(&fields(&rows));
}

#[test]
fn refusals_list_the_keys_of_their_kind() {
    let refused = FieldSelector::<EventField>::parse("actor=me").unwrap_err();
    expect!["fieldSelector: unknown or unsupported selector: 'actor'; supported selectors are: [involvedObject.kind involvedObject.name reason type]"].assert_eq(&refused.to_string());
}

#[test]
fn times_of_rfc_3339_have_zones() {
    let noon = Some(Timestamp(1_704_110_400_000));
    for (text, expected) in [
        ("2024-01-01T12:00:00Z", noon),
        ("2024-01-01T12:00:00.000z", noon),
        ("2024-01-01T14:30:00+02:30", noon),
        ("2024-01-01T04:00:00-08:00", noon),
        ("2024-01-01T12:00:00", None),
        ("2024-01-01 12:00:00Z", None),
        ("2024-01-01T12:00:00+2", None),
        ("2024-01-01T12:00:00+24:00", None),
        ("", None),
    ] {
        assert_eq!(time::read(text), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn every_text_is_read_or_refused(text in "[a-z=!<>(),\\\\ .]{0,24}|\\PC{0,24}", key in "metadata.(name|creationTimestamp)") {
        let labels = device().meta.labels;
        if let Ok(selector) = LabelSelector::parse(&text) {
            selector.matches(&labels);
        }
        for text in [&text, &format!("{key}{text}")] {
            if let Ok(selector) = FieldSelector::<DeviceField>::parse(text) {
                selector.matches_device(&device());
            }
        }
    }
}
