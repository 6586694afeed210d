//! Contents of images, from the configured store (BOS reference 5.4.4, 6.8).

mod directory;
mod manifest;
mod object;
mod s3;
mod simulated;
mod store;

use std::time::Duration;

use anyhow::Context as _;
use chassis::{Settings, observe::single_flight::SingleFlight, settings::ImagesDriver};
use domain::boot::template::image::{Contents, ImageArtifacts, STORE_TYPE, Unreadable};

pub use directory::ImageDirectory;
pub use s3::S3Images;
pub use simulated::SimulatedImages;

use crate::{
    dependency::{Dependency, DependencyError, DependencyOutage},
    images::store::ObjectStore,
};

/// Store of images.
#[derive(Clone)]
pub enum ImageDriver {
    /// The simulated fleet, which has an image for every well-formed path.
    Simulated(SimulatedImages),
    /// An S3-compatible store.
    S3(S3Images),
    /// A directory.
    File(ImageDirectory),
}

impl ImageDriver {
    /// Creates the driver that the settings name.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub fn new(settings: &Settings) -> anyhow::Result<Self> {
        Ok(match settings.images.driver {
            ImagesDriver::Simulated => Self::Simulated(
                SimulatedImages::new(&settings.tls, &settings.simulator.url).context("simulator.url")?,
            ),
            ImagesDriver::S3 => Self::S3(S3Images::new(&settings.images).context("images.s3")?),
            ImagesDriver::File => {
                Self::File(ImageDirectory::new(&settings.images.directory).context("images.directory")?)
            }
        })
    }

    /// Returns the artifacts in the manifest at `path` in a store of that `kind`, with the content of the boot
    /// parameter file. The store has `deadline` to begin each answer.
    ///
    /// # Errors
    /// [`DependencyError::Retryable`] if the store does not answer, [`DependencyError::Fatal`] if the image does not
    /// exist or its manifest is invalid.
    pub async fn image(
        &self,
        kind: &str,
        path: &str,
        deadline: Duration,
    ) -> Result<ImageArtifacts, DependencyError> {
        if kind != STORE_TYPE {
            return Err(DependencyError::Fatal(format!("{path}: images of type '{kind}' are not supported")));
        }
        match self {
            Self::Simulated(fleet) => fleet.image(path, deadline).await,
            Self::S3(s3) => ObjectStore::S3(s3).image(path, deadline).await,
            Self::File(directory) => ObjectStore::File(directory).image(path, deadline).await,
        }
    }

    /// Inspects an image of the usual kind of store: reads the manifest and checks that each object for nodes exists.
    /// The boot parameter file is read only if `with_parameters` is set. The store has `deadline` to begin each
    /// answer, and is called twice: for the manifest, and for all objects concurrently.
    ///
    /// # Errors
    /// The store does not return the manifest.
    pub(crate) async fn inspect(
        &self,
        path: &str,
        with_parameters: bool,
        deadline: Duration,
    ) -> Result<Result<Contents, Unreadable>, DependencyOutage> {
        match self {
            Self::Simulated(fleet) => fleet.inspect(path, deadline).await,
            Self::S3(s3) => ObjectStore::S3(s3).inspect(path, with_parameters, deadline).await,
            Self::File(directory) => {
                ObjectStore::File(directory).inspect(path, with_parameters, deadline).await
            }
        }
    }

    /// Name of the store in texts for people.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Simulated(_) => Dependency::ImageStore.text(),
            Self::S3(_) => s3::NAME,
            Self::File(_) => Dependency::ImageDirectory.text(),
        }
    }
}

/// Images for many setups at a time.
pub(crate) struct ImageReader {
    driver: ImageDriver,
    /// Artifacts by kind of store and path. An answer never serves a later question: a manifest may be replaced at
    /// any time, and only the store knows.
    read: SingleFlight<(String, String), ImageArtifacts, DependencyError>,
}

impl ImageReader {
    /// Creates a reader for the images of `driver`.
    pub(crate) fn new(driver: ImageDriver) -> Self {
        Self { driver, read: SingleFlight::new(Duration::ZERO, DependencyError::is_outage) }
    }

    /// Reads an image like [`ImageDriver::image`]; concurrent callers share one read of the same image.
    ///
    /// # Errors
    /// See [`ImageDriver::image`].
    pub(crate) async fn get(
        &self,
        kind: &str,
        path: &str,
        deadline: Duration,
    ) -> Result<ImageArtifacts, DependencyError> {
        let question = (kind.to_owned(), path.to_owned());
        self.read.get(question, || self.driver.image(kind, path, deadline)).await
    }
}
