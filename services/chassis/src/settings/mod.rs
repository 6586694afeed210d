//! Settings: defaults, then a TOML file, then the environment, then a few flags. Unknown keys are refused.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

mod audit;
mod database;
mod device_records;
mod duration;
mod host_operations;
mod host_records;
mod identity;
mod leases;
mod limits;
mod profile;
mod tls;
mod upstreams;

pub use audit::{AuditPlace, AuditSettings};
pub use database::DatabaseSettings;
pub(crate) use database::without_password;
pub use device_records::{CertificateSettings, DeviceSettings};
pub use duration::seconds;
pub use host_operations::{HostDriverName, HostOperationSettings, IronicBackendSettings, IronicSettings};
pub use host_records::{HostSettings, SecretKeys};
pub use identity::{IdentitySettings, IssuerSettings};
pub use leases::LeaseSettings;
pub use limits::LimitSettings;
pub use profile::DriverProfile;
pub use tls::TlsSettings;
pub use upstreams::{
    BootParameters, BootParametersDriver, BootScripts, CatalogueDriver, ConfigurationDriver,
    ConfigurationSettings, Images, ImagesDriver, InventoryDriver, InventorySettings, NotificationSettings,
    Peer, Power, PowerDriver, TenantSettings, TenantsDriver,
};

/// Prefix of environment variables: `REVEILLE__GATEWAY__LISTEN` sets `gateway.listen`.
const ENVIRONMENT_PREFIX: &str = "REVEILLE";

/// Everything that can be set. Each part reads its own section and the addresses of the parts it calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Directory of SQLite files.
    pub data_dir: PathBuf,
    /// Seconds that calls under way get when the process is asked to stop.
    pub shutdown_grace_seconds: u32,
    /// Filter and format of the log.
    pub log: LogSettings,
    /// Collector of traces.
    pub traces: TraceSettings,
    /// Destination of the audit log.
    pub audit: AuditSettings,
    /// Strictness of following BOS where a difference harms no client.
    pub compat: CompatSettings,
    /// Limits of the concurrent work of each part over gRPC.
    pub limits: LimitSettings,
    /// TLS between the parts.
    pub tls: TlsSettings,
    /// The component registry.
    pub component_registry: OwnerSettings,
    /// The session manager.
    pub session_manager: OwnerSettings,
    /// The status evaluator. It stores nothing: its database only serves to share the work among several replicas, and
    /// without one each of them does all of it.
    pub status_evaluator: OwnerSettings,
    /// The power controller.
    pub power_controller: OwnerSettings,
    /// The config coordinator.
    pub config_coordinator: OwnerSettings,
    /// The host provisioner.
    pub host_provisioner: OwnerSettings,
    /// The fleet manager.
    pub fleet_manager: OwnerSettings,
    /// The part that explains, which owns nothing.
    pub insight: PartSettings,
    /// The HTTP gateway.
    pub gateway: GatewaySettings,
    /// TOML file that lists nodes and their BMCs, for the drivers that need no other service; empty: none.
    pub machine_file: PathBuf,
    /// Source of nodes, groups, roles, locks and architectures.
    pub inventory: InventorySettings,
    /// Power service of the nodes.
    pub power: Power,
    /// Boot script service of the nodes.
    pub boot_parameters: BootParameters,
    /// Configuration service of the nodes.
    pub configuration: ConfigurationSettings,
    /// Sources of images.
    pub images: Images,
    /// Source of the tenants' nodes.
    pub tenants: TenantSettings,
    /// Records of bare-metal hosts and decisions about them.
    pub hosts: HostSettings,
    /// Operations on bare-metal hosts.
    pub host_operations: HostOperationSettings,
    /// Records of edge devices and decisions about them.
    pub devices: DeviceSettings,
    /// Conditions for the beginning and the end of sessions.
    pub sessions: SessionSettings,
    /// Use of the database by each part.
    pub database: DatabaseSettings,
    /// Sharing of the work among replicas that share a database.
    pub leases: LeaseSettings,
    /// The simulated upstreams.
    pub simulator: SimulatorSettings,
}

/// Filter and format of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// Directives such as `info,power_controller=debug`. The option `logging_level`, once it is not `INFO`, takes the
    /// place of the one without a target.
    pub filter: String,
    /// Pretty on a terminal and JSON otherwise, unless set.
    #[serde(deserialize_with = "upstreams::word")]
    pub format: LogFormat,
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Pretty on a terminal, JSON otherwise.
    Auto,
    /// Coloured lines, for people.
    Pretty,
    /// JSON objects, one per line, for machines.
    Json,
}

/// Collector of traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSettings {
    /// Address of a collector that takes OTLP over gRPC, such as `http://otel-collector:4317`; empty: no traces are sent.
    pub url: String,
    /// Certificates of the authorities that the collector is trusted by, for an address with `https`.
    pub ca_file: PathBuf,
    /// Share of the requests that are traced, from 0 to 1, of those whose client has not decided it.
    pub share: f64,
}

/// Strictness of following BOS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompatSettings {
    /// Repeat surprising answers of BOS that clients may have got used to. Never repeats unsafe actions.
    pub strict_bos: bool,
}

/// Conditions for the beginning and the end of sessions. By default they are those of BOS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSettings {
    /// Complete a staged session once everything that it staged was applied and has settled, although the option
    /// `clear_stage` is off and the staged states are kept. If not, such a session runs until its staged states are
    /// overwritten or cleared, or it is deleted, as in BOS.
    pub complete_applied: bool,
    /// Most nodes of a session that needs no confirmation; 0: any number.
    pub confirm_above_nodes: u32,
    /// Most percent of all components in a session that needs no confirmation; 0 or 100: any.
    pub confirm_above_percent: u32,
    /// Roles whose nodes make a confirmation necessary, spelled as in the inventory: `Management`, `Compute_GPU`.
    pub confirm_roles: Vec<String>,
}

/// The HTTP gateway. It stores nothing, and authenticates callers once `identity` has a source of credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewaySettings {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Address for other parts.
    pub url: String,
    /// PEM file with the certificate of the address to listen on, and those that it was signed by; empty: HTTP without TLS.
    /// The file is read again when it changes.
    pub certificate: PathBuf,
    /// PEM file with the key of the certificate.
    pub key: PathBuf,
    /// Most connections at the same time. Further ones wait until one of these ends, as those do on which nothing is
    /// asked.
    pub connections: u32,
    /// Seconds that a client may take to send the head of a request, and as many again for its body. A connection on which
    /// nothing is asked for that long is closed.
    pub patience_seconds: u32,
    /// Fewest bytes that a client has to send of a body, and to take of an answer, in each second.
    pub least_rate: u32,
    /// Seconds in which a client need not keep to `least_rate`: it may stall for so long.
    pub stall_seconds: u32,
    /// Most reports of nodes that are passed on at the same time. Further ones wait.
    pub reports: u32,
    /// Most requests of people and tools that are passed on at the same time, lists aside. Further ones wait.
    pub operators: u32,
    /// Most lists that are under way at the same time, each until the client has all of it. Further ones wait.
    pub lists: u32,
    /// Most live streams at the same time, each until its client leaves. Further ones wait.
    pub live_streams: u32,
    /// Seconds that a request waits for its turn before it is refused with 503 and `Retry-After`.
    pub queue_seconds: u32,
    /// Most bytes of bodies that are arriving or being worked on at the same time; a quarter of the memory limit at most.
    /// Further ones wait.
    pub body_bytes: u32,
    /// Most bytes that lists under way may take, and as many again for live streams; a quarter of the memory limit at most.
    /// Further ones wait.
    pub list_bytes: u32,
    /// Bare-metal hosts for clients of Kubernetes.
    pub kubernetes: FaceSettings,
    /// Edge devices for clients of Flight Control.
    pub flightctl: FaceSettings,
    /// Agents of edge devices, each of which speaks for the device of its certificate.
    pub agents: AgentPortSettings,
    /// Credentials of callers, and the policy about them.
    pub identity: IdentitySettings,
}

/// Port of the gateway for the agents of edge devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentPortSettings {
    /// Address of the port, such as `0.0.0.0:7713`; empty: none.
    pub listen: String,
    /// PEM file with the certificate of the port, and those that it was signed by; empty: one is made at the first start and
    /// kept in the data directory. It is read again when it changes.
    pub certificate: PathBuf,
    /// PEM file with the key of the certificate.
    pub key: PathBuf,
}

/// Face of the gateway for the clients of another contract, such as kubectl.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaceSettings {
    /// Whether it is served at all: under `/kubernetes`, or `/flightctl`, of the gateway.
    pub serve: bool,
    /// Address of a port of its own, such as `127.0.0.1:7708`; empty: none.
    pub listen: String,
    /// PEM file with the certificate of that port, and those that it was signed by; empty: one is made at the first start
    /// and kept in the data directory.
    pub certificate: PathBuf,
    /// PEM file with the key of the certificate.
    pub key: PathBuf,
    /// Serve that port without TLS, which only clients of this machine may use. kubectl then sends no token.
    pub plain: bool,
}

/// A part that owns a database.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnerSettings {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Address for other parts.
    pub url: String,
    /// `postgres://…` or `sqlite://…`; empty: an SQLite file in the data directory.
    pub database_url: String,
}

/// A part that owns nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartSettings {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Address for other parts.
    pub url: String,
}

/// The simulated upstreams and their fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatorSettings {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Address for other parts.
    pub url: String,
    /// Number of nodes, when no inventory file is given.
    pub nodes: u32,
    /// Seed of delays and faults: equal seeds give equal runs.
    pub seed: u64,
    /// Duration of hardware actions relative to real machines: 1 is real time, 0 is no delay.
    pub speed: f64,
    /// Injected faults: a fraction such as `0.05` or a list such as `stuck-off=2,never-reports=1`.
    pub faults: String,
    /// File with HSM's answer to `GET /hsm/v2/State/Components`; empty: a generated fleet.
    pub inventory: String,
    /// File with HSM's answer to `GET /hsm/v2/groups`; empty: generated with the fleet.
    pub groups: String,
    /// Power of the nodes at the start: `on` or `off`.
    pub initial_power: String,
    /// Whether its power service reports the result of a transition for each node, as a power control service does. If
    /// not, results follow from power readings.
    pub results: bool,
    /// The rack of bare-metal hosts.
    pub rack: RackSettings,
}

/// The simulated rack of bare-metal hosts. Hosts are made when they are registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RackSettings {
    /// User name that every BMC takes.
    pub username: String,
    /// Password that every BMC takes.
    pub password: String,
    /// Injected faults by a part of the host's name or address, such as `dead-bmc=rack-7,fails-power=node-12`. A host
    /// whose name has the word of a fault in it has that fault.
    pub faults: String,
}

/// Reason why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A source cannot be read, has an unknown key or a value of the wrong kind.
    #[error(transparent)]
    Unusable(#[from] config::ConfigError),
    /// The defaults cannot be written down as a source.
    #[error("cannot render the defaults")]
    Defaults(#[from] toml::ser::Error),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            data_dir: "reveille-data".into(),
            shutdown_grace_seconds: 10,
            traces: TraceSettings { url: String::new(), ca_file: PathBuf::new(), share: 1.0 },
            log: LogSettings {
                filter: "info,sea_orm_migration=warn,h2=warn".into(),
                format: LogFormat::Auto,
            },
            audit: AuditSettings::default(),
            compat: CompatSettings { strict_bos: false },
            machine_file: PathBuf::new(),
            inventory: InventorySettings::default(),
            power: Power::default(),
            boot_parameters: BootParameters::default(),
            configuration: ConfigurationSettings::default(),
            images: Images::default(),
            tenants: TenantSettings::default(),
            hosts: HostSettings::default(),
            host_operations: HostOperationSettings::default(),
            devices: DeviceSettings::default(),
            sessions: SessionSettings::default(),
            database: DatabaseSettings::default(),
            leases: LeaseSettings::default(),
            limits: LimitSettings::default(),
            tls: TlsSettings::default(),
            gateway: GatewaySettings::on_port(7700),
            component_registry: OwnerSettings::on_port(7701),
            session_manager: OwnerSettings::on_port(7702),
            status_evaluator: OwnerSettings::on_port(7703),
            power_controller: OwnerSettings::on_port(7704),
            config_coordinator: OwnerSettings::on_port(7705),
            simulator: SimulatorSettings::on_port(7706),
            host_provisioner: OwnerSettings::on_port(7707),
            fleet_manager: OwnerSettings::on_port(7709),
            insight: PartSettings::on_port(7711),
        }
    }
}

impl Settings {
    /// Reads the settings: the defaults, then `file`, the environment and `overrides` as [`Self::or_from`] does.
    ///
    /// # Errors
    /// Names the file or variable, the key and the mistake.
    pub fn load(file: Option<&Path>, overrides: &[(String, String)]) -> Result<Self, SettingsError> {
        Self::default().or_from(DriverProfile::default(), file, overrides)
    }

    /// Settings with these as defaults, overridden by `profile`, then `file` if given, then the environment, then
    /// `overrides` as key and value.
    ///
    /// # Errors
    /// Names the file or variable, the key and the mistake.
    pub fn or_from(
        &self,
        profile: DriverProfile,
        file: Option<&Path>,
        overrides: &[(String, String)],
    ) -> Result<Self, SettingsError> {
        let defaults = config::File::from_str(&self.to_toml()?, config::FileFormat::Toml);
        let environment = config::Environment::with_prefix(ENVIRONMENT_PREFIX)
            .prefix_separator("__")
            .separator("__")
            .try_parsing(true);
        let profile = config::File::from_str(profile.toml(), config::FileFormat::Toml);
        let mut builder = config::Config::builder().add_source(defaults).add_source(profile);
        if let Some(file) = file {
            builder = builder.add_source(config::File::from(file).format(config::FileFormat::Toml));
        }
        builder = builder.add_source(environment);
        for (key, value) in overrides {
            builder = builder.set_override(key, value.as_str())?;
        }
        Ok(builder.build()?.try_deserialize()?)
    }

    /// Returns whether any concern is served by the simulated fleet.
    pub fn is_simulated(&self) -> bool {
        self.inventory.driver == InventoryDriver::Simulated
            || self.power.driver == PowerDriver::Simulated
            || self.boot_parameters.driver == BootParametersDriver::Simulated
            || self.configuration.driver == ConfigurationDriver::Simulated
            || self.images.driver == ImagesDriver::Simulated
            || self.host_operations.driver == HostDriverName::Simulated
    }

    /// Returns the settings as a TOML file that yields the same settings, for operators: credentials of databases and
    /// peers are left out.
    ///
    /// # Errors
    /// Never for settings that were loaded; the type of the error says so for others.
    pub fn shown(&self) -> Result<String, toml::ser::Error> {
        let mut shown = self.clone();
        for owner in [
            &mut shown.component_registry,
            &mut shown.session_manager,
            &mut shown.status_evaluator,
            &mut shown.power_controller,
            &mut shown.config_coordinator,
            &mut shown.host_provisioner,
            &mut shown.fleet_manager,
        ] {
            owner.database_url = without_password(&owner.database_url);
        }
        for peer in [
            &mut shown.inventory.hsm,
            &mut shown.power.pcs,
            &mut shown.power.redfish,
            &mut shown.host_operations.redfish,
            &mut shown.host_operations.ironic.calls,
            &mut shown.boot_parameters.bss,
            &mut shown.configuration.cfs,
            &mut shown.images.s3,
            &mut shown.images.ims,
            &mut shown.tenants.tapms,
        ] {
            // A user in the URL is refused later, by the caller of the peer.
            if peer.url.contains('@') {
                peer.url = without_password(&peer.url);
            }
        }
        for backend in shown.host_operations.ironic.backends.values_mut() {
            if backend.url.contains('@') {
                backend.url = without_password(&backend.url);
            }
        }
        shown.hosts.secret_keys = SecretKeys::default();
        shown.to_toml()
    }

    fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}

impl fmt::Debug for OwnerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listen, url, database_url } = self;
        let database_url = without_password(database_url);
        f.debug_struct("Owner")
            .field("listen", listen)
            .field("url", url)
            .field("database_url", &database_url)
            .finish()
    }
}

impl GatewaySettings {
    fn on_port(port: u16) -> Self {
        let (listen, url) = loopback(port);
        Self {
            listen,
            url,
            certificate: PathBuf::new(),
            key: PathBuf::new(),
            connections: 4096,
            patience_seconds: 75,
            // Slower than any network that a node boots over.
            least_rate: 1024,
            stall_seconds: 15,
            // The limit is one transaction of the registry, and the reports that wait for the next.
            reports: 1024,
            operators: 512,
            lists: 64,
            // Screens of operators, and programs that forward events.
            live_streams: 32,
            // Clients of BOS give up after thirty seconds. As many as there are connections have had their turn by then.
            queue_seconds: 15,
            // Two of the largest at a time.
            body_bytes: 128 << 20,
            // All of them.
            list_bytes: 192 << 20,
            kubernetes: FaceSettings::under_the_gateway(),
            flightctl: FaceSettings::under_the_gateway(),
            agents: AgentPortSettings::default(),
            identity: IdentitySettings::default(),
        }
    }
}

impl FaceSettings {
    fn under_the_gateway() -> Self {
        Self {
            serve: true,
            listen: String::new(),
            certificate: PathBuf::new(),
            key: PathBuf::new(),
            plain: false,
        }
    }
}

impl OwnerSettings {
    fn on_port(port: u16) -> Self {
        let (listen, url) = loopback(port);
        Self { listen, url, database_url: String::new() }
    }
}

impl PartSettings {
    fn on_port(port: u16) -> Self {
        let (listen, url) = loopback(port);
        Self { listen, url }
    }
}

impl SimulatorSettings {
    fn on_port(port: u16) -> Self {
        let (listen, url) = loopback(port);
        Self {
            listen,
            url,
            nodes: 96,
            seed: 1,
            speed: 0.02,
            faults: "0".into(),
            inventory: String::new(),
            groups: String::new(),
            initial_power: "off".into(),
            results: false,
            rack: RackSettings {
                username: "admin".into(),
                password: "password".into(),
                faults: String::new(),
            },
        }
    }
}

fn loopback(port: u16) -> (SocketAddr, String) {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    (listen, format!("http://{listen}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_settings_give_the_same_settings() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("reveille.toml");
        let wanted = Settings { shutdown_grace_seconds: 3, ..Settings::default() };
        std::fs::write(&file, wanted.shown().unwrap()).unwrap();
        assert_eq!(Settings::load(Some(&file), &[]).unwrap(), wanted);
    }

    #[test]
    fn shown_settings_open_no_database_and_no_peer() {
        let mut settings = Settings::default();
        for owner in [
            &mut settings.component_registry,
            &mut settings.session_manager,
            &mut settings.status_evaluator,
            &mut settings.power_controller,
            &mut settings.config_coordinator,
            &mut settings.host_provisioner,
            &mut settings.fleet_manager,
        ] {
            owner.database_url = "postgres://bos:s3cret@db.example/bos".into();
        }
        for shown in [settings.shown().unwrap(), format!("{settings:?}")] {
            assert_eq!(shown.matches("postgres://…@db.example/bos").count(), 7, "{shown}");
            assert!(!shown.contains("s3cret"), "{shown}");
        }
        settings.power.pcs.url = "https://bos:s3cret@pcs.example/v1".into();
        let shown = settings.shown().unwrap();
        assert!(shown.contains("url = \"https://…@pcs.example/v1\""), "{shown}");
    }

    #[test]
    fn profiles_are_usable_and_give_way_to_files() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("reveille.toml");
        std::fs::write(&file, "[power.pcs]\nurl = \"https://pcs.example\"\n").unwrap();
        for (profile, simulated) in [
            (DriverProfile::Simulated, true),
            (DriverProfile::Csm, false),
            (DriverProfile::Openchami, false),
            (DriverProfile::Redfish, false),
            (DriverProfile::Metal, false),
        ] {
            let settings = Settings::default().or_from(profile, Some(&file), &[]).unwrap();
            assert_eq!(settings.is_simulated(), simulated, "{profile:?}");
            assert_eq!(settings.power.pcs.url, "https://pcs.example", "{profile:?}");
        }
    }

    #[test]
    fn later_sources_win() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("reveille.toml");
        std::fs::write(&file, "[gateway]\nlisten = \"127.0.0.1:1\"\n").unwrap();
        let overrides = [("gateway.listen".to_owned(), "127.0.0.1:2".to_owned())];
        assert_eq!(Settings::load(Some(&file), &[]).unwrap().gateway.listen.port(), 1);
        assert_eq!(Settings::load(Some(&file), &overrides).unwrap().gateway.listen.port(), 2);
    }

    #[test]
    fn a_bad_source_says_what_is_wrong() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("reveille.toml");
        for (text, told) in [
            ("[gateway]\nlissen = \"127.0.0.1:1\"\n", "lissen"),
            ("[gateway]\nlisten = \"nowhere\"\n", "listen"),
            ("[gateway\n", "reveille.toml"),
            ("[log]\nformat = \"loud\"\n", "loud"),
            (
                "[power]\ndriver = \"pcx\"\n",
                "unknown variant `pcx`, expected one of `simulated`, `pcs`, `redfish`, `hosts` for key `power.driver`",
            ),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = Settings::load(Some(&file), &[]).unwrap_err().to_string();
            assert!(error.contains(told), "{text:?} gave {error:?}");
        }
    }
}
