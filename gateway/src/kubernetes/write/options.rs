//! Options of writes.

use http::header::USER_AGENT;

use super::super::{
    apply::WriterName,
    face::ApiRequest,
    failure::{ApiFailure, FailureCause},
    kinds::ResourceKind,
};

/// Writer that says no name.
const NAMELESS: &str = "unknown";

/// Longest name of a writer.
const LONGEST_MANAGER: usize = 128;

/// Reaction to members that the schema does not know, and to repeated ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Options of a write.
#[derive(Debug, Clone)]
pub(super) struct WriteOptions {
    pub kind: &'static ResourceKind,
    pub dry_run: bool,
    pub validation: FieldValidation,
    /// Name of the writer that was given; empty: none.
    manager: String,
    agent: String,
    /// Whether an apply takes fields of others.
    pub insists: bool,
    /// Whether the write is about the status alone.
    pub is_status: bool,
}

impl WriteOptions {
    pub(super) fn read(request: &ApiRequest) -> Result<Self, ApiFailure> {
        let parameters = &request.parameters;
        let kind = request.path.kind;
        let validation = match parameters.text("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some("Ignore") => FieldValidation::Ignore,
            Some(other) => return Err(unsupported(kind, "fieldValidation", other)),
        };
        let dry_run = match parameters.text("dryRun") {
            None => false,
            Some("All") => true,
            Some(other) => return Err(unsupported(kind, "dryRun", other)),
        };
        let agent = request.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        Ok(Self {
            kind,
            dry_run,
            validation,
            manager: parameters
                .text("fieldManager")
                .unwrap_or_default()
                .chars()
                .take(LONGEST_MANAGER)
                .collect(),
            agent: agent.split('/').next().unwrap_or_default().to_owned(),
            insists: parameters.is_set("force"),
            is_status: request.path.subresource.is_some(),
        })
    }

    /// Returns the writer of a plain write.
    pub(super) fn writer(&self) -> WriterName {
        let name = [&*self.manager, &*self.agent].into_iter().find(|name| !name.is_empty());
        self.named(name.unwrap_or(NAMELESS), false)
    }

    /// Returns the writer of an apply.
    ///
    /// # Errors
    /// When it has no name.
    pub(super) fn applier(&self) -> Result<WriterName, ApiFailure> {
        if self.manager.is_empty() {
            let message = "Required value: is required for apply patch";
            let cause = FailureCause::new("FieldValueRequired", "fieldManager", message);
            return Err(ApiFailure::invalid(self.kind, "", vec![cause]));
        }
        Ok(self.named(&self.manager, true))
    }

    fn named(&self, manager: &str, applies: bool) -> WriterName {
        let subresource = if self.is_status { "status" } else { "" };
        WriterName {
            manager: manager.to_owned(),
            applies,
            api_version: self.kind.api_version(),
            subresource: subresource.to_owned(),
        }
    }
}

/// Returns the refusal of a value that an option does not have.
pub(super) fn unsupported(kind: &ResourceKind, field: &str, value: &str) -> ApiFailure {
    let cause = FailureCause::new("FieldValueNotSupported", field, format!("Unsupported value: \"{value}\""));
    ApiFailure::invalid(kind, "", vec![cause])
}
