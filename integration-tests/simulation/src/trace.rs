//! The trace of a simulation, in order: a digest of all events, and their lines for readers.

use std::{cell::Cell, hash::Hasher};

use tokio::time::Instant;

thread_local! {
    static DIGEST: Cell<u64> = const { Cell::new(0xcbf2_9ce4_8422_2325) };
    static STARTED: Cell<Option<Instant>> = const { Cell::new(None) };
    static SHOWN: Cell<bool> = const { Cell::new(false) };
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Begins a trace. `shown`: print each line at once.
pub fn begin(shown: bool) {
    DIGEST.set(0xcbf2_9ce4_8422_2325);
    STEPS.set(0);
    SHOWN.set(shown);
    STARTED.set(Some(Instant::now()));
}

/// Returns the milliseconds of virtual time since the beginning.
pub fn now() -> u64 {
    let elapsed = STARTED.get().map(|started| started.elapsed().as_millis());
    elapsed.map_or(0, |elapsed| u64::try_from(elapsed).unwrap_or(u64::MAX))
}

/// Records an event, which counts for the digest.
pub fn note(what: impl FnOnce() -> String) {
    let line = format!("{:>9.3} {}", now() as f64 / 1e3, what());
    let mut digest = Fnv(DIGEST.get());
    digest.write(line.as_bytes());
    DIGEST.set(digest.0);
    STEPS.set(STEPS.get() + 1);
    if SHOWN.get() {
        println!("{line}");
    }
}

/// Prints an explanation of events, if the trace is shown.
pub fn say(what: impl FnOnce() -> String) {
    if SHOWN.get() {
        println!("{:>9.3} {}", now() as f64 / 1e3, what());
    }
}

/// Returns the digest of all events, and their number.
pub fn digest() -> (u64, u64) {
    (DIGEST.get(), STEPS.get())
}

/// Hasher that is the same in every process, unlike that of the standard library.
struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
