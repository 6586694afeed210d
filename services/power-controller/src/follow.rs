//! Follows the transitions that the upstream took, until it has ended them.
//!
//! The result of a node is known long before the transition ends, and is used at once. But until the end the upstream
//! holds all nodes of the transition and refuses every other action on them.
//!
//! Answers that arrive at the same time are processed together: one message about all nodes that are ready leads to one
//! round of reports and commits, with as few calls as possible.

use std::{collections::HashSet, convert::Infallible, mem, sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{
    mesh::time,
    process::{clock, pause},
};
use domain::{
    boot::{component::Action, power},
    core::{
        time::Timestamp,
        trouble::{Trouble, TroubleKind},
    },
};
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
    driver::{Accepted, Failure, progress::Progress},
    engine::Moment,
    journal::Lost,
    outcome::{self, News},
    plan::{self, ReadBack, Window},
};

/// Polls at a time; the upstream's own limit of calls is lower.
const MOST_LOOKS: usize = 64;

/// Least time for which the answer to one poll waits for answers to others.
const MOMENT: Duration = Duration::from_millis(20);

/// Answer of the upstream about a transition.
struct Heard {
    transition: Transition,
    began: Instant,
    asked_at: Timestamp,
    answer: Result<Progress, Failure>,
}

impl Heard {
    /// Returns whether the answer has the first results of the transition, or its end: then others that were sent with
    /// the transition have news as well.
    fn is_turn(&self) -> bool {
        let answer = self.answer.as_ref();
        answer.is_ok_and(|progress| progress.ended || outcome::is_first(&self.transition, progress))
    }
}

/// Knowledge gained from a poll of a transition.
struct Learnt {
    transition: Transition,
    asked_at: Timestamp,
    news: News,
    ended: bool,
}

impl Learnt {
    /// Records which of `holders` hold members that the upstream could not reserve. Those members are held, not
    /// refused, even if their holder is unknown.
    fn note_holders(&mut self, holders: &[Accepted]) {
        let Self { transition, news, .. } = self;
        for member in transition.members.iter_mut().filter(|one| news.reserved.contains(&one.id)) {
            let holds = |one: &&Accepted| one.id != transition.upstream_id && one.ids.contains(&member.id);
            if let Some(holder) = holders.iter().find(holds) {
                tracing::info!(node = member.id, holder = holder.id, "node is held by another transition");
                member.held_by.clone_from(&holder.id);
                member.reservations = 0;
            } else if member.reservations == 1 {
                tracing::info!(node = member.id, "node is held by somebody unknown");
            }
        }
        news.held = transition.members.iter().filter(|member| outcome::is_held(member)).cloned().collect();
        let held: HashSet<_> = news.held.iter().map(|member| &member.id).collect();
        news.refused.retain(|member| !held.contains(&member.id));
    }
}

/// Polls under way, and answers that are not processed yet.
#[derive(Default)]
struct Looks {
    /// Transitions being polled. Of two concurrent polls, the one that answers last might know less.
    at: HashSet<Arc<str>>,
    asked: JoinSet<(Arc<str>, Option<Heard>)>,
    heard: Vec<Heard>,
    /// Time until which answers wait for more.
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
            actor.engine.lock().transitions.end_polls(id);
            self.at.remove(id);
            return;
        };
        if heard.is_turn() {
            actor.queues.unfollowed.mark(actor.sent_with(&heard.transition));
        }
        // The other transitions have the same action, and so take about as long.
        let patience = (heard.began.elapsed() * 2).min(actor.patience()).max(MOMENT);
        self.until.get_or_insert_with(|| Instant::now() + patience);
        self.heard.push(heard);
    }

    /// Returns when to process the answers; `None` while there are none.
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
    /// Polls open transitions when they are due.
    pub(crate) async fn follow(self: Arc<Self>) -> anyhow::Result<Infallible> {
        let mut looks = Looks::default();
        loop {
            let due = looks.due();
            tokio::select! {
                ids = self.queues.unfollowed.next(MOST_LOOKS), if looks.at.len() < MOST_LOOKS => {
                    for id in ids {
                        if !looks.begin(&self, Arc::clone(&id)) {
                            self.queues.unfollowed.mark_at(id, Instant::now() + self.patience());
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

    /// Returns the transitions that were sent together with this one.
    fn sent_with(&self, transition: &Transition) -> Vec<Arc<str>> {
        let engine = self.engine.lock();
        engine.transitions.sent_with(transition, engine.polls.patience())
    }

    fn patience(&self) -> Duration {
        self.engine.lock().polls.patience()
    }

    pub(crate) fn look_later(&self, transition: &Transition) {
        let at = self.engine.lock().polls.turn(transition, Moment::now()).into();
        self.queues.unfollowed.mark_at(transition.id.as_str().into(), at);
    }

    /// Asks for the progress of a transition; `None` if the transition is over.
    async fn look(&self, id: &str) -> Option<Heard> {
        let transition = self.journal.get(id).filter(|one| one.delivery() == Delivery::Accepted)?;
        let mut transition = Transition::clone(&transition);
        if transition.abandoned_at.is_some() {
            give_way(id, self.abandon(transition).await);
            return None;
        }
        self.engine.lock().transitions.begin_polls(&transition);
        // A transition is withdrawn only after it was read back: the upstream's record might be of another transition.
        if self.engine.lock().transitions.is_read_back(id) && self.is_to_be_withdrawn(&transition) {
            let withdrawn = self.withdraw_upstream(transition).await;
            transition = withdrawn.inspect_err(|_| give_way(id, Err(Lost))).ok()?;
        }
        let (asked_at, began) = (clock::now(), Instant::now());
        let mut answer = self.driver.follow(&transition.upstream_id, self.known.upstream_deadline()).await;
        if let Ok(progress) = &mut answer
            && !self.engine.lock().transitions.is_read_back(id)
        {
            let record = progress.record.as_ref();
            match plan::read_back(&transition, record, &self.taken_within(&transition)) {
                ReadBack::Same => self.engine.lock().transitions.note_read_back(id),
                ReadBack::Unclear => {
                    progress.tasks.clear();
                    // Action and time are right, and a transition that never begins has to be withdrawn too.
                    let begun = convert::begun_at(&transition);
                    if power::outlasts(begun, self.driver.task_deadline(), asked_at) {
                        self.engine.lock().transitions.note_read_back(id);
                    }
                }
                ReadBack::Other => {
                    give_way(id, self.distrust(transition).await);
                    return None;
                }
            }
        }
        Some(Heard { transition, began, asked_at, answer })
    }

    /// Returns the time in which the upstream took an accepted transition.
    fn taken_within(&self, transition: &Transition) -> Window {
        let until = transition.accepted_at.map_or(Timestamp(i64::MAX), time::from_wire);
        Window { from: convert::earliest(transition), until, clock: self.driver.clock() }
    }

    /// Handles an upstream record under our id that is of another transition: an answer went to the wrong caller, or is
    /// wrong. Our transition is in doubt again, and the other one is not touched.
    async fn distrust(&self, transition: Transition) -> Result<(), Lost> {
        let (id, upstream_id) = (&transition.id, &transition.upstream_id);
        tracing::warn!(
            transition = id,
            upstream_id,
            "the upstream has another transition under the id that it gave"
        );
        let error = format!(
            "the record of it: the upstream answered with transition {upstream_id}, which is another one"
        );
        self.engine.lock().transitions.end_polls(id);
        self.engine.lock().nodes.follow(&transition, false);
        let nameless = Transition { upstream_id: String::new(), ..transition };
        self.in_doubt(&nameless, &error).await
    }

    /// Processes answers. Each result is reported before it is recorded, so that a crash in between repeats the report.
    async fn take(&self, heard: Vec<Heard>) {
        let _turn = self.known.term.turn("follow");
        let (mut learnt, mut unheard) = (Vec::new(), Vec::new());
        for Heard { transition, asked_at, answer, .. } in heard {
            match answer {
                Ok(progress) => learnt.push(self.learn(transition, progress, asked_at).await),
                Err(failure) => unheard.push((transition, failure)),
            }
        }
        self.learn_holders(&mut learnt).await;
        self.spread(&learnt).await;
        let record = learnt.into_iter().map(|one| async {
            let id = one.transition.id.clone();
            give_way(&id, self.record(one).await);
        });
        let wait = unheard
            .into_iter()
            .map(|(transition, failure)| async move { self.unheard(transition, &failure).await });
        tokio::join!(join_all(record), join_all(wait));
    }

    async fn learn(&self, mut transition: Transition, progress: Progress, asked_at: Timestamp) -> Learnt {
        self.engine.lock().transitions.heard(&transition.id);
        if transition.withdrawn_at.is_none() {
            self.show_results_again(&transition).await;
        }
        let ended = progress.ended;
        let news = outcome::learn(&mut transition, progress);
        Learnt { transition, asked_at, news, ended }
    }

    /// Finds out which transitions of the upstream hold the members that it could not reserve. One list serves all
    /// polls. Such members have not lost their attempt: it is made once they are released, or after a pause if their
    /// holder is unknown.
    async fn learn_holders(&self, learnt: &mut [Learnt]) {
        let reserved: HashSet<_> = learnt.iter().flat_map(|one| &one.news.reserved).cloned().collect();
        if reserved.is_empty() {
            return;
        }
        let holders = match self.driver.holders(&reserved, self.known.upstream_deadline()).await {
            Ok(holders) => {
                self.holders_known();
                holders
            }
            Err(failure) => {
                self.holders_unknown(reserved.len(), &failure);
                Vec::new()
            }
        };
        let lacking = learnt.iter_mut().filter(|one| !one.news.reserved.is_empty());
        lacking.for_each(|one| one.note_holders(&holders));
    }

    /// Records the results of a poll, and schedules the next one unless the transition is over.
    async fn record(&self, learnt: Learnt) -> Result<(), Lost> {
        let Learnt { transition, news, ended, .. } = learnt;
        if ended {
            self.show_results_again(&transition).await;
            return self.end(transition, "").await;
        }
        self.engine.lock().nodes.follow(&transition, true);
        self.look_later(&transition);
        if !news.is_empty() {
            self.journal.put(transition).await?;
        }
        Ok(())
    }

    /// Distributes the outcomes of members: to the registry, the pending effects and the task that reads power.
    async fn spread(&self, learnt: &[Learnt]) {
        let (mut failures, mut shown) = (Vec::new(), Vec::new());
        for Learnt { transition, news, asked_at, .. } in learnt {
            for member in &news.failed {
                let (transition, node, error) = (&transition.id, &member.id, &member.error);
                tracing::debug!(transition, node, error, "task failed");
            }
            // A withdrawn member has not failed, because its next action is due already. A shutdown that never reached
            // its node has failed: otherwise the node would be forced off without having been asked.
            let ended = news.failed.iter().filter(|member| {
                transition.withdrawn_at.is_none()
                    || convert::is_unasked_shutdown(transition, member, &news.asked)
            });
            failures.extend(convert::ended_without_effect(transition, ended, &news.asked));
            let refused = news.refused.iter().map(|member| (member, member.error.as_str()));
            failures.extend(convert::failures(transition, refused));
            failures.extend(news.held.iter().map(|member| {
                convert::told(transition, member, Some(&convert::waiting_for_holder(&member.held_by)))
            }));
            if let Some(action) = convert::action(transition) {
                let succeeded = news.succeeded.iter();
                shown.extend(succeeded.filter_map(|member| convert::shown(action, member, *asked_at)));
            }
        }
        self.reporter.report(failures).await;
        for Learnt { news, .. } in learnt {
            self.engine.lock().nodes.fail(&news.failed, clock::now());
            convert::component_ids(&news.refused).for_each(|id| self.engine.lock().nodes.cancel(&id));
            convert::component_ids(&news.held).for_each(|id| self.engine.lock().nodes.cancel(&id));
            self.queues.unread.mark(convert::component_ids(&news.failed));
            self.queues.unread.mark(convert::component_ids(&news.refused));
        }
        if !shown.is_empty() {
            // The receiver is gone only when the process ends, and after a restart all power is read again.
            let _stopping = self.results.send(shown).await;
        }
    }

    /// Returns whether the upstream is to be asked now to end the transition: it has outlasted its time, or one of its
    /// nodes is to be forced off.
    fn is_to_be_withdrawn(&self, transition: &Transition) -> bool {
        if !self.engine.lock().transitions.withdrawal_is_due(&transition.id, Instant::now().into_std()) {
            return false;
        }
        let (options, now) = (self.known.options.in_force(), clock::now());
        if transition.withdrawn_at.is_some()
            || power::outlasts(convert::begun_at(transition), self.driver.task_deadline(), now)
        {
            return true;
        }
        convert::action(transition) == Some(Action::PoweringOffGracefully)
            && transition.members.iter().any(|member| {
                self.known.components.get(&member.id).is_some_and(|component| {
                    plan::is_overdue(&component, &self.known.power(&component), member, &options, now)
                })
            })
    }

    /// Asks the upstream to end the transition. Until the upstream reports the end, the transition is open and no other
    /// action is requested for its nodes, however long that takes.
    async fn withdraw_upstream(&self, mut transition: Transition) -> Result<Transition, Lost> {
        let (id, upstream_id) = (transition.id.clone(), transition.upstream_id.clone());
        if transition.withdrawn_at.is_none() {
            tracing::warn!(transition = id, upstream_id, "transition outlasts its time, withdrawing it");
            transition.withdrawn_at = Some(time::to_wire(clock::now()));
            self.journal.put(transition.clone()).await?;
            let trouble = convert::waiting_for_end(&transition, self.driver.aborts());
            self.show_unresolved(&transition, &trouble).await;
        }
        let (deadline, still_ours) = (self.known.upstream_deadline(), self.known.still_ours());
        let answer = self.driver.abort(&upstream_id, deadline, still_ours).await;
        match answer {
            Ok(()) => {
                if let Some(failures) = self.engine.lock().withdrawals.ends() {
                    tracing::info!(failures, "transitions can be withdrawn again");
                }
                self.engine.lock().transitions.withdrawal_heard(&id, Instant::now().into_std());
            }
            Err(failure) => {
                if self.engine.lock().withdrawals.begins() {
                    tracing::warn!(transition = id, upstream_id, %failure, "cannot withdraw the transition");
                } else {
                    tracing::debug!(transition = id, upstream_id, %failure, "still cannot withdraw the transition");
                }
                self.show_unresolved(&transition, &convert::not_withdrawn(&transition, &failure)).await;
                if !may_be_asked_again(&failure) {
                    self.engine.lock().transitions.withdrawal_heard(&id, Instant::now().into_std());
                }
            }
        }
        Ok(transition)
    }

    /// Ends a transition. The power of members without a result shows once it was read again.
    pub(crate) async fn end(&self, transition: Transition, error: &str) -> Result<(), Lost> {
        let unresolved = transition.members.iter().filter(|member| outcome::is_unresolved(member)).count();
        let nodes = transition.members.len();
        tracing::info!(transition = transition.id, error, nodes, unresolved, "transition finished");
        // Held members continue their wait in another transition.
        let over = transition.members.iter().filter(|member| !outcome::is_held(member));
        let over = over.filter(|member| self.shows_wait(&transition, member));
        self.reporter.report(over.map(|member| convert::told(&transition, member, None)).collect()).await;
        self.engine.lock().nodes.ended(&transition, clock::now());
        self.engine.lock().nodes.leave_open(&transition, Moment::now());
        let finished = convert::with_trouble(transition, Trouble::failed(error).as_ref());
        let finished = Transition { delivery: Delivery::Finished.into(), ..finished };
        self.finish(finished).await
    }

    /// Handles a failed poll. Until polls succeed again, the power of the nodes is read.
    async fn unheard(&self, transition: Transition, failure: &Failure) {
        let failures = self.engine.lock().transitions.unheard(&transition.id, &failure.to_string());
        if failures == 1 {
            tracing::warn!(transition = transition.id, error = %failure, "cannot follow a transition, trying again");
            self.engine.lock().nodes.follow(&transition, false);
            self.queues.unread.mark(convert::component_ids(&transition.members));
        } else {
            self.show_unresolved(&transition, &Trouble::no_results_from(failure)).await;
        }
        let turn = Instant::from(self.engine.lock().polls.turn(&transition, Moment::now()));
        let at = turn.max(Instant::now() + pause::after(failures));
        self.queues.unfollowed.mark_at(transition.id.as_str().into(), at);
    }
}

impl Actor {
    /// Shows a trouble on the members without a result, unless they show it already, or began to show another one only
    /// a moment ago: a single failure is not worth thousands of records.
    async fn show_unresolved(&self, transition: &Transition, trouble: &Trouble) {
        if self.engine.lock().transitions.show(&transition.id, trouble, Instant::now().into_std()) {
            self.reporter.report(reports_of_unresolved(transition, Some(trouble), |_| true)).await;
        }
    }

    /// Clears the texts of [`Self::show_unresolved`]. A restart forgets the note about them, the components do not.
    pub(crate) async fn show_results_again(&self, transition: &Transition) {
        let shows = |id: &str| {
            let component = self.known.components.get(id);
            component.is_some_and(|one| one.power_trouble_kind() == Some(TroubleKind::NoResults))
        };
        let shown = self.engine.lock().transitions.take_shown(&transition.id);
        let noted = shown.is_some_and(|shown| shown.kind() == TroubleKind::NoResults);
        self.reporter.report(reports_of_unresolved(transition, None, |id| noted || shows(id))).await;
    }
}

/// Returns reports about members without a result.
fn reports_of_unresolved(
    transition: &Transition,
    trouble: Option<&Trouble>,
    wanted: impl Fn(&str) -> bool,
) -> Vec<ActionReport> {
    let members = transition.members.iter();
    let unresolved = members.filter(|member| outcome::is_unresolved(member) && wanted(&member.id));
    unresolved.map(|member| convert::told(transition, member, trouble)).collect()
}

/// Returns whether a failed call may succeed later.
fn may_be_asked_again(failure: &Failure) -> bool {
    match failure {
        Failure::Unreachable(_) | Failure::Ambiguous(_) => true,
        Failure::Refused(_) | Failure::TooLarge(_) | Failure::Denied(_) => false,
    }
}
