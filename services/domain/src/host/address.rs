//! Addresses of BMCs, and abilities of hosts behind them (host reference 1.20).

use std::net::{IpAddr, Ipv6Addr};

/// Address of a BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmcAddress {
    /// Protocol and vendor.
    pub family: BmcFamily,
    /// Whether calls go without TLS, where the protocol has the choice.
    pub is_plain: bool,
    /// Host name or IP address, an IPv6 address without brackets.
    pub host: String,
    /// Port; `None`: the usual one of the protocol.
    pub port: Option<u16>,
    /// Path of the system at the BMC, with a slash first; empty: none is named.
    pub path: String,
}

/// Protocol and vendor of a BMC, and the way in which its hosts boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BmcFamily {
    /// IPMI.
    Ipmi,
    /// A virtual machine that speaks IPMI.
    Libvirt,
    /// Redfish, and boot over the network.
    Redfish,
    /// Redfish of an iLO 5, and boot over the network.
    Ilo5,
    /// Redfish of an iDRAC, and boot over the network.
    Idrac,
    /// Redfish, and boot from virtual media.
    RedfishVirtualMedia,
    /// Redfish of an iLO 5, and boot from virtual media.
    Ilo5VirtualMedia,
    /// Redfish of an iDRAC, and boot from virtual media.
    IdracVirtualMedia,
    /// Redfish, and boot over HTTP by UEFI.
    RedfishUefiHttp,
}

impl BmcFamily {
    /// Every family.
    pub const ALL: [Self; 9] = [
        Self::Ipmi,
        Self::Libvirt,
        Self::Redfish,
        Self::Ilo5,
        Self::Idrac,
        Self::RedfishVirtualMedia,
        Self::Ilo5VirtualMedia,
        Self::IdracVirtualMedia,
        Self::RedfishUefiHttp,
    ];

    /// The word before the transport in addresses.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ipmi => "ipmi",
            Self::Libvirt => "libvirt",
            Self::Redfish => "redfish",
            Self::Ilo5 => "ilo5-redfish",
            Self::Idrac => "idrac-redfish",
            Self::RedfishVirtualMedia => "redfish-virtualmedia",
            Self::Ilo5VirtualMedia => "ilo5-virtualmedia",
            Self::IdracVirtualMedia => "idrac-virtualmedia",
            Self::RedfishUefiHttp => "redfish-uefihttp",
        }
    }

    /// Returns whether the BMC speaks Redfish: it has RAID, firmware, inspection out of band, and secure boot.
    pub fn is_redfish(self) -> bool {
        match self {
            Self::Ipmi | Self::Libvirt => false,
            Self::Redfish
            | Self::Ilo5
            | Self::Idrac
            | Self::RedfishVirtualMedia
            | Self::Ilo5VirtualMedia
            | Self::IdracVirtualMedia
            | Self::RedfishUefiHttp => true,
        }
    }

    /// Returns whether hosts boot from an image without a provisioning network, and so without a slot.
    pub fn boots_from_image(self) -> bool {
        match self {
            Self::RedfishVirtualMedia
            | Self::Ilo5VirtualMedia
            | Self::IdracVirtualMedia
            | Self::RedfishUefiHttp => true,
            Self::Ipmi | Self::Libvirt | Self::Redfish | Self::Ilo5 | Self::Idrac => false,
        }
    }
}

/// Reason for which a text is no address of a BMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressFlaw {
    /// The protocol is not known.
    Scheme,
    /// The host is neither a name nor an IP address.
    Host,
    /// The port is no number of a port.
    Port,
}

impl AddressFlaw {
    /// Words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Scheme => "the protocol of the BMC address is not known",
            Self::Host => "the BMC address has neither an IP address nor a host name",
            Self::Port => "the BMC address has a port that is not from 1 to 65535",
        }
    }
}

impl BmcAddress {
    /// Reads an address. A text without a protocol is one of IPMI.
    ///
    /// # Errors
    /// The text is no address.
    pub fn parse(text: &str) -> Result<Self, AddressFlaw> {
        let (scheme, rest) = split_scheme(text.trim());
        let (family, is_plain) = read_scheme(scheme).ok_or(AddressFlaw::Scheme)?;
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let (host, port) = split_port(authority)?;
        if !is_host(host) {
            return Err(AddressFlaw::Host);
        }
        let path = path.trim_end_matches('/').to_owned();
        Ok(Self { family, is_plain, host: host.to_owned(), port, path })
    }

    /// Returns the base URL of the BMC, without the path of a system.
    pub fn base_url(&self) -> String {
        let scheme = if self.is_plain { "http" } else { "https" };
        let host = match self.host.parse::<Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => self.host.clone(),
        };
        match self.port {
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => format!("{scheme}://{host}"),
        }
    }
}

/// Splits a text into protocol and rest. A host and its port are no protocol.
fn split_scheme(text: &str) -> (&str, &str) {
    if let Some((scheme, rest)) = text.split_once("://") {
        return (scheme, rest);
    }
    match text.split_once(':') {
        Some((scheme, rest)) if read_scheme(scheme).is_some() => (scheme, rest),
        Some(_) | None => (BmcFamily::Ipmi.word(), text),
    }
}

/// Returns family and transport of a protocol. IPMI has no choice of a transport.
fn read_scheme(scheme: &str) -> Option<(BmcFamily, bool)> {
    let (word, is_plain, has_transport) = match scheme.split_once('+') {
        None => (scheme, false, false),
        Some((word, "http")) => (word, true, true),
        Some((word, "https")) => (word, false, true),
        Some(_) => return None,
    };
    let family = BmcFamily::ALL.into_iter().find(|family| family.word() == word)?;
    (family.is_redfish() || !has_transport).then_some((family, is_plain))
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), AddressFlaw> {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match authority.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => (host, Some(port)),
            Some(_) | None => (authority, None),
        },
    };
    let port = port.filter(|port| !port.is_empty()).map(str::parse::<u16>).transpose();
    match port {
        Ok(Some(0)) | Err(_) => Err(AddressFlaw::Port),
        Ok(port) => Ok((host, port)),
    }
}

fn is_host(host: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.parse::<IpAddr>().is_ok()
        || (host.len() <= 253 && host.trim_end_matches('.').split('.').all(is_label))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn addresses_are_read_as_the_original_reads_them() {
        let mut table = String::new();
        for text in [
            "10.0.0.1",
            "10.0.0.1:6230",
            "bmc-1.example.org",
            "ipmi://10.0.0.1",
            "ipmi:10.0.0.1",
            "libvirt://10.0.0.1:6233",
            "redfish://10.0.0.1/redfish/v1/Systems/1",
            "redfish:bmc/redfish/v1/Systems/1/",
            "redfish+http://[fd00::1]:8000/redfish/v1/Systems/1",
            "redfish-virtualmedia+https://bmc:8443/redfish/v1/Systems/1?x=y",
            "ilo5-redfish://bmc",
            "idrac-virtualmedia+http://bmc",
            "redfish-uefihttp://bmc/",
            "ilo5://bmc",
            "irmc://bmc",
            "ipmi+http://bmc",
            "redfish+ftp://bmc",
            "redfish://",
            "redfish://b!mc",
            "redfish://bmc:0",
            "redfish://bmc:99999",
            "",
        ] {
            let shown = match BmcAddress::parse(text) {
                Ok(address) if address.family.is_redfish() => {
                    format!("{} {} {}", address.family.word(), address.base_url(), address.path)
                }
                Ok(address) => format!("{} {} {:?}", address.family.word(), address.host, address.port),
                Err(flaw) => flaw.words().to_owned(),
            };
            writeln!(table, "{text:?}: {shown}").unwrap();
        }
        expect![[r#"
            "10.0.0.1": ipmi 10.0.0.1 None
            "10.0.0.1:6230": ipmi 10.0.0.1 Some(6230)
            "bmc-1.example.org": ipmi bmc-1.example.org None
            "ipmi://10.0.0.1": ipmi 10.0.0.1 None
            "ipmi:10.0.0.1": ipmi 10.0.0.1 None
            "libvirt://10.0.0.1:6233": libvirt 10.0.0.1 Some(6233)
            "redfish://10.0.0.1/redfish/v1/Systems/1": redfish https://10.0.0.1 /redfish/v1/Systems/1
            "redfish:bmc/redfish/v1/Systems/1/": redfish https://bmc /redfish/v1/Systems/1
            "redfish+http://[fd00::1]:8000/redfish/v1/Systems/1": redfish http://[fd00::1]:8000 /redfish/v1/Systems/1
            "redfish-virtualmedia+https://bmc:8443/redfish/v1/Systems/1?x=y": redfish-virtualmedia https://bmc:8443 /redfish/v1/Systems/1
            "ilo5-redfish://bmc": ilo5-redfish https://bmc 
            "idrac-virtualmedia+http://bmc": idrac-virtualmedia http://bmc 
            "redfish-uefihttp://bmc/": redfish-uefihttp https://bmc 
            "ilo5://bmc": the protocol of the BMC address is not known
            "irmc://bmc": the protocol of the BMC address is not known
            "ipmi+http://bmc": the protocol of the BMC address is not known
            "redfish+ftp://bmc": the protocol of the BMC address is not known
            "redfish://": the BMC address has neither an IP address nor a host name
            "redfish://b!mc": the BMC address has neither an IP address nor a host name
            "redfish://bmc:0": the BMC address has a port that is not from 1 to 65535
            "redfish://bmc:99999": the BMC address has a port that is not from 1 to 65535
            "": the BMC address has neither an IP address nor a host name
        "#]].assert_eq(&table);
    }
}
