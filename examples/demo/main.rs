//! `make demo` shows a cluster, a simulated platform and the operator on this machine, with
//! kubectl.
//!
//! Every displayed command is really run. Every step is checked in both Kubernetes and the
//! platform.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it speaks to the person who runs it"
)]

mod console;
mod environment;
mod playground;
mod steps;
#[path = "../../tests/support/mod.rs"]
mod support;
mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use tokio::signal::unix::{SignalKind, signal};

use environment::{Environment, SHOWN};
use support::Result;
use terminal::Terminal;

/// The usual exit code after Ctrl-C.
const INTERRUPTED: u8 = 130;

/// The requested action.
enum What {
    Demo { once: bool },
    Playground { file: PathBuf },
}

impl What {
    fn asked() -> Option<Self> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        match arguments
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .as_slice()
        {
            [] => Some(Self::Demo { once: false }),
            ["--once"] => Some(Self::Demo { once: true }),
            ["--playground", file] => Some(Self::Playground { file: file.into() }),
            _ => None,
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(what) = What::asked() else {
        eprintln!("usage: demo [--once | --playground FILE]");
        return ExitCode::FAILURE;
    };
    let mut shown = false;
    // Dropping the future stops everything that it has started, however it ends.
    let outcome = tokio::select! {
        outcome = run(what, &mut shown) => Some(outcome),
        () = asked_to_stop() => None,
    };
    match outcome {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("\n✗ {error}");
            ExitCode::FAILURE
        }
        None => {
            println!("\nEverything that was started has ended, and its folder is gone.");
            if shown {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(INTERRUPTED)
            }
        }
    }
}

async fn run(what: What, shown: &mut bool) -> Result<()> {
    match what {
        What::Demo { once } => demo(once, shown).await,
        What::Playground { file } => playground::offer(&file, shown).await,
    }
}

async fn demo(once: bool, shown: &mut bool) -> Result<()> {
    let begun = Instant::now();
    let terminal = Terminal::new();
    let mut env = Environment::start(&terminal, &SHOWN).await?;
    let outcome = async {
        steps::install(&terminal, &mut env).await?;
        steps::show(&terminal, &env).await
    };
    if let Err(error) = outcome.await {
        eprintln!("{}", env.last_logs());
        return Err(error);
    }
    terminal.print(&format!(
        "\nAll steps came out as they should, in {:.1} s.",
        begun.elapsed().as_secs_f64()
    ));
    if once {
        return Ok(());
    }
    *shown = true;
    steps::next_steps(&terminal, &env)?;
    env.until_one_ends().await
}

/// Ctrl-C, or the SIGTERM of a service manager.
async fn asked_to_stop() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
