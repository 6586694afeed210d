//! Kinds of action on a node, and the count of its power turns (BOS reference 2.3).

/// Kind of the last action on a component (BOS reference 2.3, "Action").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// An old report was forgotten.
    ActualStateCleanup,
    /// A staged state became the desired state.
    ApplyStaged,
    /// The node was found in the inventory.
    NewlyDiscovered,
    /// The node's power is cut.
    PoweringOffForcefully,
    /// The node is asked to shut down.
    PoweringOffGracefully,
    /// The node is switched on.
    PoweringOn,
    /// A session set the desired state.
    SessionSetup,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 7] = [
        Self::ActualStateCleanup,
        Self::ApplyStaged,
        Self::NewlyDiscovered,
        Self::PoweringOffForcefully,
        Self::PoweringOffGracefully,
        Self::PoweringOn,
        Self::SessionSetup,
    ];

    /// Returns the word of the REST contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::ActualStateCleanup => "actual_state_cleanup",
            Self::ApplyStaged => "apply_staged",
            Self::NewlyDiscovered => "newly_discovered",
            Self::PoweringOffForcefully => "powering_off_forcefully",
            Self::PoweringOffGracefully => "powering_off_gracefully",
            Self::PoweringOn => "powering_on",
            Self::SessionSetup => "session_setup",
        }
    }
}

/// Phase of the work on a component (BOS reference 2.3, "Phase").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// No work is under way; the word is an empty text.
    #[default]
    None,
    /// The node is being switched on.
    PoweringOn,
    /// The node is being switched off.
    PoweringOff,
    /// The node runs and is being configured.
    Configuring,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 4] = [Self::None, Self::PoweringOn, Self::PoweringOff, Self::Configuring];

    /// Returns the word of the REST contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "",
            Self::PoweringOn => "powering_on",
            Self::PoweringOff => "powering_off",
            Self::Configuring => "configuring",
        }
    }
}

/// Turns of the power of one node since an operator or a session last set its wanted state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PowerTurns {
    /// Actions that began in the direction opposite to the action before.
    pub count: u32,
    /// The last power action that began.
    pub last: Option<Action>,
}

impl PowerTurns {
    /// Returns the turns once `action` has begun as well.
    #[must_use]
    pub(crate) fn with(self, action: Action) -> Self {
        let Some(on) = turns_on(action) else { return self };
        let turns = u32::from(self.last.and_then(turns_on).is_some_and(|last| last != on));
        Self { count: self.count.saturating_add(turns), last: Some(action) }
    }
}

/// Returns whether the action switches on; `None`: it does not change the power.
fn turns_on(action: Action) -> Option<bool> {
    match action {
        Action::PoweringOn => Some(true),
        Action::PoweringOffGracefully | Action::PoweringOffForcefully => Some(false),
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: Action = Action::PoweringOn;
    const ASK: Action = Action::PoweringOffGracefully;
    const CUT: Action = Action::PoweringOffForcefully;

    #[test]
    fn only_opposite_actions_are_turns() {
        let rows: [(&[Action], u32); 6] = [
            (&[], 0),
            (&[ON], 0),
            (&[ON, ON, ON], 0),
            (&[ASK, CUT, ON], 1),
            (&[ON, CUT, ON, ASK], 3),
            (&[ON, Action::SessionSetup, ASK], 1),
        ];
        for (actions, count) in rows {
            let turns = actions.iter().fold(PowerTurns::default(), |turns, action| turns.with(*action));
            assert_eq!(turns.count, count, "{actions:?}");
        }
    }
}
