//! Life of an agent, from its first request to the end of its device (device reference 3.3 to 3.5).

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    AgentPlan, AgentTrouble,
    key::AgentKey,
    pace::AgentPace,
    port::{AgentPort, PortAnswer, PortFiles},
    report::{DeviceReport, UpdateStage},
};

/// Agent of one device.
pub(super) struct AgentLife {
    key: AgentKey,
    plan: AgentPlan,
    pace: AgentPace,
    files: Arc<PortFiles>,
    report: DeviceReport,
    /// Whether the trouble of the plan has happened.
    has_failed: bool,
}

/// Spec that an agent is given.
struct WantedSpec {
    version: String,
    image: String,
    applications: Vec<String>,
    is_end: bool,
}

/// End of a stretch of an agent's life.
enum LifeEnd {
    /// The device is unknown: the agent forgets its certificate and enrols anew.
    Forgotten,
    /// The device has ended its life.
    Ended,
}

impl AgentLife {
    pub(super) fn new(key: AgentKey, plan: AgentPlan, pace: AgentPace, files: Arc<PortFiles>) -> Self {
        Self { key, plan, pace, files, report: DeviceReport::default(), has_failed: false }
    }

    /// Runs the agent until its device has ended its life.
    pub(super) async fn run(mut self) {
        loop {
            let end = match self.enrol().await {
                Ok(port) => self.follow(&port).await,
                Err(error) => {
                    tracing::warn!(device = %self.key.name, error = format!("{error:#}"), "agent gave up");
                    return;
                }
            };
            match end {
                LifeEnd::Forgotten => tracing::info!(device = %self.key.name, "agent enrols anew"),
                LifeEnd::Ended => return,
            }
        }
    }

    /// Asks to be enrolled until a person has approved it.
    async fn enrol(&mut self) -> anyhow::Result<AgentPort> {
        let enrolling = self.files.connect(&self.files.enrolling)?;
        let request = json!({
            "apiVersion": "flightctl.io/v1beta1", "kind": "EnrollmentRequest",
            "metadata": { "name": self.key.name },
            "spec": { "csr": self.key.request()?, "labels": self.plan.labels, "osMode": "image" },
        });
        let path = format!("/enrollmentrequests/{}", self.key.name);
        loop {
            match enrolling.get(&path).await {
                PortAnswer::Document(known) => {
                    if let Some(certificate) = known["status"]["certificate"].as_str() {
                        return self.files.connect(&self.key.with(certificate));
                    }
                }
                PortAnswer::Unknown => {
                    self.log("POST", enrolling.post("/enrollmentrequests", &request).await)
                }
                other => self.log("GET", other),
            }
            sleep(self.pace.enrolment()).await;
        }
    }

    /// Polls for specs and follows them.
    async fn follow(&mut self, port: &AgentPort) -> LifeEnd {
        self.report.boots += 1;
        let status = format!("/devices/{}/status", self.key.name);
        let mut is_reported = false;
        loop {
            let path =
                format!("/devices/{}/rendered?knownRenderedVersion={}", self.key.name, self.report.version);
            let pause = match port.get(&path).await {
                PortAnswer::Document(device) => {
                    let wanted = WantedSpec::of(&device);
                    if wanted.is_end {
                        self.end(port).await;
                        return LifeEnd::Ended;
                    }
                    is_reported = true;
                    self.update(port, wanted).await
                }
                PortAnswer::Nothing => {
                    if !is_reported {
                        // The first report makes the device known as it is.
                        let answer = port.put(&status, &self.report.document(&self.key.name)).await;
                        is_reported = matches!(answer, PortAnswer::Document(_));
                    }
                    self.pace.poll()
                }
                PortAnswer::Unknown => return LifeEnd::Forgotten,
                PortAnswer::Revoked => return LifeEnd::Ended,
                failed @ PortAnswer::Failed(_) => {
                    self.log("poll", failed);
                    self.pace.retry()
                }
            };
            sleep(pause).await;
        }
    }

    /// Brings the device to a spec; returns the pause until the next poll.
    async fn update(&mut self, port: &AgentPort, wanted: WantedSpec) -> Duration {
        let reboots = wanted.image != self.report.image;
        let is_first = self.report.image.is_empty();
        let trouble =
            if is_first || !reboots || self.has_failed { AgentTrouble::None } else { self.plan.trouble };
        if trouble == AgentTrouble::GoesSilent {
            self.has_failed = true;
            sleep(self.pace.silence()).await;
        }
        self.tell(port, UpdateStage::Preparing).await;
        sleep(self.pace.download()).await;
        if trouble == AgentTrouble::UpdateFails {
            self.has_failed = true;
            self.tell(port, UpdateStage::Failed).await;
            return self.pace.update_again();
        }
        self.tell(port, UpdateStage::Applying).await;
        sleep(self.pace.apply()).await;
        if reboots {
            self.tell(port, UpdateStage::Rebooting).await;
            sleep(self.pace.reboot()).await;
            self.report.boots += 1;
        }
        let fails = trouble == AgentTrouble::AppFails;
        self.has_failed |= fails;
        let runs = |index: usize| !(fails && index == 0);
        let applications = wanted.applications.into_iter().enumerate();
        self.report.applications = applications.map(|(index, name)| (name, runs(index))).collect();
        self.report.version = wanted.version;
        self.report.image = wanted.image;
        self.tell(port, UpdateStage::Updated).await;
        self.pace.poll()
    }

    /// Reports both stages of the end.
    async fn end(&mut self, port: &AgentPort) {
        for stage in ["Started", "Completed"] {
            self.report.end = Some(stage);
            self.send(port).await;
        }
    }

    async fn tell(&mut self, port: &AgentPort, stage: UpdateStage) {
        self.report.update = Some(stage);
        self.send(port).await;
    }

    /// Reports the status until the port takes it, or refuses it for good.
    async fn send(&self, port: &AgentPort) {
        let path = format!("/devices/{}/status", self.key.name);
        let document = self.report.document(&self.key.name);
        while let PortAnswer::Failed(reason) = port.put(&path, &document).await {
            tracing::debug!(device = %self.key.name, reason, "status not taken");
            sleep(self.pace.retry()).await;
        }
    }

    fn log(&self, call: &str, answer: PortAnswer) {
        tracing::debug!(device = %self.key.name, call, ?answer, "answer to an agent");
    }
}

impl WantedSpec {
    fn of(device: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let spec = &device["spec"];
        let applications = spec["applications"].as_array().cloned().unwrap_or_default();
        Self {
            version: text(&device["metadata"]["annotations"]["device-controller/renderedVersion"]),
            image: text(&spec["os"]["image"]),
            applications: applications.iter().map(|application| text(&application["name"])).collect(),
            is_end: spec["decommissioning"].is_object(),
        }
    }
}
