//! All nodes and what is due when. Time is what the caller says it is, so a whole boot can be run in no time.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use crate::{
    boot::BootData,
    node::{Node, PowerCommand, Step, Timer, WantedConfiguration},
    reporter::Report,
};

/// What a call or the passing of time brought about.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Positions of nodes whose power changed, each once.
    pub(crate) power: Vec<usize>,
    /// Positions of nodes whose configuration changed, each once.
    pub(crate) configuration: Vec<usize>,
    /// Reports that nodes want to make now.
    pub(crate) reports: Vec<Report>,
}

/// The simulated machine.
#[derive(Debug)]
pub(crate) struct Machine {
    nodes: Vec<Node>,
    positions: HashMap<Arc<str>, usize>,
    /// By time; the number keeps apart what is due at the same time, in the order it was asked for.
    agenda: BTreeMap<(Duration, u64), (usize, Timer)>,
    sequence: u64,
}

impl Machine {
    pub(crate) fn new(nodes: Vec<Node>) -> Self {
        let positions = nodes.iter().enumerate().map(|(position, node)| (node.id.clone(), position)).collect();
        Self { nodes, positions, agenda: BTreeMap::new(), sequence: 0 }
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        self.positions.get(id).copied()
    }

    pub(crate) fn command(&mut self, now: Duration, command: PowerCommand, positions: &[usize]) -> Changes {
        self.each(now, positions, |node| node.command(command))
    }

    pub(crate) fn configure(
        &mut self,
        now: Duration,
        wanted: &WantedConfiguration,
        positions: &[usize],
    ) -> Changes {
        self.each(now, positions, |node| node.configure(wanted))
    }

    pub(crate) fn set_boot_data(&mut self, data: &Arc<BootData>, positions: &[usize]) {
        for &position in positions {
            self.nodes[position].set_boot_data(data.clone());
        }
    }

    fn each(&mut self, now: Duration, positions: &[usize], tell: impl Fn(&mut Node) -> Step) -> Changes {
        let mut changes = Changes::default();
        for &position in positions {
            let step = tell(&mut self.nodes[position]);
            self.note(now, position, step, &mut changes);
        }
        changes.once_each()
    }

    /// Does what is due by `now`, at most `most` things, the earliest first.
    pub(crate) fn advance(&mut self, now: Duration, most: usize) -> Changes {
        let mut changes = Changes::default();
        for _ in 0..most {
            let Some(first) = self.agenda.first_entry().filter(|first| first.key().0 <= now) else { break };
            let (position, timer) = first.remove();
            let step = self.nodes[position].run_out(timer);
            self.note(now, position, step, &mut changes);
        }
        changes.once_each()
    }

    /// When the next thing is due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.agenda.first_key_value().map(|((due, _), _)| *due)
    }

    fn note(&mut self, now: Duration, position: usize, step: Step, changes: &mut Changes) {
        if step.power_changed {
            changes.power.push(position);
        }
        if step.configuration_changed {
            changes.configuration.push(position);
        }
        if let Some(timer) = step.timer {
            self.sequence += 1;
            self.agenda.insert((now + timer.after, self.sequence), (position, timer));
        }
        changes.reports.extend(step.report);
    }
}

impl Changes {
    fn once_each(mut self) -> Self {
        for positions in [&mut self.power, &mut self.configuration] {
            positions.sort_unstable();
            positions.dedup();
        }
        self
    }
}
