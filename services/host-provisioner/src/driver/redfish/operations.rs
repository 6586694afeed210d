//! Operations on a host at its BMC, each a poll.

use std::{sync::Arc, time::Duration};

use domain::host::{
    address::BmcAddress,
    record::{
        call::{DoneFacts, DriverAnswer, DriverCall, PrepareCall, ProvisionCall},
        spec::{BootMode, RaidVolume, image_url},
        status::HostInventory,
    },
};
use host_calls::bmc::{
    ChangeStep, HostResets, ON, SeenSystem, Step, after_change, after_read, await_effect, done, failed,
    running,
};
use redfish::SystemPower;
use serde_json::{Value, json};
use upstream::{Failure, FailureKind, Request};

use super::{
    RedfishState, Turn, inventory,
    media::{self, MediaDrive},
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
    pub(super) resets: HostResets<'a>,
}

impl HostOperation<'_> {
    pub(super) async fn carry_out(&self, turn: &mut Turn<'_>) -> DriverAnswer {
        let answered = match &self.order.work().call {
            DriverCall::Register(_) => self.register(turn).await,
            DriverCall::Inspect(_) => self.inspect(turn).await,
            DriverCall::Prepare(call) => self.prepare(turn, wants_volumes(call)).await,
            DriverCall::Service(_) => self.prepare(turn, false).await,
            DriverCall::Provision(call) => self.provision(turn, call).await,
            DriverCall::Adopt { .. } => self.resets.read(turn).await.map(|_| done()),
            DriverCall::Deprovision { .. } => self.deprovision(turn).await,
            // A host that is let go of keeps running, and its BMC keeps nothing of it.
            DriverCall::Detach { .. } | DriverCall::Delete => Ok(done()),
            DriverCall::PowerOn { .. } => self.resets.power_on(turn).await,
            DriverCall::PowerOff { mode, .. } => self.resets.power_off(turn, *mode).await,
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
        let system = self.resets.read(turn).await?;
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
        let system = self.resets.read(turn).await?;
        let drive = media::drive(turn, &system.document).await.map_err(after_read)?;
        match (&system.power, drive.holds(url)) {
            (SystemPower::On, true) => Ok(done()),
            (SystemPower::Off, true) => self.boot(turn, &system, call.boot_mode).await,
            (SystemPower::On, false) => self.resets.reset(turn, &system, self.resets.hard_off()).await,
            (SystemPower::Off, false) => self.insert(turn, &drive, url).await,
            (SystemPower::Other(state), _) => self.resets.while_changing(state),
        }
    }

    /// Switches the host on, which boots from the image. The boot override holds for one boot, so a BMC that is
    /// switching on is not told again.
    async fn boot(&self, turn: &mut Turn<'_>, system: &SeenSystem, mode: BootMode) -> Step<DriverAnswer> {
        if self.resets.requested_at(ChangeStep::Boot).is_none() {
            self.boot_from_disc(turn, system, mode).await?;
        }
        self.resets.reset(turn, system, ON.step(ChangeStep::Boot, self.resets.patience.effect)).await
    }

    /// Inserts the image, unless the step has done so: BMCs fetch the image before they show it.
    async fn insert(&self, turn: &mut Turn<'_>, drive: &MediaDrive, url: &str) -> Step<DriverAnswer> {
        if let Some(at) = self.resets.requested_at(ChangeStep::Insert) {
            return await_effect("insertion of the image", at, self.resets.patience.effect);
        }
        if drive.image.is_some() {
            drive.eject(turn).await.map_err(after_change)?;
        }
        self.resets.note(ChangeStep::Insert);
        let inserted = drive.insert(turn, url).await;
        inserted.map(|()| running(Duration::ZERO)).map_err(|failure| self.resets.not_requested(failure))
    }

    /// Removes the image: off, nothing inserted, usual boot.
    async fn deprovision(&self, turn: &mut Turn<'_>) -> Step<DriverAnswer> {
        let system = self.resets.read(turn).await?;
        match &system.power {
            SystemPower::On => return self.resets.reset(turn, &system, self.resets.hard_off()).await,
            SystemPower::Other(state) => return self.resets.while_changing(state),
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
