//! All nodes and their scheduled events. The caller passes the time, so a whole boot can be simulated in no time.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use crate::{
    boot::BootData,
    faults::HardwareFault,
    node::{NodeStep, NodeTimer, PowerCommand, SimulatedNode, WantedConfiguration},
    reporter::NodeReport,
};

/// Effects of a call or of the passing of time.
#[derive(Debug, Default)]
pub struct MachineChanges {
    /// Positions of nodes whose power changed, each once.
    pub power: Vec<usize>,
    /// Positions of nodes whose configuration changed, each once.
    pub configuration: Vec<usize>,
    /// Reports that nodes send now.
    pub reports: Vec<NodeReport>,
    /// Positions of nodes whose operating system came up.
    pub booted: Vec<usize>,
}

/// The simulated machine.
#[derive(Debug)]
pub struct SimulatedMachine {
    nodes: Vec<SimulatedNode>,
    positions: HashMap<Arc<str>, usize>,
    /// Scheduled events by time; the number keeps the order of events at the same time.
    agenda: BTreeMap<(Duration, u64), (usize, NodeTimer)>,
    sequence: u64,
}

impl SimulatedMachine {
    /// Creates a machine of these nodes at time zero. The position of a node is its index in `nodes`.
    pub fn new(nodes: Vec<SimulatedNode>) -> Self {
        let positions =
            nodes.iter().enumerate().map(|(position, node)| (node.id.clone(), position)).collect();
        Self { nodes, positions, agenda: BTreeMap::new(), sequence: 0 }
    }

    /// All nodes, by position.
    pub fn nodes(&self) -> &[SimulatedNode] {
        &self.nodes
    }

    /// Returns the position of the node of this id; none if the machine does not have it.
    pub fn position(&self, id: &str) -> Option<usize> {
        self.positions.get(id).copied()
    }

    /// Turns the nodes at `positions` on or off; the effect takes time.
    pub fn command(&mut self, now: Duration, command: PowerCommand, positions: &[usize]) -> MachineChanges {
        self.each(now, positions, |node| node.command(command))
    }

    /// Sets the wanted configuration of the nodes at `positions`.
    pub fn configure(
        &mut self,
        now: Duration,
        wanted: &WantedConfiguration,
        positions: &[usize],
    ) -> MachineChanges {
        self.each(now, positions, |node| node.configure(wanted))
    }

    /// Sets or clears a fault. An operation in progress continues unchanged.
    pub fn set_fault(&mut self, position: usize, fault: Option<HardwareFault>) {
        self.nodes[position].fault = fault;
    }

    /// Sets the boot data for the next power-on of the nodes at `positions`.
    pub fn set_boot_data(&mut self, data: &Arc<BootData>, positions: &[usize]) {
        for &position in positions {
            self.nodes[position].set_boot_data(data.clone());
        }
    }

    fn each(
        &mut self,
        now: Duration,
        positions: &[usize],
        tell: impl Fn(&mut SimulatedNode) -> NodeStep,
    ) -> MachineChanges {
        let mut changes = MachineChanges::default();
        for &position in positions {
            let step = tell(&mut self.nodes[position]);
            self.note(now, position, step, &mut changes);
        }
        changes.once_each()
    }

    /// Handles the events that are due by `now`, at most `most` of them, the earliest first.
    pub fn advance(&mut self, now: Duration, most: usize) -> MachineChanges {
        let mut changes = MachineChanges::default();
        for _ in 0..most {
            let Some(first) = self.agenda.first_entry().filter(|first| first.key().0 <= now) else { break };
            let (position, timer) = first.remove();
            let step = self.nodes[position].run_out(timer);
            self.note(now, position, step, &mut changes);
        }
        changes.once_each()
    }

    /// Returns the time of the next event.
    pub fn next_due(&self) -> Option<Duration> {
        self.agenda.first_key_value().map(|((due, _), _)| *due)
    }

    fn note(&mut self, now: Duration, position: usize, step: NodeStep, changes: &mut MachineChanges) {
        if step.power_changed {
            changes.power.push(position);
        }
        if step.configuration_changed {
            changes.configuration.push(position);
        }
        if step.booted {
            changes.booted.push(position);
        }
        if let Some(timer) = step.timer {
            self.sequence += 1;
            self.agenda.insert((now + timer.after, self.sequence), (position, timer));
        }
        changes.reports.extend(step.report);
    }
}

impl MachineChanges {
    fn once_each(mut self) -> Self {
        for positions in [&mut self.power, &mut self.configuration] {
            positions.sort_unstable();
            positions.dedup();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::hardware::NodePace;

    const PACE: NodePace = NodePace {
        soft_off: Duration::from_secs(30),
        force_off: Duration::from_secs(2),
        power_on: Duration::from_secs(10),
        boot: Duration::from_secs(200),
        configuration: Duration::from_secs(100),
    };

    #[derive(Clone, Copy)]
    enum Tell {
        On,
        SoftOff,
        ForceOff,
        /// Sets boot data with this token.
        Boot(&'static str),
        /// Configuration, whether it is enabled, whether the state is cleared.
        Configure(&'static str, bool, bool),
    }
    use Tell::*;

    /// Transcript of one node with commands at given seconds, one line per second with a change.
    struct Story {
        machine: SimulatedMachine,
        lines: String,
        reports: Vec<NodeReport>,
    }

    impl Story {
        fn new(fault: Option<HardwareFault>, up: bool) -> Self {
            let node = SimulatedNode::new("x1000c0s0b0n0".into(), PACE, fault, false, up);
            Self { machine: SimulatedMachine::new(vec![node]), lines: String::new(), reports: Vec::new() }
        }

        fn tell(&mut self, second: u64, tell: Tell) {
            let now = Duration::from_secs(second);
            let changes = match tell {
                On => self.machine.command(now, PowerCommand::On, &[0]),
                SoftOff => self.machine.command(now, PowerCommand::SoftOff, &[0]),
                ForceOff => self.machine.command(now, PowerCommand::ForceOff, &[0]),
                Boot(token) => {
                    let data = BootData { token: token.into(), report_period: Duration::ZERO };
                    self.machine.set_boot_data(&data.into(), &[0]);
                    MachineChanges::default()
                }
                Configure(name, enabled, clear_state) => self.machine.configure(
                    now,
                    &WantedConfiguration { name: name.into(), enabled, clear_state },
                    &[0],
                ),
            };
            self.write(now, changes);
        }

        fn pass(&mut self, until: Duration) {
            while let Some(due) = self.machine.next_due().filter(|due| *due <= until) {
                let changes = self.machine.advance(due, 1);
                self.write(due, changes);
            }
        }

        fn write(&mut self, now: Duration, changes: MachineChanges) {
            let node = &self.machine.nodes()[0];
            let mut words = Vec::new();
            words.extend(changes.power.iter().map(|_| if node.is_on() { "on" } else { "off" }.to_owned()));
            words.extend(changes.reports.iter().map(|report| format!("reports {}", report.boot.token)));
            let (name, status) = node.configuration();
            words.extend(changes.configuration.iter().map(|_| format!("{name:?} {}", status.word())));
            if !words.is_empty() {
                self.lines += &format!("{:<4}{}\n", now.as_secs(), words.join(", "));
            }
            self.reports.extend(changes.reports);
        }
    }

    /// Runs the script until no event is left, and returns the transcript.
    fn story(fault: Option<HardwareFault>, up: bool, script: &[(u64, Tell)]) -> String {
        let mut story = Story::new(fault, up);
        for &(second, tell) in script {
            story.pass(Duration::from_secs(second));
            story.tell(second, tell);
        }
        story.pass(Duration::MAX);
        story.lines
    }

    const BOOT: [(u64, Tell); 3] = [(0, Boot("t1")), (0, Configure("c1", false, true)), (0, On)];

    #[test]
    fn boots_reports_and_gets_configured() {
        expect![[r#"
            0   "c1" pending
            10  on
            210 reports t1
            310 "c1" configured
        "#]]
        .assert_eq(&story(None, false, &BOOT));
    }

    #[test]
    fn boots_the_data_prepared_at_its_power_on() {
        let script = [(0, Boot("t1")), (0, On), (9, Boot("t2")), (11, Boot("t3"))];
        expect![[r#"
            10  on
            210 reports t2
        "#]]
        .assert_eq(&story(None, false, &script));
    }

    #[test]
    fn without_boot_data_it_turns_on_and_stays_silent() {
        let script = [(0, Configure("c1", true, true)), (0, On)];
        expect![[r#"
            0   "c1" pending
            10  on
        "#]]
        .assert_eq(&story(None, false, &script));
    }

    #[test]
    fn repeated_commands_do_not_start_over() {
        let script = [(0, On), (5, On), (20, On), (30, SoftOff), (50, SoftOff)];
        expect![[r#"
            10  on
            60  off
        "#]]
        .assert_eq(&story(None, false, &script));
    }

    #[test]
    fn force_overtakes_a_graceful_shutdown() {
        let script = [(0, SoftOff), (5, ForceOff)];
        expect![[r#"
            7   off
        "#]]
        .assert_eq(&story(None, true, &script));
    }

    #[test]
    fn off_cancels_an_unconfirmed_on() {
        let script = [(0, On), (5, SoftOff), (20, On), (25, ForceOff), (40, On)];
        expect![[r#"
            50  on
        "#]]
        .assert_eq(&story(None, false, &script));
    }

    #[test]
    fn turning_off_forgets_the_boot() {
        let script = [(0, Boot("t1")), (0, On), (100, ForceOff), (200, Boot("t2")), (200, On)];
        expect![[r#"
            10  on
            102 off
            210 on
            410 reports t2
        "#]]
        .assert_eq(&story(None, false, &script));
    }

    #[test]
    fn turning_off_ends_the_report() {
        let mut story = Story::new(None, false);
        BOOT.iter().for_each(|&(second, tell)| story.tell(second, tell));
        story.pass(Duration::from_secs(400));
        assert!(!story.reports[0].ended.is_cancelled());
        story.tell(400, SoftOff);
        story.pass(Duration::from_secs(500));
        assert!(story.reports[0].ended.is_cancelled());
    }

    #[test]
    fn turning_off_leaves_a_configuration_pending() {
        let script = [&BOOT[..], &[(250, ForceOff), (300, On)]].concat();
        expect![[r#"
            0   "c1" pending
            10  on
            210 reports t1
            252 off
            310 on
            510 reports t1
            610 "c1" configured
        "#]]
        .assert_eq(&story(None, false, &script));
    }

    #[test]
    fn configures_a_running_node_as_soon_as_allowed() {
        let script = [
            (0, Configure("c1", false, true)),
            (10, Configure("c1", true, false)),
            (20, Configure("c1", true, false)),
            (200, Configure("c1", true, false)),
            (300, Configure("c1", true, true)),
            (310, Configure("c2", true, false)),
            (500, Configure("c3", true, false)),
            (510, Configure("c3", false, false)),
            (700, Configure("", true, false)),
        ];
        expect![[r#"
            0   "c1" pending
            110 "c1" configured
            300 "c1" pending
            310 "c2" pending
            410 "c2" configured
            500 "c3" pending
            700 "" unconfigured
        "#]]
        .assert_eq(&story(None, true, &script));
    }

    #[test]
    fn a_fault_affects_only_its_own_step() {
        let script = [&BOOT[..], &[(400, SoftOff), (500, ForceOff)]].concat();
        let told = |fault: HardwareFault| format!("{}\n{}", fault.word(), story(Some(fault), false, &script));
        expect![[r#"
            stuck-off
            0   "c1" pending
            ignores-graceful-off
            0   "c1" pending
            10  on
            210 reports t1
            310 "c1" configured
            502 off
            never-reports
            0   "c1" pending
            10  on
            310 "c1" configured
            430 off
            configuration-fails
            0   "c1" pending
            10  on
            210 reports t1
            310 "c1" failed
            430 off
        "#]]
        .assert_eq(&HardwareFault::ALL.map(told).concat());
    }

    #[test]
    fn a_node_stuck_off_can_be_on_first() {
        let script = [(0, SoftOff), (100, On)];
        expect![[r#"
            30  off
        "#]]
        .assert_eq(&story(Some(HardwareFault::StuckOff), true, &script));
    }

    #[test]
    fn a_locked_node_stays_as_it_is() {
        let mut machine =
            SimulatedMachine::new(vec![SimulatedNode::new("x1000c0s0b0n0".into(), PACE, None, true, true)]);
        for command in [PowerCommand::SoftOff, PowerCommand::ForceOff, PowerCommand::On] {
            machine.command(Duration::ZERO, command, &[0]);
            assert_eq!(machine.next_due(), None);
        }
    }

    #[test]
    fn handles_at_most_the_given_number_of_events() {
        let pace = NodePace { power_on: Duration::ZERO, ..PACE };
        let node =
            |index: usize| SimulatedNode::new(index.to_string().into(), pace.clone(), None, false, false);
        let mut machine = SimulatedMachine::new((0..10).map(node).collect());
        let all: Vec<usize> = (0..10).collect();
        machine.command(Duration::ZERO, PowerCommand::On, &all);
        let turned_on = [4, 4, 4, 4].map(|most| machine.advance(Duration::ZERO, most).power.len());
        assert_eq!(turned_on, [4, 4, 2, 0]);
    }
}
