//! Records of the power service: readings of the hardware, and transitions.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use super::transition::{PowerTransition, TransitionStatus};
use crate::{history::PowerRecord, plan::PowerService};

/// Most tasks of all kept transitions together: a day of a large machine.
const MOST_TASKS: usize = 1_000_000;

/// A scheduled step of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AgendaStep {
    /// Begins with a transition that was accepted.
    Begin,
    /// Apply the latest readings to the transition's nodes.
    Read,
    /// Check whether the tier is done, the time is up, or an abort is signalled.
    Confirm,
    /// Release the nodes of a transition whose worker died.
    Lapse,
    /// Resume transitions that dead workers abandoned, and delete expired ones.
    Reap,
}

/// The service's last reading of a node. Readings happen at every multiple of the sampling period, but only changes are
/// recorded: the power at the start of the present period, if it has changed since.
#[derive(Clone, Copy, Debug, Default)]
struct PowerReading {
    period: SamplingPeriod,
    was_on: bool,
    /// Time at which the service last read a changed state, and the time at which it will have once this period ends.
    read: Duration,
    readable: Duration,
}

impl PowerReading {
    /// Returns whether the node changed in this period. A pause may have made the period longer meanwhile.
    fn is_of(self, period: SamplingPeriod) -> bool {
        self.period.until > Duration::ZERO && self.period.from == period.from
    }
}

/// A time during which all that the service knows was read at its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SamplingPeriod {
    from: Duration,
    /// Zero for none.
    until: Duration,
}

/// Records of the power service.
#[derive(Debug)]
pub(crate) struct PowerRecords {
    pub(crate) plan: PowerService,
    readings: Vec<PowerReading>,
    transitions: BTreeMap<u64, PowerTransition>,
    numbers: HashMap<Arc<str>, u64>,
    tasks: usize,
    last: u64,
    /// Start of the service, from which reaper rounds are counted.
    started: Duration,
    /// While nothing is read from the hardware.
    pause: SamplingPeriod,
    pub(super) agenda: BTreeSet<(Duration, u64, AgendaStep)>,
    /// Numbers of the transitions that have no result for the node, by position.
    pub(super) open: Vec<Vec<u64>>,
    pub(crate) records: Vec<PowerRecord>,
}

impl PowerRecords {
    pub(crate) fn new(plan: PowerService, nodes: usize) -> Self {
        Self {
            plan,
            readings: vec![PowerReading::default(); nodes],
            transitions: BTreeMap::new(),
            numbers: HashMap::new(),
            tasks: 0,
            last: 0,
            started: Duration::ZERO,
            pause: SamplingPeriod::default(),
            agenda: BTreeSet::new(),
            open: vec![Vec::new(); nodes],
            records: vec![PowerRecord::default(); nodes],
        }
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.agenda.first().map(|(due, ..)| *due)
    }

    pub(super) fn transitions(&self) -> impl Iterator<Item = &PowerTransition> {
        self.transitions.values()
    }

    pub(super) fn by_id(&self, id: &str) -> Option<&PowerTransition> {
        self.numbers.get(id).and_then(|number| self.transitions.get(number))
    }

    pub(super) fn number(&self, id: &str) -> Option<u64> {
        self.numbers.get(id).copied()
    }

    pub(super) fn get(&self, number: u64) -> Option<&PowerTransition> {
        self.transitions.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut PowerTransition> {
        self.transitions.get_mut(&number)
    }

    /// Stores a transition, returns its number, and forgets the oldest finished ones beyond the limit.
    pub(super) fn keep(&mut self, transition: PowerTransition) -> u64 {
        self.last += 1;
        self.tasks += transition.tasks.len();
        self.numbers.insert(transition.id.clone(), self.last);
        self.reap_after(transition.created + self.plan.kept_for);
        self.transitions.insert(self.last, transition);
        while self.tasks > MOST_TASKS
            && let Some((oldest, _)) =
                self.transitions.first_key_value().filter(|(_, first)| first.status.is_over())
        {
            self.forget(*oldest);
        }
        self.last
    }

    fn forget(&mut self, number: u64) {
        if let Some(transition) = self.transitions.remove(&number) {
            self.tasks -= transition.tasks.len();
            self.numbers.remove(&transition.id);
        }
    }

    /// Deletes finished transitions that are expired or too many. Returns the transitions to resume; expired unfinished
    /// ones are to be aborted.
    pub(super) fn reap(&mut self, now: Duration) -> Vec<u64> {
        let ended = self.transitions.values().filter(|transition| transition.status.is_over()).count();
        let mut surplus = ended.saturating_sub(self.plan.most_ended);
        let (mut gone, mut left) = (Vec::new(), Vec::new());
        for (number, transition) in &mut self.transitions {
            let expired = transition.created + self.plan.kept_for <= now;
            match transition.status {
                TransitionStatus::Completed | TransitionStatus::Aborted if expired || surplus > 0 => {
                    surplus = surplus.saturating_sub(1);
                    gone.push(*number);
                }
                TransitionStatus::Completed | TransitionStatus::Aborted => {}
                TransitionStatus::New | TransitionStatus::InProgress | TransitionStatus::AbortSignaled => {
                    if expired {
                        transition.status = TransitionStatus::AbortSignaled;
                    }
                    left.extend(transition.worker_died.map(|died| (*number, died)));
                }
            }
        }
        gone.into_iter().for_each(|number| self.forget(number));
        let (abandoned, fresh): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|(_, died)| *died + 3 * self.plan.keep_alive <= now);
        let ages = fresh.first().map(|(_, died)| *died + 3 * self.plan.keep_alive);
        let expires = self.transitions.values().next().map(|oldest| oldest.created + self.plan.kept_for);
        for next in [ages, expires].into_iter().flatten() {
            self.reap_after(next.max(now));
        }
        abandoned.into_iter().map(|(number, _)| number).collect()
    }

    /// Schedules a reaper round when there are more transitions than the plan allows.
    pub(super) fn ended(&mut self, now: Duration) {
        if self.transitions.len() > self.plan.most_ended {
            self.reap_after(now);
        }
    }

    /// Schedules the first reaper round after `at`, for transitions abandoned or expired by then.
    pub(super) fn reap_after(&mut self, at: Duration) {
        let period = self.plan.reaper_period.max(Duration::from_millis(1));
        let rounds = at.saturating_sub(self.started).as_nanos() / period.as_nanos() + 1;
        let round = self.started + period.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX));
        self.agenda.insert((round, 0, AgendaStep::Reap));
    }

    /// Kills the worker of a transition.
    pub(super) fn kill(&mut self, number: u64, now: Duration) {
        let Some(transition) = self.transitions.get_mut(&number).filter(|one| !one.status.is_over()) else {
            return;
        };
        transition.worker_died.get_or_insert(now);
        self.agenda.retain(|(_, of, _)| *of != number);
        self.agenda.insert((now + self.plan.reservation_term, number, AgendaStep::Lapse));
        self.reap_after(now + 3 * self.plan.keep_alive);
    }

    /// Kills the workers of all transitions.
    pub(super) fn kill_all(&mut self, now: Duration) {
        let open = self.transitions.iter().filter(|(_, transition)| !transition.status.is_over());
        for number in open.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.kill(number, now);
        }
    }

    /// Stops the service and starts it again at `started`. The rounds that it would have made do not take place.
    pub(super) fn restart(&mut self, now: Duration, started: Duration) {
        self.started = started;
        self.kill_all(now);
        self.agenda.retain(|(.., step)| *step != AgendaStep::Reap);
        self.reap_after(started);
    }

    /// Stops the readings of hardware until `until`, or until the first regular reading after it.
    pub(super) fn pause_sampling(&mut self, now: Duration, until: Duration) {
        let from = self.period(now).map_or(now, |period| period.from);
        let sampling = self.plan.sampling_period;
        let next =
            self.sampled_at(until).map_or(until, |last| if last < until { last + sampling } else { last });
        self.pause = SamplingPeriod { from, until: next };
    }

    /// Returns when the hardware was read last, pauses apart; `None`: it is never read, because everything is known at
    /// once.
    fn sampled_at(&self, now: Duration) -> Option<Duration> {
        let sampling = self.plan.sampling_period;
        let periods = now.as_nanos().checked_div(sampling.as_nanos())?;
        Some(sampling.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX)))
    }

    /// Returns the present sampling period; `None`: readings are immediate.
    fn period(&self, now: Duration) -> Option<SamplingPeriod> {
        if (self.pause.from..self.pause.until).contains(&now) {
            return Some(self.pause);
        }
        let from = self.sampled_at(now)?;
        Some(SamplingPeriod { from, until: from + self.plan.sampling_period })
    }

    /// Returns when the hardware is read next.
    pub(super) fn next_reading(&self, now: Duration) -> Duration {
        self.period(now).map_or(now, |period| period.until)
    }

    /// Notes that a node is about to be `!was_on`, and returns the time of the first reading that shows it.
    pub(super) fn changes(&mut self, now: Duration, position: usize, was_on: bool) -> Duration {
        let period = self.period(now).unwrap_or(SamplingPeriod { from: now, until: now });
        let reading = &mut self.readings[position];
        if !reading.is_of(period) {
            *reading = PowerReading { period, was_on, read: reading.readable, readable: period.until };
        }
        period.until
    }

    /// Returns whether a node that is `on` now was on when the service read it last.
    pub(super) fn reading(&self, now: Duration, position: usize, on: bool) -> bool {
        let reading = self.readings[position];
        if self.period(now).is_some_and(|period| reading.is_of(period)) { reading.was_on } else { on }
    }

    /// Time of the last reading that differed from its predecessor: the age that the service reports.
    pub(super) fn changed_at(&self, now: Duration, position: usize) -> Duration {
        let reading = self.readings[position];
        if self.period(now).is_some_and(|period| reading.is_of(period)) {
            reading.read
        } else {
            reading.readable
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_state_is_as_old_as_its_sample() {
        let plan = PowerService { sampling_period: Duration::from_secs(30), ..PowerService::quick() };
        let mut power = PowerRecords::new(plan, 1);
        let second = Duration::from_secs;
        // Off at first, on from 10 to 12 and from 40.
        let readable = [(10, false), (12, true), (40, false)]
            .map(|(at, was_on)| power.changes(second(at), 0, was_on).as_secs());
        assert_eq!(readable, [30, 30, 60]);
        let shown = [(41, true), (59, true), (60, true), (200, true)]
            .map(|(now, on)| (power.changed_at(second(now), 0).as_secs(), power.reading(second(now), 0, on)));
        assert_eq!(shown, [(30, false), (30, false), (60, true), (60, true)]);
    }

    #[test]
    fn without_sampling_everything_is_known_at_once() {
        let mut power = PowerRecords::new(PowerService::quick(), 1);
        let now = Duration::from_secs(7);
        assert_eq!(power.changes(now, 0, false), now);
        assert_eq!((power.changed_at(now, 0), power.reading(now, 0, true)), (now, true));
    }

    #[test]
    fn nothing_is_read_during_a_pause() {
        let second = Duration::from_secs;
        for (sampling, readable) in [(0, 50), (30, 60)] {
            let plan = PowerService { sampling_period: second(sampling), ..PowerService::quick() };
            let mut power = PowerRecords::new(plan, 1);
            power.pause_sampling(second(10), second(50));
            assert_eq!(power.changes(second(12), 0, false), second(readable));
            let shown = [49, readable - 1, readable].map(|now| power.reading(second(now), 0, true));
            assert_eq!(shown, [false, false, true], "sampling every {sampling} s");
        }
    }
}
