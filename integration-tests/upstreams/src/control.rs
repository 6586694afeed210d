//! The control API: the methods of [`crate::Upstreams`] as JSON under `/control`, for other processes.
//!
//! | request | does |
//! |---|---|
//! | `GET /control` | state of the machine |
//! | `GET /control/nodes[?ids=a,b]` | everything about nodes |
//! | `PATCH /control/nodes` `{"ids":[…],"set":{…}}` | changes nodes; no ids: all |
//! | `POST /control/press` `{"ids":[…],"command":"on"}` | presses the power button: `on`, `soft_off`, `force_off` |
//! | `GET /control/nodes/{id}/history` | events of a node |
//! | `POST /control/power-service` `{"event":"restart","seconds":2}` | a [`crate::PowerEvent`] |
//! | `GET /control/trouble` | trouble by number |
//! | `POST /control/trouble` `{"service":"pcs","effect":{…}}` | adds trouble, gives its number |
//! | `DELETE /control/trouble[/{number}][?service=pcs]` | ends trouble |
//! | `GET`, `DELETE /control/counters`, `/control/log` | calls that were seen; resets the counters |
//! | `GET /control/boot-requests`, `/control/configuration-requests`, `/control/transitions` | accepted requests |
//! | `PUT`, `DELETE /control/groups/{name}`, `/control/partitions/{name}`, `/control/tenants/{name}` | a list of ids |
//! | `PUT`, `DELETE /control/images/{id}` | an [`crate::StoredImage`] |

use axum::http::{Method, StatusCode};
use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;

use crate::{
    call::{SystemAnswer, either},
    command::{IdCollection, NodeChange, UnknownNode, button},
    service::Service,
    trouble::ServiceTrouble,
    world::LiveMachine,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeRequest {
    #[serde(default)]
    ids: Vec<String>,
    set: NodeChange,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ButtonPress {
    #[serde(default)]
    ids: Vec<String>,
    command: String,
}

/// Answers one request at `path`, without its prefix `/control`.
pub(crate) fn answer(
    world: &LiveMachine,
    method: &Method,
    path: &str,
    query: &[(String, String)],
    body: &Bytes,
) -> SystemAnswer {
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let parameter = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    match (method.as_str(), &segments[..]) {
        ("GET", []) => SystemAnswer::json(&world.with(|state| state.summary())),
        ("GET", ["nodes"]) => either(nodes(world, parameter("ids"))),
        ("PATCH", ["nodes"]) => either(change(world, body)),
        ("POST", ["press"]) => either(press(world, body)),
        ("GET", ["nodes", id, "history"]) => either(
            world
                .with(|state| state.history_of(id))
                .map(|events| SystemAnswer::json(&events))
                .map_err(unknown),
        ),
        ("POST", ["power-service"]) => either(read(body).map(|event| {
            world.power_service(event);
            done()
        })),
        ("GET", ["trouble"]) => SystemAnswer::json(&world.troubles.lock().list(world.elapsed())),
        ("POST", ["trouble"]) => either(
            read::<ServiceTrouble>(body)
                .map(|trouble| SystemAnswer::json(&json!({"number": world.trouble(trouble)}))),
        ),
        ("DELETE", ["trouble"]) => either(clear_troubles(world, parameter("service"))),
        ("DELETE", ["trouble", number]) => {
            let cleared = number.parse().is_ok_and(|number| world.troubles.lock().clear(number));
            if cleared { done() } else { SystemAnswer::not_found("there is no such trouble") }
        }
        ("GET", ["counters"]) => SystemAnswer::json(&world.counters.lock().list()),
        ("GET", ["log"]) => SystemAnswer::json(&world.counters.lock().log()),
        ("DELETE", ["counters" | "log"]) => {
            world.counters.lock().reset();
            done()
        }
        ("GET", ["boot-requests"]) => SystemAnswer::json(&world.with(|state| state.boot_requests())),
        ("GET", ["configuration-requests"]) => {
            SystemAnswer::json(&world.with(|state| state.configuration_requests()))
        }
        ("GET", ["transitions"]) => SystemAnswer::json(&world.with(|state| state.transitions_json())),
        (_, ["groups", name]) => either(collection(world, method, IdCollection::Group, name, body)),
        (_, ["partitions", name]) => either(collection(world, method, IdCollection::Partition, name, body)),
        (_, ["tenants", name]) => either(collection(world, method, IdCollection::Tenant, name, body)),
        (_, ["images", id]) => either(image(world, method, id, body)),
        _ => SystemAnswer::not_found("there is no such control"),
    }
}

fn done() -> SystemAnswer {
    SystemAnswer::empty(StatusCode::NO_CONTENT)
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, SystemAnswer> {
    serde_json::from_slice(body).map_err(|error| SystemAnswer::bad_request(&error.to_string()))
}

fn unknown(unknown: UnknownNode) -> SystemAnswer {
    SystemAnswer::not_found(&unknown.to_string())
}

fn nodes(world: &LiveMachine, ids: Option<&str>) -> Result<SystemAnswer, SystemAnswer> {
    let ids: Vec<_> = ids.into_iter().flat_map(|ids| ids.split(',')).map(str::to_owned).collect();
    world.with(|state| {
        let positions = state.positions(&ids).map_err(unknown)?;
        let views: Vec<_> = positions.into_iter().map(|position| state.view(position)).collect();
        Ok(SystemAnswer::json(&views))
    })
}

fn change(world: &LiveMachine, body: &Bytes) -> Result<SystemAnswer, SystemAnswer> {
    let ChangeRequest { ids, set } = read(body)?;
    world.with(|state| {
        let positions = state.positions(&ids).map_err(unknown)?;
        state.change(&positions, &set);
        Ok(done())
    })
}

fn press(world: &LiveMachine, body: &Bytes) -> Result<SystemAnswer, SystemAnswer> {
    let ButtonPress { ids, command } = read(body)?;
    let command = button(&command)
        .ok_or_else(|| SystemAnswer::bad_request("command must be on, soft_off or force_off"))?;
    world.with(|state| {
        let positions = state.positions(&ids).map_err(unknown)?;
        state.press(command, &positions);
        Ok(done())
    })
}

fn clear_troubles(world: &LiveMachine, service: Option<&str>) -> Result<SystemAnswer, SystemAnswer> {
    let known =
        |word: &str| Service::from_word(word).ok_or_else(|| SystemAnswer::bad_request("no such service"));
    let service = service.map(known).transpose()?;
    world.clear_troubles(service);
    Ok(done())
}

fn collection(
    world: &LiveMachine,
    method: &Method,
    kind: IdCollection,
    name: &str,
    body: &Bytes,
) -> Result<SystemAnswer, SystemAnswer> {
    let ids = put_or_delete(method, body)?;
    world.with(|state| state.set_collection(kind, name, ids));
    Ok(done())
}

fn image(world: &LiveMachine, method: &Method, id: &str, body: &Bytes) -> Result<SystemAnswer, SystemAnswer> {
    let image = put_or_delete(method, body)?;
    world.with(|state| state.set_image(id, image));
    Ok(done())
}

/// Returns the value to store; `None`: the request deletes it.
fn put_or_delete<T: DeserializeOwned>(method: &Method, body: &Bytes) -> Result<Option<T>, SystemAnswer> {
    match method.as_str() {
        "PUT" => read(body).map(Some),
        "DELETE" => Ok(None),
        _ => Err(SystemAnswer::problem(
            StatusCode::METHOD_NOT_ALLOWED,
            "Method Not Allowed",
            "use PUT or DELETE",
        )),
    }
}
