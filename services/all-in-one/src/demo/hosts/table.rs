//! Table of the hosts on the rack.

use std::{
    fmt,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::rack::DemoHost;

/// State in which a host can be provisioned.
const AVAILABLE: &str = "available";

/// Reason of the wait of a host that is as wished, its power included.
const SETTLED: &str = "Settled";

/// Longest error of a host, in characters: it has to fit into a line of a terminal.
const LONGEST_TEXT: usize = 60;

/// Table of the hosts on the rack.
#[derive(Debug)]
pub(super) struct RackTable {
    rows: Vec<HostRow>,
}

/// Row of a host.
#[derive(Debug, Clone)]
pub(super) struct HostRow {
    /// Name of the host.
    pub(super) name: String,
    component: String,
    /// State of the host; empty: new.
    pub(super) state: String,
    /// Beginning of the state.
    since: Instant,
    power: &'static str,
    is_settled: bool,
    error: String,
}

impl RackTable {
    /// Creates the table of hosts that have just been created.
    pub(super) fn new(hosts: &[DemoHost], now: Instant) -> Self {
        let row = |host: &DemoHost| HostRow {
            name: host.name(),
            component: host.xname().to_owned(),
            state: String::new(),
            since: now,
            power: "",
            is_settled: false,
            error: String::new(),
        };
        Self { rows: hosts.iter().map(row).collect() }
    }

    /// Rows, in the order of the slots.
    pub(super) fn rows(&self) -> &[HostRow] {
        &self.rows
    }

    /// Notes the newest object of a host. Others than those of the rack are left out.
    pub(super) fn note(&mut self, host: &Value, now: Instant) {
        let text = |path: &str| host.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let name = text("/metadata/name");
        let Some(row) = self.rows.iter_mut().find(|row| row.name == name) else { return };
        let state = text("/status/provisioning/state");
        if row.state != state {
            state.clone_into(&mut row.state);
            row.since = now;
        }
        row.power = match host.pointer("/status/poweredOn").and_then(Value::as_bool) {
            Some(true) => "on",
            Some(false) => "off",
            None => "",
        };
        row.is_settled = text("/status/reveille/wait/reason") == SETTLED;
        row.error = text("/status/errorMessage").chars().take(LONGEST_TEXT).collect();
    }

    /// Returns whether every host is available and needs nothing.
    pub(super) fn is_available(&self) -> bool {
        self.rows.iter().all(|row| row.state == AVAILABLE && row.is_settled)
    }

    /// Returns the table as text.
    pub(super) fn text(&self, now: Instant) -> String {
        let head = format!("{:<8}  {:<14}  {:<11}  {:<5}  for", "host", "component", "state", "power");
        let rows = self
            .rows
            .iter()
            .map(|row| format!("\n{row}  {}", seconds(now.duration_since(row.since), &row.error)));
        head + &rows.collect::<String>()
    }
}

impl fmt::Display for HostRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, component, state, power, .. } = self;
        write!(f, "{name:<8}  {component:<14}  {state:<11}  {power:<5}")
    }
}

fn seconds(time: Duration, error: &str) -> String {
    format!("{:.1} s  {error}", time.as_secs_f64()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::demo::hosts::rack;

    #[test]
    fn rows_show_the_newest_state_and_its_duration() {
        let begin = Instant::now();
        let mut table = RackTable::new(&rack::hosts(3), begin);
        let later = |seconds: u64| begin + Duration::from_secs(seconds);
        let host = |name: &str, state: &str, on: bool, error: &str| {
            let wait = json!({"wait": {"reason": if on { SETTLED } else { "DriverWorking" }}});
            let status = json!({
                "provisioning": {"state": state}, "poweredOn": on, "errorMessage": error, "reveille": wait,
            });
            json!({"metadata": {"name": name}, "status": status})
        };
        table.note(&host("node-1", "inspecting", false, ""), later(1));
        table.note(&host("node-1", "inspecting", true, ""), later(2));
        table.note(&host("node-2", "registering", false, "no login"), later(2));
        table.note(&host("other", "available", false, ""), later(2));
        expect![[r#"
            host      component       state        power  for
            node-1    x1000c0s0b0n0   inspecting   on     2.0 s
            node-2    x1000c0s0b0n1   registering  off    1.0 s  no login
            node-3    x1000c0s0b1n0                       3.0 s
        "#]]
        .assert_eq(&format!("{}\n", table.text(later(3))));
        assert!(!table.is_available());
        for name in ["node-1", "node-2", "node-3"] {
            table.note(&host(name, "available", true, ""), later(4));
        }
        assert!(table.is_available());
    }
}
