//! The configuration framework service, version 3 of its API (BOS reference 6.4).
//!
//! It is read in three ways, whichever costs it least: a handful of nodes one by one; the nodes of a few
//! sessions by the tag that was set with their configuration; else everything, page by page. A list of ids never
//! goes into a URL, since thousands do not fit into one.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ::upstream::{Peer, Request};
use chassis::settings;
use domain::{evaluation::ConfigurationObservation, id::ComponentId};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::StatusCode;
use serde_json::Value;

use super::{
    Failure, FailureKind,
    configuration::{Order, Question, Said},
    malformed, of_a_list, peer,
};

mod shared;
mod wire;

use shared::Shared;
use wire::{Changed, Page, SESSION_TAG, change, next_query, said};

/// Nodes that are asked about one by one even if everything came in fewer answers: each of those has a thousand
/// components, whose states the service works out one after the other.
const HANDFUL: usize = 4;

/// Nodes that are asked about at the same time.
const AT_ONCE: usize = 4;

/// Sessions whose nodes are listed one session after the other. With more of them everything is listed.
const MOST_SESSIONS: usize = 4;

/// More components than any machine has: a service that lists more does not come to an end.
const MOST_COMPONENTS: usize = 1_000_000;

/// The service. Clones share what is being fetched.
#[derive(Clone)]
pub(crate) struct Cfs {
    peer: Peer,
    everything: Arc<Shared>,
    /// Answers that the last fetch of everything took.
    pages: Arc<AtomicUsize>,
}

/// What the service lists, by id.
type Listing = HashMap<String, ConfigurationObservation>;

impl Cfs {
    pub(crate) fn new(settings: &settings::Peer) -> anyhow::Result<Self> {
        let peer = peer("CFS", "configuration.cfs", settings)?;
        Ok(Self { peer, everything: Arc::default(), pages: Arc::default() })
    }

    pub(crate) fn most_nodes(&self) -> usize {
        self.peer.batch_size()
    }

    /// What is so for each of `about`. Only a fetch of everything says that a node is missing.
    pub(crate) async fn ask(&self, about: &[Question], deadline: Duration) -> Result<Vec<Said>, Failure> {
        if self.is_handful(about)
            && let Some(said) = self.ask_each(about, deadline).await?
        {
            return Ok(said);
        }
        let listing = self.everything.fetched(self.list(None, deadline)).await?;
        let said = about.iter().map(|one| {
            let observation = listing.get(one.id.as_str()).cloned();
            (one.id.as_str().to_owned(), observation.unwrap_or(ConfigurationObservation::Missing))
        });
        Ok(said.collect())
    }

    /// The same, by their sessions where that is less work. Those that do not carry the tag of theirs, for example
    /// because somebody else has set their configuration, are asked about in the other ways.
    pub(crate) async fn follow(&self, about: &[Question], deadline: Duration) -> Result<Vec<Said>, Failure> {
        let sessions = sessions(about).filter(|_| !self.is_handful(about));
        let Some(sessions) = sessions else { return self.ask(about, deadline).await };
        let mut listing = Listing::new();
        for session in sessions {
            listing.extend(self.list(Some(session), deadline).await?);
        }
        let mut said = Vec::with_capacity(about.len());
        let mut others = Vec::new();
        for one in about {
            match listing.remove_entry(one.id.as_str()) {
                Some(seen) => said.push(seen),
                None => others.push(one.clone()),
            }
        }
        if !others.is_empty() {
            said.extend(self.ask(&others, deadline).await?);
        }
        Ok(said)
    }

    /// Sets a configuration. What the service took is so from now on: it works towards that configuration, and has
    /// not said yet how far it is. Ids that it does not know it passes over, and does not confirm.
    pub(crate) async fn set(
        &self,
        ids: &[ComponentId],
        order: Order<'_>,
        deadline: Duration,
    ) -> Result<Vec<Said>, Failure> {
        if ids.is_empty() {
            // To the service no ids are all of them.
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
        let changed: Changed = self.peer.json(request).await.map_err(of_a_list)?;
        let known = ConfigurationObservation::Known {
            desired: Some(order.configuration.to_owned()),
            status: String::new(),
        };
        let asked: BTreeSet<&str> = ids.iter().map(ComponentId::as_str).collect();
        let confirmed = changed.component_ids.into_iter().filter(|id| asked.contains(id.as_str()));
        Ok(confirmed.map(|id| (id, known.clone())).collect())
    }

    /// Whether asking one by one takes no more calls than fetching everything, or hardly any.
    fn is_handful(&self, about: &[Question]) -> bool {
        let most = self.pages.load(Ordering::Relaxed).max(HANDFUL);
        about.len() <= most && about.iter().all(|one| fits_into_path(one.id.as_str()))
    }

    /// What is so for each; none if one is not there, which may also mean that the path is not.
    async fn ask_each(&self, about: &[Question], deadline: Duration) -> Result<Option<Vec<Said>>, Failure> {
        let calls: Vec<_> = about.iter().map(|one| self.ask_one(one.id.as_str(), deadline)).collect();
        let answers: Result<Vec<_>, _> = stream::iter(calls).buffered(AT_ONCE).try_collect().await;
        match answers {
            Err(failure) if failure.status == Some(StatusCode::NOT_FOUND) => Ok(None),
            Err(failure) => Err(failure),
            Ok(said) => Ok(Some(said)),
        }
    }

    async fn ask_one(&self, id: &str, deadline: Duration) -> Result<Said, Failure> {
        let request = Request::get("component_get", format!("/components/{id}"));
        let component: Value = self.peer.json(request.items(1).answer_within(deadline)).await?;
        let about_it = said(component).filter(|(named, _)| named == id);
        about_it.ok_or_else(|| malformed(&self.peer, &format!("the answer is not about component '{id}'")))
    }

    /// Every component, or those of a session, page by page.
    async fn list(&self, session: Option<&str>, deadline: Duration) -> Result<Listing, Failure> {
        let mut query: Vec<_> =
            session.iter().map(|session| ("tags".to_owned(), format!("{SESSION_TAG}={session}"))).collect();
        let (mut listing, mut pages) = (Listing::new(), 0);
        loop {
            let request = Request::get("components_list", "/components").answer_within(deadline);
            let request =
                query.into_iter().fold(request, |request, (name, value)| request.query(name, value));
            let page: Page = self.peer.json(request).await.map_err(of_a_list)?;
            pages += 1;
            let before = listing.len();
            listing.extend(page.components.into_iter().filter_map(said));
            let Some(next) = page.next else { break };
            if listing.len() == before || listing.len() > MOST_COMPONENTS {
                return Err(malformed(&self.peer, "pages of components do not come to an end"));
            }
            query = next_query(next)
                .ok_or_else(|| malformed(&self.peer, "the query for the next page cannot be read"))?;
        }
        if session.is_none() {
            self.pages.store(pages, Ordering::Relaxed);
        }
        Ok(listing)
    }
}

/// The sessions of all of `about`; none if one has none, if a name would not be understood in a filter, or if
/// there are too many.
fn sessions(about: &[Question]) -> Option<BTreeSet<&str>> {
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

/// Whether an id is one part of a path as it stands. Dots alone would mean another path.
fn fits_into_path(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    id.bytes().all(plain) && id.bytes().any(|byte| byte != b'.')
}

#[cfg(test)]
mod tests;
