//! What is printed: headlines, commands with their output, and what was checked.

use std::cell::Cell;
use std::io::IsTerminal;
use std::process::{Command, Stdio};

use super::environment::Environment;
use super::support::{Error, Result};

/// Writes to standard output, in colour where that is a terminal.
#[derive(Debug)]
pub struct Terminal {
    colour: bool,
    steps: Cell<u32>,
}

/// What a command printed, on both of its outputs, and whether it succeeded.
#[derive(Debug)]
pub struct Shown {
    pub text: String,
    pub success: bool,
}

impl Terminal {
    pub fn new() -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { colour, steps: Cell::new(0) }
    }

    /// Begins a numbered step.
    pub fn step(&self, headline: &str) {
        self.steps.set(self.steps.get() + 1);
        println!("\n{}", self.paint("1", &format!("{}. {headline}", self.steps.get())));
    }

    pub fn print(&self, text: &str) {
        println!("{text}");
    }

    /// Says what was found to be as it should.
    pub fn checked(&self, what: &str) {
        println!("   {} {what}", self.paint("32", "✓"));
    }

    /// Checks, and says so; an error that says what was not so.
    pub fn check(&self, holds: bool, what: &str) -> Result<()> {
        if !holds {
            return Err(Error::new(format!("not so: {what}")));
        }
        self.checked(what);
        Ok(())
    }

    /// Shows a command line, runs it in bash as the cluster's administrator, and shows what it printed.
    pub async fn show(&self, env: &Environment, line: &str) -> Result<Shown> {
        println!("   {}", self.paint("36", &format!("$ {line}")));
        let shown = run(env, line).await?;
        for line in shown.text.lines() {
            println!("   {}", self.paint("2", line));
        }
        Ok(shown)
    }

    /// The same for a command that has to succeed; what it printed.
    pub async fn run(&self, env: &Environment, line: &str) -> Result<String> {
        let shown = self.show(env, line).await?;
        if shown.success { Ok(shown.text) } else { Err(Error::new(format!("this failed: {line}"))) }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

async fn run(env: &Environment, line: &str) -> Result<Shown> {
    let mut command = Command::new("bash");
    // One stream for both outputs keeps the order in which a terminal would show them.
    command.arg("-c").arg(format!("set -o pipefail; exec 2>&1; {line}"));
    env.configure(&mut command);
    command.stdin(Stdio::null());
    let mut command = tokio::process::Command::from(command);
    let output = command.kill_on_drop(true).output().await.map_err(Error::while_doing("running bash"))?;
    Ok(Shown { text: String::from_utf8_lossy(&output.stdout).into_owned(), success: output.status.success() })
}
