//! The one task that reads the inventory, so that those who ask at the same time share one answer.

use std::{collections::HashSet, convert::Infallible, sync::Arc, time::Duration};

use chassis::{Fault, resource::Resource};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use super::{Driver, INVENTORY, Locked, Picture};
use crate::{Registry, presence::Listing};

/// Questions that may wait. Whoever comes then waits for a place.
const WAITING: usize = 1024;

/// The inventory, for those who ask.
pub(crate) struct Inventory {
    questions: mpsc::Sender<Question>,
    locked: watch::Receiver<Option<Arc<Locked>>>,
    listing: watch::Receiver<Option<Arc<Listing>>>,
    driver: Arc<Driver>,
}

/// The other end of an [`Inventory`].
pub(crate) struct Questions {
    waiting: mpsc::Receiver<Question>,
    known: Known,
}

/// The last answers, for those who follow them.
struct Known {
    locked: watch::Sender<Option<Arc<Locked>>>,
    listing: watch::Sender<Option<Arc<Listing>>>,
}

type Answer<T> = Result<T, Fault>;

/// Something that somebody wants to know.
enum Question {
    /// Everything.
    Picture(oneshot::Sender<Answer<Arc<Picture>>>),
    /// Which nodes are locked.
    Locks(oneshot::Sender<Answer<()>>),
}

impl Inventory {
    /// An inventory, and the questions that [`run`] answers.
    pub(crate) fn new(driver: Arc<Driver>) -> (Self, Questions) {
        let (questions, waiting) = mpsc::channel(WAITING);
        let known = Known { locked: watch::Sender::new(None), listing: watch::Sender::new(None) };
        let (locked, listing) = (known.locked.subscribe(), known.listing.subscribe());
        (Self { questions, locked, listing, driver }, Questions { waiting, known })
    }

    /// A picture whose reading began after this call.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] with who does not answer as it should, and how.
    pub(crate) async fn picture(&self) -> Answer<Arc<Picture>> {
        self.ask(Question::Picture).await
    }

    /// Reads, from now on, which nodes are locked. [`Self::locked`] has the answer.
    ///
    /// # Errors
    /// As [`Self::picture`].
    pub(crate) async fn look_at_locks(&self) -> Answer<()> {
        self.ask(Question::Locks).await
    }

    /// Which nodes are locked, as of the last answer that told it, whoever asked; `None`: there was none yet.
    pub(crate) fn locked(&self) -> watch::Receiver<Option<Arc<Locked>>> {
        self.locked.clone()
    }

    /// Components that were listed when the inventory was last read as a whole; `None`: it was not yet.
    pub(crate) fn listing(&self) -> watch::Receiver<Option<Arc<Listing>>> {
        self.listing.clone()
    }

    /// Which of `ids` the inventory lists now, asked for by id where it can be.
    ///
    /// # Errors
    /// As [`Self::picture`].
    pub(crate) async fn listed(
        &self,
        ids: Vec<Arc<str>>,
        answer_within: Duration,
    ) -> Answer<HashSet<Arc<str>>> {
        if let Some(listed) = self.driver.listed(&ids, answer_within).await? {
            return Ok(ids.into_iter().filter(|id| listed.contains(&**id)).collect());
        }
        let picture = self.picture().await?;
        let listed: HashSet<&str> = picture.hardware().map(|item| &*item.id).collect();
        Ok(ids.into_iter().filter(|id| listed.contains(&**id)).collect())
    }

    async fn ask<T>(&self, question: fn(oneshot::Sender<Answer<T>>) -> Question) -> Answer<T> {
        let (answer, answered) = oneshot::channel();
        let stopping = || Fault::unavailable(INVENTORY, "the service is stopping");
        self.questions.send(question(answer)).await.map_err(|_| stopping())?;
        answered.await.map_err(|_| stopping())?
    }
}

/// Answers questions for ever. Reading is done one after another: whoever asks meanwhile shares the next
/// answer, so no answer is older than its question, and what is known about locks never goes back in time.
///
/// Trouble is told at once to those who asked meanwhile too. It is news to them, and a peer that hangs would make
/// them wait twice as long as one answer may take.
pub(crate) async fn run(
    registry: Arc<Registry>,
    driver: Arc<Driver>,
    mut questions: Questions,
) -> anyhow::Result<Infallible> {
    let mut asked = Vec::new();
    loop {
        if asked.is_empty() {
            let received = questions.waiting.recv_many(&mut asked, WAITING).await;
            anyhow::ensure!(received > 0, "nobody can ask for the inventory any more");
        }
        let asking = Asking::from(std::mem::take(&mut asked));
        let outcome = asking.answer(&driver, &registry, &questions.known).await;
        if let Err(fault) = outcome {
            asked = questions.refuse_pictures(&fault);
        }
    }
}

impl Questions {
    /// Tells trouble to those who wait for a picture, and gives the other questions that wait: locks may be told
    /// where the whole is not.
    fn refuse_pictures(&mut self, fault: &Fault) -> Vec<Question> {
        let mut others = Vec::new();
        while let Ok(question) = self.waiting.try_recv() {
            match question {
                Question::Picture(answer) => settle(vec![answer], &Err(fault.clone())),
                Question::Locks(_) => others.push(question),
            }
        }
        others
    }
}

/// Those who wait for the same answer.
#[derive(Default)]
struct Asking {
    pictures: Vec<oneshot::Sender<Answer<Arc<Picture>>>>,
    locks: Vec<oneshot::Sender<Answer<()>>>,
}

impl From<Vec<Question>> for Asking {
    /// Leaves out who does not wait any more.
    fn from(questions: Vec<Question>) -> Self {
        let mut asking = Self::default();
        for question in questions {
            match question {
                Question::Picture(answer) if !answer.is_closed() => asking.pictures.push(answer),
                Question::Locks(answer) if !answer.is_closed() => asking.locks.push(answer),
                Question::Picture(_) | Question::Locks(_) => {}
            }
        }
        asking
    }
}

impl Asking {
    /// Reads as much as is asked for, makes known which components are listed and locked, and answers. A picture has the
    /// locks in it.
    ///
    /// # Errors
    /// What those who asked were told too.
    async fn answer(self, driver: &Driver, registry: &Registry, known: &Known) -> Result<(), Fault> {
        let (Self { pictures, locks }, answer_within) = (self, registry.answer_within());
        let locked = if !pictures.is_empty() {
            let read_at = Instant::now();
            let picture = driver.picture(answer_within).await.map(Arc::new);
            if let Ok(picture) = &picture {
                known.listing.send_replace(Some(Arc::new(listing(picture, registry, read_at))));
            }
            settle(pictures, &picture);
            picture.map(|picture| Arc::clone(&picture.locked))
        } else if !locks.is_empty() {
            driver.locked(answer_within).await
        } else {
            return Ok(());
        };
        let told = locked.map(|locked| {
            known.locked.send_replace(Some(locked));
        });
        settle(locks, &told);
        told
    }
}

/// Components of the registry that the picture lists. They share the memory of their ids.
fn listing(picture: &Picture, registry: &Registry, read_at: Instant) -> Listing {
    let hardware: HashSet<&str> = picture.hardware().map(|item| &*item.id).collect();
    let components = registry.components.view().all();
    let listed = components.iter().filter(|component| hardware.contains(component.key()));
    Listing { read_at, ids: listed.map(|component| component.shared_key()).collect() }
}

fn settle<T: Clone>(asking: Vec<oneshot::Sender<Answer<T>>>, answer: &Answer<T>) {
    for one in asking {
        // Who asked may have gone meanwhile.
        let _gone = one.send(answer.clone());
    }
}
