//! Preparation: RAID, hints, firmware settings and versions (host reference 1.11).

use std::time::Duration;

use crate::host::{
    decision::CompanionChange,
    evidence::FirmwareWish,
    firmware::{self, FirmwareVerdict},
    hints::wanted_hints,
    pass::{DriverReply, Flow, HostPass, PassEnd},
    record::{
        Host,
        call::{DriverCall, PreparationParts, PrepareCall},
        reason::WaitReason,
        spec::RaidWish,
        status::HostErrorKind,
    },
};

/// Time until a firmware record that is not ready is looked at again.
const FIRMWARE_NOT_READY: Duration = Duration::from_secs(60);

/// Returns the RAID volumes that a host wants. Without a wish, software volumes of an earlier one are deleted.
pub(crate) fn wanted_raid(host: &Host) -> Option<RaidWish> {
    if let Some(raid) = host.spec.raid.as_ref().filter(|raid| names_volumes(raid)) {
        return Some(raid.clone());
    }
    let known = host.status.provisioning.raid.as_ref()?;
    let hardware = known.hardware.clone().filter(|volumes| !volumes.is_empty());
    Some(RaidWish { hardware, software: Some(Vec::new()) })
}

fn names_volumes(raid: &RaidWish) -> bool {
    [&raid.hardware, &raid.software].into_iter().flatten().any(|volumes| !volumes.is_empty())
}

/// Returns whether RAID volumes or hints differ from those that were applied.
pub(crate) fn is_storage_changed(pass: &mut HostPass<'_>) -> Flow<bool> {
    Ok(differs(&pass.host))
}

fn differs(host: &Host) -> bool {
    let applied = &host.status.provisioning;
    wanted_raid(host) != applied.raid || wanted_hints(host) != applied.root_device_hints
}

/// Returns whether firmware settings of an available host are to be changed.
pub(crate) fn are_settings_changed(pass: &mut HostPass<'_>) -> Flow<bool> {
    is_firmware_changed(pass, pass.seen.settings)
}

/// Returns whether firmware versions of an available host are to be changed.
pub(crate) fn are_components_changed(pass: &mut HostPass<'_>) -> Flow<bool> {
    let wish = pass.seen.components.filter(|wish| wish.is_pending || !wish.is_judged);
    is_firmware_changed(pass, wish)
}

fn is_firmware_changed(pass: &mut HostPass<'_>, wish: Option<FirmwareWish>) -> Flow<bool> {
    match firmware::verdict(&pass.host, wish) {
        FirmwareVerdict::Nothing => Ok(false),
        FirmwareVerdict::Due | FirmwareVerdict::Unread => Ok(true),
        FirmwareVerdict::Unjudged => Err(unjudged(pass)),
    }
}

fn unjudged(pass: &mut HostPass<'_>) -> PassEnd {
    pass.trouble(WaitReason::FirmwareUnjudged, "firmware wishes were not judged yet".into())
}

/// Returns whether the driver has finished the preparation.
pub(crate) fn is_finished(pass: &mut HostPass<'_>) -> Flow<bool> {
    await_firmware_records(pass)?;
    let call = DriverCall::Prepare(Box::new(call(pass)));
    match pass.consult(call)? {
        DriverReply::Running { started } => {
            note_start(pass, started);
            Err(pass.running())
        }
        DriverReply::Done(facts) => {
            note_start(pass, facts.started);
            pass.host.progress.firmware_changed_at = pass.host.progress.answered_at;
            Ok(true)
        }
        DriverReply::Failed(text) => {
            begin_anew(pass);
            Err(pass.fail(HostErrorKind::Preparation, text))
        }
        DriverReply::NotRegistered | DriverReply::NeedsRamdisk => Err(pass.register_again()),
    }
}

/// Ends the preparation.
pub(crate) fn finish(pass: &mut HostPass<'_>) {
    pass.clear_error();
    pass.host.status.error_count = 0;
}

fn await_firmware_records(pass: &mut HostPass<'_>) -> Flow {
    for wish in [pass.seen.settings, pass.seen.components] {
        match firmware::verdict(&pass.host, wish) {
            FirmwareVerdict::Nothing | FirmwareVerdict::Due => {}
            FirmwareVerdict::Unjudged => return Err(unjudged(pass)),
            FirmwareVerdict::Unread => {
                return Err(pass.wait(WaitReason::AwaitingFirmwareReading, FIRMWARE_NOT_READY));
            }
        }
    }
    Ok(())
}

fn call(pass: &HostPass<'_>) -> PrepareCall {
    let restart = pass.has_error(HostErrorKind::Preparation);
    let every = PreparationParts { storage: true, settings: true, components: true };
    let storage = PreparationParts { storage: differs(&pass.host), ..PreparationParts::default() };
    let parts = storage.or(firmware::due(pass, every));
    PrepareCall {
        target_raid: wanted_raid(&pass.host),
        actual_raid: pass.host.status.provisioning.raid.clone().filter(|_| !restart),
        hints: wanted_hints(&pass.host),
        parts,
        unprepared: restart || !parts.is_empty(),
        restart,
    }
}

/// Copies the wishes that the driver has begun to fulfil.
fn note_start(pass: &mut HostPass<'_>, started: bool) {
    if !started {
        return;
    }
    pass.host.status.provisioning.raid = wanted_raid(&pass.host);
    pass.host.status.provisioning.root_device_hints = wanted_hints(&pass.host);
    if pass.seen.components.is_some() {
        pass.companions.push(CompanionChange::FirmwareUpdatesBegun);
    }
}

/// Forgets the wishes of a failed preparation, so that the next one fulfils them again.
fn begin_anew(pass: &mut HostPass<'_>) {
    if pass.ended_parts.storage {
        pass.host.status.provisioning.raid = None;
        pass.host.status.provisioning.root_device_hints = None;
    }
    if pass.ended_parts.components {
        pass.companions.push(CompanionChange::FirmwareUpdatesForgotten);
    }
}

/// Forgets applied settings, so that software volumes and hints are applied again. Hardware volumes outlive an image.
pub(crate) fn forget_settings(pass: &mut HostPass<'_>) {
    let applied = &mut pass.host.status.provisioning;
    applied.root_device_hints = None;
    if let Some(raid) = &mut applied.raid {
        raid.software = None;
    }
}
