//! A host's hardware, with its record at the played driver.

use std::{sync::Arc, time::Duration};

use domain::{
    core::time::Timestamp,
    host::{
        evidence::{DriverSight, DriverView, FirmwareWish},
        record::{
            call::{DoneFacts, DriverAnswer, DriverCall, DriverTrouble},
            operation::OperationKind,
        },
    },
};
use rand::{Rng, rngs::SmallRng};

/// Hardware of a host, with its record at the driver.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    pub(crate) is_known: bool,
    pub(crate) records: u32,
    pub(crate) installed: Option<Arc<str>>,
    pub(crate) powered_on: bool,
    pub(crate) boots_without_slot: bool,
    pub(crate) needs_adoption: bool,
    /// Whether a wish about firmware is not fulfilled.
    pub(crate) firmware_differs: bool,
    /// Share of operations that fail.
    pub(crate) fails: f64,
    pub(crate) job: Option<Job>,
}

/// Operation that the driver is at work on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Job {
    pub(crate) kind: OperationKind,
    pub(crate) ends_at: Timestamp,
}

impl Machine {
    /// Returns whether the driver is at work on something that needs a slot.
    pub(crate) fn is_busy(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.kind.needs_slot())
    }

    /// Returns what a listing of the driver says about the host.
    pub(crate) fn look(&mut self, now: Timestamp) -> DriverSight {
        self.advance(now);
        if !self.is_known {
            return DriverSight::Absent { asked_at: now };
        }
        DriverSight::Known(DriverView {
            asked_at: now,
            powered_on: Some(self.powered_on),
            needs_adoption: self.needs_adoption,
            is_busy: self.is_busy(),
            boots_without_slot: self.boots_without_slot,
            ..DriverView::default()
        })
    }

    /// Returns the wish about firmware, as compared with the firmware by now.
    pub(crate) fn firmware(&self, now: Timestamp) -> FirmwareWish {
        FirmwareWish {
            is_judged: true,
            is_read: true,
            is_changed: self.firmware_differs,
            is_valid: true,
            read_at: now,
            is_pending: true,
        }
    }

    /// Ends a change of power whose time is over.
    fn advance(&mut self, now: Timestamp) {
        let Some(job) = self.job.clone() else { return };
        let is_power = matches!(job.kind, OperationKind::PowerOn | OperationKind::PowerOff);
        if is_power && job.ends_at <= now {
            self.powered_on = job.kind == OperationKind::PowerOn;
            self.job = None;
        }
    }

    /// Loses the driver's record.
    pub(crate) fn lose_record(&mut self) {
        self.is_known = false;
        self.job = None;
    }

    /// Carries a call out, or goes on with it.
    pub(crate) fn serve(
        &mut self,
        call: &DriverCall,
        login_works: bool,
        faulty: bool,
        now: Timestamp,
        rng: &mut SmallRng,
    ) -> DriverAnswer {
        self.advance(now);
        if faulty && rng.random_bool(0.04) {
            return DriverAnswer::Trouble { kind: DriverTrouble::Unreachable, text: "no route".into() };
        }
        let answer = self.obey(call, login_works, faulty, now, rng);
        if faulty && rng.random_bool(0.03) {
            // The call has had its effect, and its answer is lost.
            return DriverAnswer::Trouble { kind: DriverTrouble::Busy, text: "locked".into() };
        }
        answer
    }

    fn obey(
        &mut self,
        call: &DriverCall,
        login_works: bool,
        faulty: bool,
        now: Timestamp,
        rng: &mut SmallRng,
    ) -> DriverAnswer {
        match call {
            DriverCall::Register(_) if !login_works => failed("wrong password"),
            DriverCall::Register(_) => self.register(),
            DriverCall::Delete | DriverCall::Detach { .. } => {
                self.lose_record();
                done()
            }
            _ if !self.is_known => DriverAnswer::NotRegistered,
            DriverCall::Adopt { .. } if faulty && rng.random_bool(0.2) => failed("cannot adopt"),
            DriverCall::Adopt { .. } => {
                self.needs_adoption = false;
                done()
            }
            DriverCall::PowerOn { .. } if self.powered_on => done(),
            DriverCall::PowerOff { .. } if !self.powered_on && !self.is_busy() => done(),
            DriverCall::Prepare(call) if !call.unprepared && self.job.is_none() => done(),
            DriverCall::Provision(_) if faulty && self.job.is_none() && rng.random_bool(0.05) => {
                DriverAnswer::NeedsSlot
            }
            call => self.work(call, faulty, now, rng),
        }
    }

    fn register(&mut self) -> DriverAnswer {
        if !self.is_known {
            self.is_known = true;
            self.records += 1;
            self.needs_adoption = self.installed.is_some();
        }
        let id = Some(format!("record-{}", self.records).into());
        DriverAnswer::Done(DoneFacts { id, ..DoneFacts::default() })
    }

    /// Begins, continues or ends a long operation.
    fn work(&mut self, call: &DriverCall, faulty: bool, now: Timestamp, rng: &mut SmallRng) -> DriverAnswer {
        let kind = call.kind();
        match &self.job {
            Some(job) if job.kind == kind && job.ends_at > now => running(job.ends_at, now, false),
            Some(job) if job.kind == kind => {
                self.job = None;
                if faulty && rng.random_bool(self.fails) {
                    return failed("broken");
                }
                self.complete(call)
            }
            _ => {
                let longest = if kind.needs_slot() { 600_000 } else { 60_000 };
                let ends_at = now.plus(Duration::from_millis(rng.random_range(500..longest)));
                self.job = Some(Job { kind, ends_at });
                running(ends_at, now, true)
            }
        }
    }

    fn complete(&mut self, call: &DriverCall) -> DriverAnswer {
        match call {
            DriverCall::Provision(call) => {
                self.installed = call.system.image.as_ref().map(|image| Arc::clone(&image.url));
                self.powered_on = true;
            }
            DriverCall::Deprovision { .. } => {
                self.installed = None;
                self.powered_on = false;
            }
            DriverCall::Prepare(_) | DriverCall::Service(_) => self.firmware_differs = false,
            DriverCall::PowerOn { .. } => self.powered_on = true,
            DriverCall::PowerOff { .. } => self.powered_on = false,
            _ => {}
        }
        let inventory = Some(Arc::default()).filter(|_| call.kind() == OperationKind::Inspect);
        DriverAnswer::Done(DoneFacts { inventory, ..DoneFacts::default() })
    }
}

fn running(ends_at: Timestamp, now: Timestamp, started: bool) -> DriverAnswer {
    // A driver that would be asked at the very end of each operation would hide polls in its middle.
    let again_in = (ends_at.since(now) / 2).max(Duration::from_secs(1));
    DriverAnswer::InProgress { again_in, started }
}

fn done() -> DriverAnswer {
    DriverAnswer::Done(DoneFacts::default())
}

fn failed(text: &str) -> DriverAnswer {
    DriverAnswer::Failed { text: text.into() }
}
