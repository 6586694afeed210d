//! Words of the contract (device reference 1.4). A document with another word is refused, because clients would not
//! understand it later.

use std::{borrow::Cow, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Words that a member may have.
pub(crate) trait WordList: JsonSchema {
    /// Every word.
    const WORDS: &'static [&'static str];
}

/// Word of a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Word<L>(String, PhantomData<L>);

impl<L> Word<L> {
    /// Word of a record, which has only known ones.
    pub(crate) fn stored(word: impl Into<String>) -> Self {
        Self(word.into(), PhantomData)
    }

    /// Word of a status in a record, where an empty one stands for `Unknown`.
    pub(crate) fn status(word: String) -> Self {
        Self::stored(if word.is_empty() { UNKNOWN.to_owned() } else { word })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

/// Word for a status that nobody knows.
pub(crate) const UNKNOWN: &str = "Unknown";

impl<L> Serialize for Word<L> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, L: WordList> Deserialize<'de> for Word<L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        match L::WORDS.contains(&&*word) {
            true => Ok(Self::stored(word)),
            false => Err(D::Error::unknown_variant(&word, L::WORDS)),
        }
    }
}

impl<L: WordList> JsonSchema for Word<L> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        L::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        L::json_schema(generator)
    }
}

/// Declares lists of words.
macro_rules! word_lists {
    ($($(#[$about:meta])* $name:ident: $($word:literal)*;)*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, PartialEq)]
            pub(crate) enum $name {}

            impl WordList for $name {
                const WORDS: &'static [&'static str] = &[$($word),*];
            }

            impl JsonSchema for $name {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!({ "type": "string", "enum": Self::WORDS })
                }
            }
        )*
    };
}

word_lists! {
    /// Versions of the contract in documents; an empty one is the present version.
    DocumentVersions: "flightctl.io/v1beta1" "v1beta1" "";
    /// Whether a device can be reached and is well.
    SummaryWords: "Online" "Degraded" "Error" "Rebooting" "PoweredOff" "Unknown" "AwaitingReconnect" "ConflictPaused";
    /// Whether a device runs its spec.
    UpdatedWords: "UpToDate" "OutOfDate" "Updating" "Unknown";
    /// Whether the applications of a device are well.
    ApplicationsWords: "Healthy" "Degraded" "Error" "Unknown" "NoApplications";
    /// Status of one application.
    ApplicationWords: "Preparing" "Starting" "Running" "Error" "Unknown" "Completed" "Stopped" "Stopping";
    /// Stage of the life of a device.
    LifecycleWords: "Unknown" "Enrolled" "Decommissioning" "Decommissioned";
    /// Status of a resource that may run short.
    ResourceWords: "Healthy" "Warning" "Critical" "Error" "Unknown";
    /// Status of the integrity.
    IntegrityWords: "Verified" "Failed" "Unknown" "Unsupported";
    /// Types of applications.
    ApplicationTypes: "compose" "quadlet" "container" "helm" "vm";
    /// Truth of a condition.
    ConditionStatuses: "True" "False" "Unknown";
    /// Types of conditions of a device.
    DeviceConditions: "Updating" "DeviceDecommissioning" "SpecValid" "MultipleOwners";
    /// Manner in which the system of a device is updated.
    OsModes: "image" "package";
    /// End of the life of a device.
    DecommissionTargets: "Unenroll" "FactoryReset";
    /// The kind of a device.
    DeviceKind: "Device";
    /// The kind of a list of devices.
    DeviceListKind: "DeviceList";
    /// The kind of an answer about a request.
    StatusKind: "Status";
    /// Outcomes of requests.
    Outcomes: "Success" "Failure";
    /// The kind of an organisation.
    OrganizationKind: "Organization";
    /// The kind of a list of organisations.
    OrganizationListKind: "OrganizationList";
    /// The kind of an event.
    EventKind: "Event";
    /// The kind of a list of events.
    EventListKind: "EventList";
    /// The kind of a fleet.
    FleetKind: "Fleet";
    /// The kind of a list of fleets.
    FleetListKind: "FleetList";
    /// Types of conditions of a fleet.
    FleetConditions: "Valid" "RolloutInProgress";
    /// The kind of a version of a template.
    TemplateVersionKind: "TemplateVersion";
    /// The kind of a list of such.
    TemplateVersionListKind: "TemplateVersionList";
    /// The kind of a request of an agent.
    EnrolmentKind: "EnrollmentRequest";
    /// The kind of a list of such.
    EnrolmentListKind: "EnrollmentRequestList";
    /// Types of conditions of such a request.
    EnrolmentConditions: "Approved";
    /// The kind of a request of an agent for a further certificate.
    SigningRequestKind: "CertificateSigningRequest";
    /// Signers of such a request.
    RenewalSigners: "flightctl.io/device-management-renewal";
    /// Operations of JSON patches.
    PatchOperations: "add" "replace" "remove" "test";
    /// Weights of events.
    EventTypes: "Normal" "Warning";
}
