//! Components with firmware of a system, and their updates (DSP0268 `UpdateService`).

use domain::host::firmware::reading::{FirmwareComponent, FirmwareUpdate};
use http::StatusCode;
use redfish::{link, path};
use serde_json::{Value, json};
use upstream::{Failure, Request};

use super::{
    Turn,
    inventory::{collection, optional},
};

/// Update service of a BMC, with the components of one system.
pub(super) struct UpdateService {
    /// Path of the action that fetches an image and installs it.
    action: String,
    /// Protocols that the action can be told.
    protocols: Vec<String>,
    components: Vec<UpdatableComponent>,
}

/// Component, and the words with which an update changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UpdatableComponent {
    component: FirmwareComponent,
    target: String,
}

/// Reads the update service for the system with that document; `None`: the BMC offers none that fetches images.
pub(super) async fn read(turn: &mut Turn<'_>, system: &Value) -> Result<Option<UpdateService>, Failure> {
    let root = turn.root().await?;
    let Some(at) = link(&root["UpdateService"]) else { return Ok(None) };
    let Some(service) = offered(turn.get("update_service_get", &at).await)? else { return Ok(None) };
    let action = &service["Actions"]["#UpdateService.SimpleUpdate"];
    let Some(target) = action["target"].as_str().and_then(path) else { return Ok(None) };
    if service["ServiceEnabled"] == false {
        return Ok(None);
    }
    let managers = system["Links"]["ManagedBy"].as_array().into_iter().flatten().filter_map(link);
    let mut manager = Value::Null;
    if let Some(at) = managers.into_iter().next() {
        manager = optional(turn.get("manager_get", &at).await)?.unwrap_or_default();
    }
    let inventory = collection(turn, "firmware_get", &service["FirmwareInventory"]).await?;
    let protocols = action["TransferProtocol@Redfish.AllowableValues"].as_array().into_iter().flatten();
    Ok(Some(UpdateService {
        action: target,
        protocols: protocols.filter_map(Value::as_str).map(str::to_owned).collect(),
        components: components(system, &manager, &inventory),
    }))
}

impl UpdateService {
    /// Returns the components with their versions.
    pub(super) fn components(&self) -> Vec<FirmwareComponent> {
        self.components.iter().map(|one| one.component.clone()).collect()
    }

    /// Returns the request for an update; `None`: there is no such component.
    pub(super) fn request(&self, update: &FirmwareUpdate) -> Option<Request> {
        let found = self.components.iter().find(|one| one.component.name == update.component)?;
        let mut body = json!({"ImageURI": &*update.url, "Targets": [found.target]});
        let protocol = update.url.split_once("://").map(|(protocol, _)| protocol.to_uppercase());
        if let Some(protocol) = protocol.filter(|protocol| self.protocols.contains(protocol)) {
            body["TransferProtocol"] = protocol.into();
        }
        Some(Request::post("firmware_update", &self.action).json(&body))
    }
}

/// Returns the components of a system: its BIOS, its BMC, and the network adapters that the inventory relates to it.
fn components(system: &Value, manager: &Value, inventory: &[Value]) -> Vec<UpdatableComponent> {
    let mut found = Vec::new();
    let mut add = |name: String, version: &Value, target: Option<String>| {
        if let (Some(version), Some(target)) = (version.as_str(), target) {
            let component = FirmwareComponent { name: name.into(), version: version.into() };
            found.push(UpdatableComponent { component, target });
        }
    };
    let entry_of = |related: Option<String>| {
        let related = related?;
        let is_about = |entry: &&Value| relations(entry).any(|item| item.trim_end_matches('/') == related);
        inventory.iter().find(is_about).and_then(link)
    };
    let bios = || entry_of(link(&system["Bios"])).or_else(|| entry_of(link(system)));
    add("bios".to_owned(), &system["BiosVersion"], bios().or_else(|| link(system)));
    add("bmc".to_owned(), &manager["FirmwareVersion"], entry_of(link(manager)).or_else(|| link(manager)));
    for entry in inventory {
        let adapter = relations(entry).find_map(|item| {
            let (_, rest) = item.split_once("/NetworkAdapters/")?;
            Some(rest.split('/').next().unwrap_or_default().to_owned())
        });
        if let Some(adapter) = adapter.filter(|adapter| !adapter.is_empty()) {
            add(format!("nic:{adapter}"), &entry["Version"], link(entry));
        }
    }
    found
}

fn relations(entry: &Value) -> impl Iterator<Item = String> {
    entry["RelatedItem"].as_array().into_iter().flatten().filter_map(link)
}

/// Returns a document of a part that hardware may lack. Whatever else keeps it from being read says nothing about that.
pub(super) fn offered(read: Result<Value, Failure>) -> Result<Option<Value>, Failure> {
    const LACKS: [Option<StatusCode>; 3] = [
        Some(StatusCode::NOT_FOUND),
        Some(StatusCode::METHOD_NOT_ALLOWED),
        Some(StatusCode::NOT_IMPLEMENTED),
    ];
    match read {
        Err(failure) if LACKS.contains(&failure.status) => Ok(None),
        read => read.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_updated_by_the_inventory_or_by_their_owner() {
        let system = json!({"@odata.id": "/s/1", "BiosVersion": "1.0", "Bios": {"@odata.id": "/s/1/Bios"}});
        let manager = json!({"@odata.id": "/m/1", "FirmwareVersion": "2.0"});
        let inventory = [
            json!({"@odata.id": "/f/BIOS", "Version": "1.0", "RelatedItem": [{"@odata.id": "/s/1/Bios"}]}),
            json!({"@odata.id": "/f/NIC", "Version": "3.0",
                "RelatedItem": [{"@odata.id": "/c/1/NetworkAdapters/NIC.1/NetworkDeviceFunctions/1"}]}),
            json!({"@odata.id": "/f/PSU", "Version": "4.0"}),
        ];
        let show = |found: Vec<UpdatableComponent>| {
            let one = |one: &UpdatableComponent| {
                format!("{} {} {}", one.component.name, one.component.version, one.target)
            };
            found.iter().map(one).collect::<Vec<_>>()
        };
        let found = show(components(&system, &manager, &inventory));
        assert_eq!(found, ["bios 1.0 /f/BIOS", "bmc 2.0 /m/1", "nic:NIC.1 3.0 /f/NIC"]);
        assert_eq!(show(components(&system, &Value::Null, &[])), ["bios 1.0 /s/1"]);
    }
}
