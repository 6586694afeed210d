//! Every rule of Reveille, as functions of values.
//!
//! This crate decides and nothing else: it reads no clock, opens no file or socket, knows no database, no
//! wire format and no task. Whatever a rule needs to know comes in as an argument, the time included, and
//! a rule answers for every input: what is not known is an observation, not an error.
//!
//! Where a rule follows the Boot Orchestration Service, its documentation names the section of the BOS
//! reference that describes it, such as "BOS reference 5.3".

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod artifacts;
pub mod boot_script;
pub mod boot_token;
pub mod bos_time;
pub mod capacity;
pub mod clock_offset;
pub mod compatibility;
pub mod completion;
pub mod component;
pub mod component_filter;
pub mod configuration;
pub mod confirmed_set;
pub mod decision;
pub mod evaluation;
pub mod id;
pub mod image;
pub mod invalid;
pub mod inventory;
pub mod limit;
pub mod limits;
pub mod looks;
pub mod loss;
pub mod membership;
pub mod options;
pub mod pace;
pub mod power;
pub mod preparation;
pub mod refusal;
pub mod repetition;
pub mod report;
pub mod session;
pub mod session_status;
pub mod staging;
pub mod status;
pub mod template;
pub mod text;
pub mod time;
pub mod trouble;
pub mod turns;
pub mod write;
