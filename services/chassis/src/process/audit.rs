//! Audit log: a line for each request that changes something, and for each that is refused.
//!
//! Lines are JSON objects in a chain of seals ([`domain::core::audit`]). A line is written before the answer to its request
//! leaves, and is on the disk a second later. While lines cannot be written they wait, and requests do not: those beyond a
//! bound are lost, which the log tells as soon as it can be written again.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use chrono::{DateTime, SecondsFormat, Utc};
use domain::core::audit::AuditEnd;
use metrics::counter;
use parking_lot::Mutex;
use serde::Serialize;

use super::clock;
use crate::settings::{AuditPlace, AuditSettings};

/// Most lines that wait while none can be written.
const MOST_WAITING: usize = 10_000;

/// Period in which lines are brought to the disk, and in which a file that was moved away is noticed.
const PERIOD: Duration = Duration::from_secs(1);

/// Longest line that is read back.
const LONGEST_LINE: u64 = 1 << 20;

/// Lines that were lost because they could not be written.
const LOST: &str = "reveille_audit_lines_lost_total";

/// Request that changed something or was refused.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AuditRecord<'a> {
    /// Whether the request was let in.
    pub decision: AuditDecision,
    /// Caller by its credentials; empty: it has none that count.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub caller: &'a str,
    /// Tenant for which it was made.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub tenant: &'a str,
    /// Method, such as `PATCH`, or `gRPC`.
    pub method: &'a str,
    /// Path without its query.
    pub path: &'a str,
    /// Rule that decided.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub rule: &'a str,
    /// Reason of a refusal.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'a str,
    /// Status of the answer; `None`: it is not known yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Id of the request, by which events and logs name it too.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub request_id: &'a str,
}

/// Whether a request was let in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditDecision {
    /// The request was let in.
    Allowed,
    /// The request was refused.
    #[default]
    Refused,
}

/// Audit log of a part. Clones share it.
#[derive(Clone)]
pub struct AuditLog(Arc<Mutex<AuditWriter>>);

/// Chain, its destination, and the lines that could not be written yet.
struct AuditWriter {
    /// Name of the part, in each line.
    part: String,
    destination: LineDestination,
    end: AuditEnd,
    /// Members of the lines that wait.
    waiting: VecDeque<String>,
    /// Lines that were lost since the last one that was written.
    lost: u64,
    is_failing: bool,
}

enum LineDestination {
    StandardOutput,
    File(AuditFile),
}

/// File that is written to and may be moved away at any time.
struct AuditFile {
    path: PathBuf,
    /// Open file; `None`: it is opened for the next line.
    open: Option<OpenFile>,
}

struct OpenFile {
    file: Arc<File>,
    inode: u64,
}

impl AuditLog {
    /// Opens the log of the part of that name; `None`: the settings want none.
    ///
    /// # Errors
    /// When the file cannot be used: it cannot be written, another process writes it, or it ends with another text.
    pub fn open(settings: &AuditSettings, part: &str) -> anyhow::Result<Option<Self>> {
        let (destination, end) = match settings.place() {
            AuditPlace::Nowhere => return Ok(None),
            AuditPlace::StandardOutput => (LineDestination::StandardOutput, AuditEnd::default()),
            AuditPlace::Directory(directory) => {
                let path = directory.join(format!("{part}.audit.jsonl"));
                let of = || format!("audit.to: {}", path.display());
                fs::create_dir_all(directory).with_context(of)?;
                let (open, last) = OpenFile::open(&path).with_context(of)?;
                let end = match last {
                    None => AuditEnd::default(),
                    Some(line) => AuditEnd::of_line(&line).map_err(|fault| {
                        anyhow::anyhow!("its last line {fault}; move the file away to begin another one")
                    })?,
                };
                (LineDestination::File(AuditFile { path, open: Some(open) }), end)
            }
        };
        metrics::describe_counter!(LOST, "Lines of the audit log that could not be written");
        let writer = AuditWriter {
            part: part.to_owned(),
            destination,
            end,
            waiting: VecDeque::new(),
            lost: 0,
            is_failing: false,
        };
        Ok(Some(Self(Arc::new(Mutex::new(writer)))))
    }

    /// Adds a line. It is a short write to memory of the system, as that of a log line is.
    pub fn record(&self, record: &AuditRecord<'_>) {
        let at = now();
        let mut writer = self.0.lock();
        let members = members(record, &[("at", &at), ("part", &writer.part)]);
        if writer.waiting.len() >= MOST_WAITING {
            writer.lost += 1;
            counter!(LOST).increment(1);
            return;
        }
        writer.waiting.push_back(members);
        // A failure is tried again each second, not by each request.
        if !writer.is_failing {
            writer.write();
        }
    }

    /// Brings lines to the disk, for ever.
    pub async fn keep(self) -> anyhow::Result<()> {
        loop {
            tokio::time::sleep(PERIOD).await;
            let log = self.clone();
            tokio::task::spawn_blocking(move || log.tidy()).await?;
        }
    }

    /// Brings lines to the disk, without keeping requests from writing meanwhile, and writes what waits.
    fn tidy(&self) {
        let file = self.0.lock().destination.file();
        if let Some(Err(error)) = file.map(|file| file.sync_data()) {
            tracing::warn!(%error, "cannot bring the audit log to the disk");
        }
        self.0.lock().tidy();
    }
}

impl AuditWriter {
    /// Writes the lines that wait, as far as that is possible.
    fn write(&mut self) {
        let written = self.try_write();
        match written {
            Ok(()) if self.is_failing => tracing::info!("the audit log is written again"),
            Err(error) if !self.is_failing => {
                tracing::error!(%error, "cannot write the audit log; lines wait and will be lost");
                self.is_failing = true;
                return;
            }
            Ok(()) | Err(_) => {}
        }
        self.is_failing = !self.waiting.is_empty();
    }

    fn try_write(&mut self) -> io::Result<()> {
        while let Some(members) = self.waiting.front() {
            let mut end = self.end.clone();
            let mut line = end.seal(members);
            line.push('\n');
            self.destination.write(&line, &self.end)?;
            self.end = end;
            self.waiting.pop_front();
        }
        if self.lost > 0 {
            let (at, part, lost) = (now(), &self.part, std::mem::take(&mut self.lost));
            let line = format!("\"at\":\"{at}\",\"part\":\"{part}\",\"lost\":{lost}");
            self.waiting.push_back(line);
            return self.try_write();
        }
        Ok(())
    }

    fn tidy(&mut self) {
        if let LineDestination::File(file) = &mut self.destination {
            file.leave_moved();
        }
        self.write();
    }
}

impl LineDestination {
    /// Returns the open file, if there is one.
    fn file(&self) -> Option<Arc<File>> {
        match self {
            Self::StandardOutput => None,
            Self::File(file) => file.open.as_ref().map(|open| Arc::clone(&open.file)),
        }
    }

    /// Writes a line that follows the end `before`.
    fn write(&mut self, line: &str, before: &AuditEnd) -> io::Result<()> {
        match self {
            Self::StandardOutput => {
                let mut output = io::stdout().lock();
                output.write_all(line.as_bytes())?;
                output.flush()
            }
            Self::File(file) => file.write(line, before),
        }
    }
}

impl AuditFile {
    fn write(&mut self, line: &str, before: &AuditEnd) -> io::Result<()> {
        let open = match &mut self.open {
            Some(open) => open,
            open @ None => open.insert(OpenFile::open_after(&self.path, before)?),
        };
        let size = open.file.metadata()?.len();
        let written = (&*open.file).write_all(line.as_bytes());
        // The written part of the line goes, now or when the file is opened again.
        if written.is_err() && open.file.set_len(size).is_err() {
            self.open = None;
        }
        written
    }

    /// Leaves a file that was moved away.
    fn leave_moved(&mut self) {
        let Some(open) = &self.open else { return };
        if fs::metadata(&self.path).map(|file| file.ino()).ok() != Some(open.inode) {
            self.open = None;
        }
    }
}

impl OpenFile {
    /// Opens a file that is new, or that ends with the line `before`.
    fn open_after(path: &Path, before: &AuditEnd) -> io::Result<Self> {
        let (open, last) = Self::open(path)?;
        match last.map(|line| AuditEnd::of_line(&line)) {
            Some(last) if last.as_ref() != Ok(before) => {
                Err(io::Error::other(format!("{} has lines of another log; move it away", path.display())))
            }
            Some(_) | None => Ok(open),
        }
    }

    /// Opens the file for this process alone, without the rest of a line that a crash left. Returns its last line too.
    fn open(path: &Path) -> io::Result<(Self, Option<String>)> {
        let file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another process writes it")),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let attributes = file.metadata()?;
        let (tail, begin) = tail(&file, attributes.len())?;
        let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let size = begin + whole as u64;
        if size < attributes.len() {
            tracing::warn!(file = %path.display(), "the audit log ended within a line, which is removed");
            file.set_len(size)?;
        }
        let last = String::from_utf8_lossy(&tail[..whole]).lines().last().map(str::to_owned);
        Ok((Self { file: Arc::new(file), inode: attributes.ino() }, last))
    }
}

/// Returns the end of a file, and where it begins.
fn tail(mut file: &File, size: u64) -> io::Result<(Vec<u8>, u64)> {
    let begin = size.saturating_sub(LONGEST_LINE);
    file.seek(SeekFrom::Start(begin))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    Ok((tail, begin))
}

/// Returns the members of a record as JSON, after `first` ones.
fn members(record: &impl Serialize, first: &[(&str, &str)]) -> String {
    let object = serde_json::to_string(record).expect("texts and numbers can be written as JSON");
    let first: String = first.iter().map(|(name, text)| format!("\"{name}\":\"{text}\",")).collect();
    first + &object[1..object.len() - 1]
}

fn now() -> String {
    let now = DateTime::<Utc>::from_timestamp_millis(clock::now().0).unwrap_or_default();
    now.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(directory: &Path) -> AuditLog {
        let to = directory.display().to_string();
        AuditLog::open(&AuditSettings { to }, "gateway").unwrap().unwrap()
    }

    fn record(path: &str) -> AuditRecord<'_> {
        AuditRecord { decision: AuditDecision::Allowed, method: "POST", path, ..AuditRecord::default() }
    }

    fn file(directory: &Path) -> PathBuf {
        directory.join("gateway.audit.jsonl")
    }

    /// Checks the chain of files, one after the other, and returns the paths of their lines.
    fn checked(files: &[PathBuf]) -> Vec<String> {
        let (mut end, mut paths) = (None, Vec::new());
        for file in files {
            for line in fs::read_to_string(file).unwrap().lines() {
                end = Some(AuditEnd::check(end.as_ref(), line).unwrap());
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                paths.push(line["path"].as_str().unwrap_or_default().to_owned());
            }
        }
        paths
    }

    #[test]
    fn chain_goes_on_after_a_restart_and_a_crash_within_a_line() {
        let directory = tempfile::tempdir().unwrap();
        log(directory.path()).record(&record("/a"));
        let mut torn = OpenOptions::new().append(true).open(file(directory.path())).unwrap();
        torn.write_all(b"{\"number\":2,\"pa").unwrap();
        drop(torn);
        log(directory.path()).record(&record("/b\"\n"));
        assert_eq!(checked(&[file(directory.path())]), ["/a", "/b\"\n"]);
        assert_eq!(fs::metadata(file(directory.path())).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn chain_goes_on_in_another_file_when_the_first_is_moved_away() {
        let directory = tempfile::tempdir().unwrap();
        let (path, moved) = (file(directory.path()), directory.path().join("old"));
        let log = log(directory.path());
        log.record(&record("/a"));
        fs::rename(&path, &moved).unwrap();
        log.record(&record("/b"));
        log.tidy();
        log.record(&record("/c"));
        assert_eq!(checked(&[moved, path]), ["/a", "/b", "/c"]);
    }

    #[test]
    fn lines_wait_while_they_cannot_be_written_and_lost_ones_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = file(directory.path());
        let log = log(directory.path());
        log.record(&record("/a"));
        let moved = directory.path().join("old");
        fs::rename(&path, &moved).unwrap();
        fs::create_dir(&path).unwrap();
        log.tidy();
        for _ in 0..MOST_WAITING + 3 {
            log.record(&record("/b"));
        }
        assert!(log.0.lock().is_failing);
        fs::remove_dir(&path).unwrap();
        log.tidy();
        assert!(!log.0.lock().is_failing);
        let paths = checked(&[moved, path.clone()]);
        assert_eq!(paths.len(), 1 + MOST_WAITING + 1);
        assert!(fs::read_to_string(path).unwrap().lines().last().unwrap().contains("\"lost\":3,"));
    }

    #[test]
    fn file_of_another_log_that_is_put_in_place_is_not_continued() {
        let directory = tempfile::tempdir().unwrap();
        let (path, moved) = (file(directory.path()), directory.path().join("old"));
        let log = log(directory.path());
        log.record(&record("/a"));
        fs::copy(&path, &moved).unwrap();
        log.record(&record("/b"));
        fs::rename(&moved, &path).unwrap();
        log.tidy();
        log.record(&record("/c"));
        assert!(log.0.lock().is_failing, "the file lacks a line");
        fs::remove_file(&path).unwrap();
        log.tidy();
        assert_eq!(checked(&[path]), ["/c"]);
    }

    #[test]
    fn file_that_cannot_be_continued_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().display().to_string();
        let open = || AuditLog::open(&AuditSettings { to: to.clone() }, "gateway").map(|log| log.is_some());
        let held = log(directory.path());
        assert!(format!("{:#}", open().unwrap_err()).ends_with("another process writes it"));
        drop(held);
        fs::write(file(directory.path()), "hello\n").unwrap();
        assert!(open().unwrap_err().to_string().contains("move the file away"));
        assert!(!AuditLog::open(&AuditSettings::default(), "gateway").is_ok_and(|log| log.is_some()));
    }
}
