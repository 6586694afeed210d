//! Images in an S3-compatible store.

use std::time::Duration;

use bytes::Bytes;
use chassis::settings;
use domain::image::Location;
use http::{
    HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_LENGTH, CONTENT_RANGE, ETAG, RANGE},
};
use rusty_s3::{Bucket, Credentials as Keys, S3Action, UrlStyle};
use upstream::{Answer, Credentials, Failure, Peer, PeerError, Request, Secret};

use super::store::{LARGEST, Unread};
use crate::setback::Outage;

/// What the peer is called.
pub(super) const NAME: &str = "S3";

/// Who does not answer, in texts for people.
const STORE: &str = "image store";

/// How long a signature is good for. It is made for one call, and clocks may differ by as much.
const SIGNATURE: Duration = Duration::from_secs(900);

/// Which part of a query lets its holder read the object.
const SIGNATURE_NAME: &str = "X-Amz-Signature";

/// An S3-compatible store, addressed path-style.
#[derive(Clone)]
pub struct S3 {
    peer: Peer,
    region: String,
}

impl S3 {
    /// The store that the settings name.
    ///
    /// # Errors
    /// Names the setting of the peer that cannot be used.
    pub fn new(settings: &settings::Images) -> Result<Self, PeerError> {
        let peer = Peer::new(NAME, &settings.s3)?;
        peer.check_credentials("images.s3");
        Ok(Self { peer, region: settings.region.clone() })
    }

    /// The content of an object. No more is asked for than is read, so that an object that is too large neither
    /// costs time nor looks like trouble with the store.
    pub(super) async fn object(&self, location: Location<'_>, deadline: Duration) -> Result<Bytes, Unread> {
        let beginning = HeaderValue::from_str(&format!("bytes=0-{}", LARGEST - 1));
        let beginning = beginning.expect("digits can be in a header");
        let request = self.signed("object_get", Method::GET, location).await?.header(RANGE, beginning);
        match self.peer.call(request.answer_within(deadline)).await {
            Ok(answer) => whole(answer),
            // Nothing has no beginning.
            Err(failure) if failure.status == Some(StatusCode::RANGE_NOT_SATISFIABLE) => Ok(Bytes::new()),
            // A store that knows no ranges sends everything, and more than an answer may have is not read.
            Err(failure) if failure.status == Some(StatusCode::OK) => {
                match self.size(location, deadline).await {
                    Some(size) if is_too_large(size) => Err(Unread::TooLarge),
                    _ => Err(unread(failure)),
                }
            }
            Err(failure) => Err(unread(failure)),
        }
    }

    /// The version of an object, if the store tells, without its content.
    pub(super) async fn find(
        &self,
        location: Location<'_>,
        deadline: Duration,
    ) -> Result<Option<String>, Unread> {
        let request = self.signed("object_head", Method::HEAD, location).await?;
        let answer = self.peer.call(request.answer_within(deadline)).await.map_err(unread)?;
        let version = answer.headers.get(ETAG).and_then(|version| version.to_str().ok());
        Ok(version.map(|version| version.trim_matches('"').to_owned()))
    }

    /// How large an object is, if the store tells.
    async fn size(&self, location: Location<'_>, deadline: Duration) -> Option<u64> {
        let request = self.signed("object_head", Method::HEAD, location).await.ok()?;
        let answer = self.peer.call(request.answer_within(deadline)).await.ok()?;
        answer.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// A call that is signed in its query (signature version 4).
    async fn signed(
        &self,
        operation: &'static str,
        method: Method,
        Location { bucket, key }: Location<'_>,
    ) -> Result<Request, Unread> {
        let keys = self.keys().await.map_err(Unread::Outage)?;
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
            let hidden = Secret::new(value.as_ref());
            let request = request.query(name.as_ref(), value);
            if name == SIGNATURE_NAME { request.hiding(hidden) } else { request }
        }))
    }

    /// The part of a signed path that comes after the path of the base URL.
    fn below_base(&self, path: &str) -> String {
        let base = self.peer.url().splitn(4, '/').nth(3).map(|base| format!("/{base}"));
        base.and_then(|base| path.strip_prefix(&base)).unwrap_or(path).to_owned()
    }

    /// The key to sign with; `None`: everybody may read.
    async fn keys(&self) -> Result<Option<Keys>, Outage> {
        match self.peer.secrets().await {
            Ok(Credentials::Keys { access_key, secret_key }) => {
                Ok(Some(Keys::new(access_key, secret_key.reveal())))
            }
            Ok(Credentials::None) => Ok(None),
            Ok(Credentials::Token { .. } | Credentials::Password { .. } | Credentials::Client(_)) => {
                let error = "its credentials have to be access_key and secret_key".to_owned();
                Err(Outage { what: STORE, error })
            }
            Err(failure) => Err(Outage::from_upstream(STORE, failure)),
        }
    }
}

fn is_too_large(size: u64) -> bool {
    usize::try_from(size).map_or(true, |size| size > LARGEST)
}

/// The object, unless this is but its beginning.
fn whole(answer: Answer) -> Result<Bytes, Unread> {
    let sent = u64::try_from(answer.body.len()).unwrap_or(u64::MAX);
    let size = whole_size(&answer).unwrap_or(sent);
    if is_too_large(size) {
        return Err(Unread::TooLarge);
    }
    if size != sent {
        let error = format!("it sent {sent} bytes of an object of {size}");
        return Err(Unread::Outage(Outage { what: STORE, error }));
    }
    Ok(answer.body)
}

/// The size of the whole object of which this is the beginning: the number after the slash of
/// `bytes 0-99/1000`.
fn whole_size(answer: &Answer) -> Option<u64> {
    answer.headers.get(CONTENT_RANGE)?.to_str().ok()?.rsplit_once('/')?.1.parse().ok()
}

fn unread(failure: Failure) -> Unread {
    match failure.status {
        Some(StatusCode::NOT_FOUND) => Unread::Absent,
        _ => Unread::Outage(Outage::from_upstream(STORE, failure)),
    }
}
