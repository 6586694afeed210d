//! The artifacts that a node boots: three texts that together identify a boot (BOS reference 5.2).

use std::sync::Arc;

use crate::core::time::Timestamp;

/// Kernel, kernel parameters and initial RAM disk. A member that was never given is `None`, which differs from an empty
/// text.
///
/// Thousands of components share one image, so the texts are shared too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct BootArtifacts {
    /// S3 path of the kernel; empty: no kernel is wanted.
    pub kernel: Option<Arc<str>>,
    /// The complete kernel command line.
    pub kernel_parameters: Option<Arc<str>>,
    /// S3 path of the initial RAM disk.
    pub initrd: Option<Arc<str>>,
    /// Time at which the token of these artifacts was stored. Never part of a comparison of boots.
    pub timestamp: Option<Timestamp>,
}

impl BootArtifacts {
    /// Returns three empty texts: nothing is booted or wanted.
    pub fn empty() -> Self {
        let nothing = Some(Arc::default());
        Self { kernel: nothing.clone(), kernel_parameters: nothing.clone(), initrd: nothing, timestamp: None }
    }

    /// Returns whether a kernel is named, that is, whether the node should be on (BOS reference 5.2, "no boot wanted").
    pub fn kernel_wanted(&self) -> bool {
        !text(&self.kernel).is_empty()
    }

    /// Returns whether all three texts are empty or missing.
    pub fn is_empty(&self) -> bool {
        [&self.kernel, &self.kernel_parameters, &self.initrd]
            .into_iter()
            .all(|member| text(member).is_empty())
    }

    /// Returns whether all three texts are the same as in `other`; a missing text differs from an empty one. The time
    /// stamp is left out.
    pub fn same_texts(&self, other: &Self) -> bool {
        same(&self.kernel, &other.kernel)
            && same(&self.initrd, &other.initrd)
            && same(&self.kernel_parameters, &other.kernel_parameters)
    }
}

/// Returns whether a node that reports `actual` runs the `desired` artifacts (BOS reference 5.2, "artifacts match").
///
/// Two absent objects match, one absent object matches nothing. Texts are compared exactly; only for the
/// kernel parameters is an empty text equal to a missing one.
pub fn matches(actual: Option<&BootArtifacts>, desired: Option<&BootArtifacts>) -> bool {
    match (actual, desired) {
        (None, None) => true,
        (Some(actual), Some(desired)) => {
            same(&actual.kernel, &desired.kernel)
                && same(&actual.initrd, &desired.initrd)
                && (same(&actual.kernel_parameters, &desired.kernel_parameters)
                    || text(&actual.kernel_parameters) == text(&desired.kernel_parameters))
        }
        _ => false,
    }
}

fn text(member: &Option<Arc<str>>) -> &str {
    member.as_deref().unwrap_or_default()
}

fn same(one: &Option<Arc<str>>, other: &Option<Arc<str>>) -> bool {
    match (one, other) {
        // Shared texts are common and kernel parameters are long: the address decides most comparisons.
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifacts(kernel: &str, parameters: &str, initrd: &str) -> Option<BootArtifacts> {
        // "-" stands for a missing member.
        let member = |text: &str| (text != "-").then(|| Arc::from(text));
        Some(BootArtifacts {
            kernel: member(kernel),
            kernel_parameters: member(parameters),
            initrd: member(initrd),
            timestamp: None,
        })
    }

    #[test]
    fn boots_match_by_their_three_texts() {
        let rows = [
            (None, None, true),
            (artifacts("", "", ""), None, false),
            (None, artifacts("", "", ""), false),
            (artifacts("k", "p", "i"), artifacts("k", "p", "i"), true),
            (artifacts("k", "p", "i"), artifacts("K", "p", "i"), false),
            (artifacts("k", "p", "i"), artifacts("k", "p ", "i"), false),
            (artifacts("k", "p", "i"), artifacts("k", "p", "j"), false),
            (artifacts("k", "", "i"), artifacts("k", "-", "i"), true),
            (artifacts("k", "-", "i"), artifacts("k", "p", "i"), false),
            (artifacts("-", "", "i"), artifacts("", "", "i"), false),
            (artifacts("k", "", "-"), artifacts("k", "", ""), false),
            (artifacts("k", "a spire_join_token=1", "i"), artifacts("k", "a spire_join_token=2", "i"), false),
        ];
        for (actual, desired, expected) in rows {
            assert_eq!(matches(actual.as_ref(), desired.as_ref()), expected, "{actual:?} {desired:?}");
        }
    }

    #[test]
    fn time_stamps_are_no_part_of_a_boot() {
        let stamped = BootArtifacts { timestamp: Some(Timestamp(7)), ..BootArtifacts::empty() };
        assert!(matches(Some(&stamped), Some(&BootArtifacts::empty())));
        assert!(stamped.same_texts(&BootArtifacts::empty()));
    }

    #[test]
    fn a_kernel_is_wanted_when_it_is_named() {
        for (kernel, wanted) in [("-", false), ("", false), ("s3://boot/kernel", true)] {
            let artifacts = artifacts(kernel, "p", "i").expect("built");
            assert_eq!(artifacts.kernel_wanted(), wanted, "{kernel}");
        }
        assert!(BootArtifacts::empty().is_empty());
        assert!(BootArtifacts::default().is_empty());
        assert!(!artifacts("-", "p", "-").expect("built").is_empty());
    }
}
