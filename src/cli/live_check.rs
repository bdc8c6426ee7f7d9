//! `dbplane live-check`: a read-only look at a platform, without a cluster.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use super::common::{KeyError, read_key};
use crate::live_check::{self, Findings, Scope};
use crate::platform::{ConnectError, Endpoint, HttpOptions, HttpPlatform, Reach, ReadsOnly};

/// Check, only by reading, whether dbplane can work with a platform and an API key
///
/// Only GET requests are sent, about ten. The output names no object and holds no token, so that it can be part of a bug report; a message of the
/// platform that it quotes may name a project. Exit status: 0 where the key can be used and all that is needed can be read, 1 otherwise.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Base URL of the platform's API, ending with the version segment: https://platform.example/api/v2
    #[arg(long, value_name = "URL")]
    base_url: String,
    /// File with the API key, or - for standard input
    #[arg(long, value_name = "FILE")]
    api_key: PathBuf,
    /// The platform's identifier of the organization
    #[arg(long, value_name = "ID")]
    organization: Option<String>,
    /// Projects to look at, separated by commas; the first five of the list when absent
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    project: Vec<String>,
    /// For tests on loopback only: allow http and addresses of this machine
    #[arg(long)]
    allow_insecure_platform: bool,
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("cannot call the platform: {0}")]
    Connect(#[from] ConnectError),
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

/// Looks at the platform and writes the findings to `out`.
///
/// # Errors
/// Where the key cannot be read, or the platform cannot be called with what was given.
pub async fn run(args: &Args, out: &mut impl Write) -> Result<ExitCode, Error> {
    let endpoint = Endpoint {
        base_url: args.base_url.clone(),
        organization_id: args.organization.clone(),
        reach: Reach { insecure: args.allow_insecure_platform, ..Reach::default() },
    };
    let options = HttpOptions::default();
    let reads = Arc::new(ReadsOnly::new(&endpoint, &options)?);
    let platform = HttpPlatform::over(reads.clone(), endpoint, &read_key(&args.api_key)?, &options)?;
    let scope = Scope { organization: args.organization.clone(), projects: args.project.clone() };
    let mut findings = live_check::look(&platform, &scope).await;
    let answers = reads.answers();
    findings.compare(&answers);
    print(&findings, answers.len(), out)?;
    Ok(if findings.is_usable() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(findings: &Findings, requests: usize, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "dbplane {}: {requests} requests, all of them reads", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "\nRead")?;
    for read in &findings.reads {
        match &read.outcome {
            Ok(found) => writeln!(out, "  {}: {found}", read.what)?,
            Err(fault) => {
                let need = if read.needed { "needed" } else { "dbplane works without it" };
                writeln!(out, "  {}: failed ({need}): {fault}", read.what)?;
            }
        }
    }
    section(out, "What it offers", &findings.offers)?;
    section(out, "What differs from docs/platform.md", &findings.differences)?;
    let verdict = match findings.is_usable() {
        true => {
            "dbplane can work with this platform and key, as far as reading shows. Whether the key may create and change computes was not tried."
        }
        false => "dbplane cannot work with this platform and key: see what failed above.",
    };
    writeln!(out, "\n{verdict}")
}

fn section(out: &mut impl Write, title: &str, lines: &[String]) -> io::Result<()> {
    writeln!(out, "\n{title}")?;
    if lines.is_empty() {
        return writeln!(out, "  nothing");
    }
    lines.iter().try_for_each(|line| writeln!(out, "  {line}"))
}
