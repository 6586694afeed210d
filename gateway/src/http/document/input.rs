//! Arguments of handlers as parts of an operation: the types that are read are the types that are shown.

use axum::extract::State;
use http::{Extensions, HeaderMap, StatusCode, Uri};
use schemars::JsonSchema;

use super::operation::ApiOperation;
use crate::http::{
    extract::{JsonBody, PathName, PathNames},
    query::QueryParameters,
};

/// Reason for which any part of a request may be refused.
pub(crate) const WRONG_REQUEST: &str = "Something in the request is wrong";

/// An argument that handlers take from a request.
pub(crate) trait HandlerInput {
    /// Adds the parameters that it reads, and the refusals that it answers instead of the handler.
    fn describe(operation: &mut ApiOperation);
}

impl<S> HandlerInput for State<S> {
    fn describe(operation: &mut ApiOperation) {
        operation.may_answer(StatusCode::INTERNAL_SERVER_ERROR, "Something that must not happen did");
        operation.may_answer(
            StatusCode::SERVICE_UNAVAILABLE,
            "A service or its database cannot be asked just now",
        );
    }
}

impl<T: JsonSchema> HandlerInput for JsonBody<T> {
    fn describe(operation: &mut ApiOperation) {
        operation.takes::<T>();
        operation.may_answer(StatusCode::BAD_REQUEST, WRONG_REQUEST);
        operation.may_answer(StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time");
        operation.may_answer(StatusCode::PAYLOAD_TOO_LARGE, "The body is larger than this path takes");
        operation.may_answer(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is not declared to be JSON");
    }
}

impl<T: JsonSchema> HandlerInput for PathName<T> {
    fn describe(operation: &mut ApiOperation) {
        operation.names::<T>();
        operation.may_answer(StatusCode::BAD_REQUEST, WRONG_REQUEST);
    }
}

impl HandlerInput for PathNames {
    fn describe(operation: &mut ApiOperation) {
        operation.may_answer(StatusCode::BAD_REQUEST, WRONG_REQUEST);
    }
}

impl HandlerInput for QueryParameters {
    fn describe(operation: &mut ApiOperation) {
        operation.may_answer(StatusCode::URI_TOO_LONG, "The address is longer than can be read");
        operation.may_answer(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "Address and headers are longer than can be read",
        );
        operation.may_answer(StatusCode::BAD_REQUEST, WRONG_REQUEST);
    }
}

impl HandlerInput for Uri {
    fn describe(_: &mut ApiOperation) {}
}

impl HandlerInput for HeaderMap {
    fn describe(_: &mut ApiOperation) {}
}

impl HandlerInput for Extensions {
    fn describe(_: &mut ApiOperation) {}
}

/// The arguments of a handler, as the framework names them: first a mark of its own.
pub(crate) trait HandlerInputs {
    /// Adds the parameters and refusals of each.
    fn describe(operation: &mut ApiOperation);
}

impl HandlerInputs for ((),) {
    fn describe(_: &mut ApiOperation) {}
}

impl<M, A: HandlerInput> HandlerInputs for (M, A) {
    fn describe(operation: &mut ApiOperation) {
        A::describe(operation);
    }
}

impl<M, A: HandlerInput, B: HandlerInput> HandlerInputs for (M, A, B) {
    fn describe(operation: &mut ApiOperation) {
        A::describe(operation);
        B::describe(operation);
    }
}

impl<M, A: HandlerInput, B: HandlerInput, C: HandlerInput> HandlerInputs for (M, A, B, C) {
    fn describe(operation: &mut ApiOperation) {
        <(M, A, B)>::describe(operation);
        C::describe(operation);
    }
}

impl<M, A: HandlerInput, B: HandlerInput, C: HandlerInput, D: HandlerInput> HandlerInputs
    for (M, A, B, C, D)
{
    fn describe(operation: &mut ApiOperation) {
        <(M, A, B, C)>::describe(operation);
        D::describe(operation);
    }
}

impl<M, A: HandlerInput, B: HandlerInput, C: HandlerInput, D: HandlerInput, E: HandlerInput> HandlerInputs
    for (M, A, B, C, D, E)
{
    fn describe(operation: &mut ApiOperation) {
        <(M, A, B, C, D)>::describe(operation);
        E::describe(operation);
    }
}
