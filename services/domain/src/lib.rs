//! Every rule of Reveille, as functions of values.
//!
//! This crate decides and nothing else: it reads no clock, opens no file or socket, knows no database, no
//! wire format and no task. Whatever a rule needs to know comes in as an argument, the time included, and
//! a rule answers for every input: what is not known is an observation, not an error.
//!
//! - `core`: what every capability needs. It knows nothing of the other folders.
//! - `boot`: machines that boot.
//!
//! Where a rule follows the Boot Orchestration Service, its documentation names the section of the BOS
//! reference that describes it, such as "BOS reference 5.3".

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod boot;
pub mod core;
