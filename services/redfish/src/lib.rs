//! Calls of BMCs by Redfish (DSP0266), for the drivers of several services.
//!
//! A [`BmcClient`] serves one caller at a time, logs in, and reads documents. The crate knows what hardware gets wrong;
//! what is done with a system is its callers' concern.

mod access;
mod bmc;
mod login;
mod system;
mod task;

pub use bmc::{BmcClient, BmcTurn};
pub use login::{BmcLogin, LoginName, LoginReader};
pub use system::{ComputerSystem, ResetAction, SystemPower, allowable, choose_reset, link, members, path};
pub use task::TaskProgress;
