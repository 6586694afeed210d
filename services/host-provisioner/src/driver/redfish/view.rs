//! Looks at hosts, from the documents of their systems.

use domain::{
    core::time::Timestamp,
    host::evidence::{DriverView, HardwareHealth},
};
use redfish::{ComputerSystem, SystemPower};
use serde_json::Value;

/// Returns the look at a host whose system has that document; `None`: it could not be read, and nothing is known.
///
/// A BMC keeps no record of a host that could be lost, and works on nothing that needs a slot.
pub(super) fn view(document: Option<&Value>, asked_at: Timestamp) -> DriverView {
    let powered_on = document.and_then(|document| powered_on(&ComputerSystem::read(document).power));
    let health = document.and_then(|document| health(&document["Status"]));
    DriverView { asked_at, powered_on, health, ..DriverView::default() }
}

/// Returns whether the power is on; `None`: it changes, or is not known.
fn powered_on(power: &SystemPower) -> Option<bool> {
    match power {
        SystemPower::On => Some(true),
        SystemPower::Off => Some(false),
        SystemPower::Other(_) => None,
    }
}

fn health(status: &Value) -> Option<HardwareHealth> {
    let word = status["HealthRollup"].as_str().or_else(|| status["Health"].as_str())?;
    Some(match word {
        "OK" => HardwareHealth::Healthy,
        "Warning" => HardwareHealth::Warning,
        "Critical" => HardwareHealth::Critical,
        _ => HardwareHealth::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn power_and_health_are_read_as_far_as_they_are_known() {
        for (document, expected) in [
            (
                json!({"PowerState": "On", "Status": {"Health": "OK"}}),
                (Some(true), Some(HardwareHealth::Healthy)),
            ),
            (
                json!({"PowerState": "Off", "Status": {"Health": "OK", "HealthRollup": "Critical"}}),
                (Some(false), Some(HardwareHealth::Critical)),
            ),
            (
                json!({"PowerState": "PoweringOn", "Status": {"Health": "Warning"}}),
                (None, Some(HardwareHealth::Warning)),
            ),
            (json!({"Status": {"Health": "Fine"}}), (None, Some(HardwareHealth::Unknown))),
            (json!({}), (None, None)),
        ] {
            let seen = view(Some(&document), Timestamp(1));
            assert_eq!((seen.powered_on, seen.health), expected, "{document}");
        }
        assert_eq!(view(None, Timestamp(1)).powered_on, None);
    }
}
