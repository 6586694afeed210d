//! Every rule of Reveille, as functions of values.
//!
//! This crate decides and nothing else: it reads no clock, opens no file or socket, knows no database, no wire format
//! and no task. A rule takes everything that it needs as an argument, the time included, and answers for every input:
//! missing knowledge is an observation, not an error.
//!
//! - `core`: values and rules that every capability needs. `core` knows nothing of the other folders.
//! - `access`: rights of callers at the gateway, and which part may call which method of another.
//! - `boot`: machines that boot.
//! - `host`: bare-metal hosts.
//! - `device`: devices that look after themselves. `access`, `boot`, `host` and `device` know nothing of one another.
//!
//! Where a rule follows the Boot Orchestration Service, its documentation names the section of the BOS
//! reference that describes it, such as "BOS reference 5.3"; where it follows the life cycle of Metal3's hosts, such as
//! "host reference 1.12"; where it follows the devices of Flight Control, such as "device reference 2.4".

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod access;
pub mod boot;
pub mod core;
pub mod device;
pub mod host;
