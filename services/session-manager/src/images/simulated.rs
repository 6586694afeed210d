//! Images of the simulated fleet.

use std::time::Duration;

use chassis::{Channel, Fault, within};
use domain::target::ImageArtifacts;
use proto::simulation::{GetImageRequest, fleet_service_client::FleetServiceClient};

use crate::{convert::target::image_from_wire, setback::Setback};

/// Who does not answer, in texts for people.
const STORE: &str = "image store";

/// The simulated fleet as a store of images.
#[derive(Clone)]
pub struct Simulated(FleetServiceClient<Channel>);

impl Simulated {
    /// The fleet at `url`.
    ///
    /// # Errors
    /// When `url` is not an address.
    pub fn new(url: &str) -> anyhow::Result<Self> {
        Ok(Self(FleetServiceClient::new(chassis::channel(url)?)))
    }

    pub(super) async fn image(&self, path: &str, deadline: Duration) -> Result<ImageArtifacts, Setback> {
        let mut client = self.0.clone();
        let request = GetImageRequest { path: path.to_owned() };
        let answer = within(deadline, client.get_image(request)).await;
        answer.map(|answer| image_from_wire(answer.into_inner())).map_err(|status| {
            match Fault::from(status) {
                Fault::NotFound { .. } => Setback::Fail(format!("the image manifest {path} does not exist")),
                other => Setback::from_mesh(STORE, other),
            }
        })
    }
}
