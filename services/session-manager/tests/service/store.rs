//! An S3-compatible store.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use axum::{
    Router,
    extract::Request,
    http::{
        Method, StatusCode,
        header::{CONTENT_LENGTH, CONTENT_RANGE, RANGE},
    },
    response::{IntoResponse, Response},
};
use chassis::settings::{Images, ImagesDriver};
use parking_lot::Mutex;

use crate::{
    signature::expected,
    site::{parts, peer, serve},
};

/// The accepted key.
pub const ACCESS_KEY: &str = "reader";
/// Secret of the accepted key.
pub const SECRET_KEY: &str = "s3cret-of-the-reader";

/// A store with objects. Clones share it.
#[derive(Clone, Default)]
pub struct Store {
    pub url: String,
    /// Whether the store supports ranges.
    pub ranges: bool,
    objects: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    /// Method and path of each call, and every signature.
    calls: Arc<Mutex<Vec<String>>>,
    signatures: Arc<Mutex<Vec<String>>>,
}

impl Store {
    /// A store without objects, below `/s3` of its address.
    pub async fn start(ranges: bool) -> Self {
        let store = Self { ranges, ..Self::default() };
        let answering = store.clone();
        let url = serve(Router::new().fallback(async move |request| answering.answer(&request))).await;
        Self { url: format!("{url}/s3"), ..store }
    }

    /// Settings for the store, with the key in the file `keys` in `directory`.
    pub fn settings(&self, directory: &Path, access_key: &str, secret_key: &str) -> Images {
        let file = directory.join("keys");
        std::fs::write(&file, keys(access_key, secret_key)).unwrap();
        let usual = Images::default();
        let mut s3 = peer(&self.url, usual.s3);
        s3.credentials = format!("file:{}", file.display());
        Images { driver: ImagesDriver::S3, s3, ..Images::default() }
    }

    /// Stores an object; `name` is bucket and key.
    pub fn put(&self, name: &str, content: impl Into<Vec<u8>>) {
        self.objects.lock().insert(format!("/s3/{name}"), content.into());
    }

    /// Method and path of the calls so far.
    pub fn calls(&self) -> Vec<String> {
        self.calls.lock().clone()
    }

    /// The signatures of the calls so far.
    pub fn signatures(&self) -> Vec<String> {
        self.signatures.lock().clone()
    }

    fn answer(&self, request: &Request) -> Response {
        let (path, query) = parts(request);
        self.calls.lock().push(format!("{} {path}", request.method()));
        let said = |name: &str| query.get(name).cloned().unwrap_or_default();
        let signature = said("X-Amz-Signature");
        self.signatures.lock().push(signature.clone());
        let known = said("X-Amz-Credential").starts_with(&format!("{ACCESS_KEY}/"));
        if !known || signature != expected(request, &query, SECRET_KEY) {
            let provided = format!("<SignatureProvided>{signature}</SignatureProvided>");
            return refusal(StatusCode::FORBIDDEN, "SignatureDoesNotMatch", &provided);
        }
        let Some(content) = self.objects.lock().get(&path).cloned() else {
            return refusal(StatusCode::NOT_FOUND, "NoSuchKey", "");
        };
        if request.method() == Method::HEAD {
            return [(CONTENT_LENGTH, content.len())].into_response();
        }
        match request.headers().get(RANGE).filter(|_| self.ranges) {
            Some(range) => partial(content, range.to_str().unwrap()),
            None => content.into_response(),
        }
    }
}

/// A file with a key.
pub fn keys(access_key: &str, secret_key: &str) -> String {
    format!("access_key = '{access_key}'\nsecret_key = '{secret_key}'\n")
}

/// The part of `content` in a range such as `bytes=0-99`.
fn partial(content: Vec<u8>, range: &str) -> Response {
    let last: usize = range.strip_prefix("bytes=0-").unwrap().parse().unwrap();
    if content.is_empty() {
        return refusal(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange", "");
    }
    let end = content.len().min(last + 1);
    let range = format!("bytes 0-{}/{}", end - 1, content.len());
    (StatusCode::PARTIAL_CONTENT, [(CONTENT_RANGE, range)], content[..end].to_vec()).into_response()
}

fn refusal(status: StatusCode, code: &str, more: &str) -> Response {
    let text = format!(r#"<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code>{more}</Error>"#);
    (status, text).into_response()
}

/// Returns a manifest of an image below `s3://BUCKET/ID`, whose file of boot parameters is at `boot_parameters`.
pub fn manifest(image: &str, boot_parameters: Option<&str>) -> String {
    let artifact = |kind: &str, path: &str| {
        format!(
            r#"{{"type": "application/vnd.cray.image.{kind}", "link": {{"path": "{path}", "etag": "e"}}}}"#
        )
    };
    let mut artifacts = vec![
        artifact("kernel", &format!("{image}/kernel")),
        artifact("initrd", &format!("{image}/initrd")),
        artifact("rootfs.squashfs", &format!("{image}/rootfs")),
    ];
    artifacts.extend(boot_parameters.map(|path| artifact("parameters.boot", path)));
    format!(r#"{{"version": "1.0", "artifacts": [{}]}}"#, artifacts.join(", "))
}
