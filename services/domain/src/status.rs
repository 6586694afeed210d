//! The one word that says where a component stands (BOS reference 3.5).

use crate::component::{Action, Component, Phase};

/// Waits for fresh evidence.
pub const ON_HOLD: &str = "on_hold";
/// Given up.
pub const FAILED: &str = "failed";
/// To be switched on.
pub const POWER_ON_PENDING: &str = "power_on_pending";
/// Switched on, not there yet.
pub const POWER_ON_CALLED: &str = "power_on_called";
/// To be switched off.
pub const POWER_OFF_PENDING: &str = "power_off_pending";
/// Asked to shut down.
pub const POWER_OFF_GRACEFULLY_CALLED: &str = "power_off_gracefully_called";
/// Being cut off.
pub const POWER_OFF_FORCEFULLY_CALLED: &str = "power_off_forcefully_called";
/// Runs what it should, configuration under way.
pub const CONFIGURING: &str = "configuring";
/// Nothing to do.
pub const STABLE: &str = "stable";

/// Every word that Reveille itself produces; a status override may be any text.
pub const WORDS: [&str; 9] = [
    ON_HOLD,
    FAILED,
    POWER_ON_PENDING,
    POWER_ON_CALLED,
    POWER_OFF_PENDING,
    POWER_OFF_GRACEFULLY_CALLED,
    POWER_OFF_FORCEFULLY_CALLED,
    CONFIGURING,
    STABLE,
];

/// The status of `component`: its override if it has one, else what phase and last action say together.
pub fn computed_status(component: &Component) -> &str {
    match component.status_override() {
        "" => progress(component.phase(), component.last_action(), component.last_action_failed()),
        text => text,
    }
}

/// The status without any override. A failed last action matters only for powering on: there it means that
/// the node is to be switched on once more.
pub fn progress(phase: Phase, last: Option<Action>, last_failed: bool) -> &'static str {
    match (phase, last) {
        (Phase::PoweringOn, Some(Action::PoweringOn)) if !last_failed => POWER_ON_CALLED,
        (Phase::PoweringOn, _) => POWER_ON_PENDING,
        (Phase::PoweringOff, Some(Action::PoweringOffGracefully)) => POWER_OFF_GRACEFULLY_CALLED,
        (Phase::PoweringOff, Some(Action::PoweringOffForcefully)) => POWER_OFF_FORCEFULLY_CALLED,
        (Phase::PoweringOff, _) => POWER_OFF_PENDING,
        (Phase::Configuring, _) => CONFIGURING,
        (Phase::None, _) => STABLE,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        component::{LastAction, Status},
        id::ComponentId,
    };

    fn component(phase: Option<Phase>, status_override: Option<&str>) -> Component {
        let mut component = Component::new(ComponentId::parse("x1").expect("valid"));
        component.status = Some(Status { phase, status_override: status_override.map(Into::into) });
        component
    }

    #[test]
    fn phase_and_last_action_give_the_status() {
        let mut rows = String::new();
        for phase in Phase::ALL {
            for last in [None].into_iter().chain(Action::ALL.map(Some)) {
                let words = [false, true].map(|failed| progress(phase, last, failed));
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
        for text in ["on_hold", "failed", "Gone fishing"] {
            assert_eq!(computed_status(&component(Some(Phase::PoweringOn), Some(text))), text);
        }
        assert_eq!(computed_status(&component(Some(Phase::PoweringOn), Some(""))), POWER_ON_PENDING);
    }

    #[test]
    fn missing_members_count_as_nothing_under_way() {
        let mut bare = component(None, None);
        assert_eq!(computed_status(&bare), STABLE);
        bare.status = None;
        assert_eq!(computed_status(&bare), STABLE);
        let mut called = component(Some(Phase::PoweringOn), None);
        called.last_action =
            Some(LastAction { action: Some(Action::PoweringOn), failed: None, last_updated: None });
        assert_eq!(computed_status(&called), POWER_ON_CALLED);
    }
}
