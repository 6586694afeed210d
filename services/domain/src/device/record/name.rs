//! Names of devices and fleets, checked once at the edge.

use std::{borrow::Borrow, fmt, sync::Arc};

use crate::core::invalid::Invalid;

/// Longest name of a resource, in bytes.
const LONGEST_NAME: usize = 253;

/// Prefix of the kind in the owner of a device or a template version.
const FLEET: &str = "Fleet/";

/// Alphabet of the names that are made of keys: base 32 with extended hexadecimal digits, in lower case.
const BASE_32_HEX: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// Name of a device: a DNS subdomain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceName(Arc<str>);

impl DeviceName {
    /// Parses `text` as a name.
    ///
    /// # Errors
    /// When the text is no DNS subdomain of at most 253 characters.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        check_subdomain("metadata.name", text)?;
        Ok(Self(text.into()))
    }

    /// Makes the name of the device whose public key has that `digest`: base 32 without padding (device reference
    /// 3.3).
    pub fn of_key(digest: &[u8; 32]) -> Self {
        let bit = |at: usize| digest.get(at / 8).is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0);
        let symbols = (0..digest.len() * 8).step_by(5).map(|start| {
            let value = (start..start + 5).fold(0, |value, at| value * 2 + usize::from(bit(at)));
            char::from(BASE_32_HEX[value])
        });
        Self(symbols.collect::<String>().into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as a text to keep.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl Borrow<str> for DeviceName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Name of a fleet: a DNS subdomain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FleetName(Arc<str>);

impl FleetName {
    /// Parses `text` as a name.
    ///
    /// # Errors
    /// When the text is no DNS subdomain of at most 253 characters.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        check_subdomain("metadata.name", text)?;
        Ok(Self(text.into()))
    }

    /// Parses the owner of a resource, such as `Fleet/kiosk`.
    ///
    /// # Errors
    /// When the owner is no fleet.
    pub fn parse_owner(text: &str) -> Result<Self, Invalid> {
        let name = text.strip_prefix(FLEET);
        let name = name.ok_or_else(|| Invalid::new("metadata.owner", format!("'{text}' is no fleet")))?;
        Self::parse(name).map_err(|invalid| Invalid::new("metadata.owner", invalid.reason))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The fleet as the owner of a resource.
    pub fn owner(&self) -> String {
        format!("{FLEET}{}", self.0)
    }
}

impl fmt::Display for FleetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks that `text` is a DNS subdomain: labels of lower case letters, digits and hyphens, with dots between.
pub(crate) fn check_subdomain(field: &str, text: &str) -> Result<(), Invalid> {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(is_edge)
            && bytes.last().is_some_and(is_edge)
            && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
    };
    if text.len() <= LONGEST_NAME && text.split('.').all(is_label) {
        return Ok(());
    }
    let rule = "lower case letters, digits, - and ., with a letter or a digit at both ends of each part, at most 253";
    Err(Invalid::new(field, format!("'{text}' is not made of {rule}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_subdomains() {
        for good in ["a", "edge-7", "a.b.c", "0", &"a".repeat(253)] {
            assert!(DeviceName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a..b", ".a", "a_b", "ä", &"a".repeat(254)] {
            assert!(DeviceName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_keys_are_base_32() {
        let mut digest = [0; 32];
        digest[..4].copy_from_slice(b"foob");
        let name = DeviceName::of_key(&digest);
        assert_eq!(name.as_str(), format!("cpnmuog{}", "0".repeat(45)));
        assert!(DeviceName::parse(name.as_str()).is_ok());
    }

    #[test]
    fn owners_are_fleets() {
        let fleet = FleetName::parse_owner("Fleet/kiosk").unwrap();
        assert_eq!((fleet.as_str(), &*fleet.owner()), ("kiosk", "Fleet/kiosk"));
        for bad in ["", "kiosk", "Fleet/", "ResourceSync/kiosk"] {
            assert_eq!(FleetName::parse_owner(bad).unwrap_err().field, "metadata.owner", "{bad}");
        }
    }
}
