//! What the arguments of a handler say about its operation: the types that are read are the types that are shown.

use axum::extract::State;
use http::{HeaderMap, StatusCode, Uri};
use schemars::JsonSchema;

use super::operation::Operation;
use crate::{
    extract::{Json, Name},
    mesh::Mesh,
    query::Query,
    tenant::Tenant,
};

/// Why any part of a request may be refused.
const WRONG: &str = "Something in the request is wrong";

/// Something that handlers take from a request.
pub(crate) trait Input {
    /// Adds what it takes, and which answers it gives instead of the handler when that is not to be had.
    fn describe(operation: &mut Operation);
}

impl Input for State<Mesh> {
    fn describe(operation: &mut Operation) {
        operation.may_answer(StatusCode::INTERNAL_SERVER_ERROR, "Something that must not happen did");
        operation.may_answer(
            StatusCode::SERVICE_UNAVAILABLE,
            "A service or its database cannot be asked just now",
        );
    }
}

impl<T: JsonSchema> Input for Json<T> {
    fn describe(operation: &mut Operation) {
        operation.takes::<T>();
        operation.may_answer(StatusCode::BAD_REQUEST, WRONG);
        operation.may_answer(StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time");
        operation.may_answer(StatusCode::PAYLOAD_TOO_LARGE, "The body is larger than this path takes");
        operation.may_answer(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is not declared to be JSON");
    }
}

impl Input for Name {
    fn describe(operation: &mut Operation) {
        operation.may_answer(StatusCode::BAD_REQUEST, WRONG);
    }
}

impl Input for Query {
    fn describe(operation: &mut Operation) {
        operation.may_answer(StatusCode::URI_TOO_LONG, "The address is longer than can be read");
        operation.may_answer(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "Address and headers are longer than can be read",
        );
        operation.may_answer(StatusCode::BAD_REQUEST, WRONG);
    }
}

impl Input for Tenant {
    fn describe(operation: &mut Operation) {
        operation.is_for_tenants();
        operation.may_answer(StatusCode::BAD_REQUEST, WRONG);
    }
}

impl Input for Uri {
    fn describe(_: &mut Operation) {}
}

impl Input for HeaderMap {
    fn describe(_: &mut Operation) {}
}

/// The arguments of a handler, as the framework names them: first a mark of its own.
pub(crate) trait Inputs {
    /// Adds what each of them says.
    fn describe(operation: &mut Operation);
}

impl Inputs for ((),) {
    fn describe(_: &mut Operation) {}
}

impl<M, A: Input> Inputs for (M, A) {
    fn describe(operation: &mut Operation) {
        A::describe(operation);
    }
}

impl<M, A: Input, B: Input> Inputs for (M, A, B) {
    fn describe(operation: &mut Operation) {
        A::describe(operation);
        B::describe(operation);
    }
}

impl<M, A: Input, B: Input, C: Input> Inputs for (M, A, B, C) {
    fn describe(operation: &mut Operation) {
        <(M, A, B)>::describe(operation);
        C::describe(operation);
    }
}

impl<M, A: Input, B: Input, C: Input, D: Input> Inputs for (M, A, B, C, D) {
    fn describe(operation: &mut Operation) {
        <(M, A, B, C)>::describe(operation);
        D::describe(operation);
    }
}
