//! Answers that reach another request than the one they are for.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{call::SystemAnswer, service::Service};

/// Time for which an answer waits for another one to be swapped with. Afterwards it reaches its own request.
const PATIENCE: Duration = Duration::from_secs(5);

/// Requests that can get each other's answers: those for the same operation of a system.
type Place = (Service, &'static str);

/// Answers that are held back or were kept for later requests.
#[derive(Debug, Default)]
pub(crate) struct AnswerCrossing {
    waiting: Mutex<HashMap<Place, (SystemAnswer, oneshot::Sender<SystemAnswer>)>>,
    kept: Mutex<HashMap<Place, SystemAnswer>>,
}

impl AnswerCrossing {
    /// Swaps this answer with that of another request, which may be waiting here. Without such a request this one
    /// waits.
    pub(crate) async fn swap(&self, place: Place, answer: SystemAnswer) -> SystemAnswer {
        let (give, given) = oneshot::channel();
        let other = {
            let mut waiting = self.waiting.lock();
            let other = waiting.remove(&place);
            if other.is_none() {
                waiting.insert(place, (answer.clone(), give));
            }
            other
        };
        if let Some((others, sender)) = other {
            return if sender.send(answer.clone()).is_ok() { others } else { answer };
        }
        match tokio::time::timeout(PATIENCE, given).await {
            Ok(Ok(others)) => others,
            Ok(Err(_)) | Err(_) => {
                self.waiting.lock().remove(&place);
                answer
            }
        }
    }

    /// The first answer for the place, for this request and all later ones.
    pub(crate) fn repeat(&self, place: Place, answer: SystemAnswer) -> SystemAnswer {
        self.kept.lock().entry(place).or_insert(answer).clone()
    }

    /// Forgets the answers that were kept.
    pub(crate) fn forget(&self) {
        self.kept.lock().clear();
    }
}
