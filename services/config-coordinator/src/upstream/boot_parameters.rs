//! The boot script server.

use std::{sync::Arc, time::Duration};

use chassis::{Channel, channel::LARGEST_MESSAGE, within};
use domain::{artifacts::BootArtifacts, id::ComponentId};
use proto::simulation::{PutBootParametersRequest, fleet_service_client::FleetServiceClient};

use super::Failure;

/// The server writes one record per host. Thousands take it some seconds; one that needs longer than this
/// is asked again, which replaces what it may have taken.
const DEADLINE: Duration = Duration::from_secs(20);

/// The boot script servers that can be driven.
#[derive(Clone)]
pub(crate) enum Driver {
    /// The simulated fleet.
    Simulated(Box<FleetServiceClient<Channel>>),
}

impl Driver {
    /// Drives the simulated fleet at `url`.
    pub(crate) fn simulated(url: &str) -> anyhow::Result<Self> {
        let client =
            FleetServiceClient::new(chassis::channel(url)?).max_decoding_message_size(LARGEST_MESSAGE);
        Ok(Self::Simulated(Box::new(client)))
    }

    /// Sets what `hosts` boot when they are next switched on, and gives the token that stands for it.
    /// Missing texts are empty ones to the server.
    pub(crate) async fn put(
        &self,
        hosts: &[ComponentId],
        artifacts: &BootArtifacts,
    ) -> Result<Arc<str>, Failure> {
        let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
        let token = match self {
            Self::Simulated(client) => {
                let request = PutBootParametersRequest {
                    hosts: hosts.iter().map(|host| host.as_str().to_owned()).collect(),
                    params: text(&artifacts.kernel_parameters),
                    kernel: text(&artifacts.kernel),
                    initrd: text(&artifacts.initrd),
                };
                let mut client = client.as_ref().clone();
                within(DEADLINE, client.put_boot_parameters(request)).await?.into_inner().referral_token
            }
        };
        // Without a token nobody can tell what a node booted, so this is no acceptance (BOS reference 6.5).
        if token.is_empty() { Err(Failure("the answer has no token".to_owned())) } else { Ok(token.into()) }
    }
}
