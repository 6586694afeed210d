//! The upstream that serves boot data to nodes.

use std::{sync::Arc, time::Duration};

use ::upstream::FirstCall;
use anyhow::Context as _;
use chassis::{
    Channel, Context, Settings, lease::Fence, settings::BootParametersDriver, store::ledger::Ledger,
};
use domain::{boot::component::artifacts::BootArtifacts, core::id::ComponentId};
use proto::simulation::PutBootParametersRequest;

use self::{bss::BssDriver, built_in::BuiltInDriver};
use super::{Failure, FailureKind, malformed, of_a_list, peer, simulated::SimulatedBootDriver};
use crate::store::BootScriptTable;

mod bss;
pub(crate) mod built_in;
mod names;

/// Most hosts in one call to upstreams that name no limit: more than any machine has.
const UNLIMITED: usize = 100_000;

/// Upstreams that serve boot data to nodes.
#[derive(Clone)]
pub(crate) enum BootDataUpstream {
    /// The simulated fleet.
    Simulated(SimulatedBootDriver),
    /// The boot script service.
    Bss(BssDriver),
    /// Our own boot scripts.
    BuiltIn(BuiltInDriver),
}

impl BootDataUpstream {
    /// Returns the driver that the settings name. `scripts` is the ledger of our own scripts.
    ///
    /// # Errors
    /// When it cannot be called with these settings.
    pub(crate) fn new(settings: &Settings, scripts: Ledger<BootScriptTable>) -> anyhow::Result<Self> {
        let chosen = &settings.boot_parameters;
        Ok(match chosen.driver {
            BootParametersDriver::Simulated => Self::Simulated(
                SimulatedBootDriver::at(&settings.tls, &settings.simulator.url).context("simulator.url")?,
            ),
            BootParametersDriver::Bss => Self::Bss(BssDriver::new(&chosen.bss)?),
            BootParametersDriver::BuiltIn => Self::BuiltIn(BuiltInDriver::new(settings, scripts)?),
        })
    }

    /// Begins to follow the records of the registry that name nodes.
    pub(crate) fn follow_registry(&self, context: &Context, registry: Channel) {
        match self {
            Self::Simulated(_) | Self::Bss(_) => {}
            Self::BuiltIn(scripts) => scripts.follow_registry(context, registry),
        }
    }

    /// Returns the call by which the upstream shows at the start that it can be used.
    pub(crate) fn first_call(&self) -> Option<FirstCall> {
        match self {
            Self::Simulated(_) | Self::BuiltIn(_) => None,
            Self::Bss(bss) => Some(bss.first_call()),
        }
    }

    /// Returns the most hosts in one call.
    pub(crate) fn most_hosts(&self) -> usize {
        match self {
            Self::Simulated(_) | Self::BuiltIn(_) => UNLIMITED,
            Self::Bss(bss) => bss.most_hosts(),
        }
    }

    /// Sets the boot data of `hosts` for their next power-on, and returns the token of these data. Missing texts are
    /// empty ones to the server, which has `deadline` to begin its answer. Our own scripts are written under `fence`.
    pub(crate) async fn put(
        &self,
        hosts: &[ComponentId],
        artifacts: &BootArtifacts,
        deadline: Duration,
        fence: Fence,
    ) -> Result<Arc<str>, Failure> {
        match self {
            Self::Simulated(fleet) => put_simulated(fleet, hosts, artifacts, deadline).await,
            Self::Bss(bss) => bss.put(hosts, artifacts, deadline).await,
            Self::BuiltIn(scripts) => scripts.put(hosts, artifacts, fence).await,
        }
    }
}

async fn put_simulated(
    fleet: &SimulatedBootDriver,
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
    // Without a token it is unknown later which data a node booted, so this is no acceptance (BOS reference 6.5).
    if token.is_empty() {
        let text = "the simulated fleet: the answer has no token".to_owned();
        return Err(Failure { kind: FailureKind::Ambiguous, status: None, text });
    }
    Ok(token.into())
}

/// Returns a text in the form for upstreams: a missing text is empty there.
fn text(text: &Option<Arc<str>>) -> &str {
    text.as_deref().unwrap_or_default()
}
