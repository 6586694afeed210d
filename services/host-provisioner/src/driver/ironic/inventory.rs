//! Inventory of a host as Ironic keeps it, in the form of the contract (host reference 2.5).

use serde_json::{Map, Value, json};

use ironic::node::IronicNode;

/// Returns the inventory in an answer of Ironic.
pub(super) fn of_inspection(answer: &Value) -> Value {
    let found = &answer["inventory"];
    let vendor = &found["system_vendor"];
    let firmware = &vendor["firmware"];
    let interfaces = found["interfaces"].as_array().into_iter().flatten();
    let plugins = &answer["plugin_data"];
    json!({
        "hostname": text(&found["hostname"]),
        "ramMebibytes": found["memory"]["physical_mb"].as_u64().unwrap_or(0),
        "cpu": processor(&found["cpu"]),
        "systemVendor": {
            "manufacturer": text(&vendor["manufacturer"]),
            "productName": text(&vendor["product_name"]),
            "serialNumber": text(&vendor["serial_number"]),
        },
        "firmware": {"bios": known([
            ("vendor", text(&firmware["vendor"])),
            ("version", text(&firmware["version"])),
            ("date", text(&firmware["build_date"])),
        ])},
        "nics": interfaces.flat_map(|one| addresses(one, plugins)).collect::<Vec<_>>(),
        "storage": found["disks"].as_array().into_iter().flatten().map(disk).collect::<Vec<_>>(),
    })
}

/// Returns the inventory of a node that was inspected by means that keep none: its properties, and the MAC address that
/// is known anyway.
pub(super) fn of_properties(node: &IronicNode, boot_mac: Option<&str>) -> Value {
    let properties = &node.properties;
    let nics: Vec<_> =
        boot_mac.into_iter().map(|mac| json!({"mac": mac.to_lowercase(), "pxe": true})).collect();
    json!({
        "hostname": "",
        "ramMebibytes": number(&properties["memory_mb"]),
        "cpu": {
            "arch": text(&properties["cpu_arch"]),
            "model": "",
            "clockMegahertz": 0,
            "flags": [],
            "count": number(&properties["cpus"]),
        },
        "systemVendor": {"manufacturer": "", "productName": "", "serialNumber": ""},
        "firmware": {"bios": {}},
        "nics": nics,
        "storage": [],
    })
}

fn processor(cpu: &Value) -> Value {
    let mut flags: Vec<_> = cpu["flags"].as_array().into_iter().flatten().map(text).collect();
    flags.sort();
    json!({
        "arch": text(&cpu["architecture"]),
        "model": text(&cpu["model_name"]),
        "clockMegahertz": megahertz(&cpu["frequency"]),
        "flags": flags,
        "count": number(&cpu["count"]),
    })
}

/// Returns one entry for each address of an interface, and one for an interface without any.
fn addresses(interface: &Value, plugins: &Value) -> Vec<Value> {
    let name = text(&interface["name"]);
    let model = [text(&interface["vendor"]), text(&interface["product"])].join(" ");
    let is_booted = plugins["all_interfaces"][&name]["pxe_enabled"] == true;
    let [first, second] = [text(&interface["ipv4_address"]), text(&interface["ipv6_address"])];
    let with_address = |ip: String| {
        let mut shown = known([
            ("name", name.clone()),
            ("mac", text(&interface["mac_address"]).to_lowercase()),
            ("ip", ip),
            ("model", model.trim().to_owned()),
            ("pciAddress", text(&interface["pci_address"])),
        ]);
        shown["speedGbps"] = (number(&interface["speed_mbps"]) / 1000).into();
        shown["pxe"] = is_booted.into();
        shown
    };
    let mut shown = Vec::new();
    if !first.is_empty() || second.is_empty() {
        shown.push(with_address(first));
    }
    if !second.is_empty() {
        shown.push(with_address(second));
    }
    shown
}

fn disk(disk: &Value) -> Value {
    let [device, path] = [text(&disk["name"]), text(&disk["by_path"])];
    let spins = disk["rotational"] == true;
    let kind = match device.starts_with("/dev/nvme") {
        _ if spins => "HDD",
        true => "NVME",
        false => "SSD",
    };
    let names = [path, device].into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>();
    let mut shown = known([
        ("name", names.first().cloned().unwrap_or_default()),
        ("vendor", text(&disk["vendor"])),
        ("model", text(&disk["model"])),
        ("serialNumber", text(&disk["serial"])),
        ("wwn", text(&disk["wwn"])),
        ("wwnVendorExtension", text(&disk["wwn_vendor_extension"])),
        ("wwnWithExtension", text(&disk["wwn_with_extension"])),
        ("hctl", text(&disk["hctl"])),
    ]);
    shown["alternateNames"] = names.into();
    shown["type"] = kind.into();
    shown["rotational"] = spins.into();
    shown["sizeBytes"] = number(&disk["size"]).into();
    shown
}

/// Returns an object of the texts that are known.
fn known<const N: usize>(texts: [(&str, String); N]) -> Value {
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    Value::Object(texts.map(|(name, text)| (name.to_owned(), text.into())).collect::<Map<_, _>>())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().trim().to_owned()
}

/// Returns a whole number, which some agents write as text.
fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()).unwrap_or(0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "frequencies are small and positive"
)]
fn megahertz(value: &Value) -> u64 {
    let parsed = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    parsed.unwrap_or(0.0_f64).max(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_inventory_has_what_the_agent_found() {
        let answer = json!({
            "inventory": {
                "hostname": "n1",
                "memory": {"physical_mb": 65536},
                "cpu": {"architecture": "x86_64", "count": 16, "model_name": "C", "frequency": "2494.6", "flags": ["sse", "aes"]},
                "system_vendor": {"manufacturer": "ACME", "product_name": "X1", "serial_number": "S",
                    "firmware": {"vendor": "A", "version": "1", "build_date": "D"}},
                "interfaces": [
                    {"name": "eth0", "mac_address": "00:5C:52:31:00:01", "ipv4_address": "172.22.0.10",
                        "ipv6_address": "fd00::1", "vendor": "0x1af4", "product": "0x1", "speed_mbps": 10000},
                    {"name": "eth1", "mac_address": "00:5c:52:31:00:02"},
                ],
                "disks": [
                    {"name": "/dev/sda", "by_path": "/dev/disk/by-path/p1", "size": 1000, "rotational": true, "hctl": "0:0:0:0"},
                    {"name": "/dev/nvme0n1", "size": 2000, "rotational": false, "serial": "D2"},
                ],
            },
            "plugin_data": {"all_interfaces": {"eth0": {"pxe_enabled": true}}},
        });
        let shown = serde_json::to_string_pretty(&of_inspection(&answer)).unwrap();
        expect![[r#"
            {
              "cpu": {
                "arch": "x86_64",
                "clockMegahertz": 2495,
                "count": 16,
                "flags": [
                  "aes",
                  "sse"
                ],
                "model": "C"
              },
              "firmware": {
                "bios": {
                  "date": "D",
                  "vendor": "A",
                  "version": "1"
                }
              },
              "hostname": "n1",
              "nics": [
                {
                  "ip": "172.22.0.10",
                  "mac": "00:5c:52:31:00:01",
                  "model": "0x1af4 0x1",
                  "name": "eth0",
                  "pxe": true,
                  "speedGbps": 10
                },
                {
                  "ip": "fd00::1",
                  "mac": "00:5c:52:31:00:01",
                  "model": "0x1af4 0x1",
                  "name": "eth0",
                  "pxe": true,
                  "speedGbps": 10
                },
                {
                  "mac": "00:5c:52:31:00:02",
                  "name": "eth1",
                  "pxe": false,
                  "speedGbps": 0
                }
              ],
              "ramMebibytes": 65536,
              "storage": [
                {
                  "alternateNames": [
                    "/dev/disk/by-path/p1",
                    "/dev/sda"
                  ],
                  "hctl": "0:0:0:0",
                  "name": "/dev/disk/by-path/p1",
                  "rotational": true,
                  "sizeBytes": 1000,
                  "type": "HDD"
                },
                {
                  "alternateNames": [
                    "/dev/nvme0n1"
                  ],
                  "name": "/dev/nvme0n1",
                  "rotational": false,
                  "serialNumber": "D2",
                  "sizeBytes": 2000,
                  "type": "NVME"
                }
              ],
              "systemVendor": {
                "manufacturer": "ACME",
                "productName": "X1",
                "serialNumber": "S"
              }
            }"#]]
        .assert_eq(&shown);
    }

    #[test]
    fn an_inventory_has_the_properties_of_a_node() {
        let node =
            IronicNode::read(&json!({"properties": {"cpu_arch": "aarch64", "memory_mb": "4096", "cpus": 4}}));
        expect![[r#"{"cpu":{"arch":"aarch64","clockMegahertz":0,"count":4,"flags":[],"model":""},"firmware":{"bios":{}},"hostname":"","nics":[{"mac":"00:5c:52:31:00:01","pxe":true}],"ramMebibytes":4096,"storage":[],"systemVendor":{"manufacturer":"","productName":"","serialNumber":""}}"#]].assert_eq(&of_properties(&node, Some("00:5C:52:31:00:01")).to_string());
    }
}
