//! Images that can be put on a host: which ones are refused when they are wished for (host reference 1.13, 2.3).

use crate::{core::invalid::Invalid, host::record::spec::HostImage};

/// Schemes of addresses of images.
const SCHEMES: [&str; 5] = ["http", "https", "ftp", "gopher", "oci"];
/// Words for kinds of checksums.
const CHECKSUM_TYPES: [&str; 4] = ["md5", "sha256", "sha512", "auto"];
/// Words for formats of images.
const FORMATS: [&str; 5] = ["raw", "qcow2", "vdi", "vmdk", LIVE_ISO];
/// Format of an image that the host boots, and that leaves its disks alone.
const LIVE_ISO: &str = "live-iso";

/// Checks an image. One without address counts as none.
///
/// # Errors
/// Names the field of the image that breaks a rule.
pub fn check_image(image: &HostImage) -> Result<(), Invalid> {
    if image.url.is_empty() {
        return Ok(());
    }
    let scheme = check_scheme(&image.url)?;
    check_word("checksumType", &image.checksum_type, &CHECKSUM_TYPES)?;
    check_word("format", &image.format, &FORMATS)?;
    check_checksum(image, scheme == "oci")
}

fn check_scheme(url: &str) -> Result<&str, Invalid> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    if rest.is_empty() || !SCHEMES.contains(&scheme) {
        let reason = format!("'{url}' is not an address that begins with {}", SCHEMES.join("://, ") + "://");
        return Err(Invalid::new("url", reason));
    }
    Ok(scheme)
}

fn check_word(field: &str, word: &str, words: &[&str]) -> Result<(), Invalid> {
    if word.is_empty() || words.contains(&word) {
        return Ok(());
    }
    Err(Invalid::new(field, format!("'{word}' is none of {}", words.join(", "))))
}

/// An OCI registry vouches for its images itself, and a live image is not written.
fn check_checksum(image: &HostImage, is_oci: bool) -> Result<(), Invalid> {
    let has_checksum = !image.checksum.is_empty();
    if is_oci && has_checksum {
        return Err(Invalid::new("checksum", "must be empty for an OCI image"));
    }
    if !is_oci && !has_checksum && &*image.format != LIVE_ISO {
        return Err(Invalid::new("checksum", "is required unless the image is an OCI image or a live ISO"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_refused_by_field() {
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
        ] {
            let image = HostImage {
                url: url.into(),
                checksum: checksum.into(),
                checksum_type: kind.into(),
                format: format.into(),
                ..HostImage::default()
            };
            let field = check_image(&image).err().map_or(String::new(), |invalid| invalid.field);
            assert_eq!(field, refused, "{image:?}");
        }
    }
}
