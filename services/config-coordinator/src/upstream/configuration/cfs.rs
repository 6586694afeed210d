//! The configuration framework service, version 3 of its API (BOS reference 6.4).
//!
//! States are requested in three ways: for a handful of nodes one by one, for a few more by lists of their ids, and
//! otherwise as everything, page by page. Changes of more than a few nodes are requested by the tag that was set with
//! their configuration, session by session.
//!
//! The service reads all its components for a filter, however few pass it. So a call with a filter costs the service
//! about as much as all pages together, and pays only where it saves many pages.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ::upstream::{FirstCall, Peer, Request};
use chassis::{observe::single_flight::SingleFlight, settings};
use domain::{boot::configuration::ConfigurationObservation, core::id::ComponentId};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    ConfigurationOrder, ConfigurationQuery, Failure, FailureKind, NamedObservation, PolledChanges, malformed,
    of_a_list, peer,
};
use crate::questions;

mod wire;

use wire::{CfsPage, ChangeAnswer, DECIDED, PAGE, SESSION_TAG, change, next_query, said};

/// Time for which a fetch of everything waits for more callers: the changes of a session arrive in several messages.
const MOMENT: Duration = Duration::from_millis(250);

/// Nodes that are requested one by one.
const HANDFUL: usize = 4;

/// Ids in one URL. BOS sends as many.
const IDS: usize = 200;

/// Bytes of ids in one URL. Servers usually take 8 KiB of URL, and the rest of it needs less than one.
const IDS_BYTES: usize = 7 * 1024;

/// Pages that a list of ids has to save.
const WORTH: usize = 4;

/// Least time between lists of the failed components of large sessions. A failure only ends a wait, of a session or of a
/// batch of a rollout, so it may be known later than a success.
const FAILURES: Duration = Duration::from_secs(10);

/// Most sessions whose nodes are listed session by session. With more sessions everything is listed.
const MOST_SESSIONS: usize = 4;

/// Limit of a list, more components than any machine has: a service that lists more would never end.
const MOST_COMPONENTS: usize = 1_000_000;

/// Service at one address. Clones share running fetches.
#[derive(Clone)]
pub(crate) struct CfsDriver {
    peer: Peer,
    everything: Arc<SingleFlight<(), Arc<ComponentListing>, Failure>>,
    /// Number of answers in the last fetch of everything.
    pages: Arc<AtomicUsize>,
    /// Time of the last lists of failed components.
    failures: Arc<Mutex<Option<Instant>>>,
}

/// Components in the lists of the service, by id.
type ComponentListing = HashMap<String, ConfigurationObservation>;

/// List with the number of its pages.
#[derive(Default)]
struct CountedListing {
    listing: ComponentListing,
    pages: usize,
}

impl CountedListing {
    fn add(&mut self, more: Self) {
        self.listing.extend(more.listing);
        self.pages += more.pages;
    }
}

impl CfsDriver {
    pub(crate) fn new(settings: &settings::Peer) -> anyhow::Result<Self> {
        let peer = peer("CFS", "configuration.cfs", settings)?;
        // A failure counts only for those who asked before the fetch.
        let everything = SingleFlight::new(Duration::ZERO, |_| false).gathering(MOMENT);
        Ok(Self { peer, everything: Arc::new(everything), pages: Arc::default(), failures: Arc::default() })
    }

    pub(crate) fn first_call(&self) -> FirstCall {
        FirstCall { peer: self.peer.clone(), request: questions::of_configuration() }
    }

    pub(crate) fn most_nodes(&self) -> usize {
        self.peer.batch_size()
    }

    /// Returns the state of each of `about`. Only a list shows that a node is missing.
    pub(crate) async fn ask(
        &self,
        about: &[ConfigurationQuery],
        deadline: Duration,
    ) -> Result<Vec<NamedObservation>, Failure> {
        if let Some(PolledChanges { said, .. }) = self.ask_by_id(about, deadline).await? {
            return Ok(said);
        }
        let fetch = || async { Ok(Arc::new(self.list_everything(deadline).await?.listing)) };
        let listing = self.everything.get((), fetch).await?;
        Ok(said_of_each(about, &listing))
    }

    /// Returns the changes of `about`. Nodes without the tag of their session, for example because another client has
    /// set their configuration, may be left out, and so may deleted nodes.
    pub(crate) async fn changes(
        &self,
        about: &[ConfigurationQuery],
        deadline: Duration,
    ) -> Result<PolledChanges, Failure> {
        if let Some(changes) = self.ask_by_id(about, deadline).await? {
            return Ok(changes);
        }
        // This fetch is not shared with others, because its duration measures its cost.
        let CountedListing { mut listing, pages } = match sessions(about) {
            Some(sessions) => self.list_sessions(&sessions, about, deadline).await?,
            None => self.list_everything(deadline).await?,
        };
        let said = about.iter().filter_map(|one| listing.remove_entry(one.id.as_str())).collect();
        Ok(PolledChanges { said, pages })
    }

    /// Sets a configuration. An accepted configuration holds at once: the service works towards it, and has not
    /// reported progress yet. The service skips ids that it does not know, and does not confirm them.
    pub(crate) async fn set(
        &self,
        ids: &[ComponentId],
        order: ConfigurationOrder<'_>,
        deadline: Duration,
    ) -> Result<Vec<NamedObservation>, Failure> {
        if ids.is_empty() {
            // The service takes an empty list of ids for all of them.
            return Ok(Vec::new());
        }
        if let Some(id) = ids.iter().find(|id| id.as_str().contains(',')) {
            let text = format!("the id '{id}' has a comma, which separates ids");
            return Err(Failure { kind: FailureKind::Refused, status: None, text });
        }
        let request = Request::patch("components_patch", "/components")
            .json(&change(ids, order))
            .items(ids.len())
            .answer_within(deadline);
        let changed: ChangeAnswer = self.peer.json(request).await.map_err(of_a_list)?;
        let known = ConfigurationObservation::Known {
            desired: Some(order.configuration.to_owned()),
            status: String::new(),
        };
        let asked: BTreeSet<&str> = ids.iter().map(ComponentId::as_str).collect();
        let confirmed = changed.component_ids.into_iter().filter(|id| asked.contains(id.as_str()));
        Ok(confirmed.map(|id| (id, known.clone())).collect())
    }

    /// Returns the same as [`Self::ask`] by the ids of `about`; `None` where another way costs less.
    async fn ask_by_id(
        &self,
        about: &[ConfigurationQuery],
        deadline: Duration,
    ) -> Result<Option<PolledChanges>, Failure> {
        if is_handful(about)
            && let Some(said) = self.ask_each(about, deadline).await?
        {
            return Ok(Some(PolledChanges { said, pages: 0 }));
        }
        let Some(lists) = lists(about, self.pages.load(Ordering::Relaxed)) else { return Ok(None) };
        let mut listed = CountedListing::default();
        for ids in lists {
            listed.add(self.list(&[("ids", &ids)], deadline).await?);
        }
        Ok(Some(PolledChanges { said: said_of_each(about, &listed.listing), pages: listed.pages }))
    }

    /// Returns the state of each; `None` if one is not found, which may also mean that the path is wrong.
    async fn ask_each(
        &self,
        about: &[ConfigurationQuery],
        deadline: Duration,
    ) -> Result<Option<Vec<NamedObservation>>, Failure> {
        let calls: Vec<_> = about.iter().map(|one| self.ask_one(one.id.as_str(), deadline)).collect();
        let answers: Result<Vec<_>, _> = stream::iter(calls).buffered(HANDFUL).try_collect().await;
        match answers {
            Err(failure) if failure.status == Some(StatusCode::NOT_FOUND) => Ok(None),
            Err(failure) => Err(failure),
            Ok(said) => Ok(Some(said)),
        }
    }

    async fn ask_one(&self, id: &str, deadline: Duration) -> Result<NamedObservation, Failure> {
        let request = Request::get("component_get", format!("/components/{id}"));
        let component: Value = self.peer.json(request.items(1).answer_within(deadline)).await?;
        let about_it = said(component).filter(|(named, _)| named == id);
        about_it.ok_or_else(|| malformed(&self.peer, &format!("the answer is not about component '{id}'")))
    }

    /// Lists the awaited `about` of `sessions`: all components of the sessions, or only those with a word that is due if
    /// there are so many that this takes fewer calls. Once all awaited components are found, no more pages are read.
    async fn list_sessions(
        &self,
        sessions: &BTreeSet<&str>,
        about: &[ConfigurationQuery],
        deadline: Duration,
    ) -> Result<CountedListing, Failure> {
        let are_many = about.len() > sessions.len() * DECIDED.len() * PAGE;
        let began = Instant::now();
        let words: &[&str] = if are_many { self.words_due(began) } else { &[""] };
        let mut listed = CountedListing::default();
        for session in sessions {
            let tag = format!("{SESSION_TAG}={session}");
            let awaited = about.iter().filter(|one| one.session == *session);
            for word in words {
                if awaited.clone().all(|one| listed.listing.contains_key(one.id.as_str())) {
                    break;
                }
                listed.add(self.list(&[("tags", &tag), ("status", word)], deadline).await?);
            }
        }
        if words == DECIDED {
            *self.failures.lock() = Some(began);
        }
        Ok(listed)
    }

    /// Returns the words of decided components that are due.
    fn words_due(&self, now: Instant) -> &'static [&'static str] {
        let is_known = self.failures.lock().is_some_and(|last| now - last < FAILURES);
        if is_known { &DECIDED[..1] } else { &DECIDED }
    }

    async fn list_everything(&self, deadline: Duration) -> Result<CountedListing, Failure> {
        let listed = self.list(&[], deadline).await?;
        self.pages.store(listed.pages, Ordering::Relaxed);
        Ok(listed)
    }

    /// Lists every component that passes `filters`, page by page. Empty filters are left out.
    async fn list(&self, filters: &[(&str, &str)], deadline: Duration) -> Result<CountedListing, Failure> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut query: Vec<_> = filters.iter().filter(|(_, value)| !value.is_empty()).map(own).collect();
        let CountedListing { mut listing, mut pages } = CountedListing::default();
        loop {
            let request = Request::get("components_list", "/components").answer_within(deadline);
            let request =
                query.into_iter().fold(request, |request, (name, value)| request.query(name, value));
            let page: CfsPage = self.peer.json(request).await.map_err(of_a_list)?;
            pages += 1;
            let before = listing.len();
            listing.extend(page.components.into_iter().filter_map(said));
            let Some(next) = page.next else { return Ok(CountedListing { listing, pages }) };
            if listing.len() == before || listing.len() > MOST_COMPONENTS {
                return Err(malformed(&self.peer, "pages of components do not come to an end"));
            }
            query = next_query(next)
                .ok_or_else(|| malformed(&self.peer, "the query for the next page cannot be read"))?;
        }
    }
}

/// Returns the state of each of `about` in a complete list.
fn said_of_each(about: &[ConfigurationQuery], listing: &ComponentListing) -> Vec<NamedObservation> {
    let said = about.iter().map(|one| {
        let observation = listing.get(one.id.as_str()).cloned();
        (one.id.as_str().to_owned(), observation.unwrap_or(ConfigurationObservation::Missing))
    });
    said.collect()
}

/// Returns whether each is requested alone. Only a list shows that a node is missing, so nodes that were missing are
/// requested in a list.
fn is_handful(about: &[ConfigurationQuery]) -> bool {
    about.len() <= HANDFUL && about.iter().all(|one| !one.missing && fits_into_path(one.id.as_str()))
}

/// Returns whether an id is one part of a path as it stands. Dots alone would mean another path.
fn fits_into_path(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    id.bytes().all(plain) && id.bytes().any(|byte| byte != b'.')
}

/// Returns `about` as lists of ids that fit into a URL; `None` if fetching everything, which took `pages` answers,
/// costs not much more, or if a list cannot name one of them.
fn lists(about: &[ConfigurationQuery], pages: usize) -> Option<Vec<String>> {
    let most = pages / WORTH;
    if about.len() > most * IDS || about.iter().any(|one| one.id.as_str().contains(',')) {
        return None;
    }
    let mut lists: Vec<String> = Vec::new();
    let (mut ids, mut bytes) = (0, 0);
    for one in about {
        let id = one.id.as_str();
        let more = bytes_in_query(id);
        match lists.last_mut().filter(|_| ids < IDS && bytes + more <= IDS_BYTES) {
            Some(list) => {
                list.push(',');
                list.push_str(id);
            }
            None => {
                lists.push(id.to_owned());
                (ids, bytes) = (0, 0);
            }
        }
        ids += 1;
        bytes += more;
    }
    (lists.len() <= most).then_some(lists)
}

/// Returns the bytes of an id and the comma before it in a query.
fn bytes_in_query(id: &str) -> usize {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.*".contains(&byte);
    let each = id.bytes().map(|byte| if plain(byte) { 1 } else { "%2C".len() });
    "%2C".len() + each.sum::<usize>()
}

/// Returns the sessions of all of `about`; `None` if one has none, if a name would be misread in a filter, or if there
/// are too many.
fn sessions(about: &[ConfigurationQuery]) -> Option<BTreeSet<&str>> {
    let mut sessions = BTreeSet::new();
    for one in about {
        if one.session.is_empty() || one.session.contains([',', '=']) {
            return None;
        }
        sessions.insert(one.session.as_str());
        if sessions.len() > MOST_SESSIONS {
            return None;
        }
    }
    Some(sessions)
}

#[cfg(test)]
mod tests;
