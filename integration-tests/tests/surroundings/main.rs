//! The mesh among the systems of a real site, each played over its own API, in health and in trouble.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod as_shipped;
mod boot_data;
mod configuration;
mod crashes;
mod disbelief;
mod economy;
mod inventory;
mod left_out;
mod life;
mod lost_answers;
mod mixtures;
mod options;
mod power_outage;
mod power_readings;
mod power_tasks;
mod promptness;
mod scene;
mod secrets;
mod served;
mod silent_peers;
mod spoilt_answers;
mod staged;
mod templates;
mod tenants;
