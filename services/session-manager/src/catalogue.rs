//! Catalogue of images: facts about images beyond their files (BOS reference 6.7).

use std::time::Duration;

use anyhow::Context as _;
use chassis::settings::{self, CatalogueDriver};
use domain::boot::template::image::Listing;
use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use upstream::{CredentialUse, Failure, FirstCall, Peer, Request};

use crate::{dependency::Dependency, questions};

/// Architecture of an image that states none.
const DEFAULT_ARCH: &str = "x86_64";

/// Source of facts about images.
#[derive(Clone)]
pub enum ImageCatalogue {
    /// No catalogue.
    None,
    /// Image management service, v3.
    Ims(Peer),
}

/// The relevant part of an answer.
#[derive(Deserialize)]
struct CatalogueEntry {
    arch: Option<String>,
}

impl ImageCatalogue {
    /// Name of the service in texts for people.
    pub const NAME: &'static str = Dependency::ImageCatalogue.text();

    /// Creates the catalogue that the settings name.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub fn new(settings: &settings::Images) -> anyhow::Result<Self> {
        Ok(match settings.catalogue {
            CatalogueDriver::None => Self::None,
            CatalogueDriver::Ims => {
                let peer = Peer::new(Self::NAME, &settings.ims).context("images.ims")?;
                peer.check_credentials("images.ims", CredentialUse::Header);
                Self::Ims(peer)
            }
        })
    }

    /// Returns the call by which the catalogue shows at the start that it can be used.
    pub(crate) fn first_call(&self) -> Option<FirstCall> {
        match self {
            Self::None => None,
            Self::Ims(peer) => Some(FirstCall { peer: peer.clone(), request: questions::of_catalogue() }),
        }
    }

    /// Returns whether a catalogue is configured.
    pub fn exists(&self) -> bool {
        match self {
            Self::None => false,
            Self::Ims(_) => true,
        }
    }

    /// Returns the entry of the image with that id, as [`domain::boot::template::image::ims_id`] computes it. The
    /// catalogue has `deadline` to begin its answer. Without a catalogue every image is absent.
    ///
    /// # Errors
    /// The catalogue does not answer, or answers with something else than an image.
    pub async fn image(&self, id: &str, deadline: Duration) -> Result<Listing, Failure> {
        let Self::Ims(ims) = self else { return Ok(Listing::Absent) };
        let path = format!("/images/{}", utf8_percent_encode(id, NON_ALPHANUMERIC));
        match ims.json::<CatalogueEntry>(Request::get("image_get", path).answer_within(deadline)).await {
            Ok(image) => Ok(Listing::Image { arch: image.arch.unwrap_or_else(|| DEFAULT_ARCH.to_owned()) }),
            Err(failure) if failure.status == Some(StatusCode::NOT_FOUND) => Ok(Listing::Absent),
            Err(failure) => Err(failure),
        }
    }
}
