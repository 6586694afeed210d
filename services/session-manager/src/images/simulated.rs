//! Images of the simulated fleet.

use std::time::Duration;

use chassis::{Channel, Fault, within};
use domain::{
    image::{Artifact, Contents, Manifest, Unreadable},
    target::ImageArtifacts,
};
use proto::simulation::{GetImageRequest, fleet_service_client::FleetServiceClient};

use crate::{
    convert::target::image_from_wire,
    setback::{Outage, Setback},
};

/// Who does not answer, in texts for people.
pub(super) const STORE: &str = "image store";

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

    /// What an image consists of. The fleet lists nothing that it does not have.
    pub(super) async fn look(
        &self,
        path: &str,
        deadline: Duration,
    ) -> Result<Result<Contents, Unreadable>, Outage> {
        match self.image(path, deadline).await {
            Ok(image) => Ok(Ok(contents(image))),
            Err(Setback::Fail(why)) => Ok(Err(Unreadable::NotRead { path: path.to_owned(), why })),
            // Other stores have their names in their errors.
            Err(Setback::Wait(Outage { what, error })) => {
                Err(Outage { what, error: format!("{what}: {error}") })
            }
        }
    }
}

fn contents(image: ImageArtifacts) -> Contents {
    let unversioned = |path: Option<String>| path.map(|path| Artifact { path, etag: String::new() });
    let manifest = Manifest {
        kernel: unversioned(image.kernel),
        initrd: unversioned(image.initrd),
        rootfs: image.rootfs.map(|rootfs| Artifact { path: rootfs.path, etag: rootfs.etag }),
        boot_parameters: None,
    };
    Contents { manifest, boot_parameters: image.boot_parameters, ..Contents::default() }
}
