//! What images hold, asked of the store that has them.

use std::time::Duration;

use chassis::{Channel, Fault, within};
use domain::target::ImageArtifacts;
use proto::simulation::{GetImageRequest, fleet_service_client::FleetServiceClient};

use crate::{convert, setback::Setback};

/// The kind of store that boot sets may name.
const S3: &str = "s3";

/// How images are read.
#[derive(Clone)]
pub(crate) enum Driver {
    /// From the simulated fleet, which has an image behind every well-formed path.
    Simulated(FleetServiceClient<Channel>),
}

impl Driver {
    /// The driver that asks the simulated fleet.
    pub(crate) fn simulated(channel: Channel) -> Self {
        Self::Simulated(FleetServiceClient::new(channel))
    }

    /// What the manifest at `path` in a store of that `kind` lists.
    ///
    /// # Errors
    /// [`Setback::Wait`] when the store does not answer within `deadline`, [`Setback::Fail`] when it has no
    /// such image.
    pub(crate) async fn image(
        &self,
        kind: &str,
        path: &str,
        deadline: Duration,
    ) -> Result<ImageArtifacts, Setback> {
        if kind != S3 {
            return Err(Setback::Fail(format!("{path}: images of type '{kind}' are not supported")));
        }
        match self {
            Self::Simulated(client) => {
                let mut client = client.clone();
                let request = GetImageRequest { path: path.to_owned() };
                let answer = within(deadline, client.get_image(request)).await;
                answer.map(|answer| convert::target::image_from_wire(answer.into_inner())).map_err(|status| {
                    match Fault::from(status) {
                        Fault::NotFound { .. } => {
                            Setback::Fail(format!("the image manifest {path} does not exist"))
                        }
                        other => Setback::from_peer("image store", other),
                    }
                })
            }
        }
    }
}
