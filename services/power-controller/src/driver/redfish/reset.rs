//! The choice of the reset to request from a BMC.

use domain::boot::component::Action;

use redfish::SystemPower;

/// Kind of reset of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResetKind {
    On,
    GracefulOff,
    ForcedOff,
}

impl ResetKind {
    /// Returns the reset of an action; `None` if the action has nothing to do with power.
    pub(super) fn of(action: Action) -> Option<Self> {
        match action {
            Action::PoweringOn => Some(Self::On),
            Action::PoweringOffGracefully => Some(Self::GracefulOff),
            Action::PoweringOffForcefully => Some(Self::ForcedOff),
            Action::ActualStateCleanup
            | Action::ApplyStaged
            | Action::NewlyDiscovered
            | Action::SessionSetup => None,
        }
    }

    /// Returns the `PowerState` after the reset.
    pub(super) fn target(self) -> SystemPower {
        match self {
            Self::On => SystemPower::On,
            Self::GracefulOff | Self::ForcedOff => SystemPower::Off,
        }
    }

    /// Returns the words for the reset in texts.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::On => "power on",
            Self::GracefulOff => "graceful power off",
            Self::ForcedOff => "forced power off",
        }
    }

    /// Returns the `ResetType` to request, out of those that the BMC takes, in its spelling. A BMC that names none gets
    /// the usual one.
    ///
    /// # Errors
    /// When it takes none that does this, which it would only refuse.
    pub(super) fn choose(self, allowable: &[String]) -> Result<String, String> {
        let wanted = self.reset_types();
        redfish::choose_reset(wanted, allowable).ok_or_else(|| {
            let (wanted, offered) = (wanted.join(" or "), allowable.join(", "));
            format!("{} is not possible: it needs {wanted}, and the BMC takes only {offered}", self.word())
        })
    }

    /// Returns the reset types with this effect, best first. Types that toggle, such as `PushPowerButton`, are left
    /// out: they would have the opposite effect if the power is not as assumed.
    fn reset_types(self) -> &'static [&'static str] {
        match self {
            Self::On => &["On", "ForceOn"],
            // Cray EX nodes call it `Off`.
            Self::GracefulOff => &["GracefulShutdown", "Off"],
            Self::ForcedOff => &["ForceOff"],
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn chooses_what_the_bmc_takes() {
        let hardware: [(&str, &[&str]); 6] = [
            ("Cray EX node", &["ForceOff", "Off", "On"]),
            ("iLO", &["On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton"]),
            (
                "OpenBMC",
                &["On", "ForceOff", "ForceOn", "ForceRestart", "GracefulRestart", "GracefulShutdown"],
            ),
            ("force only", &["ForceOff", "ForceOn", "PushPowerButton"]),
            ("lower case", &["on", "forceoff", "gracefulshutdown"]),
            ("silent", &[]),
        ];
        let mut seen = String::new();
        for (name, allowable) in hardware {
            let allowable: Vec<_> = allowable.iter().map(|&word| word.to_owned()).collect();
            for reset in [ResetKind::On, ResetKind::GracefulOff, ResetKind::ForcedOff] {
                let chosen = reset.choose(&allowable).unwrap_or_else(|text| text);
                seen += &format!("{name}, {}: {chosen}\n", reset.word());
            }
        }
        expect![[r#"
            Cray EX node, power on: On
            Cray EX node, graceful power off: Off
            Cray EX node, forced power off: ForceOff
            iLO, power on: On
            iLO, graceful power off: GracefulShutdown
            iLO, forced power off: ForceOff
            OpenBMC, power on: On
            OpenBMC, graceful power off: GracefulShutdown
            OpenBMC, forced power off: ForceOff
            force only, power on: ForceOn
            force only, graceful power off: graceful power off is not possible: it needs GracefulShutdown or Off, and the BMC takes only ForceOff, ForceOn, PushPowerButton
            force only, forced power off: ForceOff
            lower case, power on: on
            lower case, graceful power off: gracefulshutdown
            lower case, forced power off: forceoff
            silent, power on: On
            silent, graceful power off: GracefulShutdown
            silent, forced power off: ForceOff
        "#]].assert_eq(&seen);
    }

    #[test]
    fn only_actions_on_power_are_resets() {
        assert_eq!(ResetKind::of(Action::PoweringOn), Some(ResetKind::On));
        assert_eq!(ResetKind::of(Action::PoweringOffGracefully), Some(ResetKind::GracefulOff));
        assert_eq!(ResetKind::of(Action::PoweringOffForcefully), Some(ResetKind::ForcedOff));
        assert_eq!(ResetKind::of(Action::SessionSetup), None);
    }
}
