//! Files that are read again when they change.

use std::{fs, io, os::unix::fs::MetadataExt, path::PathBuf};

/// A file that may be replaced at any time. A check costs one system call, so that every call can afford it; file
/// notifications would need a task and do not work on all file systems.
#[derive(Debug)]
pub struct WatchedFile {
    path: PathBuf,
    /// Stamp of the last check; the inner `None` is a file that could not be checked.
    seen: Option<Option<FileStamp>>,
}

/// Attributes that distinguish a changed file. The time of the inode changes with the content, with the permissions,
/// which may have been the reason of a failed read, and with a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

/// Content of the file, or the reason why it cannot be read.
pub type FileContent = Result<String, String>;

impl WatchedFile {
    /// Creates a file that was not checked yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, seen: None }
    }

    /// Path of the file for texts.
    pub fn shown(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// Returns the content, if the file has changed since the last check.
    pub fn changed_content(&mut self) -> Option<FileContent> {
        let readable = self.changed()?;
        let content = readable.and_then(|()| fs::read_to_string(&self.path));
        Some(content.map_err(|error| error.to_string()))
    }

    /// Returns whether the file has changed since the last check.
    pub fn has_changed(&mut self) -> bool {
        self.changed().is_some()
    }

    /// Takes the stamp before the caller reads the file: the next check notices a change in between.
    fn changed(&mut self) -> Option<io::Result<()>> {
        let stamp = self.stamp();
        let now = stamp.as_ref().ok().copied();
        if self.seen == Some(now) {
            return None;
        }
        self.seen = Some(now);
        Some(stamp.map(|_| ()))
    }

    /// Returns whether every user of this machine may read the file.
    pub fn is_public(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|file| file.mode() & 0o004 != 0)
    }

    fn stamp(&self) -> io::Result<FileStamp> {
        let file = fs::metadata(&self.path)?;
        Ok(FileStamp {
            inode: file.ino(),
            size: file.size(),
            changed: (file.ctime(), file.ctime_nsec()),
            modified: (file.mtime(), file.mtime_nsec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_returned_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut file = WatchedFile::new(path.clone());
        assert!(file.changed_content().unwrap().is_err());
        assert_eq!(file.changed_content(), None, "still missing");
        fs::write(&path, "one").unwrap();
        assert_eq!(file.changed_content(), Some(Ok("one".into())));
        assert_eq!(file.changed_content(), None);
        let next = directory.path().join("next");
        fs::write(&next, "two").unwrap();
        fs::rename(&next, &path).unwrap();
        assert_eq!(file.changed_content(), Some(Ok("two".into())), "replaced by one of the same size");
        fs::write(&path, b"\xff").unwrap();
        assert!(file.changed_content().unwrap().unwrap_err().contains("UTF-8"));
        fs::remove_file(&path).unwrap();
        assert!(file.changed_content().unwrap().is_err());
        assert_eq!(file.changed_content(), None);
    }
}
