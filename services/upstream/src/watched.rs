//! Files that are read again when they change.

use std::{fs, io, os::unix::fs::MetadataExt, path::PathBuf};

/// A file that others may replace at any time. Looking at it costs one system call, so that it can be done for
/// every call; no task and no notification is needed, which would not work on all file systems.
#[derive(Debug)]
pub(crate) struct WatchedFile {
    path: PathBuf,
    /// What was seen at the last look; the inner `None` is a file that could not be looked at.
    seen: Option<Option<Stamp>>,
}

/// By what a changed file is told from the same one. The time of the inode changes with its content, with its
/// permissions, which may be why it could not be read, and when it is put in place of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

/// What is read, or why it cannot be read.
pub(crate) type Content = Result<String, String>;

impl WatchedFile {
    /// A file that was not looked at yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, seen: None }
    }

    /// The file's path, for texts.
    pub(crate) fn shown(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// The content, if the file is another one than at the last look.
    pub(crate) fn news(&mut self) -> Option<Content> {
        // Before reading: a change in between is seen at the next look.
        let stamp = self.stamp();
        let now = stamp.as_ref().ok().copied();
        if self.seen == Some(now) {
            return None;
        }
        self.seen = Some(now);
        let content = stamp.and_then(|_| fs::read_to_string(&self.path));
        Some(content.map_err(|error| error.to_string()))
    }

    /// Whether everybody on this machine may read the file.
    pub(crate) fn is_public(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|file| file.mode() & 0o004 != 0)
    }

    fn stamp(&self) -> io::Result<Stamp> {
        let file = fs::metadata(&self.path)?;
        Ok(Stamp {
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
    fn news_are_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut file = WatchedFile::new(path.clone());
        assert!(file.news().unwrap().is_err());
        assert_eq!(file.news(), None, "still missing");
        fs::write(&path, "one").unwrap();
        assert_eq!(file.news(), Some(Ok("one".into())));
        assert_eq!(file.news(), None);
        let next = directory.path().join("next");
        fs::write(&next, "two").unwrap();
        fs::rename(&next, &path).unwrap();
        assert_eq!(file.news(), Some(Ok("two".into())), "replaced by one of the same size");
        fs::write(&path, b"\xff").unwrap();
        assert!(file.news().unwrap().unwrap_err().contains("UTF-8"));
        fs::remove_file(&path).unwrap();
        assert!(file.news().unwrap().is_err());
        assert_eq!(file.news(), None);
    }
}
