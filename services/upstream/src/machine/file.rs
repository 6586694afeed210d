//! A machine file that is read again when it changes.

use std::{path::Path, sync::Arc};

use parking_lot::Mutex;

use super::{Machine, MachineError};
use crate::watched::WatchedFile;

/// A machine file in use. Looking at it costs one system call as long as it stays the same.
#[derive(Debug)]
pub struct MachineFile {
    path: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: WatchedFile,
    good: Arc<Machine>,
    broken: Option<String>,
}

impl MachineFile {
    /// Reads the file for the first time, and checks whether it makes sense as a whole.
    ///
    /// # Errors
    /// Names the file, the place and the reason.
    pub fn open(path: &Path) -> Result<Self, MachineError> {
        let mut file = WatchedFile::new(path.to_owned());
        let shown = path.display().to_string();
        let news = file.news().expect("the first look at a file is news");
        match news.and_then(|text| Machine::parse(&text)) {
            Ok(machine) => {
                let state = State { file, good: Arc::new(machine), broken: None };
                Ok(Self { path: shown, state: Mutex::new(state) })
            }
            Err(reason) => Err(MachineError { path: shown, reason }),
        }
    }

    /// What the file said when it last made sense. A warning tells once when it makes no sense any more.
    pub fn current(&self) -> Arc<Machine> {
        let mut state = self.state.lock();
        self.look(&mut state);
        Arc::clone(&state.good)
    }

    /// What the file says now.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn newest(&self) -> Result<Arc<Machine>, MachineError> {
        let mut state = self.state.lock();
        self.look(&mut state);
        match &state.broken {
            Some(reason) => Err(MachineError { path: self.path.clone(), reason: reason.clone() }),
            None => Ok(Arc::clone(&state.good)),
        }
    }

    fn look(&self, state: &mut State) {
        let Some(news) = state.file.news() else { return };
        match news.and_then(|text| Machine::parse(&text)) {
            Ok(machine) => {
                tracing::info!(file = self.path, nodes = machine.nodes.len(), "machine file read again");
                (state.good, state.broken) = (Arc::new(machine), None);
            }
            Err(reason) => {
                tracing::warn!(file = self.path, reason, "machine file cannot be used as it is now");
                state.broken = Some(reason);
            }
        }
    }
}
