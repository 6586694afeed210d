//! Arms failpoints, at which parts of a mesh abort.

use std::{collections::BTreeMap, ffi::OsString, fs, path::PathBuf};

use tempfile::TempDir;

/// A directory through which points are armed; see `chassis::process::failpoint`.
pub struct Failpoints {
    directory: TempDir,
}

impl Failpoints {
    /// Creates a directory without armed or passed points.
    ///
    /// # Panics
    /// When the directory cannot be created.
    #[must_use]
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("armed")).expect("a writable directory");
        Self { directory }
    }

    /// Value of [`chassis::process::failpoint::DIRECTORY`] in a part's environment.
    #[must_use]
    pub fn variable(&self) -> OsString {
        self.directory.path().as_os_str().to_owned()
    }

    /// Every point that any part has passed, and how often.
    #[must_use]
    pub fn passed(&self) -> BTreeMap<String, u32> {
        let names = fs::read_to_string(self.directory.path().join("passed")).unwrap_or_default();
        let mut times = BTreeMap::new();
        names.lines().for_each(|name| *times.entry(name.to_owned()).or_default() += 1);
        times
    }

    /// Arms a point: the part that passes it for the `times`th time from now aborts.
    ///
    /// # Panics
    /// When the directory is not writable.
    pub fn arm(&self, name: &str, times: u32) {
        // Renamed into place, so that no part reads half of it.
        let new = self.directory.path().join("new");
        fs::write(&new, times.to_string()).expect("a writable directory");
        fs::rename(new, self.file(name)).expect("a writable directory");
    }

    /// Returns whether the point is armed and no part has aborted at it.
    #[must_use]
    pub fn is_armed(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    /// Disarms the point. Returns whether it was still armed.
    #[must_use]
    pub fn disarm(&self, name: &str) -> bool {
        fs::remove_file(self.file(name)).is_ok()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join("armed").join(name)
    }
}

impl Default for Failpoints {
    fn default() -> Self {
        Self::new()
    }
}
