//! Progress of a transition: acceptance, commands to the hardware, results, end.
//!
//! As in the real service, nodes are examined only after the request was answered; each tier ends at a check that finds
//! all its nodes done or the time up; and a node stays reserved until the whole transition is over.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::{
    power::AgendaStep,
    transition::{
        CommandTier, NodeTask, PowerOperation, PowerTransition, TaskDeadline, TaskStatus, TransitionStatus,
    },
};
use crate::{history::EventKind, state::MachineState, xname};

const NOT_ACHIEVED: &str = "Failed to achieve transition";

/// First decision on a task, when its transition begins.
enum TaskVerdict {
    /// No command: the node is in the desired state.
    Done,
    /// The node is reserved and gets the command.
    Goes,
    /// The hardware does not support the operation.
    Unsupported(String),
    /// The task fails for this reason.
    Fails(&'static str),
}

impl MachineState {
    /// Returns whether the node was on when the power service read it last.
    pub(super) fn reads_on(&self, position: usize) -> bool {
        self.power.reading(self.now, position, self.machine.nodes()[position].is_on())
    }

    /// Returns the time until the power service reads the hardware again.
    pub(crate) fn until_reading(&self) -> Duration {
        self.power.next_reading(self.now).saturating_sub(self.now)
    }

    /// Accepts a transition and returns its id; results show later.
    pub(super) fn accept(
        &mut self,
        operation: PowerOperation,
        deadline: TaskDeadline,
        xnames: Vec<String>,
    ) -> Arc<str> {
        let id: Arc<str> = uuid::Uuid::new_v4().to_string().into();
        let mut tasks: Vec<NodeTask> = Vec::with_capacity(xnames.len());
        let mut places = HashMap::new();
        let mut seen = std::collections::HashSet::new();
        for xname in xnames.into_iter().filter(|xname| seen.insert(xname.clone())) {
            let position = self.machine.position(&xname);
            places.extend(position.map(|position| (position, tasks.len())));
            tasks.push(NodeTask {
                xname: xname.into(),
                task_status: TaskStatus::New,
                task_status_description: "Gathering data".into(),
                error: "".into(),
                position,
                waiting: false,
                overdue: false,
                sent: false,
                reserved: false,
            });
        }
        let positions: Vec<_> = tasks.iter().filter_map(|task| task.position).collect();
        let number = self.power.keep(PowerTransition {
            id: id.clone(),
            operation,
            deadline,
            created: self.now,
            status: TransitionStatus::New,
            tasks,
            places,
            tier: 0,
            overdue_at: None,
            worker_died: None,
        });
        for position in positions {
            self.record(number, position, &id, operation);
        }
        self.power.agenda.insert((self.now, number, AgendaStep::Begin));
        id
    }

    /// Kills the worker of a transition. The service resumes the transition once the reaper finds it abandoned.
    pub(super) fn kill_worker(&mut self, id: &str) {
        if let Some(number) = self.power.number(id) {
            self.power.kill(number, self.now);
        }
    }

    /// Kills the workers of all transitions.
    pub(crate) fn kill_workers(&mut self) {
        self.power.kill_all(self.now);
    }

    /// Stops the service and starts it again after `down`. Transitions survive; the first reaper round resumes the open
    /// ones.
    pub(crate) fn restart_power_service(&mut self, down: Duration) {
        self.power.restart(self.now, self.now + down);
    }

    /// Stops the readings of hardware for `pause`.
    pub(crate) fn pause_sampling(&mut self, pause: Duration) {
        self.power.pause_sampling(self.now, self.now + pause);
    }

    /// Counts a request for a node, and whether it crosses or overlaps an unfinished one.
    fn record(&mut self, number: u64, position: usize, id: &Arc<str>, operation: PowerOperation) {
        let earlier = self.power.open[position].iter().filter_map(|number| self.power.get(*number));
        let (same, opposite): (Vec<bool>, Vec<bool>) =
            earlier.map(|other| other.operation.ends_on() == operation.ends_on()).partition(|same| *same);
        let record = &mut self.power.records[position];
        record.overlaps += u32::from(!same.is_empty());
        record.crossings += u32::from(!opposite.is_empty());
        *match operation {
            PowerOperation::On => &mut record.on,
            PowerOperation::Off | PowerOperation::SoftOff => &mut record.soft_off,
            PowerOperation::ForceOff => &mut record.force_off,
            PowerOperation::SoftRestart | PowerOperation::HardRestart | PowerOperation::Init => {
                &mut record.restart
            }
        } += 1;
        self.power.open[position].push(number);
        let what = EventKind::Asked { transition: id.clone(), operation: operation.word() };
        self.history.note(self.now, position, what);
    }

    /// Requests the abortion of a transition; returns whether it was not over yet. `None` if there is no such
    /// transition.
    pub(super) fn signal_abort(&mut self, id: &str) -> Option<bool> {
        let number = self.power.number(id)?;
        let transition = self.power.get_mut(number)?;
        match transition.status {
            TransitionStatus::Completed => return Some(false),
            TransitionStatus::Aborted | TransitionStatus::AbortSignaled => {}
            TransitionStatus::New | TransitionStatus::InProgress => {
                transition.status = TransitionStatus::AbortSignaled
            }
        }
        Some(true)
    }

    /// Does the first thing that is due.
    pub(crate) fn power_step(&mut self) {
        let Some((_, number, step)) = self.power.agenda.pop_first() else { return };
        if step == AgendaStep::Reap {
            return self.reap();
        }
        let Some(transition) = self.power.get(number).filter(|transition| !transition.status.is_over())
        else {
            return;
        };
        match step {
            AgendaStep::Begin if transition.status == TransitionStatus::AbortSignaled => self.abort(number),
            AgendaStep::Begin => self.begin(number),
            AgendaStep::Read => self.note_effects(number),
            AgendaStep::Confirm => self.confirm(number),
            AgendaStep::Lapse if transition.is_left() => self.release(number),
            AgendaStep::Lapse | AgendaStep::Reap => {}
        }
    }

    fn reap(&mut self) {
        for number in self.power.reap(self.now) {
            self.resume(number);
        }
    }

    /// Resumes a transition whose worker died, from its beginning, except for commands that were sent.
    fn resume(&mut self, number: u64) {
        let Some(transition) = self.power.get_mut(number) else { return };
        transition.worker_died = None;
        match transition.status {
            TransitionStatus::AbortSignaled => self.abort(number),
            TransitionStatus::New | TransitionStatus::InProgress => self.begin(number),
            TransitionStatus::Completed | TransitionStatus::Aborted => {}
        }
    }

    /// The places of the tasks of a transition for which something holds.
    fn places(&self, number: u64, holds: impl Fn(&Self, &PowerTransition, &NodeTask) -> bool) -> Vec<usize> {
        let Some(transition) = self.power.get(number) else { return Vec::new() };
        let tasks = transition.tasks.iter().enumerate();
        tasks.filter(|(_, task)| holds(self, transition, task)).map(|(place, _)| place).collect()
    }

    fn begin(&mut self, number: u64) {
        for place in self.places(number, |_, _, task| task.task_status.is_open()) {
            match self.judge(number, place) {
                TaskVerdict::Done => {
                    let was_sent = self.power.get(number).is_some_and(|one| one.tasks[place].sent);
                    let description =
                        if was_sent { "Transition confirmed" } else { "Component already in desired state" };
                    self.result(number, place, TaskStatus::Succeeded, description, "");
                }
                TaskVerdict::Goes => {
                    self.update(number, place, |task| task.task_status = TaskStatus::InProgress);
                }
                TaskVerdict::Unsupported(kind) => {
                    let error = format!("No power control for component type {kind}");
                    self.result(number, place, TaskStatus::Unsupported, NOT_ACHIEVED, &error);
                }
                TaskVerdict::Fails(error) => {
                    self.result(number, place, TaskStatus::Failed, NOT_ACHIEVED, error);
                }
            }
        }
        if let Some(transition) = self.power.get_mut(number)
            && transition.status == TransitionStatus::New
        {
            transition.status = TransitionStatus::InProgress;
        }
        self.enter(number);
    }

    /// First decision on a task. Reserves the node if a command will follow.
    fn judge(&mut self, number: u64, place: usize) -> TaskVerdict {
        let Some(transition) = self.power.get(number) else { return TaskVerdict::Done };
        let (id, operation, task) = (transition.id.clone(), transition.operation, &transition.tasks[place]);
        if !xname::is_well_formed(&task.xname) {
            return TaskVerdict::Fails("Invalid xname");
        }
        let Some(position) = task.position.filter(|position| !self.faults[*position].pcs_missing) else {
            let other = self.inventory.others.iter().find(|piece| *piece.id == *task.xname);
            return other.map_or(TaskVerdict::Fails("Missing xname"), |piece| {
                TaskVerdict::Unsupported(piece.r#type.clone())
            });
        };
        if self.faults[position].hsm_missing {
            return TaskVerdict::Fails("Xname not found in HSM");
        }
        let on = self.reads_on(position);
        if operation.is_done(on) {
            return TaskVerdict::Done;
        }
        if operation.needs_on() && !on && !task.sent {
            return TaskVerdict::Fails("Component is in the wrong power state");
        }
        let had_it = task.reserved;
        if !self.inventory.reserve(position, &id, self.now) {
            self.power.records[position].refused_reservations += 1;
            let lost = "Invalid deputy key and unable to reserve component";
            return TaskVerdict::Fails(if had_it { lost } else { "Unable to reserve component" });
        }
        self.update(number, place, |task| task.reserved = true);
        TaskVerdict::Goes
    }

    /// Sends the commands of the present tier, or of the first later tier that has something to do. Without such a tier
    /// the transition is over. As in the real service, an abort is noticed before commands are sent and before each
    /// wait, and no longer once nothing is left to do.
    fn enter(&mut self, number: u64) {
        while let Some(transition) = self.power.get(number) {
            let (operation, deadline) = (transition.operation, transition.deadline);
            let Some(&tier) = operation.tiers().get(transition.tier) else {
                return self.finish(number, TransitionStatus::Completed);
            };
            if self.has_work(number, tier) {
                if self.aborts(number) {
                    return self.abort(number);
                }
                if self.send(number, tier, deadline) {
                    return self.wait(number);
                }
            }
            self.next_tier(number);
        }
    }

    fn aborts(&self, number: u64) -> bool {
        self.power.get(number).is_some_and(|transition| transition.status == TransitionStatus::AbortSignaled)
    }

    fn wait(&mut self, number: u64) {
        let check = self.now + self.power.plan.confirm_period;
        self.power.agenda.insert((check, number, AgendaStep::Confirm));
    }

    fn next_tier(&mut self, number: u64) {
        if let Some(transition) = self.power.get_mut(number) {
            transition.tier += 1;
        }
    }

    /// Returns whether a tier's command is for the node of a task and was not sent to it by a worker that died.
    fn is_for(&self, transition: &PowerTransition, task: &NodeTask, tier: CommandTier) -> bool {
        let on = task.position.is_some_and(|position| self.reads_on(position));
        task.task_status == TaskStatus::InProgress
            && !task.waiting
            && match tier {
                CommandTier::Shutdown => on,
                CommandTier::Force => task.overdue || transition.operation == PowerOperation::ForceOff,
                CommandTier::On => true,
            }
    }

    fn has_work(&self, number: u64, tier: CommandTier) -> bool {
        self.power.get(number).is_some_and(|transition| {
            transition.tasks.iter().any(|task| task.waiting || self.is_for(transition, task, tier))
        })
    }

    /// Sends a tier's command to the nodes that need it. Returns whether any result is pending.
    fn send(&mut self, number: u64, tier: CommandTier, deadline: TaskDeadline) -> bool {
        let mut told = Vec::new();
        for place in self.places(number, |state, transition, task| state.is_for(transition, task, tier)) {
            told.extend(self.send_one(number, place, tier, deadline));
        }
        let now = self.now;
        let changes = self.machine.command(now, tier.command(), &told);
        self.settle(changes);
        let overdue_at = match deadline {
            TaskDeadline::After(time) => Some(now + time),
            TaskDeadline::NotAwaited | TaskDeadline::Never => None,
        };
        if let Some(transition) = self.power.get_mut(number) {
            transition.overdue_at = overdue_at;
        }
        !self.places(number, |_, _, task| task.waiting).is_empty()
    }

    /// The position of the node, unless its BMC refuses the command.
    fn send_one(
        &mut self,
        number: u64,
        place: usize,
        tier: CommandTier,
        deadline: TaskDeadline,
    ) -> Option<usize> {
        let position = self.power.get(number)?.tasks[place].position?;
        let word = tier.word();
        self.update(number, place, |task| task.sent = true);
        if let Some(error) = self.faults[position].pcs_task_fails.clone() {
            let description = format!("Failed to apply transition, {word}");
            self.result(number, place, TaskStatus::Failed, &description, &error);
            return None;
        }
        if deadline == TaskDeadline::NotAwaited {
            let description = format!("Transition applied, {word}. Not confirming.");
            self.achieved(number, place, tier, &description);
        } else {
            self.update(number, place, |task| {
                task.waiting = true;
                task.task_status_description = format!("Confirming successful transition, {word}");
            });
        }
        Some(position)
    }

    /// A tier had its effect on a node: that is its result, unless it has to be turned on again.
    fn achieved(&mut self, number: u64, place: usize, tier: CommandTier, description: &str) {
        let goes_on = self.power.get(number).is_some_and(|transition| transition.operation.ends_on())
            && tier != CommandTier::On;
        if goes_on {
            let description = format!("{description}. Waiting for next transition");
            self.update(number, place, |task| {
                (task.waiting, task.overdue) = (false, false);
                task.task_status_description = description;
            });
        } else {
            self.result(number, place, TaskStatus::Succeeded, description, "");
        }
    }

    /// Applies the latest readings to the nodes that are waited for.
    fn note_effects(&mut self, number: u64) {
        let places = self.places(number, |_, _, task| task.waiting);
        for place in places {
            self.note_effect(number, place);
        }
    }

    fn note_effect(&mut self, number: u64, place: usize) {
        let Some(transition) = self.power.get(number) else { return };
        let tier = transition.operation.tiers().get(transition.tier).copied();
        let task = &transition.tasks[place];
        if let (Some(tier), Some(position), true) = (tier, task.position, task.waiting)
            && self.reads_on(position) == tier.ends_on()
        {
            self.achieved(number, place, tier, &format!("Transition confirmed, {}", tier.word()));
        }
    }

    fn confirm(&mut self, number: u64) {
        self.note_effects(number);
        let late = self.places(number, |_, _, task| task.waiting);
        let overdue = |transition: &PowerTransition| transition.overdue_at.is_some_and(|at| at <= self.now);
        let time_is_up = self.power.get(number).is_some_and(overdue);
        if !late.is_empty() && !time_is_up {
            return if self.aborts(number) { self.abort(number) } else { self.wait(number) };
        }
        for place in late {
            self.give_up(number, place);
        }
        self.next_tier(number);
        self.enter(number);
    }

    /// Forces a node off that missed its shutdown deadline, if the operation allows it; any other task fails.
    fn give_up(&mut self, number: u64, place: usize) {
        let Some(transition) = self.power.get(number) else { return };
        let tiers = transition.operation.tiers();
        let is_forced = tiers.get(transition.tier + 1) == Some(&CommandTier::Force);
        let word = tiers.get(transition.tier).map_or("", |tier| tier.word());
        if is_forced {
            self.update(number, place, |task| (task.waiting, task.overdue) = (false, true));
        } else {
            let error = format!("Timeout waiting for transition, {word}.");
            self.result(number, place, TaskStatus::Failed, NOT_ACHIEVED, &error);
        }
    }

    fn abort(&mut self, number: u64) {
        for place in self.places(number, |_, _, task| task.task_status.is_open()) {
            let last =
                self.power.get(number).map(|transition| &transition.tasks[place].task_status_description);
            let description = format!("Aborted. Last status - {}", last.map_or("", |last| last));
            self.result(number, place, TaskStatus::Failed, &description, "Transition aborted");
        }
        self.finish(number, TransitionStatus::Aborted);
    }

    /// Ends the transition and releases its nodes.
    fn finish(&mut self, number: u64, status: TransitionStatus) {
        let longest = self.power.plan.longest_text;
        if let Some(transition) = self.power.get_mut(number) {
            transition.status = status;
            if let Some(letters) = longest {
                transition.cut_texts(letters);
            }
        }
        self.release(number);
        self.power.ended(self.now);
    }

    /// Releases the nodes that a transition reserved.
    fn release(&mut self, number: u64) {
        let Some(transition) = self.power.get(number) else { return };
        for position in transition.tasks.iter().filter_map(|task| task.position) {
            self.inventory.release(position, &transition.id);
        }
    }

    fn update(&mut self, number: u64, place: usize, change: impl FnOnce(&mut NodeTask)) {
        if let Some(transition) = self.power.get_mut(number) {
            change(&mut transition.tasks[place]);
        }
    }

    fn result(&mut self, number: u64, place: usize, status: TaskStatus, description: &str, error: &str) {
        let Some(transition) = self.power.get_mut(number) else { return };
        let id = transition.id.clone();
        let task = &mut transition.tasks[place];
        task.task_status = status;
        task.waiting = false;
        description.clone_into(&mut task.task_status_description);
        task.error = error.into();
        let (position, error) = (task.position, task.error.clone());
        if let Some(position) = position {
            self.power.open[position].retain(|open| *open != number);
            let what = EventKind::Result { transition: id, status: status.word(), error };
            self.history.note(self.now, position, what);
        }
    }

    /// Passes a change of power from the hardware to the readings and transitions.
    pub(crate) fn power_changed(&mut self, position: usize, was_on: bool) {
        let readable_at = self.power.changes(self.now, position, was_on);
        if !self.power.plan.prompt_results {
            return;
        }
        for number in self.power.open[position].clone() {
            let place =
                self.power.get(number).and_then(|transition| transition.places.get(&position).copied());
            match place {
                Some(place) if readable_at <= self.now => self.note_effect(number, place),
                Some(_) => {
                    self.power.agenda.insert((readable_at, number, AgendaStep::Read));
                }
                None => {}
            }
        }
    }

    /// Returns the time until the next step of the power service.
    pub(crate) fn power_due(&self) -> Option<Duration> {
        self.power.next_due()
    }
}
