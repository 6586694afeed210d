//! The upstreams: where boot data go, and who configures nodes.

pub(crate) mod boot_parameters;
pub(crate) mod configuration;

use std::error::Error;

use tonic::Status;

/// Why an upstream did not do as asked, in its words where it had any.
///
/// Every call here sets or reads something and may be repeated without harm, so whether a failed one was
/// refused, lost or done after all makes a difference to people only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failure(String);

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let mut text = match status.message() {
            "" => format!("{:?}", status.code()),
            message => message.to_owned(),
        };
        let mut cause = status.source();
        while let Some(error) = cause {
            // Errors of the transport repeat themselves along the chain.
            let told = error.to_string();
            if !text.contains(&told) {
                text = format!("{text}: {told}");
            }
            cause = error.source();
        }
        Self(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_the_upstream_said() {
        let broken = std::io::Error::other("connection reset");
        let rows = [
            (Status::invalid_argument("hosts: x1 is not known"), "hosts: x1 is not known"),
            (Status::internal(""), "Internal"),
            (Status::from_error(Box::new(broken)), "connection reset"),
        ];
        for (status, told) in rows {
            assert_eq!(Failure::from(status).to_string(), told);
        }
    }
}
