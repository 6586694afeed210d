//! The clock of this process.

use std::{
    sync::LazyLock,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use domain::core::time::{Steady, Timestamp};
use parking_lot::Mutex;

/// Shortest time between two readings of the wall clock.
const LOOKS: Duration = Duration::from_secs(1);

static CLOCK: LazyLock<SlewedClock> = LazyLock::new(SlewedClock::start);

/// The time by the clock of this process: the wall clock of its machine, but for steps, which it makes good slowly, and
/// those of more than a day, which it follows at once.
pub fn now() -> Timestamp {
    of_this_host(SlewedClock::now)
}

/// Continues this process's clock from `stamp`, which the clock gave in an earlier life: then nothing on record lies in
/// the future, and waits keep their beginnings. Changes nothing if `stamp` lies in the past.
pub fn not_before(stamp: Timestamp) {
    of_this_host(|clock| clock.not_before(stamp));
}

#[cfg(not(feature = "simulation"))]
fn of_this_host<A>(look: impl FnOnce(&SlewedClock) -> A) -> A {
    look(&CLOCK)
}

#[cfg(feature = "simulation")]
fn of_this_host<A>(look: impl FnOnce(&SlewedClock) -> A) -> A {
    match CLOCKS.get() {
        Some(of) => look(&of()),
        None => look(&CLOCK),
    }
}

/// Returns the clock of the simulated process that is running.
#[cfg(feature = "simulation")]
pub type Clocks = fn() -> std::sync::Arc<SlewedClock>;

#[cfg(feature = "simulation")]
thread_local! {
    static CLOCKS: std::cell::Cell<Option<Clocks>> = const { std::cell::Cell::new(None) };
}

/// Gives simulated processes of this thread clocks of their own, from now on.
#[cfg(feature = "simulation")]
pub fn set_clocks(of: Clocks) {
    CLOCKS.set(Some(of));
}

/// A clock that starts as the wall clock stands and makes good the steps of it slowly.
pub struct SlewedClock(Mutex<(Steady, Instant)>);

impl SlewedClock {
    /// Starts a clock.
    pub fn start() -> Self {
        let wall = wall();
        Self(Mutex::new((Steady::new(wall, wall), Instant::now())))
    }

    fn now(&self) -> Timestamp {
        let mut anchor = self.0.lock();
        let elapsed = anchor.1.elapsed();
        let now = anchor.0.after(elapsed);
        if elapsed < LOOKS {
            return now;
        }
        *anchor = (Steady::new(now, wall()), Instant::now());
        anchor.0.after(Duration::ZERO)
    }

    fn not_before(&self, stamp: Timestamp) {
        if stamp > self.now() {
            *self.0.lock() = (Steady::new(stamp, wall()), Instant::now());
        }
    }
}

fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::default().plus(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_goes_on_from_where_it_was_in_an_earlier_life() {
        let clock = SlewedClock::start();
        let hour = Duration::from_secs(3600);
        let before = clock.now();
        clock.not_before(before.plus(hour));
        assert!(clock.now() >= before.plus(hour), "it goes on from there");
        clock.not_before(before);
        assert!(clock.now() >= before.plus(hour), "what is over changes nothing");
        clock.not_before(before.plus(hour * 48));
        assert!(clock.now() < before.plus(hour), "a stamp from another time is none of ours");
    }
}
