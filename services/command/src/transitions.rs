//! Power transitions: `reveille get transitions`, and `reveille transition abandon`.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};

use crate::{
    client::{GatewayClient, named, parsed},
    connection::ConnectionFlags,
    error::{CommandError, ExitReason},
    output::{OutputFlags, print, show},
    record::{TransitionRecord, age},
    sessions::one_node,
    table::{Cell, Table, Tone},
};

/// Path of the transitions.
const PATH: &str = "/reveille/v1/transitions";

/// Command about power transitions.
#[derive(Debug, Subcommand)]
pub enum TransitionCommand {
    /// Give up a transition that the power service never ends; its nodes are acted on again. Do so only when the power
    /// service certainly does nothing more to them. The attempt counts, also if it was never sent
    #[command(
        override_usage = "reveille transition abandon [OPTIONS] ID\n       reveille transition abandon [OPTIONS] --node NODE"
    )]
    Abandon(AbandonFlags),
}

/// Flags of `reveille transition abandon`.
#[derive(Debug, Args)]
pub struct AbandonFlags {
    /// Id of the transition, in Reveille or in the power service
    #[arg(required_unless_present = "node", conflicts_with = "node")]
    id: Option<String>,
    /// Node whose transition is meant: one of another client, or of Reveille if its time is over; all nodes of that transition
    /// are given up
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Carries a command out.
///
/// # Errors
/// There is no such transition, or the gateway refuses.
pub(crate) async fn run(command: &TransitionCommand) -> Result<ExitReason, CommandError> {
    let TransitionCommand::Abandon(AbandonFlags { id, node, connection }) = command;
    let (parameter, kind, name) = match (id, node) {
        (_, Some(node)) => ("component", "open transition of node", only_node(node)?),
        (id, None) => ("id", "transition", id.clone().unwrap_or_default()),
    };
    let query = [(parameter, name.clone())];
    let path = format!("{PATH}/abandon");
    let document = connection.client()?.act(&path, &query).await.map_err(named(kind, &name))?;
    let transition: TransitionRecord = parsed(&path, document)?;
    let nodes: Vec<_> = transition.members.iter().map(|member| member.id.as_str()).collect();
    let outcome = match transition.abandoned_at.as_str() {
        "" => "was over before".to_owned(),
        at => format!("abandoned at {at}"),
    };
    let nodes = if nodes.is_empty() { "its nodes are not known".to_owned() } else { nodes.join(",") };
    print(&format!("transition {} {outcome}: {nodes}\n", transition.id))?;
    Ok(ExitReason::Done)
}

/// Lists transitions, the oldest first.
///
/// # Errors
/// The gateway refuses.
pub(crate) async fn list(
    client: &GatewayClient,
    node: Option<&str>,
    output: &OutputFlags,
) -> Result<ExitReason, CommandError> {
    let node = node.map(only_node).transpose()?;
    let query: Vec<_> = node.map(|node| ("component", node)).into_iter().collect();
    let document = client.get_own(PATH, &query).await?;
    let transitions: Vec<TransitionRecord> = parsed(PATH, document.clone())?;
    let names = transitions.iter().map(|transition| id(transition).to_owned()).collect();
    show(output, &document, names, |wide| table(&transitions, wide, Utc::now()))?;
    Ok(ExitReason::Done)
}

fn only_node(text: &str) -> Result<String, CommandError> {
    let next = "`reveille get transitions` lists the transitions of all nodes";
    one_node(text, "one node is meant at a time", next)
}

fn table(transitions: &[TransitionRecord], wide: bool, now: DateTime<Utc>) -> Table {
    let mut header = vec!["ID", "ACTION", "DELIVERY", "AGE", "NODES", "ERROR"];
    header.extend(wide.then_some("POWER SERVICE'S ID"));
    let mut table = Table::new(header);
    for transition in transitions {
        let mut cells = vec![
            Cell::plain(id(transition)),
            Cell::plain(&transition.action),
            Cell::new(delivery(transition), tone(transition)),
            Cell::plain(age(&transition.created_at, now)),
            Cell::plain(nodes(transition)),
            Cell::plain(error(transition)),
        ];
        cells.extend(wide.then(|| Cell::plain(&transition.upstream_id)));
        table.push(cells);
    }
    table
}

/// Returns the id by which the transition can be abandoned. One of another client has only that of the power service.
fn id(transition: &TransitionRecord) -> &str {
    if transition.id.is_empty() { &transition.upstream_id } else { &transition.id }
}

fn delivery(transition: &TransitionRecord) -> &str {
    match (transition.id.is_empty(), transition.abandoned_at.is_empty()) {
        (true, _) => "of another client",
        (false, true) => &transition.delivery,
        (false, false) => "abandoned",
    }
}

fn tone(transition: &TransitionRecord) -> Tone {
    match delivery(transition) {
        "finished" if error(transition).is_empty() => Tone::Good,
        "prepared" | "sent" | "accepted" => Tone::Busy,
        _ => Tone::Bad,
    }
}

/// Returns the only node, or how many there are.
fn nodes(transition: &TransitionRecord) -> String {
    match transition.members.as_slice() {
        [one] => one.id.clone(),
        members => members.len().to_string(),
    }
}

/// Returns the error of the transition, or else of its first node that has one.
fn error(transition: &TransitionRecord) -> &str {
    let of_members = transition.members.iter().map(|member| member.error.as_str());
    let mut errors = [transition.error.as_str()].into_iter().chain(of_members);
    errors.find(|error| !error.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;
    use crate::table::TableForm;

    #[test]
    fn transitions_tell_their_delivery_and_first_error() {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        let transitions: Value = json!([
            {"id": "1", "action": "powering_on", "delivery": "finished", "created_at": "2026-01-01T00:00:00.000Z",
             "upstream_id": "u1", "members": [{"id": "x1"}, {"id": "x2", "error": "no\u{7}power"}]},
            {"id": "2", "action": "powering_off_gracefully", "delivery": "accepted", "abandoned_at": "2026-01-01T00:09:00.000Z",
             "created_at": "2026-01-01T00:09:50.000Z", "members": [{"id": "x3"}]},
            {"upstream_id": "u3", "action": "powering_on", "delivery": "accepted", "members": [{"id": "x4"}]},
        ]);
        let transitions: Vec<TransitionRecord> = serde_json::from_value(transitions).unwrap();
        let form = TableForm { width: None, colours: false };
        expect![[r#"
            ID  ACTION                   DELIVERY           AGE  NODES  ERROR     POWER SERVICE'S ID
            1   powering_on              finished           10m  2      no power  u1
            2   powering_off_gracefully  abandoned          10s  x3
            u3  powering_on              of another client       x4               u3
        "#]]
        .assert_eq(&table(&transitions, true, now).render(form));
    }
}
