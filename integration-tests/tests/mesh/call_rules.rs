//! Every gRPC method, and the callers that may call it.

use std::{collections::BTreeSet, fmt::Write as _};

use domain::access::calls::CALL_TABLE;
use expect_test::expect;
use prost_types::{FileDescriptorSet, ServiceDescriptorProto};
use proto::Message as _;

/// Returns all methods as paths of requests.
fn methods() -> BTreeSet<String> {
    let files = FileDescriptorSet::decode(proto::DESCRIPTORS).unwrap().file;
    let of_service = |package: &str, service: &ServiceDescriptorProto| {
        let path = |method: &str| format!("/{package}.{}/{method}", service.name());
        service.method.iter().map(|method| path(method.name())).collect::<Vec<_>>()
    };
    files
        .iter()
        .flat_map(|file| file.service.iter().flat_map(|one| of_service(file.package(), one)))
        .collect()
}

#[test]
fn every_method_has_one_rule_with_known_callers() {
    let names: BTreeSet<_> = CALL_TABLE.names.iter().map(|name| name.name).collect();
    let mut ruled = Vec::new();
    for rule in CALL_TABLE.rules {
        let callers: BTreeSet<_> = rule.callers.iter().copied().collect();
        assert!(!callers.is_empty() && callers.is_subset(&names), "{rule:?}");
        ruled.extend(rule.methods.iter().map(|method| format!("/{}/{method}", rule.service)));
    }
    ruled.sort_unstable();
    assert_eq!(ruled, methods().into_iter().collect::<Vec<_>>());
}

#[test]
fn methods_take_calls_of_these_callers() {
    let parts: Vec<_> = CALL_TABLE.names.iter().map(|name| name.name).collect();
    let mut table = String::new();
    for path in methods() {
        let rule = CALL_TABLE.rule(&path);
        let callers = rule.map_or(&[][..], |rule| rule.callers);
        let all = callers.len() == parts.len();
        let shown = if all { "all".to_owned() } else { callers.join(" ") };
        writeln!(table, "{}: {shown}", path.trim_start_matches("/reveille.")).unwrap();
    }
    expect![[r#"
        boot.v1.BootScriptService/GetBootScript: gateway
        boot.v1.BootScriptService/ListScriptRequests: all
        component.v1.ComponentService/DeleteComponent: gateway administrator
        component.v1.ComponentService/GetComponent: all
        component.v1.ComponentService/ListComponents: all
        component.v1.ComponentService/PatchComponents: gateway session-manager administrator
        component.v1.ComponentService/PutComponents: gateway administrator
        component.v1.ComponentService/WatchComponents: all
        component.v1.ReportService/ApplyStaged: session-manager
        component.v1.ReportService/AssignSession: session-manager
        component.v1.ReportService/PauseComponents: session-manager
        component.v1.ReportService/ReportActions: power-controller
        component.v1.ReportService/ReportPreparations: config-coordinator
        component.v1.ReportService/ReportStatuses: status-evaluator
        configuration.v1.ConfigurationService/ListConfigurationStates: all
        configuration.v1.ConfigurationService/WatchConfigurationStates: all
        device.v1.DeviceAgentService/PollRenderedDevice: gateway
        device.v1.DeviceAgentService/ReportDeviceStatus: gateway
        device.v1.DeviceAgentService/ReportHeartbeats: gateway
        device.v1.DeviceAgentService/WatchRenderedDevice: gateway
        device.v1.DeviceReportService/ReportDeviceEnrolment: fleet-manager
        device.v1.DeviceReportService/ReportDeviceFleetDecisions: fleet-manager
        device.v1.DeviceReportService/ReportDeviceStatuses: status-evaluator
        device.v1.DeviceService/CountDevices: all
        device.v1.DeviceService/CreateDevice: gateway administrator
        device.v1.DeviceService/DecommissionDevice: gateway administrator
        device.v1.DeviceService/DeleteDevice: gateway administrator
        device.v1.DeviceService/GetDevice: all
        device.v1.DeviceService/GetDeviceLastSeen: all
        device.v1.DeviceService/ListDeviceLabels: all
        device.v1.DeviceService/ListDevices: all
        device.v1.DeviceService/MarkDevicesRestored: gateway administrator
        device.v1.DeviceService/ReplaceDevice: gateway administrator
        device.v1.DeviceService/ReplaceDeviceStatus: gateway administrator
        device.v1.DeviceService/ResumeDevices: gateway administrator
        device.v1.DeviceService/WatchDeviceSights: all
        device.v1.DeviceService/WatchDevices: all
        evaluation.v1.EvaluationService/Evaluate: all
        evaluation.v1.EvaluationService/Explain: all
        evaluation.v1.EvaluationService/WatchDecisions: all
        event.v1.EventService/ListEvents: all
        event.v1.EventService/WatchEvents: all
        fleet.v1.CertificateService/WatchCertificateAuthorities: all
        fleet.v1.CertificateService/WatchCertificateRevocations: all
        fleet.v1.EnrolmentService/ApproveEnrolmentRequest: gateway administrator
        fleet.v1.EnrolmentService/DeleteEnrolmentRequest: gateway administrator
        fleet.v1.EnrolmentService/GetEnrolmentRequest: all
        fleet.v1.EnrolmentService/ListEnrolmentRequests: all
        fleet.v1.EnrolmentService/RenewCertificate: gateway
        fleet.v1.EnrolmentService/SubmitEnrolmentRequest: gateway
        fleet.v1.FleetService/CreateFleet: gateway administrator
        fleet.v1.FleetService/DeleteFleet: gateway administrator
        fleet.v1.FleetService/GetFleet: all
        fleet.v1.FleetService/GetTemplateVersion: all
        fleet.v1.FleetService/ListFleets: all
        fleet.v1.FleetService/ListTemplateVersions: all
        fleet.v1.FleetService/ReplaceFleet: gateway administrator
        fleet.v1.FleetService/WatchFleets: all
        host.v1.HostDocumentService/CreateHostDocument: gateway administrator
        host.v1.HostDocumentService/DeleteHostDocument: gateway administrator
        host.v1.HostDocumentService/GetHostDocument: all
        host.v1.HostDocumentService/ListHostDocuments: all
        host.v1.HostDocumentService/ReplaceHostDocument: gateway administrator
        host.v1.HostDocumentService/ReplaceHostDocumentStatus: gateway host-provisioner administrator
        host.v1.HostDocumentService/WatchHostDocuments: all
        host.v1.HostReportService/ReleaseNodes: power-controller
        host.v1.HostReportService/ReportHostDecisions: status-evaluator
        host.v1.HostSecretService/CreateHostSecret: gateway administrator
        host.v1.HostSecretService/DeleteHostSecret: gateway administrator
        host.v1.HostSecretService/GetHostSecret: all
        host.v1.HostSecretService/ListHostSecrets: all
        host.v1.HostSecretService/ReadSecretValues: power-controller host-provisioner
        host.v1.HostSecretService/ReplaceHostSecret: gateway administrator
        host.v1.HostSecretService/WatchHostSecrets: all
        host.v1.HostService/AbortHost: gateway administrator
        host.v1.HostService/AttachHost: gateway administrator
        host.v1.HostService/ChangeHostBmc: gateway administrator
        host.v1.HostService/CreateHost: gateway administrator
        host.v1.HostService/DeleteHost: gateway administrator
        host.v1.HostService/DetachHost: gateway administrator
        host.v1.HostService/GetHost: all
        host.v1.HostService/InspectHost: gateway administrator
        host.v1.HostService/ListHosts: all
        host.v1.HostService/RebootHost: gateway administrator
        host.v1.HostService/ReplaceHost: gateway administrator
        host.v1.HostService/ReplaceHostStatus: gateway administrator
        host.v1.HostService/RetryHost: gateway administrator
        host.v1.HostService/SetHostPower: gateway administrator
        host.v1.HostService/WatchHosts: all
        host.v1.HostSightService/ListHostSights: all
        host.v1.HostSightService/WatchHostSights: all
        insight.v1.ExplainService/ExplainComponent: all
        insight.v1.ExplainService/ExplainDevice: all
        insight.v1.ExplainService/ExplainHost: all
        insight.v1.ExplainService/ExplainSession: all
        insight.v1.TimelineService/ListTimeline: all
        inventory.v1.InventoryService/ListInventory: all
        inventory.v1.InventoryService/NotifyChange: gateway administrator
        option.v1.OptionsService/GetOptions: all
        option.v1.OptionsService/UpdateOptions: gateway administrator
        option.v1.OptionsService/WatchOptions: all
        peer.v1.PeerService/ListPeers: all
        power.v1.HostPowerService/ListHostPowers: all
        power.v1.HostPowerService/WatchHostPowers: all
        power.v1.PowerService/AbandonTransition: gateway administrator
        power.v1.PowerService/ListPowerStates: all
        power.v1.PowerService/ListTransitions: all
        power.v1.PowerService/ReadHolders: all
        power.v1.PowerService/ReadPower: all
        power.v1.PowerService/WatchPowerStates: all
        session.v1.PlanService/CreatePlan: all
        session.v1.SessionService/ApplyStaged: gateway administrator
        session.v1.SessionService/CancelSession: gateway administrator
        session.v1.SessionService/CreateSession: gateway administrator
        session.v1.SessionService/DeleteSession: gateway administrator
        session.v1.SessionService/DeleteSessions: gateway administrator
        session.v1.SessionService/GetSession: all
        session.v1.SessionService/GetSessionStatus: all
        session.v1.SessionService/ListLeftOutMembers: all
        session.v1.SessionService/ListSessions: all
        session.v1.SessionService/PauseSession: gateway administrator
        session.v1.SessionService/ResumeSession: gateway administrator
        session.v1.SessionService/RetrySession: gateway administrator
        session.v1.SessionService/SaveSessionStatus: gateway administrator
        session.v1.SessionService/UpdateSession: gateway administrator
        session.v1.SessionService/WatchSessions: all
        simulation.v1.FleetService/CreateTransition: power-controller
        simulation.v1.FleetService/GetConfigurations: all
        simulation.v1.FleetService/GetImage: all
        simulation.v1.FleetService/GetPower: all
        simulation.v1.FleetService/GetTransition: all
        simulation.v1.FleetService/ListFaults: all
        simulation.v1.FleetService/ListHardware: all
        simulation.v1.FleetService/ListTransitions: all
        simulation.v1.FleetService/PutBootParameters: config-coordinator
        simulation.v1.FleetService/SetConfigurations: config-coordinator
        simulation.v1.FleetService/WatchConfigurations: all
        simulation.v1.FleetService/WatchPower: all
        simulation.v1.RackService/ListRackHosts: all
        simulation.v1.RackService/ListRackOperations: all
        simulation.v1.RackService/OperateRackHost: power-controller host-provisioner
        template.v1.SessionTemplateService/DeleteSessionTemplate: gateway administrator
        template.v1.SessionTemplateService/GetSessionTemplate: all
        template.v1.SessionTemplateService/ListSessionTemplates: all
        template.v1.SessionTemplateService/PutSessionTemplate: gateway administrator
        template.v1.SessionTemplateService/UpdateSessionTemplate: gateway administrator
        template.v1.SessionTemplateService/ValidateSessionTemplate: all
        tenant.v1.TenantService/GetTenant: all
    "#]]
    .assert_eq(&table);
}
