//! Events of a component as the explanation reads them.

use std::sync::Arc;

use crate::{
    boot::{component::Action, evaluation::Reason},
    core::{time::Timestamp, trouble::TroubleKind},
};

/// Event of a component, with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEvent {
    /// Time of the commit.
    pub at: Timestamp,
    /// Change that the event describes.
    pub change: HistoryChange,
}

/// Change that an event describes, as far as it explains a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryChange {
    /// The desired state was set.
    WishSet {
        /// Session that set it; empty: none.
        session: Arc<str>,
    },
    /// Reveille acts on the node from now on.
    Enabled,
    /// Reveille acts on the node no more.
    Disabled {
        /// Rule that decided; `None`: a person did, or a rule of another version.
        reason: Option<Reason>,
    },
    /// A power action began.
    ActionBegan {
        /// The action.
        action: Action,
        /// Number of the attempt, counted from 1.
        attempt: u32,
    },
    /// A power action had no effect.
    ActionFailed {
        /// The action.
        action: Action,
        /// Number of the attempt, counted from 1.
        attempt: u32,
        /// Words of the power service; empty: it gave none.
        words: Arc<str>,
    },
    /// The preparation of a power-on failed.
    PreparationFailed {
        /// Number of the attempt, counted from 1.
        attempt: u32,
        /// Words of the peer.
        words: Arc<str>,
    },
    /// The node reported a boot.
    BootReported {
        /// Whether it is the wanted one.
        as_desired: bool,
    },
    /// The node reported a boot that was over already.
    EarlierBootReported,
    /// The inventory locked the node.
    Locked,
    /// The inventory lacks the node.
    NotListed,
}

/// Event as it is stored: words of [`ComponentEvent::content`](crate::boot::component::event::ComponentEvent::content).
#[derive(Debug, Clone, Copy, Default)]
pub struct StoredEvent<'a> {
    /// Word for the kind.
    pub kind: &'a str,
    /// Word for the reason.
    pub reason: &'a str,
    /// Text for people.
    pub text: &'a str,
    /// Value of the detail `attempt`.
    pub attempt: &'a str,
    /// Value of the detail `session`.
    pub session: &'a str,
}

impl HistoryChange {
    /// Kinds of the events that [`HistoryChange::read`] reads.
    pub const KINDS: [&str; 10] = [
        "desired_state_set",
        "enabled",
        "disabled",
        "power_action_began",
        "power_action_failed",
        "preparation_failed",
        "boot_reported",
        "earlier_boot_reported",
        "locked",
        "not_listed",
    ];

    /// Reads a stored event; `None`: it explains no boot, or another version wrote it.
    pub fn read(event: StoredEvent<'_>) -> Option<Self> {
        let attempt = || event.attempt.parse().ok();
        let action = || Action::ALL.into_iter().find(|action| action.word() == event.reason);
        match event.kind {
            "desired_state_set" => Some(Self::WishSet { session: event.session.into() }),
            "enabled" => Some(Self::Enabled),
            "disabled" => Some(Self::Disabled { reason: Reason::read(event.reason) }),
            "power_action_began" => Some(Self::ActionBegan { action: action()?, attempt: attempt()? }),
            "power_action_failed" => {
                Some(Self::ActionFailed { action: action()?, attempt: attempt()?, words: event.text.into() })
            }
            // A wait for a peer is no failure.
            "preparation_failed" if event.reason == TroubleKind::Waiting.word() => None,
            "preparation_failed" => {
                Some(Self::PreparationFailed { attempt: attempt()?, words: event.text.into() })
            }
            "boot_reported" => Some(Self::BootReported { as_desired: event.reason == "as_desired" }),
            "earlier_boot_reported" => Some(Self::EarlierBootReported),
            "locked" => Some(Self::Locked),
            "not_listed" => Some(Self::NotListed),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        boot::component::event::{ComponentEvent, EventArtifacts},
        core::trouble::{Trouble, TroubleKind},
    };

    fn read(event: ComponentEvent) -> Option<HistoryChange> {
        let content = event.content();
        let detail = |wanted: &str| {
            let found = content.details.iter().find(|(name, _)| *name == wanted);
            found.map_or_else(String::new, |(_, value)| value.to_string())
        };
        HistoryChange::read(StoredEvent {
            kind: content.kind,
            reason: &content.reason,
            text: &content.text,
            attempt: &detail("attempt"),
            session: &detail("session"),
        })
    }

    #[test]
    fn events_are_read_as_they_are_stored() {
        let action = Action::PoweringOn;
        let trouble = Arc::new(Trouble::own(TroubleKind::Failed, "no permission"));
        let failed = ComponentEvent::PowerActionFailed { action, attempt: 2, trouble: Some(trouble.clone()) };
        let rows = [
            (
                ComponentEvent::Disabled { reason: Reason::RetriesExhausted.word().into() },
                Some(HistoryChange::Disabled { reason: Some(Reason::RetriesExhausted) }),
            ),
            (
                ComponentEvent::Disabled { reason: Arc::default() },
                Some(HistoryChange::Disabled { reason: None }),
            ),
            (
                ComponentEvent::PowerActionBegan { action, attempt: 1 },
                Some(HistoryChange::ActionBegan { action, attempt: 1 }),
            ),
            (failed, Some(HistoryChange::ActionFailed { action, attempt: 2, words: "no permission".into() })),
            (
                ComponentEvent::PreparationFailed { attempt: 3, trouble },
                Some(HistoryChange::PreparationFailed { attempt: 3, words: "no permission".into() }),
            ),
            (
                ComponentEvent::BootReported { as_desired: false, artifacts: EventArtifacts::default() },
                Some(HistoryChange::BootReported { as_desired: false }),
            ),
            (ComponentEvent::EarlierBootReported, Some(HistoryChange::EarlierBootReported)),
            (ComponentEvent::Enabled, Some(HistoryChange::Enabled)),
            (ComponentEvent::Locked, Some(HistoryChange::Locked)),
            (ComponentEvent::NotListed, Some(HistoryChange::NotListed)),
            (ComponentEvent::Prepared { attempt: 1 }, None),
        ];
        for (event, expected) in rows {
            assert_eq!(read(event.clone()), expected, "{event:?}");
            assert_eq!(HistoryChange::KINDS.contains(&event.content().kind), expected.is_some());
        }
        let trouble = Arc::new(Trouble::waiting_for("BSS"));
        assert_eq!(read(ComponentEvent::PreparationFailed { attempt: 1, trouble }), None);
    }
}
