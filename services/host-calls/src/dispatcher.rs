//! The dispatcher of one term: asks the driver about the work of hosts, one call of a host at a time.
//!
//! The dispatcher decides nothing itself: [`domain::host::dispatch`] names the due calls. An intent is on record before the
//! driver is called and the report after, so a term may end anywhere: the next one asks again, and drivers begin nothing
//! twice.

use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};

use chassis::{
    Fault,
    kinds::host::HostRecord,
    lease::Term,
    observe::{mirror::Mirror, work::WorkQueue},
    process::clock,
    store::{
        ledger::{Draft, Ledger, Table},
        resource::Resource,
    },
};
use domain::core::time::Timestamp;
use domain::host::{
    dispatch::{CallIntent, CallRecord, DispatchStep, intent_after, next_step},
    record::{
        call::{DriverAnswer, DriverReport},
        operation::OperationKind,
        progress::{CallCarrier, HostProgress, HostWork},
    },
};
use proto::host as wire;
use tokio::{sync::Notify, time::Instant};
use tonic::Status;

use crate::{CallJournal, CallOrder, HostIdentity, HostTasks, StillDue, progress, unreadable_secret};

/// Keys that are taken from the queue at a time.
const MOST_KEYS: usize = 256;

/// Time until a host is looked at again whose record could not be written.
const AFTER_FAULT: Duration = Duration::from_secs(1);

/// Driver of the calls of one part.
///
/// [`Self::carry_out`] is a poll. Asked again about the same operation (same kind, same `since`), it looks at the backend
/// first and begins nothing twice, whether or not its last answer arrived anywhere. Its future may be dropped anywhere.
pub trait CallDriver: Send + Sync + 'static {
    /// Data that a call needs besides the operation.
    type Inputs: Send;

    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// The registry does not answer, or lacks something. Nothing was begun.
    fn inputs(
        &self,
        identity: &HostIdentity,
        host: &wire::Host,
        work: &HostWork,
    ) -> impl Future<Output = Result<Self::Inputs, Status>> + Send;

    /// Begins the operation of `order`, or returns how far it is.
    fn carry_out(&self, inputs: Self::Inputs, order: CallOrder) -> impl Future<Output = DriverAnswer> + Send;

    /// Notes that an answer is on record.
    fn answered(&self, answer: &DriverAnswer);

    /// Notes the progress of a host that has no call under way here.
    fn progressed(&self, identity: &HostIdentity, progress: &HostProgress);

    /// Forgets a host that is gone.
    fn forget(&self, key: &str);
}

/// Dispatcher of the calls of one part during one term.
pub struct CallDispatcher<D, T: Table> {
    /// The part that carries calls out here.
    pub carrier: CallCarrier,
    /// Driver that is asked.
    pub driver: Arc<D>,
    /// Hosts of the registry.
    pub hosts: Mirror<HostRecord>,
    /// Records of the calls.
    pub journal: Ledger<T>,
    /// Hosts for which something may be due, by their keys.
    pub queue: WorkQueue<Arc<str>>,
    /// Term for which the part acts.
    pub term: Term,
}

/// Call that is due.
struct DueCall {
    host: wire::Host,
    identity: HostIdentity,
    work: HostWork,
    intent: CallIntent,
    /// Whether the intent is on record from an earlier call.
    was_recorded: bool,
}

/// Work that a task of the dispatcher carries out for one host.
enum HostTask {
    Call(Box<DueCall>),
    /// The host is gone, and its row goes too.
    Forget,
}

/// Runs `work`, and again from the beginning whenever the registry has lost commits: a call of the lost history that is
/// under way is not reported, since its number may be given to another call.
///
/// # Errors
/// `work` has failed.
pub async fn until_hosts_are_lost<W: Future<Output = anyhow::Result<Infallible>> + Send>(
    hosts_replaced: &Notify,
    work: impl Fn() -> W,
) -> anyhow::Result<Infallible> {
    loop {
        tokio::select! {
            biased;
            () = hosts_replaced.notified() => {
                tracing::warn!("hosts were lost; the dispatcher starts anew from those on record");
            }
            ended = work() => return ended,
        }
    }
}

impl<D: CallDriver, T: Table<Kind: CallJournal>> CallDispatcher<D, T> {
    /// Waits until hosts and journal are as new as the term: numbers of calls only rise in the newest records, so no call of
    /// an earlier holder is repeated.
    pub async fn catch_up(&self) {
        self.journal.catch_up().await;
        self.hosts.catch_up().await;
    }

    /// Begins due calls, without end, once it has [caught up](Self::catch_up). Calls end with this future.
    pub async fn run(self: Arc<Self>) -> Infallible {
        let _open = self.queue.open();
        self.mark_everything();
        let mut tasks = HostTasks::default();
        loop {
            tokio::select! {
                keys = self.queue.next(MOST_KEYS) => {
                    keys.into_iter().for_each(|key| self.begin(&mut tasks, key));
                }
                (key, result) = tasks.ended() => self.requeue(key, result),
            }
        }
    }

    /// Queues every host, and every host that may be gone.
    fn mark_everything(&self) {
        let hosts = self.hosts.all().into_iter().map(|host| host.shared_key());
        let known = self.journal.view().all().into_iter().map(|record| record.shared_key());
        self.queue.mark(hosts.chain(known));
    }

    /// Begins the task that is due for a host. One with a call under way is looked at again when the call ends.
    fn begin(self: &Arc<Self>, tasks: &mut HostTasks<Result<(), CallFault>>, key: Arc<str>) {
        if tasks.contains(&key) {
            return;
        }
        if let Some(task) = self.due(&key) {
            tasks.spawn(Arc::clone(&key), Arc::clone(self).carry_out(key, task));
        }
    }

    /// Returns the task that is due for a host; `None`: nothing is, and the host was marked for the time when it may be.
    fn due(&self, key: &Arc<str>) -> Option<HostTask> {
        if !self.hosts.is_complete() {
            // Hosts that are not mirrored yet look like deleted ones; each is queued once it is.
            return None;
        }
        let Some(host) = self.hosts.get(key) else {
            return self.journal.view().get(key).map(|_| HostTask::Forget);
        };
        let host = host.message();
        let identity = HostIdentity::of(Arc::clone(key), &host);
        let progress = match progress(&host) {
            Ok(progress) => progress.unwrap_or_default(),
            Err(error) => {
                tracing::error!(host = %key, %error, "the record of the host cannot be read");
                return None;
            }
        };
        self.driver.progressed(&identity, &progress);
        let record = self.record(&identity);
        let now = clock::now();
        match (next_step(progress.work.as_ref(), self.carrier, &record, now), progress.work) {
            (DispatchStep::Ask(intent), Some(work)) => {
                let was_recorded = record.intent == Some(intent);
                Some(HostTask::Call(Box::new(DueCall { host, identity, work, intent, was_recorded })))
            }
            (DispatchStep::WaitUntil(at), _) => {
                self.queue.mark_at(Arc::clone(key), Instant::now() + at.since(now));
                None
            }
            (DispatchStep::Rest | DispatchStep::Ask(_), _) => None,
        }
    }

    async fn carry_out(self: Arc<Self>, key: Arc<str>, task: HostTask) -> Result<(), CallFault> {
        match task {
            HostTask::Call(call) => self.call(*call).await,
            HostTask::Forget => self.forget(key).await,
        }
    }

    /// Asks the driver about the work of a host, and reports its answer.
    async fn call(&self, call: DueCall) -> Result<(), CallFault> {
        let DueCall { host, identity, work, intent, was_recorded } = call;
        let number = work.number;
        let inputs = match self.driver.inputs(&identity, &host, &work).await {
            Ok(inputs) => inputs,
            Err(unread) => {
                return self
                    .report(&identity, intent, was_recorded, number, unreadable_secret(&unread))
                    .await;
            }
        };
        if !was_recorded {
            self.store(&identity, move |record| record.intent = Some(intent)).await?;
        }
        if !self.term.is_current() {
            return Err(CallFault::TermOver);
        }
        let kind = work.call.kind();
        let asked_before = was_recorded.then_some(intent.at);
        let still_due = self.still_due(&identity, kind, work.since);
        let answer = self.driver.carry_out(inputs, CallOrder { work, asked_before, still_due }).await;
        tracing::debug!(host = %identity.key, kind = kind.word(), number, ?answer, "driver answered");
        self.report(&identity, intent, was_recorded, number, answer.clone()).await?;
        self.driver.answered(&answer);
        Ok(())
    }

    /// Returns the check whether the operation is still due here: another part may have been given the next one of the host
    /// while a call waited for its backend.
    fn still_due(&self, identity: &HostIdentity, kind: OperationKind, since: Timestamp) -> StillDue {
        let (hosts, term) = (self.hosts.clone(), self.term.clone());
        let (identity, carrier) = (identity.clone(), self.carrier);
        StillDue::when(move || {
            let is_same = |record: Arc<HostRecord>| {
                let host = record.message();
                let work = progress(&host).ok().flatten().and_then(|progress| progress.work);
                let is_same_host = HostIdentity::of(Arc::clone(&identity.key), &host) == identity;
                let asked = work.map(|work| (work.call.kind(), work.since, work.carrier));
                is_same_host && asked == Some((kind, since, carrier))
            };
            term.is_current() && hosts.get(&identity.key).is_some_and(is_same)
        })
    }

    async fn report(
        &self,
        host: &HostIdentity,
        intent: CallIntent,
        was_recorded: bool,
        number: u64,
        answer: DriverAnswer,
    ) -> Result<(), CallFault> {
        let at = clock::now();
        let report = move |record: &mut CallRecord| {
            record.intent = intent_after(intent, was_recorded, &answer);
            record.report = Some(DriverReport { number, at, answer });
        };
        Ok(self.store(host, report).await?)
    }

    /// Removes the record of a host that is gone.
    async fn forget(&self, key: Arc<str>) -> Result<(), CallFault> {
        self.driver.forget(&key);
        let delete = move |draft: &mut Draft<'_, _>| {
            draft.delete(&key);
            Ok(())
        };
        self.journal.write_fenced(self.term.fence(), delete).await?;
        Ok(())
    }

    /// Returns the record of a host.
    fn record(&self, host: &HostIdentity) -> CallRecord {
        let known = self.journal.view().get(&host.key);
        known.map(|known| known.calls(&host.uid)).unwrap_or_default()
    }

    /// Changes the record of a host.
    async fn store(
        &self,
        host: &HostIdentity,
        change: impl FnOnce(&mut CallRecord) + Send + 'static,
    ) -> Result<(), Fault> {
        let host = host.clone();
        let write = move |draft: &mut Draft<'_, T::Kind>| {
            let known = draft.get(&host.key);
            let mut calls = known.as_deref().map(|known| known.calls(&host.uid)).unwrap_or_default();
            change(&mut calls);
            let record = T::Kind::with_calls(known.as_deref(), &host, &calls);
            draft.put(record);
            Ok(())
        };
        self.journal.write_fenced(self.term.fence(), write).await?;
        Ok(())
    }

    /// Queues a host whose task has ended: more may be due, or the task could not be carried out.
    fn requeue(&self, key: Arc<str>, result: Result<(), CallFault>) {
        match result {
            Ok(()) => self.queue.mark([key]),
            Err(fault) => {
                tracing::debug!(host = %key, %fault, "call not carried out, trying again");
                self.queue.mark_at(key, Instant::now() + AFTER_FAULT);
            }
        }
    }
}

/// Reason for which a call was not made or not reported.
#[derive(Debug, thiserror::Error)]
enum CallFault {
    #[error(transparent)]
    Store(#[from] Fault),
    #[error("the term is over")]
    TermOver,
}
