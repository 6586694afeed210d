//! Images of the simulated fleet.

use std::time::Duration;

use chassis::{Channel, Fault, settings::TlsSettings, within};
use domain::boot::template::image::{Artifact, Contents, ImageArtifacts, Manifest, Unreadable};
use proto::simulation::{GetImageRequest, fleet_service_client::FleetServiceClient};

use crate::{
    convert::target::image_from_wire,
    dependency::{Dependency, DependencyError, DependencyOutage},
};

/// The simulated fleet as a store of images.
#[derive(Clone)]
pub struct SimulatedImages(FleetServiceClient<Channel>);

impl SimulatedImages {
    /// Creates a client for the fleet at `url`.
    ///
    /// # Errors
    /// `url` is not an address.
    pub fn new(tls: &TlsSettings, url: &str) -> anyhow::Result<Self> {
        Ok(Self(FleetServiceClient::new(chassis::channel(tls, url)?)))
    }

    pub(super) async fn image(
        &self,
        path: &str,
        deadline: Duration,
    ) -> Result<ImageArtifacts, DependencyError> {
        let mut client = self.0.clone();
        let request = GetImageRequest { path: path.to_owned() };
        let answer = within(deadline, client.get_image(request)).await;
        answer.map(|answer| image_from_wire(answer.into_inner())).map_err(|status| {
            match Fault::from(status) {
                Fault::NotFound { .. } => {
                    DependencyError::Fatal(format!("the image manifest {path} does not exist"))
                }
                other => DependencyError::from_mesh(Dependency::ImageStore, other),
            }
        })
    }

    /// Returns the contents of an image. The fleet lists no object that does not exist.
    pub(super) async fn inspect(
        &self,
        path: &str,
        deadline: Duration,
    ) -> Result<Result<Contents, Unreadable>, DependencyOutage> {
        match self.image(path, deadline).await {
            Ok(image) => Ok(Ok(contents(image))),
            Err(DependencyError::Fatal(why) | DependencyError::Idle { error: why, .. }) => {
                Ok(Err(Unreadable::NotRead { path: path.to_owned(), why }))
            }
            // The error texts of other stores include their names.
            Err(DependencyError::Retryable(DependencyOutage { what, error })) => {
                Err(DependencyOutage { what, error: format!("{what}: {error}") })
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
