//! `dbplane account check`: a read-only check of a platform, with a key from a file or from an
//! account in the cluster.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::account_check::{self, CheckScope, Findings, KeyKind};
use crate::api::AccountRef;
use crate::cli::common::{ClusterArgs, ConnectionError, OutputArgs, OutputError};
use crate::cli::platform::{Credentials, PlatformArgs, PlatformError, account_ref};
use crate::cli::progress::during;
use crate::domain::ProjectId;
use crate::platform::Platform;

/// Check with reads only if dbplane can work with a platform and an API key, and what the key may
/// do
///
/// Sends about ten GET requests and nothing else. The key is in a file or on standard input, and no
/// cluster is needed. Or it is the key of an account in the cluster of KUBECONFIG, which is read
/// with your rights. The output contains no names of objects and no tokens, so it can be part of a
/// bug report. Quoted messages of the platform may name a project.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct CheckArgs {
    /// An account in the cluster, NAME or ClusterAccount/NAME, instead of --base-url
    #[arg(value_name = "ACCOUNT", value_parser = account_ref, required_unless_present = "base_url", conflicts_with = "base_url")]
    account: Option<AccountRef>,
    /// Namespace of the Account; that of the kubeconfig's context when absent
    #[arg(long, short, value_name = "NAMESPACE", conflicts_with = "base_url")]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    platform: PlatformArgs,
    /// Projects to check, separated by commas; the first five of the list when absent
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    project: Vec<ProjectId>,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER_HELP: &str = "Examples:
  # A key in a file, before anything is installed
  dbplane account check --base-url https://platform.example/api/v2 --organization org-1 --api-key ~/key
  # Account shop/prod of the cluster, as JSON
  dbplane account check -n shop prod -o json
  # A ClusterAccount
  dbplane account check ClusterAccount/company

Exit status:
  0  the key can be used, and all that is needed can be read
  1  it cannot, or nothing could be said: the output or standard error says why
  2  the command line is wrong";

/// The reason why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Platform(#[from] PlatformError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Checks the platform and writes the findings to `out`.
///
/// # Errors
/// If the key cannot be read, or the platform cannot be called.
pub async fn run(args: &CheckArgs, out: &mut impl Write) -> Result<ExitCode, Error> {
    let credentials = args.credentials().await?;
    let organization = credentials.endpoint.organization_id.clone();
    let reader = credentials.reader().map_err(PlatformError::from)?;
    let unnamed = match &organization {
        Some(_) => Some(
            credentials
                .reader_without_organization()
                .map_err(PlatformError::from)?,
        ),
        None => None,
    };
    let scope = CheckScope {
        organization,
        projects: args.project.clone(),
    };
    let without_organization = unnamed
        .as_ref()
        .map(|reader| -> &dyn Platform { &reader.platform });
    let mut findings = during(
        "reading the platform",
        account_check::check(&reader.platform, without_organization, &scope),
    )
    .await;
    let mut answers = unnamed
        .iter()
        .flat_map(|reader| reader.reads.answers())
        .collect::<Vec<_>>();
    answers.extend(reader.reads.answers());
    findings.compare(&answers);
    let report = CheckReport::of(&findings, answers.len());
    args.output
        .output
        .write(out, &report, |out, _| print(&findings, answers.len(), out))?;
    Ok(if findings.is_usable() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl CheckArgs {
    async fn credentials(&self) -> Result<Credentials, Error> {
        if let Some(credentials) = self.platform.given()? {
            return Ok(credentials);
        }
        let connected = self.cluster.connect().await?;
        let namespace = self.namespace.as_deref().unwrap_or(&connected.namespace);
        let account = self.account.clone().unwrap_or_default();
        Ok(self
            .platform
            .of_account(&connected.client, &account, namespace)
            .await?)
    }
}

/// The findings, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckReport<'a> {
    version: &'static str,
    requests: usize,
    /// True if dbplane can work with this platform and key, as far as reads show.
    usable: bool,
    key_kind: KeyKind,
    key: &'a [String],
    reads: Vec<ReadReport<'a>>,
    offers: &'a [String],
    rate_limit: &'a [String],
    differences: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadReport<'a> {
    what: &'static str,
    needed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

impl<'a> CheckReport<'a> {
    fn of(findings: &'a Findings, requests: usize) -> Self {
        let reads = findings.reads.iter().map(|read| ReadReport {
            what: read.what,
            needed: read.needed,
            found: read.outcome.as_deref().ok(),
            failed: read.outcome.as_ref().err().map(ToString::to_string),
        });
        Self {
            version: env!("CARGO_PKG_VERSION"),
            requests,
            usable: findings.is_usable(),
            key_kind: findings.key,
            key: &findings.may,
            reads: reads.collect(),
            offers: &findings.offers,
            rate_limit: &findings.limits,
            differences: &findings.differences,
        }
    }
}

fn print(findings: &Findings, requests: usize, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "dbplane {}: {requests} requests, all of them reads",
        env!("CARGO_PKG_VERSION")
    )?;
    writeln!(out, "\nRead")?;
    for read in &findings.reads {
        match &read.outcome {
            Ok(found) => writeln!(out, "  {}: {found}", read.what)?,
            Err(fault) => {
                let need = if read.needed {
                    "needed"
                } else {
                    "dbplane works without it"
                };
                writeln!(out, "  {}: failed ({need}): {fault}", read.what)?;
            }
        }
    }
    section(out, "What the key may do", &findings.may)?;
    section(out, "What the platform offers", &findings.offers)?;
    section(out, "Limits of the rate", &findings.limits)?;
    section(
        out,
        "What differs from docs/platform.md",
        &findings.differences,
    )?;
    let verdict = if findings.is_usable() {
        "dbplane can work with this platform and key, as far as reading shows. Whether the key may create and change computes was not tried."
    } else {
        "dbplane cannot work with this platform and key: see what failed above."
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
