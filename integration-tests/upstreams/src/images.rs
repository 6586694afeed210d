//! Images: their content in the store, and their records in the image management service.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// All images.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImageStock {
    /// Whether images that are not listed exist, each as [`StoredImage::default`] in any bucket.
    pub every: bool,
    /// Images that differ from the default, by id.
    pub special: BTreeMap<String, StoredImage>,
    /// Objects besides those of images, by bucket and key with a slash between.
    pub objects: BTreeMap<String, String>,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoredImage {
    /// Architecture as the image management service spells it; `None`: not recorded.
    pub arch: Option<String>,
    /// Whether the image management service knows the image.
    pub in_catalogue: bool,
    /// Contents of the manifest instead of the usual.
    pub manifest: Option<String>,
    /// Which artifacts the manifest lists, of `kernel`, `initrd`, `rootfs`, `boot_parameters`.
    pub listed: Vec<String>,
    /// Which objects the store has, of the same and `manifest.json`.
    pub stored: Vec<String>,
    /// Contents of the boot parameters file.
    pub boot_parameters: String,
    /// Artifacts that the manifest lists without an `etag`.
    pub without_etag: Vec<String>,
    /// Metadata in the image management service.
    pub metadata: BTreeMap<String, String>,
}

const ARTIFACTS: [(&str, &str); 4] = [
    ("kernel", "application/vnd.cray.image.kernel"),
    ("initrd", "application/vnd.cray.image.initrd"),
    ("rootfs", "application/vnd.cray.image.rootfs.squashfs"),
    ("boot_parameters", "application/vnd.cray.image.parameters.boot"),
];

const MANIFEST: &str = "manifest.json";

impl Default for ImageStock {
    fn default() -> Self {
        Self { every: true, special: BTreeMap::new(), objects: BTreeMap::new() }
    }
}

impl Default for StoredImage {
    fn default() -> Self {
        let names = ARTIFACTS.map(|(name, _)| name.to_owned());
        Self {
            arch: Some("x86_64".into()),
            in_catalogue: true,
            manifest: None,
            listed: names.to_vec(),
            stored: [names.to_vec(), vec![MANIFEST.into()]].concat(),
            boot_parameters: "console=ttyS0,115200 ip=dhcp".into(),
            without_etag: Vec::new(),
            metadata: BTreeMap::new(),
        }
    }
}

impl ImageStock {
    /// The image of this id, if there is one.
    pub(crate) fn get(&self, id: &str) -> Option<StoredImage> {
        self.special.get(id).cloned().or_else(|| self.every.then(StoredImage::default))
    }

    /// The contents of an object.
    pub(crate) fn object(&self, bucket: &str, key: &str) -> Option<Bytes> {
        if let Some(text) = self.objects.get(&format!("{bucket}/{key}")) {
            return Some(text.clone().into());
        }
        let (id, name) = key.split_once('/')?;
        self.get(id)?.object(bucket, id, name)
    }
}

impl StoredImage {
    fn object(&self, bucket: &str, id: &str, name: &str) -> Option<Bytes> {
        if !self.stored.iter().any(|stored| stored == name) {
            return None;
        }
        match name {
            MANIFEST => Some(self.manifest(bucket, id).into()),
            "boot_parameters" => Some(self.boot_parameters.clone().into()),
            _ => Some(format!("{name} of {id}").into()),
        }
    }

    fn manifest(&self, bucket: &str, id: &str) -> String {
        if let Some(manifest) = &self.manifest {
            return manifest.clone();
        }
        let listed = ARTIFACTS.iter().filter(|(name, _)| self.listed.iter().any(|listed| listed == name));
        let artifact = |(name, kind): &(&str, &str)| {
            let contents = self.object(bucket, id, name).unwrap_or_default();
            let mut link =
                json!({"path": format!("s3://{bucket}/{id}/{name}"), "etag": etag(&contents), "type": "s3"});
            if self.without_etag.iter().any(|without| without == name) {
                link.as_object_mut().and_then(|link| link.remove("etag"));
            }
            json!({"link": link, "type": kind, "md5": etag(&contents)})
        };
        let artifacts: Vec<Value> = listed.map(artifact).collect();
        json!({"version": "1.0", "created": "2026-01-01 00:00:00.000000", "artifacts": artifacts}).to_string()
    }

    /// Record of the image in the image management service.
    pub(crate) fn record(&self, id: &str) -> Value {
        let manifest = self.manifest("boot-images", id);
        let mut record = json!({
            "id": id,
            "created": "2026-01-01T00:00:00.000000+00:00",
            "name": id,
            "link": {
                "path": format!("s3://boot-images/{id}/{MANIFEST}"),
                "etag": etag(manifest.as_bytes()),
                "type": "s3",
            },
            "metadata": self.metadata,
        });
        if let (Some(arch), Some(record)) = (&self.arch, record.as_object_mut()) {
            record.insert("arch".into(), arch.as_str().into());
        }
        record
    }
}

/// The digest by which a version of an object is known: 32 digits, as the store's own.
pub(crate) fn etag(contents: &[u8]) -> String {
    Sha256::digest(contents).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
