//! What images hold, asked of the store that has them (BOS reference 5.4.4, 6.8).

mod directory;
mod manifest;
mod s3;
mod simulated;
mod store;

use std::time::Duration;

use anyhow::Context as _;
use chassis::{Settings, settings::ImagesDriver};
use domain::{
    image::{Contents, STORE_TYPE, Unreadable},
    target::ImageArtifacts,
};

pub use directory::Directory;
pub use s3::S3;
pub use simulated::Simulated;

use crate::{
    answers::Answers,
    images::store::Store,
    setback::{Outage, Setback},
};

/// How images are read.
#[derive(Clone)]
pub enum Driver {
    /// From the simulated fleet, which has an image behind every well-formed path.
    Simulated(Simulated),
    /// From an S3-compatible store.
    S3(S3),
    /// From a directory.
    File(Directory),
}

impl Driver {
    /// The driver that the settings name.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub fn new(settings: &Settings) -> anyhow::Result<Self> {
        Ok(match settings.images.driver {
            ImagesDriver::Simulated => {
                Self::Simulated(Simulated::new(&settings.simulator.url).context("simulator.url")?)
            }
            ImagesDriver::S3 => Self::S3(S3::new(&settings.images).context("images.s3")?),
            ImagesDriver::File => {
                Self::File(Directory::new(&settings.images.directory).context("images.directory")?)
            }
        })
    }

    /// What the manifest at `path` in a store of that `kind` lists, with the contents of its file of boot
    /// parameters. The store has `deadline` to begin each answer.
    ///
    /// # Errors
    /// [`Setback::Wait`] when the store does not answer, [`Setback::Fail`] when there is no such image or its
    /// manifest breaks a rule.
    pub async fn image(&self, kind: &str, path: &str, deadline: Duration) -> Result<ImageArtifacts, Setback> {
        if kind != STORE_TYPE {
            return Err(Setback::Fail(format!("{path}: images of type '{kind}' are not supported")));
        }
        match self {
            Self::Simulated(fleet) => fleet.image(path, deadline).await,
            Self::S3(s3) => Store::S3(s3).image(path, deadline).await,
            Self::File(directory) => Store::File(directory).image(path, deadline).await,
        }
    }

    /// As [`Self::image`] of the usual kind of store, with a look at each object that nodes are given, whether it is
    /// there. A file of boot parameters is read only if asked for. The store has `deadline` to begin each answer, and
    /// is asked twice: for the manifest, and for all objects at the same time.
    ///
    /// # Errors
    /// When the store says nothing about the manifest.
    pub(crate) async fn look(
        &self,
        path: &str,
        with_parameters: bool,
        deadline: Duration,
    ) -> Result<Result<Contents, Unreadable>, Outage> {
        match self {
            Self::Simulated(fleet) => fleet.look(path, deadline).await,
            Self::S3(s3) => Store::S3(s3).look(path, with_parameters, deadline).await,
            Self::File(directory) => Store::File(directory).look(path, with_parameters, deadline).await,
        }
    }

    /// Who is asked, in texts for people.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Simulated(_) => simulated::STORE,
            Self::S3(_) => s3::NAME,
            Self::File(_) => directory::DIRECTORY,
        }
    }
}

/// Images for many setups at a time.
pub(crate) struct Images {
    driver: Driver,
    /// By kind of store and path. None is used for a later question: a manifest may be replaced at any time,
    /// and only the store knows.
    read: Answers<(String, String), ImageArtifacts>,
}

impl Images {
    /// Images read by `driver`.
    pub(crate) fn new(driver: Driver) -> Self {
        Self { driver, read: Answers::new(Duration::ZERO) }
    }

    /// As [`Driver::image`], with one reading at a time for all who want the same image.
    ///
    /// # Errors
    /// As [`Driver::image`].
    pub(crate) async fn get(
        &self,
        kind: &str,
        path: &str,
        deadline: Duration,
    ) -> Result<ImageArtifacts, Setback> {
        let question = (kind.to_owned(), path.to_owned());
        self.read.get(question, || self.driver.image(kind, path, deadline)).await
    }
}
