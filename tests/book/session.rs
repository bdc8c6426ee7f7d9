//! Simulates a reader of a page: one shell in its own folder for all commands.

use std::fmt::{self, Write as _};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::page::{Block, blocks, repository};
use crate::picture::{self, Shown};
use crate::playground::Playground;
use crate::shown;
use crate::support::Sandbox;

/// The time limit for a page, generous for a busy machine.
const LONGEST: Duration = Duration::from_secs(420);

/// The number of executed things.
#[derive(Debug, Default)]
pub struct Ran {
    pub pages: usize,
    /// Blocks of commands.
    pub blocks: usize,
    /// Their non-empty lines.
    pub lines: usize,
    /// Blocks whose output was compared.
    pub compared: usize,
}

impl Ran {
    pub fn add(&mut self, more: &Self) {
        self.pages += more.pages;
        self.blocks += more.blocks;
        self.lines += more.lines;
        self.compared += more.compared;
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pages,
            blocks,
            lines,
            compared,
        } = self;
        write!(
            f,
            "{pages} pages: {blocks} blocks of {lines} lines were run, and {compared} outputs compared"
        )
    }
}

/// A block of commands with its expected output.
struct Step<'a> {
    block: &'a Block,
    /// The output on the page.
    shown: Option<&'a Block>,
}

/// Runs in the current shell, except for commands that are expected to fail.
fn commands(block: &Block) -> String {
    if block.fails {
        format!(
            "if (\n{}); then echo 'the page says that this fails'; exit 1; fi\n",
            block.text
        )
    } else {
        block.text.clone()
    }
}

/// Saves a block that has a file name.
fn save(block: &Block) -> String {
    block.file().map_or_else(String::new, |name| {
        format!(
            "cat >{name} <<'END OF {name}'\n{}END OF {name}\n",
            block.text
        )
    })
}

/// The files of a page and all its commands, as one script.
pub fn script(all: &[Block]) -> String {
    all.iter()
        .map(|block| {
            if block.is_command() {
                commands(block)
            } else {
                save(block)
            }
        })
        .collect()
}

pub struct Session {
    sandbox: Sandbox,
    page: String,
}

impl Session {
    /// The folder looks like the repository, with the files of the playgrounds in `target`.
    pub fn new(page: &str, playgrounds: &[(&str, &Playground)]) -> Self {
        let sandbox = Sandbox::new("reader").unwrap();
        for entry in ["deploy", "docs", "examples", "tests"] {
            symlink(repository().join(entry), sandbox.folder().join(entry)).unwrap();
        }
        fs::create_dir(sandbox.folder().join("target")).unwrap();
        for (name, playground) in playgrounds {
            fs::copy(&playground.way, sandbox.folder().join("target").join(name)).unwrap();
        }
        Self {
            sandbox,
            page: page.to_owned(),
        }
    }

    /// Runs all commands of the page, and panics at the first deviation.
    pub async fn follow(&self) -> Ran {
        self.perform("", &blocks(&self.page), Block::is_command)
            .await
    }

    /// Runs the selected blocks after the commands that the page presupposes.
    pub async fn perform(&self, before: &str, all: &[Block], runs: impl Fn(&Block) -> bool) -> Ran {
        let mut ran = Ran {
            pages: 1,
            ..Ran::default()
        };
        let mut steps = Vec::new();
        let mut script = format!("{before}\n");
        for (at, block) in all.iter().enumerate() {
            script.push_str(&save(block));
            if runs(block) {
                let shown = all.get(at + 1).filter(|next| next.language == "text");
                steps.push(Step { block, shown });
                let output = self.output(block);
                writeln!(
                    script,
                    "exec >{} 2>&1\n{}",
                    output.display(),
                    commands(block)
                )
                .unwrap();
            }
        }
        self.run(&script, &steps).await;
        for step in &steps {
            ran.blocks += 1;
            ran.lines += step
                .block
                .text
                .lines()
                .filter(|line| !line.trim().is_empty())
                .count();
            ran.compared += usize::from(step.shown.is_some());
            self.compare(step);
        }
        let compared = steps.iter().filter(|step| step.shown.is_some());
        let shown: Vec<Shown> = compared
            .map(|step| Shown {
                commands: step.block.text.clone(),
                printed: self.printed(step.block),
            })
            .collect();
        picture::record(&self.page, &shown);
        ran
    }

    async fn run(&self, script: &str, steps: &[Step<'_>]) {
        let file = self.sandbox.folder().join("page.sh");
        fs::write(&file, script).unwrap();
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail"])
            .arg(&file)
            .current_dir(self.sandbox.folder());
        // kubectl is too short-lived for garbage collection.
        bash.env("NO_COLOR", "1").env("GOGC", "off");
        let mut bash = self.sandbox.start("bash", bash).unwrap();
        let outcome = bash.wait(LONGEST).await;
        let what = match outcome {
            Ok(status) if status.success() => return,
            Ok(status) => format!("ended with {status}"),
            Err(error) => error.to_string(),
        };
        let Some(last) = steps
            .iter()
            .rev()
            .find(|step| self.output(step.block).exists())
        else {
            panic!(
                "{}: what it takes for granted {what}:\n{}",
                self.page,
                bash.log()
            );
        };
        panic!(
            "{}:\n{}\n{what}, and printed:\n{}",
            self.place(last.block),
            last.block.text,
            self.printed(last.block)
        );
    }

    fn compare(&self, step: &Step<'_>) {
        let Some(shown) = step.shown else { return };
        let printed = self.printed(step.block);
        assert!(
            shown::fits(&shown.text, &printed),
            "{}: the page shows\n{}\nand this was printed:\n{printed}",
            self.place(shown),
            shown.text
        );
    }

    fn output(&self, block: &Block) -> PathBuf {
        self.sandbox.folder().join(format!("output-{}", block.line))
    }

    fn printed(&self, block: &Block) -> String {
        fs::read_to_string(self.output(block)).unwrap_or_default()
    }

    fn place(&self, block: &Block) -> String {
        format!("{}:{}", self.page, block.line)
    }
}
