//! Status document of a simulated agent (device reference 1.3, 1.5).

use serde_json::{Value, json};

/// Time of the last change of every condition: no rule of the mesh depends on it.
const SINCE: &str = "2026-01-01T00:00:00Z";

/// State of a device, as its agent reports it.
#[derive(Debug, Clone, Default)]
pub(super) struct DeviceReport {
    /// Version of the spec that runs; empty: none.
    pub(super) version: String,
    /// Image that runs; empty: the one that the machine was delivered with.
    pub(super) image: String,
    /// Number of boots.
    pub(super) boots: u32,
    /// Names of applications, and whether each runs.
    pub(super) applications: Vec<(String, bool)>,
    /// Condition about the update; `None`: there was none yet.
    pub(super) update: Option<UpdateStage>,
    /// Reason of the condition about the end of the device; `None`: it goes on.
    pub(super) end: Option<&'static str>,
}

/// Stage of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdateStage {
    Preparing,
    Applying,
    Rebooting,
    Failed,
    Updated,
}

impl UpdateStage {
    fn condition(self) -> Value {
        let (status, reason, message) = match self {
            Self::Preparing => ("True", "Preparing", "downloading"),
            Self::Applying => ("True", "ApplyingUpdate", "applying"),
            Self::Rebooting => ("True", "Rebooting", "rebooting into the new system"),
            Self::Failed => ("False", "Error", "the image could not be unpacked: no space left on device"),
            Self::Updated => ("False", "Updated", ""),
        };
        condition("Updating", status, reason, message)
    }
}

impl DeviceReport {
    /// Returns the document about the device `name`.
    pub(super) fn document(&self, name: &str) -> Value {
        let update = self.update.map(UpdateStage::condition);
        let end = self.end.map(|reason| condition("DeviceDecommissioning", "True", reason, ""));
        let conditions: Vec<_> = update.into_iter().chain(end).collect();
        json!({
            "apiVersion": "flightctl.io/v1beta1", "kind": "Device", "metadata": { "name": name },
            "status": {
                "conditions": conditions,
                "applications": self.applications.iter().map(application).collect::<Vec<_>>(),
                "applicationsSummary": { "status": self.verdict() },
                "systemInfo": {
                    "architecture": "arm64", "bootID": format!("boot-{}", self.boots), "operatingSystem": "linux",
                    "agentVersion": "simulated",
                },
                "resources": { "cpu": "Healthy", "memory": "Healthy", "disk": "Healthy" },
                "integrity": { "status": "Unsupported" },
                "config": { "renderedVersion": self.version },
                "os": { "image": self.image, "imageDigest": "" },
                "capabilities": { "osMode": "image" },
                "updated": { "status": "Unknown" }, "summary": { "status": "Unknown" },
                "lifecycle": { "status": "Unknown" },
            },
        })
    }

    /// Returns the agent's verdict about its applications (device reference 2.5).
    fn verdict(&self) -> &'static str {
        match self.applications.iter().all(|(_, runs)| *runs) {
            _ if self.applications.is_empty() => "NoApplications",
            true => "Healthy",
            false => "Error",
        }
    }
}

fn application((name, runs): &(String, bool)) -> Value {
    json!({
        "name": name, "ready": if *runs { "1/1" } else { "0/1" }, "restarts": if *runs { 0 } else { 5 },
        "status": if *runs { "Running" } else { "Error" }, "embedded": false, "appType": "container",
    })
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE,
    })
}
