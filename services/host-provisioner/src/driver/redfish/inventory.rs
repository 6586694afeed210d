//! Inventory of a host as its BMC reports it, in the form of the contract (host reference 2.5).

use redfish::{link, members};
use serde_json::{Map, Value, json};
use upstream::{Failure, FailureKind};

use super::Turn;

/// Documents about a system.
#[derive(Debug, Clone, Default)]
struct SystemDocuments {
    system: Value,
    processors: Vec<Value>,
    interfaces: Vec<Value>,
    drives: Vec<Value>,
}

/// Reads the inventory of the system with that document. Collections that the BMC lacks, or fails to show, are left out:
/// few BMCs have them all.
///
/// # Errors
/// When the BMC is not reached, or does not answer in time.
pub(super) async fn collect(turn: &mut Turn<'_>, system: Value) -> Result<Value, Failure> {
    let mut documents = SystemDocuments {
        processors: collection(turn, "processor_get", &system["Processors"]).await?,
        interfaces: collection(turn, "interface_get", &system["EthernetInterfaces"]).await?,
        system,
        drives: Vec::new(),
    };
    for storage in collection(turn, "storage_get", &documents.system["Storage"]).await? {
        for drive in storage["Drives"].as_array().into_iter().flatten().filter_map(link) {
            documents.drives.extend(optional(turn.get("drive_get", &drive).await)?);
        }
    }
    Ok(inventory(&documents))
}

/// Reads the members of a collection.
pub(super) async fn collection(
    turn: &mut Turn<'_>,
    operation: &'static str,
    reference: &Value,
) -> Result<Vec<Value>, Failure> {
    let Some(at) = link(reference) else { return Ok(Vec::new()) };
    let Some(listed) = optional(turn.get(operation, &at).await)? else { return Ok(Vec::new()) };
    let mut documents = Vec::new();
    for member in members(&listed) {
        documents.extend(optional(turn.get(operation, &member).await)?);
    }
    Ok(documents)
}

/// Returns a document that a BMC may lack, or fail to show. A BMC that gave no answer at all may have it.
pub(super) fn optional(read: Result<Value, Failure>) -> Result<Option<Value>, Failure> {
    let failure = match read {
        Ok(document) => return Ok(Some(document)),
        Err(failure) => failure,
    };
    match (failure.kind, failure.status) {
        (FailureKind::Unreachable, _) | (FailureKind::Ambiguous, None) => Err(failure),
        (FailureKind::Ambiguous, Some(_)) | (FailureKind::Refused | FailureKind::Denied, _) => Ok(None),
    }
}

fn inventory(documents: &SystemDocuments) -> Value {
    let SystemDocuments { system, interfaces, drives, .. } = documents;
    let memory = system["MemorySummary"]["TotalSystemMemoryGiB"].as_f64().unwrap_or(0.0);
    json!({
        "hostname": text(&system["HostName"]),
        "ramMebibytes": whole(memory * 1024.0),
        "cpu": processor(documents),
        "systemVendor": {
            "manufacturer": text(&system["Manufacturer"]),
            "productName": text(&system["Model"]),
            "serialNumber": text(&system["SerialNumber"]),
        },
        "firmware": {"bios": known([("version", text(&system["BiosVersion"]))])},
        "nics": interfaces.iter().map(interface).collect::<Vec<_>>(),
        "storage": drives.iter().map(drive).collect::<Vec<_>>(),
    })
}

fn processor(documents: &SystemDocuments) -> Value {
    let summary = &documents.system["ProcessorSummary"];
    let first = documents.processors.first().unwrap_or(&Value::Null);
    let sum = |field: &str| documents.processors.iter().filter_map(|one| one[field].as_u64()).sum::<u64>();
    let threads = [
        sum("TotalThreads"),
        summary["LogicalProcessorCount"].as_u64().unwrap_or(0),
        sum("TotalCores"),
        summary["Count"].as_u64().unwrap_or(0),
    ];
    let model = [text(&summary["Model"]), text(&first["Model"])].into_iter().find(|text| !text.is_empty());
    json!({
        "arch": architecture(first, summary),
        "model": model.unwrap_or_default(),
        "clockMegahertz": first["MaxSpeedMHz"].as_u64().unwrap_or(0),
        "flags": [],
        "count": threads.into_iter().find(|count| *count > 0).unwrap_or(0),
    })
}

/// Returns the word of the contract for the architecture. A BMC that names none is taken for one of the usual one.
fn architecture(processor: &Value, summary: &Value) -> &'static str {
    let named = [&processor["InstructionSet"], &processor["ProcessorArchitecture"], &summary["Model"]];
    let is_arm = |value: &Value| value.as_str().is_some_and(|word| word.to_uppercase().contains("ARM"));
    if named.into_iter().any(is_arm) { "aarch64" } else { "x86_64" }
}

fn interface(document: &Value) -> Value {
    let mac = [&document["MACAddress"], &document["PermanentMACAddress"]].map(text);
    let address = document["IPv4Addresses"].as_array().into_iter().flatten().map(|one| text(&one["Address"]));
    let mac = mac.into_iter().find(|mac| !mac.is_empty()).unwrap_or_default().to_lowercase();
    let mut shown = known([
        ("name", text(&document["Id"])),
        ("mac", mac),
        ("ip", address.into_iter().find(|one| !one.is_empty()).unwrap_or_default()),
    ]);
    shown["speedGbps"] = (document["SpeedMbps"].as_u64().unwrap_or(0) / 1000).into();
    shown
}

fn drive(document: &Value) -> Value {
    let protocol = text(&document["Protocol"]).to_uppercase();
    let spins = text(&document["MediaType"]).to_uppercase() == "HDD";
    let kind = if protocol.contains("NVME") {
        "NVME"
    } else if spins {
        "HDD"
    } else {
        "SSD"
    };
    let mut shown = known([
        ("name", text(&document["Name"])),
        ("vendor", text(&document["Manufacturer"])),
        ("model", text(&document["Model"])),
        ("serialNumber", text(&document["SerialNumber"])),
    ]);
    shown["type"] = kind.into();
    shown["rotational"] = spins.into();
    shown["sizeBytes"] = document["CapacityBytes"].as_u64().unwrap_or(0).into();
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of memory are small and positive"
)]
fn whole(number: f64) -> u64 {
    number.max(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_inventory_has_what_the_bmc_shows() {
        let documents = SystemDocuments {
            system: json!({"HostName": "n1", "Manufacturer": "HPE ", "Model": "DL385", "SerialNumber": "S1",
                "BiosVersion": "2.1", "MemorySummary": {"TotalSystemMemoryGiB": 31.5},
                "ProcessorSummary": {"Count": 2, "Model": "EPYC"}}),
            processors: vec![
                json!({"TotalThreads": 64, "TotalCores": 32, "MaxSpeedMHz": 3700}),
                json!({"TotalThreads": 64}),
            ],
            interfaces: vec![
                json!({"Id": "1", "MACAddress": "00:5C:52:31:00:01", "SpeedMbps": 25000,
                "IPv4Addresses": [{"Address": "10.0.0.7"}]}),
                json!({"Id": "2"}),
            ],
            drives: vec![
                json!({"Name": "D1", "CapacityBytes": 1000, "MediaType": "HDD", "Protocol": "SAS"}),
                json!({"Name": "D2", "Protocol": "NVMe", "MediaType": "SSD"}),
            ],
        };
        let shown = serde_json::to_string_pretty(&inventory(&documents)).unwrap();
        expect![[r#"
            {
              "cpu": {
                "arch": "x86_64",
                "clockMegahertz": 3700,
                "count": 128,
                "flags": [],
                "model": "EPYC"
              },
              "firmware": {
                "bios": {
                  "version": "2.1"
                }
              },
              "hostname": "n1",
              "nics": [
                {
                  "ip": "10.0.0.7",
                  "mac": "00:5c:52:31:00:01",
                  "name": "1",
                  "speedGbps": 25
                },
                {
                  "name": "2",
                  "speedGbps": 0
                }
              ],
              "ramMebibytes": 32256,
              "storage": [
                {
                  "name": "D1",
                  "rotational": true,
                  "sizeBytes": 1000,
                  "type": "HDD"
                },
                {
                  "name": "D2",
                  "rotational": false,
                  "sizeBytes": 0,
                  "type": "NVME"
                }
              ],
              "systemVendor": {
                "manufacturer": "HPE",
                "productName": "DL385",
                "serialNumber": "S1"
              }
            }"#]]
        .assert_eq(&shown);
        let bare = inventory(&SystemDocuments::default()).to_string();
        expect![[r#"{"cpu":{"arch":"x86_64","clockMegahertz":0,"count":0,"flags":[],"model":""},"firmware":{"bios":{}},"hostname":"","nics":[],"ramMebibytes":0,"storage":[],"systemVendor":{"manufacturer":"","productName":"","serialNumber":""}}"#]].assert_eq(&bare);
        let arm = json!({"InstructionSet": "ARM-A64"});
        assert_eq!(architecture(&arm, &Value::Null), "aarch64");
    }
}
