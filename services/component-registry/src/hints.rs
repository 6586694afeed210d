//! Hints that the inventory has changed. They only make the next look come sooner: what is not hinted at is
//! found by the looks that come anyway.

use std::time::Duration;

use tokio::sync::Notify;

use crate::Registry;

/// Shortest time between the beginnings of two looks of a kind, however many hints come.
pub(crate) const LEAST_GAP: Duration = Duration::from_secs(1);

/// Hints that nobody has followed yet. Any number of a kind are one.
#[derive(Default)]
pub(crate) struct Hints {
    /// There may be new nodes.
    pub(crate) nodes: Notify,
    /// Locks may have changed of nodes that are being acted on.
    pub(crate) locks: Notify,
}

/// What a hint is worth looking at for.
#[derive(Debug, PartialEq, Eq)]
enum Worth {
    Nodes,
    Locks,
    Nothing,
}

impl Registry {
    /// Takes the hint that something has changed about these; about anybody if there are none.
    pub(crate) fn take_hint(&self, ids: &[String]) {
        let components = self.components.view();
        match worth(ids, |id| components.get(id).map(|component| component.is_enabled())) {
            Worth::Nodes => self.hints.nodes.notify_one(),
            Worth::Locks => self.hints.locks.notify_one(),
            Worth::Nothing => {}
        }
    }
}

/// Looking for new nodes brings the locks too, so a hint is worth one look at most. `enabled` says it of those
/// who are known.
fn worth(ids: &[String], enabled: impl Fn(&str) -> Option<bool>) -> Worth {
    let known: Option<Vec<bool>> = ids.iter().map(|id| enabled(id)).collect();
    match known {
        None => Worth::Nodes,
        Some(known) if known.is_empty() => Worth::Nodes,
        Some(known) if known.contains(&true) => Worth::Locks,
        Some(_) => Worth::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_worth_what_it_may_be_about() {
        let rows = [
            ("", Worth::Nodes),
            ("new", Worth::Nodes),
            ("on off", Worth::Locks),
            ("off", Worth::Nothing),
            ("on off new", Worth::Nodes),
        ];
        for (ids, expected) in rows {
            let list: Vec<_> = ids.split_whitespace().map(str::to_owned).collect();
            let enabled = |id: &str| match id {
                "on" => Some(true),
                "off" => Some(false),
                _ => None,
            };
            assert_eq!(worth(&list, enabled), expected, "{ids}");
        }
    }
}
