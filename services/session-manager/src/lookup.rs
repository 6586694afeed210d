//! Looks up the images of a template for its validation: image store and catalogue (BOS reference 7.3, 7.4).
//!
//! Users wait for the result, so both calls have short deadlines, and a late answer is reported as a finding.
//! Templates use an image driver of their own: setups wait longer, and neither should be held back by the other's
//! open circuit or slots.

use std::{collections::BTreeMap, future::Future, time::Duration};

use chassis::{Settings, observe::single_flight::SingleFlight};
use domain::boot::template::{
    Finding, Known, Operation, Rules, SessionTemplate, Wanted, findings,
    image::{Contents, Listing, Unreadable},
    wanted,
};
use futures_util::{StreamExt, future::join, stream};
use tokio::time::{Instant, timeout_at};
use upstream::FirstCall;

use crate::{
    catalogue::ImageCatalogue,
    dependency::{Dependency, DependencyError, DependencyOutage},
    images::ImageDriver,
};

/// Deadline for the beginning of each answer: a working store needs seconds at worst.
const ANSWER: Duration = Duration::from_secs(3);

/// Deadline for all lookups of one request, a bit more than two answers. Clients give up after 30 s, and the tenant
/// service may have to be called first.
const TOTAL: Duration = Duration::from_secs(7);

/// Images of one request that are looked up concurrently.
const AT_A_TIME: usize = 8;

/// Sources for the validation of templates.
pub(crate) struct ImageLookup {
    images: ImageDriver,
    catalogue: ImageCatalogue,
    /// Whether boot parameter files are read, in addition to the check that they exist.
    with_parameters: bool,
    /// Contents by path of the manifest. As with setups, an answer never serves a later question.
    contents: SingleFlight<String, Result<Contents, Unreadable>, DependencyError>,
    /// Catalogue entries by image id.
    listings: SingleFlight<String, Listing, DependencyError>,
}

impl ImageLookup {
    /// Creates the sources that the settings name.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Self> {
        Ok(Self {
            images: ImageDriver::new(settings)?,
            catalogue: ImageCatalogue::new(&settings.images)?,
            // Only findings beyond those of BOS need the file.
            with_parameters: !settings.compat.strict_bos,
            contents: SingleFlight::new(Duration::ZERO, DependencyError::is_outage),
            listings: SingleFlight::new(Duration::ZERO, DependencyError::is_outage),
        })
    }

    /// Returns the call by which the catalogue shows at the start that it can be used.
    pub(crate) fn first_call(&self) -> Option<FirstCall> {
        self.catalogue.first_call()
    }

    /// Returns the findings about a template for a session of that `operation`.
    ///
    /// # Errors
    /// The first error, which hides all warnings.
    pub(crate) async fn findings(
        &self,
        template: &SessionTemplate,
        operation: Operation,
        rules: Rules<'_>,
    ) -> Result<Vec<Finding>, Finding> {
        let known = self.known(wanted(template, operation, rules)).await;
        findings(template, operation, &known, rules)
    }

    /// Looks up images, with bounded concurrency.
    pub(crate) async fn known(&self, wanted: Wanted) -> Known {
        let until = Instant::now() + TOTAL;
        let contents = all(wanted.paths.into_iter().map(|path| async move {
            let contents = self.contents(&path, until).await;
            (path, contents)
        }));
        let listings = all(wanted.ids.into_iter().map(|id| async move {
            let listing = self.listing(&id, until).await;
            (id, listing)
        }));
        let (contents, listings) = join(contents, listings).await;
        Known { contents, listings: self.catalogue.exists().then_some(listings) }
    }

    async fn contents(&self, path: &str, until: Instant) -> Result<Contents, Unreadable> {
        let look = || async {
            let contents = self.images.inspect(path, self.with_parameters, ANSWER).await;
            contents.map_err(DependencyError::Retryable)
        };
        let contents = timeout_at(until, self.contents.get(path.to_owned(), look)).await;
        let contents = contents.unwrap_or_else(|_| Err(late(Dependency::ImageStore, self.images.name())));
        contents.unwrap_or_else(|error| Err(Unreadable::NotRead { path: path.to_owned(), why: error.text() }))
    }

    async fn listing(&self, id: &str, until: Instant) -> Listing {
        let look = || async {
            let listing = self.catalogue.image(id, ANSWER).await;
            listing.map_err(|failure| {
                DependencyError::Retryable(DependencyOutage::from_upstream(
                    Dependency::ImageCatalogue,
                    failure,
                ))
            })
        };
        let listing = timeout_at(until, self.listings.get(id.to_owned(), look)).await;
        let listing = listing.unwrap_or_else(|_| Err(late(Dependency::ImageCatalogue, ImageCatalogue::NAME)));
        listing.unwrap_or_else(|error| Listing::Silent(error.text()))
    }
}

/// Awaits the lookups, with bounded concurrency.
async fn all<V>(asking: impl Iterator<Item = impl Future<Output = (String, V)>>) -> BTreeMap<String, V> {
    stream::iter(asking).buffer_unordered(AT_A_TIME).collect().await
}

fn late(what: Dependency, name: &str) -> DependencyError {
    DependencyError::Retryable(DependencyOutage {
        what,
        error: format!("{name} gave no whole answer within {} s", TOTAL.as_secs()),
    })
}
