//! A machine file that is read again when it changes.

use std::{path::Path, sync::Arc};

use parking_lot::Mutex;

use super::{Machine, MachineError};
use chassis::process::watched_file::WatchedFile;

/// A machine file in use. Checking an unchanged file costs one system call.
#[derive(Debug)]
pub struct MachineFile {
    path: String,
    state: Mutex<MachineState>,
}

#[derive(Debug)]
struct MachineState {
    file: WatchedFile,
    good: Arc<Machine>,
    broken: Option<String>,
}

impl MachineFile {
    /// Reads the file for the first time, and checks its consistency.
    ///
    /// # Errors
    /// Names the file, the place and the reason.
    pub fn open(path: &Path) -> Result<Self, MachineError> {
        let mut file = WatchedFile::new(path.to_owned());
        let shown = path.display().to_string();
        let content = file.changed_content().expect("the first check of a file reads it");
        match content.and_then(|text| Machine::parse(&text)) {
            Ok(machine) => {
                let state = MachineState { file, good: Arc::new(machine), broken: None };
                Ok(Self { path: shown, state: Mutex::new(state) })
            }
            Err(reason) => Err(MachineError { path: shown, reason }),
        }
    }

    /// Returns the last valid content of the file. The first invalid content is logged as a warning.
    pub fn current(&self) -> Arc<Machine> {
        let mut state = self.state.lock();
        self.reload(&mut state);
        Arc::clone(&state.good)
    }

    /// Returns the current content of the file.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn newest(&self) -> Result<Arc<Machine>, MachineError> {
        let mut state = self.state.lock();
        self.reload(&mut state);
        match &state.broken {
            Some(reason) => Err(MachineError { path: self.path.clone(), reason: reason.clone() }),
            None => Ok(Arc::clone(&state.good)),
        }
    }

    fn reload(&self, state: &mut MachineState) {
        let Some(content) = state.file.changed_content() else { return };
        match content.and_then(|text| Machine::parse(&text)) {
            Ok(machine) => {
                tracing::info!(file = self.path, nodes = machine.nodes.len(), "machine file read again");
                state.good = Arc::new(machine);
                state.broken = None;
            }
            Err(reason) => {
                tracing::warn!(
                    file = self.path,
                    reason,
                    "invalid machine file, the last valid content stays in use"
                );
                state.broken = Some(reason);
            }
        }
    }
}
