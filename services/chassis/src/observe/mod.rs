//! Following records that others keep.
//!
//! - [`mirror`]: copies of the collections of other parts, and [`work`]: items that need a decision
//! - readings of outside systems: [`beat`], when they are polled; [`freshness`], until when they count;
//!   [`listen`], pushed changes; [`outage`], since when a system does not answer; [`reading_clock`], which reading is
//!   newer; [`single_flight`], calls that callers share

pub mod beat;
pub mod freshness;
pub mod listen;
pub mod mirror;
pub mod outage;
pub mod reading_clock;
pub mod single_flight;
pub mod work;
