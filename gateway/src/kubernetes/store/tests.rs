//! Copies of records at several versions.

use chassis::process::packed::SimilarBytes;
use expect_test::expect;
use serde_json::json;

use super::{record::key, *};

fn record(name: &str, uid: &str, version: u64) -> CachedRecord {
    let object = json!({ "metadata": { "name": name, "namespace": "m", "uid": uid } });
    CachedRecord::new(object.as_object().unwrap(), version, &SimilarBytes::default())
}

fn names(snapshot: Result<CacheSnapshot, super::super::failure::ApiFailure>) -> String {
    match snapshot {
        Ok(snapshot) => {
            let names: Vec<_> = snapshot
                .records
                .iter()
                .map(|record| format!("{}{}", record.name(), record.version))
                .collect();
            format!("{}: {}", snapshot.version, names.join(" "))
        }
        Err(failure) => failure.message,
    }
}

#[test]
fn earlier_versions_are_seen_as_they_were() {
    let cache = RecordCache::default();
    cache.replace(VersionBase::default(), vec![record("a", "1", 3), record("b", "2", 4)], 5);
    let begun = cache.snapshot(None, None).unwrap().position;
    cache.apply(vec![record("a", "1", 6), record("c", "3", 8)], vec![(key("m", "b"), 7)], 8);
    cache.apply(vec![record("c", "4", 9)], vec![], 9);
    let mut lines = String::new();
    for at in [None, Some(4), Some(5), Some(6), Some(7), Some(8), Some(9)] {
        lines += &format!("{at:?} -> {}\n", names(cache.snapshot(Some("m"), at)));
    }
    let (changes, ..) = cache.changes(begun).unwrap();
    for CachedChange { version, before, after } in changes {
        let shown = |record: Option<std::sync::Arc<CachedRecord>>| {
            record.map_or("-".to_owned(), |record| format!("{}{}", record.name(), record.version))
        };
        lines += &format!("{version}: {} {}\n", shown(before), shown(after));
    }
    cache.replace(VersionBase::default(), vec![], 9);
    lines += &format!("{:?}\n", cache.changes(begun).map_err(|failure| failure.message).err());
    expect![[r#"
        None -> 9: a6 c9
        Some(4) -> too old resource version: 4 (5)
        Some(5) -> 5: a3 b4
        Some(6) -> 6: a6 b4
        Some(7) -> 7: a6
        Some(8) -> 8: a6 c8
        Some(9) -> 9: a6 c9
        6: a3 a6
        7: b4 -
        8: - c8
        9: c8 -
        9: - c9
        Some("too old resource version: 0 (9)")
    "#]]
    .assert_eq(&lines);
}

#[test]
fn packed_objects_come_back_as_they_were() {
    let cache = RecordCache::default();
    let object = |number: u64| {
        let metadata = json!({
            "name": format!("h{number}"), "namespace": "m", "labels": { "rack": format!("r{}", number % 3) },
        });
        json!({ "metadata": metadata, "spec": { "online": true, "bmc": { "address": "redfish://bmc" } } })
    };
    let record = |number: u64| cache.record(object(number).as_object().unwrap(), number);
    cache.replace(VersionBase::default(), (1..100).map(record).collect(), 100);
    for number in 1..100 {
        let held = cache.get("m", &format!("h{number}")).unwrap();
        assert_eq!(json!(held.object()), object(number));
        assert_eq!((held.label("rack"), held.label("row")), (Some(&*format!("r{}", number % 3)), None));
    }
}

#[test]
fn few_objects_have_thousands_of_changes_and_no_more() {
    let cache = RecordCache::default();
    cache.replace(VersionBase::default(), vec![record("a", "1", 1)], 1);
    for version in 2..20_000 {
        cache.apply(vec![record("a", "1", version)], vec![], version);
    }
    assert_eq!(names(cache.snapshot(None, Some(18_500))), "18500: a18500");
    assert!(cache.snapshot(None, Some(10_000)).is_err());
}

#[test]
fn versions_rise_with_incarnations() {
    let ids = ["01a20c23-c300-7000-8000-000000000000", "01a20c24-ad60-7000-8000-000000000000"];
    let bases = ids.map(|id| VersionBase::of(id.parse().ok()));
    let versions = [bases[0].version(1), bases[0].version(1_000_000), bases[1].version(1)];
    assert!(versions.is_sorted(), "{versions:?}");
    assert_eq!(bases[1].revision(versions[0]), None);
    assert_eq!(bases[1].revision(versions[2]), Some(1));
    assert_eq!(VersionBase::default().version(0), 1);
}
