//! Every path of the face, with its handlers, and the part of its description that does not follow from them. A path is
//! added here and nowhere else.

use http::StatusCode;

use super::{
    decisions, device_status, devices, enrolment, events, fleets, rendered, selection::LONGEST_SELECTOR,
    service,
};
use crate::{
    flightctl::{
        FlightctlFace,
        pages::LARGEST_PAGE,
        wire::{
            device::{Device, DeviceList, LastSeen},
            enrolment::{EnrolmentApproval, EnrolmentList, EnrolmentRequest},
            event::EventList,
            fleet::{Fleet, FleetList, TemplateVersion, TemplateVersionList},
            outcome::OutcomeStatus,
            service::{OrganizationList, ResumeAnswer, ServiceVersion},
            words::{DeviceKind, Word},
        },
    },
    http::{
        document::{ApiOperation, ApiParameter, BoundedText, WholeNumber, query},
        endpoint::ApiEndpoint,
    },
};

/// Tag of the paths about devices.
const DEVICES: &str = "edge devices";

/// The paths of the contract (device reference 4.3).
pub(crate) fn endpoints() -> Vec<ApiEndpoint<FlightctlFace>> {
    let mut paths = about_the_service();
    paths.extend(devices());
    paths.extend(parts_of_devices());
    paths.extend(around_devices());
    paths.extend(fleets());
    paths.extend(enrolment());
    paths
}

fn at(path: &'static str) -> ApiEndpoint<FlightctlFace> {
    ApiEndpoint::at(path, DEVICES)
}

fn about_the_service() -> Vec<ApiEndpoint<FlightctlFace>> {
    vec![
        at("/api/v1/version")
            .get(service::version, ApiOperation::new("Version of the service").answers::<ServiceVersion>()),
        at("/api/v1/organizations").get(
            service::organizations,
            ApiOperation::new("Organisations, of which there is one").answers::<OrganizationList>(),
        ),
        at("/api/v1/auth/config").get(
            service::auth_config,
            ApiOperation::new("Providers of logins, of which there are none")
                .answers::<OutcomeStatus>()
                .refuses(StatusCode::IM_A_TEAPOT, "Authentication is off"),
        ),
        at("/api/v1/auth/validate").get(
            service::auth_validate,
            ApiOperation::new("Whether the caller is known, which everybody is").answers::<OutcomeStatus>(),
        ),
    ]
}

fn devices() -> Vec<ApiEndpoint<FlightctlFace>> {
    vec![
        at("/api/v1/devices")
            .get(
                devices::list,
                ApiOperation::new("Devices, ordered by name").answers::<DeviceList>().asks(
                    selectors().into_iter().chain(pages()).chain([query::<bool>(
                        "summaryOnly",
                        "Only the numbers of all selected devices; not together with `limit` or `continue`",
                    )]),
                ),
            )
            .post(
                devices::create,
                ApiOperation::new("Creates a device that nobody has enrolled")
                    .answers_with::<Device>(StatusCode::CREATED)
                    .refuses(StatusCode::CONFLICT, "There is a device of that name"),
            ),
        at("/api/v1/devices/{name}")
            .get(devices::show, device("Shows a device").answers::<Device>())
            .put(
                devices::put,
                changes("Replaces labels and spec of a device, or creates it")
                    .answers::<Device>()
                    .may_create(),
            )
            .patch(
                devices::patch,
                changes("Patches labels and spec of a device").answers::<Device>().takes_json_patch(),
            )
            .delete(
                devices::delete,
                device("Deletes a device with its enrolment request").answers::<OutcomeStatus>(),
            ),
    ]
}

fn parts_of_devices() -> Vec<ApiEndpoint<FlightctlFace>> {
    vec![
        at("/api/v1/devices/{name}/status")
            .get(devices::show, device("Shows a device with its status").answers::<Device>())
            .put(
                device_status::put,
                changes("Merges a status document into a device, as its agent would").answers::<Device>(),
            )
            .patch(
                device_status::patch,
                changes("Patches the status of a device").answers::<Device>().takes_json_patch(),
            ),
        at("/api/v1/devices/{name}/lastseen").get(
            device_status::last_seen,
            device("Time at which the agent was last seen")
                .answers::<LastSeen>()
                .may_have_nothing("The agent was never seen"),
        ),
        at("/api/v1/devices/{name}/rendered").get(
            rendered::show,
            device("The device with its rendered spec, once there is another version than the known one")
                .answers::<Device>()
                .may_have_nothing("There was no other version within two minutes")
                .refuses(StatusCode::CONFLICT, "Nothing was rendered yet")
                .asks([query::<BoundedText<0, { rendered::LONGEST_VERSION }>>(
                    "knownRenderedVersion",
                    "Version that is known; absent: answer at once",
                )]),
        ),
        at("/api/v1/devices/{name}/decommission")
            .put(decisions::decommission, changes("Requests the end of a device").answers::<Device>()),
    ]
}

fn around_devices() -> Vec<ApiEndpoint<FlightctlFace>> {
    vec![
        at("/api/v1/deviceactions/resume").post(
            decisions::resume,
            ApiOperation::new("Lets devices go on that are paused since a restored database")
                .answers::<ResumeAnswer>(),
        ),
        at("/api/v1/events").get(
            events::list,
            ApiOperation::new("Events, the newest first").answers::<EventList>().asks(
                pages().into_iter().chain([query::<BoundedText<0, LONGEST_SELECTOR>>(
                    "fieldSelector",
                    "Selector by `involvedObject.kind`, `involvedObject.name`, `reason` and `type`",
                )]),
            ),
        ),
        at("/api/v1/labels").get(
            devices::labels,
            ApiOperation::new("Labels of devices as `key=value`, each once").answers::<Vec<String>>().asks(
                selectors()
                    .into_iter()
                    .chain(pages())
                    .chain([query::<Word<DeviceKind>>("kind", "Kind of the resources; absent: devices")]),
            ),
        ),
    ]
}

fn fleets() -> Vec<ApiEndpoint<FlightctlFace>> {
    let summary =
        || query::<bool>("addDevicesSummary", "Whether each fleet comes with the numbers of its devices");
    vec![
        at("/api/v1/fleets")
            .get(
                fleets::list,
                ApiOperation::new("Fleets, ordered by name")
                    .answers::<FleetList>()
                    .asks(selectors().into_iter().chain(pages()).chain([summary()])),
            )
            .post(
                fleets::create,
                ApiOperation::new("Creates a fleet")
                    .answers_with::<Fleet>(StatusCode::CREATED)
                    .refuses(StatusCode::CONFLICT, "There is a fleet of that name"),
            ),
        at("/api/v1/fleets/{name}")
            .get(fleets::show, about(FLEET, "Shows a fleet").answers::<Fleet>().asks([summary()]))
            .put(
                fleets::put,
                about(FLEET, "Replaces labels and spec of a fleet, or creates it")
                    .answers::<Fleet>()
                    .may_create()
                    .refuses(StatusCode::CONFLICT, OTHER),
            )
            .patch(
                fleets::patch,
                about(FLEET, "Patches labels and spec of a fleet")
                    .answers::<Fleet>()
                    .takes_json_patch()
                    .refuses(StatusCode::CONFLICT, OTHER),
            )
            .delete(
                fleets::delete,
                ApiOperation::new("Deletes a fleet, if there is one").answers::<OutcomeStatus>(),
            ),
        at("/api/v1/fleets/{fleet}/templateversions").get(
            fleets::list_versions,
            about(FLEET, "Versions of the template of a fleet, the oldest first")
                .answers::<TemplateVersionList>()
                .asks(pages()),
        ),
        at("/api/v1/fleets/{fleet}/templateversions/{name}").get(
            fleets::show_version,
            about("There is no such version", "Shows a version of the template of a fleet")
                .answers::<TemplateVersion>(),
        ),
    ]
}

fn enrolment() -> Vec<ApiEndpoint<FlightctlFace>> {
    vec![
        at("/api/v1/enrollmentrequests")
            .get(
                enrolment::list,
                ApiOperation::new("Requests of agents, ordered by name")
                    .answers::<EnrolmentList>()
                    .asks(selectors().into_iter().skip(1).chain(pages())),
            )
            .post(
                enrolment::create,
                ApiOperation::new("Stores the request of an agent")
                    .answers_with::<EnrolmentRequest>(StatusCode::CREATED)
                    .refuses(StatusCode::CONFLICT, "There is a request of that name"),
            ),
        at("/api/v1/enrollmentrequests/{name}")
            .get(enrolment::show, about(REQUEST, "Shows a request").answers::<EnrolmentRequest>())
            .put(
                enrolment::put,
                stores("Replaces a request, or stores it").answers::<EnrolmentRequest>().may_create(),
            )
            .patch(
                enrolment::patch,
                stores("Patches a request").answers::<EnrolmentRequest>().takes_json_patch(),
            )
            .delete(
                enrolment::delete,
                about(REQUEST, "Deletes a request")
                    .answers::<OutcomeStatus>()
                    .refuses(StatusCode::CONFLICT, "Its device exists"),
            ),
        at("/api/v1/enrollmentrequests/{name}/approval").put(
            enrolment::approve,
            stores("Approves a request, which creates its device").answers::<EnrolmentApproval>(),
        ),
    ]
}

/// Reason of a refusal: the resource is not there.
const FLEET: &str = "There is no such fleet";
/// Reason of a refusal: the resource is not there.
const REQUEST: &str = "There is no such request";
/// Reason of a refusal: the resource is not the one that was expected.
const OTHER: &str = "The resource has another version";

fn about(missing: &'static str, summary: &'static str) -> ApiOperation {
    ApiOperation::new(summary).refuses(StatusCode::NOT_FOUND, missing)
}

fn stores(summary: &'static str) -> ApiOperation {
    about(REQUEST, summary).refuses(StatusCode::CONFLICT, "The request has changed in the meantime")
}

fn device(summary: &'static str) -> ApiOperation {
    ApiOperation::new(summary).refuses(StatusCode::NOT_FOUND, "There is no such device")
}

fn changes(summary: &'static str) -> ApiOperation {
    device(summary)
        .refuses(StatusCode::CONFLICT, "The device has another version, or its state forbids the change")
}

fn selectors() -> [ApiParameter; 2] {
    [
        query::<BoundedText<0, LONGEST_SELECTOR>>("labelSelector", "Selector by labels, as in Kubernetes"),
        query::<BoundedText<0, LONGEST_SELECTOR>>(
            "fieldSelector",
            "Selector by fields, such as `status.summary.status in (Online, Degraded)`",
        ),
    ]
}

fn pages() -> [ApiParameter; 2] {
    [
        query::<WholeNumber<0, LARGEST_PAGE>>("limit", "Most items of the page; absent or 0: 1,000"),
        query::<String>("continue", "`metadata.continue` of the page before"),
    ]
}
