//! Hosts as objects and back.

use chassis::Fault;
use proto::host::{DocumentKind, Host, HostDocument, ObjectMeta};
use serde_json::{Value, json};

use super::{
    super::store::{FollowedKind, VersionBase},
    hosts,
    refusal::{WriteFailure, failed},
};

/// Every wish that the schema knows.
fn every_wish() -> Value {
    let volume = json!({ "level": "1", "physicalDisks": [{ "model": "m" }, { "rotational": false }], "rootVolume": true });
    json!({
        "architecture": "x86_64", "automatedCleaningMode": "disabled", "bootMACAddress": "00:00:00:00:00:01",
        "bmc": { "address": "redfish://x", "credentialsName": "s", "disableCertificateVerification": true },
        "bootMode": "legacy", "customDeploy": { "method": "install" }, "description": "d", "disablePowerOff": true,
        "consumerRef": {
            "apiVersion": "v1", "fieldPath": "f", "kind": "k", "name": "n", "namespace": "m",
            "resourceVersion": "1", "uid": "u",
        },
        "externallyProvisioned": true, "hardwareProfile": "unknown", "inspectionMode": "agent", "online": true,
        "firmware": { "simultaneousMultithreadingEnabled": true, "sriovEnabled": false, "virtualizationEnabled": true },
        "image": {
            "url": "http://i", "checksum": "c", "checksumType": "md5", "format": "raw", "ociAuthSecretName": "o",
        },
        "metaData": { "name": "a", "namespace": "m" }, "networkData": { "name": "b" }, "userData": { "name": "c" },
        "networkInterfaces": [
            { "name": "eth0", "hostNetworkAttachment": { "name": "x", "namespace": "m" } },
            { "macAddress": "00:00:00:00:00:02", "switchPort": { "switchID": "00:00:00:00:00:03", "portID": "1" } },
        ],
        "preprovisioningNetworkDataName": "p", "raid": { "hardwareRAIDVolumes": [], "softwareRAIDVolumes": [volume] },
        "rootDeviceHints": {
            "deviceName": "/dev/sda", "hctl": "0:0:0:0", "model": "m", "vendor": "v", "serialNumber": "s",
            "minSizeGigabytes": 7, "wwn": "w", "wwnWithExtension": "we", "wwnVendorExtension": "wv", "rotational": true,
        },
        "taints": [{ "key": "k", "effect": "NoSchedule", "value": "v", "timeAdded": "2026-01-31T12:00:00Z" }],
    })
}

/// Everything that the schema knows about a host, but for texts that nothing stores.
fn every_knowledge() -> Value {
    let times = json!({ "start": "2026-01-31T12:00:00Z", "end": null });
    let login = json!({ "credentials": { "name": "s", "namespace": "m" }, "credentialsVersion": "7" });
    json!({
        "operationalStatus": "error", "errorType": "power management error", "errorMessage": "e", "errorCount": 2,
        "provisioningFailCount": 3, "lastAttemptedImage": { "url": "u" }, "lastUpdated": "2026-01-31T12:00:00Z",
        "hardwareProfile": "unknown", "hardware": { "cpu": { "arch": "x86_64" }, "ramMebibytes": 7 }, "poweredOn": true,
        "provisioning": {
            "state": "provisioned", "ID": "1", "image": { "url": "http://i" }, "rootDeviceHints": { "wwn": "w" },
            "raid": { "hardwareRAIDVolumes": null, "softwareRAIDVolumes": [] }, "bootMode": "UEFI",
            "customDeploy": { "method": "install" },
        },
        "goodCredentials": login, "triedCredentials": {},
        "operationHistory": { "register": times, "inspect": times, "provision": times, "deprovision": times },
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Provisioned", "message": "",
            "lastTransitionTime": "2026-01-31T12:00:00Z",
        }],
    })
}

#[test]
fn hosts_survive_the_way_through_the_registry() {
    let metadata = json!({
        "name": "a", "namespace": "m", "labels": { "l": "1" }, "annotations": { "a": "2" }, "finalizers": ["f"],
        "ownerReferences": [{ "apiVersion": "v1", "kind": "k", "name": "n", "uid": "u", "controller": true }],
        "managedFields": [{ "manager": "x" }],
    });
    let object = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": metadata, "spec": every_wish(),
        "status": every_knowledge(),
    });
    let object = object.as_object().unwrap();
    let host = Host { status: Some(hosts::read_status(object)), revision: 9, ..hosts::read(object) };
    let mut shown = host.shown(VersionBase::default());
    let version = super::super::object::metadata_mut(&mut shown).remove("resourceVersion");
    assert_eq!(version, Some("9".into()));
    assert_eq!(Value::Object(shown), Value::Object(object.clone()));
}

#[test]
fn every_member_of_the_schema_has_a_place() {
    let schema = hosts::kind().schema_document();
    for (half, known) in [("spec", every_wish()), ("status", every_knowledge())] {
        let listed = schema["properties"][half]["properties"].as_object().unwrap();
        let missing: Vec<_> =
            listed.keys().filter(|name| known.get(name).is_none() && *name != "reveille").collect();
        assert!(missing.is_empty(), "{half}: {missing:?}");
    }
}

#[test]
fn namespaces_show_their_phase_beside_their_conditions() {
    let shown = |is_deleted: bool, status_json: &str| {
        let deleted_at = is_deleted.then(Default::default);
        let document = HostDocument {
            kind: DocumentKind::Namespace.into(),
            meta: Some(ObjectMeta { name: "m".to_owned(), deleted_at, ..ObjectMeta::default() }),
            status_json: status_json.to_owned(),
            ..HostDocument::default()
        };
        document.shown(VersionBase::default())["status"].clone()
    };
    assert_eq!(shown(false, ""), json!({ "phase": "Active" }));
    let known = shown(true, r#"{"conditions":[{"type":"NamespaceDeletionContentFailure"}]}"#);
    let expected =
        json!({ "conditions": [{ "type": "NamespaceDeletionContentFailure" }], "phase": "Terminating" });
    assert_eq!(known, expected);
}

#[test]
fn a_namespace_under_deletion_takes_nothing() {
    let fault = Fault::Locked { kind: "namespace".into(), name: "m".into(), reason: "it ends".into() };
    let WriteFailure::Refused(failure) = failed(hosts::kind(), "h", fault.into()) else {
        panic!("the record is not outdated");
    };
    assert_eq!((failure.code.as_u16(), failure.reason), (403, "Forbidden"));
    assert_eq!(failure.message, "baremetalhosts.metal3.io \"h\" is forbidden: it ends");
    assert_eq!(failure.details.causes[0].reason, "NamespaceTerminating");
}
