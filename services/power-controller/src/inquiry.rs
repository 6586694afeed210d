//! Power of nodes for callers that only want to know it. The upstream is asked, and nothing is recorded: the stored
//! readings are evidence for decisions, and have an order that such an answer has not.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chassis::{Fault, kinds::options::OptionsRecord, observe::mirror::Mirror, process::pause};
use futures_util::{StreamExt, stream};
use proto::power::NodePower;
use tokio::{sync::Semaphore, time::timeout};

use crate::driver::{NodeReading, PowerUpstream};

/// Reads at a time. Each may ask about the whole machine, beside the reads for actions.
const AT_A_TIME: usize = 2;

/// Deadline of a read. A person waits for the plan, and an upstream that samples its hardware answers within a second.
const DEADLINE: Duration = Duration::from_secs(8);

/// Reader of the power of nodes.
#[derive(Clone)]
pub(crate) struct PowerInquiry {
    driver: PowerUpstream,
    options: Mirror<OptionsRecord>,
    places: Arc<Semaphore>,
}

/// Answers about nodes.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct InquiryAnswer {
    /// Answers of the upstream; nodes without one are left out.
    pub(crate) nodes: Vec<NodePower>,
    /// Reasons why nodes have no answer, each once.
    pub(crate) outages: BTreeSet<String>,
}

impl PowerInquiry {
    pub(crate) fn new(driver: PowerUpstream, options: Mirror<OptionsRecord>) -> Self {
        Self { driver, options, places: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    /// Reads the power of nodes.
    ///
    /// # Errors
    /// [`Fault::Busy`] if as many reads as may be are under way.
    pub(crate) async fn read(&self, ids: Vec<String>) -> Result<InquiryAnswer, Fault> {
        let _place = self.places.try_acquire().map_err(|_| Fault::Busy {
            reason: format!("{AT_A_TIME} reads of the power for plans are under way already"),
            retry_after: pause::retry_after(),
        })?;
        let most = self.options.in_force().batch_size(self.driver.most_nodes());
        let batches: Vec<_> = ids.chunks(most.max(1)).map(<[String]>::to_vec).collect();
        let groups = batches.into_iter().flat_map(|batch| self.driver.apart(batch, String::as_str));
        let reads = groups.map(|group| async move {
            let read = timeout(DEADLINE, self.driver.power(group, DEADLINE)).await;
            read.map_err(|_| no_answer()).and_then(|answer| answer.map_err(|failure| failure.to_string()))
        });
        let mut reads = stream::iter(reads).buffer_unordered(self.driver.most_queries());
        let mut answer = InquiryAnswer::default();
        let whole = timeout(DEADLINE, async {
            while let Some(read) = reads.next().await {
                match read {
                    Ok(nodes) => answer.nodes.extend(nodes.into_iter().map(node_power)),
                    Err(reason) => drop(answer.outages.insert(reason)),
                }
            }
        });
        if whole.await.is_err() {
            answer.outages.insert(no_answer());
        }
        Ok(answer)
    }
}

fn no_answer() -> String {
    format!("the power upstream (no whole answer within {} s)", DEADLINE.as_secs())
}

fn node_power((id, NodeReading { reading, error, as_of: _ }): (String, NodeReading)) -> NodePower {
    NodePower { id, reading: reading.into(), error }
}
