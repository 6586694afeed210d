//! A path with its methods, each handled and described at once, so that neither is forgotten.

use axum::{
    handler::Handler,
    routing::{MethodFilter, MethodRouter, on},
};
use http::Method;

use crate::{
    document::{Described, Inputs, Operation},
    mesh::Mesh,
};

/// Largest body of a bulk write or a template. Full records of 12,000 components come to about a third.
const BULK_BODY: u64 = 64 << 20;

/// Largest body of any other path. The longest text of the contract has 524,288 characters, and an escaped character takes
/// twelve bytes at most.
pub(super) const SINGLE_BODY: u64 = 8 << 20;

/// A path with its methods.
pub(super) struct Endpoint {
    /// Path as it is routed, with names of parameters in braces.
    pub path: &'static str,
    /// What handles each method.
    pub methods: MethodRouter<Mesh>,
    /// What each method does.
    pub operations: Vec<(Method, Operation)>,
    /// Most bytes of a body.
    pub largest_body: u64,
}

impl Endpoint {
    /// A path without methods.
    pub(super) fn at(path: &'static str) -> Self {
        Self { path, methods: MethodRouter::new(), operations: Vec::new(), largest_body: SINGLE_BODY }
    }

    /// Handles GET, and HEAD with it.
    pub(super) fn get<H, T>(self, handler: H, operation: Operation) -> Self
    where
        H: Handler<T, Mesh>,
        T: Inputs + 'static,
    {
        self.on(Method::GET, on(MethodFilter::GET, handler), described::<T>(operation))
    }

    /// Handles PUT.
    pub(super) fn put<H, T>(self, handler: H, operation: Operation) -> Self
    where
        H: Handler<T, Mesh>,
        T: Inputs + 'static,
    {
        self.on(Method::PUT, on(MethodFilter::PUT, handler), described::<T>(operation))
    }

    /// Handles POST.
    pub(super) fn post<H, T>(self, handler: H, operation: Operation) -> Self
    where
        H: Handler<T, Mesh>,
        T: Inputs + 'static,
    {
        self.on(Method::POST, on(MethodFilter::POST, handler), described::<T>(operation))
    }

    /// Handles PATCH.
    pub(super) fn patch<H, T>(self, handler: H, operation: Operation) -> Self
    where
        H: Handler<T, Mesh>,
        T: Inputs + 'static,
    {
        self.on(Method::PATCH, on(MethodFilter::PATCH, handler), described::<T>(operation))
    }

    /// Handles DELETE.
    pub(super) fn delete<H, T>(self, handler: H, operation: Operation) -> Self
    where
        H: Handler<T, Mesh>,
        T: Inputs + 'static,
    {
        self.on(Method::DELETE, on(MethodFilter::DELETE, handler), described::<T>(operation))
    }

    /// Takes the largest bodies.
    pub(super) fn bulk(self) -> Self {
        Self { largest_body: BULK_BODY, ..self }
    }

    /// For the document.
    pub(super) fn described(&self, contract: bool) -> Described<'_> {
        Described { path: self.path, operations: &self.operations, contract }
    }

    fn on(mut self, method: Method, handler: MethodRouter<Mesh>, operation: Operation) -> Self {
        self.operations.push((method, operation));
        Self { methods: self.methods.merge(handler), ..self }
    }
}

/// The operation with what the arguments of its handler say.
fn described<T: Inputs>(mut operation: Operation) -> Operation {
    T::describe(&mut operation);
    operation
}
