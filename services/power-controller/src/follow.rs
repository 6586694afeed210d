//! Follows the transitions that the upstream took, until it has ended them.
//!
//! The result of a node is known long before the transition ends, and is used at once. But until the end the
//! upstream holds all of its nodes and refuses everything else that is asked of them.
//!
//! What is heard at the same time goes on together: one message about all nodes that are ready is one round of everything
//! that follows from it, with as few calls as there can be.

use std::{collections::HashSet, convert::Infallible, mem, sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{convert::time, lease::Fence, pause};
use domain::{component::Action, evaluation::NO_RESULTS_FROM, power, time::Timestamp};
use futures_util::future::join_all;
use proto::{
    component::ActionReport,
    power::{Delivery, Transition},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tracing::Instrument;

use crate::{
    act::Actor,
    convert,
    deliver::give_way,
    driver::Failure,
    journal::Lost,
    outcome::{self, News},
    plan,
    progress::Progress,
};

/// Looks at a time; the upstream's own limit of calls is lower.
const MOST_LOOKS: usize = 64;

/// Least time in which the answer to one look waits for those to others.
const MOMENT: Duration = Duration::from_millis(20);

/// What the upstream said of a transition.
struct Heard {
    transition: Transition,
    fence: Fence,
    began: Instant,
    asked_at: Timestamp,
    answer: Result<Progress, Failure>,
}

impl Heard {
    /// Whether it says the first thing about nodes, or the last: then others that were sent with the transition have
    /// something to say as well.
    fn is_turn(&self) -> bool {
        let answer = self.answer.as_ref();
        answer.is_ok_and(|progress| progress.ended || outcome::is_first(&self.transition, progress))
    }
}

/// What was learnt of a transition.
struct Learnt {
    transition: Transition,
    fence: Fence,
    asked_at: Timestamp,
    news: News,
    ended: bool,
}

/// Looks that are under way, and what was heard and not taken in yet.
#[derive(Default)]
struct Looks {
    /// Transitions that are looked at. Of two looks at once, the one that answers last might know less.
    at: HashSet<Arc<str>>,
    asked: JoinSet<(Arc<str>, Option<Heard>)>,
    heard: Vec<Heard>,
    /// Until when what was heard waits for more.
    until: Option<Instant>,
    taken: JoinSet<Vec<Arc<str>>>,
}

impl Looks {
    fn begin(&mut self, actor: &Arc<Actor>, id: Arc<str>) -> bool {
        if !self.at.insert(Arc::clone(&id)) {
            return false;
        }
        let actor = Arc::clone(actor);
        let look = async move {
            let heard = actor.look(&id).await;
            (id, heard)
        };
        self.asked.spawn(look.in_current_span());
        true
    }

    fn hear(&mut self, actor: &Arc<Actor>, id: &str, heard: Option<Heard>) {
        let Some(heard) = heard else {
            actor.following.end(id);
            self.at.remove(id);
            return;
        };
        if heard.is_turn() {
            actor.queues.unfollowed.mark(actor.following.sent_with(&heard.transition));
        }
        // The others were asked for as much, and so take about as long.
        let patience = (heard.began.elapsed() * 2).min(actor.following.patience()).max(MOMENT);
        self.until.get_or_insert_with(|| Instant::now() + patience);
        self.heard.push(heard);
    }

    /// When to take in what was heard; none as long as that is nothing.
    fn due(&self) -> Option<Instant> {
        self.until.map(|until| if self.asked.is_empty() { Instant::now() } else { until })
    }

    fn take(&mut self, actor: &Arc<Actor>) {
        self.until = None;
        let (actor, heard) = (Arc::clone(actor), mem::take(&mut self.heard));
        let take = async move {
            let ids = heard.iter().map(|one| one.transition.id.as_str().into()).collect();
            actor.take(heard).await;
            ids
        };
        self.taken.spawn(take.in_current_span());
    }
}

impl Actor {
    /// Looks at open transitions whenever their time has come.
    pub(crate) async fn follow(self: Arc<Self>) -> anyhow::Result<Infallible> {
        let mut looks = Looks::default();
        loop {
            let due = looks.due();
            tokio::select! {
                ids = self.queues.unfollowed.next(MOST_LOOKS), if looks.at.len() < MOST_LOOKS => {
                    for id in ids {
                        if !looks.begin(&self, Arc::clone(&id)) {
                            self.look_later(&id);
                        }
                    }
                }
                Some(look) = looks.asked.join_next() => {
                    let (id, heard) = look.context("a look at a transition")?;
                    looks.hear(&self, &id, heard);
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => looks.take(&self),
                Some(taken) = looks.taken.join_next() => {
                    for id in taken.context("what was heard of transitions")? {
                        looks.at.remove(&id);
                    }
                }
            }
        }
    }

    pub(crate) fn look_later(&self, id: &str) {
        self.queues.unfollowed.mark_at(id.into(), self.following.turn());
    }

    /// Asks how a transition goes; none if it is not ours to follow, or over.
    async fn look(&self, id: &str) -> Option<Heard> {
        // Before the record is read, so that nothing is decided by an older one. What comes to this replica is marked
        // when it has been taken over.
        let fence = self.known.custody.fence([id])?;
        let transition = self.journal.get(id).filter(|one| one.delivery() == Delivery::Accepted)?;
        self.following.begin(&transition);
        if self.is_overdue(&transition) {
            self.abort(&transition, &fence).await;
        }
        let (asked_at, began) = (time::now(), Instant::now());
        let answer = self.driver.follow(&transition.upstream_id, self.known.upstream_deadline()).await;
        Some(Heard { transition: Transition::clone(&transition), fence, began, asked_at, answer })
    }

    /// What the upstream tells is reported before it is recorded, so that a crash in between repeats it.
    async fn take(&self, heard: Vec<Heard>) {
        let (mut learnt, mut unheard) = (Vec::new(), Vec::new());
        for Heard { transition, fence, asked_at, answer, .. } in heard {
            match answer {
                Ok(progress) => learnt.push(self.learn(transition, progress, asked_at, fence).await),
                Err(failure) => unheard.push((transition, failure, fence)),
            }
        }
        self.spread(&learnt).await;
        let record = learnt.into_iter().map(|one| async {
            let id = one.transition.id.clone();
            give_way(&id, self.record(one).await);
        });
        let wait = unheard.into_iter().map(|(transition, failure, fence)| async move {
            let id = transition.id.clone();
            give_way(&id, self.unheard(transition, &failure, &fence).await);
        });
        tokio::join!(join_all(record), join_all(wait));
    }

    async fn learn(
        &self,
        mut transition: Transition,
        progress: Progress,
        asked_at: Timestamp,
        fence: Fence,
    ) -> Learnt {
        self.notes.heard(&transition.id);
        self.show_results_again(&transition).await;
        let ended = progress.ended;
        let news = outcome::learn(&mut transition, progress);
        Learnt { transition, fence, asked_at, news, ended }
    }

    /// Records what was learnt, and sees to it that the transition is looked at again unless it is over.
    async fn record(&self, learnt: Learnt) -> Result<(), Lost> {
        let Learnt { transition, fence, news, ended, .. } = learnt;
        if ended {
            return self.end(transition, "", &fence).await;
        }
        if power::gives_up(convert::sent_at(&transition), self.driver.task_deadline(), true, time::now()) {
            return self.end(transition, "the upstream did not end it in time", &fence).await;
        }
        self.effects.follow(&transition, true);
        self.look_later(&transition.id);
        if !news.is_empty() {
            self.journal.put(transition, &fence).await?;
        }
        Ok(())
    }

    /// Tells those who have to know what became of members.
    async fn spread(&self, learnt: &[Learnt]) {
        let (mut failures, mut shown) = (Vec::new(), Vec::new());
        for Learnt { transition, news, asked_at, .. } in learnt {
            for member in &news.failed {
                let (transition, node, error) = (&transition.id, &member.id, &member.error);
                tracing::debug!(transition, node, error, "task failed");
            }
            // What we ended ourselves is no failure of theirs: the next action is due already.
            if !self.notes.is_aborted(&transition.id) {
                let failed = news.failed.iter().map(|member| (member, member.error.as_str()));
                failures.extend(convert::failures(transition, failed));
            }
            if let Some(action) = convert::action(transition) {
                let succeeded = news.succeeded.iter();
                shown.extend(succeeded.filter_map(|member| convert::shown(action, member, *asked_at)));
            }
        }
        self.reporter.report(failures).await;
        for Learnt { news, .. } in learnt {
            convert::component_ids(&news.failed).for_each(|id| self.effects.cancel(&id));
            self.queues.unread.mark(convert::component_ids(&news.failed));
        }
        if !shown.is_empty() {
            // Nobody listens only when the process ends, and after a restart everything is read anew.
            let _stopping = self.results.send(shown).await;
        }
    }

    /// Whether nodes are to be forced off that the upstream is still asking to shut down, and it does not know.
    fn is_overdue(&self, transition: &Transition) -> bool {
        if convert::action(transition) != Some(Action::PoweringOffGracefully)
            || self.notes.knows_of_abort(&transition.id)
        {
            return false;
        }
        let (options, now) = (self.known.options.in_force(), time::now());
        transition.members.iter().any(|member| {
            self.known.components.get(&member.id).is_some_and(|component| {
                plan::is_overdue(&component, &self.known.power(&component), member, &options, now)
            })
        })
    }

    /// Has the upstream end the transition: while it works on that it takes nothing else for the nodes.
    async fn abort(&self, transition: &Transition, fence: &Fence) {
        let (id, upstream_id) = (&transition.id, &transition.upstream_id);
        tracing::info!(transition = id, upstream_id, "power-off takes too long, ending it");
        let (deadline, still_ours) = (self.known.upstream_deadline(), self.known.still_ours(fence));
        let answer = self.driver.abort(upstream_id, deadline, still_ours).await;
        if let Err(error) = &answer {
            tracing::warn!(transition = id, upstream_id, %error, "cannot end the transition");
        }
        self.notes.aborted(id, !answer.is_err_and(|failure| may_be_asked_again(&failure)));
    }

    /// The upstream has ended the transition, or will never say so. Of members without a result their power
    /// tells.
    async fn end(&self, transition: Transition, error: &str, fence: &Fence) -> Result<(), Lost> {
        let unresolved = transition.members.iter().filter(|member| outcome::is_unresolved(member)).count();
        let nodes = transition.members.len();
        tracing::info!(transition = transition.id, error, nodes, unresolved, "transition finished");
        self.effects.ended(&transition, time::now());
        let finished =
            Transition { delivery: Delivery::Finished.into(), error: error.to_owned(), ..transition };
        self.finish(finished, fence).await
    }

    /// The upstream did not say how the transition goes. Until it does, the power of the nodes is read.
    async fn unheard(&self, transition: Transition, failure: &Failure, fence: &Fence) -> Result<(), Lost> {
        let failures = self.notes.failed(&transition.id);
        if failures == 1 {
            tracing::warn!(transition = transition.id, error = %failure, "cannot follow a transition, trying again");
            self.effects.follow(&transition, false);
            self.queues.unread.mark(convert::component_ids(&transition.members));
        } else {
            self.show_no_results(&transition, failure).await;
        }
        if power::gives_up(convert::sent_at(&transition), self.driver.task_deadline(), false, time::now()) {
            self.show_results_again(&transition).await;
            return self.end(transition, &failure.to_string(), fence).await;
        }
        let at = self.following.turn().max(Instant::now() + pause::after(failures));
        self.queues.unfollowed.mark_at(transition.id.as_str().into(), at);
        Ok(())
    }
}

impl Actor {
    /// Members of which nothing is known show why. A single failure is not worth thousands of records.
    async fn show_no_results(&self, transition: &Transition, failure: &Failure) {
        let text = format!("{NO_RESULTS_FROM}{failure}");
        if self.notes.show(&transition.id, &text, Instant::now()) {
            self.reporter.report(reports_of_unresolved(transition, &text, |_| true)).await;
        }
    }

    /// Takes the texts of [`Self::show_no_results`] away. A restart forgets the note, the components do not.
    async fn show_results_again(&self, transition: &Transition) {
        let shows = |id: &str| {
            let component = self.known.components.get(id);
            component.is_some_and(|component| component.power_error.starts_with(NO_RESULTS_FROM))
        };
        let noted = self.notes.take_shown(&transition.id).starts_with(NO_RESULTS_FROM);
        self.reporter.report(reports_of_unresolved(transition, "", |id| noted || shows(id))).await;
    }
}

/// What to tell the registry about members without a result.
fn reports_of_unresolved(
    transition: &Transition,
    error: &str,
    wanted: impl Fn(&str) -> bool,
) -> Vec<ActionReport> {
    let members = transition.members.iter();
    let unresolved = members.filter(|member| outcome::is_unresolved(member) && wanted(&member.id));
    unresolved.map(|member| convert::told(transition, member, error)).collect()
}

/// Whether a call that failed may do better later on.
fn may_be_asked_again(failure: &Failure) -> bool {
    match failure {
        Failure::Unreachable(_) | Failure::Ambiguous(_) => true,
        Failure::Refused(_) | Failure::Denied(_) => false,
    }
}
