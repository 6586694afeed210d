//! Files of the signer, in the data directory or given by the settings.

use std::{fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path};

use anyhow::Context as _;

pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Replaces a file as a whole, which only the owner of the process may read.
pub(super) fn write(path: &Path, texts: &[String]) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(failed)?;
    }
    let draft = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft);
    let written = file.and_then(|mut file| {
        file.write_all(texts.concat().as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&draft, path)).with_context(failed)
}
