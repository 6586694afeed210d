//! The generated machine: locations and roles of its nodes.
//!
//! Everything follows from the position in a fixed order, so a fleet of a given size is always the same fleet.

use proto::inventory::{Group, Hardware};

/// Most nodes that can be generated: cabinets are named with four digits and begin at `x1000`.
pub const MOST_NODES: u32 = 9000 * NODES_PER_CABINET;

/// Kind of bootable hardware in the hardware inventory.
pub const NODE: &str = "Node";

const NODES_PER_CABINET: u32 = 8 * NODES_PER_CHASSIS;
const NODES_PER_CHASSIS: u32 = 8 * 4;

/// Ratio of login nodes. Small machines keep roughly that ratio, and the 96 nodes of the demo get two, enough for a
/// second boot set to matter.
const NODES_PER_LOGIN_NODE: u32 = 48;

/// Returns the first `count` nodes of the generated machine, in the order of their numbers.
pub fn generate(count: u32) -> Vec<Hardware> {
    (0..count.min(MOST_NODES)).map(node).collect()
}

fn node(index: u32) -> Hardware {
    let login = (index + 1).is_multiple_of(NODES_PER_LOGIN_NODE);
    let (role, sub_role) = if login { ("Application", "UAN") } else { ("Compute", "") };
    Hardware {
        id: location(index),
        r#type: NODE.to_owned(),
        role: role.to_owned(),
        sub_role: sub_role.to_owned(),
        arch: "X86".to_owned(),
        enabled: true,
        locked: false,
        nid: index + 1,
    }
}

/// Returns the location: two nodes on a BMC, two BMCs in a slot, eight slots in a chassis, eight chassis in a
/// cabinet.
fn location(index: u32) -> String {
    format!(
        "x{}c{}s{}b{}n{}",
        1000 + index / NODES_PER_CABINET,
        index / NODES_PER_CHASSIS % 8,
        index / 4 % 8,
        index / 2 % 2,
        index % 2,
    )
}

/// Returns two groups, each with half of the machine: `blue` has the chassis with even numbers, `green` the others.
pub fn groups(hardware: &[Hardware]) -> Vec<Group> {
    let row = |label: &str, odd: bool| Group {
        label: label.to_owned(),
        ids: hardware
            .iter()
            .filter(|node| in_odd_chassis(&node.id) == odd)
            .map(|node| node.id.clone())
            .collect(),
    };
    vec![row("blue", false), row("green", true)]
}

fn in_odd_chassis(id: &str) -> bool {
    matches!(numbers(id, "xc"), Some((place, _)) if place[1] % 2 == 1)
}

/// Whether the location is that of a node, for inventories without the kind of hardware.
pub fn is_node(id: &str) -> bool {
    matches!(numbers(id, "xcsbn"), Some((_, "")))
}

/// Returns the number after each of `letters` at the start of a location, and the rest of the location.
fn numbers<'a>(id: &'a str, letters: &str) -> Option<(Vec<u32>, &'a str)> {
    let mut rest = id;
    let mut place = Vec::with_capacity(letters.len());
    for letter in letters.chars() {
        let tail = rest.strip_prefix(letter)?;
        let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
        place.push(tail[..digits].parse().ok()?);
        rest = &tail[digits..];
    }
    Some((place, rest))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn names_nodes_as_a_machine_does() {
        let fleet = generate(600);
        let mut seen = String::new();
        for index in [0, 1, 2, 3, 4, 31, 32, 47, 95, 255, 256, 599] {
            let Hardware { id, nid, role, sub_role, .. } = &fleet[index];
            seen += format!("{index:>3} {id} nid {nid} {role} {sub_role}").trim_end();
            seen.push('\n');
        }
        expect![[r#"
              0 x1000c0s0b0n0 nid 1 Compute
              1 x1000c0s0b0n1 nid 2 Compute
              2 x1000c0s0b1n0 nid 3 Compute
              3 x1000c0s0b1n1 nid 4 Compute
              4 x1000c0s1b0n0 nid 5 Compute
             31 x1000c0s7b1n1 nid 32 Compute
             32 x1000c1s0b0n0 nid 33 Compute
             47 x1000c1s3b1n1 nid 48 Application UAN
             95 x1000c2s7b1n1 nid 96 Application UAN
            255 x1000c7s7b1n1 nid 256 Compute
            256 x1001c0s0b0n0 nid 257 Compute
            599 x1002c2s5b1n1 nid 600 Compute
        "#]]
        .assert_eq(&seen);
    }

    #[test]
    fn every_node_has_its_own_name() {
        let fleet = generate(10_000);
        let names: std::collections::BTreeSet<_> = fleet.iter().map(|node| &node.id).collect();
        assert_eq!(names.len(), 10_000);
        assert!(names.iter().all(|name| is_node(name)));
    }

    #[test]
    fn a_smaller_fleet_is_the_beginning_of_a_larger_one() {
        assert_eq!(generate(96), generate(1000)[..96]);
    }

    #[test]
    fn groups_share_the_fleet_by_chassis() {
        let fleet = generate(96);
        let sizes: Vec<_> = groups(&fleet).into_iter().map(|group| (group.label, group.ids.len())).collect();
        expect![[r#"[("blue", 64), ("green", 32)]"#]].assert_eq(&format!("{sizes:?}"));
    }

    #[test]
    fn tells_nodes_from_other_hardware() {
        let names = [
            "x1000c0s0b0n0",
            "x3000c0s17b4n12",
            "x1000c0s0b0",
            "x1000c0s0b0n",
            "x1000c0s0b0n0p1",
            "x1000",
            "nid1",
            "",
        ];
        let seen: String = names.map(|name| format!("{name:?} {}\n", is_node(name))).concat();
        expect![[r#"
            "x1000c0s0b0n0" true
            "x3000c0s17b4n12" true
            "x1000c0s0b0" false
            "x1000c0s0b0n" false
            "x1000c0s0b0n0p1" false
            "x1000" false
            "nid1" false
            "" false
        "#]]
        .assert_eq(&seen);
    }
}
