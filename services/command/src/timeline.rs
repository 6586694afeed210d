//! `reveille timeline`: who did what to a node or a session, when and why.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::{
    client::parsed,
    connection::ConnectionFlags,
    error::{CommandError, ExitReason},
    events::since,
    output::{OutputFlags, show},
    record::{EntryRecord, SessionOrigin},
    sessions::node_set,
    table::{Cell, Table},
    terminal::note,
};

/// Path of the timeline.
const PATH: &str = "/reveille/v1/timeline";

/// Examples of `reveille timeline`.
pub(crate) const EXAMPLES: &str = "\
Examples:
  reveille timeline x1000c0s0b0n0
  reveille timeline x1000c0s0b0n0 --kind power_action_began    who switched it on and off
  reveille timeline x1000c0s0b0n0 --kind boot_reported --until 2026-01-27T00:00:00Z --limit 1    what it ran then
  reveille timeline session NAME";

/// Flags of `reveille timeline`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TimelineFlags {
    /// Nodes, such as x1000c0s[0-7]b0n0; at most 100 [default: everything]
    #[arg(value_name = "NODES")]
    nodes: Option<String>,
    #[command(flatten)]
    wanted: WantedFlags,
    #[command(subcommand)]
    subject: Option<TimelineSubject>,
}

/// Another subject than nodes.
#[derive(Debug, Subcommand)]
pub(crate) enum TimelineSubject {
    /// Show what a session did, and what happened to its nodes meanwhile
    Session(SubjectFlags),
    /// Show what happened to a host, such as metal/node-1
    Host(SubjectFlags),
    /// Show what happened to an edge device
    Device(SubjectFlags),
}

/// Flags of another subject than nodes.
#[derive(Debug, Args)]
pub(crate) struct SubjectFlags {
    /// Name
    name: String,
    /// Tenant to which the session belongs [default: none]
    #[arg(long, value_name = "NAME")]
    of_tenant: Option<String>,
    #[command(flatten)]
    wanted: WantedFlags,
}

/// Flags that every subject has.
#[derive(Debug, Args)]
pub(crate) struct WantedFlags {
    /// Only these kinds of events, separated by commas, such as power_action_began
    #[arg(long, value_name = "KINDS")]
    kind: Option<String>,
    /// Only events for these reasons, separated by commas, such as retries_exhausted
    #[arg(long, value_name = "REASONS")]
    reason: Option<String>,
    /// Only events by these authors, separated by commas, such as client
    #[arg(long, value_name = "NAMES")]
    actor: Option<String>,
    /// Only events since that time: as 2026-01-31T12:00:00Z, or how long ago, as 90s, 30m, 2h or 7d
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<String>,
    /// Only events before that time, in the same forms
    #[arg(long, value_name = "TIME", value_parser = since)]
    until: Option<String>,
    /// Most events; the newest are shown
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Show the events before that place, which an answer named
    #[arg(long, value_name = "PLACE", conflicts_with = "after")]
    before: Option<String>,
    /// Show the oldest events after that place, which an answer named
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

type QueryPairs = Vec<(&'static str, String)>;

/// Shows a part of the timeline, the newest event last.
///
/// # Errors
/// The nodes are no node set, or the gateway refuses.
pub(crate) async fn run(flags: &TimelineFlags) -> Result<ExitReason, CommandError> {
    let (wanted, mut query) = subject(flags)?;
    query.extend(wanted.query());
    let document = wanted.connection.client()?.get_own(PATH, &query).await?;
    tell(&wanted.output, &document)
}

/// Returns the flags of the subject, and the parameters that name it.
fn subject(flags: &TimelineFlags) -> Result<(&WantedFlags, QueryPairs), CommandError> {
    let named = |resource: &str, flags: &SubjectFlags| {
        vec![("resource", resource.to_owned()), ("name", flags.name.clone())]
    };
    Ok(match &flags.subject {
        Some(TimelineSubject::Session(of)) => {
            let tenant = of.of_tenant.iter().map(|tenant| ("tenant", tenant.clone()));
            let query = std::iter::once(("session", of.name.clone())).chain(tenant);
            (&of.wanted, query.collect())
        }
        Some(TimelineSubject::Host(of)) => (&of.wanted, named("host", of)),
        Some(TimelineSubject::Device(of)) => (&of.wanted, named("device", of)),
        None => {
            let nodes = flags.nodes.as_deref().map(node_set).transpose()?;
            let nodes = nodes.map(|set| set.names().join(","));
            let query = nodes.map(|names| vec![("resource", "component".to_owned()), ("name", names)]);
            (&flags.wanted, query.unwrap_or_default())
        }
    })
}

impl WantedFlags {
    fn query(&self) -> QueryPairs {
        let wanted = [
            ("kind", self.kind.clone()),
            ("reason", self.reason.clone()),
            ("actor", self.actor.clone()),
            ("since", self.since.clone()),
            ("until", self.until.clone()),
            ("before", self.before.clone()),
            ("after", self.after.clone()),
            ("limit", Some(self.limit.to_string())),
        ];
        wanted.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

fn tell(flags: &OutputFlags, document: &Value) -> Result<ExitReason, CommandError> {
    let entries: Vec<EntryRecord> = parsed(PATH, document["entries"].clone())?;
    let names =
        entries.iter().map(|entry| format!("{}/{}", entry.event.resource, entry.event.name)).collect();
    show(flags, document, names, |wide| table(&entries, wide))?;
    if flags.is_for_people() {
        let places =
            [("older ones: --before", &document["older"]), ("newer ones: --after", &document["newer"])];
        let places = places.iter().filter_map(|(words, place)| Some((words, place.as_str()?)));
        places.for_each(|(words, place)| note(&format!("{words} {place}")));
        let unanswered: Vec<_> =
            document["unanswered"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if !unanswered.is_empty() {
            note(&format!("who began the sessions is missing: no answer from {}", unanswered.join(", ")));
        }
    }
    Ok(ExitReason::Done)
}

/// Returns the entries, the newest last, as a log reads.
fn table(entries: &[EntryRecord], wide: bool) -> Table {
    let mut table = match wide {
        true => {
            Table::new(["TIME", "RESOURCE", "NAME", "EVENT", "REASON", "BY", "SESSION", "TEXT", "REQUEST"])
        }
        false => Table::new(["TIME", "NAME", "EVENT", "REASON", "BY", "SESSION", "TEXT"]),
    };
    for entry in entries.iter().rev() {
        let [time, name, kind, reason, actor] = [
            &entry.event.time,
            &entry.event.name,
            &entry.event.kind,
            &entry.event.reason,
            &entry.event.actor,
        ]
        .map(Cell::plain);
        let session = Cell::plain(entry.session.as_ref().map(told).unwrap_or_default());
        let text = Cell::plain(text(entry, wide));
        if wide {
            let [resource, request] = [&entry.event.resource, &entry.event.request_id].map(Cell::plain);
            table.push([time, resource, name, kind, reason, actor, session, text, request]);
        } else {
            table.push([time, name, kind, reason, actor, session, text]);
        }
    }
    table
}

/// Returns a session with its author.
fn told(session: &SessionOrigin) -> String {
    let author = [&session.operation, &session.actor].map(String::as_str);
    match author {
        ["", ""] => session.name.clone(),
        [operation, actor] => format!("{} ({operation} by {actor})", session.name),
    }
}

/// Returns the text and the values. The session has a column of its own, and kernel parameters fill a terminal.
fn text(entry: &EntryRecord, wide: bool) -> String {
    let shown = |name: &str| name != "session" && (wide || name != "kernel_parameters");
    let details = entry.event.details.iter().filter(|(name, _)| shown(name));
    let details = details.map(|(name, value)| format!("{name}={value}"));
    let text = std::iter::once(entry.event.text.clone()).filter(|text| !text.is_empty());
    text.chain(details).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::table::TableForm;

    #[test]
    fn entries_name_the_session_and_its_author() {
        let entries = json!([
            {"time": "2026-01-01T00:00:02.000Z", "resource": "component", "name": "x1", "kind": "boot_reported",
             "reason": "as_desired", "actor": "client", "request_id": "r2",
             "details": {"kernel": "k", "kernel_parameters": "p"},
             "session": {"name": "s", "operation": "boot", "actor": "client"}},
            {"time": "2026-01-01T00:00:01.000Z", "resource": "component", "name": "x1", "kind": "disabled",
             "actor": "status-evaluator", "text": "it ended", "session": {"name": "old"}},
        ]);
        let entries: Vec<EntryRecord> = serde_json::from_value(entries).unwrap();
        let shown = |wide| table(&entries, wide).render(TableForm { width: None, colours: false });
        expect![[r#"
            TIME                      NAME  EVENT          REASON      BY                SESSION             TEXT
            2026-01-01T00:00:01.000Z  x1    disabled                   status-evaluator  old                 it ended
            2026-01-01T00:00:02.000Z  x1    boot_reported  as_desired  client            s (boot by client)  kernel=k
        "#]].assert_eq(&shown(false));
        expect![[r#"
            TIME                      RESOURCE   NAME  EVENT          REASON      BY                SESSION             TEXT                          REQUEST
            2026-01-01T00:00:01.000Z  component  x1    disabled                   status-evaluator  old                 it ended
            2026-01-01T00:00:02.000Z  component  x1    boot_reported  as_desired  client            s (boot by client)  kernel=k kernel_parameters=p  r2
        "#]].assert_eq(&shown(true));
    }
}
