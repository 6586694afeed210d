//! `/v2/options` (BOS reference 2.5, 4).

use axum::{extract::State, response::Response};
use http::StatusCode;
use proto::option::{GetOptionsRequest, OptionsRecord, UpdateOptionsRequest};
use serde_json::Value;

use crate::{
    bos::{
        problem::BosProblem,
        wire::{options::Options, strict::JsonObject},
    },
    http::{
        answer::json,
        call::{answer, call, promised},
        extract::JsonBody,
        problem::RequestProblem,
    },
    mesh::{MeshHandle, REGISTRY},
};

/// Most members of a change.
pub(super) const MOST_MEMBERS: usize = 1024;

pub(super) async fn show(State(mesh): State<MeshHandle>) -> Result<Response, BosProblem> {
    let answer = answer(REGISTRY, mesh.options.clone().get_options(call(GetOptionsRequest {}))).await?;
    Ok(json(StatusCode::OK, &kept(answer.record)?)?)
}

pub(super) async fn change(
    State(mesh): State<MeshHandle>,
    JsonBody(JsonObject(change)): JsonBody<JsonObject<Options>>,
) -> Result<Response, BosProblem> {
    update(mesh, change, false).await
}

/// Shows the options as [`change`] would leave them.
pub(super) async fn judge(
    State(mesh): State<MeshHandle>,
    JsonBody(JsonObject(change)): JsonBody<JsonObject<Options>>,
) -> Result<Response, BosProblem> {
    update(mesh, change, true).await
}

async fn update(mesh: MeshHandle, change: Options, validate_only: bool) -> Result<Response, BosProblem> {
    check_members(&change)?;
    let request = UpdateOptionsRequest { options: Some(change.clone().into()), validate_only };
    let answer = answer(REGISTRY, mesh.options.clone().update_options(call(request))).await?;
    Ok(json(StatusCode::OK, &sorted(&repeated(change, kept(answer.record)?))?)?)
}

/// Returns the stored options, with members of `sent` that are stored in another way or not at all: members that are no
/// option, the option that BOS lost, and the letter case of an age (BOS reference 2.5; 12, BUG-07).
fn repeated(sent: Options, kept: Options) -> Options {
    Options {
        unknown: sent.unknown,
        component_actual_state_ttl: sent.component_actual_state_ttl.or(kept.component_actual_state_ttl),
        disable_components_on_completion: sent
            .disable_components_on_completion
            .or(kept.disable_components_on_completion),
        ..kept
    }
}

fn check_members(change: &Options) -> Result<(), RequestProblem> {
    let members = sorted(change)?.as_object().map_or(0, serde_json::Map::len);
    match members {
        0 => Err(RequestProblem::bad_request("the object needs at least one member")),
        1..=MOST_MEMBERS => Ok(()),
        _ => Err(RequestProblem::bad_request(format!("the object may have at most {MOST_MEMBERS} members"))),
    }
}

/// Returns the options through a map, which sorts members that are no option between those that are.
fn sorted(options: &Options) -> Result<Value, RequestProblem> {
    serde_json::to_value(options).map_err(|error| RequestProblem::internal(&error.to_string()))
}

fn kept(record: Option<OptionsRecord>) -> Result<Options, BosProblem> {
    Ok(promised(record.and_then(|record| record.options))?.into())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_sent_is_repeated_once() {
        let kept = || Options {
            component_actual_state_ttl: Some("4h".into()),
            clear_stage: Some(false),
            ..Options::default()
        };
        let mut rows = String::new();
        for sent in [
            json!({"clear_stage": true}),
            json!({"component_actual_state_ttl": "4H"}),
            json!({"disable_components_on_completion": true}),
            json!({"disable_components_on_completion": false, "no_such_option": null}),
        ] {
            let JsonObject(change) = serde_json::from_value(sent.clone()).unwrap();
            rows += &format!("{sent}: {}\n", sorted(&repeated(change, kept())).unwrap());
        }
        expect![[r#"
            {"clear_stage":true}: {"clear_stage":false,"component_actual_state_ttl":"4h"}
            {"component_actual_state_ttl":"4H"}: {"clear_stage":false,"component_actual_state_ttl":"4H"}
            {"disable_components_on_completion":true}: {"clear_stage":false,"component_actual_state_ttl":"4h","disable_components_on_completion":true}
            {"disable_components_on_completion":false,"no_such_option":null}: {"clear_stage":false,"component_actual_state_ttl":"4h","disable_components_on_completion":false,"no_such_option":null}
        "#]].assert_eq(&rows);
    }

    #[test]
    fn a_change_has_some_members_and_not_too_many() {
        for (members, expected) in [(0, false), (1, true), (1024, true), (1025, false)] {
            let change: serde_json::Map<_, _> =
                (0..members).map(|number| (format!("m{number}"), json!(number))).collect();
            let JsonObject(change) = serde_json::from_value(change.into()).unwrap();
            assert_eq!(check_members(&change).is_ok(), expected, "{members}");
        }
    }
}
