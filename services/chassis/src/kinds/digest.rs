//! Short names for sets of boot artifacts.

use std::{collections::HashMap, sync::Arc};

use domain::boot::component::artifacts::BootArtifacts;
use sha2::{Digest, Sha256};

/// Bytes of a digest: 128 bits suffice for the few thousand sets of any machine.
const BYTES: usize = 16;

/// Digests of the boot artifacts in one batch. Components that boot the same image share its texts, and hashing
/// kilobytes for each of thousands would cost more than everything else that is done for them.
#[derive(Default)]
pub struct Digests {
    /// Digests by the addresses of the texts, with the texts, so that no address is used again meanwhile.
    known: HashMap<[Option<usize>; 3], (BootArtifacts, Arc<str>)>,
}

impl Digests {
    /// The digest of artifacts by content, in which missing and empty texts differ. Time stamps do not count.
    pub fn of(&mut self, artifacts: &BootArtifacts) -> Arc<str> {
        let addresses =
            texts(artifacts).map(|text| text.as_ref().map(|text| Arc::as_ptr(text).cast::<u8>().addr()));
        let known = self.known.entry(addresses).or_insert_with(|| (artifacts.clone(), digest(artifacts)));
        Arc::clone(&known.1)
    }
}

fn digest(artifacts: &BootArtifacts) -> Arc<str> {
    let mut hash = Sha256::new();
    for text in texts(artifacts) {
        match text {
            Some(text) => {
                hash.update([1]);
                hash.update(text.len().to_le_bytes());
                hash.update(&**text);
            }
            None => hash.update([0]),
        }
    }
    hash.finalize().iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

fn texts(artifacts: &BootArtifacts) -> [&Option<Arc<str>>; 3] {
    [&artifacts.kernel, &artifacts.kernel_parameters, &artifacts.initrd]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn artifacts([kernel, kernel_parameters, initrd]: [&str; 3]) -> BootArtifacts {
        // "-" stands for a missing text.
        let text = |text: &str| (text != "-").then(|| Arc::from(text));
        BootArtifacts {
            kernel: text(kernel),
            kernel_parameters: text(kernel_parameters),
            initrd: text(initrd),
            timestamp: None,
        }
    }

    #[test]
    fn digests_tell_what_a_boot_comparison_tells_apart() {
        let rows = [["a", "b", "c"], ["ab", "", "c"], ["a", "bc", ""], ["-", "b", "c"], ["", "b", "c"]];
        let mut digests = Digests::default();
        let found: HashSet<_> = rows.iter().map(|row| digests.of(&artifacts(*row))).collect();
        assert_eq!(found.len(), rows.len());
        assert!(found.iter().all(|digest| digest.len() == 2 * BYTES));
    }

    #[test]
    fn equal_texts_have_one_digest_wherever_they_are() {
        let mut digests = Digests::default();
        let [one, other] = [artifacts(["a", "b", "-"]), artifacts(["a", "b", "-"])];
        assert_eq!(digests.of(&one), digests.of(&other));
        assert_eq!(digests.of(&one), Digests::default().of(&one));
    }
}
