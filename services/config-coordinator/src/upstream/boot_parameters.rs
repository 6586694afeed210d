//! Who tells nodes what to boot.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{
    Settings,
    lease::Custody,
    ledger::Ledger,
    settings::BootParametersDriver::{
        Bss as BssDriver, BuiltIn as BuiltInDriver, Simulated as SimulatedDriver,
    },
};
use domain::{boot::component::artifacts::BootArtifacts, core::id::ComponentId};
use proto::simulation::PutBootParametersRequest;

use super::{Failure, FailureKind, bss::Bss, built_in::BuiltIn, simulated::Simulated};
use crate::store::BootScripts;

/// Most hosts in one call to those that name no limit: more than any machine has.
const UNLIMITED: usize = 100_000;

/// Those who tell nodes what to boot.
#[derive(Clone)]
pub(crate) enum Driver {
    /// The simulated fleet.
    Simulated(Simulated),
    /// The boot script service.
    Bss(Bss),
    /// Scripts of our own.
    BuiltIn(BuiltIn),
}

impl Driver {
    /// The one that the settings name. `scripts` is where our own scripts are kept, of nodes that are in `custody` here.
    ///
    /// # Errors
    /// When it cannot be called with these settings.
    pub(crate) fn new(
        settings: &Settings,
        scripts: Ledger<BootScripts>,
        custody: Custody,
    ) -> anyhow::Result<Self> {
        let chosen = &settings.boot_parameters;
        Ok(match chosen.driver {
            SimulatedDriver => {
                Self::Simulated(Simulated::at(&settings.simulator.url).context("simulator.url")?)
            }
            BssDriver => Self::Bss(Bss::new(&chosen.bss)?),
            BuiltInDriver => Self::BuiltIn(BuiltIn::new(settings, scripts, custody)?),
        })
    }

    /// Most hosts in one call.
    pub(crate) fn most_hosts(&self) -> usize {
        match self {
            Self::Simulated(_) | Self::BuiltIn(_) => UNLIMITED,
            Self::Bss(bss) => bss.most_hosts(),
        }
    }

    /// Sets what `hosts` boot when they are next switched on, and gives the token that stands for it.
    /// Missing texts are empty ones to the server, which has `deadline` to begin its answer.
    pub(crate) async fn put(
        &self,
        hosts: &[ComponentId],
        artifacts: &BootArtifacts,
        deadline: Duration,
    ) -> Result<Arc<str>, Failure> {
        match self {
            Self::Simulated(fleet) => put_simulated(fleet, hosts, artifacts, deadline).await,
            Self::Bss(bss) => bss.put(hosts, artifacts, deadline).await,
            Self::BuiltIn(scripts) => scripts.put(hosts, artifacts).await,
        }
    }
}

async fn put_simulated(
    fleet: &Simulated,
    hosts: &[ComponentId],
    artifacts: &BootArtifacts,
    deadline: Duration,
) -> Result<Arc<str>, Failure> {
    let request = PutBootParametersRequest {
        hosts: hosts.iter().map(|host| host.as_str().to_owned()).collect(),
        params: text(&artifacts.kernel_parameters).to_owned(),
        kernel: text(&artifacts.kernel).to_owned(),
        initrd: text(&artifacts.initrd).to_owned(),
    };
    let token = fleet.answer(deadline, fleet.client().put_boot_parameters(request)).await?.referral_token;
    // Without a token nobody can tell what a node booted, so this is no acceptance (BOS reference 6.5).
    if token.is_empty() {
        let text = "the simulated fleet: the answer has no token".to_owned();
        return Err(Failure { kind: FailureKind::Ambiguous, status: None, text });
    }
    Ok(token.into())
}

/// A text as upstreams get it: a missing one is an empty one to them.
pub(super) fn text(text: &Option<Arc<str>>) -> &str {
    text.as_deref().unwrap_or_default()
}
