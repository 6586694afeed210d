//! Times of the work of an agent, as those of a real device take (device reference 3.3, 3.4).

use std::time::Duration;

/// Shortest pause before a call is repeated, so that a fleet without delays does not flood the port.
const LEAST: Duration = Duration::from_millis(50);

/// Times of the work of an agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentPace {
    /// Factor on every time of a real device.
    pub(super) speed: f64,
}

impl AgentPace {
    /// Pause before a request to be enrolled is looked at again.
    pub(super) fn enrolment(self) -> Duration {
        self.call(10)
    }

    /// Pause between two polls.
    pub(super) fn poll(self) -> Duration {
        self.call(5)
    }

    /// Pause after a failed call.
    pub(super) fn retry(self) -> Duration {
        self.call(10)
    }

    /// Pause after a failed update.
    pub(super) fn update_again(self) -> Duration {
        self.call(120)
    }

    /// Time for which a device is cut off.
    pub(super) fn silence(self) -> Duration {
        self.work(180)
    }

    /// Time in which a new spec is downloaded.
    pub(super) fn download(self) -> Duration {
        self.work(40)
    }

    /// Time in which a new spec is applied.
    pub(super) fn apply(self) -> Duration {
        self.work(20)
    }

    /// Time of a reboot.
    pub(super) fn reboot(self) -> Duration {
        self.work(60)
    }

    fn work(self, seconds: u64) -> Duration {
        Duration::from_secs(seconds).mul_f64(self.speed)
    }

    fn call(self, seconds: u64) -> Duration {
        self.work(seconds).max(LEAST)
    }
}
