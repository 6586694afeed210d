//! Hints that the inventory has changed. A hint only makes the next poll come sooner: changes without a hint are
//! found by the periodic polls.

use std::time::Duration;

use tokio::sync::Notify;

use crate::RegistryState;

/// Shortest time between the beginnings of two polls of a kind, however many hints arrive.
pub(crate) const LEAST_GAP: Duration = Duration::from_secs(1);

/// Pending hints. Hints of one kind are merged.
#[derive(Default)]
pub(crate) struct PollHints {
    /// The inventory may list new nodes.
    pub(crate) nodes: Notify,
    /// Locks of enabled nodes may have changed.
    pub(crate) locks: Notify,
}

/// Kind of poll that a hint triggers.
#[derive(Debug, PartialEq, Eq)]
enum HintedPoll {
    Nodes,
    Locks,
    Nothing,
}

impl RegistryState {
    /// Handles a hint about the nodes `ids`; an empty list is about all nodes.
    pub(crate) fn take_hint(&self, ids: &[String]) {
        let components = self.components.view();
        match hinted_poll(ids, |id| components.get(id).map(|component| component.is_enabled())) {
            HintedPoll::Nodes => self.hints.nodes.notify_one(),
            HintedPoll::Locks => self.hints.locks.notify_one(),
            HintedPoll::Nothing => {}
        }
    }
}

/// Selects the poll that a hint triggers: discovery includes the locks, so one poll suffices. `enabled` returns
/// whether a known component is enabled.
fn hinted_poll(ids: &[String], enabled: impl Fn(&str) -> Option<bool>) -> HintedPoll {
    let known: Option<Vec<bool>> = ids.iter().map(|id| enabled(id)).collect();
    match known {
        None => HintedPoll::Nodes,
        Some(known) if known.is_empty() => HintedPoll::Nodes,
        Some(known) if known.contains(&true) => HintedPoll::Locks,
        Some(_) => HintedPoll::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_triggers_the_poll_that_it_needs() {
        let rows = [
            ("", HintedPoll::Nodes),
            ("new", HintedPoll::Nodes),
            ("on off", HintedPoll::Locks),
            ("off", HintedPoll::Nothing),
            ("on off new", HintedPoll::Nodes),
        ];
        for (ids, expected) in rows {
            let list: Vec<_> = ids.split_whitespace().map(str::to_owned).collect();
            let enabled = |id: &str| match id {
                "on" => Some(true),
                "off" => Some(false),
                _ => None,
            };
            assert_eq!(hinted_poll(&list, enabled), expected, "{ids}");
        }
    }
}
