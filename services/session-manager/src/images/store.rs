//! Images of a store that keeps objects by their location.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use domain::{
    image::{Artifact, Contents, LARGEST_MANIFEST, Location, Manifest, Part, Unreadable},
    target::ImageArtifacts,
};
use futures_util::future::{OptionFuture, join, join_all};

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
        Ok(manifest.artifacts(boot_parameters))
    }

    /// The image whose manifest is at `path`, and whether its objects are there.
    ///
    /// # Errors
    /// As [`Driver::look`](super::Driver::look).
    pub(super) async fn look(
        self,
        path: &str,
        with_parameters: bool,
        deadline: Duration,
    ) -> Result<Result<Contents, Unreadable>, Outage> {
        let content = match self.content(MANIFEST, path, deadline).await {
            Ok(content) => content,
            Err(Setback::Fail(why)) => return Ok(Err(Unreadable::NotRead { path: path.to_owned(), why })),
            Err(Setback::Wait(outage)) => return Err(outage),
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
            Err(setback) => {
                missing.entry(Part::BootParameters).or_insert(setback.text());
                None
            }
        });
        Ok(Ok(Contents { manifest, missing, boot_parameters }))
    }

    /// Whether the object is there; people know it as `what`. One of another version than the manifest lists is no
    /// trouble to BOS either (BOS reference 6.8).
    async fn find(self, what: &str, artifact: &Artifact, deadline: Duration) -> Result<(), String> {
        let path = &artifact.path;
        let location = location(what, path).map_err(Setback::text)?;
        let version = match self {
            Self::S3(s3) => s3.find(location, deadline).await,
            Self::File(directory) => directory.find(location, deadline).await.map(|()| None),
        };
        let version = version.map_err(|unread| unread.told(what, path).text())?;
        if let Some(version) =
            version.filter(|version| *version != artifact.etag && !artifact.etag.is_empty())
        {
            tracing::warn!(
                path,
                version,
                listed = artifact.etag,
                "an object has another version than its image lists"
            );
        }
        Ok(())
    }

    async fn text(self, what: &str, path: &str, deadline: Duration) -> Result<String, Setback> {
        let content = self.content(what, path, deadline).await?;
        String::from_utf8(content.into())
            .map_err(|_| Setback::Fail(format!("the {what} {path} is not UTF-8")))
    }

    /// The content of the object at `path`; people know it as `what`.
    async fn content(self, what: &str, path: &str, deadline: Duration) -> Result<Bytes, Setback> {
        let location = location(what, path)?;
        let content = match self {
            Self::S3(s3) => s3.object(location, deadline).await,
            Self::File(directory) => directory.object(location, deadline).await,
        };
        content.map_err(|unread| unread.told(what, path))
    }
}

impl Unread {
    /// What it means for the object at `path`, which people know as `what`.
    fn told(self, what: &str, path: &str) -> Setback {
        match self {
            Self::Absent => Setback::Fail(format!("the {what} {path} does not exist")),
            Self::TooLarge => Setback::Fail(format!("the {what} {path} is larger than {LARGEST} bytes")),
            Self::Unfit(why) => Setback::Fail(format!("the {what} {path} {why}")),
            Self::Outage(outage) => Setback::Wait(outage),
        }
    }
}

fn location<'a>(what: &str, path: &'a str) -> Result<Location<'a>, Setback> {
    Location::parse(path).map_err(|why| Setback::Fail(format!("the path of the {what}, {path}, {why}")))
}
