//! Each system over HTTP, as its clients see it.

mod bss;
mod cfs;
mod control;
mod hsm;
mod life;
mod mischief;
mod pcs;
mod stage;
mod stores;
mod trouble;
