//! A model checker of watches: writes and deliveries are recorded and judged by the rules of the contract, under
//! restarts, crashes, slow readers and forgotten deletions, on every database.
//!
//! - `history`: the record; `checker`: the rules
//! - `site`: registries on one database; `wire`: their API as a client meets it
//! - `writers`, `watchers`: the clients; `weather`: restarts and crashes meanwhile
//! - `workload`: all of it at once, from a seed
//! - `faults`: lies on the way to a watcher, to test the checker
//!
//! The seed is printed. `REVEILLE_SEED` repeats its choices, `REVEILLE_WATCH_SECONDS` sets how long each run writes,
//! and `REVEILLE_REGISTRIES` how many registries share a PostgreSQL database.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod checker;
mod faults;
mod history;
mod runs;
mod site;
mod slow;
mod watchers;
mod weather;
mod wire;
mod workload;
mod writers;
