//! Images in files, for sites without an object store.

use std::{
    io::{Error, ErrorKind},
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use domain::boot::template::image::Location;
use tokio::{fs::File, io::AsyncReadExt, time::timeout};

use super::object::{LARGEST, ObjectError};
use crate::dependency::{Dependency, DependencyOutage};

/// A directory with the file `BUCKET/KEY` for each `s3://BUCKET/KEY`.
#[derive(Debug, Clone)]
pub struct ImageDirectory(PathBuf);

impl ImageDirectory {
    /// Creates the driver for the directory at `path`, which may be mounted later.
    ///
    /// # Errors
    /// No path is given.
    pub fn new(path: &Path) -> anyhow::Result<Self> {
        anyhow::ensure!(!path.as_os_str().is_empty(), "is not set");
        Ok(Self(path.to_owned()))
    }

    /// Reads a file. Network file systems may hang, hence the deadline.
    pub(super) async fn object(
        &self,
        location: Location<'_>,
        deadline: Duration,
    ) -> Result<Bytes, ObjectError> {
        let path = self.path(location)?;
        match timeout(deadline, read(&path)).await {
            Ok(Ok(content)) if content.len() > LARGEST => Err(ObjectError::TooLarge),
            Ok(Ok(content)) => Ok(content.into()),
            Ok(Err(error)) => Err(self.unread(&error).await),
            Err(_) => Err(self.outage(format!("cannot be read within {} s", deadline.as_secs()))),
        }
    }

    /// Checks that the file exists.
    ///
    /// # Errors
    /// The reason why the file cannot be used.
    pub(super) async fn find(&self, location: Location<'_>, deadline: Duration) -> Result<(), ObjectError> {
        let path = self.path(location)?;
        match timeout(deadline, tokio::fs::metadata(&path)).await {
            Ok(Ok(file)) if file.is_dir() => Err(ObjectError::Unfit("is no file but a directory".to_owned())),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.unread(&error).await),
            Err(_) => Err(self.outage(format!("cannot be read within {} s", deadline.as_secs()))),
        }
    }

    /// Returns the path of the file. A location has no `..`, but its key may be absolute, and would then leave the
    /// directory.
    fn path(&self, Location { bucket, key }: Location<'_>) -> Result<PathBuf, ObjectError> {
        if key.split('/').any(str::is_empty) {
            return Err(ObjectError::Unfit("has an empty part, which no file name has".to_owned()));
        }
        Ok(self.0.join(bucket).join(key))
    }

    /// Classifies an error as a problem of the file or of the directory. A directory that is not mounted has no
    /// files, which does not concern the image.
    async fn unread(&self, error: &Error) -> ObjectError {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => match tokio::fs::read_dir(&self.0).await {
                Ok(_) => ObjectError::Absent,
                Err(error) => self.outage(error.to_string()),
            },
            ErrorKind::IsADirectory | ErrorKind::InvalidInput | ErrorKind::InvalidFilename => {
                ObjectError::Unfit(format!("is no file: {error}"))
            }
            _ => self.outage(error.to_string()),
        }
    }

    fn outage(&self, error: String) -> ObjectError {
        let error = format!("{}: {error}", self.0.display());
        ObjectError::Outage(DependencyOutage { what: Dependency::ImageDirectory, error })
    }
}

/// Reads the content up to one byte more than the limit.
async fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    let limit = u64::try_from(LARGEST).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path).await?.take(limit).read_to_end(&mut content).await?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use expect_test::expect;

    use super::*;
    use crate::{dependency::DependencyError, images::ImageDriver};

    const LONG: Duration = Duration::from_secs(60);

    fn manifest(boot_parameters: &str) -> String {
        let artifact = |kind: &str, path: &str| {
            format!(
                r#"{{"type": "application/vnd.cray.image.{kind}", "link": {{"path": "{path}", "etag": "e"}}}}"#
            )
        };
        let artifacts = [
            artifact("kernel", "s3://b/i/kernel"),
            artifact("initrd", "s3://b/i/initrd"),
            artifact("rootfs.squashfs", "s3://b/i/rootfs"),
            artifact("parameters.boot", boot_parameters),
        ];
        format!(r#"{{"version": "1.0", "artifacts": [{}]}}"#, artifacts.join(", "))
    }

    #[tokio::test]
    async fn images_are_read_from_files() {
        let directory = tempfile::tempdir().unwrap();
        let bucket = directory.path().join("b");
        fs::create_dir_all(bucket.join("i")).unwrap();
        fs::write(bucket.join("secret"), "not for nodes").unwrap();
        fs::write(bucket.join("i/parameters"), "quiet\n").unwrap();
        fs::write(bucket.join("i/binary"), b"\xff").unwrap();
        fs::write(bucket.join("i/large"), vec![b' '; LARGEST + 1]).unwrap();
        fs::write(bucket.join("i/full"), vec![b' '; LARGEST]).unwrap();
        for (name, parameters) in [
            ("good", "s3://b/i/parameters"),
            ("gone", "s3://b/i/nothing"),
            ("binary", "s3://b/i/binary"),
            ("away", "s3://b/../b/secret"),
            ("away2", "s3://b//etc/passwd"),
            ("away3", "/etc/passwd"),
        ] {
            fs::write(bucket.join(format!("i/{name}.json")), manifest(parameters)).unwrap();
        }
        let driver = ImageDriver::File(ImageDirectory::new(directory.path()).unwrap());
        let mut rows = String::new();
        for path in [
            "s3://b/i/good.json",
            "s3://b/i/gone.json",
            "s3://b/i/binary.json",
            "s3://b/i/away.json",
            "s3://b/i/away2.json",
            "s3://b/i/away3.json",
            "s3://b/i/missing.json",
            "s3://b/i/good.json/deeper",
            "s3://b/i",
            "s3://b/i/large",
            "s3://b/i/full",
            "s3://b/i/\0",
            "s3:///etc/passwd",
            "s3://b//etc/passwd",
            "s3://../b/i/good.json",
        ] {
            let told = match driver.image("s3", path, LONG).await {
                Ok(image) => format!("{image:?}"),
                Err(DependencyError::Fatal(error) | DependencyError::Idle { error, .. }) => error,
                Err(DependencyError::Retryable(outage)) => format!("{}: {}", outage.what, outage.error),
            };
            rows += &format!("{}: {told}\n", path.escape_debug());
        }
        expect![[r#"
            s3://b/i/good.json: ImageArtifacts { kernel: Some("s3://b/i/kernel"), initrd: Some("s3://b/i/initrd"), rootfs: Some(Rootfs { path: "s3://b/i/rootfs", etag: "e" }), boot_parameters: Some("quiet\n") }
            s3://b/i/gone.json: the file of boot parameters s3://b/i/nothing does not exist
            s3://b/i/binary.json: the file of boot parameters s3://b/i/binary is not UTF-8
            s3://b/i/away.json: the path of the file of boot parameters, s3://b/../b/secret, has a part '..', which stands for another place
            s3://b/i/away2.json: the file of boot parameters s3://b//etc/passwd has an empty part, which no file name has
            s3://b/i/away3.json: the path of the file of boot parameters, /etc/passwd, is not of the form s3://BUCKET/KEY
            s3://b/i/missing.json: the image manifest s3://b/i/missing.json does not exist
            s3://b/i/good.json/deeper: the image manifest s3://b/i/good.json/deeper does not exist
            s3://b/i: the image manifest s3://b/i is no file: Is a directory (os error 21)
            s3://b/i/large: the image manifest s3://b/i/large is larger than 1048576 bytes
            s3://b/i/full: the image manifest s3://b/i/full: it is not JSON: EOF while parsing a value at line 1 column 1048576
            s3://b/i/\0: the image manifest s3://b/i/NUL is no file: file name contained an unexpected NUL byte
            s3:///etc/passwd: the path of the image manifest, s3:///etc/passwd, is not of the form s3://BUCKET/KEY
            s3://b//etc/passwd: the image manifest s3://b//etc/passwd has an empty part, which no file name has
            s3://../b/i/good.json: the path of the image manifest, s3://../b/i/good.json, has a part '..', which stands for another place
        "#]].assert_eq(&rows.replace('\0', "NUL"));
    }

    #[tokio::test]
    async fn a_missing_directory_is_an_outage() {
        let directory = tempfile::tempdir().unwrap();
        let gone = ImageDirectory::new(&directory.path().join("mount")).unwrap();
        let location = Location::parse("s3://b/i").unwrap();
        let Err(ObjectError::Outage(outage)) = gone.object(location, LONG).await else {
            panic!("it is there")
        };
        assert!(outage.error.ends_with("/mount: No such file or directory (os error 2)"), "{outage:?}");
        let silent = gone.object(location, Duration::ZERO).await;
        assert!(matches!(silent, Err(ObjectError::Outage(_))), "{silent:?}");
    }
}
