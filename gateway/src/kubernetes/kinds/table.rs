//! The table of kinds.

use proto::host::DocumentKind;

use super::{AUTHENTICATION, AUTHORIZATION, HOST_VERSION, METAL3, ObjectSource, ResourceKind, columns};

const EVERY_VERB: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const READS: &[&str] = &["get", "list", "watch"];

const HOST: ResourceKind = ResourceKind {
    group: METAL3,
    version: HOST_VERSION,
    kind: "BareMetalHost",
    plural: "baremetalhosts",
    singular: "baremetalhost",
    short_names: &["bmh", "bmhost"],
    categories: &["metal3"],
    is_namespaced: true,
    verbs: EVERY_VERB,
    has_status: true,
    columns: columns::HOSTS,
    selectable: &[],
    source: ObjectSource::Hosts,
};

const fn companion(
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    short_names: &'static [&'static str],
    document: DocumentKind,
) -> ResourceKind {
    let columns = columns::ONLY_AGE;
    ResourceKind {
        kind,
        plural,
        singular,
        short_names,
        columns,
        source: ObjectSource::Documents(document),
        ..HOST
    }
}

const fn question(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> ResourceKind {
    ResourceKind {
        group,
        version: "v1",
        kind,
        plural,
        singular,
        short_names: &[],
        categories: &[],
        is_namespaced: false,
        verbs: &["create"],
        has_status: false,
        columns: &[],
        selectable: &[],
        source: ObjectSource::Question,
    }
}

const CORE: ResourceKind = ResourceKind {
    group: "",
    version: "v1",
    short_names: &[],
    categories: &[],
    has_status: false,
    columns: columns::ONLY_AGE,
    ..HOST
};

/// Every kind that is served.
pub(crate) static KINDS: &[ResourceKind] = &[
    ResourceKind {
        kind: "Namespace",
        plural: "namespaces",
        singular: "namespace",
        short_names: &["ns"],
        is_namespaced: false,
        columns: columns::NAMESPACES,
        selectable: &["status.phase"],
        source: ObjectSource::Documents(DocumentKind::Namespace),
        ..CORE
    },
    ResourceKind {
        kind: "Secret",
        plural: "secrets",
        singular: "secret",
        columns: columns::SECRETS,
        selectable: &["type"],
        source: ObjectSource::Secrets,
        ..CORE
    },
    ResourceKind {
        kind: "Event",
        plural: "events",
        singular: "event",
        short_names: &["ev"],
        verbs: READS,
        columns: columns::EVENTS,
        selectable: &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        source: ObjectSource::Events,
        ..CORE
    },
    ResourceKind {
        kind: "Service",
        plural: "services",
        singular: "service",
        short_names: &["svc"],
        verbs: READS,
        source: ObjectSource::Nowhere,
        ..CORE
    },
    HOST,
    ResourceKind {
        has_status: false,
        ..companion("HardwareData", "hardwaredata", "hardwaredata", &["hd"], DocumentKind::HardwareData)
    },
    companion(
        "HostFirmwareSettings",
        "hostfirmwaresettings",
        "hostfirmwaresettings",
        &["hfs"],
        DocumentKind::FirmwareSettings,
    ),
    ResourceKind {
        has_status: false,
        ..companion("FirmwareSchema", "firmwareschemas", "firmwareschema", &[], DocumentKind::FirmwareSchema)
    },
    companion(
        "HostFirmwareComponents",
        "hostfirmwarecomponents",
        "hostfirmwarecomponents",
        &["hfc"],
        DocumentKind::FirmwareComponents,
    ),
    ResourceKind {
        has_status: false,
        ..companion(
            "HostUpdatePolicy",
            "hostupdatepolicies",
            "hostupdatepolicy",
            &["hup"],
            DocumentKind::UpdatePolicy,
        )
    },
    companion("DataImage", "dataimages", "dataimage", &[], DocumentKind::DataImage),
    ResourceKind {
        columns: columns::IMAGES,
        ..companion(
            "PreprovisioningImage",
            "preprovisioningimages",
            "preprovisioningimage",
            &["ppimg"],
            DocumentKind::PreprovisioningImage,
        )
    },
    ResourceKind {
        columns: columns::SUBSCRIPTIONS,
        ..companion(
            "BMCEventSubscription",
            "bmceventsubscriptions",
            "bmceventsubscription",
            &["bes", "bmcevent"],
            DocumentKind::EventSubscription,
        )
    },
    question(AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews", "selfsubjectreview"),
    question(AUTHORIZATION, "SelfSubjectAccessReview", "selfsubjectaccessreviews", "selfsubjectaccessreview"),
    question(AUTHORIZATION, "SelfSubjectRulesReview", "selfsubjectrulesreviews", "selfsubjectrulesreview"),
];
