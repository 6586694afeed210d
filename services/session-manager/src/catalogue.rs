//! What is known about images beyond their files (BOS reference 6.7).

use std::time::Duration;

use anyhow::Context as _;
use chassis::settings::{self, CatalogueDriver};
use domain::image::Listing;
use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use upstream::{Failure, Peer, Request};

/// Architecture of an image that does not tell its own.
const USUAL_ARCH: &str = "x86_64";

/// Who is asked about images.
#[derive(Clone)]
pub enum Catalogue {
    /// Nobody.
    None,
    /// The image management service, v3.
    Ims(Peer),
}

/// The part of an answer that counts.
#[derive(Deserialize)]
struct Image {
    arch: Option<String>,
}

impl Catalogue {
    /// Who does not answer, in texts for people.
    pub const NAME: &'static str = "IMS";

    /// The catalogue that the settings name.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub fn new(settings: &settings::Images) -> anyhow::Result<Self> {
        Ok(match settings.catalogue {
            CatalogueDriver::None => Self::None,
            CatalogueDriver::Ims => {
                let peer = Peer::new(Self::NAME, &settings.ims).context("images.ims")?;
                peer.check_credentials("images.ims");
                Self::Ims(peer)
            }
        })
    }

    /// Whether there is anybody to ask.
    pub fn exists(&self) -> bool {
        match self {
            Self::None => false,
            Self::Ims(_) => true,
        }
    }

    /// What is known about the image of that id, as [`domain::image::ims_id`] gives it. The catalogue has
    /// `deadline` to begin its answer. Where there is none, there are no images.
    ///
    /// # Errors
    /// When it does not answer, or not with an image.
    pub async fn image(&self, id: &str, deadline: Duration) -> Result<Listing, Failure> {
        let Self::Ims(ims) = self else { return Ok(Listing::Absent) };
        let path = format!("/images/{}", utf8_percent_encode(id, NON_ALPHANUMERIC));
        match ims.json::<Image>(Request::get("image_get", path).answer_within(deadline)).await {
            Ok(image) => Ok(Listing::Image { arch: image.arch.unwrap_or_else(|| USUAL_ARCH.to_owned()) }),
            Err(failure) if failure.status == Some(StatusCode::NOT_FOUND) => Ok(Listing::Absent),
            Err(failure) => Err(failure),
        }
    }
}
