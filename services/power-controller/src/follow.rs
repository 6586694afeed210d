//! Follows the transitions that the upstream took, until it has ended them.
//!
//! The result of a node is known long before the transition ends, and is used at once. But until the end the
//! upstream holds all of its nodes and refuses everything else that is asked of them.

use std::{collections::HashSet, convert::Infallible, sync::Arc};

use anyhow::Context as _;
use chassis::{convert::time, lease::Fence, pause};
use domain::{component::Action, evaluation::NO_RESULTS_FROM, power, time::Timestamp};
use proto::{
    component::ActionReport,
    power::{Delivery, Transition, TransitionMember},
};
use tokio::{task::JoinSet, time::Instant};
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

impl Actor {
    /// Looks at open transitions whenever their time has come.
    pub(crate) async fn follow(self: Arc<Self>) -> anyhow::Result<Infallible> {
        let (mut looks, mut looked_at) = (JoinSet::new(), HashSet::new());
        loop {
            tokio::select! {
                ids = self.queues.unfollowed.next(MOST_LOOKS), if looks.len() < MOST_LOOKS => {
                    for id in ids {
                        // Of two looks at once, the one that answers last might know less.
                        if !looked_at.insert(Arc::clone(&id)) {
                            self.queues.unfollowed.mark_at(id, Instant::now() + self.follow_pause);
                            continue;
                        }
                        let actor = Arc::clone(&self);
                        let look = async move {
                            give_way(&id, actor.look(&id).await);
                            id
                        };
                        looks.spawn(look.in_current_span());
                    }
                }
                Some(ended) = looks.join_next() => {
                    looked_at.remove(&ended.context("a look at a transition")?);
                }
            }
        }
    }

    async fn look(&self, id: &str) -> Result<(), Lost> {
        // Before the record is read, so that nothing is decided by an older one. What comes to this replica is marked
        // when it has been taken over.
        let Some(fence) = self.known.custody.fence([id]) else { return Ok(()) };
        let Some(transition) = self.journal.get(id).filter(|one| one.delivery() == Delivery::Accepted) else {
            return Ok(());
        };
        if self.is_overdue(&transition) {
            self.abort(&transition, &fence).await;
        }
        let asked_at = time::now();
        match self.driver.follow(&transition.upstream_id, self.known.upstream_deadline()).await {
            Ok(progress) => {
                self.take_progress(Transition::clone(&transition), progress, asked_at, &fence).await
            }
            Err(failure) => self.unheard(Transition::clone(&transition), &failure, &fence).await,
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

    /// What the upstream tells is reported before it is recorded, so that a crash in between repeats it.
    async fn take_progress(
        &self,
        mut transition: Transition,
        progress: Progress,
        asked_at: Timestamp,
        fence: &Fence,
    ) -> Result<(), Lost> {
        self.notes.heard(&transition.id);
        self.show_results_again(&transition).await;
        let ended = progress.ended;
        let news = outcome::learn(&mut transition, progress);
        self.spread(&transition, &news, asked_at).await;
        if ended {
            return self.end(transition, "", fence).await;
        }
        if power::gives_up(convert::sent_at(&transition), self.driver.task_deadline(), true, time::now()) {
            return self.end(transition, "the upstream did not end it in time", fence).await;
        }
        self.effects.follow(&transition, true);
        self.queues.unfollowed.mark_at(transition.id.as_str().into(), Instant::now() + self.follow_pause);
        if !news.is_empty() {
            self.journal.put(transition, fence).await?;
        }
        Ok(())
    }

    /// Tells those who have to know what became of members.
    async fn spread(&self, transition: &Transition, news: &News, asked_at: Timestamp) {
        for member in &news.failed {
            tracing::debug!(
                transition = transition.id,
                node = member.id,
                error = member.error,
                "task failed"
            );
        }
        // What we ended ourselves is no failure of theirs: the next action is due already.
        if !self.notes.is_aborted(&transition.id) {
            let failed = news.failed.iter().map(|member| (member, member.error.as_str()));
            self.reporter.report(convert::failures(transition, failed)).await;
        }
        convert::component_ids(&news.failed).for_each(|id| self.effects.cancel(&id));
        self.queues.unread.mark(convert::component_ids(&news.failed));
        self.show_power(transition, &news.succeeded, asked_at).await;
    }

    async fn show_power(&self, transition: &Transition, members: &[TransitionMember], at: Timestamp) {
        let Some(action) = convert::action(transition).filter(|_| !members.is_empty()) else { return };
        let shown = members.iter().filter_map(|member| convert::shown(action, member, at)).collect();
        // Nobody listens only when the process ends, and after a restart everything is read anew.
        let _stopping = self.results.send(shown).await;
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
        let pause = pause::after(failures).max(self.follow_pause);
        self.queues.unfollowed.mark_at(transition.id.as_str().into(), Instant::now() + pause);
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
