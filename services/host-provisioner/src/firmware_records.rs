//! Records about the firmware of hosts, at the registry.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chassis::{Channel, kinds::host::firmware, mesh::channel::LARGEST_MESSAGE, within};
use domain::host::{
    firmware::reading::{FirmwareWishes, SettingRule},
    record::{HostKey, call::PreparationParts},
};
use proto::host::{
    CreateHostDocumentRequest, DocumentKind, DocumentName, GetHostDocumentRequest, HostDocument, ObjectMeta,
    Precondition, ReplaceHostDocumentStatusRequest, WatchHostDocumentsRequest, WatchHostDocumentsResponse,
    host_document_service_client::HostDocumentServiceClient,
};
use tonic::{Code, Status, Streaming};

use crate::driver::FirmwareOrder;

/// Most time of an answer of the registry.
const DEADLINE: Duration = Duration::from_secs(10);

/// Records about the firmware of hosts. Clones share the connection.
#[derive(Clone)]
pub(crate) struct FirmwareRecords {
    registry: HostDocumentServiceClient<Channel>,
}

/// Records about the firmware of one host; `None`: there is none.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostFirmware {
    pub(crate) settings: Option<HostDocument>,
    pub(crate) components: Option<HostDocument>,
}

impl FirmwareRecords {
    /// Creates the records of `registry`.
    pub(crate) fn new(registry: Channel) -> Self {
        let client = HostDocumentServiceClient::new(registry);
        Self { registry: client.max_decoding_message_size(LARGEST_MESSAGE) }
    }

    /// Reads the wishes that an operation with these parts is about.
    ///
    /// # Errors
    /// The registry does not answer.
    pub(crate) async fn order(
        &self,
        host: &HostKey,
        parts: PreparationParts,
    ) -> Result<FirmwareOrder, Status> {
        if !parts.has_firmware() {
            return Ok(FirmwareOrder::default());
        }
        Ok(order(&self.of(host).await?, parts))
    }

    /// Reads the records of a host.
    pub(crate) async fn of(&self, host: &HostKey) -> Result<HostFirmware, Status> {
        Ok(HostFirmware {
            settings: self.get(DocumentKind::FirmwareSettings, &host.namespace, &host.name).await?,
            components: self.get(DocumentKind::FirmwareComponents, &host.namespace, &host.name).await?,
        })
    }

    /// Reads the rules of a schema; `None`: there is no such schema.
    pub(crate) async fn rules(
        &self,
        namespace: &str,
        schema: &str,
    ) -> Result<Option<BTreeMap<Arc<str>, SettingRule>>, Status> {
        let found = self.get(DocumentKind::FirmwareSchema, namespace, schema).await?;
        Ok(found.map(|document| firmware::rules(&document)))
    }

    async fn get(
        &self,
        kind: DocumentKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<HostDocument>, Status> {
        let name = Some(document_name(kind, namespace, name));
        let mut registry = self.registry.clone();
        match within(DEADLINE, registry.get_host_document(GetHostDocumentRequest { name })).await {
            Ok(found) => Ok(found.into_inner().host_document),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// Makes a schema, unless there is one with that content.
    pub(crate) async fn make_schema(&self, namespace: &str, spec_json: String) -> Result<String, Status> {
        let name = firmware::schema_name(&spec_json);
        let meta =
            ObjectMeta { namespace: namespace.to_owned(), name: name.clone(), ..ObjectMeta::default() };
        let document = HostDocument {
            kind: DocumentKind::FirmwareSchema.into(),
            meta: Some(meta),
            spec_json,
            ..HostDocument::default()
        };
        let request = CreateHostDocumentRequest { host_document: Some(document), validate_only: false };
        let mut registry = self.registry.clone();
        match within(DEADLINE, registry.create_host_document(request)).await {
            Ok(_) => Ok(name),
            Err(status) if status.code() == Code::AlreadyExists => Ok(name),
            Err(status) => Err(status),
        }
    }

    /// Replaces the status of a record, unless the record has changed since it was read.
    pub(crate) async fn replace_status(
        &self,
        document: &HostDocument,
        status_json: String,
    ) -> Result<(), Status> {
        let meta = document.meta.clone().unwrap_or_default();
        let request = ReplaceHostDocumentStatusRequest {
            name: Some(document_name(document.kind(), &meta.namespace, &meta.name)),
            status_json,
            managed_fields_json: None,
            precondition: Some(Precondition { revision: document.revision, uid: meta.uid }),
            validate_only: false,
        };
        let mut registry = self.registry.clone();
        match within(DEADLINE, registry.replace_host_document_status(request)).await {
            Ok(_) => Ok(()),
            // The change queues the host again.
            Err(status) if matches!(status.code(), Code::Aborted | Code::NotFound) => Ok(()),
            Err(status) => Err(status),
        }
    }

    /// Watches the records of one kind.
    pub(crate) async fn watch(
        &self,
        kind: DocumentKind,
    ) -> Result<Streaming<WatchHostDocumentsResponse>, Status> {
        let mut registry = self.registry.clone();
        let request = WatchHostDocumentsRequest { kind: kind.into(), ..Default::default() };
        Ok(within(DEADLINE, registry.watch_host_documents(request)).await?.into_inner())
    }
}

fn document_name(kind: DocumentKind, namespace: &str, name: &str) -> DocumentName {
    DocumentName { kind: kind.into(), namespace: namespace.to_owned(), name: name.to_owned() }
}

/// Returns the wishes that an operation with these parts is about: settings that differ from the values on record, and
/// updates that were not begun. Once all updates are begun, the operation under way is about all of them.
fn order(records: &HostFirmware, parts: PreparationParts) -> FirmwareOrder {
    let FirmwareWishes { settings, updates } =
        firmware::wishes(records.settings.as_ref(), records.components.as_ref());
    let mut order = FirmwareOrder::default();
    if parts.settings {
        let known = records.settings.as_ref().map(firmware::known_settings).unwrap_or_default();
        let wishes = FirmwareWishes { settings, updates: Vec::new() };
        let changed = wishes.changed_settings(&known);
        order.wishes.settings = changed.map(|(name, value)| (Arc::clone(name), Arc::clone(value))).collect();
    }
    if let Some(document) = records.components.as_ref().filter(|_| parts.components) {
        let begun = firmware::begun_updates(document);
        let due: Vec<_> = updates.iter().filter(|update| !begun.contains(update)).cloned().collect();
        order.wishes.updates = if due.is_empty() { updates } else { due };
        order.known = firmware::known_components(document);
    }
    order
}

#[cfg(test)]
mod tests {
    use domain::host::firmware::reading::FirmwareUpdate;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_operation_is_about_what_is_not_as_wished() {
        let document = |spec: serde_json::Value, status: serde_json::Value| HostDocument {
            spec_json: spec.to_string(),
            status_json: status.to_string(),
            ..HostDocument::default()
        };
        let bios = json!({"component": "bios", "url": "http://i/b"});
        let bmc = json!({"component": "bmc", "url": "http://i/m"});
        let components = |begun: serde_json::Value| {
            let known = json!([{"component": "bios", "currentVersion": "1"}]);
            document(json!({"updates": [bios, bmc]}), json!({"updates": begun, "components": known}))
        };
        let settings = document(
            json!({"settings": {"Delay": 5, "Turbo": "Off"}}),
            json!({"settings": {"Delay": "5", "Turbo": "On"}}),
        );
        let records =
            |begun| HostFirmware { settings: Some(settings.clone()), components: Some(components(begun)) };
        let every = PreparationParts { storage: true, settings: true, components: true };
        let due = order(&records(json!([bios])), every);
        assert_eq!(due.wishes.settings, BTreeMap::from([("Turbo".into(), "Off".into())]));
        let update = |name: &str, url: &str| FirmwareUpdate { component: name.into(), url: url.into() };
        assert_eq!(due.wishes.updates, [update("bmc", "http://i/m")]);
        assert_eq!(due.known.len(), 1);
        let begun = order(&records(json!([bios, bmc])), every).wishes.updates;
        assert_eq!(begun, [update("bios", "http://i/b"), update("bmc", "http://i/m")]);
        let nothing = order(&records(json!([])), PreparationParts { storage: true, ..Default::default() });
        assert_eq!(nothing, FirmwareOrder::default());
    }
}
