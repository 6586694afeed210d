use std::time::Instant;

use futures_util::future::join_all;
use proto::inventory::{self as wire, Hardware};
use serde_json::json;

use super::*;
use crate::tests::smd::{Smd, Trouble};

const PATHS: [&str; 4] = ["/State/Components", "/groups", "/partitions", "/locks/status"];

/// Short deadlines, so that silence is noticed soon, and long enough for a busy machine.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

async fn smd() -> (Smd, HsmClient) {
    let smd = Smd::start().await;
    let settings = settings::Peer { total_seconds: 1.0, ..smd.settings() };
    let hsm = HsmClient::new(&settings).unwrap();
    (smd, hsm)
}

#[tokio::test]
async fn a_picture_is_four_calls_without_ids() {
    let (smd, hsm) = smd().await;
    smd.lists(json!([
        {"ID": "x1c0s0b0n0", "Type": "Node", "State": "Ready", "Flag": "OK", "Enabled": true, "Role": "Compute",
            "SubRole": "GPU", "NID": 7, "NetType": "Sling", "Arch": "X86", "Class": "Mountain"},
        {"ID": "x1c0s0b0n1", "Type": "Node", "Enabled": false, "Role": "Application", "Arch": "UNKNOWN"},
        {"ID": "x1c0s0b0", "Type": "NodeBMC", "State": "Ready", "Enabled": true},
        {"ID": "s0", "Type": "System", "Enabled": true},
    ]));
    smd.groups(
        json!([{"label": "blue", "description": "", "members": {"ids": ["x1c0s0b0n0", "x1c0s0b0n9"]}}]),
        json!([{"name": "p1", "description": "", "members": {"ids": ["x1c0s0b0n1"]}}]),
    );
    smd.lock("x1c0s0b0n1", true);
    smd.lock("x9c0s0b0n0", true);

    let snapshot = hsm.snapshot(ANSWER_WITHIN).await.unwrap();
    let item = |id: &str, kind: &str| Hardware {
        id: id.into(),
        r#type: kind.into(),
        enabled: true,
        ..Hardware::default()
    };
    let first = Hardware {
        role: "Compute".into(),
        sub_role: "GPU".into(),
        nid: 7,
        arch: "X86".into(),
        ..item("x1c0s0b0n0", "Node")
    };
    let second = Hardware {
        role: "Application".into(),
        arch: "UNKNOWN".into(),
        enabled: false,
        ..item("x1c0s0b0n1", "Node")
    };
    let group = |label: &str, ids: &[&str]| wire::Group {
        label: label.into(),
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
    };
    let expected = InventorySnapshot::with_locks(
        vec![first, second, item("x1c0s0b0", "NodeBMC"), item("s0", "System")],
        vec![group("blue", &["x1c0s0b0n0", "x1c0s0b0n9"])],
        vec![group("p1", &["x1c0s0b0n1"])],
        ["x1c0s0b0n1", "x9c0s0b0n0"].map(str::to_owned).into(),
    );
    assert_eq!(snapshot, expected);
    assert!(snapshot.hardware().find(|item| item.id == "x1c0s0b0n1").unwrap().locked);

    let mut calls = smd.calls();
    calls.sort_unstable();
    assert_eq!(
        calls,
        [
            "GET /hsm/v2/State/Components",
            "GET /hsm/v2/groups",
            "GET /hsm/v2/locks/status?type=Node&locked=True",
            "GET /hsm/v2/partitions"
        ]
    );
}

#[tokio::test]
async fn a_failed_part_fails_the_snapshot_in_bounded_time() {
    let troubles = [
        (Trouble::Silent, "failing since"),
        (Trouble::Endless, "failing since"),
        (Trouble::Status(500), "on purpose"),
        (Trouble::Status(503), "on purpose"),
        (Trouble::Status(404), "404"),
        (Trouble::Body(r#"{"Components": ["#), "not the JSON"),
        (Trouble::Body("<html>"), "not the JSON"),
        (Trouble::Body("7"), "not the JSON"),
        (Trouble::Body("\u{0}\u{1}"), "not the JSON"),
    ];
    let cases =
        PATHS.iter().flat_map(|path| troubles.iter().map(move |(trouble, told)| (path, trouble, told)));
    // Concurrently, because the silent servers use up their deadlines, and each with a peer of its own, because
    // circuits have a memory.
    join_all(cases.map(async |(path, trouble, told)| {
        let (smd, hsm) = smd().await;
        smd.trouble(path, trouble.clone());
        let began = Instant::now();
        let failure = hsm.snapshot(ANSWER_WITHIN).await.unwrap_err();
        assert!(failure.text.starts_with("HSM "), "{path} {trouble:?}: {failure}");
        assert!(failure.text.contains(told), "{path} {trouble:?}: {failure}");
        assert!(began.elapsed() < Duration::from_secs(5), "{path} {trouble:?}");
    }))
    .await;
}

#[tokio::test]
async fn a_lock_answer_without_its_member_locks_no_node() {
    let (smd, hsm) = smd().await;
    smd.lock("x1c0s0b0n1", true);
    assert_eq!(hsm.locked(ANSWER_WITHIN).await.unwrap(), LockedIds::from(["x1c0s0b0n1".to_owned()]));
    smd.trouble("/locks/status", Trouble::Body("{}"));
    assert_eq!(hsm.locked(ANSWER_WITHIN).await.unwrap(), LockedIds::new());
}

#[tokio::test]
async fn invalid_entries_are_left_out_of_a_snapshot() {
    let (smd, hsm) = smd().await;
    smd.lists(
        json!([{"ID": "a", "Type": "Node"}, {"ID": ""}, {"ID": "a", "Type": "NodeBMC"}, 5, {"ID": "b"}]),
    );
    let snapshot = hsm.snapshot(ANSWER_WITHIN).await.unwrap();
    let listed = snapshot.hardware().map(|item| (item.id.as_str(), item.r#type.as_str()));
    assert_eq!(listed.collect::<Vec<_>>(), [("a", "Node"), ("b", "")]);
    let counted = InvalidEntries { unreadable: 1, impossible_ids: 1, repeated: 1 };
    assert_eq!(*hsm.invalid.lock(), counted);
}
