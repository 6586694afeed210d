//! How a transition goes on: what is accepted, what is sent to the hardware, what counts as a result, when it ends.
//!
//! As in the real service, nothing is looked at before the request was answered; each tier ends at a look that finds
//! all its nodes done or the time up; and a node stays reserved until the whole transition is over.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::{
    power::Step,
    transition::{Deadline, Operation, Status, Task, TaskStatus, Tier, Transition},
};
use crate::{history::What, state::State, xname};

const NOT_ACHIEVED: &str = "Failed to achieve transition";

/// What can be done about a task when its transition begins.
enum Verdict {
    /// Nothing: the node is as wanted.
    Done,
    /// The node is reserved and will be told.
    Goes,
    /// Nothing, for this kind of hardware.
    Unsupported(String),
    /// Nothing, for this reason.
    Fails(&'static str),
}

impl State {
    /// Whether the node was on when the power service read it last.
    pub(super) fn reads_on(&self, position: usize) -> bool {
        self.power.reading(self.now, position, self.machine.nodes()[position].is_on())
    }

    /// How long until the power service reads the hardware again.
    pub(crate) fn until_reading(&self) -> Duration {
        self.power.next_reading(self.now).saturating_sub(self.now)
    }

    /// Accepts a transition and gives its id. What becomes of it shows later.
    pub(super) fn accept(
        &mut self,
        operation: Operation,
        deadline: Deadline,
        xnames: Vec<String>,
    ) -> Arc<str> {
        let id: Arc<str> = uuid::Uuid::new_v4().to_string().into();
        let mut tasks: Vec<Task> = Vec::with_capacity(xnames.len());
        let mut places = HashMap::new();
        let mut seen = std::collections::HashSet::new();
        for xname in xnames.into_iter().filter(|xname| seen.insert(xname.clone())) {
            let position = self.machine.position(&xname);
            places.extend(position.map(|position| (position, tasks.len())));
            tasks.push(Task {
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
        let number = self.power.keep(Transition {
            id: id.clone(),
            operation,
            deadline,
            created: self.now,
            status: Status::New,
            tasks,
            places,
            tier: 0,
            overdue_at: None,
            worker_died: None,
        });
        for position in positions {
            self.record(number, position, &id, operation);
        }
        self.power.agenda.insert((self.now, number, Step::Begin));
        id
    }

    /// Has the worker of a transition die. The service resumes the transition when it finds that nobody performs it.
    pub(super) fn kill_worker(&mut self, id: &str) {
        if let Some(number) = self.power.number(id) {
            self.power.kill(number, self.now);
        }
    }

    /// Has the workers of all transitions die.
    pub(crate) fn kill_workers(&mut self) {
        self.power.kill_all(self.now);
    }

    /// Has the service end and start again after `down`. It keeps its transitions, and resumes those that are open when
    /// it first looks for such.
    pub(crate) fn restart_power_service(&mut self, down: Duration) {
        self.power.restart(self.now, self.now + down);
    }

    /// Has the service read no hardware for so long.
    pub(crate) fn pause_sampling(&mut self, pause: Duration) {
        self.power.pause_sampling(self.now, self.now + pause);
    }

    /// Writes down that a node was asked, and whether that went together with what it was asked before.
    fn record(&mut self, number: u64, position: usize, id: &Arc<str>, operation: Operation) {
        let earlier = self.power.open[position].iter().filter_map(|number| self.power.get(*number));
        let (same, opposite): (Vec<bool>, Vec<bool>) =
            earlier.map(|other| other.operation.ends_on() == operation.ends_on()).partition(|same| *same);
        let record = &mut self.power.records[position];
        record.overlaps += u32::from(!same.is_empty());
        record.crossings += u32::from(!opposite.is_empty());
        *match operation {
            Operation::On => &mut record.on,
            Operation::Off | Operation::SoftOff => &mut record.soft_off,
            Operation::ForceOff => &mut record.force_off,
            Operation::SoftRestart | Operation::HardRestart | Operation::Init => &mut record.restart,
        } += 1;
        self.power.open[position].push(number);
        let what = What::Asked { transition: id.clone(), operation: operation.word() };
        self.history.note(self.now, position, what);
    }

    /// Asks for a transition to be aborted; whether it was not over yet. None if there is no such transition.
    pub(super) fn signal_abort(&mut self, id: &str) -> Option<bool> {
        let number = self.power.number(id)?;
        let transition = self.power.get_mut(number)?;
        match transition.status {
            Status::Completed => return Some(false),
            Status::Aborted | Status::AbortSignaled => {}
            Status::New | Status::InProgress => transition.status = Status::AbortSignaled,
        }
        Some(true)
    }

    /// Does the first thing that is due.
    pub(crate) fn power_step(&mut self) {
        let Some((_, number, step)) = self.power.agenda.pop_first() else { return };
        if step == Step::Reap {
            return self.reap();
        }
        let Some(transition) = self.power.get(number).filter(|transition| !transition.status.is_over())
        else {
            return;
        };
        match step {
            Step::Begin if transition.status == Status::AbortSignaled => self.abort(number),
            Step::Begin => self.begin(number),
            Step::Read => self.note_effects(number),
            Step::Confirm => self.confirm(number),
            Step::Lapse if transition.is_left() => self.release(number),
            Step::Lapse | Step::Reap => {}
        }
    }

    fn reap(&mut self) {
        for number in self.power.reap(self.now) {
            self.resume(number);
        }
    }

    /// Goes on with a transition whose worker died, as if it had been accepted just now, but for what was sent already.
    fn resume(&mut self, number: u64) {
        let Some(transition) = self.power.get_mut(number) else { return };
        transition.worker_died = None;
        match transition.status {
            Status::AbortSignaled => self.abort(number),
            Status::New | Status::InProgress => self.begin(number),
            Status::Completed | Status::Aborted => {}
        }
    }

    /// The places of the tasks of a transition for which something holds.
    fn places(&self, number: u64, holds: impl Fn(&Self, &Transition, &Task) -> bool) -> Vec<usize> {
        let Some(transition) = self.power.get(number) else { return Vec::new() };
        let tasks = transition.tasks.iter().enumerate();
        tasks.filter(|(_, task)| holds(self, transition, task)).map(|(place, _)| place).collect()
    }

    fn begin(&mut self, number: u64) {
        for place in self.places(number, |_, _, task| task.task_status.is_open()) {
            match self.judge(number, place) {
                Verdict::Done => {
                    let was_sent = self.power.get(number).is_some_and(|one| one.tasks[place].sent);
                    let description =
                        if was_sent { "Transition confirmed" } else { "Component already in desired state" };
                    self.result(number, place, TaskStatus::Succeeded, description, "");
                }
                Verdict::Goes => {
                    self.update(number, place, |task| task.task_status = TaskStatus::InProgress);
                }
                Verdict::Unsupported(kind) => {
                    let error = format!("No power control for component type {kind}");
                    self.result(number, place, TaskStatus::Unsupported, NOT_ACHIEVED, &error);
                }
                Verdict::Fails(error) => {
                    self.result(number, place, TaskStatus::Failed, NOT_ACHIEVED, error);
                }
            }
        }
        if let Some(transition) = self.power.get_mut(number)
            && transition.status == Status::New
        {
            transition.status = Status::InProgress;
        }
        self.enter(number);
    }

    /// What can be done about a task. A node that something will be done to is reserved.
    fn judge(&mut self, number: u64, place: usize) -> Verdict {
        let Some(transition) = self.power.get(number) else { return Verdict::Done };
        let (id, operation, task) = (transition.id.clone(), transition.operation, &transition.tasks[place]);
        if !xname::is_well_formed(&task.xname) {
            return Verdict::Fails("Invalid xname");
        }
        let Some(position) = task.position.filter(|position| !self.faults[*position].pcs_missing) else {
            let other = self.inventory.others.iter().find(|piece| *piece.id == *task.xname);
            return other
                .map_or(Verdict::Fails("Missing xname"), |piece| Verdict::Unsupported(piece.r#type.clone()));
        };
        if self.faults[position].hsm_missing {
            return Verdict::Fails("Xname not found in HSM");
        }
        let on = self.reads_on(position);
        if operation.is_done(on) {
            return Verdict::Done;
        }
        if operation.needs_on() && !on && !task.sent {
            return Verdict::Fails("Component is in the wrong power state");
        }
        let had_it = task.reserved;
        if !self.inventory.reserve(position, &id, self.now) {
            self.power.records[position].refused_reservations += 1;
            let lost = "Invalid deputy key and unable to reserve component";
            return Verdict::Fails(if had_it { lost } else { "Unable to reserve component" });
        }
        self.update(number, place, |task| task.reserved = true);
        Verdict::Goes
    }

    /// Sends the commands of the present tier, or of the first after it that has something to do; without one the
    /// transition is over. As in the real service, that it is to abort is noticed before something is sent and before
    /// each wait, and no longer once nothing is left to do.
    fn enter(&mut self, number: u64) {
        while let Some(transition) = self.power.get(number) {
            let (operation, deadline) = (transition.operation, transition.deadline);
            let Some(&tier) = operation.tiers().get(transition.tier) else {
                return self.finish(number, Status::Completed);
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
        self.power.get(number).is_some_and(|transition| transition.status == Status::AbortSignaled)
    }

    fn wait(&mut self, number: u64) {
        let check = self.now + self.power.plan.confirm_period;
        self.power.agenda.insert((check, number, Step::Confirm));
    }

    fn next_tier(&mut self, number: u64) {
        if let Some(transition) = self.power.get_mut(number) {
            transition.tier += 1;
        }
    }

    /// Whether a tier's command is for the node of a task and was not sent to it by a worker that died.
    fn is_for(&self, transition: &Transition, task: &Task, tier: Tier) -> bool {
        let on = task.position.is_some_and(|position| self.reads_on(position));
        task.task_status == TaskStatus::InProgress
            && !task.waiting
            && match tier {
                Tier::Shutdown => on,
                Tier::Force => task.overdue || transition.operation == Operation::ForceOff,
                Tier::On => true,
            }
    }

    fn has_work(&self, number: u64, tier: Tier) -> bool {
        self.power.get(number).is_some_and(|transition| {
            transition.tasks.iter().any(|task| task.waiting || self.is_for(transition, task, tier))
        })
    }

    /// Sends a tier's command to those that need it; whether there is somebody to wait for.
    fn send(&mut self, number: u64, tier: Tier, deadline: Deadline) -> bool {
        let mut told = Vec::new();
        for place in self.places(number, |state, transition, task| state.is_for(transition, task, tier)) {
            told.extend(self.send_one(number, place, tier, deadline));
        }
        let now = self.now;
        let changes = self.machine.command(now, tier.command(), &told);
        self.settle(changes);
        let overdue_at = match deadline {
            Deadline::After(time) => Some(now + time),
            Deadline::NotAwaited | Deadline::Never => None,
        };
        if let Some(transition) = self.power.get_mut(number) {
            transition.overdue_at = overdue_at;
        }
        !self.places(number, |_, _, task| task.waiting).is_empty()
    }

    /// The position of the node, unless its BMC refuses the command.
    fn send_one(&mut self, number: u64, place: usize, tier: Tier, deadline: Deadline) -> Option<usize> {
        let position = self.power.get(number)?.tasks[place].position?;
        let word = tier.word();
        self.update(number, place, |task| task.sent = true);
        if let Some(error) = self.faults[position].pcs_task_fails.clone() {
            let description = format!("Failed to apply transition, {word}");
            self.result(number, place, TaskStatus::Failed, &description, &error);
            return None;
        }
        if deadline == Deadline::NotAwaited {
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
    fn achieved(&mut self, number: u64, place: usize, tier: Tier, description: &str) {
        let goes_on = self.power.get(number).is_some_and(|transition| transition.operation.ends_on())
            && tier != Tier::On;
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

    /// Takes over what the latest reading says of the nodes that are waited for.
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
        let overdue = |transition: &Transition| transition.overdue_at.is_some_and(|at| at <= self.now);
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

    /// What did not shut down in time is forced off where the operation says so; all else fails.
    fn give_up(&mut self, number: u64, place: usize) {
        let Some(transition) = self.power.get(number) else { return };
        let tiers = transition.operation.tiers();
        let is_forced = tiers.get(transition.tier + 1) == Some(&Tier::Force);
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
        self.finish(number, Status::Aborted);
    }

    /// The transition is over, and whoever waits for its nodes can have them.
    fn finish(&mut self, number: u64, status: Status) {
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

    /// Gives back the nodes that a transition reserved.
    fn release(&mut self, number: u64) {
        let Some(transition) = self.power.get(number) else { return };
        for position in transition.tasks.iter().filter_map(|task| task.position) {
            self.inventory.release(position, &transition.id);
        }
    }

    fn update(&mut self, number: u64, place: usize, change: impl FnOnce(&mut Task)) {
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
            let what = What::Result { transition: id, status: status.word(), error };
            self.history.note(self.now, position, what);
        }
    }

    /// Tells the power service that the hardware turned a node on or off.
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
                    self.power.agenda.insert((readable_at, number, Step::Read));
                }
                None => {}
            }
        }
    }

    /// How long from now until the power service has something to do.
    pub(crate) fn power_due(&self) -> Option<Duration> {
        self.power.next_due()
    }
}
