//! Inventories that people supply, which have known members only (host reference 1.2).

use serde_json::Value;

use self::InventoryShape::{Any, List, Members};

/// Shape of a value of an inventory.
enum InventoryShape {
    /// Any value, whose type schemas and readers judge.
    Any,
    /// An object with these members at most.
    Members(&'static [(&'static str, InventoryShape)]),
    /// A list of values of this shape.
    List(&'static InventoryShape),
}

/// Shape of an inventory.
const INVENTORY: InventoryShape = Members(&[
    ("hostname", Any),
    ("ramMebibytes", Any),
    (
        "cpu",
        Members(&[("arch", Any), ("model", Any), ("clockMegahertz", Any), ("count", Any), ("flags", Any)]),
    ),
    ("systemVendor", Members(&[("manufacturer", Any), ("productName", Any), ("serialNumber", Any)])),
    ("firmware", Members(&[("bios", Members(&[("vendor", Any), ("version", Any), ("date", Any)]))])),
    ("nics", List(&NIC)),
    ("storage", List(&DISK)),
]);

const NIC: InventoryShape = Members(&[
    ("name", Any),
    ("model", Any),
    ("mac", Any),
    ("ip", Any),
    ("speedGbps", Any),
    ("vlans", List(&Members(&[("id", Any), ("name", Any)]))),
    ("vlanId", Any),
    ("pxe", Any),
    ("pciAddress", Any),
    ("lldp", Members(&[("switchID", Any), ("portID", Any), ("switchSystemName", Any)])),
]);

const DISK: InventoryShape = Members(&[
    ("name", Any),
    ("alternateNames", Any),
    ("type", Any),
    ("rotational", Any),
    ("sizeBytes", Any),
    ("vendor", Any),
    ("model", Any),
    ("serialNumber", Any),
    ("wwn", Any),
    ("wwnVendorExtension", Any),
    ("wwnWithExtension", Any),
    ("hctl", Any),
]);

/// Returns whether every member of an inventory is known, and every object and list is one.
pub(super) fn is_known(inventory: &Value) -> bool {
    fits(inventory, &INVENTORY)
}

fn fits(value: &Value, shape: &InventoryShape) -> bool {
    match (shape, value) {
        (Any, _) | (_, Value::Null) => true,
        (Members(known), Value::Object(members)) => members.iter().all(|(name, value)| {
            known.iter().find(|(word, _)| word == name).is_some_and(|(_, shape)| fits(value, shape))
        }),
        (List(shape), Value::Array(items)) => items.iter().all(|item| fits(item, shape)),
        (Members(_) | List(_), _) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_members_are_found_at_every_depth() {
        let rows = [
            (json!({}), true),
            (json!({"cpu": {"arch": "x86_64", "count": 2, "flags": ["a"]}, "ramMebibytes": 1}), true),
            (
                json!({"cpu": null, "nics": [{"name": "e", "vlans": [{"id": 1}], "lldp": {"portID": "1"}}]}),
                true,
            ),
            (
                json!({"storage": [{"name": "/dev/sda", "sizeBytes": 1}], "firmware": {"bios": {"date": "d"}}}),
                true,
            ),
            (json!({"colour": "red"}), false),
            (json!({"cpu": {"arch": "x86_64", "colour": "red"}}), false),
            (json!({"nics": [{"name": "e"}, {"colour": "red"}]}), false),
            (json!({"nics": {"name": "e"}}), false),
            (json!({"cpu": "x86_64"}), false),
        ];
        for (inventory, expected) in rows {
            assert_eq!(is_known(&inventory), expected, "{inventory}");
        }
    }
}
