//! Phases of the work on a component, whose durations are measured.

use super::status::{ComponentProgress, ComponentStatus};

/// Phase of the work on a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkPhase {
    /// The node is to be switched off, and is on.
    PowerOff,
    /// The node is to be switched on, and no power-on was begun.
    PowerOn,
    /// The node was switched on, and its boot is awaited.
    Boot,
    /// The node runs the wanted boot, and is being configured.
    Configure,
}

/// End of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PhaseEnd {
    /// The next phase began, or the work is done.
    Done,
    /// An earlier phase began anew.
    Retried,
    /// The component was given up.
    Failed,
    /// The component is held, or a client overrode its status.
    Held,
}

impl WorkPhase {
    /// Returns the phase of a component with that status, if work is under way.
    pub fn of(status: ComponentStatus<'_>) -> Option<Self> {
        match status {
            ComponentStatus::Progress(progress) => Self::of_progress(progress),
            ComponentStatus::OnHold | ComponentStatus::Failed | ComponentStatus::Overridden(_) => None,
        }
    }

    fn of_progress(progress: ComponentProgress) -> Option<Self> {
        match progress {
            ComponentProgress::PowerOffPending
            | ComponentProgress::PowerOffGracefullyCalled
            | ComponentProgress::PowerOffForcefullyCalled => Some(Self::PowerOff),
            ComponentProgress::PowerOnPending => Some(Self::PowerOn),
            ComponentProgress::PowerOnCalled => Some(Self::Boot),
            ComponentProgress::Configuring => Some(Self::Configure),
            ComponentProgress::Stable => None,
        }
    }

    /// Returns the end of the phase of a component that has the status `next` now; `None`: the phase goes on.
    pub fn end_with(self, next: ComponentStatus<'_>) -> Option<PhaseEnd> {
        match next {
            ComponentStatus::Failed => Some(PhaseEnd::Failed),
            ComponentStatus::OnHold | ComponentStatus::Overridden(_) => Some(PhaseEnd::Held),
            ComponentStatus::Progress(progress) => match Self::of_progress(progress) {
                Some(phase) if phase == self => None,
                Some(phase) if phase < self => Some(PhaseEnd::Retried),
                Some(_) | None => Some(PhaseEnd::Done),
            },
        }
    }

    /// Returns the word in metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::PowerOff => "power_off",
            Self::PowerOn => "power_on",
            Self::Boot => "boot",
            Self::Configure => "configure",
        }
    }
}

impl PhaseEnd {
    /// Returns the word in metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Retried => "retried",
            Self::Failed => "failed",
            Self::Held => "held",
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn next_status_ends_a_phase() {
        let phases = [WorkPhase::PowerOff, WorkPhase::PowerOn, WorkPhase::Boot, WorkPhase::Configure];
        let mut rows = String::new();
        for status in ComponentStatus::OWN.into_iter().chain([ComponentStatus::Overridden("mine")]) {
            let begins = WorkPhase::of(status).map_or("-", WorkPhase::word);
            let ends = phases.map(|phase| phase.end_with(status).map_or("-", PhaseEnd::word));
            rows += &format!("{:28}{begins:11}{}\n", status.word(), ends.join(" "));
        }
        expect![[r#"
            on_hold                     -          held held held held
            failed                      -          failed failed failed failed
            power_on_pending            power_on   done - retried retried
            power_on_called             boot       done done - retried
            power_off_pending           power_off  - retried retried retried
            power_off_gracefully_called power_off  - retried retried retried
            power_off_forcefully_called power_off  - retried retried retried
            configuring                 configure  done done done -
            stable                      -          done done done done
            mine                        -          held held held held
        "#]]
        .assert_eq(&rows);
    }
}
