//! `reveille plan`: what a session would do, before it is created.

use std::{collections::BTreeMap, fmt::Write as _};

use clap::{Args, ValueEnum};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    client::parsed,
    connection::ConnectionFlags,
    error::{CommandError, ExitReason},
    output::{OutputFlags, print, show_to_programs},
    record::span,
    sessions::node_set,
    table::{Cell, Table, TableForm, Tone},
};

/// Path of plans.
const PATH: &str = "/reveille/v1/plans";

/// Most names in a cell. A terminal cuts them further.
const MOST_NAMES: usize = 20;

/// Examples of `reveille plan`.
pub(crate) const EXAMPLES: &str = "\
Examples:
  reveille plan compute
  reveille plan compute --operation reboot --limit x1000c[0-3]s[0-7]b0n[0-1]
  reveille boot compute --plan HASH --wait

Nothing is changed. The exit code is 0 if the session could be created, 1 if it would be refused or fail before it touches
a node, and 7 if it would take no node.";

/// Operation of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PlanOperation {
    /// Boot nodes into the state of the template
    #[default]
    Boot,
    /// Restart nodes into the state of the template
    Reboot,
    /// Shut down the nodes of the template
    Shutdown,
}

impl PlanOperation {
    fn word(self) -> &'static str {
        match self {
            Self::Boot => "boot",
            Self::Reboot => "reboot",
            Self::Shutdown => "shutdown",
        }
    }
}

/// Flags of `reveille plan`.
#[derive(Debug, Args)]
pub struct PlanFlags {
    /// Session template with the state of the nodes
    template: String,
    /// Operation of the session
    #[arg(long, value_enum, value_name = "OPERATION", default_value_t)]
    operation: PlanOperation,
    /// Nodes of the template that would take part; groups and roles too [default: all]
    #[arg(long, value_name = "NODES")]
    limit: Option<String>,
    /// Plan a session that only stages the state
    #[arg(long)]
    stage: bool,
    /// Take nodes that the inventory disables too
    #[arg(long)]
    include_disabled: bool,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Plan. Absent members are empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PlanRecord {
    hash: String,
    taken: usize,
    actions: BTreeMap<String, usize>,
    left_out_counts: BTreeMap<String, usize>,
    findings: Vec<FindingRecord>,
    changes: Vec<ChangeRecord>,
    nodes: Vec<NodeRecord>,
    left_out: Vec<LeftOutRecord>,
    expected: Option<ExpectedDuration>,
}

/// Seconds that the session would take.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ExpectedDuration {
    likely: f64,
    late: f64,
    learned_from: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FindingRecord {
    severity: String,
    reason: String,
    boot_set: String,
    text: String,
    names: Vec<String>,
    count: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChangeRecord {
    boot_set: String,
    members: Vec<MemberRecord>,
    nodes: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MemberRecord {
    member: String,
    before: String,
    after: String,
    removed: Vec<String>,
    added: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeRecord {
    id: String,
    boot_set: String,
    power: String,
    action: String,
    change: Option<usize>,
    held_by: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LeftOutRecord {
    id: String,
    boot_set: String,
    reason: String,
}

/// Shows the plan of a session.
///
/// # Errors
/// The limit is no node set, or the gateway refuses.
pub(crate) async fn run(flags: &PlanFlags) -> Result<ExitReason, CommandError> {
    let body = flags.body()?;
    let client = flags.connection.client()?;
    let document = client.send_own(Method::POST, PATH, &body).await?;
    let plan: PlanRecord = parsed(PATH, document.clone())?;
    match flags.output.is_for_people() {
        true => {
            let text = plan.text(flags.output.form(), flags.output.is_wide());
            print(&(text + &flags.next_step(&plan)))?;
        }
        false => {
            let names: Vec<_> = plan.nodes.iter().map(|node| node.id.clone()).collect();
            show_to_programs(flags.output.output, &document, &names)?;
        }
    }
    Ok(plan.reason())
}

impl PlanFlags {
    fn body(&self) -> Result<Value, CommandError> {
        let mut body = json!({
            "operation": self.operation.word(),
            "template_name": self.template,
            "stage": self.stage,
            "include_disabled": self.include_disabled,
        });
        if let Some(limit) = &self.limit {
            body["limit"] = json!(node_set(limit)?.limit());
        }
        Ok(body)
    }

    /// Returns the lines with the hash and the command that goes on with it.
    fn next_step(&self, plan: &PlanRecord) -> String {
        if plan.hash.is_empty() {
            return "\nno hash: a session like this would be refused, or touch no node\n".to_owned();
        }
        let mut command = format!("reveille {} {}", self.operation.word(), quoted(&self.template));
        if let Some(limit) = &self.limit {
            command += &format!(" --limit {}", quoted(limit));
        }
        for (is_given, flag) in [(self.stage, " --stage"), (self.include_disabled, " --include-disabled")] {
            command += if is_given { flag } else { "" };
        }
        format!("\nhash: {}\nnext: {command} --plan {} --wait\n", plan.hash, plan.hash)
    }
}

/// Returns a word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

impl PlanRecord {
    fn reason(&self) -> ExitReason {
        let would_fail = |finding: &FindingRecord| finding.severity == "error";
        match self.findings.iter().find(|finding| would_fail(finding) && finding.reason != "nothing_taken") {
            Some(_) => ExitReason::Refused,
            None if self.findings.iter().any(would_fail) => ExitReason::NothingDone,
            None => ExitReason::Done,
        }
    }

    fn text(&self, form: TableForm, wide: bool) -> String {
        let mut text = String::new();
        let sections = [
            ("", self.finding_table()),
            ("", self.counts()),
            ("differences:\n", self.change_table()),
            ("nodes:\n", if wide { self.node_table() } else { self.group_table() }),
            ("left out:\n", self.left_out_table()),
        ];
        for (title, table) in sections {
            if !table.is_empty() {
                let gap = if text.is_empty() { "" } else { "\n" };
                write!(text, "{gap}{title}{}", table.render(form)).expect("a text can always be written to");
            }
        }
        text + &self.expectation()
    }

    /// Returns the line about the duration.
    fn expectation(&self) -> String {
        let Some(ExpectedDuration { likely, late, learned_from }) = self.expected else {
            return String::new();
        };
        // Durations are far below the limit of the type.
        let [likely, late] = [likely, late].map(|seconds| span(seconds.ceil() as i64));
        format!(
            "\ntakes likely {likely}, in nine of ten cases at most {late} ({learned_from} nodes before)\n"
        )
    }

    fn finding_table(&self) -> Table {
        let mut table = Table::new(["FINDING", "REASON", "BOOT SET", "TEXT"]);
        for finding in &self.findings {
            let tone = match finding.severity.as_str() {
                "error" => Tone::Bad,
                "warning" => Tone::Busy,
                _ => Tone::Plain,
            };
            let names = match finding.count {
                0 => String::new(),
                count => format!(" ({count}: {})", names(finding.names.iter().map(String::as_str), count)),
            };
            table.push([
                Cell::new(&finding.severity, tone),
                Cell::plain(&finding.reason),
                Cell::plain(&finding.boot_set),
                Cell::plain(format!("{}{names}", finding.text)),
            ]);
        }
        table
    }

    fn counts(&self) -> Table {
        let mut table = Table::new(["NODES", "WOULD"]);
        table.push([Cell::plain(self.taken.to_string()), Cell::plain("be taken")]);
        for (action, count) in &self.actions {
            table.push([Cell::plain(count.to_string()), Cell::plain(action)]);
        }
        for (reason, count) in &self.left_out_counts {
            table.push([Cell::plain(count.to_string()), Cell::plain(format!("be left out: {reason}"))]);
        }
        table
    }

    fn change_table(&self) -> Table {
        let mut table = Table::new(["CHANGE", "NODES", "BOOT SET", "MEMBER", "BEFORE", "AFTER"]);
        for (number, change) in self.changes.iter().enumerate() {
            for member in &change.members {
                table.push([
                    Cell::plain(format!("#{number}")),
                    Cell::plain(change.nodes.to_string()),
                    Cell::plain(&change.boot_set),
                    Cell::plain(&member.member),
                    Cell::plain(side(&member.before, &member.removed, "-")),
                    Cell::plain(side(&member.after, &member.added, "+")),
                ]);
            }
        }
        table
    }

    /// Returns nodes of which the plan says the same as one row.
    fn group_table(&self) -> Table {
        let mut groups: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        for node in &self.nodes {
            let key = (&node.action, &node.boot_set, &node.power, node.change, &node.held_by);
            groups.entry(key).or_default().push(&node.id);
        }
        let mut table = Table::new(["COUNT", "ACTION", "POWER", "BOOT SET", "CHANGE", "TAKEN FROM", "NODES"]);
        for ((action, boot_set, power, change, held_by), ids) in groups {
            table.push([
                Cell::plain(ids.len().to_string()),
                Cell::plain(action),
                power_cell(power),
                Cell::plain(boot_set),
                Cell::plain(number(change)),
                Cell::plain(held_by),
                Cell::plain(names(ids.iter().copied(), ids.len())),
            ]);
        }
        table
    }

    fn node_table(&self) -> Table {
        let mut table = Table::new(["NODE", "ACTION", "POWER", "BOOT SET", "CHANGE", "TAKEN FROM"]);
        for node in &self.nodes {
            table.push([
                Cell::plain(&node.id),
                Cell::plain(&node.action),
                power_cell(&node.power),
                Cell::plain(&node.boot_set),
                Cell::plain(number(node.change)),
                Cell::plain(&node.held_by),
            ]);
        }
        table
    }

    fn left_out_table(&self) -> Table {
        let mut groups: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        for one in &self.left_out {
            groups.entry((&one.boot_set, &one.reason)).or_default().push(&one.id);
        }
        let mut table = Table::new(["COUNT", "REASON", "BOOT SET", "NAMES"]);
        for ((boot_set, reason), ids) in groups {
            table.push([
                Cell::plain(ids.len().to_string()),
                Cell::plain(reason),
                Cell::plain(boot_set),
                Cell::plain(names(ids.iter().copied(), ids.len())),
            ]);
        }
        table
    }
}

fn number(change: Option<usize>) -> String {
    change.map(|number| format!("#{number}")).unwrap_or_default()
}

fn power_cell(power: &str) -> Cell {
    match power {
        "" => Cell::new("unknown", Tone::Busy),
        power => Cell::plain(power),
    }
}

/// Returns one side of a difference: the words that differ of a command line, else the whole text.
fn side(text: &str, words: &[String], sign: &str) -> String {
    match (text, words) {
        ("", _) => "(none)".to_owned(),
        (text, []) => text.to_owned(),
        (_, words) => words.iter().map(|word| format!("{sign}{word}")).collect::<Vec<_>>().join(" "),
    }
}

/// Returns the first names of `count`.
fn names<'a>(names: impl Iterator<Item = &'a str>, count: usize) -> String {
    let shown: Vec<_> = names.take(MOST_NAMES).collect();
    let more = if count > shown.len() { ", …" } else { "" };
    shown.join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(limit: Option<&str>) -> PlanFlags {
        PlanFlags {
            template: "compute".into(),
            operation: PlanOperation::Boot,
            limit: limit.map(str::to_owned),
            stage: false,
            include_disabled: true,
            output: OutputFlags::default(),
            connection: ConnectionFlags::default(),
        }
    }

    fn plan() -> PlanRecord {
        let document = json!({
            "hash": "p1-3-00",
            "taken": 3,
            "actions": {"power_on": 2, "restart": 1},
            "left_out_counts": {"locked": 1},
            "findings": [
                {"severity": "warning", "reason": "no_console", "boot_set": "compute", "text": "no console=", "count": 0},
                {"severity": "warning", "reason": "superseded", "text": "session 's' would lose nodes",
                 "names": ["x1"], "count": 1},
            ],
            "changes": [{"boot_set": "compute", "nodes": 3, "members": [
                {"member": "kernel", "before": "", "after": "s3://k"},
                {"member": "kernel_parameters", "before": "quiet a", "after": "loud a",
                 "removed": ["quiet"], "added": ["loud"]},
            ]}],
            "nodes": [
                {"id": "x1", "boot_set": "compute", "power": "on", "action": "restart", "change": 0, "held_by": "s"},
                {"id": "x2", "boot_set": "compute", "power": "off", "action": "power_on", "change": 0},
                {"id": "x3", "boot_set": "compute", "power": "off", "action": "power_on", "change": 0},
            ],
            "left_out": [{"id": "x9", "boot_set": "compute", "reason": "locked"}],
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn plan_is_shown_with_findings_first() {
        let form = |width| TableForm { width, colours: false };
        let narrow = plan().text(form(Some(60)), false);
        assert!(narrow.starts_with("FINDING"), "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
        let wide = plan().text(form(None), true);
        for line in [
            "warning  superseded            session 's' would lose nodes (1: x1)",
            "2      power_on",
            "1      be left out: locked",
            "#0      3      compute   kernel             (none)  s3://k",
            "#0      3      compute   kernel_parameters  -quiet  +loud",
            "x1    restart   on     compute   #0      s",
            "x3    power_on  off    compute   #0",
            "1      locked  compute   x9",
        ] {
            assert!(wide.lines().any(|shown| shown == line), "{line:?} is not in\n{wide}");
        }
        let groups = plan().text(form(None), false);
        let group = "2      power_on  off    compute   #0                  x2, x3";
        assert!(groups.lines().any(|shown| shown == group), "{groups}");
        let next = flags(Some("x[1-3]")).next_step(&plan());
        let command = "reveille boot compute --limit 'x[1-3]' --include-disabled --plan p1-3-00 --wait";
        assert_eq!(next, format!("\nhash: p1-3-00\nnext: {command}\n"));
    }

    #[test]
    fn exit_code_tells_whether_the_session_could_be_created() {
        let with = |findings: Value| -> PlanRecord {
            serde_json::from_value(json!({ "findings": findings })).unwrap()
        };
        let error = |reason: &str| json!({"severity": "error", "reason": reason});
        assert_eq!(plan().reason(), ExitReason::Done);
        assert_eq!(with(json!([error("nothing_taken")])).reason(), ExitReason::NothingDone);
        assert_eq!(with(json!([error("template"), error("nothing_taken")])).reason(), ExitReason::Refused);
        assert!(flags(None).next_step(&with(json!([]))).contains("no hash"));
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        for (word, expected) in
            [("x1,x2", "x1,x2"), ("x[1-3],!x2", "'x[1-3],!x2'"), ("", "''"), ("it's", "'it'\\''s'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
