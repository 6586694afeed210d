//! The simulated machine: the simulator, or fakes of the systems of a real site with their own APIs.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use chassis::{
    Context, Settings, bind,
    mesh::channel::LARGEST_MESSAGE,
    settings::{ImagesDriver, PowerDriver},
};
use proto::simulation::{ListFaultsRequest, fleet_service_client::FleetServiceClient};
use reveille::surroundings;
use upstreams::{ImageStock, MachinePlan, Upstreams};

use super::inputs::DemoInputs;

/// Provider of the machine.
pub(crate) enum DemoMachine {
    /// The simulator, a part of the mesh.
    Simulated,
    /// Fakes of external systems.
    Played(Upstreams),
}

impl DemoMachine {
    /// Starts the external systems of `settings`, and writes their addresses there.
    ///
    /// # Errors
    /// When the address cannot be listened on, or for surroundings that cannot be simulated.
    pub(crate) async fn start(settings: &mut Settings, inputs: &DemoInputs) -> anyhow::Result<Self> {
        if settings.is_simulated() {
            return Ok(Self::Simulated);
        }
        let played = settings.power.driver == PowerDriver::Pcs && settings.images.driver == ImagesDriver::S3;
        ensure!(played, "profile: the demo plays the surroundings of `simulated` and `csm`");
        let listener = bind("simulator", settings.simulator.listen).await?;
        let upstreams = Upstreams::start(plan(settings, inputs)?, listener).context("upstreams")?;
        surroundings::play(settings, &upstreams);
        Ok(Self::Played(upstreams))
    }

    /// Returns the injected faults by node.
    ///
    /// # Errors
    /// When the simulator does not answer.
    pub(crate) async fn faults(&self, context: &Context) -> anyhow::Result<BTreeMap<String, String>> {
        match self {
            Self::Simulated => simulated_faults(context).await,
            Self::Played(upstreams) => Ok(played_faults(upstreams)),
        }
    }
}

fn plan(settings: &Settings, inputs: &DemoInputs) -> anyhow::Result<MachinePlan> {
    let simulator = &settings.simulator;
    let plan = MachinePlan {
        hardware: inputs.fleet.hardware.clone(),
        groups: inputs.fleet.groups.clone(),
        images: ImageStock::default(),
        seed: simulator.seed,
        faults: simulator.faults.parse().context("faults")?,
        up: simulator.initial_power == "on",
        gateway_url: settings.gateway.url.clone(),
        ..MachinePlan::as_shipped(0)
    };
    Ok(plan.at_speed(simulator.speed))
}

async fn simulated_faults(context: &Context) -> anyhow::Result<BTreeMap<String, String>> {
    let simulator = context.channel(&context.settings.simulator.url)?;
    let mut client = FleetServiceClient::new(simulator).max_decoding_message_size(LARGEST_MESSAGE);
    let answer = client.list_faults(ListFaultsRequest {}).await.context("injected faults")?;
    Ok(answer.into_inner().faults.into_iter().map(|fault| (fault.id, fault.fault)).collect())
}

fn played_faults(upstreams: &Upstreams) -> BTreeMap<String, String> {
    let fault = |id: String| {
        let fault = upstreams.node(&id).ok()?.faults.hardware?;
        Some((id, fault.word().to_owned()))
    };
    upstreams.ids().into_iter().filter_map(fault).collect()
}
