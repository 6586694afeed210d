//! Summary of a session, and its verdict.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
    time::Duration,
};

use anyhow::bail;
use domain::{
    boot::component::{Phase, status::ComponentStatus},
    core::id::ComponentId,
};

use super::progress::{MemberProgress, PHASES, SessionTally};

/// Most node names in a list.
const NAMED: usize = 5;

/// A complete session with its nodes.
pub(crate) struct DemoSummary<'a> {
    /// Name of the session.
    pub(crate) session: &'a str,
    /// Operation of the session.
    pub(crate) operation: &'a str,
    /// Error of the session; empty: none.
    pub(crate) error: &'a str,
    /// Time from the request until the completion.
    pub(crate) elapsed: Duration,
    /// Tally of the nodes.
    pub(crate) tally: &'a SessionTally,
    /// Injected faults by node.
    pub(crate) faults: &'a BTreeMap<String, String>,
}

impl DemoSummary<'_> {
    /// Checks that the session succeeded with every node without an injected fault.
    ///
    /// # Errors
    /// Names the failure.
    pub(crate) fn verdict(&self) -> anyhow::Result<()> {
        if !self.error.is_empty() {
            bail!("session {}: {}", self.session, self.error);
        }
        let members = self.tally.members().unwrap_or(0);
        let seen = self.tally.nodes().count();
        if seen < members {
            bail!("{} of {members} members were taken out of the session", members - seen);
        }
        let wrong = self
            .tally
            .nodes()
            .filter(|(id, node)| node.status != ComponentStatus::STABLE && self.fault(id).is_none());
        let mut wrong: Vec<_> = wrong.map(|(id, _)| id).collect();
        wrong.sort_unstable();
        match wrong.len() {
            0 => Ok(()),
            1 => bail!("a node without an injected fault is not stable: {}", wrong[0]),
            count => bail!("{count} nodes without an injected fault are not stable: {}", named(&wrong)),
        }
    }

    /// Returns a member for the hints, preferably a failing one.
    pub(crate) fn example(&self) -> String {
        let in_trouble = self.tally.trouble().first().map(|(id, _)| *id);
        let any = || self.tally.nodes().map(|(id, _)| id).min();
        in_trouble.or_else(any).map_or_else(|| "x1000c0s0b0n0".to_owned(), ComponentId::to_string)
    }

    fn fault(&self, id: &ComponentId) -> Option<&str> {
        self.faults.get(id.as_str()).map(String::as_str)
    }
}

/// Formats the summary.
pub(crate) fn render(outcome: &DemoSummary) -> String {
    let mut text = String::new();
    write_all(&mut text, outcome).expect("a string takes every text");
    text
}

fn write_all(text: &mut String, outcome: &DemoSummary) -> fmt::Result {
    let DemoSummary { session, operation, tally, .. } = outcome;
    let nodes = tally.nodes().count();
    writeln!(
        text,
        "session {session}: {operation} of {nodes} nodes complete after {}",
        seconds(outcome.elapsed)
    )?;
    if !outcome.error.is_empty() {
        writeln!(text, "session error: {}", outcome.error)?;
    }
    if nodes == 0 {
        return Ok(());
    }
    writeln!(text, "\n{:<28} {:>6}", "final status", "nodes")?;
    for (status, count) in tally.counts() {
        writeln!(text, "{status:<28} {count:>6}")?;
    }
    write_phases(text, tally)?;
    write_slowest(text, tally)?;
    write_failures(text, outcome)
}

fn write_phases(text: &mut String, tally: &SessionTally) -> fmt::Result {
    writeln!(text, "\n{:<28} {:>6} {:>9} {:>9}", "time per phase", "nodes", "median", "slowest")?;
    for (index, phase) in PHASES.iter().enumerate() {
        let mut times: Vec<_> =
            tally.nodes().filter_map(|(id, node)| node.spent(index).map(|spent| (spent, id))).collect();
        times.sort_unstable();
        let (Some((median, _)), Some((slowest, id))) =
            (times.get((times.len().max(1) - 1) / 2), times.last())
        else {
            continue;
        };
        let median = seconds(*median);
        let slowest = seconds(*slowest);
        writeln!(text, "{:<28} {:>6} {median:>9} {slowest:>9}  {id}", words(*phase), times.len())?;
    }
    Ok(())
}

fn words(phase: Phase) -> String {
    phase.word().replace('_', " ")
}

fn write_slowest(text: &mut String, tally: &SessionTally) -> fmt::Result {
    let mut slowest: Vec<_> =
        tally.nodes().filter_map(|(id, node)| node.settled.map(|time| (time, id, node))).collect();
    slowest.sort_unstable_by_key(|(time, id, _)| (std::cmp::Reverse(*time), *id));
    if !slowest.is_empty() {
        writeln!(text, "\nslowest nodes")?;
    }
    for (time, id, node) in slowest.into_iter().take(NAMED) {
        writeln!(text, "{:<28} {:>16}  {}", id.as_str(), seconds(time), node.status.word())?;
    }
    Ok(())
}

/// Writes the errors of nodes that are not stable, grouped by error.
fn write_failures(text: &mut String, outcome: &DemoSummary) -> fmt::Result {
    let mut failures = BTreeMap::<_, Vec<&ComponentId>>::new();
    for (id, node) in outcome.tally.nodes().filter(|(_, node)| node.status != ComponentStatus::STABLE) {
        failures.entry((node.status.word(), why(node), outcome.fault(id))).or_default().push(id);
    }
    if failures.is_empty() {
        return writeln!(text, "\nevery node is stable");
    }
    writeln!(text, "\nwhat failed and why")?;
    for ((status, why, fault), mut ids) in failures {
        ids.sort_unstable();
        let fault = fault.map_or("no fault was injected".to_owned(), |fault| format!("injected: {fault}"));
        let nodes = if ids.len() == 1 { "node" } else { "nodes" };
        writeln!(text, "{} {nodes} {status}: {why} ({fault})\n    {}", ids.len(), named(&ids))?;
    }
    Ok(())
}

fn why(node: &MemberProgress) -> &str {
    if node.error.is_empty() { "no reason was given" } else { &node.error }
}

/// Formats the first names of a list.
fn named(ids: &[&ComponentId]) -> String {
    let first: Vec<_> = ids.iter().take(NAMED).map(|id| id.as_str()).collect();
    let more = ids.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", first.join(", "))
}

/// Formats a time such as `12.3 s`, or `38 ms` if it is short.
pub(crate) fn seconds(time: Duration) -> String {
    match time.as_millis() {
        milliseconds @ 0..1000 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests;
