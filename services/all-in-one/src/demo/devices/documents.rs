//! Documents of the contract of Flight Control that the demo writes.

use serde_json::{Value, json};

/// Name of the fleet.
pub(super) const FLEET: &str = "kiosks";

/// Returns the fleet whose devices run `image` and two applications.
pub(super) fn fleet(image: &str) -> Value {
    json!({
        "apiVersion": "flightctl.io/v1beta1", "kind": "Fleet", "metadata": { "name": FLEET },
        "spec": {
            "selector": { "matchLabels": { "demo": "true" } },
            "template": { "spec": {
                "os": { "image": image },
                "applications": [
                    { "name": "till", "appType": "container", "image": "registry.example/till:1" },
                    { "name": "screen", "appType": "container", "image": "registry.example/screen:1" },
                ],
            } },
        },
    })
}
