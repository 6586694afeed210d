//! Firmware of a host: its settings and versions, and changes of them (host reference 1.11, 1.16).
//!
//! Settings hold from the next reset on, so a change of them is followed by one, and over once the BMC shows the wished
//! values. A host without a system is left off afterwards, as it is after a cleaning.

use std::time::Duration;

use domain::host::{
    address::BmcAddress,
    firmware::reading::{FirmwareComponent, FirmwareReading, FirmwareUpdate, SettingsReading},
    record::call::{DriverAnswer, DriverCall},
};
use host_calls::bmc::{
    ChangeStep, HARD_OFF, ON, PATIENCE, RESTART, SeenSystem, Step, after_change, after_read, await_effect,
    done, failed, running,
};
use redfish::{SystemPower, TaskProgress, members};
use upstream::FailureKind;

use super::{
    RedfishHostDriver, Turn, bios,
    components::{self, UpdateService},
    inventory::optional,
    operations::HostOperation,
    updates::{UpdateRun, UpdateState},
};
use crate::driver::{BackendOutage, HostTarget};

/// Time for the self-test of a system that applies settings. Large systems need a quarter of an hour.
const SELF_TEST: Duration = Duration::from_secs(30 * 60);

/// Time until a task of a BMC is looked at again.
const TASK: Duration = Duration::from_secs(5);

/// Path of the tasks of every BMC.
const TASKS: &str = "/redfish/v1/TaskService/Tasks";

impl RedfishHostDriver {
    /// Reads the firmware of a host.
    ///
    /// # Errors
    /// The BMC could not be asked.
    pub(crate) async fn read_firmware(
        &self,
        host: &HostTarget,
        address: &BmcAddress,
        with_rules: bool,
    ) -> Result<FirmwareReading, BackendOutage> {
        let client = self.inner.clients.client(host, address).map_err(BackendOutage)?;
        let Some(mut turn) = client.turn_within(PATIENCE).await else {
            return Err(BackendOutage(format!("{} serves other callers", client.name())));
        };
        let read = read(&mut turn, address, with_rules).await;
        read.map_err(|failure| BackendOutage(failure.text))
    }
}

async fn read(
    turn: &mut Turn<'_>,
    address: &BmcAddress,
    with_rules: bool,
) -> Result<FirmwareReading, upstream::Failure> {
    let (_, system) = turn.system_document(&address.path).await?;
    let mut reading = FirmwareReading::default();
    if let Some(bios) = bios::read(turn, &system).await? {
        let rules = if with_rules { bios.rules(turn).await? } else { None };
        reading.settings = Some(SettingsReading { values: bios.values(), rules });
    }
    reading.components = components::read(turn, &system).await?.map(|service| service.components());
    Ok(reading)
}

impl HostOperation<'_> {
    /// Prepares or services a host: changes its settings, then its versions. Hints need no call, and volumes are beyond
    /// this driver.
    pub(super) async fn prepare(&self, turn: &mut Turn<'_>, wants_volumes: bool) -> Step<DriverAnswer> {
        let parts = self.order.parts();
        if parts.storage && wants_volumes {
            return Err(failed("this driver changes no RAID volumes"));
        }
        self.remember_updates();
        if parts.settings
            && let Some(answer) = self.change_settings(turn).await?
        {
            return Ok(answer);
        }
        if parts.components
            && let Some(answer) = self.update(turn).await?
        {
            return Ok(answer);
        }
        self.leave_off(turn).await
    }

    /// Changes settings; `None`: they are as wished.
    async fn change_settings(&self, turn: &mut Turn<'_>) -> Step<Option<DriverAnswer>> {
        let system = self.resets.read(turn).await?;
        let bios = bios::read(turn, &system.document).await.map_err(after_read)?;
        let bios = bios.ok_or_else(|| failed("the BMC offers no settings of the BIOS"))?;
        let values = bios.values();
        let wishes = &self.order.firmware.wishes;
        if wishes.changed_settings(&values).next().is_none() {
            return Ok(None);
        }
        if let Some(at) = self.resets.requested_at(ChangeStep::First) {
            return await_effect("change of BIOS settings", at, SELF_TEST).map(Some);
        }
        if let SystemPower::Other(state) = &system.power {
            return self.resets.while_changing(state).map(Some);
        }
        // Asked for twice, the change is the same; the reset after it stands for both.
        bios.change(turn, wishes.changed_settings(&values)).await.map_err(after_change)?;
        self.restart(turn, &system, ChangeStep::First, SELF_TEST).await.map(Some)
    }

    /// Has the system start, from whichever power.
    async fn restart(
        &self,
        turn: &mut Turn<'_>,
        system: &SeenSystem,
        step: ChangeStep,
        patience: Duration,
    ) -> Step<DriverAnswer> {
        let kinds = if system.power == SystemPower::Off { ON } else { RESTART };
        self.resets.reset(turn, system, kinds.step(step, patience)).await
    }

    /// Updates components, one after the other; `None`: all are over.
    async fn update(&self, turn: &mut Turn<'_>) -> Step<Option<DriverAnswer>> {
        let system = self.resets.read(turn).await?;
        let service = components::read(turn, &system.document).await.map_err(after_read)?;
        let service = service.ok_or_else(|| failed("the BMC offers no updates of firmware"))?;
        let known = self.state.updates.of(&self.host.key, self.order.work().since);
        let Some(mut run) = known else { return self.recover(turn, &service).await };
        while let Some(update) = run.left.front().cloned() {
            match run.state.clone() {
                UpdateState::Due => {
                    let request = service.request(&update);
                    let request =
                        request.ok_or_else(|| failed(&format!("the BMC updates no {}", update.component)))?;
                    run.state = UpdateState::InDoubt;
                    self.state.updates.note(&self.host.key, &run);
                    match turn.begin(request).await {
                        Ok(Some(task)) => run.state = UpdateState::Task(task),
                        Ok(None) => run.end_first(),
                        Err(failure) if failure.kind == FailureKind::Ambiguous => return Err(running(TASK)),
                        Err(failure) => {
                            run.state = UpdateState::Due;
                            self.state.updates.note(&self.host.key, &run);
                            return Err(after_change(failure));
                        }
                    }
                    self.state.updates.note(&self.host.key, &run);
                }
                UpdateState::InDoubt => return self.recover(turn, &service).await,
                UpdateState::Task(task) => {
                    if let Some(answer) = self.follow(turn, &system, &service, &update, &task).await? {
                        return Ok(Some(answer));
                    }
                    run.end_first();
                    self.state.updates.note(&self.host.key, &run);
                }
            }
        }
        Ok(None)
    }

    /// Remembers the updates of an operation that begins. Without them, later calls cannot know which were begun.
    fn remember_updates(&self) {
        let (updates, since) = (&self.state.updates, self.order.work().since);
        if self.order.asked_before().is_none() && updates.of(&self.host.key, since).is_none() {
            updates.note(&self.host.key, &UpdateRun::new(since, &self.order.firmware.wishes.updates));
        }
    }

    /// Follows the task of an update; `None`: the update is over.
    async fn follow(
        &self,
        turn: &mut Turn<'_>,
        system: &SeenSystem,
        service: &UpdateService,
        update: &FirmwareUpdate,
        task: &str,
    ) -> Step<Option<DriverAnswer>> {
        match turn.task(task).await.map_err(after_read)? {
            TaskProgress::Running => Ok(Some(running(TASK))),
            TaskProgress::NeedsReset => {
                self.restart(turn, system, ChangeStep::Update, SELF_TEST).await.map(Some)
            }
            TaskProgress::Done => Ok(None),
            // A BMC that updates itself starts anew, and has no tasks then.
            TaskProgress::Forgotten if self.has_new_version(service, &update.component) => Ok(None),
            TaskProgress::Forgotten => Err(failed("the BMC has forgotten the task of the update")),
            TaskProgress::Failed(text) => Err(failed(&format!("update of {}: {text}", update.component))),
        }
    }

    /// Finds the results of updates that are not remembered, or whose request got no answer; `None`: all are over.
    async fn recover(&self, turn: &mut Turn<'_>, service: &UpdateService) -> Step<Option<DriverAnswer>> {
        let listed = optional(turn.get("tasks_get", TASKS).await).map_err(after_read)?;
        for task in listed.iter().flat_map(members) {
            let progress = turn.task(&task).await.map_err(after_read)?;
            if matches!(progress, TaskProgress::Running | TaskProgress::NeedsReset) {
                return Ok(Some(running(TASK)));
            }
        }
        let mut updates = self.order.firmware.wishes.updates.iter();
        if updates.all(|update| self.has_new_version(service, &update.component)) {
            return Ok(None);
        }
        Err(failed("an update of firmware was interrupted, and the BMC does not show what came of it"))
    }

    /// Returns whether a component has another version than before the operation.
    fn has_new_version(&self, service: &UpdateService, name: &str) -> bool {
        let of = |components: &[FirmwareComponent]| {
            let found = components.iter().find(|component| &*component.name == name);
            found.map(|component| component.version.clone())
        };
        let (before, now) = (of(&self.order.firmware.known), of(&service.components()));
        before.is_some() && now.is_some() && before != now
    }

    /// Leaves a host without a system off that was on for a change of its firmware.
    async fn leave_off(&self, turn: &mut Turn<'_>) -> Step<DriverAnswer> {
        let is_prepared = matches!(self.order.work().call, DriverCall::Prepare(_));
        if !self.order.parts().has_firmware()
            || !is_prepared
            || self.host.disable_power_off
            || !self.resets.has_begun()
        {
            return Ok(done());
        }
        let system = self.resets.read(turn).await?;
        match &system.power {
            SystemPower::Off => Ok(done()),
            SystemPower::Other(state) => self.resets.while_changing(state),
            SystemPower::On => {
                self.resets
                    .reset(turn, &system, HARD_OFF.step(ChangeStep::LeaveOff, self.resets.patience.effect))
                    .await
            }
        }
    }
}
