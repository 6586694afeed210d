//! `reveille explain`: why a node, session, host or device is as it is, and what to do next.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::{
    client::{named, parsed, segment},
    connection::ConnectionFlags,
    error::{CommandError, ExitReason},
    output::{OutputFlags, print, show_to_programs},
    record::{CauseRecord, ExplanationRecord, age, span},
    sessions::one_node,
    table::{Cell, Table, TableForm},
    terminal::note,
};

/// Path of the explanations.
const PATH: &str = "/reveille/v1/explain";

/// Examples of `reveille explain`.
pub(crate) const EXAMPLES: &str = "\
Examples:
  reveille explain x1000c0s0b0n0
  reveille explain session NAME
  reveille explain host node-1 --namespace metal
  reveille explain device edge-7
  reveille explain x1000c0s0b0n0 -o json";

/// Flags of `reveille explain`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ExplainFlags {
    /// Node to explain
    #[arg(value_name = "NODE", required = true)]
    node: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
    #[command(subcommand)]
    subject: Option<ExplainCommand>,
}

/// Another subject than a node.
#[derive(Debug, Subcommand)]
pub(crate) enum ExplainCommand {
    /// Say why a session is as it is, with the causes of its nodes
    Session(SessionFlags),
    /// Say why a bare-metal host is as it is
    Host(HostFlags),
    /// Say why an edge device, or its request for enrolment, is as it is
    Device(DeviceFlags),
}

/// Flags of `reveille explain session`.
#[derive(Debug, Args)]
pub(crate) struct SessionFlags {
    /// Name of the session
    name: String,
    /// Tenant to which the session belongs [default: none]
    #[arg(long, value_name = "NAME")]
    of_tenant: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Flags of `reveille explain host`.
#[derive(Debug, Args)]
pub(crate) struct HostFlags {
    /// Name of the host
    name: String,
    /// Namespace of the host
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: String,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Flags of `reveille explain device`.
#[derive(Debug, Args)]
pub(crate) struct DeviceFlags {
    /// Name of the device
    name: String,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Explains a node, session, host or device.
///
/// # Errors
/// There is no such subject, or the gateway refuses.
pub(crate) async fn run(flags: &ExplainFlags) -> Result<ExitReason, CommandError> {
    match (&flags.subject, &flags.node) {
        (Some(ExplainCommand::Session(flags)), _) => session(flags).await,
        (Some(ExplainCommand::Host(flags)), _) => host(flags).await,
        (Some(ExplainCommand::Device(flags)), _) => device(flags).await,
        (None, node) => component(flags, node.as_deref().unwrap_or_default()).await,
    }
}

async fn component(flags: &ExplainFlags, node: &str) -> Result<ExitReason, CommandError> {
    let id =
        one_node(node, "one node is explained at a time", "`reveille explain session NAME` joins its nodes")?;
    let path = format!("{PATH}/components/{}", segment(&id));
    let document = flags.connection.client()?.get_own(&path, &[]).await;
    tell(&flags.output, document.map_err(named("component", &id))?)
}

async fn session(flags: &SessionFlags) -> Result<ExitReason, CommandError> {
    let path = format!("{PATH}/sessions/{}", segment(&flags.name));
    let query: Vec<_> = flags.of_tenant.iter().map(|name| ("tenant", name.clone())).collect();
    let document = flags.connection.client()?.get_own(&path, &query).await;
    tell(&flags.output, document.map_err(named("session", &flags.name))?)
}

async fn host(flags: &HostFlags) -> Result<ExitReason, CommandError> {
    let path = format!("{PATH}/hosts/{}/{}", segment(&flags.namespace), segment(&flags.name));
    let document = flags.connection.client()?.get_own(&path, &[]).await;
    let name = format!("{}/{}", flags.namespace, flags.name);
    tell(&flags.output, document.map_err(named("host", &name))?)
}

async fn device(flags: &DeviceFlags) -> Result<ExitReason, CommandError> {
    let path = format!("{PATH}/devices/{}", segment(&flags.name));
    let document = flags.connection.client()?.get_own(&path, &[]).await;
    tell(&flags.output, document.map_err(named("device", &flags.name))?)
}

fn tell(flags: &OutputFlags, document: Value) -> Result<ExitReason, CommandError> {
    if !flags.is_for_people() {
        let subject = document["subject"].as_str().unwrap_or_default().to_owned();
        show_to_programs(flags.output, &document, &[subject])?;
        return Ok(ExitReason::Done);
    }
    let explanation: ExplanationRecord = parsed(PATH, document)?;
    print(&text(&explanation, flags.form()))?;
    if !explanation.unanswered.is_empty() {
        note(&format!("evidence is missing: no answer from {}", explanation.unanswered.join(", ")));
    }
    Ok(ExitReason::Done)
}

/// Returns the sentence, the next step, the causes and the evidence.
fn text(explanation: &ExplanationRecord, form: TableForm) -> String {
    let mut text = line(&explanation.sentence);
    let step = &explanation.next_step;
    text += &line(&format!("next: {}", step.text));
    if !step.command.is_empty() {
        text += &line(&format!("      {}", step.command));
    }
    let stages = [("reached", &explanation.last_stage), ("missing", &explanation.missing_stage)];
    let stages: Vec<_> = stages
        .iter()
        .filter(|(_, stage)| !stage.is_empty())
        .map(|(word, stage)| format!("{word} {stage}"))
        .collect();
    if !stages.is_empty() {
        text += &line(&format!("boot: {}", stages.join(", ")));
    }
    text += "\nCAUSES\n";
    let now = explanation.explained_at.parse().unwrap_or_else(|_| Utc::now());
    text.extend(
        explanation.causes.iter().map(|one| line(&format!("- {}", one.sentence)) + &line(&values(one, now))),
    );
    let evidence = evidence(explanation);
    if !evidence.is_empty() {
        text.push('\n');
        text += &evidence.render(form);
    }
    text
}

/// Returns a line without characters that steer a terminal, which the words of a peer may hold.
fn line(text: &str) -> String {
    text.replace(char::is_control, " ") + "\n"
}

/// Returns the values of a cause that are known.
fn values(cause: &CauseRecord, now: DateTime<Utc>) -> String {
    let since = format!("{} ({} ago)", cause.since, age(&cause.since, now));
    let hidden = (cause.member_count as usize).saturating_sub(cause.members.len());
    let more = if hidden > 0 { format!(" and {hidden} more") } else { String::new() };
    let attempt = cause.attempt.as_ref().map(|one| match one.most {
        0 => one.number.to_string(),
        most => format!("{} of {most}", one.number),
    });
    let known = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let values = [
        ("", known(&cause.reason)),
        ("class ", known(&cause.class)),
        ("peer ", known(&cause.peer)),
        ("since ", known(&cause.since).map(|_| since)),
        ("until ", known(&cause.until)),
        ("attempt ", attempt),
        ("nodes ", known(&cause.members.join(",")).map(|nodes| nodes + &more)),
    ];
    let shown: Vec<_> =
        values.into_iter().filter_map(|(word, value)| Some(format!("{word}{}", value?))).collect();
    format!("  {}", shown.join("; "))
}

fn evidence(explanation: &ExplanationRecord) -> Table {
    let mut table = Table::new(["EVIDENCE", "VERDICT", "AGE", "CONTENT"]);
    for item in &explanation.evidence {
        table.push([
            Cell::plain(&item.source),
            Cell::plain(&item.verdict),
            Cell::plain(item.age_seconds.map(span).unwrap_or_default()),
            Cell::plain(&item.content),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn shown(document: Value) -> String {
        let explanation = serde_json::from_value(document).unwrap();
        text(&explanation, TableForm { width: None, colours: false })
    }

    #[test]
    fn nodes_are_explained_from_the_sentence_to_the_evidence() {
        let told = shown(json!({
            "subject": "x1", "outcome": "held", "sentence": "x1 is locked.", "last_stage": "prepared",
            "missing_stage": "power_accepted", "explained_at": "2026-01-01T00:10:00.000Z",
            "next_step": {"text": "Unlock it.", "command": "unlock x1"},
            "causes": [
                {"reason": "node_locked", "class": "operator", "since": "2026-01-01T00:05:00.000Z",
                 "peer": "inventory", "sentence": "x1 is locked.", "member_count": 0},
                {"reason": "power_on_refused", "class": "hardware", "attempt": {"number": 2, "most": 3},
                 "sentence": "x1 was refused: \u{1b}[2J.", "member_count": 0},
            ],
            "evidence": [
                {"source": "record", "verdict": "present", "content": "enabled"},
                {"source": "power_reading", "verdict": "unknown", "content": "off", "age_seconds": 300},
            ],
        }));
        expect![[r#"
            x1 is locked.
            next: Unlock it.
                  unlock x1
            boot: reached prepared, missing power_accepted

            CAUSES
            - x1 is locked.
              node_locked; class operator; peer inventory; since 2026-01-01T00:05:00.000Z (5m ago)
            - x1 was refused:  [2J.
              power_on_refused; class hardware; attempt 2 of 3

            EVIDENCE       VERDICT  AGE  CONTENT
            record         present       enabled
            power_reading  unknown  5m   off
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn sessions_name_the_nodes_of_each_cause() {
        let told = shown(json!({
            "subject": "s", "outcome": "failed", "sentence": "Session s is over.",
            "next_step": {"text": "Look."},
            "causes": [{"reason": "report_missing", "class": "boot_service", "sentence": "x1 (2 more alike).",
                "members": ["x1", "x2"], "member_count": 3}],
        }));
        expect![[r#"
            Session s is over.
            next: Look.

            CAUSES
            - x1 (2 more alike).
              report_missing; class boot_service; nodes x1,x2 and 1 more
        "#]]
        .assert_eq(&told);
    }
}
