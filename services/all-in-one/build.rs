//! Records which commit is built, for `reveille --version`.

use std::{env, process::Command};

fn main() {
    // Packages may be built where there is no repository.
    println!("cargo::rerun-if-env-changed=REVEILLE_COMMIT");
    let given = env::var("REVEILLE_COMMIT").ok().filter(|text| !text.is_empty());
    let commit = given.or_else(committed).unwrap_or_else(|| "unknown commit".to_owned());
    println!("cargo::rustc-env=REVEILLE_COMMIT={commit}");
}

/// Returns the short id of the commit and its day; the time of the build would make builds differ.
fn committed() -> Option<String> {
    // The log of the head grows with every commit and every change of the branch.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["log", "-1", "--format=%h %cs"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}
