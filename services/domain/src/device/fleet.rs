//! Fleets: devices that share a template (device reference 3.1, 3.2).

pub mod event;
pub mod management;
pub mod ownership;
pub mod parameter;
pub mod record;
pub mod rollout;
pub mod template;
pub mod version;
