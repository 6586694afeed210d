//! Images of a store that addresses objects by location.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use domain::boot::template::image::{
    Artifact, Contents, ImageArtifacts, Location, Manifest, Part, Unreadable,
};
use futures_util::future::{OptionFuture, join, join_all};

use super::{ImageDirectory, S3Images, manifest};
use crate::dependency::{DependencyError, DependencyOutage};

const MANIFEST: &str = "image manifest";
const BOOT_PARAMETERS: &str = "file of boot parameters";

#[derive(Clone, Copy)]
pub(super) enum ObjectStore<'a> {
    S3(&'a S3Images),
    File(&'a ImageDirectory),
}

impl ObjectStore<'_> {
    /// Returns the image whose manifest is at `path`.
    ///
    /// # Errors
    /// See [`ImageDriver::image`](super::ImageDriver::image).
    pub(super) async fn image(
        self,
        path: &str,
        deadline: Duration,
    ) -> Result<ImageArtifacts, DependencyError> {
        let content = self.content(MANIFEST, path, deadline).await?;
        let manifest = manifest::read(&content);
        let manifest =
            manifest.map_err(|defect| DependencyError::Fatal(format!("the {MANIFEST} {path}: {defect}")))?;
        let boot_parameters = match &manifest.boot_parameters {
            Some(file) => Some(self.text(BOOT_PARAMETERS, &file.path, deadline).await?),
            None => None,
        };
        Ok(manifest.artifacts(boot_parameters))
    }

    /// Inspects the image whose manifest is at `path`, and checks that its objects exist.
    ///
    /// # Errors
    /// See [`ImageDriver::inspect`](super::ImageDriver::inspect).
    pub(super) async fn inspect(
        self,
        path: &str,
        with_parameters: bool,
        deadline: Duration,
    ) -> Result<Result<Contents, Unreadable>, DependencyOutage> {
        let content = match self.content(MANIFEST, path, deadline).await {
            Ok(content) => content,
            Err(DependencyError::Fatal(why) | DependencyError::Idle { error: why, .. }) => {
                return Ok(Err(Unreadable::NotRead { path: path.to_owned(), why }));
            }
            Err(DependencyError::Retryable(outage)) => return Err(outage),
        };
        let manifest = match manifest::read(&content) {
            Ok(manifest) => manifest,
            Err(defect) => return Ok(Err(defect.of(path))),
        };
        let Manifest { kernel, initrd, boot_parameters, rootfs: _ } = &manifest;
        let listed =
            [(Part::Kernel, kernel), (Part::Initrd, initrd), (Part::BootParameters, boot_parameters)];
        let listed = listed.into_iter().filter_map(|(part, artifact)| Some((part, artifact.as_ref()?)));
        let found = join_all(listed.map(|(part, artifact)| async move {
            let what = if part == Part::BootParameters { BOOT_PARAMETERS } else { part.word() };
            Some((part, self.find(what, artifact, deadline).await.err()?))
        }));
        let file = boot_parameters.as_ref().filter(|_| with_parameters);
        let read = OptionFuture::from(file.map(|file| self.text(BOOT_PARAMETERS, &file.path, deadline)));
        let (found, read) = join(found, read).await;
        let mut missing: BTreeMap<_, _> = found.into_iter().flatten().collect();
        let boot_parameters = read.and_then(|read| match read {
            Ok(text) => Some(text),
            Err(error) => {
                missing.entry(Part::BootParameters).or_insert(error.text());
                None
            }
        });
        Ok(Ok(Contents { manifest, missing, boot_parameters }))
    }

    /// Checks that the object exists; `what` names it in texts. Another version than in the manifest is accepted, as
    /// in BOS (BOS reference 6.8).
    async fn find(self, what: &str, artifact: &Artifact, deadline: Duration) -> Result<(), String> {
        let path = &artifact.path;
        let location = location(what, path).map_err(DependencyError::text)?;
        let version = match self {
            Self::S3(s3) => s3.find(location, deadline).await,
            Self::File(directory) => directory.find(location, deadline).await.map(|()| None),
        };
        let version = version.map_err(|error| error.into_dependency_error(what, path).text())?;
        if let Some(version) =
            version.filter(|version| *version != artifact.etag && !artifact.etag.is_empty())
        {
            tracing::warn!(
                path,
                version,
                listed = artifact.etag,
                "etag of image object differs from its manifest"
            );
        }
        Ok(())
    }

    async fn text(self, what: &str, path: &str, deadline: Duration) -> Result<String, DependencyError> {
        let content = self.content(what, path, deadline).await?;
        String::from_utf8(content.into())
            .map_err(|_| DependencyError::Fatal(format!("the {what} {path} is not UTF-8")))
    }

    /// Reads the object at `path`; `what` names it in texts.
    async fn content(self, what: &str, path: &str, deadline: Duration) -> Result<Bytes, DependencyError> {
        let location = location(what, path)?;
        let content = match self {
            Self::S3(s3) => s3.object(location, deadline).await,
            Self::File(directory) => directory.object(location, deadline).await,
        };
        content.map_err(|error| error.into_dependency_error(what, path))
    }
}

fn location<'a>(what: &str, path: &'a str) -> Result<Location<'a>, DependencyError> {
    Location::parse(path)
        .map_err(|why| DependencyError::Fatal(format!("the path of the {what}, {path}, {why}")))
}
