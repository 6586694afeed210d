//! Images in an S3-compatible store.

use std::time::Duration;

use bytes::Bytes;
use chassis::settings;
use domain::boot::template::image::Location;
use http::{
    HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_LENGTH, CONTENT_RANGE, ETAG, RANGE},
};
use rusty_s3::{Bucket, Credentials as Keys, S3Action, UrlStyle};
use upstream::{
    Answer, CredentialUse, Credentials, Failure, FailureKind, Peer, PeerError, Request, SecretText,
};

use super::object::{LARGEST, ObjectError};
use crate::dependency::{Dependency, DependencyOutage};

/// Name of the peer.
pub(super) const NAME: &str = "S3";

/// Lifetime of a signature. A signature is used for one call, and clocks may differ by as much.
const SIGNATURE: Duration = Duration::from_secs(900);

/// Query parameter that grants access to the object.
const SIGNATURE_NAME: &str = "X-Amz-Signature";

/// An S3-compatible store, addressed path-style.
#[derive(Clone)]
pub struct S3Images {
    peer: Peer,
    region: String,
}

impl S3Images {
    /// Creates the client of the store that the settings name.
    ///
    /// # Errors
    /// Names the setting of the peer that cannot be used.
    pub fn new(settings: &settings::Images) -> Result<Self, PeerError> {
        let peer = Peer::new(NAME, &settings.s3)?;
        peer.check_credentials("images.s3", CredentialUse::Signature);
        Ok(Self { peer, region: settings.region.clone() })
    }

    /// Reads an object. Only the allowed size is requested, so that a larger object neither costs time nor counts as
    /// a failure of the store.
    pub(super) async fn object(
        &self,
        location: Location<'_>,
        deadline: Duration,
    ) -> Result<Bytes, ObjectError> {
        let beginning = HeaderValue::from_str(&format!("bytes=0-{}", LARGEST - 1));
        let beginning = beginning.expect("digits can be in a header");
        let request = self.signed("object_get", Method::GET, location).await?.header(RANGE, beginning);
        let request = request.answer_within(deadline).also_answer(StatusCode::NOT_FOUND);
        match self.peer.ask(request, statement).await {
            Ok(Some(answer)) => whole(answer),
            Ok(None) => Err(ObjectError::Absent),
            // An empty object has no first byte to return.
            Err(failure) if failure.status == Some(StatusCode::RANGE_NOT_SATISFIABLE) => Ok(Bytes::new()),
            // A store without support for ranges sends the whole object, and the read stops at the limit.
            Err(failure) if failure.status == Some(StatusCode::OK) => {
                match self.size(location, deadline).await {
                    Some(size) if is_too_large(size) => Err(ObjectError::TooLarge),
                    _ => Err(unread(failure)),
                }
            }
            Err(failure) => Err(unread(failure)),
        }
    }

    /// Returns the etag of an object, if the store sends one, without the content.
    pub(super) async fn find(
        &self,
        location: Location<'_>,
        deadline: Duration,
    ) -> Result<Option<String>, ObjectError> {
        let request = self.signed("object_head", Method::HEAD, location).await?;
        let answer = self.peer.call(request.answer_within(deadline)).await.map_err(unread)?;
        let version = answer.headers.get(ETAG).and_then(|version| version.to_str().ok());
        Ok(version.map(|version| version.trim_matches('"').to_owned()))
    }

    /// Returns the size of an object, if the store sends one.
    async fn size(&self, location: Location<'_>, deadline: Duration) -> Option<u64> {
        let request = self.signed("object_head", Method::HEAD, location).await.ok()?;
        let answer = self.peer.call(request.answer_within(deadline)).await.ok()?;
        answer.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// Creates a request that is signed in its query (signature version 4).
    async fn signed(
        &self,
        operation: &'static str,
        method: Method,
        Location { bucket, key }: Location<'_>,
    ) -> Result<Request, ObjectError> {
        let keys = self.keys().await.map_err(ObjectError::Outage)?;
        let endpoint = self.peer.url().parse().expect("the URL of a peer is checked when it is made");
        let bucket = Bucket::new(endpoint, UrlStyle::Path, bucket.to_owned(), self.region.clone());
        let bucket = bucket.expect("path style asks nothing of a bucket, and a peer speaks HTTP");
        let url = match method {
            Method::HEAD => bucket.head_object(keys.as_ref(), key).sign(SIGNATURE),
            _ => bucket.get_object(keys.as_ref(), key).sign(SIGNATURE),
        };
        let request = Request::new(operation, method, self.below_base(url.path()));
        let request = request.header(ACCEPT, HeaderValue::from_static("*/*"));
        Ok(url.query_pairs().fold(request, |request, (name, value)| {
            let hidden = SecretText::new(value.as_ref());
            let request = request.query(name.as_ref(), value);
            if name == SIGNATURE_NAME { request.hiding(hidden) } else { request }
        }))
    }

    /// Returns the part of a signed path after the path of the base URL.
    fn below_base(&self, path: &str) -> String {
        let base = self.peer.url().splitn(4, '/').nth(3).map(|base| format!("/{base}"));
        base.and_then(|base| path.strip_prefix(&base)).unwrap_or(path).to_owned()
    }

    /// Returns the key that signs requests; `None`: anonymous access.
    async fn keys(&self) -> Result<Option<Keys>, DependencyOutage> {
        match self.peer.secrets().await {
            Ok(Credentials::Keys { access_key, secret_key }) => {
                Ok(Some(Keys::new(access_key, secret_key.reveal())))
            }
            Ok(Credentials::None) => Ok(None),
            Ok(Credentials::Token { .. } | Credentials::Password { .. } | Credentials::Client(_)) => {
                let error = "its credentials have to be access_key and secret_key".to_owned();
                Err(DependencyOutage { what: Dependency::ImageStore, error })
            }
            Err(failure) => Err(DependencyOutage::from_upstream(Dependency::ImageStore, failure)),
        }
    }
}

/// Returns the answer about an object; `None`: the store has no such object. A session ends for that, so only a 404 with
/// an error document of the store counts: a proxy before the store answers 404 too.
fn statement(answer: Answer) -> Result<Option<Answer>, String> {
    if answer.status != StatusCode::NOT_FOUND {
        return Ok(Some(answer));
    }
    let document = String::from_utf8_lossy(&answer.body);
    match document.contains("<Error") && document.contains("<Code>") {
        true => Ok(None),
        false => Err(format!("{}, which is no statement of the store about the object", answer.status)),
    }
}

fn is_too_large(size: u64) -> bool {
    usize::try_from(size).map_or(true, |size| size > LARGEST)
}

/// Returns the object, unless the answer holds only its beginning.
fn whole(answer: Answer) -> Result<Bytes, ObjectError> {
    let sent = u64::try_from(answer.body.len()).unwrap_or(u64::MAX);
    let size = whole_size(&answer).unwrap_or(sent);
    if is_too_large(size) {
        return Err(ObjectError::TooLarge);
    }
    if size != sent {
        let error = format!("it sent {sent} bytes of an object of {size}");
        return Err(ObjectError::Outage(DependencyOutage { what: Dependency::ImageStore, error }));
    }
    Ok(answer.body)
}

/// Returns the size of the whole object of a partial answer: the number after the slash of `bytes 0-99/1000`.
fn whole_size(answer: &Answer) -> Option<u64> {
    answer.headers.get(CONTENT_RANGE)?.to_str().ok()?.rsplit_once('/')?.1.parse().ok()
}

fn unread(failure: Failure) -> ObjectError {
    match failure.status {
        Some(StatusCode::NOT_FOUND) if failure.kind == FailureKind::Refused => ObjectError::Absent,
        _ => ObjectError::Outage(DependencyOutage::from_upstream(Dependency::ImageStore, failure)),
    }
}
