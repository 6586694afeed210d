//! The contents of the path and the manifest of an image (BOS reference 6.7, 6.8).

mod found;

pub use found::{Contents, Listing, Part, Unreadable};

/// Only type of store that boot sets may name. Every driver of images stands in for such a store.
pub const STORE_TYPE: &str = "s3";

/// Most bytes that a manifest may have.
pub const LARGEST_MANIFEST: usize = 1_048_576;

const KERNEL: &str = "application/vnd.cray.image.kernel";
const INITRD: &str = "application/vnd.cray.image.initrd";
const ROOTFS: &str = "application/vnd.cray.image.rootfs.squashfs";
const BOOT_PARAMETERS: &str = "application/vnd.cray.image.parameters.boot";

/// Location of an object: `s3://BUCKET/KEY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location<'a> {
    /// Name of the bucket, never empty.
    pub bucket: &'a str,
    /// Everything after the bucket, a query string included; never empty.
    pub key: &'a str,
}

/// Reason why a path leads to no object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoLocation {
    /// The path has another form.
    #[error("is not of the form s3://BUCKET/KEY")]
    OtherForm,
    /// The path means another place where it is resolved, such as in a URL or a file name.
    #[error("has a part '{0}', which stands for another place")]
    Relative(&'static str),
}

impl<'a> Location<'a> {
    /// Parses a path.
    ///
    /// # Errors
    /// When it leads to no object; the error has the reason.
    pub fn parse(path: &'a str) -> Result<Self, NoLocation> {
        let (scheme, rest) = path.split_once("://").ok_or(NoLocation::OtherForm)?;
        let (bucket, key) = rest.split_once('/').ok_or(NoLocation::OtherForm)?;
        if !scheme.eq_ignore_ascii_case("s3") || bucket.is_empty() || key.is_empty() {
            return Err(NoLocation::OtherForm);
        }
        for relative in ["..", "."] {
            if rest.split('/').any(|part| part == relative) {
                return Err(NoLocation::Relative(relative));
            }
        }
        Ok(Self { bucket, key })
    }
}

/// Returns the id under which the image management service knows the image at `path`: the first part of its key, if
/// more follows. Neither the bucket nor the form of the id matters.
pub fn ims_id(path: &str) -> Option<&str> {
    let (id, rest) = Location::parse(path).ok()?.key.split_once('/')?;
    (!id.is_empty() && !rest.is_empty()).then_some(id)
}

/// Entry of a manifest, with the needed members.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// Media type of the object.
    pub kind: Option<String>,
    /// Path of the object.
    pub path: Option<String>,
    /// Version of the object.
    pub etag: Option<String>,
}

/// Object that belongs to an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Path in the store.
    pub path: String,
    /// Version; empty: unknown.
    pub etag: String,
}

/// Objects in a manifest that boot a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The kernel.
    pub kernel: Option<Artifact>,
    /// The initial RAM disk.
    pub initrd: Option<Artifact>,
    /// The root file system, always with a version.
    pub rootfs: Option<Artifact>,
    /// The file of boot parameters, always with a version.
    pub boot_parameters: Option<Artifact>,
}

/// Parts of an image for its nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageArtifacts {
    /// Path of the kernel.
    pub kernel: Option<String>,
    /// Path of the initial RAM disk.
    pub initrd: Option<String>,
    /// The root file system.
    pub rootfs: Option<Rootfs>,
    /// Contents of the file of boot parameters.
    pub boot_parameters: Option<String>,
}

/// Location of the root file system of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rootfs {
    /// Path in the store.
    pub path: String,
    /// Version.
    pub etag: String,
}

/// Reason why a manifest describes no image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The manifest has several entries of this type.
    #[error("it lists more than one artifact of type '{0}'")]
    Several(&'static str),
    /// The entry has no path.
    #[error("its artifact of type '{0}' has no link.path")]
    NoPath(&'static str),
    /// The entry has no version.
    #[error("its artifact of type '{0}' has no link.etag")]
    NoEtag(&'static str),
}

impl Manifest {
    /// Selects the objects that boot a node. Missing artifacts are no error here; callers check for those that they need.
    ///
    /// # Errors
    /// Names the entry that is there more than once, or lacks its path or version.
    pub fn of(entries: &[Entry]) -> Result<Self, Flaw> {
        Ok(Self {
            kernel: only(entries, KERNEL)?,
            initrd: only(entries, INITRD)?,
            rootfs: versioned(entries, ROOTFS)?,
            boot_parameters: versioned(entries, BOOT_PARAMETERS)?,
        })
    }

    /// Returns the parts of the image for a node, with the contents of the file of boot parameters.
    pub fn artifacts(self, boot_parameters: Option<String>) -> ImageArtifacts {
        ImageArtifacts {
            kernel: self.kernel.map(|kernel| kernel.path),
            initrd: self.initrd.map(|initrd| initrd.path),
            rootfs: self.rootfs.map(|rootfs| Rootfs { path: rootfs.path, etag: rootfs.etag }),
            boot_parameters,
        }
    }
}

/// Returns the entry of that type, of which there may be one at most.
fn only(entries: &[Entry], kind: &'static str) -> Result<Option<Artifact>, Flaw> {
    let mut of_kind = entries.iter().filter(|entry| entry.kind.as_deref() == Some(kind));
    let Some(entry) = of_kind.next() else { return Ok(None) };
    if of_kind.next().is_some() {
        return Err(Flaw::Several(kind));
    }
    let path = entry.path.clone().filter(|path| !path.is_empty()).ok_or(Flaw::NoPath(kind))?;
    Ok(Some(Artifact { path, etag: entry.etag.clone().unwrap_or_default() }))
}

/// Returns the entry as [`only`] does, for types that need a version.
fn versioned(entries: &[Entry], kind: &'static str) -> Result<Option<Artifact>, Flaw> {
    match only(entries, kind)? {
        Some(artifact) if artifact.etag.is_empty() => Err(Flaw::NoEtag(kind)),
        artifact => Ok(artifact),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn paths_lead_to_objects() {
        let rows: String = [
            "s3://boot-images/a/manifest.json",
            "S3://b/k",
            "s3://b/k?versionId=1",
            "s3://b//k",
            "s3://b/..k/...",
            "s3://b/",
            "s3://b",
            "s3:///k",
            "https://b/k",
            "b/k",
            "",
            "s3://b/../k",
            "s3://b/k/.",
            "s3://../k",
        ]
        .into_iter()
        .map(|path| match Location::parse(path) {
            Ok(Location { bucket, key }) => format!("{path}: {key} of {bucket}\n"),
            Err(why) => format!("{path}: {why}\n"),
        })
        .collect();
        expect![[r#"
            s3://boot-images/a/manifest.json: a/manifest.json of boot-images
            S3://b/k: k of b
            s3://b/k?versionId=1: k?versionId=1 of b
            s3://b//k: /k of b
            s3://b/..k/...: ..k/... of b
            s3://b/: is not of the form s3://BUCKET/KEY
            s3://b: is not of the form s3://BUCKET/KEY
            s3:///k: is not of the form s3://BUCKET/KEY
            https://b/k: is not of the form s3://BUCKET/KEY
            b/k: is not of the form s3://BUCKET/KEY
            : is not of the form s3://BUCKET/KEY
            s3://b/../k: has a part '..', which stands for another place
            s3://b/k/.: has a part '.', which stands for another place
            s3://../k: has a part '..', which stands for another place
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn the_id_of_an_image_is_the_first_part_of_its_key() {
        for (path, id) in [
            ("s3://boot-images/3f4b-11/manifest.json", Some("3f4b-11")),
            ("s3://any/not-a-uuid/deep/kernel", Some("not-a-uuid")),
            ("s3://b/i?x=1/k", Some("i?x=1")),
            ("s3://b/i/k?x=1", Some("i")),
            ("s3://b/i/", None),
            ("s3://b/manifest.json", None),
            ("s3://b//k", None),
            ("s3://b", None),
            ("nonsense", None),
        ] {
            assert_eq!(ims_id(path), id, "{path}");
        }
    }

    /// Returns entries written as `kind path etag`, with the last word of the type and `-` for a missing text.
    fn entries(text: &str) -> Vec<Entry> {
        let said = |word: &str| (word != "-").then(|| word.to_owned());
        let kind = |word: &str| {
            let kinds = [KERNEL, INITRD, ROOTFS, BOOT_PARAMETERS];
            kinds.into_iter().find(|kind| kind.ends_with(word)).unwrap_or(word).to_owned()
        };
        let entry = |line: &str| {
            let mut words = line.split_whitespace();
            let mut word = || words.next().and_then(said);
            Entry { kind: word().map(|word| kind(&word)), path: word(), etag: word() }
        };
        text.split(',').map(entry).collect()
    }

    #[test]
    fn a_manifest_lists_each_artifact_once() {
        let show = |artifact: Option<Artifact>| artifact.map_or("-".into(), |it| it.path + "@" + &it.etag);
        let rows: String = [
            "kernel k e, initrd i -, squashfs r e, boot p e",
            "kernel k -, other x -, other y -, - z -",
            "",
            "kernel k e, kernel k e",
            "initrd i e, initrd j -",
            "squashfs r e, squashfs s e",
            "boot p e, boot q e",
            "squashfs r -",
            "boot p -",
            "kernel - e",
        ]
        .into_iter()
        .map(|text| match Manifest::of(&entries(text)) {
            Ok(Manifest { kernel, initrd, rootfs, boot_parameters }) => {
                let shown = [kernel, initrd, rootfs, boot_parameters].map(show).join(" ");
                format!("{text}: {shown}\n")
            }
            Err(flaw) => format!("{text}: {flaw}\n"),
        })
        .collect();
        expect![[r#"
            kernel k e, initrd i -, squashfs r e, boot p e: k@e i@ r@e p@e
            kernel k -, other x -, other y -, - z -: k@ - - -
            : - - - -
            kernel k e, kernel k e: it lists more than one artifact of type 'application/vnd.cray.image.kernel'
            initrd i e, initrd j -: it lists more than one artifact of type 'application/vnd.cray.image.initrd'
            squashfs r e, squashfs s e: it lists more than one artifact of type 'application/vnd.cray.image.rootfs.squashfs'
            boot p e, boot q e: it lists more than one artifact of type 'application/vnd.cray.image.parameters.boot'
            squashfs r -: its artifact of type 'application/vnd.cray.image.rootfs.squashfs' has no link.etag
            boot p -: its artifact of type 'application/vnd.cray.image.parameters.boot' has no link.etag
            kernel - e: its artifact of type 'application/vnd.cray.image.kernel' has no link.path
        "#]].assert_eq(&rows);
    }
}
