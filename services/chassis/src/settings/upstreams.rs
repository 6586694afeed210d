//! Settings of the systems around the mesh: which driver serves each concern, and how a peer is called.

use std::path::PathBuf;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, IntoDeserializer, value},
};

/// How one system with an HTTP API is called. Times are more than 0 and at most 86,400 s, counts at least 1; who
/// calls the system refuses others when it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Base URL, with the prefix of its API; empty: none is configured.
    pub url: String,
    /// Whether `url` may be `http://`, which shows everything to whoever is on the way.
    pub plain_http: bool,
    /// PEM file with the certificate authorities to trust instead of the system's; empty: the system's. It is read
    /// again when it changes.
    pub ca_file: PathBuf,
    /// Whether certificates are checked.
    pub verify_tls: bool,
    /// Where the credentials are: `file:PATH` or `env:NAME`; empty: none are sent. It is a TOML document with one
    /// of `token`; `username` and `password`; `token_url`, `client_id`, `client_secret` and perhaps `scope`, by
    /// which a token is fetched (OAuth2 client credentials); `access_key` and `secret_key`, which requests are
    /// signed with. A file is read again when it changes.
    pub credentials: String,
    /// Seconds that a connection may take, TLS included.
    pub connect_seconds: f64,
    /// Seconds until an answer has to begin, for systems that no option of the BOS contract is about: tenants and
    /// BMCs. For HSM, PCS, BSS, CFS, IMS and S3 the options `*_read_timeout` hold, whatever stands here.
    pub answer_seconds: f64,
    /// Seconds that a call may take in all: waiting for others, a token, and the whole answer included. They are more
    /// by as much as such an option is set to more than its default of 20 seconds.
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
            // Several times what the largest batch takes.
            largest_answer: 16 << 20,
        }
    }
}

/// One of the words that `T` has. The error lists them, which that of the source of settings would not.
pub(super) fn word<'de, T: Deserialize<'de>, D: Deserializer<'de>>(source: D) -> Result<T, D::Error> {
    let text = String::deserialize(source)?;
    let known: Result<T, value::Error> = T::deserialize(text.into_deserializer());
    known.map_err(D::Error::custom)
}

/// Where nodes, groups, roles, locks and architectures come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// Who lists the hardware.
    #[serde(deserialize_with = "word")]
    pub driver: InventoryDriver,
    /// Seconds between looks at the locks while nodes are being acted on.
    pub lock_poll_seconds: f64,
    /// The hardware state manager.
    pub hsm: Peer,
    /// Notifications of changes, a hint to look at once.
    pub notifications: Notifications,
}

/// Who lists the hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InventoryDriver {
    /// The simulated fleet.
    Simulated,
    /// The hardware state manager (SMD v2).
    Hsm,
    /// The machine file.
    File,
}

/// Subscription to state change notifications of the hardware state manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notifications {
    /// Whether to subscribe.
    pub subscribe: bool,
    /// Name of the subscriber; one per mesh.
    pub subscriber: String,
    /// Where the hardware state manager reaches the gateway's `/scn`, such as `http://gateway:7700/scn`.
    pub webhook_url: String,
}

/// Who switches nodes on and off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Who is asked.
    #[serde(deserialize_with = "word")]
    pub driver: PowerDriver,
    /// Seconds between looks at transitions that are under way, which are looked at in turn.
    pub follow_seconds: f64,
    /// Seconds after which the power control service first looks at what became of a transition, and then again and again:
    /// there is nothing new in between. It is polled so often once it was read back, `follow_seconds` after each of these
    /// looks. 0: whenever `follow_seconds` and `poll_seconds` say.
    pub confirm_seconds: f64,
    /// Seconds between looks at the power of nodes that were acted on just now, and at most between looks at the same
    /// transition. Six times as many at most where nothing has been done for long, or the upstream tells of changes.
    pub poll_seconds: f64,
    /// Seconds in which a BMC that is driven directly has to show the effect of an action.
    pub effect_seconds: f64,
    /// The power control service.
    pub pcs: Peer,
    /// What holds for every BMC of the machine file; its `url` is not used.
    pub redfish: Peer,
}

/// Who is asked to switch nodes on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerDriver {
    /// The simulated fleet.
    Simulated,
    /// The power control service.
    Pcs,
    /// The BMCs of the machine file, each directly.
    Redfish,
}

/// Who tells a node what to boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootParameters {
    /// Who serves boot scripts.
    #[serde(deserialize_with = "word")]
    pub driver: BootParametersDriver,
    /// The boot script service.
    pub bss: Peer,
    /// The scripts that the gateway serves itself.
    pub built_in: BootScripts,
}

/// Who serves boot scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BootParametersDriver {
    /// The simulated fleet.
    Simulated,
    /// The boot script service.
    Bss,
    /// The gateway, so that a site needs nobody else.
    BuiltIn,
}

/// The scripts that the gateway serves itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootScripts {
    /// Where nodes fetch what is named `s3://BUCKET/KEY`: the base to which `/BUCKET/KEY` is added.
    pub artifact_url: String,
    /// Where nodes reach the gateway, for asking again; empty: the gateway's `url`.
    pub script_url: String,
}

/// Who configures nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Who is asked.
    #[serde(deserialize_with = "word")]
    pub driver: ConfigurationDriver,
    /// Seconds between looks for changes of nodes that are being configured; more where a look takes long, or nothing
    /// happens for long.
    pub poll_seconds: f64,
    /// The configuration framework service.
    pub cfs: Peer,
}

/// Who is asked to configure nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigurationDriver {
    /// The simulated fleet.
    Simulated,
    /// The configuration framework service, v3.
    Cfs,
    /// Nobody: nodes are configured as soon as they have booted.
    None,
}

/// Where images are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Images {
    /// Who stores manifests and boot parameters.
    #[serde(deserialize_with = "word")]
    pub driver: ImagesDriver,
    /// Who knows the architecture of images and projects their root file systems.
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

/// Who stores manifests and boot parameters.
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

/// Who knows about images beyond their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatalogueDriver {
    /// Nobody.
    None,
    /// The image management service, v3.
    Ims,
}

/// Who knows which nodes a tenant has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenants {
    /// Who is asked.
    #[serde(deserialize_with = "word")]
    pub driver: TenantsDriver,
    /// The tenant and partition management service.
    pub tapms: Peer,
}

/// Who is asked about tenants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TenantsDriver {
    /// Nobody: every tenant may use every node.
    None,
    /// The tenant and partition management service.
    Tapms,
}

impl Default for Inventory {
    fn default() -> Self {
        Self {
            driver: InventoryDriver::Simulated,
            lock_poll_seconds: 10.0,
            // It lists the whole machine in one answer.
            hsm: Peer { largest_answer: 64 << 20, ..Peer::of(2500) },
            notifications: Notifications {
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
            // What the power control service is given for the same.
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

impl Default for Configuration {
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

impl Default for Tenants {
    fn default() -> Self {
        // One document, and people wait for it: better told soon that it is not to be had.
        let tapms = Peer { answer_seconds: 10.0, total_seconds: 10.0, ..Peer::of(1) };
        Self { driver: TenantsDriver::None, tapms }
    }
}
