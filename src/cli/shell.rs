//! Shell completions and man pages.

use std::io::{self, Write};
use std::path::PathBuf;

use clap_complete::Shell;

/// Print the completions of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETION_HELP)]
pub struct Completion {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const COMPLETION_HELP: &str = "Examples:
  dbplane completion bash > ~/.local/share/bash-completion/completions/dbplane
  dbplane completion zsh > ~/.zfunc/_dbplane
  dbplane completion fish > ~/.config/fish/completions/dbplane.fish

Exit status:
  0  they were printed
  1  they cannot be written
  2  the command line is wrong";

/// Write the man pages: one for the program, and one for each command
#[derive(Debug, clap::Args)]
#[command(after_help = MAN_HELP)]
pub struct Man {
    /// Directory to write to
    #[arg(long, value_name = "DIRECTORY")]
    dir: PathBuf,
}

const MAN_HELP: &str = "Examples:
  dbplane man --dir ~/.local/share/man/man1

Exit status:
  0  they were written
  1  they cannot be written
  2  the command line is wrong";

impl Completion {
    /// Writes the completions to `out`.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn run(&self, out: &mut impl Write) -> io::Result<()> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(), "dbplane", &mut text);
        out.write_all(&text)
    }
}

impl Man {
    /// Writes the pages to the directory, which is created if it is missing.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn run(&self) -> io::Result<()> {
        std::fs::create_dir_all(&self.dir)?;
        clap_mangen::generate_to(super::command(), &self.dir)
    }
}
