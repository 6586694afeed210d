//! `/v2/options` (BOS reference 2.5, 4).

use axum::{extract::State, response::Response};
use http::StatusCode;
use proto::option::{GetOptionsRequest, OptionsRecord, UpdateOptionsRequest};
use serde_json::Value;

use super::{json, promised};
use crate::{
    extract::Json,
    mesh::{Mesh, REGISTRY, answer, call},
    problem::Problem,
    wire::{options::Options, strict::Object},
};

/// Most members of a change.
const MOST_MEMBERS: usize = 1024;

pub(super) async fn show(State(mut mesh): State<Mesh>) -> Result<Response, Problem> {
    let answer = answer(REGISTRY, mesh.options.get_options(call(GetOptionsRequest {}))).await?;
    json(StatusCode::OK, &kept(answer.record)?)
}

pub(super) async fn change(
    State(mut mesh): State<Mesh>,
    Json(Object(change)): Json<Object<Options>>,
) -> Result<Response, Problem> {
    check_members(&change)?;
    let unknown = change.unknown.clone();
    let request = UpdateOptionsRequest { options: Some(change.into()) };
    let answer = answer(REGISTRY, mesh.options.update_options(call(request))).await?;
    let options = Options { unknown, ..kept(answer.record)? };
    json(StatusCode::OK, &sorted(&options)?)
}

fn check_members(change: &Options) -> Result<(), Problem> {
    let members = sorted(change)?.as_object().map_or(0, serde_json::Map::len);
    match members {
        0 => Err(Problem::bad_request("the object needs at least one member")),
        1..=MOST_MEMBERS => Ok(()),
        _ => Err(Problem::bad_request(format!("the object may have at most {MOST_MEMBERS} members"))),
    }
}

/// Through a map, so that members that are no option stand in order between those that are.
fn sorted(options: &Options) -> Result<Value, Problem> {
    serde_json::to_value(options).map_err(|error| Problem::internal(&error.to_string()))
}

fn kept(record: Option<OptionsRecord>) -> Result<Options, Problem> {
    Ok(promised(record.and_then(|record| record.options))?.into())
}
