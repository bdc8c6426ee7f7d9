//! Prints headlines, commands with their output, and results of checks.

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

/// The output of a command on both streams, and its success.
#[derive(Debug)]
pub struct Shown {
    pub text: String,
    pub success: bool,
}

impl Terminal {
    pub fn new() -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self {
            colour,
            steps: Cell::new(0),
        }
    }

    /// Begins a numbered step.
    pub fn step(&self, headline: &str) {
        self.steps.set(self.steps.get() + 1);
        println!(
            "\n{}",
            self.paint("1", &format!("{}. {headline}", self.steps.get()))
        );
    }

    pub fn print(&self, text: &str) {
        println!("{text}");
    }

    /// Prints a passed check.
    pub fn checked(&self, what: &str) {
        println!("   {} {what}", self.paint("32", "✓"));
    }

    /// Prints a passed check, or returns the failed one as an error.
    pub fn check(&self, holds: bool, what: &str) -> Result<()> {
        if !holds {
            return Err(Error::new(format!("not so: {what}")));
        }
        self.checked(what);
        Ok(())
    }

    /// Prints a command, runs it in bash as the cluster's administrator, and prints its output.
    pub async fn show(&self, env: &Environment, line: &str) -> Result<Shown> {
        println!("   {}", self.paint("36", &format!("$ {line}")));
        let shown = run(env, line).await?;
        for line in shown.text.lines() {
            println!("   {}", self.paint("2", line));
        }
        Ok(shown)
    }

    /// Like `show`, for a command that must succeed; returns its output.
    pub async fn run(&self, env: &Environment, line: &str) -> Result<String> {
        let shown = self.show(env, line).await?;
        if shown.success {
            Ok(shown.text)
        } else {
            Err(Error::new(format!("this failed: {line}")))
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

async fn run(env: &Environment, line: &str) -> Result<Shown> {
    let mut command = Command::new("bash");
    // A single stream keeps the order that a terminal would show.
    command
        .arg("-c")
        .arg(format!("set -o pipefail; exec 2>&1; {line}"));
    env.configure(&mut command);
    command.stdin(Stdio::null());
    let mut command = tokio::process::Command::from(command);
    let output = command
        .kill_on_drop(true)
        .output()
        .await
        .map_err(Error::while_doing("running bash"))?;
    Ok(Shown {
        text: String::from_utf8_lossy(&output.stdout).into_owned(),
        success: output.status.success(),
    })
}
