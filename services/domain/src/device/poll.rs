//! Polls of agents for a rendered spec (device reference 3.4).

use crate::device::record::{Device, annotations::RestoreMark, version::RenderedVersion};

/// Answer to a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PollAnswer {
    /// No spec was rendered yet.
    NothingRendered,
    /// The agent gets the device with its rendered spec.
    Deliver,
    /// The agent has the latest version and waits for the next one.
    Wait,
}

/// Decides how a poll is answered. `known` is the version that the agent has, in its words; `None`: the agent wants the
/// spec whatever it has. A device that reconnects after a restore is not asked about here: its poll is answered at once.
pub fn answer(device: &Device, known: Option<&str>) -> PollAnswer {
    let Some(rendered) = device.meta.annotations.rendered_version else {
        return PollAnswer::NothingRendered;
    };
    let Some(known) = known else { return PollAnswer::Deliver };
    if known == rendered.to_string() || waits_for_resumption(device, rendered, known) {
        PollAnswer::Wait
    } else {
        PollAnswer::Deliver
    }
}

/// A paused agent runs a newer version than the service has. Its polls would otherwise all be answered at once.
fn waits_for_resumption(device: &Device, rendered: RenderedVersion, known: &str) -> bool {
    let reported = RenderedVersion::reported(&device.reported.rendered_version);
    device.meta.annotations.restore_mark == Some(RestoreMark::ConflictPaused)
        && RenderedVersion::reported(known) >= rendered.max(reported)
}
