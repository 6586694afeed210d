//! The one task that reads the inventory, so that those who ask at the same time share one answer.

use std::{convert::Infallible, sync::Arc, time::Duration};

use chassis::Fault;
use tokio::sync::{mpsc, oneshot, watch};

use super::{Driver, INVENTORY, Locked, Picture};
use crate::Registry;

/// Questions that may wait. Whoever comes then waits for a place.
const WAITING: usize = 1024;

/// The inventory, for those who ask.
pub(crate) struct Inventory {
    questions: mpsc::Sender<Question>,
    locked: watch::Receiver<Option<Arc<Locked>>>,
}

/// The other end of an [`Inventory`].
pub(crate) struct Questions {
    waiting: mpsc::Receiver<Question>,
    locked: watch::Sender<Option<Arc<Locked>>>,
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
    pub(crate) fn new() -> (Self, Questions) {
        let (questions, waiting) = mpsc::channel(WAITING);
        let (known, locked) = watch::channel(None);
        (Self { questions, locked }, Questions { waiting, locked: known })
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
    driver: Driver,
    mut questions: Questions,
) -> anyhow::Result<Infallible> {
    let mut asked = Vec::new();
    loop {
        if asked.is_empty() {
            let received = questions.waiting.recv_many(&mut asked, WAITING).await;
            anyhow::ensure!(received > 0, "nobody can ask for the inventory any more");
        }
        let option = registry.options_in_force().hsm_read_timeout;
        let asking = Asking::from(std::mem::take(&mut asked));
        let outcome = asking.answer(&driver, Duration::from_secs(option.into()), &questions.locked).await;
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
    /// Reads as much as is asked for, makes known who is locked, and answers. A picture has the locks in it.
    ///
    /// # Errors
    /// What those who asked were told too.
    async fn answer(
        self,
        driver: &Driver,
        answer_within: Duration,
        known: &watch::Sender<Option<Arc<Locked>>>,
    ) -> Result<(), Fault> {
        let Self { pictures, locks } = self;
        let locked = if !pictures.is_empty() {
            let picture = driver.picture(answer_within).await.map(Arc::new);
            settle(pictures, &picture);
            picture.map(|picture| Arc::clone(&picture.locked))
        } else if !locks.is_empty() {
            driver.locked(answer_within).await
        } else {
            return Ok(());
        };
        let told = locked.map(|locked| {
            known.send_replace(Some(locked));
        });
        settle(locks, &told);
        told
    }
}

fn settle<T: Clone>(asking: Vec<oneshot::Sender<Answer<T>>>, answer: &Answer<T>) {
    for one in asking {
        // Who asked may have gone meanwhile.
        let _gone = one.send(answer.clone());
    }
}
