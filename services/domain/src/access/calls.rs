//! Table of every gRPC method, and the parts that may call it.
//!
//! A method that reports a decision or an outcome takes calls only of the part that owns the reported fields. Writes of people
//! arrive through the gateway, or from an administrator. Every part may read, except secrets and whatever is meant for a node.

use crate::core::call_rules::{CallTable, CallerName, DefaultNaming, MethodRule};

const COMPONENT_REGISTRY: &str = "component-registry";
const SESSION_MANAGER: &str = "session-manager";
const STATUS_EVALUATOR: &str = "status-evaluator";
const POWER_CONTROLLER: &str = "power-controller";
const CONFIG_COORDINATOR: &str = "config-coordinator";
const HOST_PROVISIONER: &str = "host-provisioner";
const FLEET_MANAGER: &str = "fleet-manager";
const INSIGHT: &str = "insight";
const GATEWAY: &str = "gateway";
/// Person with a certificate of the mesh, who reads over gRPC.
const OPERATOR: &str = "operator";
/// Person whom the settings name, who may also write whatever people write through the gateway.
const ADMINISTRATOR: &str = "administrator";

/// Callers of methods that only read. The simulator is none: its nodes call the gateway, and it calls no other part.
const READERS: &[&str] = &[
    COMPONENT_REGISTRY,
    SESSION_MANAGER,
    STATUS_EVALUATOR,
    POWER_CONTROLLER,
    CONFIG_COORDINATOR,
    HOST_PROVISIONER,
    FLEET_MANAGER,
    INSIGHT,
    GATEWAY,
    OPERATOR,
    ADMINISTRATOR,
];

/// Callers of methods by which people write.
const PEOPLE: &[&str] = &[GATEWAY, ADMINISTRATOR];

/// Rules about all methods of the mesh.
pub const CALL_TABLE: CallTable = CallTable {
    names: &[
        by_place(COMPONENT_REGISTRY),
        by_place(SESSION_MANAGER),
        by_place(STATUS_EVALUATOR),
        by_place(POWER_CONTROLLER),
        by_place(CONFIG_COORDINATOR),
        by_place(HOST_PROVISIONER),
        by_place(FLEET_MANAGER),
        by_place(INSIGHT),
        by_place(GATEWAY),
        by_place(OPERATOR),
        CallerName { name: ADMINISTRATOR, naming: DefaultNaming::Nobody },
    ],
    rules: &[
        // Component registry: components and options.
        rule(
            "reveille.component.v1.ComponentService",
            &["ListComponents", "GetComponent", "WatchComponents"],
            READERS,
        ),
        rule("reveille.component.v1.ComponentService", &["PutComponents", "DeleteComponent"], PEOPLE),
        // The session manager releases components of a cancelled session.
        rule(
            "reveille.component.v1.ComponentService",
            &["PatchComponents"],
            &[GATEWAY, SESSION_MANAGER, ADMINISTRATOR],
        ),
        rule(
            "reveille.component.v1.ReportService",
            &["AssignSession", "ApplyStaged", "PauseComponents"],
            &[SESSION_MANAGER],
        ),
        rule("reveille.component.v1.ReportService", &["ReportStatuses"], &[STATUS_EVALUATOR]),
        rule("reveille.component.v1.ReportService", &["ReportActions"], &[POWER_CONTROLLER]),
        rule("reveille.component.v1.ReportService", &["ReportPreparations"], &[CONFIG_COORDINATOR]),
        rule("reveille.inventory.v1.InventoryService", &["ListInventory"], READERS),
        rule("reveille.inventory.v1.InventoryService", &["NotifyChange"], PEOPLE),
        rule("reveille.option.v1.OptionsService", &["GetOptions", "WatchOptions"], READERS),
        rule("reveille.option.v1.OptionsService", &["UpdateOptions"], PEOPLE),
        // Component registry: bare-metal hosts.
        rule("reveille.host.v1.HostService", &["ListHosts", "GetHost", "WatchHosts"], READERS),
        rule(
            "reveille.host.v1.HostService",
            &[
                "CreateHost",
                "ReplaceHost",
                "ReplaceHostStatus",
                "DeleteHost",
                "SetHostPower",
                "RebootHost",
                "InspectHost",
                "DetachHost",
                "AttachHost",
                "RetryHost",
                "ChangeHostBmc",
                "AbortHost",
            ],
            PEOPLE,
        ),
        rule("reveille.host.v1.HostReportService", &["ReportHostDecisions"], &[STATUS_EVALUATOR]),
        rule("reveille.host.v1.HostReportService", &["ReleaseNodes"], &[POWER_CONTROLLER]),
        rule(
            "reveille.host.v1.HostDocumentService",
            &["ListHostDocuments", "GetHostDocument", "WatchHostDocuments"],
            READERS,
        ),
        rule(
            "reveille.host.v1.HostDocumentService",
            &["CreateHostDocument", "ReplaceHostDocument", "DeleteHostDocument"],
            PEOPLE,
        ),
        // The host provisioner writes the status of records about firmware.
        rule(
            "reveille.host.v1.HostDocumentService",
            &["ReplaceHostDocumentStatus"],
            &[GATEWAY, HOST_PROVISIONER, ADMINISTRATOR],
        ),
        rule(
            "reveille.host.v1.HostSecretService",
            &["ListHostSecrets", "GetHostSecret", "WatchHostSecrets"],
            READERS,
        ),
        rule(
            "reveille.host.v1.HostSecretService",
            &["CreateHostSecret", "ReplaceHostSecret", "DeleteHostSecret"],
            PEOPLE,
        ),
        // Logins of BMCs, for the parts that log in.
        rule(
            "reveille.host.v1.HostSecretService",
            &["ReadSecretValues"],
            &[POWER_CONTROLLER, HOST_PROVISIONER],
        ),
        // Component registry: edge devices.
        rule(
            "reveille.device.v1.DeviceService",
            &[
                "ListDevices",
                "GetDevice",
                "GetDeviceLastSeen",
                "WatchDevices",
                "WatchDeviceSights",
                "CountDevices",
                "ListDeviceLabels",
            ],
            READERS,
        ),
        rule(
            "reveille.device.v1.DeviceService",
            &[
                "CreateDevice",
                "ReplaceDevice",
                "ReplaceDeviceStatus",
                "DeleteDevice",
                "DecommissionDevice",
                "ResumeDevices",
                "MarkDevicesRestored",
            ],
            PEOPLE,
        ),
        // Messages from and to agents, which the gateway knows by their certificates.
        rule(
            "reveille.device.v1.DeviceAgentService",
            &["ReportDeviceStatus", "ReportHeartbeats", "PollRenderedDevice", "WatchRenderedDevice"],
            &[GATEWAY],
        ),
        rule("reveille.device.v1.DeviceReportService", &["ReportDeviceStatuses"], &[STATUS_EVALUATOR]),
        rule(
            "reveille.device.v1.DeviceReportService",
            &["ReportDeviceFleetDecisions", "ReportDeviceEnrolment"],
            &[FLEET_MANAGER],
        ),
        // Session manager.
        rule(
            "reveille.session.v1.SessionService",
            &["ListSessions", "GetSession", "WatchSessions", "GetSessionStatus", "ListLeftOutMembers"],
            READERS,
        ),
        rule(
            "reveille.session.v1.SessionService",
            &[
                "CreateSession",
                "UpdateSession",
                "DeleteSession",
                "DeleteSessions",
                "SaveSessionStatus",
                "ApplyStaged",
                "CancelSession",
                "PauseSession",
                "ResumeSession",
                "RetrySession",
            ],
            PEOPLE,
        ),
        // A plan changes nothing.
        rule("reveille.session.v1.PlanService", &["CreatePlan"], READERS),
        rule("reveille.tenant.v1.TenantService", &["GetTenant"], READERS),
        rule(
            "reveille.template.v1.SessionTemplateService",
            &["ListSessionTemplates", "GetSessionTemplate", "ValidateSessionTemplate"],
            READERS,
        ),
        rule(
            "reveille.template.v1.SessionTemplateService",
            &["PutSessionTemplate", "UpdateSessionTemplate", "DeleteSessionTemplate"],
            PEOPLE,
        ),
        // Status evaluator. Evaluating given evidence changes nothing.
        rule("reveille.evaluation.v1.EvaluationService", &["Explain", "Evaluate", "WatchDecisions"], READERS),
        // Power controller.
        rule(
            "reveille.power.v1.PowerService",
            &["ListPowerStates", "WatchPowerStates", "ReadPower", "ListTransitions", "ReadHolders"],
            READERS,
        ),
        rule("reveille.power.v1.PowerService", &["AbandonTransition"], PEOPLE),
        rule("reveille.power.v1.HostPowerService", &["ListHostPowers", "WatchHostPowers"], READERS),
        // Config coordinator. A boot script has the token of its node.
        rule(
            "reveille.configuration.v1.ConfigurationService",
            &["ListConfigurationStates", "WatchConfigurationStates"],
            READERS,
        ),
        rule("reveille.boot.v1.BootScriptService", &["GetBootScript"], &[GATEWAY]),
        rule("reveille.boot.v1.BootScriptService", &["ListScriptRequests"], READERS),
        // Host provisioner.
        rule("reveille.host.v1.HostSightService", &["ListHostSights", "WatchHostSights"], READERS),
        // Fleet manager.
        rule(
            "reveille.fleet.v1.FleetService",
            &["ListFleets", "GetFleet", "WatchFleets", "ListTemplateVersions", "GetTemplateVersion"],
            READERS,
        ),
        rule("reveille.fleet.v1.FleetService", &["CreateFleet", "ReplaceFleet", "DeleteFleet"], PEOPLE),
        rule(
            "reveille.fleet.v1.EnrolmentService",
            &["ListEnrolmentRequests", "GetEnrolmentRequest"],
            READERS,
        ),
        rule(
            "reveille.fleet.v1.EnrolmentService",
            &["ApproveEnrolmentRequest", "DeleteEnrolmentRequest"],
            PEOPLE,
        ),
        // Calls of agents, which the gateway knows by their certificates.
        rule(
            "reveille.fleet.v1.EnrolmentService",
            &["SubmitEnrolmentRequest", "RenewCertificate"],
            &[GATEWAY],
        ),
        rule(
            "reveille.fleet.v1.CertificateService",
            &["WatchCertificateAuthorities", "WatchCertificateRevocations"],
            READERS,
        ),
        // Insight.
        rule(
            "reveille.insight.v1.ExplainService",
            &["ExplainComponent", "ExplainSession", "ExplainHost", "ExplainDevice"],
            READERS,
        ),
        rule("reveille.insight.v1.TimelineService", &["ListTimeline"], READERS),
        // Every part has peers, and several have events.
        rule("reveille.peer.v1.PeerService", &["ListPeers"], READERS),
        rule("reveille.event.v1.EventService", &["ListEvents", "WatchEvents"], READERS),
        // Simulator: the hardware that the drivers of a part would reach elsewhere.
        rule(
            "reveille.simulation.v1.FleetService",
            &[
                "ListHardware",
                "GetPower",
                "WatchPower",
                "ListTransitions",
                "GetTransition",
                "GetConfigurations",
                "WatchConfigurations",
                "GetImage",
                "ListFaults",
            ],
            READERS,
        ),
        rule("reveille.simulation.v1.FleetService", &["CreateTransition"], &[POWER_CONTROLLER]),
        rule(
            "reveille.simulation.v1.FleetService",
            &["PutBootParameters", "SetConfigurations"],
            &[CONFIG_COORDINATOR],
        ),
        rule("reveille.simulation.v1.RackService", &["ListRackHosts", "ListRackOperations"], READERS),
        rule(
            "reveille.simulation.v1.RackService",
            &["OperateRackHost"],
            &[POWER_CONTROLLER, HOST_PROVISIONER],
        ),
    ],
};

const fn rule(
    service: &'static str,
    methods: &'static [&'static str],
    callers: &'static [&'static str],
) -> MethodRule {
    MethodRule { service, methods, callers }
}

const fn by_place(name: &'static str) -> CallerName {
    CallerName { name, naming: DefaultNaming::Sibling }
}
