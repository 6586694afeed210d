//! Ready-made settings for the surroundings that machines have.

use clap::ValueEnum;

/// Drivers of all concerns at once. A settings file adds addresses, credentials and authorities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DriverProfile {
    /// A fleet that lives in the process
    #[default]
    Simulated,
    /// HSM, PCS, BSS, CFS, IMS, S3 and TAPMS
    Csm,
    /// SMD, PCS and BSS; manifests in a directory
    Openchami,
    /// No other service: BMCs from a machine file, boot scripts from the gateway
    Redfish,
    /// No other service: bare-metal hosts are the nodes, each behind its own BMC, boot scripts from the gateway
    Metal,
}

impl DriverProfile {
    /// The settings of the profile as a TOML document, below those of files, environment and flags.
    pub fn toml(self) -> &'static str {
        match self {
            Self::Simulated => include_str!("profiles/simulated.toml"),
            Self::Csm => include_str!("profiles/csm.toml"),
            Self::Openchami => include_str!("profiles/openchami.toml"),
            Self::Redfish => include_str!("profiles/redfish.toml"),
            Self::Metal => include_str!("profiles/metal.toml"),
        }
    }
}
