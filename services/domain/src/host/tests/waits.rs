//! Steps besides the rows of the table: record, login, registration, slots, driver, detachment, power, servicing.

use expect_test::expect;

use super::check;

#[test]
fn no_host_is_worked_on_while_a_session_switches_its_node() {
    check(
        &[
            "in:available online session",
            "in:available on session",
            "in:available online session reboot:hard",
            "in:preparing session",
            "in:provisioned session del",
            "in:provisioned session del:forced",
            "in:available online session:over",
            "in:available on session:over",
            "in:available on",
        ],
        expect![[r#"
            in:available online session
                (NodeInUse until changed)
            in:available on session
                (NodeInUse until changed)
            in:available online session reboot:hard
                (NodeInUse until changed)
            in:preparing session
                (NodeInUse until changed)
            in:provisioned session del
                (NodeInUse until changed)
            in:provisioned session del:forced
                state=deleting finalizer=false (Gone until changed) !DeletionSkipped:delete:id #change ~ReleaseAll
            in:available online session:over
                row 23: (Settled 60s)
            in:available on session:over
                row 23: (Settled 60s)
            in:available on
                row 23: CALL power_off (AwaitingPowerController until changed)
        "#]],
    );
}

#[test]
fn records_are_put_in_order_first() {
    check(
        &[
            "paused new bare",
            "paused del in:provisioned",
            "new status",
            "status in:available",
            "new status:bad",
            "new status stored:arm64",
            "in:preparing no-hardware stored:arm64",
            "in:preparing details no-hardware",
            "in:preparing details no-inspection",
            "in:preparing details",
            "in:preparing details:bad no-hardware",
            "rest in:available online",
            "rest:over in:available online",
            "rest:changed in:available online",
            "in:available not-ready",
        ],
        expect![[r#"
            paused new bare
                (Paused until changed)
            paused del in:provisioned
                (Paused until changed)
            new status
                op=OK profile=unknown hints=/dev/sda good=1 (Continuing)
            status in:available
                (Continuing) !RemoveAnnotation:baremetalhost.metal3.io/status
            new status:bad
                (Continuing) !RemoveAnnotation:baremetalhost.metal3.io/status
            new status stored:arm64
                op=OK profile=unknown hints=/dev/sda hardware=stored good=1 (Continuing)
            in:preparing no-hardware stored:arm64
                hardware=stored (Continuing) !UpdateHardwareDetails
            in:preparing details no-hardware
                hardware=given (Continuing) !UpdateHardwareDetails ~store:given
            in:preparing details no-inspection
                hardware=given (Continuing) !UpdateHardwareDetails ~store:given
            in:preparing details
                (Continuing) !RemoveAnnotation:inspect.metal3.io/hardwaredetails
            in:preparing details:bad no-hardware
                (HardwareDetailsUnreadable 1s)
            rest in:available online
                (BackingOff 7s)
            rest:over in:available online
                row 23: CALL power_on (AwaitingPowerController until changed)
            rest:changed in:available online
                row 23: CALL power_on (AwaitingPowerController until changed)
            in:available not-ready
                (DriverNotReady 30s) #DriverNotReady
        "#]],
    );
}

#[test]
fn logins_are_checked_and_counted_once() {
    check(
        &[
            "in:registering secret:missing",
            "in:registering secret:missing error:registration",
            "in:available secret:incomplete",
            "in:available no-address",
            "in:available no-secret-name",
            "in:available secret:unreadable",
            "in:available secret:kept",
            "in:available secret:2",
            "in:available secret:2 register=done",
            "in:available secret:2 register=failed",
            "in:available secret:2 register=done error:inspection count:3",
            "in:available error:registration register=done count:3",
        ],
        expect![[r#"
            in:registering secret:missing
                op=error error=registration error text=the secret with the login of the BMC does not exist count=1 (CredentialsMissing 10s) !RegistrationError !BMCCredentialError #error #CredentialsMissing
            in:registering secret:missing error:registration
                text=the secret with the login of the BMC does not exist count=2 (CredentialsMissing 10s) !RegistrationError !BMCCredentialError #error #CredentialsMissing
            in:available secret:incomplete
                op=error error=registration error text=the secret with the login of the BMC lacks the user name or the password count=1 (CredentialsIncomplete until changed) !RegistrationError !BMCCredentialError #error #CredentialsInvalid
            in:available no-address
                op=error error=registration error text=the address of the BMC is missing count=1 (CredentialsIncomplete until changed) !RegistrationError !BMCCredentialError #error #CredentialsInvalid
            in:available no-secret-name
                op=error error=registration error text=no secret with the login of the BMC is named count=1 (CredentialsIncomplete until changed) !RegistrationError !BMCCredentialError #error #CredentialsInvalid
            in:available secret:unreadable
                (CredentialsUnreadable 1s) #CredentialsUnhandled
            in:available secret:kept
                op=error error=registration error text=the secret with the login of the BMC does not exist count=1 (CredentialsMissing 10s) !RegistrationError !BMCCredentialError #error #CredentialsMissing
            in:available secret:2
                CALL register+new-login (AwaitingAnswer until changed)
            in:available secret:2 register=done
                good=2 (Continuing) !BMCAccessValidated #CredentialsUpdated ~MakeFirmwareRecords
            in:available secret:2 register=failed
                op=error error=registration error text=broken count=1 (BackingOff 120s) !RegistrationError #NoManagementAccess #error
            in:available secret:2 register=done error:inspection count:3
                op=OK error=none text=- good=2 (Continuing) !BMCAccessValidated #CredentialsUpdated ~MakeFirmwareRecords
            in:available error:registration register=done count:3
                op=OK error=none text=- (Continuing) ~MakeFirmwareRecords
        "#]],
    );
}

#[test]
fn hosts_are_registered_again_only_for_a_reason() {
    check(
        &[
            "in:provisioned online on has:a image:a",
            "in:provisioned online on has:a image:a absent",
            "in:provisioned online on has:a image:a unlisted",
            "in:provisioned online on has:a image:a unregistered",
            "in:provisioned online on has:a image:a register=running unregistered",
            "in:provisioned online on has:a image:a register=needs-ramdisk unregistered",
            "in:inspecting wants-ramdisk ramdisk:built unregistered register=needs-ramdisk",
            "in:inspecting wants-ramdisk ramdisk:failed unregistered",
            "in:registering unregistered no-profile profile:odd register=done",
            "in:registering unregistered no-profile profile:dell register=done",
            "in:registering unregistered register=not-registered",
            "in:deleting absent del",
        ],
        expect![[r#"
            in:provisioned online on has:a image:a
                row 28: (Settled 60s)
            in:provisioned online on has:a image:a absent
                CALL register (AwaitingAnswer until changed)
            in:provisioned online on has:a image:a unlisted
                row 28: (AwaitingPowerReading 60s)
            in:provisioned online on has:a image:a unregistered
                CALL register (AwaitingAnswer until changed) #RegistrationRequired
            in:provisioned online on has:a image:a register=running unregistered
                (DriverWorking 4s)
            in:provisioned online on has:a image:a register=needs-ramdisk unregistered
                (AwaitingRamdisk 300s) #WaitingForRamdisk
            in:inspecting wants-ramdisk ramdisk:built unregistered register=needs-ramdisk
                op=error error=registration error text=the driver refused the ramdisk image count=1 (BackingOff 120s) !RegistrationError #error
            in:inspecting wants-ramdisk ramdisk:failed unregistered
                op=error error=registration error text=no image count=1 (BackingOff 120s) !RegistrationError #error
            in:registering unregistered no-profile profile:odd register=done
                op=error error=registration error text=there is no hardware profile 'odd' count=1 (BackingOff 120s) !RegistrationError #error
            in:registering unregistered no-profile profile:dell register=done
                profile=dell good=1 (Continuing) !ProfileSet !BMCAccessValidated #CredentialsUpdated ~MakeFirmwareRecords
            in:registering unregistered register=not-registered
                (AnswerIncomplete 1s)
            in:deleting absent del
                row 40: CALL delete (AwaitingAnswer until changed)
        "#]],
    );
}

#[test]
fn hosts_wait_for_their_turn() {
    check(
        &[
            "in:inspecting no-slot",
            "in:inspecting no-slot busy",
            "in:inspecting no-slot virtual-media",
            "in:provisioning online image:a no-slot",
            "in:deprovisioning has:a no-slot",
            "in:available online image:a op:delayed no-slot waiting-for-slot",
            "in:available online image:a op:delayed waiting-for-slot",
            "in:available online image:a op:delayed waiting-for-slot not-ready",
            "in:available online image:a op:delayed waiting-for-slot secret:missing",
            "in:available op:delayed no-slot waiting-for-slot detached",
            "in:inspecting inspect=needs-slot",
            "in:inspecting holding-slot inspect=?",
            "in:inspecting holding-slot error:inspection rest",
            "in:provisioned online on has:a image:a paused holding-slot",
        ],
        expect![[r#"
            in:inspecting no-slot
                op=delayed (AwaitingSlot until changed) [queued 0s] #delayed:inspecting
            in:inspecting no-slot busy
                CALL inspect (AwaitingAnswer until changed) [slot]
            in:inspecting no-slot virtual-media
                CALL inspect (AwaitingAnswer until changed)
            in:provisioning online image:a no-slot
                op=delayed (AwaitingSlot until changed) [queued 0s] #delayed:provisioning
            in:deprovisioning has:a no-slot
                op=delayed (AwaitingSlot until changed) [queued 0s] #delayed:deprovisioning
            in:available online image:a op:delayed no-slot waiting-for-slot
                (AwaitingSlot until changed) [queued 1s]
            in:available online image:a op:delayed waiting-for-slot
                op=OK (Continuing) [slot]
            in:available online image:a op:delayed waiting-for-slot not-ready
                (DriverNotReady 30s) [aside] #DriverNotReady
            in:available online image:a op:delayed waiting-for-slot secret:missing
                op=error error=registration error text=the secret with the login of the BMC does not exist count=1 (CredentialsMissing 10s) !RegistrationError !BMCCredentialError #error #CredentialsMissing
            in:available op:delayed no-slot waiting-for-slot detached
                op=OK CALL detach (AwaitingAnswer until changed)
            in:inspecting inspect=needs-slot
                op=delayed (AwaitingSlot 120s) [aside] #delayed:inspecting
            in:inspecting holding-slot inspect=?
                (AwaitingAnswer until changed) [slot]
            in:inspecting holding-slot error:inspection rest
                (BackingOff 7s)
            in:provisioned online on has:a image:a paused holding-slot
                (Paused until changed) [slot]
        "#]],
    );
}

#[test]
fn the_driver_is_asked_once_at_a_time() {
    check(
        &[
            "in:available online power-off=?",
            "in:available online power-off=running",
            "in:available online power-on=running",
            "in:inspecting inspect=unreachable",
            "in:inspecting inspect=busy",
            "in:inspecting inspect=not-registered",
            "in:provisioned has:a image:a on inspect=?",
        ],
        expect![[r#"
            in:available online power-off=?
                row 23: (AwaitingPowerController until changed)
            in:available online power-off=running
                row 23: CALL power_on (AwaitingPowerController until changed)
            in:available online power-on=running
                row 23: (DriverWorking 4s) !PowerOn #power:true
            in:inspecting inspect=unreachable
                (DriverUnreachable 1s) [slot]
            in:inspecting inspect=busy
                (DriverBusy 1s) [slot]
            in:inspecting inspect=not-registered
                (Continuing) [slot]
            in:provisioned has:a image:a on inspect=?
                row 28: (AwaitingAnswer until changed) [slot]
        "#]],
    );
}

#[test]
fn detachment_follows_its_mark() {
    check(
        &[
            "in:provisioned has:a image:a online on detached",
            "in:externally-provisioned external on online detached",
            "in:available detached",
            "in:ready detached",
            "in:inspecting detached",
            "in:provisioning online image:a detached",
            "in:provisioning online image:a detached:force",
            "in:deleting del detached",
            "in:available detached detach=running error:detach",
            "in:available detached detach=running error:power-management",
            "in:available detached detach=done",
            "in:available detached detach=done error:detach count:2",
            "in:available detached detach=failed",
            "in:available detached op:detached",
            "in:available detached:delay op:detached del",
            "in:available error:detach count:2",
            "in:available op:detached",
        ],
        expect![[r#"
            in:provisioned has:a image:a online on detached
                CALL detach (AwaitingAnswer until changed)
            in:externally-provisioned external on online detached
                CALL detach (AwaitingAnswer until changed)
            in:available detached
                CALL detach (AwaitingAnswer until changed)
            in:ready detached
                CALL detach (AwaitingAnswer until changed)
            in:inspecting detached
                CALL inspect (AwaitingAnswer until changed) [slot]
            in:provisioning online image:a detached
                CALL provision (AwaitingAnswer until changed) [slot]
            in:provisioning online image:a detached:force
                CALL detach+force (AwaitingAnswer until changed) [slot]
            in:deleting del detached
                row 40: CALL delete (AwaitingAnswer until changed)
            in:available detached detach=running error:detach
                op=OK error=none text=- (DriverWorking 4s)
            in:available detached detach=running error:power-management
                (DriverWorking 4s)
            in:available detached detach=done
                op=detached (Detached 600s)
            in:available detached detach=done error:detach count:2
                op=detached error=none text=- count=0 (Detached 600s)
            in:available detached detach=failed
                op=error error=detach error text=broken count=1 (BackingOff 120s) !DetachError #error
            in:available detached op:detached
                (Detached 600s)
            in:available detached:delay op:detached del
                (DeletionHeld 600s) #DeletionHeld
            in:available error:detach count:2
                op=OK error=none text=- count=0 (Continuing)
            in:available op:detached
                op=OK (Continuing)
        "#]],
    );
}

#[test]
fn power_follows_wishes_and_reboots() {
    check(
        &[
            "in:available online turned-on",
            "in:available online turned-on error:power-management",
            "in:available online power:unknown",
            "in:available online stale-look",
            "in:available online stale-look inspect=running",
            "in:available online power:unknown power-on=running",
            "in:available on",
            "in:available on error:power-management count:2",
            "in:available on power-off=failed",
            "in:available on power-off=failed count:2",
            "in:available online power-on=done count:2",
            "in:available online on count:2",
            "in:provisioned has:a image:a online on reboot",
            "in:provisioned has:a image:a online on reboot:bad",
            "in:provisioned has:a image:a online on reboot hold:me reboot:hard",
            "in:provisioned has:a image:a online reboot",
            "in:provisioned has:a image:a online hold:me",
            "in:provisioned has:a image:a online on never-off reboot power-off=running",
            "in:provisioned has:a image:a online on never-off hold:me",
            "in:provisioned has:a image:a on never-off",
            "in:provisioned has:a image:a on never-off reboot",
            "in:provisioned has:a image:a never-off",
            "in:available online on reboot",
            "in:available online on reboot:force",
            "in:provisioned has:a image:a online data-image",
            "in:provisioned has:a image:a online data-image attach=failed",
            "in:provisioned has:a image:a online data-image attach=done",
        ],
        expect![[r#"
            in:available online turned-on
                row 23: on=true (Continuing)
            in:available online turned-on error:power-management
                row 23: op=OK error=none text=- on=true (Continuing)
            in:available online power:unknown
                row 23: (AwaitingPowerReading 60s)
            in:available online stale-look
                row 23: (AwaitingPowerReading 60s)
            in:available online stale-look inspect=running
                row 23: (AwaitingPowerReading 60s) [slot]
            in:available online power:unknown power-on=running
                row 23: (DriverWorking 4s) !PowerOn #power:true
            in:available on
                row 23: CALL power_off (AwaitingPowerController until changed)
            in:available on error:power-management count:2
                row 23: CALL power_off+hard+force (AwaitingPowerController until changed)
            in:available on power-off=failed
                row 23: op=error error=power management error text=the soft power-off failed, and a hard one follows: broken count=1 (BackingOff 120s) !PowerManagementError #error
            in:available on power-off=failed count:2
                row 23: op=error error=power management error text=broken count=3 (BackingOff 480s) !PowerManagementError #error
            in:available online power-on=done count:2
                row 23: count=0 on=true (Continuing) !PowerOn #power:true
            in:available online on count:2
                row 23: count=0 (Settled 60s)
            in:provisioned has:a image:a online on reboot
                row 28: CALL power_off (AwaitingPowerController until changed)
            in:provisioned has:a image:a online on reboot:bad
                row 28: CALL power_off (AwaitingPowerController until changed) !InvalidAnnotationValue
            in:provisioned has:a image:a online on reboot hold:me reboot:hard
                row 28: CALL power_off+hard (AwaitingPowerController until changed)
            in:provisioned has:a image:a online reboot
                row 28: reboots=0 (Continuing)
            in:provisioned has:a image:a online hold:me
                row 28: (HeldOff 60s)
            in:provisioned has:a image:a online on never-off reboot power-off=running
                row 28: reboots=0 (Continuing) !PowerOff #power:false
            in:provisioned has:a image:a online on never-off hold:me
                row 28: (Settled 60s)
            in:provisioned has:a image:a on never-off
                row 28: (Settled 60s)
            in:provisioned has:a image:a on never-off reboot
                row 28: CALL power_off (AwaitingPowerController until changed)
            in:provisioned has:a image:a never-off
                row 28: (Settled 60s)
            in:available online on reboot
                row 23: (Settled 60s)
            in:available online on reboot:force
                row 23: CALL power_off (AwaitingPowerController until changed)
            in:provisioned has:a image:a online data-image
                row 28: CALL attach_data_image (AwaitingAnswer until changed)
            in:provisioned has:a image:a online data-image attach=failed
                row 28: (DataImageFailed 120s) ~data image failed:broken
            in:provisioned has:a image:a online data-image attach=done
                row 28: CALL power_on (AwaitingPowerController until changed)
        "#]],
    );
}

#[test]
fn firmware_of_a_running_host_changes_in_a_reboot() {
    check(
        &[
            "in:provisioned has:a image:a online settings:changed versions:changed",
            "in:provisioned has:a image:a online settings:changed on-reboot",
            "in:provisioned has:a image:a online on settings:changed on-reboot",
            "in:provisioned has:a image:a online settings:changed versions:changed on-reboot op:servicing",
            "in:provisioned has:a image:a online versions:changed on-reboot op:servicing service=started",
            "in:provisioned has:a image:a online settings:changed on-reboot op:servicing service=done",
            "in:provisioned has:a image:a online settings:changed on-reboot op:servicing service=failed",
            "in:provisioned has:a image:a online settings:changed on-reboot error:servicing",
            "in:provisioned has:a image:a online op:servicing",
            "in:provisioned has:a image:a online settings:changed on-reboot power-on=running",
        ],
        expect![[r#"
            in:provisioned has:a image:a online settings:changed versions:changed
                row 28: CALL power_on (AwaitingPowerController until changed)
            in:provisioned has:a image:a online settings:changed on-reboot
                row 28: op=servicing (Continuing)
            in:provisioned has:a image:a online on settings:changed on-reboot
                row 28: (Settled 60s)
            in:provisioned has:a image:a online settings:changed versions:changed on-reboot op:servicing
                row 28: CALL service+settings+versions (AwaitingAnswer until changed)
            in:provisioned has:a image:a online versions:changed on-reboot op:servicing service=started
                row 28: (DriverWorking 4s) ~FirmwareUpdatesBegun
            in:provisioned has:a image:a online settings:changed on-reboot op:servicing service=done
                row 28: op=OK (Continuing)
            in:provisioned has:a image:a online settings:changed on-reboot op:servicing service=failed
                row 28: op=error error=servicing error text=broken count=1 (BackingOff 120s) !ServicingError #error ~FirmwareUpdatesForgotten
            in:provisioned has:a image:a online settings:changed on-reboot error:servicing
                row 28: op=servicing (Continuing)
            in:provisioned has:a image:a online op:servicing
                row 28: CALL service (AwaitingAnswer until changed)
            in:provisioned has:a image:a online settings:changed on-reboot power-on=running
                row 28: (DriverWorking 4s) !PowerOn #power:true
        "#]],
    );
}
