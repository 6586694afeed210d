//! Simulated agents of edge devices, over the port that real agents use: each enrols, polls for its spec, downloads,
//! applies and reboots, reports its status, and ends its life when that is asked for.
//!
//! - `key`: key of an agent, from which its name follows
//! - `port`: calls with the certificate of the agent
//! - `life`: one agent from its first request to its end
//! - `pace`: times of its work
//! - `report`: its status document

mod key;
mod life;
mod pace;
mod port;
mod report;

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc};

use anyhow::Context as _;
use chassis::Context;

use self::{key::AgentKey, life::AgentLife, pace::AgentPace, port::PortFiles};

/// Port of agents, and the files with which machines are delivered.
#[derive(Debug, Clone)]
pub struct AgentSite {
    /// Address, such as `https://127.0.0.1:7713`.
    pub url: String,
    /// PEM file with the authority of the port's certificate.
    pub authority: PathBuf,
    /// PEM file with the certificate with which agents ask to be enrolled, and its key.
    pub enrolling: PathBuf,
    /// Factor on every time of a real device; 0: no delay.
    pub speed: f64,
}

/// Device that is played.
#[derive(Debug, Clone, Default)]
pub struct AgentPlan {
    /// Labels that the agent suggests.
    pub labels: BTreeMap<String, String>,
    /// Trouble of the device.
    pub trouble: AgentTrouble,
}

/// Trouble of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentTrouble {
    /// No trouble.
    #[default]
    None,
    /// An application does not start after the first update of the system.
    AppFails,
    /// The first update of the system fails, and is tried again.
    UpdateFails,
    /// The device is cut off while its system is to be updated, and reconnects later.
    GoesSilent,
}

/// Starts an agent for each plan, which runs until shutdown; returns the names of the devices in that order.
///
/// # Errors
/// A file cannot be read, or a key cannot be made.
pub fn start(context: &Context, site: &AgentSite, plans: Vec<AgentPlan>) -> anyhow::Result<Vec<String>> {
    let read = |path: &PathBuf| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let files = Arc::new(PortFiles {
        url: site.url.clone(),
        authority: read(&site.authority)?,
        enrolling: read(&site.enrolling)?,
    });
    let pace = AgentPace { speed: site.speed };
    let mut names = Vec::new();
    for plan in plans {
        let key = AgentKey::new()?;
        names.push(key.name.clone());
        let life = AgentLife::new(key, plan, pace, Arc::clone(&files));
        context.tasks.spawn_until_shutdown("agent", async move {
            life.run().await;
            // A task that ends before the shutdown counts as a failure; a device that has ended its life is none.
            std::future::pending::<anyhow::Result<()>>().await
        });
    }
    Ok(names)
}
