//! Valid and invalid machine files.

use std::fmt::Write as _;

use expect_test::expect;

use super::{check::mac, *};

const BMC: &str = "[[bmc]]\nname = 'b1'\nurl = 'https://10.1.0.17'\n";

#[test]
fn errors_name_their_place() {
    let node = |rest: &str| format!("{BMC}[[node]]\nid = 'x1'\n{rest}\n");
    let two = |first: &str, second: &str| {
        format!("{BMC}[[node]]\nid = 'x1'\n{first}\n[[node]]\nid = 'x2'\n{second}\n")
    };
    let mut table = String::new();
    for text in [
        node(""),
        node("bmc = 'b1'\nsystem = '/redfish/v1/Systems/1'\nmacs = ['A4-BF-01-2E-7C-10']"),
        two("bmc = 'b1'\nsystem = '/a'", "bmc = 'b1'\nsystem = '/b'"),
        String::new(),
        node("rol = 'Compute'"),
        node("nid = -1"),
        node("nid = "),
        node("[[node]]\nid = ''"),
        node("[[node]]\nid = 'x1'"),
        node("arch = 'x86'"),
        node("bmc = 'b2'"),
        node("bmc = 'b1'\nsystem = '1'"),
        node("macs = ['a4:bf:01:2e:7c']"),
        two("macs = ['a4:bf:01:2e:7c:10']", "macs = ['A4BF.012E.7C10']"),
        two("bmc = 'b1'", "bmc = 'b1'"),
        format!("{BMC}{BMC}"),
        BMC.replace("b1", ""),
        BMC.replace("https", "ftp"),
        BMC.replace("10.1", "root:s3cret@10.1"),
        format!("{BMC}credentials = 's3cret'"),
    ] {
        let shown = match Machine::parse(&text) {
            Ok(machine) => format!("{} nodes, {} BMCs", machine.nodes.len(), machine.bmcs.len()),
            Err(reason) => reason,
        };
        assert!(!shown.contains("s3cret"));
        writeln!(table, "{shown}").unwrap();
    }
    expect![[r#"
        1 nodes, 1 BMCs
        1 nodes, 1 BMCs
        2 nodes, 1 BMCs
        0 nodes, 0 BMCs
        line 6, column 1: unknown field `rol`, expected one of `id`, `role`, `sub_role`, `arch`, `nid`, `enabled`, `locked`, `macs`, `groups`, `partition`, `bmc`, `system`
        line 6, column 7: invalid value: integer `-1`, expected u32
        line 6, column 7: string values must be quoted, expected literal string
        node '': id: has 0 characters but needs at least 1
        node 'x1' is listed twice
        node 'x1': arch: 'x86' is none of X86, ARM, Other, UNKNOWN
        node 'x1': bmc: 'b2' is not listed
        node 'x1': system: '1' has to be a path, such as /redfish/v1/Systems/1
        node 'x1': macs: 'a4:bf:01:2e:7c' is not a MAC address
        node 'x2': macs: a4:bf:01:2e:7c:10 belongs to node 'x1' already
        node 'x2': system: is that of node 'x1' at the same BMC
        BMC 'b1' is listed twice
        BMC '': name: is empty
        BMC 'b1': url: has to begin with https://
        BMC 'b1': url: holds a user, who belongs into the credentials
        BMC 'b1': credentials: has to be file:PATH or env:NAME
    "#]].assert_eq(&table);
}

#[test]
fn nodes_are_found_by_any_form_of_address() {
    let text = "[[node]]\nid = 'x1'\nmacs = ['A4BF012E7C10', 'a4:bf:01:2e:7c:11']\n[[node]]\nid = 'x2'\n";
    let machine = Machine::parse(text).unwrap();
    assert_eq!(machine.node("x1").unwrap().macs, ["a4:bf:01:2e:7c:10", "a4:bf:01:2e:7c:11"]);
    for (mac, found) in [
        ("a4:bf:01:2e:7c:10", Some("x1")),
        ("A4-BF-01-2E-7C-11", Some("x1")),
        ("a4:bf:01:2e:7c:12", None),
        ("", None),
        ("x2", None),
    ] {
        assert_eq!(machine.node_by_mac(mac).map(|node| node.id.as_str()), found, "{mac}");
    }
    assert!(machine.node("x3").is_none());
}

#[test]
fn addresses_have_twelve_digits_in_even_parts() {
    for (text, normal) in [
        ("a4:bf:01:2e:7c:10", Some("a4:bf:01:2e:7c:10")),
        ("A4-BF-01-2E-7C-10", Some("a4:bf:01:2e:7c:10")),
        ("a4bf.012e.7c10", Some("a4:bf:01:2e:7c:10")),
        ("a4bf012e7c10", Some("a4:bf:01:2e:7c:10")),
        ("a4:bf:01:2e:7c:1", None),
        ("a4:bf:01:2e:7c:10:11", None),
        ("a4:bf:01:2e:7c:1g", None),
        ("a4:bf:01:2e7c:10", None),
        ("ä4:bf:01:2e:7c:0", None),
        ("", None),
    ] {
        assert_eq!(mac(text).as_deref(), normal, "{text}");
    }
}

#[test]
fn an_invalid_file_keeps_the_last_valid_content() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("machine.toml");
    assert!(MachineFile::open(&path).is_err());
    std::fs::write(&path, "[[node]]\nid = 'x1'\n").unwrap();
    let file = MachineFile::open(&path).unwrap();
    assert!(std::sync::Arc::ptr_eq(&file.current(), &file.current()), "an unchanged file is not read");
    std::fs::write(&path, "[[node]]\nid = 'x1'\n[[node]]\nid = 'x2'\n").unwrap();
    assert_eq!(file.current().nodes.len(), 2);
    std::fs::write(&path, "[[node]]\n").unwrap();
    assert_eq!(file.current().nodes.len(), 2, "the last valid content stays");
    for _ in 0..2 {
        let error = file.newest().unwrap_err();
        assert_eq!(error.path, path.display().to_string());
        assert_eq!(error.reason, "line 1, column 1: missing field `id`");
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!((file.current().nodes.len(), file.newest().is_err()), (2, true));
    std::fs::write(&path, "").unwrap();
    assert_eq!(file.newest().unwrap().nodes.len(), 0);
}
