//! Reveille's own paths: events, the timeline, live changes, explanations, plans, sessions with their results, power
//! transitions, peers, probes, metrics, and the description of everything that the common port serves.

use std::collections::BTreeMap;

use chassis::mesh::call_class::CallClass;
use http::Method;

use crate::{
    http::{description, document::ApiOperation, endpoint::ApiEndpoint},
    mesh::MeshHandle,
};

mod events;
mod explain;
mod history;
mod instant;
mod live;
mod peers;
mod plans;
mod probes;
mod sessions;
mod timeline;
mod transitions;
mod word;

/// Tag of every path of this face.
const TAG: &str = "around the contract";

/// Header of a request on behalf of a tenant.
const TENANT: &str = "cray-tenant-name";

/// Returns the admission class of a request; `None`: it is always admitted, or no path of this face.
pub(crate) fn class_of(method: &Method, path: &str) -> Option<CallClass> {
    events::class_of(method, path)
        .or_else(|| explain::class_of(method, path))
        .or_else(|| sessions::class_of(method, path))
        .or_else(|| plans::class_of(method, path))
        .or_else(|| timeline::class_of(method, path))
        .or_else(|| transitions::class_of(method, path))
        .or_else(|| live::class_of(method, path))
        .or_else(|| peers::class_of(method, path))
}

/// Returns the paths of this face. The description is also found under `prefix`, beside the contract that it describes.
pub(crate) fn endpoints(prefix: &'static str) -> Vec<ApiEndpoint<MeshHandle>> {
    let mut paths = vec![
        at("/livez").get(probes::live, ApiOperation::new("The process answers").answers_text()),
        at("/readyz").get(probes::ready, probes::ready_operation()),
        at("/startz").get(
            probes::started,
            ApiOperation::new("What is needed has started").answers::<BTreeMap<String, String>>(),
        ),
        at("/metrics").get(probes::metrics, ApiOperation::new("Metrics for Prometheus").answers_text()),
        at("/openapi.json")
            .get(description::show, ApiOperation::new("This description").answers::<serde_json::Value>())
            .also_under(prefix),
        at(events::PATH).get(events::list, events::operation()),
        at(live::PATH).get(live::follow, live::operation()),
        at(plans::PATH).post(plans::create, plans::operation()),
        at(timeline::PATH).get(timeline::list, timeline::operation()),
        at(explain::COMPONENT_PATH).get(explain::component, explain::component_operation()),
        at(explain::SESSION_PATH).get(explain::session, explain::session_operation()),
        at(explain::HOST_PATH).get(explain::host, explain::host_operation()),
        at(explain::DEVICE_PATH).get(explain::device, explain::device_operation()),
        page("/ui").also_under(prefix),
        page("/ui/").also_under(prefix),
    ];
    paths.extend(sessions::endpoints());
    paths.extend(transitions::endpoints());
    paths.extend(peers::endpoints());
    paths
}

fn at(path: &'static str) -> ApiEndpoint<MeshHandle> {
    ApiEndpoint::at(path, TAG)
}

fn page(path: &'static str) -> ApiEndpoint<MeshHandle> {
    at(path).get(description::page, ApiOperation::new("This description as a page").answers_page())
}
