//! A path with its methods, each handled and described at once, so that neither is forgotten.

use std::sync::Arc;

use axum::{
    Router,
    handler::Handler,
    middleware::from_fn_with_state,
    routing::{MethodFilter, MethodRouter, on},
};
use http::Method;

use super::{
    admission::{AdmissionPlaces, Classify, PathAdmission, admit},
    document::{ApiOperation, DescribedPath, HandlerInputs},
};

/// Largest body of a path that sets no other limit. The longest text of any contract has 524,288 characters, and an
/// escaped character takes twelve bytes at most.
pub(crate) const SINGLE_BODY: u64 = 8 << 20;

/// Path with its methods, whose handlers share an `S`.
pub(crate) struct ApiEndpoint<S> {
    /// Path as it is routed, with names of parameters in braces.
    path: &'static str,
    /// Tag of the path in the document.
    tag: &'static str,
    /// Prefix under which the path is served too.
    prefix: Option<&'static str>,
    methods: MethodRouter<S>,
    operations: Vec<(Method, ApiOperation)>,
    /// Most bytes of a body.
    largest_body: u64,
}

impl<S: Clone + Send + Sync + 'static> ApiEndpoint<S> {
    /// Creates a path without methods.
    pub(crate) fn at(path: &'static str, tag: &'static str) -> Self {
        let methods = MethodRouter::new();
        Self { path, tag, prefix: None, methods, operations: Vec::new(), largest_body: SINGLE_BODY }
    }

    /// Serves the path under `prefix` too.
    pub(crate) fn also_under(self, prefix: &'static str) -> Self {
        Self { prefix: Some(prefix), ..self }
    }

    /// Handles GET, and HEAD with it.
    pub(crate) fn get<H, T>(self, handler: H, operation: ApiOperation) -> Self
    where
        H: Handler<T, S>,
        T: HandlerInputs + 'static,
    {
        self.on(Method::GET, on(MethodFilter::GET, handler), described::<T>(operation))
    }

    /// Handles PUT.
    pub(crate) fn put<H, T>(self, handler: H, operation: ApiOperation) -> Self
    where
        H: Handler<T, S>,
        T: HandlerInputs + 'static,
    {
        self.on(Method::PUT, on(MethodFilter::PUT, handler), described::<T>(operation))
    }

    /// Handles POST.
    pub(crate) fn post<H, T>(self, handler: H, operation: ApiOperation) -> Self
    where
        H: Handler<T, S>,
        T: HandlerInputs + 'static,
    {
        self.on(Method::POST, on(MethodFilter::POST, handler), described::<T>(operation))
    }

    /// Handles PATCH.
    pub(crate) fn patch<H, T>(self, handler: H, operation: ApiOperation) -> Self
    where
        H: Handler<T, S>,
        T: HandlerInputs + 'static,
    {
        self.on(Method::PATCH, on(MethodFilter::PATCH, handler), described::<T>(operation))
    }

    /// Handles DELETE.
    pub(crate) fn delete<H, T>(self, handler: H, operation: ApiOperation) -> Self
    where
        H: Handler<T, S>,
        T: HandlerInputs + 'static,
    {
        self.on(Method::DELETE, on(MethodFilter::DELETE, handler), described::<T>(operation))
    }

    /// Sets the most bytes of a body.
    pub(crate) fn with_bodies_of(self, largest_body: u64) -> Self {
        Self { largest_body, ..self }
    }

    pub(crate) fn described(&self) -> DescribedPath<'_> {
        let Self { path, tag, prefix, operations, .. } = self;
        DescribedPath { path, tag, prefix: *prefix, operations, mount: None }
    }

    fn on(mut self, method: Method, handler: MethodRouter<S>, operation: ApiOperation) -> Self {
        self.operations.push((method, operation));
        Self { methods: self.methods.merge(handler), ..self }
    }
}

/// Returns the operation with the descriptions of its handler's arguments.
fn described<T: HandlerInputs>(mut operation: ApiOperation) -> ApiOperation {
    T::describe(&mut operation);
    operation
}

/// Returns the paths of `endpoints`, each with admission in front of its handlers.
pub(crate) fn routed<S>(
    endpoints: Vec<ApiEndpoint<S>>,
    places: &AdmissionPlaces,
    classify: Classify,
) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    let mut router = Router::new();
    for ApiEndpoint { path, prefix, methods, largest_body, .. } in endpoints {
        let admission = PathAdmission { places: places.clone(), classify, route: path, largest_body };
        let methods = methods.route_layer(from_fn_with_state(Arc::new(admission), admit));
        if let Some(prefix) = prefix {
            router = router.route(&format!("{prefix}{path}"), methods.clone());
        }
        router = router.route(path, methods);
    }
    router
}
