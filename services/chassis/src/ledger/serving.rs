//! Answers out of a ledger: lists as streams that are whole or fail, and watches that end when the service stops.

use std::{collections::BTreeSet, ops::Bound, sync::Arc};

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use proto::{Encoded, Message};
use tonic::{Response, Status};

use super::{Ledger, LedgerWatch, OneOf, ResumeToken, Table, View, incarnation, view::Page};
use crate::{
    resource::{Batch, Resource},
    streams,
};

/// A table that is watched over gRPC.
pub trait Watched: Table {
    /// What tells a batch.
    type Message: Message + 'static;

    /// The batch as it is told.
    fn message(batch: &Batch<Self::Kind>) -> Self::Message;
}

/// Messages of a streaming answer.
pub type Responses<M> = BoxStream<'static, Result<M, Status>>;

/// Resources that a list looks at while writers wait: some milliseconds of filtering.
const STEP: usize = 5_000;

/// Which resources a list shows: those that pass all of this, ordered by key. By default all of them.
pub struct Selection<R> {
    /// Only these; empty: every key.
    pub keys: BTreeSet<String>,
    /// Only those that follow this key; empty: from the first one on.
    pub after: String,
    /// At most so many.
    pub most: usize,
    /// What is picked meets each of these; so that not every resource has to be looked at.
    pub conditions: Vec<OneOf>,
    /// Only those that this picks.
    pub wanted: Box<dyn Fn(&R) -> bool + Send>,
}

impl<R> Default for Selection<R> {
    fn default() -> Self {
        Self {
            keys: BTreeSet::new(),
            after: String::new(),
            most: usize::MAX,
            conditions: Vec::new(),
            wanted: Box::new(|_| true),
        }
    }
}

impl<T: Table> Ledger<T> {
    /// Answers a watch of what changes after `resume`; revision 0 delivers everything first. It begins with what any replica had
    /// acknowledged when this was called, as long as the database tells. While it does not, a watch begins with what this
    /// replica knows, and what others have written follows when the database is back: who watches keeps all that is in
    /// memory through an outage. However many watch, what changes is encoded once. The metadata of the answer name the
    /// incarnation of the stream, which ends when another one begins.
    ///
    /// # Errors
    /// [`crate::Fault::ResumeExpired`] when `resume` lies before what is remembered, in the future, or in another
    /// incarnation. [`crate::Fault::Busy`] when streams hold as many bytes as they may. [`crate::Fault::Unavailable`] when
    /// it may lie in the future only of this replica and the database does not tell.
    pub async fn serve_watch(
        &self,
        resume: impl Into<ResumeToken>,
    ) -> Result<Response<Responses<Encoded<T::Message>>>, Status>
    where
        T: Watched,
    {
        let resume = resume.into();
        if let Err(fault) = self.fresh().await {
            if resume.revision > self.view.revision() {
                return Err(fault.into());
            }
            tracing::debug!(kind = T::Kind::KIND, %fault, "a watch begins with what this replica knows");
        }
        // What a watch begins with may be references to a whole fleet.
        streams::wait_for_room().await?;
        let watch = LedgerWatch::start(Arc::clone(&self.view), resume)?;
        let (view, incarnation) = (Arc::clone(&self.view), watch.incarnation());
        let messages = watch.parts().map(move |part| Ok(view.encoded(&*part?, T::message)));
        let messages = messages.take_until(self.shutdown.clone().cancelled_owned());
        let mut response = Response::new(messages.boxed());
        incarnation::name(response.metadata_mut(), incarnation);
        Ok(response)
    }

    /// Answers a list with at most `page` resources in a message, read as the client takes them. What changes
    /// meanwhile may or may not be in it.
    pub fn serve_list<M: 'static>(
        &self,
        selection: Selection<T::Kind>,
        page: usize,
        message: impl Fn(&[Arc<T::Kind>]) -> M + Send + 'static,
    ) -> Response<Responses<M>> {
        let pages = Pages {
            view: Arc::clone(&self.view),
            left: selection.most,
            after: Some(selection.after.as_str().into()),
            selection,
            page,
        };
        self.respond(pages.map(move |page| message(&page)))
    }

    /// An answer of all these messages. It fails when the service stops before the last of them: the part that was
    /// sent would look like a shorter whole.
    pub fn respond<M: 'static>(
        &self,
        messages: impl Iterator<Item = M> + Send + 'static,
    ) -> Response<Responses<M>> {
        let shutdown = self.shutdown.clone();
        let messages = messages.map(move |message| match shutdown.is_cancelled() {
            true => Err(Status::unavailable("the service stops")),
            false => Ok(message),
        });
        Response::new(stream::iter(messages).boxed())
    }
}

/// A list under way: what is left of it.
struct Pages<R> {
    view: Arc<View<R>>,
    selection: Selection<R>,
    page: usize,
    /// The last key that was looked at; none when the end was reached.
    after: Option<Arc<str>>,
    left: usize,
}

impl<R: Resource> Iterator for Pages<R> {
    type Item = Vec<Arc<R>>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.left > 0 {
            let after = self.after.take()?;
            let (found, last) = self.step(&after);
            self.after = last;
            self.left -= found.len();
            if !found.is_empty() {
                return Some(found);
            }
        }
        None
    }
}

impl<R: Resource> Pages<R> {
    /// What is found next, and the key to go on from, if anything may follow.
    fn step(&self, after: &str) -> (Vec<Arc<R>>, Option<Arc<str>>) {
        let Selection { keys, conditions, wanted, .. } = &self.selection;
        let most = self.left.min(self.page);
        if keys.is_empty() {
            return self.view.page(after, STEP, most, conditions, wanted);
        }
        let rest = keys.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let known = rest.filter_map(|key| self.view.get(key)).filter(|resource| wanted(resource));
        let mut page = Page::of(most);
        for resource in known {
            if page.add(resource) {
                break;
            }
        }
        let last = page.found.last().filter(|_| page.is_full()).map(|resource| resource.key().into());
        (page.found, last)
    }
}
