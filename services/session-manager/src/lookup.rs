//! Finds out what templates are judged by: what the store of images and their catalogue say (BOS reference 7.3, 7.4).
//!
//! People wait for the verdict, so neither gets long: who does not answer in time is a finding. The images are read
//! by a driver of their own, so that setups, which have more patience, and these looks do not learn from each other
//! that the store is slow, or take each other's calls.

use std::{collections::BTreeMap, future::Future, time::Duration};

use chassis::Settings;
use domain::{
    image::{Contents, Listing, Unreadable},
    session::Operation,
    template::{Finding, Known, Rules, SessionTemplate, Wanted, findings, wanted},
};
use futures_util::{StreamExt, future::join, stream};
use tokio::time::{Instant, timeout_at};

use crate::{
    answers::Answers,
    catalogue::Catalogue,
    images::Driver,
    setback::{Outage, Setback},
};

/// How long each answer may take to begin: seconds are what a store that works needs at worst.
const ANSWER: Duration = Duration::from_secs(3);

/// How long all looks for one request may take, which is a bit more than the two answers that a look takes. Clients
/// give up on a request after 30 s, and a tenant may have to be asked for before.
const TOTAL: Duration = Duration::from_secs(7);

/// Images of one request that are looked at at a time.
const AT_A_TIME: usize = 8;

/// Who is asked about the images of templates.
pub(crate) struct Lookup {
    images: Driver,
    catalogue: Catalogue,
    /// Whether files of boot parameters are read too, and not only looked for.
    with_parameters: bool,
    /// By path of the manifest. As with setups, no answer is used for a later question.
    contents: Answers<String, Result<Contents, Unreadable>>,
    /// By id.
    listings: Answers<String, Listing>,
}

impl Lookup {
    /// Those whom the settings name.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Self> {
        Ok(Self {
            images: Driver::new(settings)?,
            catalogue: Catalogue::new(&settings.images)?,
            // They are needed only for what BOS does not find.
            with_parameters: !settings.compat.strict_bos,
            contents: Answers::new(Duration::ZERO),
            listings: Answers::new(Duration::ZERO),
        })
    }

    /// The findings about a template for a session of that `operation`.
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

    /// Looks at these images, all at the same time as far as that is decent.
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
            let contents = self.images.look(path, self.with_parameters, ANSWER).await;
            contents.map_err(Setback::Wait)
        };
        let contents = timeout_at(until, self.contents.get(path.to_owned(), look)).await;
        let contents = contents.unwrap_or_else(|_| Err(late(self.images.name())));
        contents
            .unwrap_or_else(|setback| Err(Unreadable::NotRead { path: path.to_owned(), why: setback.text() }))
    }

    async fn listing(&self, id: &str, until: Instant) -> Listing {
        let look = || async {
            let listing = self.catalogue.image(id, ANSWER).await;
            listing.map_err(|failure| Setback::Wait(Outage::from_upstream(Catalogue::NAME, failure)))
        };
        let listing = timeout_at(until, self.listings.get(id.to_owned(), look)).await;
        let listing = listing.unwrap_or_else(|_| Err(late(Catalogue::NAME)));
        listing.unwrap_or_else(|setback| Listing::Silent(setback.text()))
    }
}

/// The answers to these questions.
async fn all<V>(asking: impl Iterator<Item = impl Future<Output = (String, V)>>) -> BTreeMap<String, V> {
    stream::iter(asking).buffer_unordered(AT_A_TIME).collect().await
}

fn late(what: &'static str) -> Setback {
    Setback::Wait(Outage { what, error: format!("{what} gave no whole answer within {} s", TOTAL.as_secs()) })
}
