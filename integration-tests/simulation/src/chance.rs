//! Randomness and clocks of a thread that runs a simulation: both come from its seed.
//!
//! Every random number and every time come from the system in the end: those of hash maps, UUIDs, `rand`, tokio's
//! choice among branches, `SystemTime`, `Instant`. So the system's functions are redefined here, in a program that only
//! tests. A thread without a simulation gets the values of the system.
//!
//! The technique is that of madsim and mad-turmoil.
#![expect(unsafe_code, reason = "the functions of the system have the signatures of C")]

use std::{
    cell::{Cell, RefCell},
    ffi::{c_int, c_long, c_uint, c_void},
};

use rand::{RngCore, SeedableRng, rngs::SmallRng};
use tokio::time::Instant;

use crate::host;

/// Start of monotonic clocks: far from 0, so that subtractions from now are possible.
const MONOTONIC_START: i64 = 1_000_000;

/// 2026-03-29T00:30:00Z: half an hour before the clocks of Europe change.
const WALL_START: i64 = 1_774_744_200;

thread_local! {
    static CHANCE: RefCell<Option<SmallRng>> = const { RefCell::new(None) };
    static STARTED: Cell<Option<Instant>> = const { Cell::new(None) };
    static LOOKS: Cell<i64> = const { Cell::new(0) };
    static LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// Time between two reads of a clock before [`start_clock`].
const LOOK: i64 = 1_000_000;

/// Gives this thread the randomness of `seed`. Until [`start_clock`] its clocks advance a little at each read, or a
/// loop that compares clocks would never end.
pub fn begin(seed: u64) {
    CHANCE.set(Some(SmallRng::seed_from_u64(seed)));
}

/// Lets the clocks of this thread follow the runtime's, which must be paused, from the start.
pub fn start_clock() {
    STARTED.set(Some(Instant::now()));
}

/// Gives this thread the randomness and the clocks of the system again.
pub fn end() {
    STARTED.set(None);
    CHANCE.set(None);
}

/// Returns the nanoseconds since the clocks of this thread have started; `None` if no simulation runs.
fn elapsed() -> Option<i64> {
    let simulated = CHANCE.try_with(|chance| chance.try_borrow().map_or(true, |chance| chance.is_some()));
    if !simulated.unwrap_or(false) {
        return None;
    }
    let started = STARTED.get();
    // Without a runtime, `elapsed` would call this function again.
    let elapsed = started.filter(|_| !LOOKING.replace(true)).map(|started| started.elapsed().as_nanos());
    LOOKING.set(false);
    let looks = || {
        LOOKS.set(LOOKS.get() + LOOK);
        LOOKS.get()
    };
    Some(elapsed.map_or_else(looks, |elapsed| i64::try_from(elapsed).unwrap_or(i64::MAX)))
}

/// # Safety
/// As for the system's function: `buffer` has `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, flags: c_uint) -> isize {
    let drawn = CHANCE.try_with(|chance| {
        let mut chance = chance.try_borrow_mut().ok()?;
        let chance = chance.as_mut()?;
        if length > 0 {
            // SAFETY: the caller passes that many bytes.
            chance.fill_bytes(unsafe { std::slice::from_raw_parts_mut(buffer, length) });
        }
        isize::try_from(length).ok()
    });
    match drawn {
        Ok(Some(drawn)) => drawn,
        // SAFETY: the arguments are those of the caller.
        Ok(None) | Err(_) => unsafe {
            libc::syscall(libc::SYS_getrandom, buffer.cast::<c_void>(), length, flags) as isize
        },
    }
}

/// # Safety
/// As for the system's function: `time` can be written to.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    let start = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => Some(WALL_START),
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME => Some(MONOTONIC_START),
        _ => None,
    };
    let (Some(start), Some(elapsed)) = (start, elapsed()) else {
        // SAFETY: the arguments are those of the caller.
        return unsafe { libc::syscall(libc::SYS_clock_gettime, clock as c_long, time) as c_int };
    };
    let ahead = if start == WALL_START { host::ahead() } else { 0 };
    let seconds = start + ahead + elapsed / 1_000_000_000;
    // SAFETY: the caller passes a place to write to.
    unsafe { time.write(libc::timespec { tv_sec: seconds, tv_nsec: elapsed % 1_000_000_000 }) };
    0
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        time::{Duration, SystemTime},
    };

    use super::*;

    fn drawn(seed: u64) -> String {
        let thread = std::thread::spawn(move || {
            begin(seed);
            let order: Vec<u32> = (0..20).collect::<HashSet<u32>>().into_iter().collect();
            format!("{order:?} {} {}", rand::random::<u64>(), uuid())
        });
        thread.join().expect("a thread")
    }

    fn uuid() -> String {
        domain::core::id::ComponentId::parse("x1").map_or_else(|_| String::new(), |id| format!("{id:?}"))
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }

    #[test]
    fn other_threads_have_the_clock_of_the_system() {
        assert!(
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970") > Duration::ZERO
        );
        let before = std::time::Instant::now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(before.elapsed() >= Duration::from_millis(2));
    }
}
