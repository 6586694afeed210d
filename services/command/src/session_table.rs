//! Sessions as a table.

use chrono::Utc;

use crate::{
    record::{SessionRecord, age},
    table::{Cell, Table, Tone},
};

/// Returns the sessions as a table.
pub(crate) fn table(sessions: &[SessionRecord], wide: bool) -> Table {
    let now = Utc::now();
    let narrow = ["NAME", "OPERATION", "TEMPLATE", "STATUS", "AGE", "ERROR"];
    let mut table = match wide {
        true => {
            Table::new(["NAME", "OPERATION", "TEMPLATE", "STATUS", "AGE", "ERROR", "STAGE", "LIMIT", "NODES"])
        }
        false => Table::new(narrow),
    };
    for session in sessions {
        let text = match session.status.error.as_str() {
            "" => &session.status.waiting_for,
            error => error,
        };
        let cells = [
            Cell::plain(&session.name),
            Cell::plain(&session.operation),
            Cell::plain(&session.template_name),
            Cell::new(status(session), tone(session)),
            Cell::plain(age(&session.status.start_time, now)),
            Cell::plain(text),
        ];
        if !wide {
            table.push(cells);
            continue;
        }
        let nodes = session.components.split(',').filter(|id| !id.is_empty()).count();
        let [name, operation, template, status, age, error] = cells;
        let stage = Cell::plain(if session.stage { "yes" } else { "no" });
        let (limit, nodes) = (Cell::plain(&session.limit), Cell::plain(nodes.to_string()));
        table.push([name, operation, template, status, age, error, stage, limit, nodes]);
    }
    table
}

/// Returns the status with the parts that BOS does not show, such as `running, paused`.
fn status(session: &SessionRecord) -> String {
    match session.detail.as_str() {
        "" => session.status.status.clone(),
        detail => format!("{}, {detail}", session.status.status),
    }
}

fn tone(session: &SessionRecord) -> Tone {
    match session.status.status.as_str() {
        _ if !session.status.error.is_empty() => Tone::Bad,
        "complete" => Tone::Good,
        _ => Tone::Busy,
    }
}
