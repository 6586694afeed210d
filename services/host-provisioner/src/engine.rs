//! The engine of one term: asks drivers about the work of hosts, one call of a host at a time.
//!
//! The engine decides nothing itself: [`domain::host::dispatch`] says what is due. An intent is on record before the
//! driver is called and the report after, so a term may end anywhere: the next one asks again, and drivers begin nothing
//! twice.

use std::{convert::Infallible, sync::Arc, time::Duration};

use chassis::{Fault, kinds::host::SightRecord, lease::Term, process::clock, store::ledger::Draft};
use domain::host::{
    dispatch::{CallIntent, DispatchRecord, DispatchStep, intent_after, next_step, wants_listing},
    record::{
        call::{DriverAnswer, DriverCall, DriverReport, DriverTrouble},
        progress::HostWork,
    },
};
use proto::host as wire;
use redfish::LoginName;
use tokio::time::Instant;
use tonic::Status;

use crate::{
    convert::{self, HostIdentity},
    documents,
    driver::{DeployDocuments, FirmwareOrder, HostTarget, WorkOrder},
    sources::HostSources,
    tasks::HostTasks,
};

/// Keys that are taken from the queue at a time.
const MOST_KEYS: usize = 256;

/// Time until a host is looked at again whose record could not be written.
const AFTER_FAULT: Duration = Duration::from_secs(1);

/// Engine of one term.
pub(crate) struct HostEngine {
    pub(crate) sources: Arc<HostSources>,
    pub(crate) term: Term,
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

/// Work that a task of the engine carries out for one host.
enum HostTask {
    Call(Box<DueCall>),
    /// The host is gone, and its row goes too.
    Forget,
}

impl HostEngine {
    /// Works until the term is over and this future is dropped.
    pub(crate) async fn run(self: Arc<Self>) -> anyhow::Result<Infallible> {
        // Numbers of calls only rise in the newest records, so no call of an earlier holder is repeated.
        self.sources.sights.catch_up().await;
        self.sources.hosts.catch_up().await;
        self.term.took_over();
        let _open = self.sources.queue.open();
        self.sources.mark_everything();
        tokio::join!(Arc::clone(&self).dispatch(), self.keep_listing(), Arc::clone(&self).keep_firmware());
        std::future::pending().await
    }

    /// Begins what is due, without end. Calls end with this future.
    async fn dispatch(self: Arc<Self>) {
        let mut tasks = HostTasks::default();
        loop {
            tokio::select! {
                keys = self.sources.queue.next(MOST_KEYS) => {
                    keys.into_iter().for_each(|key| self.begin(&mut tasks, key));
                }
                (key, result) = tasks.ended() => self.requeue(key, result),
            }
        }
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
        if !self.sources.hosts.is_complete() {
            // Hosts that are not mirrored yet look like deleted ones; each is queued once it is.
            return None;
        }
        let Some(host) = self.sources.hosts.get(key) else {
            return self.sources.sights.view().get(key).map(|_| HostTask::Forget);
        };
        let host = host.message();
        let identity = HostIdentity::of(Arc::clone(key), &host);
        let record = self.record(&identity);
        let work = match convert::work(&host) {
            Ok(work) => work,
            Err(error) => {
                tracing::error!(host = %key, %error, "the record of the host cannot be read");
                return None;
            }
        };
        let now = clock::now();
        match (next_step(work.as_ref(), &record, now), work) {
            (DispatchStep::Ask(intent), Some(work)) => {
                let was_recorded = record.intent == Some(intent);
                Some(HostTask::Call(Box::new(DueCall { host, identity, work, intent, was_recorded })))
            }
            (DispatchStep::WaitUntil(at), _) => {
                self.sources.queue.mark_at(Arc::clone(key), Instant::now() + at.since(now));
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
        let (target, documents, firmware) = match self.inputs(&identity, &host, &work).await {
            Ok(inputs) => inputs,
            Err(unread) => {
                return self.report(&identity, intent, was_recorded, number, without_secrets(&unread)).await;
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
        let order = WorkOrder { work, asked_before, documents, firmware };
        let answer = self.sources.driver.carry_out(&target, &order).await;
        tracing::debug!(host = %identity.key, kind = kind.word(), number, ?answer, "driver answered");
        let is_listing_wanted = wants_listing(&answer);
        self.report(&identity, intent, was_recorded, number, answer).await?;
        if is_listing_wanted {
            self.sources.listing_wanted.notify_one();
        }
        Ok(())
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
        let report = move |record: &mut DispatchRecord| {
            record.intent = intent_after(intent, was_recorded, &answer);
            record.report = Some(DriverReport { number, at, answer });
        };
        Ok(self.store(host, report).await?)
    }

    /// Reads what a call needs: the host with its login, the documents of a system to be deployed, and wishes about
    /// firmware.
    ///
    /// # Errors
    /// The registry does not answer, or lacks a document.
    async fn inputs(
        &self,
        identity: &HostIdentity,
        host: &wire::Host,
        work: &HostWork,
    ) -> Result<(HostTarget, DeployDocuments, FirmwareOrder), Status> {
        let target = self.target(identity, host).await?;
        let firmware = self.sources.firmware.order(&target.key, work.parts.or(work.call.parts())).await?;
        let documents = match &work.call {
            DriverCall::Provision(_) => documents::read(&self.sources.logins, host).await?,
            _ => DeployDocuments::default(),
        };
        Ok((target, documents, firmware))
    }

    /// Returns the host with its login.
    pub(crate) async fn target(
        &self,
        identity: &HostIdentity,
        host: &wire::Host,
    ) -> Result<HostTarget, Status> {
        let login = match LoginName::of(host) {
            Some(name) => self.sources.logins.read(&identity.key, name).await?,
            None => None,
        };
        Ok(convert::target(identity, host, login))
    }

    /// Removes what is known about a host that is gone.
    async fn forget(&self, key: Arc<str>) -> Result<(), CallFault> {
        self.sources.logins.forget(&key);
        let delete = move |draft: &mut Draft<'_, _>| {
            draft.delete(&key);
            Ok(())
        };
        self.sources.sights.write_fenced(self.term.fence(), delete).await?;
        Ok(())
    }

    /// Returns what is on record about a host.
    pub(crate) fn record(&self, host: &HostIdentity) -> DispatchRecord {
        convert::dispatch_record(self.sources.sights.view().get(&host.key).as_deref(), &host.uid)
    }

    /// Changes what is on record about a host.
    async fn store(
        &self,
        host: &HostIdentity,
        change: impl FnOnce(&mut DispatchRecord) + Send + 'static,
    ) -> Result<(), Fault> {
        let host = host.clone();
        let write = move |draft: &mut Draft<'_, SightRecord>| {
            let mut record = convert::dispatch_record(draft.get(&host.key).as_deref(), &host.uid);
            change(&mut record);
            draft.put(convert::sight_record(&host, &record));
            Ok(())
        };
        self.sources.sights.write_fenced(self.term.fence(), write).await?;
        Ok(())
    }

    /// Queues a host whose task has ended: more may be due, or the task could not be carried out.
    fn requeue(&self, key: Arc<str>, result: Result<(), CallFault>) {
        match result {
            Ok(()) => self.sources.queue.mark([key]),
            Err(fault) => {
                tracing::debug!(host = %key, %fault, "call not carried out, trying again");
                self.sources.queue.mark_at(key, Instant::now() + AFTER_FAULT);
            }
        }
    }
}

/// Returns the answer about a host whose secrets the registry did not tell: the driver was not asked.
fn without_secrets(unread: &Status) -> DriverAnswer {
    let text = format!("a secret of the host cannot be read: {}", unread.message()).into();
    DriverAnswer::Trouble { kind: DriverTrouble::Unreachable, text }
}

/// Reason for which a call was not made or not reported.
#[derive(Debug, thiserror::Error)]
enum CallFault {
    #[error(transparent)]
    Store(#[from] Fault),
    #[error("the term is over")]
    TermOver,
}
