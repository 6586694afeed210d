use expect_test::expect;

use super::check;

#[test]
fn deletion_begins_as_the_table_says() {
    check(
        &[
            "del in:provisioned detached",
            "del in:provisioning detached",
            "del in:available op:detached detached",
            "del in:available detached:delay",
            "del in:available op:detached",
            "del new bare",
            "del in:unmanaged no-address no-secret-name",
            "del in:registering",
            "del in:registering error:registration secret:missing",
            "del in:provisioning image:a",
            "del in:provisioned image:a has:a",
            "del in:provisioned image:a has:a no-slot",
            "del in:inspecting",
            "del in:inspecting no-slot",
            "del in:match-profile",
            "del in:preparing",
            "del in:available",
            "del in:available op:delayed no-slot waiting-for-slot",
            "del in:ready",
            "del in:externally-provisioned",
            "del in:deprovisioning error:registration count:3",
            "del in:deprovisioning error:registration count:4",
            "del in:powering-off-before-delete error:registration count:4",
            "del:forced in:provisioned has:a not-ready",
        ],
        expect![[r#"
            del in:provisioned detached
                row 1: state=deleting (Continuing) #change
            del in:provisioning detached
                row 1: state=deleting (Continuing) #change
            del in:available op:detached detached
                row 1: state=deleting (Continuing) #change
            del in:available detached:delay
                CALL detach (AwaitingAnswer until changed) #DeletionHeld
            del in:available op:detached
                op=OK (Continuing) #DeletionHeld
            del new bare
                row 2: state=deleting (Continuing) #change
            del in:unmanaged no-address no-secret-name
                row 2: state=deleting (Continuing) #change
            del in:registering
                row 2: state=deleting (Continuing) #change
            del in:registering error:registration secret:missing
                row 2: state=deleting (Continuing) #change
            del in:provisioning image:a
                row 3: state=deprovisioning (Continuing) [slot] !DeprovisioningStarted #change
            del in:provisioned image:a has:a
                row 3: state=deprovisioning (Continuing) [slot] !DeprovisioningStarted #change
            del in:provisioned image:a has:a no-slot
                row 3: op=delayed (AwaitingSlot until changed) [queued 0s] #delayed:deprovisioning
            del in:inspecting
                row 4: state=powering off before delete (Continuing) #change
            del in:inspecting no-slot
                row 4: state=powering off before delete (Continuing) #change
            del in:match-profile
                row 4: state=powering off before delete (Continuing) #change
            del in:preparing
                row 4: state=powering off before delete (Continuing) #change
            del in:available
                row 4: state=powering off before delete (Continuing) #change
            del in:available op:delayed no-slot waiting-for-slot
                row 4: state=powering off before delete op=OK (Continuing) #change
            del in:ready
                row 4: state=powering off before delete (Continuing) #change
            del in:externally-provisioned
                row 4: state=powering off before delete (Continuing) #change
            del in:deprovisioning error:registration count:3
                CALL register+restart (AwaitingAnswer until changed) [slot]
            del in:deprovisioning error:registration count:4
                row 33: state=deleting (Continuing) #change
            del in:powering-off-before-delete error:registration count:4
                row 36: state=deleting (Continuing) #change
            del:forced in:provisioned has:a not-ready
                state=deleting finalizer=false (Gone until changed) !DeletionSkipped:delete:id #change ~ReleaseAll
        "#]],
    );
}

#[test]
fn new_and_registering_hosts_follow_the_table() {
    check(
        &[
            "new bare",
            "new",
            "new no-address",
            "new no-address no-secret-name",
            "new no-address no-secret-name not-ready",
            "in:unmanaged no-address no-secret-name op:discovered",
            "in:unmanaged op:discovered",
            "in:registering unregistered",
            "in:registering register=done unregistered",
            "in:registering error:registration register=done unregistered",
            "in:registering external",
            "in:registering external count:2",
            "in:registering no-inspection count:2",
            "in:registering inspect:disabled",
            "in:registering count:2",
            "in:registering no-slot",
            "in:registering no-slot virtual-media",
        ],
        expect![[r#"
            new bare
                finalizer=true (Continuing)
            new
                row 5: state=registering (Continuing) #change
            new no-address
                row 5: state=registering (Continuing) #change
            new no-address no-secret-name
                row 6: state=unmanaged op=discovered (Continuing) !Discovered #Unmanaged #change
            new no-address no-secret-name not-ready
                row 6: state=unmanaged op=discovered (Continuing) !Discovered #Unmanaged #change
            in:unmanaged no-address no-secret-name op:discovered
                row 7: (Unmanaged 600s)
            in:unmanaged op:discovered
                row 7: state=registering (Continuing) #change
            in:registering unregistered
                CALL register (AwaitingAnswer until changed) #RegistrationRequired
            in:registering register=done unregistered
                good=1 (Continuing) !BMCAccessValidated #CredentialsUpdated ~MakeFirmwareRecords
            in:registering error:registration register=done unregistered
                op=OK error=none text=- good=1 (Continuing) !BMCAccessValidated #CredentialsUpdated ~MakeFirmwareRecords
            in:registering external
                row 8: state=externally provisioned (Continuing) !Registered #change
            in:registering external count:2
                row 8: state=externally provisioned count=0 (Continuing) !Registered #change
            in:registering no-inspection count:2
                row 9: state=preparing count=0 (Continuing) !Registered #change
            in:registering inspect:disabled
                row 9: state=preparing (Continuing) !Registered #change
            in:registering count:2
                row 10: state=inspecting count=0 (Continuing) [slot] !Registered #change
            in:registering no-slot
                row 10: op=delayed (AwaitingSlot until changed) [queued 0s] #delayed:inspecting
            in:registering no-slot virtual-media
                row 10: state=inspecting (Continuing) !Registered #change
        "#]],
    );
}

#[test]
fn inspection_and_preparation_follow_the_table() {
    check(
        &[
            "in:inspecting",
            "in:inspecting inspect=?",
            "in:inspecting inspect=started inspect reboot",
            "in:inspecting inspect=started later-call inspect reboot",
            "in:inspecting inspect=running error:inspection",
            "in:inspecting inspect=poll",
            "in:inspecting inspect=done count:2 error:inspection",
            "in:inspecting inspect=done later-call",
            "in:inspecting inspect=done-empty",
            "in:inspecting inspect=failed",
            "in:inspecting error:inspection reboot:force inspect",
            "in:inspecting no-inspection",
            "in:inspecting no-inspection inspect=running",
            "in:match-profile count:2",
            "in:preparing",
            "in:preparing hints:sdb raid",
            "in:preparing hints:sdb prepare=started",
            "in:preparing raided raid:none prepare=started",
            "in:preparing hints:sdb prepare=done count:2",
            "in:preparing raided prepare=failed",
            "in:preparing error:preparation raided",
            "in:preparing settings:changed versions:changed",
            "in:preparing settings:unread",
            "in:preparing settings:unread settings:same",
            "in:preparing settings:unjudged",
            "in:preparing settings:invalid",
        ],
        expect![[r#"
            in:inspecting
                CALL inspect (AwaitingAnswer until changed) [slot]
            in:inspecting inspect=?
                (AwaitingAnswer until changed) [slot]
            in:inspecting inspect=started inspect reboot
                reboots=0 inspect=- (DriverWorking 4s) [slot] !InspectionStarted
            in:inspecting inspect=started later-call inspect reboot
                reboots=0 inspect=- (DriverWorking 4s) [slot]
            in:inspecting inspect=running error:inspection
                op=OK error=none text=- (DriverWorking 4s) [slot]
            in:inspecting inspect=poll
                CALL inspect (DriverWorking until changed) [slot]
            in:inspecting inspect=done count:2 error:inspection
                row 12: state=preparing op=OK error=none text=- count=0 hardware=found (Continuing) !InspectionStarted !InspectionComplete #change ~store:found
            in:inspecting inspect=done later-call
                row 12: state=preparing hardware=found (Continuing) !InspectionComplete #change ~store:found
            in:inspecting inspect=done-empty
                (AnswerIncomplete 1s)
            in:inspecting inspect=failed
                op=error error=inspection error text=broken count=1 (BackingOff 120s) !InspectionError #error
            in:inspecting error:inspection reboot:force inspect
                CALL inspect+restart+refresh+force (AwaitingAnswer until changed) [slot]
            in:inspecting no-inspection
                row 11: state=preparing (Continuing) !InspectionSkipped #change
            in:inspecting no-inspection inspect=running
                row 11: state=preparing (Continuing) [slot] !InspectionSkipped #change
            in:match-profile count:2
                row 13: state=preparing count=0 (Continuing) #change
            in:preparing
                CALL prepare (AwaitingAnswer until changed)
            in:preparing hints:sdb raid
                CALL prepare+unprepared+storage (AwaitingAnswer until changed)
            in:preparing hints:sdb prepare=started
                hints=/dev/sdb (DriverWorking 4s)
            in:preparing raided raid:none prepare=started
                raid=Some(1)/Some(0) (DriverWorking 4s)
            in:preparing hints:sdb prepare=done count:2
                row 14: state=available count=0 hints=/dev/sdb (Continuing) #change
            in:preparing raided prepare=failed
                op=error error=preparation error text=broken count=1 hints=- raid=- (BackingOff 120s) !PreparationError #error ~FirmwareUpdatesForgotten
            in:preparing error:preparation raided
                CALL prepare+restart+unprepared+storage (AwaitingAnswer until changed)
            in:preparing settings:changed versions:changed
                CALL prepare+unprepared+settings+versions (AwaitingAnswer until changed)
            in:preparing settings:unread
                (AwaitingFirmwareReading 60s)
            in:preparing settings:unread settings:same
                CALL prepare (AwaitingAnswer until changed)
            in:preparing settings:unjudged
                (FirmwareUnjudged 1s)
            in:preparing settings:invalid
                CALL prepare (AwaitingAnswer until changed)
        "#]],
    );
}

#[test]
fn available_hosts_follow_the_table() {
    check(
        &[
            "in:available external raided",
            "in:ready external",
            "in:available inspect",
            "in:available inspect no-slot",
            "in:available inspect:disabled",
            "in:available hints:sdb",
            "in:available raid",
            "in:available raid raided",
            "in:available raided raid:none",
            "in:available settings:changed",
            "in:available settings:unjudged",
            "in:available settings:invalid",
            "in:available versions:changed",
            "in:available fails:3 attempted:a",
            "in:available fails:3 custom:m attempted:-",
            "in:available online image:a fails:5 attempted:a",
            "in:available online image:a fails:4 attempted:a",
            "in:available online image:a fails:100 limit:0 attempted:a",
            "in:available online image:a:new fails:5 attempted:a:old",
            "in:available online custom:m fails:5 attempted:-",
            "in:available online image:a error:power-management",
            "in:available online image:a no-slot",
            "in:ready online image:a no-slot",
            "in:available image:a",
            "in:available online",
        ],
        expect![[r#"
            in:available external raided
                row 15: state=externally provisioned hints=- (Continuing) #change
            in:ready external
                row 15: state=externally provisioned hints=- (Continuing) #change
            in:available inspect
                row 16: state=inspecting (Continuing) [slot] #change
            in:available inspect no-slot
                row 16: op=delayed (AwaitingSlot until changed) [queued 0s] #delayed:inspecting
            in:available inspect:disabled
                row 23: (Settled 60s)
            in:available hints:sdb
                row 17: state=preparing (Continuing) #change
            in:available raid
                row 17: state=preparing (Continuing) #change
            in:available raid raided
                row 23: (Settled 60s)
            in:available raided raid:none
                row 17: state=preparing (Continuing) #change
            in:available settings:changed
                row 18: state=preparing (Continuing) #change
            in:available settings:unjudged
                (FirmwareUnjudged 1s)
            in:available settings:invalid
                row 23: (Settled 60s)
            in:available versions:changed
                row 19: state=preparing (Continuing) #change
            in:available fails:3 attempted:a
                row 23: fails=0 (Settled 60s)
            in:available fails:3 custom:m attempted:-
                row 23: (Settled 60s)
            in:available online image:a fails:5 attempted:a
                row 21: op=error error=provisioning error text=provisioning failed 5 times, which is as often as it may count=1 (RetriesExhausted 120s) !ProvisioningError #error
            in:available online image:a fails:4 attempted:a
                row 22: state=provisioning (Continuing) [slot] !ProvisioningStarted #change
            in:available online image:a fails:100 limit:0 attempted:a
                row 22: state=provisioning (Continuing) [slot] !ProvisioningStarted #change
            in:available online image:a:new fails:5 attempted:a:old
                row 22: state=provisioning fails=0 (Continuing) [slot] !ProvisioningStarted #change
            in:available online custom:m fails:5 attempted:-
                row 21: op=error error=provisioning error text=provisioning failed 5 times, which is as often as it may count=1 (RetriesExhausted 120s) !ProvisioningError #error
            in:available online image:a error:power-management
                row 22: state=provisioning op=OK error=none text=- (Continuing) [slot] !ProvisioningStarted #change
            in:available online image:a no-slot
                row 22: op=delayed (AwaitingSlot until changed) [queued 0s] #delayed:provisioning
            in:ready online image:a no-slot
                row 22: op=delayed (AwaitingSlot until changed) [queued 0s] #delayed:provisioning
            in:available image:a
                row 23: (Settled 60s)
            in:available online
                row 23: CALL power_on (AwaitingPowerController until changed)
        "#]],
    );
}

#[test]
fn provisioning_follows_the_table() {
    check(
        &[
            "in:provisioning online image:a",
            "in:provisioning online image:a provision=running reboot",
            "in:provisioning online image:a provision=failed",
            "in:provisioning online image:a error:provisioning fails:2",
            "in:provisioning online image:a error:provisioning no-slot",
            "in:provisioning online image:a error:provisioning op:delayed waiting-for-slot",
            "in:provisioning online provision=running",
            "in:provisioning online image:a provision=done count:1 fails:2",
            "in:provisioning online image:a custom:m provision=done",
            "in:provisioning online image:a deploy-data:bad",
            "in:provisioning online image:a pull-secret:bad",
            "in:provisioning online image:a reboot:force",
            "in:provisioned online on",
            "in:provisioned online on has:a image:b",
            "in:provisioned online on has:a had:m custom:n",
            "in:provisioned online on has:a image:a error:power-management count:2",
            "in:provisioned online on has:a image:a needs-adoption",
            "in:provisioned online on has:a image:a adopt=failed needs-adoption",
            "in:provisioned online on has:a image:a error:provisioned-registration",
            "in:externally-provisioned online on image:a",
            "in:externally-provisioned online on external",
        ],
        expect![[r#"
            in:provisioning online image:a
                CALL provision (AwaitingAnswer until changed) [slot]
            in:provisioning online image:a provision=running reboot
                reboots=0 (DriverWorking 4s) [slot]
            in:provisioning online image:a provision=failed
                op=error error=provisioning error text=broken count=1 (BackingOff 120s) !ProvisioningError #error
            in:provisioning online image:a error:provisioning fails:2
                row 24: state=deprovisioning fails=3 (Continuing) [slot] !DeprovisioningStarted #change
            in:provisioning online image:a error:provisioning no-slot
                row 24: op=delayed (AwaitingSlot until changed) [queued 0s] #delayed:deprovisioning
            in:provisioning online image:a error:provisioning op:delayed waiting-for-slot
                op=error (Continuing) [slot]
            in:provisioning online provision=running
                row 25: state=deprovisioning (Continuing) [slot] !DeprovisioningStarted #change
            in:provisioning online image:a provision=done count:1 fails:2
                row 26: state=provisioned count=0 fails=0 image=a/ (Continuing) !ProvisioningComplete #change
            in:provisioning online image:a custom:m provision=done
                row 26: state=provisioned image=a/m (Continuing) !ProvisioningComplete #change
            in:provisioning online image:a deploy-data:bad
                (DeployDataUnreadable 1s) [slot] #DeployDataError
            in:provisioning online image:a pull-secret:bad
                op=error error=provisioning error text=odd secret count=1 (BackingOff 120s) !ImageAuthFormatUnsupported !ProvisioningError #error
            in:provisioning online image:a reboot:force
                CALL provision+force (AwaitingAnswer until changed) [slot]
            in:provisioned online on
                row 27: state=deprovisioning (Continuing) [slot] !DeprovisioningStarted #change
            in:provisioned online on has:a image:b
                row 27: state=deprovisioning (Continuing) [slot] !DeprovisioningStarted #change
            in:provisioned online on has:a had:m custom:n
                row 27: state=deprovisioning (Continuing) [slot] !DeprovisioningStarted #change
            in:provisioned online on has:a image:a error:power-management count:2
                row 28: op=OK error=none text=- count=0 (Settled 60s)
            in:provisioned online on has:a image:a needs-adoption
                row 28: CALL adopt (AwaitingAnswer until changed)
            in:provisioned online on has:a image:a adopt=failed needs-adoption
                row 28: op=error error=provisioned registration error text=broken count=1 (BackingOff 120s) !ProvisionedRegistrationError #error
            in:provisioned online on has:a image:a error:provisioned-registration
                row 28: CALL adopt+restart (AwaitingAnswer until changed)
            in:externally-provisioned online on image:a
                row 29: state=provisioned image=a/ (Continuing) #change
            in:externally-provisioned online on external
                row 30: (Settled 60s)
        "#]],
    );
}

#[test]
fn deprovisioning_and_deletion_follow_the_table() {
    check(
        &[
            "in:deprovisioning has:a",
            "in:deprovisioning has:a needs-adoption",
            "in:deprovisioning has:a adopt=failed needs-adoption",
            "in:deprovisioning has:a deprovision=running error:provisioning",
            "in:deprovisioning has:a deprovision=done raided count:2 reboot",
            "in:deprovisioning has:a deprovision=failed count:7",
            "in:deprovisioning has:a deprovision=not-registered",
            "del in:deprovisioning has:a needs-adoption error:provisioned-registration count:4",
            "del in:deprovisioning has:a deprovision=done count:2",
            "del in:deprovisioning has:a deprovision=failed count:2",
            "del in:deprovisioning has:a deprovision=failed count:3",
            "del in:deprovisioning has:a deprovision=not-registered",
            "del in:deprovisioning has:a deprovision=not-registered secret:missing",
            "del in:deprovisioning has:a deprovision=not-registered secret:kept",
            "del in:powering-off-before-delete on",
            "del in:powering-off-before-delete on never-off count:2",
            "del in:powering-off-before-delete on power-off=running error:power-management",
            "del in:powering-off-before-delete on power-off=done count:2",
            "del in:powering-off-before-delete on power-off=failed count:2",
            "del in:powering-off-before-delete on power-off=failed count:3",
            "del in:powering-off-before-delete on power-off=not-registered",
            "del in:powering-off-before-delete on power-off=not-registered secret:missing",
            "del in:deleting",
            "del in:deleting secret:missing detached",
            "del in:deleting delete=running",
            "del in:deleting delete=failed",
            "del in:deleting delete=done",
            "del in:deleting delete=not-registered",
        ],
        expect![[r#"
            in:deprovisioning has:a
                CALL deprovision (AwaitingAnswer until changed) [slot]
            in:deprovisioning has:a needs-adoption
                CALL adopt (AwaitingAnswer until changed) [slot]
            in:deprovisioning has:a adopt=failed needs-adoption
                op=error error=provisioned registration error text=broken count=1 (BackingOff 120s) !ProvisionedRegistrationError #error
            in:deprovisioning has:a deprovision=running error:provisioning
                op=OK error=none text=- (DriverWorking 4s) [slot]
            in:deprovisioning has:a deprovision=done raided count:2 reboot
                row 31: state=available count=0 image=/ hints=- reboots=0 (Continuing) !DeprovisioningComplete #change
            in:deprovisioning has:a deprovision=failed count:7
                op=error error=provisioning error text=broken count=8 (BackingOff 15360s) !ProvisioningError #error
            in:deprovisioning has:a deprovision=not-registered
                (Continuing) [slot]
            del in:deprovisioning has:a needs-adoption error:provisioned-registration count:4
                CALL deprovision (AwaitingAnswer until changed) [slot]
            del in:deprovisioning has:a deprovision=done count:2
                row 32: state=powering off before delete count=0 image=/ hints=- (Continuing) !DeprovisioningComplete #change
            del in:deprovisioning has:a deprovision=failed count:2
                op=error error=provisioning error text=broken count=3 (BackingOff 480s) !ProvisioningError #error
            del in:deprovisioning has:a deprovision=failed count:3
                row 34: state=powering off before delete op=error error=provisioning error text=broken count=4 (Continuing) !ProvisioningError !DeletionSkipped:deprovision:id #error #DeletedWithoutDeprovisioning #change
            del in:deprovisioning has:a deprovision=not-registered
                (Continuing) [slot]
            del in:deprovisioning has:a deprovision=not-registered secret:missing
                row 35: state=deleting (Continuing) !DeletionSkipped:power_off:id #DeletedWithoutPowerOff #change
            del in:deprovisioning has:a deprovision=not-registered secret:kept
                (Continuing) [slot]
            del in:powering-off-before-delete on
                CALL power_off+hard (AwaitingPowerController until changed)
            del in:powering-off-before-delete on never-off count:2
                row 37: state=deleting count=0 (Continuing) #change
            del in:powering-off-before-delete on power-off=running error:power-management
                op=OK error=none text=- (DriverWorking 4s)
            del in:powering-off-before-delete on power-off=done count:2
                row 37: state=deleting count=0 on=false (Continuing) #change
            del in:powering-off-before-delete on power-off=failed count:2
                op=error error=power management error text=broken count=3 (BackingOff 480s) !PowerManagementError #error
            del in:powering-off-before-delete on power-off=failed count:3
                row 38: state=deleting op=error error=power management error text=broken count=4 (Continuing) !PowerManagementError !DeletionSkipped:power_off:id #error #DeletedWithoutPowerOff #change
            del in:powering-off-before-delete on power-off=not-registered
                (Continuing)
            del in:powering-off-before-delete on power-off=not-registered secret:missing
                row 39: state=deleting (Continuing) !DeletionSkipped:power_off:id #DeletedWithoutPowerOff #change
            del in:deleting
                row 40: CALL delete (AwaitingAnswer until changed)
            del in:deleting secret:missing detached
                row 40: CALL delete (AwaitingAnswer until changed)
            del in:deleting delete=running
                row 40: (DriverWorking 4s)
            del in:deleting delete=failed
                row 40: (BackingOff 1s)
            del in:deleting delete=done
                row 40: finalizer=false (Gone until changed) ~ReleaseAll
            del in:deleting delete=not-registered
                row 40: finalizer=false (Gone until changed) ~ReleaseAll
        "#]],
    );
}

#[test]
fn systems_are_wanted_and_cancelled_by_address_and_method() {
    check(
        &[
            "in:available image:a",
            "in:available online image:a has:a",
            "in:available online custom:m",
            "in:available online custom:m had:m",
            "in:available online custom:n had:m",
            "in:provisioned online on has:a image:a:new",
            "in:provisioned online on has:a",
            "in:provisioned online on had:m custom:m",
            "in:provisioned online on had:m",
            "in:provisioned online on had:m image:a",
            "in:provisioned online on had:m has:a custom:m image:b",
            "in:provisioned online on had:m custom:m image:b",
            "in:provisioned on has:a image:a",
        ],
        expect![[r#"
            in:available image:a
                row 23: (Settled 60s)
            in:available online image:a has:a
                row 23: CALL power_on (AwaitingPowerController until changed)
            in:available online custom:m
                row 22: state=provisioning (Continuing) [slot] !ProvisioningStarted #change
            in:available online custom:m had:m
                row 23: CALL power_on (AwaitingPowerController until changed)
            in:available online custom:n had:m
                row 22: state=provisioning (Continuing) [slot] !ProvisioningStarted #change
            in:provisioned online on has:a image:a:new
                row 28: (Settled 60s)
            in:provisioned online on has:a
                row 27: state=deprovisioning (Continuing) [slot] !DeprovisioningStarted #change
            in:provisioned online on had:m custom:m
                row 28: (Settled 60s)
            in:provisioned online on had:m
                row 27: state=deprovisioning (Continuing) [slot] !DeprovisioningStarted #change
            in:provisioned online on had:m image:a
                row 27: state=deprovisioning (Continuing) [slot] !DeprovisioningStarted #change
            in:provisioned online on had:m has:a custom:m image:b
                row 27: state=deprovisioning (Continuing) [slot] !DeprovisioningStarted #change
            in:provisioned online on had:m custom:m image:b
                row 28: (Settled 60s)
            in:provisioned on has:a image:a
                row 28: CALL power_off (AwaitingPowerController until changed)
        "#]],
    );
}

#[test]
fn a_driver_that_is_not_ready_is_looked_at_again() {
    check(
        &[
            "in:registering not-ready unregistered",
            "in:provisioned has:a image:a not-ready del",
            "in:deleting del not-ready",
        ],
        expect![[r#"
            in:registering not-ready unregistered
                (DriverNotReady 30s) #DriverNotReady
            in:provisioned has:a image:a not-ready del
                (DriverNotReady 30s) #DriverNotReady
            in:deleting del not-ready
                (DriverNotReady 30s) #DriverNotReady
        "#]],
    );
}
