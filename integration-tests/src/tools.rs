//! Programs that others wrote and that stand in for the systems around a mesh.

use std::path::{Path, PathBuf};

/// Set by `integration-tests/run` when the tools of the tests have to be there.
const TOOLS: &str = "REVEILLE_TEST_TOOLS";

/// Returns the path of a file that a Python package brings, such as a program that is not written in Python; `None` where the
/// tools of the tests are not installed, and need not be.
///
/// # Panics
/// When the tools are required and this file is missing.
#[must_use]
pub fn package_file(path: &str) -> Option<PathBuf> {
    let python = program("python")?;
    let versions = python.parent()?.parent()?.join("lib").read_dir().ok()?;
    let mut files = versions.flatten().map(|version| version.path().join("site-packages").join(path));
    let found = files.find(|file| file.exists());
    assert!(found.is_some() || std::env::var_os(TOOLS).is_none(), "{path} is missing");
    found
}

/// Returns the path of a Python program; `None` where the tools of the tests are not installed, and need not be.
///
/// # Panics
/// When the tools are required and this one is missing.
#[must_use]
pub fn program(name: &str) -> Option<PathBuf> {
    let needed = std::env::var_os(TOOLS);
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools");
    let tools = needed.as_ref().map_or_else(usual, PathBuf::from);
    let program = tools.join("venv/bin").join(name);
    if program.exists() {
        return Some(program);
    }
    assert!(needed.is_none(), "{} is missing", program.display());
    eprintln!("not tested: {} is missing, which integration-tests/run installs", program.display());
    None
}
