//! What the power service keeps: its readings of the hardware, and transitions.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use super::transition::Transition;
use crate::{history::PowerRecord, plan::PowerService};

/// How many tasks all kept transitions may have together: a day of a large machine.
const MOST_TASKS: usize = 1_000_000;

/// What the service does when its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Begins with a transition that was accepted.
    Begin,
    /// Takes over what the latest reading says of its nodes.
    Read,
    /// Looks whether the tier is done with, whether time is up, and whether it is to abort.
    Confirm,
}

/// What the service last read of a node. A reading is taken at every multiple of the sampling period, but only what
/// changes is written down: what the node was when the present period began, if it has changed since.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    period: u128,
    was_on: bool,
}

/// What the power service keeps.
#[derive(Debug)]
pub(crate) struct Power {
    pub(crate) plan: PowerService,
    readings: Vec<Reading>,
    transitions: BTreeMap<u64, Transition>,
    numbers: HashMap<Arc<str>, u64>,
    tasks: usize,
    last: u64,
    pub(super) agenda: BTreeSet<(Duration, u64, Step)>,
    /// By position: numbers of the transitions that have no result for the node.
    pub(super) open: Vec<Vec<u64>>,
    pub(crate) records: Vec<PowerRecord>,
}

impl Power {
    pub(crate) fn new(plan: PowerService, nodes: usize) -> Self {
        Self {
            plan,
            readings: vec![Reading::default(); nodes],
            transitions: BTreeMap::new(),
            numbers: HashMap::new(),
            tasks: 0,
            last: 0,
            agenda: BTreeSet::new(),
            open: vec![Vec::new(); nodes],
            records: vec![PowerRecord::default(); nodes],
        }
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.agenda.first().map(|(due, ..)| *due)
    }

    pub(super) fn transitions(&self) -> impl Iterator<Item = &Transition> {
        self.transitions.values()
    }

    pub(super) fn by_id(&self, id: &str) -> Option<&Transition> {
        self.numbers.get(id).and_then(|number| self.transitions.get(number))
    }

    pub(super) fn number(&self, id: &str) -> Option<u64> {
        self.numbers.get(id).copied()
    }

    pub(super) fn get(&self, number: u64) -> Option<&Transition> {
        self.transitions.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Transition> {
        self.transitions.get_mut(&number)
    }

    /// Keeps a transition, gives its number, and forgets the oldest that are over if it is too much.
    pub(super) fn keep(&mut self, transition: Transition) -> u64 {
        self.last += 1;
        self.tasks += transition.tasks.len();
        self.numbers.insert(transition.id.clone(), self.last);
        self.transitions.insert(self.last, transition);
        while self.tasks > MOST_TASKS
            && let Some(oldest) = self.transitions.first_entry().filter(|first| first.get().status.is_over())
        {
            let oldest = oldest.remove();
            self.tasks -= oldest.tasks.len();
            self.numbers.remove(&oldest.id);
        }
        self.last
    }

    fn period(&self, now: Duration) -> Option<u128> {
        // Counted from one, so that a reading that was never written down belongs to none.
        now.as_nanos().checked_div(self.plan.sampling_period.as_nanos()).map(|period| period + 1)
    }

    /// Notes that a node is about to be `!was_on`, and gives the time at which that can be read.
    pub(super) fn changes(&mut self, now: Duration, position: usize, was_on: bool) -> Duration {
        let Some(period) = self.period(now) else { return now };
        let reading = &mut self.readings[position];
        if reading.period != period {
            *reading = Reading { period, was_on };
        }
        self.plan.sampling_period * u32::try_from(period).unwrap_or(u32::MAX)
    }

    /// Whether a node that is `on` now was on when the service read it last.
    pub(super) fn reading(&self, now: Duration, position: usize, on: bool) -> bool {
        let reading = self.readings[position];
        if self.period(now) == Some(reading.period) { reading.was_on } else { on }
    }

    /// When the service read the hardware last.
    pub(super) fn read_at(&self, now: Duration) -> Duration {
        let periods = self.period(now).map(|period| u32::try_from(period - 1).unwrap_or(u32::MAX));
        periods.map_or(now, |periods| self.plan.sampling_period * periods)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_as_old_as_the_sampling_makes_it() {
        let plan = PowerService { sampling_period: Duration::from_secs(30), ..PowerService::at_speed(1.0) };
        let mut power = Power::new(plan, 1);
        let second = Duration::from_secs;
        // Off at first, on from 10 to 12 and from 40.
        let readable = [(10, false), (12, true), (40, false)]
            .map(|(at, was_on)| power.changes(second(at), 0, was_on).as_secs());
        assert_eq!(readable, [30, 30, 60]);
        let shown = [(41, true), (59, true), (60, true), (200, true)]
            .map(|(now, on)| (power.read_at(second(now)).as_secs(), power.reading(second(now), 0, on)));
        assert_eq!(shown, [(30, false), (30, false), (60, true), (180, true)]);
    }

    #[test]
    fn without_sampling_everything_is_known_at_once() {
        let mut power = Power::new(PowerService::at_speed(1.0), 1);
        let now = Duration::from_secs(7);
        assert_eq!(power.changes(now, 0, false), now);
        assert_eq!((power.read_at(now), power.reading(now, 0, true)), (now, true));
    }
}
