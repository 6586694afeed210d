//! The behaviour of nodes after a change of their power.

use domain::boot::component::{ActualState, ComponentPatch, write};

use rand::Rng;

use crate::{mesh::Mesh, world::Event};

impl Mesh {
    pub(crate) fn power_changes(&mut self, node: usize, cycle: u32) {
        let hardware = &mut self.nodes[node].hardware;
        assert_eq!(hardware.cycle, cycle, "one action at a time");
        hardware.changing = None;
        hardware.cycle += 1;
        hardware.powered = !hardware.powered;
        hardware.running = None;
        if hardware.powered {
            hardware.boots += 1;
            // Boot data are read once, early; later preparations count for the next boot.
            hardware.loaded = hardware.boot_data.clone();
            let cycle = hardware.cycle;
            self.after(node, 20_000..200_000, Event::Boots { cycle });
        }
    }

    pub(crate) fn boots(&mut self, node: usize, cycle: u32) {
        let hardware = &mut self.nodes[node].hardware;
        if hardware.cycle != cycle || !hardware.comes_up() {
            return;
        }
        let (token, artifacts) = hardware.loaded.clone().expect("nothing boots unprepared");
        hardware.running = Some(artifacts);
        self.after(node, 100..2_000, Event::Reports { cycle, token });
        if self.nodes[node].hardware.configuration.as_deref() != Some("") {
            self.run_configuration(node);
        }
    }

    pub(crate) fn run_configuration(&mut self, node: usize) {
        let run = self.nodes[node].hardware.configuration_run;
        self.after(node, 10_000..60_000, Event::ConfigurationRuns { run });
    }

    /// Reports the token on the kernel command line of a node, repeatedly until the report is taken.
    pub(crate) fn node_reports(&mut self, node: usize, cycle: u32, token: String) {
        let known = &self.nodes[node];
        if known.hardware.cycle != cycle {
            return;
        }
        if write::guard_actual_state(&known.stored).is_err() {
            return self.after(node, 20_000..40_000, Event::Reports { cycle, token });
        }
        if self.rng.random_bool(0.3) {
            self.after(node, 0..1_500_000, Event::ReportsAgain { token: token.clone() });
        }
        self.take_report(node, token);
    }

    /// Delivers a late copy of a report, which is not repeated if it is refused.
    pub(crate) fn report_again(&mut self, node: usize, token: String) {
        if write::guard_actual_state(&self.nodes[node].stored).is_ok() {
            self.take_report(node, token);
        }
    }

    fn take_report(&mut self, node: usize, token: String) {
        let known = &self.nodes[node];
        let actual_state = Some(ActualState { bss_token: Some(token.into()), ..ActualState::default() });
        let patch = ComponentPatch { actual_state, ..ComponentPatch::default() };
        let tokens = |token: &str| self.tokens.get(token).cloned();
        let changed = write::patch(&known.stored, patch, tokens, self.time());
        self.store(node, changed);
    }
}
