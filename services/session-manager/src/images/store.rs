//! Images of a store that keeps objects by their location.

use std::time::Duration;

use bytes::Bytes;
use domain::{
    image::{LARGEST_MANIFEST, Location, Manifest},
    target::{ImageArtifacts, Rootfs},
};

use super::{Directory, S3, manifest};
use crate::setback::{Outage, Setback};

const MANIFEST: &str = "image manifest";
const BOOT_PARAMETERS: &str = "file of boot parameters";

/// Most bytes that are read of an object. Kernel parameters are far shorter than a manifest may be.
pub(super) const LARGEST: usize = LARGEST_MANIFEST;

/// A store.
#[derive(Clone, Copy)]
pub(super) enum Store<'a> {
    S3(&'a S3),
    File(&'a Directory),
}

/// Why an object could not be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// There is none.
    Absent,
    /// It has more than [`LARGEST`] bytes.
    TooLarge,
    /// It cannot be what is looked for, such as a directory.
    Unfit(String),
    /// The store does not answer.
    Outage(Outage),
}

impl Store<'_> {
    /// The image whose manifest is at `path`.
    ///
    /// # Errors
    /// As [`Driver::image`](super::Driver::image).
    pub(super) async fn image(self, path: &str, deadline: Duration) -> Result<ImageArtifacts, Setback> {
        let content = self.content(MANIFEST, path, deadline).await?;
        let manifest = manifest::read(&content);
        let manifest =
            manifest.map_err(|defect| Setback::Fail(format!("the {MANIFEST} {path}: {defect}")))?;
        let boot_parameters = match &manifest.boot_parameters {
            Some(file) => Some(self.text(BOOT_PARAMETERS, &file.path, deadline).await?),
            None => None,
        };
        Ok(artifacts(manifest, boot_parameters))
    }

    async fn text(self, what: &str, path: &str, deadline: Duration) -> Result<String, Setback> {
        let content = self.content(what, path, deadline).await?;
        String::from_utf8(content.into())
            .map_err(|_| Setback::Fail(format!("the {what} {path} is not UTF-8")))
    }

    /// The content of the object at `path`; people know it as `what`.
    async fn content(self, what: &str, path: &str, deadline: Duration) -> Result<Bytes, Setback> {
        let location = Location::parse(path);
        let location =
            location.map_err(|why| Setback::Fail(format!("the path of the {what}, {path}, {why}")))?;
        let content = match self {
            Self::S3(s3) => s3.object(location, deadline).await,
            Self::File(directory) => directory.object(location, deadline).await,
        };
        content.map_err(|unread| match unread {
            Unread::Absent => Setback::Fail(format!("the {what} {path} does not exist")),
            Unread::TooLarge => Setback::Fail(format!("the {what} {path} is larger than {LARGEST} bytes")),
            Unread::Unfit(why) => Setback::Fail(format!("the {what} {path} {why}")),
            Unread::Outage(outage) => Setback::Wait(outage),
        })
    }
}

fn artifacts(manifest: Manifest, boot_parameters: Option<String>) -> ImageArtifacts {
    ImageArtifacts {
        kernel: manifest.kernel.map(|kernel| kernel.path),
        initrd: manifest.initrd.map(|initrd| initrd.path),
        rootfs: manifest.rootfs.map(|rootfs| Rootfs { path: rootfs.path, etag: rootfs.etag }),
        boot_parameters,
    }
}
