//! Answers out of a ledger: lists as streams that are whole or fail, and watches that end when the service stops.

use std::{collections::BTreeSet, ops::Bound, sync::Arc};

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use proto::{Encoded, WatchedMessage};
use tonic::{Response, Status};
use uuid::Uuid;

use super::{Ledger, LedgerView, LedgerWatch, OneOf, ResumeToken, Table, incarnation, view::ListPage};
use crate::{
    mesh::streams,
    store::resource::{Resource, WireForm},
};

/// Answer of the watch of a kind.
pub type WatchResponse<R> = <<R as WireForm>::Message as WatchedMessage>::Response;

/// Messages of a streaming answer.
pub type Responses<M> = BoxStream<'static, Result<M, Status>>;

/// Resources that a list examines while writers wait: some milliseconds of filtering.
const STEP: usize = 5_000;

/// Which resources a list shows: those that pass all of this, ordered by key. By default all of them.
pub struct Selection<R> {
    /// Keys of the selected resources; empty: every key.
    pub keys: BTreeSet<String>,
    /// Key that the selected resources follow; empty: from the first one on.
    pub after: String,
    /// Most resources that are selected.
    pub most: usize,
    /// Conditions that every selected resource meets, so that not every resource has to be examined.
    pub conditions: Vec<OneOf>,
    /// Predicate that every selected resource passes.
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

impl<R> Selection<R> {
    /// Selects the resources with these keys; without keys, all.
    pub fn of(keys: impl IntoIterator<Item = String>) -> Self {
        Self { keys: keys.into_iter().collect(), ..Self::default() }
    }
}

impl<T: Table> Ledger<T> {
    /// Answers a watch of changes after `resume`; revision 0 delivers everything first. The watch begins with all
    /// writes that any replica had acknowledged at this call, as long as the database answers. During an outage a watch
    /// begins with this replica's state, and later commits of others follow after the outage: watchers keep everything
    /// in memory through it. Each change is encoded once, however many clients watch. The metadata of the answer name
    /// the incarnation of the stream, which ends when another one begins.
    ///
    /// # Errors
    /// [`crate::Fault::ResumeExpired`] when `resume` lies before the remembered deletions, in the future, or in another
    /// incarnation. [`crate::Fault::Busy`] when streams hold as many bytes as they may. [`crate::Fault::Unavailable`]
    /// when `resume` may lie in the future only of this replica and the database does not answer.
    pub async fn serve_watch(
        &self,
        resume: impl Into<ResumeToken>,
    ) -> Result<Response<Responses<Encoded<WatchResponse<T::Kind>>>>, Status>
    where
        T::Kind: WireForm<Message: WatchedMessage>,
    {
        let (watch, incarnation) = self.begin_watch(resume.into()).await?;
        let view = Arc::clone(&self.view);
        let messages =
            watch.parts().map(move |part| Ok(view.encoded(&*part?, |batch| batch.to_wire().into())));
        let messages = messages.take_until(self.shutdown.clone().cancelled_owned());
        let mut response = Response::new(messages.boxed());
        incarnation::name(response.metadata_mut(), incarnation);
        Ok(response)
    }

    /// Answers a watch of the resources that are `wanted`, as [`Self::serve_watch`] does. A resource that is not, or no
    /// longer, is delivered as a deletion.
    ///
    /// # Errors
    /// As [`Self::serve_watch`].
    pub async fn serve_watch_of(
        &self,
        resume: impl Into<ResumeToken>,
        wanted: impl Fn(&T::Kind) -> bool + Send + 'static,
    ) -> Result<Response<Responses<Encoded<WatchResponse<T::Kind>>>>, Status>
    where
        T::Kind: WireForm<Message: WatchedMessage>,
    {
        let (watch, incarnation) = self.begin_watch(resume.into()).await?;
        let messages = watch.batches().map(move |batch| {
            let batch = batch?.picking(&wanted).to_wire();
            Ok(Encoded::from(WatchResponse::<T::Kind>::from(batch)))
        });
        let messages = messages.take_until(self.shutdown.clone().cancelled_owned());
        let mut response = Response::new(messages.boxed());
        incarnation::name(response.metadata_mut(), incarnation);
        Ok(response)
    }

    async fn begin_watch(&self, resume: ResumeToken) -> Result<(LedgerWatch<T::Kind>, Uuid), Status> {
        if let Err(fault) = self.fresh().await {
            if resume.revision > self.view.revision() {
                return Err(fault.into());
            }
            tracing::debug!(kind = T::Kind::KIND, %fault, "a watch begins with what this replica knows");
        }
        // The first batch may hold references to a whole fleet.
        streams::wait_for_room().await?;
        let watch = LedgerWatch::start(Arc::clone(&self.view), resume)?;
        let incarnation = watch.incarnation();
        Ok((watch, incarnation))
    }

    /// Answers a list with every write that any replica had acknowledged at this call, of resources in their form on the
    /// wire, as [`Self::serve_list`] does.
    ///
    /// # Errors
    /// [`crate::Fault::Unavailable`] when the database does not answer.
    pub async fn list<M>(
        &self,
        selection: Selection<T::Kind>,
        page: usize,
    ) -> Result<Response<Responses<M>>, Status>
    where
        T::Kind: WireForm,
        M: From<Vec<<T::Kind as WireForm>::Message>> + 'static,
    {
        self.fresh().await?;
        Ok(self.serve_list(selection, page, |found| {
            found.iter().map(|resource| resource.to_wire().into_owned()).collect::<Vec<_>>().into()
        }))
    }

    /// Answers a list with at most `page` resources in a message, read at the client's pace. Concurrent changes may or
    /// may not be included. An empty list is one message, which may name a revision.
    pub fn serve_list<M: 'static>(
        &self,
        selection: Selection<T::Kind>,
        page: usize,
        message: impl Fn(&[Arc<T::Kind>]) -> M + Send + 'static,
    ) -> Response<Responses<M>> {
        let pages = self.pages(selection, page);
        self.respond(pages.map(move |page| message(&page)))
    }

    /// Reads the selected resources, at most `page` at a time: a writer never waits for a long read. The first page may be
    /// empty, and no other.
    pub fn pages(
        &self,
        selection: Selection<T::Kind>,
        page: usize,
    ) -> impl Iterator<Item = Vec<Arc<T::Kind>>> + Send + use<T> {
        ListPages {
            view: Arc::clone(&self.view),
            left: selection.most,
            after: Some(selection.after.as_str().into()),
            selection,
            page,
            is_begun: false,
        }
    }

    /// An answer of all these messages. It fails when the service stops before the last of them: a truncated answer
    /// would pass for a shorter list.
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

/// The rest of a list in progress.
struct ListPages<R> {
    view: Arc<LedgerView<R>>,
    selection: Selection<R>,
    page: usize,
    /// Last examined key; `None` at the end.
    after: Option<Arc<str>>,
    left: usize,
    is_begun: bool,
}

impl<R: Resource> Iterator for ListPages<R> {
    type Item = Vec<Arc<R>>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.further();
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        found.or_else(|| is_first.then(Vec::new))
    }
}

impl<R: Resource> ListPages<R> {
    /// The next page that is not empty.
    fn further(&mut self) -> Option<Vec<Arc<R>>> {
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

    /// The next resources, and the key to continue from, if any may follow.
    fn step(&self, after: &str) -> (Vec<Arc<R>>, Option<Arc<str>>) {
        let Selection { keys, conditions, wanted, .. } = &self.selection;
        let most = self.left.min(self.page);
        if keys.is_empty() {
            return self.view.page(after, STEP, most, conditions, wanted);
        }
        let rest = keys.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let known = rest.filter_map(|key| self.view.get(key)).filter(|resource| wanted(resource));
        let mut page = ListPage::of(most);
        for resource in known {
            if page.add(resource) {
                break;
            }
        }
        let last = page.found.last().filter(|_| page.is_full()).map(|resource| resource.key().into());
        (page.found, last)
    }
}
