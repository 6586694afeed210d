//! The simulated fleet, which serves as every upstream.

use std::{error::Error, future::Future, sync::Arc, time::Duration};

use chassis::{Channel, mesh::channel::LARGEST_MESSAGE, process::clock, settings::TlsSettings, within};
use domain::core::{bos_time, time::Timestamp};
use parking_lot::Mutex;
use proto::simulation::fleet_service_client::FleetServiceClient;
use tonic::{Code, Response, Status};

use super::{Failure, FailureKind};

/// Client of the simulated fleet. Clones share the connection and the state of its outage.
#[derive(Clone)]
pub(crate) struct SimulatedBootDriver {
    client: FleetServiceClient<Channel>,
    url: Arc<str>,
    /// Beginning of the current outage; `None`: there is none.
    silent_since: Arc<Mutex<Option<Timestamp>>>,
}

impl SimulatedBootDriver {
    /// Returns a client of the fleet at `url`.
    ///
    /// # Errors
    /// When `url` is not an address.
    pub(crate) fn at(tls: &TlsSettings, url: &str) -> anyhow::Result<Self> {
        let client =
            FleetServiceClient::new(chassis::channel(tls, url)?).max_decoding_message_size(LARGEST_MESSAGE);
        Ok(Self { client, url: url.into(), silent_since: Arc::default() })
    }

    /// Returns a client for one call.
    pub(crate) fn client(&self) -> FleetServiceClient<Channel> {
        self.client.clone()
    }

    /// Returns the answer to `call`, if it arrives within `deadline`.
    pub(crate) async fn answer<T>(
        &self,
        deadline: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Failure> {
        match within(deadline, call).await {
            Ok(answer) => {
                if self.silent_since.lock().take().is_some() {
                    tracing::info!("the simulated fleet answers again");
                }
                Ok(answer.into_inner())
            }
            Err(status) => Err(self.failure(&status)),
        }
    }

    /// Returns the failure that `status` means.
    pub(crate) fn failure(&self, status: &Status) -> Failure {
        let kind = kind(status.code());
        let fleet = format!("the simulated fleet at {}", self.url);
        let text = if kind == FailureKind::Refused {
            format!("{fleet}: {}", words(status))
        } else {
            let since = *self.silent_since.lock().get_or_insert_with(|| {
                tracing::warn!(error = words(status), "the simulated fleet does not answer");
                clock::now()
            });
            format!("{fleet} (failing since {}Z: {})", bos_time::text(since), words(status))
        };
        Failure { kind, status: None, text }
    }
}

fn kind(code: Code) -> FailureKind {
    match code {
        Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition | Code::OutOfRange => {
            FailureKind::Refused
        }
        Code::PermissionDenied | Code::Unauthenticated | Code::Unimplemented => FailureKind::Denied,
        Code::Unavailable | Code::ResourceExhausted => FailureKind::Unreachable,
        _ => FailureKind::Ambiguous,
    }
}

/// Returns the text of the status, in the fleet's words where it has any.
fn words(status: &Status) -> String {
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
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_the_fleet_said() {
        let broken = std::io::Error::other("connection reset");
        let rows = [
            (Status::invalid_argument("hosts: x1 is not known"), "hosts: x1 is not known"),
            (Status::internal(""), "Internal"),
            (Status::from_error(Box::new(broken)), "connection reset"),
        ];
        for (status, told) in rows {
            assert_eq!(words(&status), told);
        }
    }

    #[tokio::test]
    async fn silence_has_a_beginning_and_refusals_are_no_silence() {
        let fleet = SimulatedBootDriver::at(&TlsSettings::default(), "http://127.0.0.1:1").unwrap();
        let refused = fleet.failure(&Status::invalid_argument("no"));
        assert_eq!(
            (refused.kind, refused.text.as_str()),
            (FailureKind::Refused, "the simulated fleet at http://127.0.0.1:1: no")
        );
        let silent = fleet.failure(&Status::unavailable("gone"));
        assert_eq!(silent.kind, FailureKind::Unreachable);
        assert!(
            silent.text.starts_with("the simulated fleet at http://127.0.0.1:1 (failing since 2"),
            "{}",
            silent.text
        );
        assert_eq!(fleet.failure(&Status::unavailable("gone")), silent);
    }
}
