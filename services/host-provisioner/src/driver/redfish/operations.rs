//! Operations on a host at its BMC, each a poll.

use std::{sync::Arc, time::Duration};

use chassis::process::clock;
use domain::{
    core::time::Timestamp,
    host::{
        address::BmcAddress,
        record::{
            annotations::RebootMode,
            call::{DoneFacts, DriverAnswer, DriverCall, DriverTrouble, PrepareCall, ProvisionCall},
            spec::{BootMode, RaidVolume, image_url},
            status::HostInventory,
        },
    },
};
use redfish::{ComputerSystem, SystemPower, choose_reset};
use serde_json::{Value, json};
use upstream::{Failure, FailureKind, Request};

use super::{
    RedfishState, SOON, Turn, after_change, after_read, inventory,
    media::{self, MediaDrive},
    requests::ChangeStep,
};
use crate::driver::{HostTarget, WorkOrder};

/// Format of images that a host boots from virtual media.
const LIVE_ISO: &str = "live-iso";

/// Operation on a host.
pub(super) struct HostOperation<'a> {
    pub(super) state: &'a RedfishState,
    pub(super) host: &'a HostTarget,
    pub(super) address: &'a BmcAddress,
    pub(super) order: &'a WorkOrder,
}

/// System as it was just read.
pub(super) struct SeenSystem {
    path: String,
    pub(super) document: Value,
    pub(super) power: SystemPower,
}

/// Reset that a step needs.
#[derive(Clone, Copy)]
pub(super) struct WantedReset {
    step: ChangeStep,
    /// Kinds of reset with this effect, best first.
    kinds: &'static [&'static str],
    /// Time for its effect.
    patience: Duration,
    /// Words for it in texts.
    word: &'static str,
}

pub(super) type Step<T> = Result<T, DriverAnswer>;

impl HostOperation<'_> {
    pub(super) async fn carry_out(&self, turn: &mut Turn<'_>) -> DriverAnswer {
        let answered = match &self.order.work.call {
            DriverCall::Register(_) => self.register(turn).await,
            DriverCall::Inspect(_) => self.inspect(turn).await,
            DriverCall::Prepare(call) => self.prepare(turn, wants_volumes(call)).await,
            DriverCall::Service(_) => self.prepare(turn, false).await,
            DriverCall::Provision(call) => self.provision(turn, call).await,
            DriverCall::Adopt { .. } => self.read(turn).await.map(|_| done()),
            DriverCall::Deprovision { .. } => self.deprovision(turn).await,
            DriverCall::PowerOn { .. } => self.power_on(turn).await,
            DriverCall::PowerOff { .. } if self.host.disable_power_off => self.reboot(turn).await,
            DriverCall::PowerOff { mode, .. } => self.power_off(turn, *mode).await,
            // A host that is let go of keeps running, and its BMC keeps nothing of it.
            DriverCall::Detach { .. } | DriverCall::Delete => Ok(done()),
            DriverCall::AttachDataImage { .. } | DriverCall::DetachDataImage => {
                Err(failed("this driver inserts no data images"))
            }
        };
        answered.unwrap_or_else(|answer| answer)
    }

    /// Proves that the BMC is there, takes the login and has the system. A BMC that does not answer is a failure that
    /// people see, and not a trouble without an end.
    async fn register(&self, turn: &mut Turn<'_>) -> Step<DriverAnswer> {
        let read = turn.system_document(&self.address.path).await;
        read.map_err(|failure| failed(&failure.text))?;
        let id = Some(Arc::clone(&self.host.uid));
        Ok(DriverAnswer::Done(DoneFacts { id, ..DoneFacts::default() }))
    }

    async fn inspect(&self, turn: &mut Turn<'_>) -> Step<DriverAnswer> {
        let system = self.read(turn).await?;
        let hardware = inventory::collect(turn, system.document).await.map_err(after_read)?;
        let inventory = Some(Arc::new(HostInventory {
            architecture: hardware["cpu"]["arch"].as_str().unwrap_or_default().into(),
            details: hardware.to_string().into(),
        }));
        Ok(DriverAnswer::Done(DoneFacts { inventory, started: true, ..DoneFacts::default() }))
    }

    /// Boots the image: off, inserted, boot from it once, on.
    async fn provision(&self, turn: &mut Turn<'_>, call: &ProvisionCall) -> Step<DriverAnswer> {
        let url = live_image(call)?;
        let system = self.read(turn).await?;
        let drive = media::drive(turn, &system.document).await.map_err(after_read)?;
        match (&system.power, drive.holds(url)) {
            (SystemPower::On, true) => Ok(done()),
            (SystemPower::Off, true) => self.boot(turn, &system, call.boot_mode).await,
            (SystemPower::On, false) => self.reset(turn, &system, self.hard_off()).await,
            (SystemPower::Off, false) => self.insert(turn, &drive, url).await,
            (SystemPower::Other(state), _) => self.while_changing(state),
        }
    }

    /// Switches the host on, which boots from the image. The boot override holds for one boot, so a BMC that is
    /// switching on is not told again.
    async fn boot(&self, turn: &mut Turn<'_>, system: &SeenSystem, mode: BootMode) -> Step<DriverAnswer> {
        if self.requested_at(ChangeStep::Boot).is_none() {
            self.boot_from_disc(turn, system, mode).await?;
        }
        self.reset(turn, system, ON.step(ChangeStep::Boot, self.state.effect)).await
    }

    /// Inserts the image, unless the step has done so: BMCs fetch the image before they show it.
    async fn insert(&self, turn: &mut Turn<'_>, drive: &MediaDrive, url: &str) -> Step<DriverAnswer> {
        if let Some(at) = self.requested_at(ChangeStep::Insert) {
            return self.await_effect("insertion of the image", at, self.state.effect);
        }
        if drive.image.is_some() {
            drive.eject(turn).await.map_err(after_change)?;
        }
        self.note(ChangeStep::Insert);
        let inserted = drive.insert(turn, url).await;
        inserted.map(|()| running(Duration::ZERO)).map_err(|failure| self.not_requested(failure))
    }

    /// Removes the image: off, nothing inserted, usual boot.
    async fn deprovision(&self, turn: &mut Turn<'_>) -> Step<DriverAnswer> {
        let system = self.read(turn).await?;
        match &system.power {
            SystemPower::On => return self.reset(turn, &system, self.hard_off()).await,
            SystemPower::Other(state) => return self.while_changing(state),
            SystemPower::Off => {}
        }
        for drive in media::drives(turn, &system.document).await.map_err(after_read)? {
            if drive.image.is_some() {
                drive.eject(turn).await.map_err(after_change)?;
            }
        }
        let usual = json!({"Boot": {"BootSourceOverrideEnabled": "Disabled"}});
        let patch = Request::patch("boot_override", &system.path).json(&usual);
        tolerate(turn.send(patch).await).map_err(after_change)?;
        Ok(done())
    }

    async fn power_on(&self, turn: &mut Turn<'_>) -> Step<DriverAnswer> {
        let system = self.read(turn).await?;
        match &system.power {
            SystemPower::On => Ok(done()),
            SystemPower::Other(state) => self.while_changing(state),
            SystemPower::Off => {
                self.reset(turn, &system, ON.step(ChangeStep::First, self.state.effect)).await
            }
        }
    }

    async fn power_off(&self, turn: &mut Turn<'_>, mode: RebootMode) -> Step<DriverAnswer> {
        let system = self.read(turn).await?;
        let wanted = match mode {
            RebootMode::Soft => SOFT_OFF.step(ChangeStep::First, self.state.soft_off),
            RebootMode::Hard => self.hard_off(),
        };
        match &system.power {
            SystemPower::Off => Ok(done()),
            SystemPower::Other(state) => self.while_changing(state),
            SystemPower::On => self.reset(turn, &system, wanted).await,
        }
    }

    /// Reboots a host that may never be off. Its power shows no effect, so the request is all that there is.
    async fn reboot(&self, turn: &mut Turn<'_>) -> Step<DriverAnswer> {
        let system = self.read(turn).await?;
        if self.requested_at(ChangeStep::First).is_some() {
            return Ok(done());
        }
        self.reset(turn, &system, RESTART.step(ChangeStep::First, self.state.effect)).await
    }

    fn hard_off(&self) -> WantedReset {
        HARD_OFF.step(ChangeStep::First, self.state.effect)
    }

    pub(super) async fn read(&self, turn: &mut Turn<'_>) -> Step<SeenSystem> {
        let read = turn.system_document(&self.address.path).await;
        let (path, document) = read.map_err(after_read)?;
        let power = ComputerSystem::read(&document).power;
        Ok(SeenSystem { path, document, power })
    }

    /// Requests a reset, unless the step has requested it: then waits for its effect.
    pub(super) async fn reset(
        &self,
        turn: &mut Turn<'_>,
        system: &SeenSystem,
        wanted: WantedReset,
    ) -> Step<DriverAnswer> {
        if let Some(at) = self.requested_at(wanted.step) {
            return self.await_effect(wanted.word, at, wanted.patience);
        }
        let action = ComputerSystem::read(&system.document).reset;
        let allowable = turn.allowable(&action).await.map_err(after_read)?;
        let Some(kind) = choose_reset(wanted.kinds, &allowable) else {
            return Err(failed(&format!("the BMC offers no {}", wanted.word)));
        };
        self.note(wanted.step);
        let requested = turn.reset(&system.path, &action, &kind, Arc::new(|| true)).await;
        requested.map(|()| running(SOON)).map_err(|failure| self.not_requested(failure))
    }

    /// Waits for the effect of a change that was requested at `at`.
    pub(super) fn await_effect(&self, change: &str, at: Timestamp, patience: Duration) -> Step<DriverAnswer> {
        if clock::now().since(at) < patience {
            Ok(running(SOON))
        } else {
            Err(failed(&format!("{change} had no effect within {patience:?}")))
        }
    }

    /// Returns whether the operation may have requested a change.
    pub(super) fn has_begun(&self) -> bool {
        self.order.asked_before.is_some()
            || self.state.requests.has_any(&self.host.key, self.order.work.since)
    }

    /// Waits while the power is neither on nor off. An operation that has requested nothing yet was not begun: taken for
    /// one under way, it would never request its first reset.
    pub(super) fn while_changing(&self, state: &str) -> Step<DriverAnswer> {
        if self.has_begun() {
            return Ok(running(SOON));
        }
        let text = format!("the power is changing: {state}").into();
        Err(DriverAnswer::Trouble { kind: DriverTrouble::Busy, text })
    }

    fn note(&self, step: ChangeStep) {
        self.state.requests.note(&self.host.key, self.order.work.since, step, clock::now());
    }

    /// Forgets a request that had no effect.
    fn not_requested(&self, failure: Failure) -> DriverAnswer {
        match failure.kind {
            FailureKind::Ambiguous => {}
            FailureKind::Unreachable | FailureKind::Refused | FailureKind::Denied => {
                self.state.requests.forget(&self.host.key);
            }
        }
        after_change(failure)
    }

    pub(super) fn requested_at(&self, step: ChangeStep) -> Option<Timestamp> {
        let noted = self.state.requests.requested_at(&self.host.key, self.order.work.since, step);
        let recorded = self.order.asked_before.filter(|_| step == ChangeStep::First);
        noted.or(recorded)
    }

    async fn boot_from_disc(&self, turn: &mut Turn<'_>, system: &SeenSystem, mode: BootMode) -> Step<()> {
        let mode = match mode {
            BootMode::Uefi | BootMode::UefiSecureBoot => "UEFI",
            BootMode::Legacy => "Legacy",
        };
        let once = |boot: Value| Request::patch("boot_override", &system.path).json(&json!({"Boot": boot}));
        let target = json!({"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"});
        let mut with_mode = target.clone();
        with_mode["BootSourceOverrideMode"] = mode.into();
        match turn.send(once(with_mode)).await {
            // Some BMCs refuse a mode, even the present one.
            Err(failure) if failure.kind == FailureKind::Refused => {
                turn.send(once(target)).await.map_err(after_change)
            }
            sent => sent.map_err(after_change),
        }
    }
}

pub(super) const ON: ResetWords = ResetWords { kinds: &["On", "ForceOn"], word: "power-on" };
const SOFT_OFF: ResetWords =
    ResetWords { kinds: &["GracefulShutdown", "Off", "ForceOff"], word: "soft power-off" };
pub(super) const HARD_OFF: ResetWords = ResetWords { kinds: &["ForceOff"], word: "hard power-off" };
pub(super) const RESTART: ResetWords =
    ResetWords { kinds: &["GracefulRestart", "ForceRestart", "PowerCycle"], word: "restart" };

/// Kinds of reset with an effect, and a word for it.
#[derive(Clone, Copy)]
pub(super) struct ResetWords {
    kinds: &'static [&'static str],
    word: &'static str,
}

impl ResetWords {
    pub(super) fn step(self, step: ChangeStep, patience: Duration) -> WantedReset {
        WantedReset { step, kinds: self.kinds, patience, word: self.word }
    }
}

fn wants_volumes(call: &PrepareCall) -> bool {
    let has_some = |volumes: &Option<Vec<RaidVolume>>| volumes.as_ref().is_some_and(|some| !some.is_empty());
    call.target_raid.as_ref().is_some_and(|raid| has_some(&raid.hardware) || has_some(&raid.software))
}

/// Returns the address of an image that a host boots from virtual media; other images need an agent on the host.
fn live_image(call: &ProvisionCall) -> Step<&str> {
    let image = call.system.image.as_ref();
    match image.filter(|image| &*image.format == LIVE_ISO) {
        Some(_) if call.system.procedure.is_none() => Ok(image_url(image)),
        Some(_) | None => {
            Err(failed("this driver boots images of the format live-iso, and installs no others"))
        }
    }
}

/// Takes the refusal of a change for none: the BMC has nothing to change.
fn tolerate(sent: Result<(), Failure>) -> Result<(), Failure> {
    match sent {
        Err(failure) if failure.kind == FailureKind::Refused => Ok(()),
        sent => sent,
    }
}

pub(super) fn done() -> DriverAnswer {
    DriverAnswer::Done(DoneFacts { started: true, ..DoneFacts::default() })
}

pub(super) fn running(again_in: Duration) -> DriverAnswer {
    DriverAnswer::InProgress { again_in, started: true }
}

pub(super) fn failed(text: &str) -> DriverAnswer {
    DriverAnswer::Failed { text: text.into() }
}
