//! Settings of the systems around the mesh: which driver serves each concern, and how a peer is called.

use std::path::PathBuf;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, IntoDeserializer, value},
};

/// Calls of one system with an HTTP API. Times are more than 0 and at most 86,400 s, counts at least 1; the calling
/// part checks this at its start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Base URL, with the prefix of its API; empty: none is configured.
    pub url: String,
    /// Whether `url` may be `http://`, which exposes everything to the network.
    pub plain_http: bool,
    /// PEM file with the certificate authorities to trust instead of the system's; empty: the system's. The file is
    /// read again after a change.
    pub ca_file: PathBuf,
    /// Whether certificates are checked.
    pub verify_tls: bool,
    /// Location of the credentials: `file:PATH` or `env:NAME`; empty: none are sent. It is a TOML document with one of
    /// `token`; `username` and `password`; `token_url`, `client_id`, `client_secret` and perhaps `scope`, by which a
    /// token is fetched (OAuth2 client credentials); `access_key` and `secret_key`, which requests are signed with. A
    /// file is read again when it changes.
    pub credentials: String,
    /// Seconds that a connection may take, TLS included.
    pub connect_seconds: f64,
    /// Seconds until an answer has to begin, for systems without an option in the BOS contract: tenants and BMCs. For
    /// HSM, PCS, BSS, CFS, IMS and S3 the options `*_read_timeout` hold, whatever this value.
    pub answer_seconds: f64,
    /// Limit in seconds of a whole call, with waits for other calls, a token, and the whole answer. The limit grows by
    /// as much as such an option exceeds its default of 20 seconds.
    pub total_seconds: f64,
    /// Most items, such as nodes, in one call, where the system takes many: PCS, BSS and CFS.
    pub batch_size: u32,
    /// Most calls at the same time.
    pub calls_in_flight: u32,
    /// Largest answer that is read, in bytes. All large answers that are being read at a time have no more together.
    pub largest_answer: u64,
}

impl Peer {
    /// A peer that takes `batch_size` items in a call.
    pub(super) fn of(batch_size: u32) -> Self {
        Self {
            url: String::new(),
            plain_http: false,
            ca_file: PathBuf::new(),
            verify_tls: true,
            credentials: String::new(),
            connect_seconds: 3.0,
            answer_seconds: 20.0,
            total_seconds: 60.0,
            batch_size,
            calls_in_flight: 16,
            // Several times the answer about the largest batch.
            largest_answer: 16 << 20,
        }
    }
}

/// Parses one of the words of `T`. The error lists them, unlike that of the configuration library.
pub(super) fn word<'de, T: Deserialize<'de>, D: Deserializer<'de>>(source: D) -> Result<T, D::Error> {
    let text = String::deserialize(source)?;
    let known: Result<T, value::Error> = T::deserialize(text.into_deserializer());
    known.map_err(D::Error::custom)
}

/// Source of nodes, groups, roles, locks and architectures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InventorySettings {
    /// Source of the hardware inventory.
    #[serde(deserialize_with = "word")]
    pub driver: InventoryDriver,
    /// Seconds between polls of the locks while nodes are being acted on.
    pub lock_poll_seconds: f64,
    /// The hardware state manager.
    pub hsm: Peer,
    /// Notifications of changes, each a hint to poll at once.
    pub notifications: NotificationSettings,
}

/// Sources of the hardware inventory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InventoryDriver {
    /// The simulated fleet.
    Simulated,
    /// The hardware state manager (SMD v2).
    Hsm,
    /// The machine file.
    File,
    /// Bare-metal hosts that are available or provisioned.
    Hosts,
}

/// Subscription to state change notifications of the hardware state manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotificationSettings {
    /// Whether to subscribe.
    pub subscribe: bool,
    /// Name of the subscriber; one per mesh.
    pub subscriber: String,
    /// Address at which the hardware state manager reaches the gateway's `/scn`, such as `http://gateway:7700/scn`.
    pub webhook_url: String,
}

/// Power service of the nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Driver of the power service.
    #[serde(deserialize_with = "word")]
    pub driver: PowerDriver,
    /// Seconds between polls of transitions under way, which take turns.
    pub follow_seconds: f64,
    /// Period in seconds in which the power control service itself checks its transitions: results show at no other
    /// time. A transition is read back once, and then polled `follow_seconds` after each of these checks. 0: polls
    /// follow only `follow_seconds` and `poll_seconds`.
    pub confirm_seconds: f64,
    /// Seconds between polls of the power of nodes that were acted on just now, and at most between polls of the same
    /// transition. At most six times as many where nothing has been done for long, or the upstream sends notifications.
    pub poll_seconds: f64,
    /// Seconds in which a BMC that is driven directly has to show the effect of an action.
    pub effect_seconds: f64,
    /// The power control service.
    pub pcs: Peer,
    /// Call settings of every BMC that is driven directly; its `url` is not used, and for BMCs of hosts neither are its
    /// `credentials` and `plain_http`.
    pub redfish: Peer,
}

/// Drivers of the power service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerDriver {
    /// The simulated fleet.
    Simulated,
    /// The power control service.
    Pcs,
    /// The BMCs of the machine file, each directly.
    Redfish,
    /// The BMCs of bare-metal hosts, each directly and with the login of its host.
    Hosts,
}

/// Boot script service of the nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootParameters {
    /// Driver of the boot script service.
    #[serde(deserialize_with = "word")]
    pub driver: BootParametersDriver,
    /// The boot script service.
    pub bss: Peer,
    /// The scripts that the gateway serves itself.
    pub built_in: BootScripts,
}

/// Drivers of the boot script service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BootParametersDriver {
    /// The simulated fleet.
    Simulated,
    /// The boot script service.
    Bss,
    /// The gateway, so that a site needs no other system.
    BuiltIn,
}

/// The scripts that the gateway serves itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootScripts {
    /// Base URL of artifacts named `s3://BUCKET/KEY`, to which `/BUCKET/KEY` is added.
    pub artifact_url: String,
    /// Address at which nodes reach the gateway, for asking again; empty: the gateway's `url`.
    pub script_url: String,
}

/// Configuration service of the nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigurationSettings {
    /// Driver of the configuration service.
    #[serde(deserialize_with = "word")]
    pub driver: ConfigurationDriver,
    /// Seconds between polls of nodes that are being configured; more where a poll takes long, or nothing changes for
    /// long.
    pub poll_seconds: f64,
    /// The configuration framework service.
    pub cfs: Peer,
}

/// Drivers of the configuration service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigurationDriver {
    /// The simulated fleet.
    Simulated,
    /// The configuration framework service, v3.
    Cfs,
    /// No service: nodes count as configured as soon as they have booted.
    None,
}

/// Sources of images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Images {
    /// Store of manifests and boot parameters.
    #[serde(deserialize_with = "word")]
    pub driver: ImagesDriver,
    /// Catalogue of images: their architecture, and the projection of their root file systems.
    #[serde(deserialize_with = "word")]
    pub catalogue: CatalogueDriver,
    /// Directory that holds `BUCKET/KEY` for each `s3://BUCKET/KEY`, for the driver `file`.
    pub directory: PathBuf,
    /// Region that requests to the store are signed for.
    pub region: String,
    /// The S3-compatible store, addressed path-style.
    pub s3: Peer,
    /// The image management service.
    pub ims: Peer,
}

/// Stores of manifests and boot parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImagesDriver {
    /// The simulated fleet.
    Simulated,
    /// An S3-compatible store.
    S3,
    /// A directory.
    File,
}

/// Catalogues of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatalogueDriver {
    /// No catalogue.
    None,
    /// The image management service, v3.
    Ims,
}

/// Source of the tenants' nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantSettings {
    /// Driver of the tenant service.
    #[serde(deserialize_with = "word")]
    pub driver: TenantsDriver,
    /// The tenant and partition management service.
    pub tapms: Peer,
}

/// Drivers of the tenant service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TenantsDriver {
    /// No service: every tenant may use every node.
    None,
    /// The tenant and partition management service.
    Tapms,
}

impl Default for InventorySettings {
    fn default() -> Self {
        Self {
            driver: InventoryDriver::Simulated,
            lock_poll_seconds: 10.0,
            // HSM lists the whole machine in one answer.
            hsm: Peer { largest_answer: 64 << 20, ..Peer::of(2500) },
            notifications: NotificationSettings {
                subscribe: false,
                subscriber: "reveille".into(),
                webhook_url: String::new(),
            },
        }
    }
}

impl Default for Power {
    fn default() -> Self {
        Self {
            driver: PowerDriver::Simulated,
            follow_seconds: 1.0,
            confirm_seconds: 15.0,
            poll_seconds: 5.0,
            // The deadline that the power control service gets for the same step.
            effect_seconds: 60.0,
            pcs: Peer::of(2500),
            redfish: Peer { calls_in_flight: 64, largest_answer: 4 << 20, ..Peer::of(1) },
        }
    }
}

impl Default for BootParameters {
    fn default() -> Self {
        Self {
            driver: BootParametersDriver::Simulated,
            bss: Peer::of(10_000),
            built_in: BootScripts { artifact_url: String::new(), script_url: String::new() },
        }
    }
}

impl Default for ConfigurationSettings {
    fn default() -> Self {
        Self {
            driver: ConfigurationDriver::Simulated,
            poll_seconds: 2.0,
            cfs: Peer { largest_answer: 32 << 20, ..Peer::of(1000) },
        }
    }
}

impl Default for Images {
    fn default() -> Self {
        Self {
            driver: ImagesDriver::Simulated,
            catalogue: CatalogueDriver::None,
            directory: PathBuf::new(),
            region: "us-east-1".into(),
            s3: Peer { largest_answer: 1 << 20, ..Peer::of(1) },
            ims: Peer { largest_answer: 1 << 20, ..Peer::of(1) },
        }
    }
}

impl Default for TenantSettings {
    fn default() -> Self {
        // A single document that people wait for: an early error is better than a late answer.
        let tapms = Peer { answer_seconds: 10.0, total_seconds: 10.0, ..Peer::of(1) };
        Self { driver: TenantsDriver::None, tapms }
    }
}
