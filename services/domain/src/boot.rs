//! Rules about machines that boot, grouped by the noun of each rule.
//!
//! A folder depends on those before it in this order, never on a later one: `bos`, `component`, `power` and
//! `template`, `configuration`, `evaluation` and `session`, `explanation`.

pub mod bos;
pub mod component;
pub mod configuration;
pub mod evaluation;
pub mod explanation;
pub mod power;
pub mod session;
pub mod template;
