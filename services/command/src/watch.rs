//! `reveille watch`: a session to its end, or the changes of components.

use std::{collections::BTreeMap, time::Duration};

use chrono::Utc;
use clap::{Args, Subcommand};
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    client::{GatewayClient, parsed},
    components::SelectionFlags,
    connection::ConnectionFlags,
    error::{CommandError, EXIT_CODES, ExitReason},
    follow::{WaitFlags, duration, follow},
    output::{OutputFlags, print},
    record::ComponentRecord,
    table::cut,
    terminal::{note, terminal_form},
};

/// Subject to watch.
#[derive(Debug, Subcommand)]
pub enum WatchCommand {
    /// Follow a session to its end, and end with its result
    #[command(after_help = EXIT_CODES)]
    Session(SessionFlags),
    /// Show the status of components and each change of it until Ctrl-C
    Components(ComponentsFlags),
}

/// Flags of `reveille watch session`.
#[derive(Debug, Args)]
pub struct SessionFlags {
    /// Name of the session
    name: String,
    #[command(flatten)]
    waiting: WaitFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Flags of `reveille watch components`.
#[derive(Debug, Args)]
pub struct ComponentsFlags {
    #[command(flatten)]
    selection: SelectionFlags,
    /// Time between two looks
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2s")]
    interval: Duration,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Status and error of each component as they were shown.
type ShownStates = BTreeMap<String, (String, String)>;

/// Carries a command out.
///
/// # Errors
/// The session does not exist, the nodes are no node set, or the gateway refuses.
pub(crate) async fn run(command: &WatchCommand) -> Result<ExitReason, CommandError> {
    match command {
        WatchCommand::Session(flags) => {
            follow(&flags.connection.client()?, &flags.name, flags.waiting, &flags.output).await
        }
        WatchCommand::Components(flags) => tokio::select! {
            result = changes(flags) => result,
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                Ok(ExitReason::Interrupted)
            }
        },
    }
}

async fn changes(flags: &ComponentsFlags) -> Result<ExitReason, CommandError> {
    let client = flags.connection.client()?;
    let mut shown = ShownStates::new();
    // The first look finds mistakes; later ones wait for a gateway that does not answer.
    look(&client, &flags.selection, &mut shown).await?;
    loop {
        sleep(flags.interval).await;
        match look(&client, &flags.selection, &mut shown).await {
            Err(error) if error.is_passing() => note(&error.to_string()),
            result => result?,
        }
    }
}

async fn look(
    client: &GatewayClient,
    selection: &SelectionFlags,
    shown: &mut ShownStates,
) -> Result<(), CommandError> {
    let documents = selection.select(client).await?.documents;
    let components: Vec<ComponentRecord> = parsed("/components", Value::Array(documents))?;
    let time = Utc::now().format("%H:%M:%S");
    let width = terminal_form().width.unwrap_or(usize::MAX);
    let lines =
        changed(components, shown).into_iter().map(|line| cut(&format!("{time}  {line}"), width) + "\n");
    let text: String = lines.collect();
    if text.is_empty() { Ok(()) } else { print(&text) }
}

/// Returns a line for each component that is new, is gone, or has another status or error than was shown.
fn changed(components: Vec<ComponentRecord>, shown: &mut ShownStates) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = ShownStates::new();
    for component in components {
        let state = (component.status.status, component.error.replace(char::is_control, " "));
        if shown.get(&component.id) != Some(&state) {
            lines.push(format!("{}  {}  {}", component.id, state.0, state.1).trim_end().to_owned());
        }
        current.insert(component.id, state);
    }
    let gone = shown.keys().filter(|id| !current.contains_key(*id));
    lines.extend(gone.map(|id| format!("{id}  no longer selected")));
    *shown = current;
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_changes_are_shown() {
        let mut shown = ShownStates::new();
        let mut rows = String::new();
        for round in [
            json!([{"id": "a", "status": {"status": "stable"}}, {"id": "b", "status": {"status": "failed"}, "error": "e"}]),
            json!([{"id": "a", "status": {"status": "stable"}}, {"id": "b", "status": {"status": "failed"}, "error": "e"}]),
            json!([{"id": "a", "status": {"status": "configuring"}}, {"id": "b", "status": {"status": "failed"}}]),
            json!([{"id": "b", "status": {"status": "failed"}}]),
        ] {
            let lines = changed(serde_json::from_value(round).unwrap(), &mut shown);
            rows.push_str(&format!("{lines:?}\n"));
        }
        expect![[r#"
            ["a  stable", "b  failed  e"]
            []
            ["a  configuring", "b  failed"]
            ["a  no longer selected"]
        "#]]
        .assert_eq(&rows);
    }
}
