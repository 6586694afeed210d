//! Rules and values that know nothing of booting or of hosts: ids, time, texts, troubles, and how upstreams are asked.

pub mod audit;
pub mod backoff;
pub mod bos_time;
pub mod call_rules;
pub mod capacity;
pub mod clock_offset;
pub mod condition;
pub mod confirmed_set;
pub mod decision;
pub mod event;
pub mod explanation;
pub mod id;
pub mod invalid;
pub mod limits;
pub mod looks;
pub mod node_set;
pub mod ownership;
pub mod pace;
pub mod refusal;
pub mod rollout;
pub mod shared_part;
pub mod text;
pub mod time;
pub mod trouble;
pub mod workload;
pub mod xname;
