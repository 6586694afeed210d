//! Values made from files, made again when the files change.

use std::{path::PathBuf, sync::Arc};

use parking_lot::Mutex;

use crate::process::watched_file::WatchedFile;

/// Most readings of files that are replaced while they are read. A replacement is over within one or two.
const MOST_READINGS: usize = 5;

/// Value made from files. A check costs a system call for each file, little beside the handshake or the request that needs
/// the value.
pub struct ReloadedValue<T> {
    /// Word for the files in the log.
    what: &'static str,
    make: Box<dyn Fn() -> anyhow::Result<T> + Send + Sync>,
    state: Mutex<ReloadState<T>>,
}

struct ReloadState<T> {
    files: Vec<WatchedFile>,
    current: Arc<T>,
}

impl<T> ReloadedValue<T> {
    /// Makes the value of certificates for the first time.
    ///
    /// # Errors
    /// As `make`.
    pub fn new(
        files: impl IntoIterator<Item = PathBuf>,
        make: impl Fn() -> anyhow::Result<T> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        Self::named("certificates", files, make)
    }

    /// Makes the value of files that the log calls `what` for the first time.
    ///
    /// # Errors
    /// As `make`.
    pub fn named(
        what: &'static str,
        files: impl IntoIterator<Item = PathBuf>,
        make: impl Fn() -> anyhow::Result<T> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let mut files: Vec<_> = files.into_iter().map(WatchedFile::new).collect();
        // The stamps come before the content, so that the first use notices a change in between.
        have_changed(&mut files);
        let current = Arc::new(make_consistent(&mut files, &make)?);
        Ok(Self { what, make: Box::new(make), state: Mutex::new(ReloadState { files, current }) })
    }

    /// Returns the value of the files as they are now. While they cannot be used, as in the middle of a replacement, the
    /// previous value stays.
    pub fn current(&self) -> Arc<T> {
        let mut state = self.state.lock();
        if have_changed(&mut state.files) {
            match make_consistent(&mut state.files, &self.make) {
                Ok(value) => {
                    state.current = Arc::new(value);
                    tracing::info!("{} read again", self.what);
                }
                Err(error) => {
                    let reason = crate::cause_first(&error).to_string();
                    tracing::warn!(reason, "{} cannot be used, the previous ones stay in use", self.what);
                }
            }
        }
        Arc::clone(&state.current)
    }
}

/// Returns whether a file has changed since the last check of it.
fn have_changed(files: &mut [WatchedFile]) -> bool {
    let mut changed = false;
    for file in files {
        changed |= file.has_changed();
    }
    changed
}

/// Makes a value. If a file was replaced meanwhile, the certificate and the key that were read may not fit, and are read
/// again.
fn make_consistent<T>(files: &mut [WatchedFile], make: impl Fn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let mut made = make();
    for _ in 1..MOST_READINGS {
        if made.is_ok() || !have_changed(files) {
            break;
        }
        made = make();
    }
    made
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    #[test]
    fn unusable_files_keep_the_previous_value() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("number");
        fs::write(&path, "1").unwrap();
        let read = path.clone();
        let value = ReloadedValue::new([path.clone()], move || Ok(fs::read_to_string(&read)?.parse::<u8>()?));
        let value = value.unwrap();
        for (written, expected) in [("1", 1), ("22", 22), ("half", 22), ("7", 7)] {
            fs::write(&path, written).unwrap();
            assert_eq!(*value.current(), expected, "{written}");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(*value.current(), 7, "removed");
    }

    #[test]
    fn files_replaced_while_they_are_read_are_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("certificate");
        let (replaced, readings) = (path.clone(), AtomicUsize::new(0));
        let value = ReloadedValue::new([path], move || {
            let reading = readings.fetch_add(1, Ordering::Relaxed);
            if reading < 2 {
                fs::write(&replaced, "next".repeat(reading))?;
                anyhow::bail!("the key is that of the next certificate");
            }
            Ok(reading)
        });
        assert_eq!(*value.unwrap().current(), 2);
    }
}
