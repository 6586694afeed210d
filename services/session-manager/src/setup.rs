//! Sets up pending sessions: finds their members and gives them what they are to run (BOS reference 5.4).
//!
//! What a session is going to assign is written down before it is assigned, and from then on it is that and
//! nothing else, whatever becomes of template, inventory and images: a setup that was cut off goes on with the
//! same members. Assigning under the same session id what is assigned already changes nothing, and the
//! session's own record is what changes last.

mod peers;
mod plan;
mod schedule;
mod told;

use std::{ops::Deref, sync::Arc};

use anyhow::Context as _;
use chassis::{Fault, convert::time::now, failpoint, lease::Fence, work::WorkQueue};
use domain::{
    id::ComponentId,
    session::{self, Progress, Session},
};
use proto::component::AssignSessionRequest;
use tokio::{task::JoinSet, time::Instant};
use tracing::Instrument;

pub(crate) use peers::Peers;

use crate::{
    record::SessionRecord,
    setback::{DATABASE, Outage, REGISTRY, Setback},
    setup::{
        peers::Assigned,
        plan::choose,
        schedule::{Outcome, Schedule},
        told::Told,
    },
    shared::Shared,
};

/// Sessions that are taken from the queue at a time.
const BATCH: usize = 64;

/// Sets up the sessions in `queue`, for ever. All that are pending are under way at the same time, so that no
/// number of sessions with a silent upstream holds up another: what a session that waits for an answer holds is
/// little more than the names of its members.
pub(crate) async fn run(shared: Shared, peers: Peers, queue: WorkQueue<Arc<str>>) -> anyhow::Result<()> {
    let setup = Setup { shared, peers };
    let mut schedule = Schedule::new(queue);
    let mut under_way = JoinSet::new();
    loop {
        tokio::select! {
            keys = schedule.queue.next(BATCH) => {
                for key in keys {
                    if !schedule.begin(&key) {
                        continue;
                    }
                    let setup = setup.clone();
                    let (told, failures) = (schedule.told(&key), schedule.failures(&key));
                    under_way.spawn(async move {
                        let outcome = setup.set_up(&key, told, failures).await;
                        (key, outcome)
                    }.in_current_span());
                }
            }
            Some(ended) = under_way.join_next() => {
                let (key, outcome) = ended.context("the setup of a session")?;
                schedule.end(key, outcome);
            }
        }
    }
}

/// A session as it was when its setup began, and under what it may be changed.
struct Seen {
    record: Arc<SessionRecord>,
    fence: Fence,
}

impl Deref for Seen {
    type Target = SessionRecord;

    fn deref(&self) -> &SessionRecord {
        &self.record
    }
}

#[derive(Clone)]
struct Setup {
    shared: Shared,
    peers: Peers,
}

impl Setup {
    async fn set_up(&self, key: &Arc<str>, told: Option<Told>, failures: u32) -> Outcome {
        // Sessions that come to this replica are marked when they have been taken over.
        let Some(fence) = self.shared.custody.fence([&**key]) else { return Outcome::Settled };
        let Some(record) = self.shared.sessions.view().get(key) else { return Outcome::Settled };
        let record = Seen { record, fence };
        let session = &record.session;
        if session.progress != Progress::Pending {
            return Outcome::Settled;
        }
        let (written, outcome) = match self.assign(&record, failures).await {
            Ok(assigned) => (self.start(&record, assigned).await, Outcome::Settled),
            Err(Setback::Fail(error)) => {
                let failed = self.shared.fail(&record, error, record.fence.clone());
                (failed.await, Outcome::Settled)
            }
            Err(Setback::Wait(outage)) => self.tell(&record, &outage, told.clone()).await,
        };
        match written {
            Ok(()) => outcome,
            Err(Fault::Stale { .. }) => {
                tracing::info!(session = session.name, "another replica goes on with a session");
                Outcome::Settled
            }
            Err(fault) => {
                tracing::warn!(session = session.name, %fault, "a session could not be written, trying again");
                Outcome::Waits(told)
            }
        }
    }

    /// Assigns what the session intends, which is found and written down first unless that was done before.
    async fn assign(&self, record: &Seen, failures: u32) -> Result<Assigned, Setback> {
        let intent = match &record.intent {
            Some(intent) => Arc::clone(intent),
            None => {
                let planned = self.plan(record).await;
                planned.map_err(|setback| setback.followed(self.shared.compatibility, failures))?
            }
        };
        // A call cannot be fenced: whoever slept leaves it to the replica that has the session now.
        if !self.shared.custody.is_current(&record.fence) {
            return Err(Setback::from_mesh(DATABASE, Fault::stale("session-manager")));
        }
        self.peers.assign(&intent).await
    }

    /// Finds what is going to be assigned, and writes it down with whom the session leaves alone. The latter are
    /// written down also where nobody else is left.
    async fn plan(&self, record: &Seen) -> Result<Arc<AssignSessionRequest>, Setback> {
        let choice = choose(&self.shared, &self.peers, &record.session).await?;
        let left_out = Some(Arc::clone(&choice.left_out));
        match choice.plan(&self.peers, &record.session).await {
            Ok(intent) => {
                let intent = Arc::new(intent);
                let intended = Some(Arc::clone(&intent));
                let intend = |pending| SessionRecord { intent: intended, left_out, ..pending };
                self.note(record, intend).await?;
                failpoint::pass(format_args!("session.intended"));
                Ok(intent)
            }
            Err(Setback::Fail(error)) => {
                self.note(record, |pending| SessionRecord { left_out, ..pending }).await?;
                Err(Setback::Fail(error))
            }
            Err(Setback::Wait(outage)) => Err(Setback::Wait(outage)),
        }
    }

    /// Writes down what was found. Peers may have taken long to answer, and who deleted the session meanwhile wants
    /// no node to be touched.
    async fn note(
        &self,
        seen: &Seen,
        change: impl FnOnce(SessionRecord) -> SessionRecord + Send + 'static,
    ) -> Result<(), Setback> {
        let written = self.change(seen, change).await;
        match written.map_err(|fault| Setback::from_mesh(DATABASE, fault))? {
            true => Ok(()),
            false => Err(Setback::Fail("it was deleted or ended while it was set up".to_owned())),
        }
    }

    /// Lets the session run with its members.
    async fn start(&self, seen: &Seen, assigned: Assigned) -> Result<(), Fault> {
        let Assigned { members, revision } = assigned;
        // A running session may have as many members as there are components, whose ids are in memory already.
        let known =
            |id: ComponentId| self.shared.components.get(id.as_str()).map_or(id, |one| one.id.clone());
        let members: Vec<_> = members.into_iter().map(known).collect();
        tracing::info!(session = seen.session.name, members = members.len(), "session runs");
        let run = move |pending: SessionRecord| {
            let session = session::run(pending.session.clone(), members, revision);
            SessionRecord { left_out: None, ..pending }.with(session)
        };
        self.change(seen, run).await?;
        failpoint::pass(format_args!("session.running"));
        Ok(())
    }

    /// Tells people what the session waits for, unless its record says so already.
    async fn tell(&self, seen: &Seen, outage: &Outage, told: Option<Told>) -> (Result<(), Fault>, Outcome) {
        let shown = &seen.session.waiting_for;
        let Some(next) = Told::next(told.as_ref(), shown, outage, (now(), Instant::now())) else {
            return (Ok(()), Outcome::Waits(told));
        };
        let waiting_for = next.text.clone();
        tracing::warn!(session = seen.session.name, waiting_for, "a session has to wait");
        let wait = move |pending: SessionRecord| {
            let session = Session { waiting_for, ..pending.session.clone() };
            pending.with(session)
        };
        (self.change(seen, wait).await.map(drop), Outcome::Waits(Some(next)))
    }

    /// Changes the session that was seen if it is still there and pending, and tells whether it is.
    async fn change(
        &self,
        seen: &Seen,
        change: impl FnOnce(SessionRecord) -> SessionRecord + Send + 'static,
    ) -> Result<bool, Fault> {
        let (key, id) = (Arc::clone(&seen.key), seen.session.id.clone());
        let write = self.shared.sessions.write_fenced(seen.fence.clone(), move |draft| {
            let newest = draft.get(&key).filter(|newest| newest.is_still(&id, Progress::Pending));
            let still = newest.map(Arc::unwrap_or_clone);
            let pending = still.is_some();
            still.map(change).into_iter().for_each(|changed| draft.put(changed));
            Ok(pending)
        });
        write.await.map(|(pending, _revision)| pending)
    }
}
