//! `reveille events`: what happened, by whom and why.

use chrono::{SecondsFormat, Utc};
use clap::Args;

use crate::{
    client::parsed,
    connection::ConnectionFlags,
    error::{CommandError, ExitReason},
    follow::duration,
    output::{OutputFlags, show},
    record::EventRecord,
    sessions::node_set,
    table::{Cell, Table},
    terminal::note,
};

/// Path of the events.
const PATH: &str = "/reveille/v1/events";

/// Flags of `reveille events`.
#[derive(Debug, Args)]
pub struct EventsFlags {
    /// Only events of these nodes, such as x1000c0s[0-7]b0n0; at most 100
    #[arg(value_name = "NODES")]
    components: Option<String>,
    /// Only events of that session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Only events of that host, such as metal/node-1
    #[arg(long, value_name = "NAMESPACE/NAME")]
    host: Option<String>,
    /// Only events of that power transition
    #[arg(long, value_name = "ID")]
    transition: Option<String>,
    /// Only these kinds of resources, separated by commas, such as component,session
    #[arg(long, value_name = "KINDS")]
    resource: Option<String>,
    /// Only these kinds of events, separated by commas, such as power_action_began
    #[arg(long, value_name = "KINDS")]
    kind: Option<String>,
    /// Only events for these reasons, separated by commas, such as retries_exhausted
    #[arg(long, value_name = "REASONS")]
    reason: Option<String>,
    /// Only events since that time: as 2026-01-31T12:00:00Z, or how long ago, as 90s, 30m, 2h or 7d
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<String>,
    /// Most events; the newest are shown
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Show the events before that position, which the answer with the later ones named
    #[arg(long, value_name = "POSITION")]
    before: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Reads a time, or a duration until now.
pub(crate) fn since(text: &str) -> Result<String, String> {
    match duration(text) {
        Ok(ago) => {
            let ago = chrono::TimeDelta::from_std(ago).map_err(|_| "the time is out of bounds".to_owned())?;
            let time = Utc::now().checked_sub_signed(ago).ok_or("the time is out of bounds")?;
            Ok(time.to_rfc3339_opts(SecondsFormat::Secs, true))
        }
        Err(_) => match chrono::DateTime::parse_from_rfc3339(text) {
            Ok(_) => Ok(text.to_owned()),
            Err(_) => Err("a time is such as 2026-01-31T12:00:00Z, 30m or 2h".to_owned()),
        },
    }
}

impl EventsFlags {
    fn query(&self) -> Result<Vec<(&'static str, String)>, CommandError> {
        let components = self.components.as_deref().map(node_set).transpose()?;
        let components = components.map(|set| set.names().join(","));
        let wanted = [
            ("component", components),
            ("session", self.session.clone()),
            ("host", self.host.clone()),
            ("transition", self.transition.clone()),
            ("resource", self.resource.clone()),
            ("kind", self.kind.clone()),
            ("reason", self.reason.clone()),
            ("since", self.since.clone()),
            ("before", self.before.clone()),
            ("limit", Some(self.limit.to_string())),
        ];
        Ok(wanted.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }
}

/// Shows events, the newest last.
///
/// # Errors
/// The nodes are no node set, or the gateway refuses.
pub(crate) async fn run(flags: &EventsFlags) -> Result<ExitReason, CommandError> {
    let query = flags.query()?;
    let document = flags.connection.client()?.get_own(PATH, &query).await?;
    let events: Vec<EventRecord> = parsed(PATH, document["events"].clone())?;
    let names = events.iter().map(|event| format!("{}/{}", event.resource, event.name)).collect();
    show(&flags.output, &document, names, |wide| table(&events, wide))?;
    if let (true, Some(older)) = (flags.output.is_for_people(), document["older"].as_str()) {
        note(&format!("older ones: --before {older}"));
    }
    Ok(ExitReason::Done)
}

fn table(events: &[EventRecord], wide: bool) -> Table {
    let mut table = match wide {
        true => Table::new(["TIME", "RESOURCE", "NAME", "EVENT", "REASON", "BY", "TEXT", "REQUEST"]),
        false => Table::new(["TIME", "RESOURCE", "NAME", "EVENT", "REASON", "BY", "TEXT"]),
    };
    for event in events {
        let details = event.details.iter().map(|(name, value)| format!("{name}={value}"));
        let text = std::iter::once(event.text.clone()).filter(|text| !text.is_empty()).chain(details);
        let cells = [
            Cell::plain(&event.time),
            Cell::plain(&event.resource),
            Cell::plain(&event.name),
            Cell::plain(&event.kind),
            Cell::plain(&event.reason),
            Cell::plain(&event.actor),
            Cell::plain(text.collect::<Vec<_>>().join(" ")),
        ];
        if !wide {
            table.push(cells);
            continue;
        }
        let [time, resource, name, kind, reason, actor, text] = cells;
        table.push([time, resource, name, kind, reason, actor, text, Cell::plain(&event.request_id)]);
    }
    table
}
