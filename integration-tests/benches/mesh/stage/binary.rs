//! The program under measurement.

use std::{path::PathBuf, process::Command};

/// Builds `reveille` as this program was built, with or without optimisation, and gives its path.
///
/// # Panics
/// When it cannot be built.
pub fn build() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    // With both packages named, dependencies have the same features as in the build of this program. Otherwise most of
    // them would be built once more.
    cargo.args(["build", "--quiet", "--package", "integration-tests", "--package", "reveille"]);
    cargo.args(["--bin", "reveille"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let built = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo");
    assert!(built.success(), "reveille cannot be built");
    let own = std::env::current_exe().expect("a path");
    own.ancestors().nth(2).expect("the target directory").join("reveille")
}
