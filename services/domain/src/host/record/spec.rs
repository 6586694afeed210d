//! Wishes for a host, as far as rules read them (host reference 2.3). The rest of the spec is text that no rule needs.

use std::sync::Arc;

/// Wish for a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSpec {
    /// Address of the BMC; empty: none.
    pub bmc_address: Arc<str>,
    /// Name of the secret with the login of the BMC; empty: none.
    pub credentials_name: Arc<str>,
    /// Whether the certificate of the BMC is taken unverified.
    pub disable_certificate_verification: bool,
    /// MAC address that the host boots from.
    pub boot_mac: Option<Arc<str>>,
    /// Firmware boot mode; `None`: the usual one.
    pub boot_mode: Option<BootMode>,
    /// CPU architecture; empty: to be taken from the inventory.
    pub architecture: Arc<str>,
    /// Whether the power is to be on.
    pub online: bool,
    /// Image to run; one without URL counts as none.
    pub image: Option<HostImage>,
    /// Method of a custom procedure in place of the usual deployment.
    pub custom_deploy: Option<Arc<str>>,
    /// Whether other means installed the host.
    pub externally_provisioned: bool,
    /// Whether the host may never be off, so that every power-off becomes a reboot.
    pub disable_power_off: bool,
    /// Whether cleaning is left out.
    pub cleaning_disabled: bool,
    /// Means of inspection; `None`: by an agent.
    pub inspection: Option<InspectionMode>,
    /// Hints that choose the disk for the image.
    pub root_device_hints: Option<RootDeviceHints>,
    /// RAID volumes; `None`: see [`crate::host::preparation`].
    pub raid: Option<RaidWish>,
    /// Name of a deprecated hardware profile; empty: none.
    pub hardware_profile: Arc<str>,
    /// Secret with network data for the ramdisk.
    pub network_secret: Option<Arc<str>>,
    /// Whether deprecated firmware settings are wished for.
    pub wishes_firmware: bool,
    /// Wishes for network interfaces.
    pub interfaces: Vec<InterfaceWish>,
    /// Secrets with data for the system.
    pub data_secrets: Vec<DataSecret>,
}

/// Wish for a network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterfaceWish {
    /// Name of the interface; empty: named by its MAC address.
    pub name: Arc<str>,
    /// MAC address; empty: named by its name.
    pub mac: Arc<str>,
    /// MAC address of the switch that it is connected to; `None`: not known.
    pub switch: Option<Arc<str>>,
}

/// Secret with data for the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataSecret {
    /// Member of the spec that names the secret, such as `userData`.
    pub member: &'static str,
    /// Namespace of the secret; empty: that of the host.
    pub namespace: Arc<str>,
}

impl HostSpec {
    /// Returns whether a BMC is named at all.
    pub fn names_a_bmc(&self) -> bool {
        !self.bmc_address.is_empty() || !self.credentials_name.is_empty()
    }

    /// Returns the URL of the wanted image; empty: none.
    pub fn image_url(&self) -> &str {
        image_url(self.image.as_ref())
    }

    /// Returns the wanted procedure, if it has a method.
    pub fn procedure(&self) -> Option<&Arc<str>> {
        self.custom_deploy.as_ref().filter(|method| !method.is_empty())
    }
}

/// Returns the URL of `image`; empty: none.
pub fn image_url(image: Option<&HostImage>) -> &str {
    image.map_or("", |image| &image.url)
}

/// Image of an operating system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostImage {
    /// Address of the image.
    pub url: Arc<str>,
    /// Checksum, or its address; empty: none.
    pub checksum: Arc<str>,
    /// Word for the kind of checksum; empty: to be found out.
    pub checksum_type: Arc<str>,
    /// Word for the format; empty: to be found out.
    pub format: Arc<str>,
    /// Secret for the registry of an OCI image; empty: none.
    pub pull_secret: Arc<str>,
}

/// Firmware boot mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum BootMode {
    /// UEFI.
    #[default]
    Uefi,
    /// UEFI with secure boot.
    UefiSecureBoot,
    /// BIOS.
    Legacy,
}

impl BootMode {
    /// Every boot mode.
    pub const ALL: [Self; 3] = [Self::Uefi, Self::UefiSecureBoot, Self::Legacy];

    /// Returns the boot mode of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Uefi => "UEFI",
            Self::UefiSecureBoot => "UEFISecureBoot",
            Self::Legacy => "legacy",
        }
    }
}

/// Means of inspection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum InspectionMode {
    /// An agent in a ramdisk collects the inventory.
    #[default]
    Agent,
    /// The BMC reports the inventory.
    Fast,
    /// The host is not inspected.
    Disabled,
}

impl InspectionMode {
    /// Every means.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Fast, Self::Disabled];

    /// Returns the means of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Fast => "fast",
            Self::Disabled => "disabled",
        }
    }
}

/// Properties of the disk that gets the image. Absent ones do not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RootDeviceHints {
    /// Name of the device, such as `/dev/sda`.
    pub device_name: Option<Arc<str>>,
    /// Position on the SCSI bus.
    pub hctl: Option<Arc<str>>,
    /// Further hints by name, ordered by name. Rules only compare them.
    pub others: Vec<(Arc<str>, Arc<str>)>,
}

/// Wanted RAID volumes. An absent list leaves its volumes alone, an empty one deletes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RaidWish {
    /// Volumes of the controllers.
    pub hardware: Option<Vec<RaidVolume>>,
    /// Volumes of the operating system.
    pub software: Option<Vec<RaidVolume>>,
}

/// RAID volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RaidVolume {
    /// Word for the RAID level.
    pub level: Arc<str>,
    /// Name of the volume.
    pub name: Arc<str>,
    /// Whether the image goes on this software volume.
    pub is_root: bool,
    /// Further properties by name, ordered by name. Rules only compare them.
    pub others: Vec<(Arc<str>, Arc<str>)>,
}
