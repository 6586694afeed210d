//! Completions and man pages, made from the definitions of the commands.

use std::{
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use clap::Command;
use clap_complete::Shell;

/// Name of the program.
const NAME: &str = "reveille";

/// Prints the completions of a shell.
pub(crate) fn completions(mut command: Command, shell: Shell) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, NAME, &mut text);
    ended(printed(&text))
}

/// Prints the man page, or writes one for each command below `directory`.
pub(crate) fn man(command: Command, directory: Option<&Path>) -> ExitCode {
    ended(match directory {
        Some(directory) => {
            std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(command, directory))
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(command).render(&mut text).and_then(|()| printed(&text))
        }
    })
}

fn printed(text: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text).and_then(|()| output.flush())
}

fn ended(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough, such as `head`, is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
