//! Components: selection and tables.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::Value;

use crate::{
    client::{GatewayClient, parsed},
    error::{CommandError, ExitReason},
    output::{OutputFlags, show},
    record::{ComponentRecord, age},
    sessions::node_set,
    table::{Cell, Table},
    terminal::note,
};

/// Most missing nodes that are named.
const NAMED: usize = 10;

/// Flags that select components.
#[derive(Debug, Default, Args)]
pub struct SelectionFlags {
    /// Nodes, such as x1000c[0-3]s[0-7]b0n[0-1],!x1000c0s3b0n0 [default: all]
    nodes: Option<String>,
    /// Only the nodes of that session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Only nodes with one of these statuses, separated by commas, such as failed,configuring
    #[arg(long, value_name = "STATUSES")]
    status: Option<String>,
    /// Only nodes that are acted on, or are not
    #[arg(long, value_name = "BOOLEAN")]
    enabled: Option<bool>,
}

/// Components that were selected.
pub(crate) struct SelectedComponents {
    pub documents: Vec<Value>,
    /// Nodes that were named and do not exist; not known where something else narrows the selection.
    pub missing: Vec<String>,
}

impl SelectionFlags {
    /// Returns the selected components.
    ///
    /// # Errors
    /// The nodes are no node set, or the gateway refuses.
    pub(crate) async fn select(&self, client: &GatewayClient) -> Result<SelectedComponents, CommandError> {
        let query = self.query();
        let Some(nodes) = &self.nodes else {
            return Ok(SelectedComponents {
                documents: client.components(&query).await?,
                missing: Vec::new(),
            });
        };
        let set = node_set(nodes)?;
        let names = set.names();
        let documents = client.components_named(&names, &query).await?;
        let missing = if query.is_empty() { missing(&names, &documents) } else { Vec::new() };
        Ok(SelectedComponents { documents, missing })
    }

    fn query(&self) -> Vec<(&'static str, String)> {
        let enabled = self.enabled.map(|enabled| enabled.to_string());
        let wanted =
            [("session", self.session.clone()), ("status", self.status.clone()), ("enabled", enabled)];
        wanted.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// Returns the names without a document.
pub(crate) fn missing(names: &[&str], documents: &[Value]) -> Vec<String> {
    let found: BTreeSet<_> = documents.iter().filter_map(|component| component["id"].as_str()).collect();
    names.iter().filter(|name| !found.contains(*name)).map(|name| (*name).to_owned()).collect()
}

/// Lists the selected components.
///
/// # Errors
/// The nodes are no node set, some of them do not exist, or the gateway refuses.
pub(crate) async fn list(
    client: &GatewayClient,
    selection: &SelectionFlags,
    output: &OutputFlags,
) -> Result<ExitReason, CommandError> {
    let SelectedComponents { documents, missing } = selection.select(client).await?;
    let document = Value::Array(documents);
    let components: Vec<ComponentRecord> = parsed("/components", document.clone())?;
    let names = components.iter().map(|component| component.id.clone()).collect();
    if !components.is_empty() || missing.is_empty() {
        show(output, &document, names, |wide| table(&components, wide, Utc::now()))?;
    }
    refuse_missing(&missing)
}

/// Names nodes that do not exist, if there are any.
///
/// # Errors
/// Nodes are missing.
pub(crate) fn refuse_missing(missing: &[String]) -> Result<ExitReason, CommandError> {
    if missing.is_empty() {
        return Ok(ExitReason::Done);
    }
    if missing.len() > 1 {
        note(&format!("{} nodes of the set do not exist", missing.len()));
    }
    let named: Vec<_> = missing.iter().take(NAMED).map(String::as_str).collect();
    let more = if missing.len() > NAMED { ", …" } else { "" };
    Err(CommandError::Missing { kind: "component", name: named.join(", ") + more })
}

/// Returns the components as a table.
pub(crate) fn table(components: &[ComponentRecord], wide: bool, now: DateTime<Utc>) -> Table {
    let mut table = match wide {
        true => Table::new([
            "ID",
            "STATUS",
            "ENABLED",
            "SESSION",
            "LAST ACTION",
            "AGE",
            "ERROR",
            "PHASE",
            "ATTEMPTS",
            "CONFIGURATION",
            "KERNEL",
        ]),
        false => Table::new(["ID", "STATUS", "ENABLED", "SESSION", "LAST ACTION", "AGE", "ERROR"]),
    };
    for component in components {
        let cells = [
            Cell::plain(&component.id),
            Cell::new(&component.status.status, component.tone()),
            Cell::plain(if component.enabled { "yes" } else { "no" }),
            Cell::plain(&component.session),
            Cell::plain(&component.last_action.action),
            Cell::plain(age(&component.last_action.last_updated, now)),
            Cell::plain(&component.error),
        ];
        if !wide {
            table.push(cells);
            continue;
        }
        let [id, status, enabled, session, action, age, error] = cells;
        let attempts = component.event_stats.values().sum::<u32>().to_string();
        table.push([
            id,
            status,
            enabled,
            session,
            action,
            age,
            error,
            Cell::plain(&component.status.phase),
            Cell::plain(attempts),
            Cell::plain(&component.desired_state.configuration),
            Cell::plain(&component.desired_state.boot_artifacts.kernel),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::table::TableForm;

    #[test]
    fn components_are_rows() {
        let components = serde_json::from_value(json!([
            {"id": "x1000c0s0b0n0", "enabled": false, "status": {"status": "stable", "phase": ""}, "error": "",
             "last_action": {"action": "powering_on", "last_updated": "2026-01-01T00:00:00"}},
            {"id": "x1000c0s0b0n1", "enabled": true, "session": "night",
             "status": {"status": "power_on_called", "phase": "powering_on"}, "error": "PCS: no answer",
             "event_stats": {"power_on_attempts": 2}, "desired_state": {"configuration": "c",
             "boot_artifacts": {"kernel": "s3://b/k"}}},
        ]));
        let components: Vec<ComponentRecord> = components.unwrap();
        let now = "2026-01-01T00:05:00Z".parse().unwrap();
        let form = TableForm { width: None, colours: false };
        let shown = [false, true].map(|wide| table(&components, wide, now).render(form));
        expect![[r#"
            ID             STATUS           ENABLED  SESSION  LAST ACTION  AGE  ERROR
            x1000c0s0b0n0  stable           no                powering_on  5m
            x1000c0s0b0n1  power_on_called  yes      night                      PCS: no answer
            ID             STATUS           ENABLED  SESSION  LAST ACTION  AGE  ERROR           PHASE        ATTEMPTS  CONFIGURATION  KERNEL
            x1000c0s0b0n0  stable           no                powering_on  5m                                0
            x1000c0s0b0n1  power_on_called  yes      night                      PCS: no answer  powering_on  2         c              s3://b/k
        "#]].assert_eq(&shown.concat());
    }

    #[test]
    fn missing_nodes_are_found() {
        let found = [json!({"id": "a"}), json!({"id": "c"})];
        assert_eq!(missing(&["a", "b", "c", "d"], &found), ["b", "d"]);
    }
}
