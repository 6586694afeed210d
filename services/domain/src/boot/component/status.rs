//! The status of a component in one word (BOS reference 3.5).

use crate::boot::component::{Action, Component, Phase};

/// Status of a component: its override if it has one, else its progress. The words are for operators and for the REST
/// contract; rules match variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ComponentStatus<'a> {
    /// The component waits for fresh evidence.
    OnHold,
    /// The component was given up.
    Failed,
    /// Progress by phase and last action.
    Progress(ComponentProgress),
    /// Override written by a client that is no word of Reveille.
    Overridden(&'a str),
}

/// Part of a status that follows from phase and last action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ComponentProgress {
    /// The node is due to be switched on.
    PowerOnPending,
    /// The node was switched on, and has not booted yet.
    PowerOnCalled,
    /// The node is due to be switched off.
    PowerOffPending,
    /// The node was asked to shut down.
    PowerOffGracefullyCalled,
    /// The node's power is being cut.
    PowerOffForcefullyCalled,
    /// The node runs the wanted artifacts and is being configured.
    Configuring,
    /// No work is due.
    Stable,
}

impl<'a> ComponentStatus<'a> {
    /// Status without any work due.
    pub const STABLE: Self = Self::Progress(ComponentProgress::Stable);

    /// Statuses that Reveille itself produces.
    pub const OWN: [Self; 9] = [
        Self::OnHold,
        Self::Failed,
        Self::Progress(ComponentProgress::PowerOnPending),
        Self::Progress(ComponentProgress::PowerOnCalled),
        Self::Progress(ComponentProgress::PowerOffPending),
        Self::Progress(ComponentProgress::PowerOffGracefullyCalled),
        Self::Progress(ComponentProgress::PowerOffForcefullyCalled),
        Self::Progress(ComponentProgress::Configuring),
        Self::STABLE,
    ];

    /// Reads the status from `text`, an override. An operator may write a word of Reveille, with its meaning.
    fn of_override(text: &'a str) -> Self {
        Self::OWN.into_iter().find(|status| status.word() == text).unwrap_or(Self::Overridden(text))
    }

    /// Returns the word of the REST contract.
    pub fn word(self) -> &'a str {
        match self {
            Self::OnHold => "on_hold",
            Self::Failed => "failed",
            Self::Progress(progress) => progress.word(),
            Self::Overridden(text) => text,
        }
    }
}

impl ComponentProgress {
    /// Returns the progress without any override. A failed last action matters only for powering on: there the node is
    /// to be switched on once more.
    pub fn of(phase: Phase, last: Option<Action>, last_failed: bool) -> Self {
        match (phase, last) {
            (Phase::PoweringOn, Some(Action::PoweringOn)) if !last_failed => Self::PowerOnCalled,
            (Phase::PoweringOn, _) => Self::PowerOnPending,
            (Phase::PoweringOff, Some(Action::PoweringOffGracefully)) => Self::PowerOffGracefullyCalled,
            (Phase::PoweringOff, Some(Action::PoweringOffForcefully)) => Self::PowerOffForcefullyCalled,
            (Phase::PoweringOff, _) => Self::PowerOffPending,
            (Phase::Configuring, _) => Self::Configuring,
            (Phase::None, _) => Self::Stable,
        }
    }

    /// Returns the word of the REST contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::PowerOnPending => "power_on_pending",
            Self::PowerOnCalled => "power_on_called",
            Self::PowerOffPending => "power_off_pending",
            Self::PowerOffGracefullyCalled => "power_off_gracefully_called",
            Self::PowerOffForcefullyCalled => "power_off_forcefully_called",
            Self::Configuring => "configuring",
            Self::Stable => "stable",
        }
    }
}

/// Returns the status of `component`: its override if it has one, else its progress by phase and last action.
pub fn computed_status(component: &Component) -> ComponentStatus<'_> {
    match component.status_override() {
        "" => ComponentStatus::Progress(computed_progress(component)),
        text => ComponentStatus::of_override(text),
    }
}

/// Returns the progress of `component`, whatever its override.
pub fn computed_progress(component: &Component) -> ComponentProgress {
    ComponentProgress::of(component.phase(), component.last_action(), component.last_action_failed())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        boot::component::{LastAction, Status},
        core::id::ComponentId,
    };

    fn component(phase: Option<Phase>, status_override: Option<&str>) -> Component {
        let mut component = Component::new(ComponentId::parse("x1").expect("valid"));
        component.evaluation.status =
            Some(Status { phase, status_override: status_override.map(Into::into) });
        component
    }

    #[test]
    fn phase_and_last_action_give_the_status() {
        let mut rows = String::new();
        for phase in Phase::ALL {
            for last in [None].into_iter().chain(Action::ALL.map(Some)) {
                let words = [false, true].map(|failed| ComponentProgress::of(phase, last, failed).word());
                let last = last.map_or("-", Action::word);
                rows += &format!("{:12} {last:24} {:28} {}\n", phase.word(), words[0], words[1]);
            }
        }
        expect![[r#"
                         -                        stable                       stable
                         actual_state_cleanup     stable                       stable
                         apply_staged             stable                       stable
                         newly_discovered         stable                       stable
                         powering_off_forcefully  stable                       stable
                         powering_off_gracefully  stable                       stable
                         powering_on              stable                       stable
                         session_setup            stable                       stable
            powering_on  -                        power_on_pending             power_on_pending
            powering_on  actual_state_cleanup     power_on_pending             power_on_pending
            powering_on  apply_staged             power_on_pending             power_on_pending
            powering_on  newly_discovered         power_on_pending             power_on_pending
            powering_on  powering_off_forcefully  power_on_pending             power_on_pending
            powering_on  powering_off_gracefully  power_on_pending             power_on_pending
            powering_on  powering_on              power_on_called              power_on_pending
            powering_on  session_setup            power_on_pending             power_on_pending
            powering_off -                        power_off_pending            power_off_pending
            powering_off actual_state_cleanup     power_off_pending            power_off_pending
            powering_off apply_staged             power_off_pending            power_off_pending
            powering_off newly_discovered         power_off_pending            power_off_pending
            powering_off powering_off_forcefully  power_off_forcefully_called  power_off_forcefully_called
            powering_off powering_off_gracefully  power_off_gracefully_called  power_off_gracefully_called
            powering_off powering_on              power_off_pending            power_off_pending
            powering_off session_setup            power_off_pending            power_off_pending
            configuring  -                        configuring                  configuring
            configuring  actual_state_cleanup     configuring                  configuring
            configuring  apply_staged             configuring                  configuring
            configuring  newly_discovered         configuring                  configuring
            configuring  powering_off_forcefully  configuring                  configuring
            configuring  powering_off_gracefully  configuring                  configuring
            configuring  powering_on              configuring                  configuring
            configuring  session_setup            configuring                  configuring
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn an_override_is_shown_as_it_is() {
        for (text, expected) in [
            ("on_hold", ComponentStatus::OnHold),
            ("failed", ComponentStatus::Failed),
            ("stable", ComponentStatus::STABLE),
            ("Gone fishing", ComponentStatus::Overridden("Gone fishing")),
            ("", ComponentStatus::Progress(ComponentProgress::PowerOnPending)),
        ] {
            let component = component(Some(Phase::PoweringOn), Some(text));
            let status = computed_status(&component);
            assert_eq!(status, expected);
            assert!(text.is_empty() || status.word() == text, "{text}");
        }
    }

    #[test]
    fn missing_members_count_as_nothing_under_way() {
        let mut bare = component(None, None);
        assert_eq!(computed_status(&bare), ComponentStatus::STABLE);
        bare.evaluation.status = None;
        assert_eq!(computed_status(&bare), ComponentStatus::STABLE);
        let mut called = component(Some(Phase::PoweringOn), None);
        called.power.last_action =
            Some(LastAction { action: Some(Action::PoweringOn), failed: None, last_updated: None });
        assert_eq!(computed_progress(&called), ComponentProgress::PowerOnCalled);
    }
}
