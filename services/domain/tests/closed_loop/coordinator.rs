//! The config coordinator and its upstreams.

use domain::{
    boot::{
        component::{artifacts::BootArtifacts, report::PreparationReport, write::KnownToken},
        configuration::{
            self, ConfigurationDecision, ConfigurationObservation,
            preparation::{self, PowerEvidence, Preparation, PreparationDecision},
        },
        power::PowerObservation,
    },
    core::trouble::Trouble,
};

use crate::{
    mesh::{MESSAGE, Mesh},
    world::{Event, Node},
};

impl Mesh {
    pub(crate) fn ask_configuration(&mut self, node: usize) {
        let known = &self.nodes[node];
        if let Some(observation) = known.hardware.configuration(self.now) {
            let answer = (observation, known.coordinator.generation);
            self.after(node, 5..500, Event::ConfigurationAnswer { asked_at: self.now, answer });
        }
    }

    pub(crate) fn want_preparation(&mut self, node: usize) {
        let decision = self.preparation_decision(node);
        let known = &mut self.nodes[node];
        let generation = known.coordinator.generation;
        let PreparationDecision::Prepare(wanted) = decision else { return };
        if known.preparing || known.prepared.contains(&(generation, wanted.attempt)) {
            return;
        }
        known.preparing = true;
        let pause = if known.coordinator.preparation_of(wanted.attempt).is_some() {
            10_000..30_000
        } else {
            500..2_000
        };
        self.after(node, pause, Event::Prepare { generation });
    }

    pub(crate) fn prepare(&mut self, node: usize, generation: u64) {
        let decision = self.preparation_decision(node);
        let known = &mut self.nodes[node];
        match decision {
            PreparationDecision::Prepare(wanted) if known.coordinator.generation == generation => {
                let (bss_token, error) = self.give_boot_data(node, generation, &wanted);
                let id = self.nodes[node].stored.id.clone();
                let attempt = wanted.attempt;
                let statement = PreparationReport {
                    id,
                    generation,
                    attempt,
                    token_number: self.tokens.get(&bss_token).map_or(0, |token| token.number),
                    bss_token: bss_token.into(),
                    trouble: Trouble::failed(&error).map(Into::into),
                    refused: false,
                };
                self.after(node, MESSAGE, Event::PreparationReported(statement));
            }
            _ => {
                known.preparing = false;
                self.want_preparation(node);
            }
        }
    }

    fn preparation_decision(&self, node: usize) -> PreparationDecision {
        let known = &self.nodes[node];
        let power = known.power_seen.map_or(
            PowerEvidence::UNKNOWN,
            |(reading, error, generation, spent_power_ons, _)| {
                let observation =
                    PowerObservation::of(reading, error, generation, known.coordinator.generation);
                PowerEvidence { observation, spent_power_ons }
            },
        );
        preparation::decide(&known.coordinator, &power, None, &self.options, self.time())
    }

    /// Sends boot data and configuration to the upstreams; returns token and error of the outcome.
    pub(crate) fn give_boot_data(
        &mut self,
        node: usize,
        generation: u64,
        wanted: &Preparation,
    ) -> (String, String) {
        let known = &mut self.nodes[node];
        assert!(!known.hardware.powered, "{:?} is prepared while it runs", known.coordinator);
        if !known.hardware.takes_boot_data(self.now) {
            return (String::new(), "no boot data taken".to_owned());
        }
        let token = format!("{}-{generation}-{}", known.stored.id, wanted.attempt);
        let artifacts = wanted.artifacts.clone();
        known.hardware.boot_data = Some((token.clone(), BootArtifacts::clone(&artifacts)));
        known.hardware.set_configuration(&wanted.configuration);
        known.prepared.insert((generation, wanted.attempt));
        let number = self.tokens.len() as u64 + 1;
        self.tokens.insert(token.clone(), KnownToken { boot_artifacts: artifacts, number });
        self.publish_configuration(node);
        (token, String::new())
    }

    /// Publishes a configuration that was just set, without a request; older answers do not count any more.
    pub(crate) fn publish_configuration(&mut self, node: usize) {
        let known = &mut self.nodes[node];
        known.configuration_asked_at = self.now;
        let observation = ConfigurationObservation::Known {
            desired: known.hardware.configuration.clone(),
            status: known.hardware.configuration_status.clone(),
        };
        let answer = (observation, known.coordinator.generation);
        self.at(node, self.now, Event::ConfigurationAnswer { asked_at: self.now, answer });
    }

    pub(crate) fn configure(&mut self, node: usize) {
        let known = &mut self.nodes[node];
        let differs = matches!(known.configuration_decision(), ConfigurationDecision::Set { .. });
        if differs && !std::mem::replace(&mut known.setting, true) {
            self.after(node, 100..1_000, Event::SetConfiguration);
        }
    }

    pub(crate) fn set_configuration(&mut self, node: usize) {
        let known = &mut self.nodes[node];
        known.setting = false;
        let ConfigurationDecision::Set { configuration, .. } = known.configuration_decision() else { return };
        known.hardware.set_configuration(&configuration);
        self.run_configuration(node);
        self.publish_configuration(node);
    }
}

impl Node {
    fn configuration_decision(&self) -> ConfigurationDecision {
        let observation = match self.configuration.clone() {
            Some((reading, generation)) => reading.of(generation, self.coordinator.generation),
            None => ConfigurationObservation::Unknown,
        };
        configuration::decide(&self.coordinator, &observation)
    }
}
