//! Decisions about hosts, for the registry.

use chassis::kinds::host::{progress, status};
use domain::host::{
    decision::{CompanionChange, HostDecision, HostEvent},
    evidence::PullSecretProblem,
    record::annotations::{AnnotationName, HostAnnotations},
};
use proto::{
    event::{EventBody, EventDetail},
    host::{self as wire, companion_change::Change},
};

/// Returns the report of a decision about `known`, whose annotations were `before`.
pub(super) fn report(
    known: &wire::Host,
    before: &HostAnnotations,
    decision: &HostDecision,
) -> wire::HostDecision {
    let meta = known.meta.clone().unwrap_or_default();
    let host = &decision.host;
    wire::HostDecision {
        name: Some(wire::HostName { namespace: meta.namespace, name: meta.name }),
        revision: known.revision,
        status: Some(status::to_wire(&host.status)),
        progress: Some(progress::to_wire(&host.progress)),
        removed_annotations: removed(before, &host.meta.annotations),
        has_finalizer: host.meta.has_finalizer,
        architecture: host.spec.architecture.to_string(),
        companions: decision.companions.iter().map(companion).collect(),
        events: decision.events.iter().map(event).collect(),
    }
}

/// Returns the names of annotations that a decision has removed.
fn removed(before: &HostAnnotations, after: &HostAnnotations) -> Vec<String> {
    let has_reboot =
        |annotations: &HostAnnotations| annotations.reboots.iter().any(|request| request.key.is_none());
    let gone = [
        (AnnotationName::Reboot, has_reboot(before) && !has_reboot(after)),
        (AnnotationName::Inspect, before.inspect.is_some() && after.inspect.is_none()),
        (
            AnnotationName::HardwareDetails,
            before.hardware_details.is_some() && after.hardware_details.is_none(),
        ),
        (AnnotationName::Status, before.status.is_some() && after.status.is_none()),
    ];
    gone.into_iter().filter(|(_, is_gone)| *is_gone).map(|(name, _)| name.word().to_owned()).collect()
}

fn companion(change: &CompanionChange) -> wire::CompanionChange {
    let change = match change {
        CompanionChange::StoreHardwareData(inventory) => {
            Change::StoreHardwareData(status::inventory_to_wire(inventory))
        }
        CompanionChange::MakeFirmwareRecords => Change::MakeFirmwareRecords(wire::FirmwareRecords {}),
        CompanionChange::FirmwareUpdatesBegun => Change::FirmwareUpdatesBegun(wire::FirmwareUpdatesBegun {}),
        CompanionChange::FirmwareUpdatesForgotten => {
            Change::FirmwareUpdatesForgotten(wire::FirmwareUpdatesForgotten {})
        }
        CompanionChange::DataImageFailed(text) => Change::DataImageFailed(text.to_string()),
        CompanionChange::ClaimNetworkSecret(name) => Change::ClaimNetworkSecret(name.to_string()),
        CompanionChange::ReleaseAll => Change::ReleaseAll(wire::ClaimsReleased {}),
    };
    wire::CompanionChange { change: Some(change) }
}

fn event(event: &HostEvent) -> EventBody {
    let kind = if event.is_warning() { "Warning" } else { "Normal" };
    EventBody {
        reason: event.reason().to_owned(),
        text: text(event),
        details: vec![EventDetail { name: "type".to_owned(), value: kind.to_owned() }],
        ..EventBody::default()
    }
}

/// Returns the text of an event, for people.
fn text(event: &HostEvent) -> String {
    match event {
        HostEvent::Discovered => "the host is known and not managed".to_owned(),
        HostEvent::Registered => "the driver knows the host".to_owned(),
        HostEvent::BmcAccessValidated => "the login at the BMC works".to_owned(),
        HostEvent::BmcCredentialError { text } => (*text).to_owned(),
        HostEvent::ProfileSet { profile } => format!("the hardware profile is '{profile}'"),
        HostEvent::UpdateHardwareDetails => "the inventory was supplied".to_owned(),
        HostEvent::RemoveAnnotation(name) => format!("the annotation '{}' was removed unread", name.word()),
        HostEvent::InvalidAnnotationValue => {
            "the value of a reboot annotation cannot be read and counts as a soft reboot".to_owned()
        }
        HostEvent::InspectionStarted => "the inspection has begun".to_owned(),
        HostEvent::InspectionComplete => "the inspection is complete".to_owned(),
        HostEvent::InspectionSkipped => "no inspection is wanted".to_owned(),
        HostEvent::ProvisioningStarted => "provisioning has begun".to_owned(),
        HostEvent::ProvisioningComplete => "provisioning is complete".to_owned(),
        HostEvent::DeprovisioningStarted => "deprovisioning has begun".to_owned(),
        HostEvent::DeprovisioningComplete => "deprovisioning is complete".to_owned(),
        HostEvent::PowerOn => "the host was switched on".to_owned(),
        HostEvent::PowerOff => "the host was switched off".to_owned(),
        HostEvent::Failed { kind: _, text } => text.to_string(),
        HostEvent::ImageAuth(PullSecretProblem::Format) => {
            "the secret for the image registry has a type that is not supported".to_owned()
        }
        HostEvent::ImageAuth(PullSecretProblem::Content) => {
            "the secret for the image registry cannot be read".to_owned()
        }
        HostEvent::DeletionSkipped { operation, orphan } => {
            format!(
                "the deletion went on without '{}'; left over at the driver: '{orphan}'",
                operation.word()
            )
        }
    }
}
