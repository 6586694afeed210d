//! Processes that die, hang or run out of something during boots. `README.md` in this folder maps faults to tests.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod backups;
mod certificates;
mod contention;
mod crowds;
mod databases;
mod encrypted;
mod failpoints;
mod full_disk;
mod history;
mod hosts;
mod kills;
mod migrations;
mod readiness;
mod slow_watcher;
mod stage;
mod ways_out;
