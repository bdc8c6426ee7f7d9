//! Registration of completions, and man pages.

use std::io::{self, Write};
use std::path::PathBuf;

use clap_complete::Shell;
use clap_complete::env::Shells;

use super::complete::VARIABLE;

/// Print the script by which a shell completes commands, flags, and the names of resources
///
/// The script asks this program for each completion, and belongs to its version: load it when the
/// shell starts. For "kubectl dbplane", link the program as kubectl_complete-dbplane into a folder
/// of your PATH.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETION_HELP)]
pub struct Completion {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const COMPLETION_HELP: &str = "Examples:
  dbplane completion bash    in ~/.bashrc: source <(dbplane completion bash)
  dbplane completion zsh     in ~/.zshrc: source <(dbplane completion zsh)
  dbplane completion fish    in ~/.config/fish/config.fish: dbplane completion fish | source

Exit status:
  0  it was printed
  1  it cannot be written
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
    /// Writes the script to `out`.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn run(&self, out: &mut impl Write) -> io::Result<()> {
        let name = self.shell.to_string();
        let shells = Shells::builtins();
        let shell = shells
            .completer(&name)
            .ok_or_else(|| io::Error::other(format!("there are no completions for {name}")))?;
        let mut text = Vec::new();
        shell.write_registration(VARIABLE, "dbplane", "dbplane", "dbplane", &mut text)?;
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
