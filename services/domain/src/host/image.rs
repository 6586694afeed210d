//! Images that can be put on a host: which ones are refused when they are wished for (host reference 1.13, 2.3).

use crate::{core::invalid::Invalid, host::record::spec::HostImage};

/// Schemes of addresses of images.
const SCHEMES: [&str; 5] = ["http", "https", "ftp", "gopher", "oci"];
/// Begin of the address of an image in an OCI registry.
const OCI: &str = "oci://";
/// Words for kinds of checksums.
const CHECKSUM_TYPES: [&str; 4] = ["md5", "sha256", "sha512", "auto"];
/// Words for formats of images.
const FORMATS: [&str; 5] = ["raw", "qcow2", "vdi", "vmdk", LIVE_ISO];
/// Format of an image that the host boots, and that leaves its disks alone.
const LIVE_ISO: &str = "live-iso";

/// Returns every rule that an image breaks, each with its field. One without address counts as none.
pub fn image_flaws(image: &HostImage) -> Vec<Invalid> {
    if image.url.is_empty() {
        return Vec::new();
    }
    let flaws = [
        scheme_flaw(&image.url),
        word_flaw("checksumType", &image.checksum_type, &CHECKSUM_TYPES),
        word_flaw("format", &image.format, &FORMATS),
        checksum_flaw(image),
    ];
    flaws.into_iter().flatten().collect()
}

fn scheme_flaw(url: &str) -> Option<Invalid> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let is_known = !rest.is_empty() && SCHEMES.contains(&scheme);
    let reason = || format!("'{url}' is not an address that begins with {}", SCHEMES.join("://, ") + "://");
    (!is_known).then(|| Invalid::new("url", reason()))
}

fn word_flaw(field: &str, word: &str, words: &[&str]) -> Option<Invalid> {
    let is_known = word.is_empty() || words.contains(&word);
    (!is_known).then(|| Invalid::new(field, format!("'{word}' is none of {}", words.join(", "))))
}

/// An OCI registry vouches for its images itself, and a live image is not written.
fn checksum_flaw(image: &HostImage) -> Option<Invalid> {
    let has_checksum = !image.checksum.is_empty();
    let is_oci = image.url.starts_with(OCI);
    if is_oci && has_checksum {
        return Some(Invalid::new("checksum", "must be empty for an OCI image"));
    }
    let is_needed = !is_oci && &*image.format != LIVE_ISO;
    let reason = "is required unless the image is an OCI image or a live ISO";
    (is_needed && !has_checksum).then(|| Invalid::new("checksum", reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flaw_of_an_image_is_named() {
        for (url, checksum, kind, format, refused) in [
            ("", "", "", "", ""),
            ("http://a/b", "c", "", "", ""),
            ("https://a/b", "c", "sha256", "qcow2", ""),
            ("ftp://a/b", "c", "auto", "raw", ""),
            ("gopher://a/b", "c", "md5", "vmdk", ""),
            ("file:///a", "c", "", "", "url"),
            ("a/b", "c", "", "", "url"),
            ("http://", "c", "", "", "url"),
            ("http://a/b", "", "", "", "checksum"),
            ("http://a/b", "", "", "live-iso", ""),
            ("http://a/b", "c", "", "live-iso", ""),
            ("oci://a/b", "", "", "", ""),
            ("oci://a/b", "c", "", "", "checksum"),
            ("http://a/b", "c", "crc", "", "checksumType"),
            ("http://a/b", "c", "", "iso", "format"),
            ("file:///a", "", "crc", "iso", "url checksumType format checksum"),
        ] {
            let image = HostImage {
                url: url.into(),
                checksum: checksum.into(),
                checksum_type: kind.into(),
                format: format.into(),
                ..HostImage::default()
            };
            let fields: Vec<_> = image_flaws(&image).into_iter().map(|invalid| invalid.field).collect();
            assert_eq!(fields.join(" "), refused, "{image:?}");
        }
    }
}
