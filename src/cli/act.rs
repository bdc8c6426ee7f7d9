//! Commands that send a request to the operator. Each writes the annotation or the field that the
//! guides describe.

mod rules;
mod targets;
mod verbs;
mod wait;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use futures::future::join_all;
use jiff::SignedDuration;
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde::Serialize;

use self::rules::ResourceRequest;
pub use self::rules::helpful_commands;
use self::targets::{RequestTarget, Targets};
pub use self::verbs::Verbs;
use self::wait::{RequestEnd, Wait};
use super::common::{ClusterArgs, ConnectionError, OutputArgs, OutputError};
use super::progress::Progress;
use super::resource::{NoTarget, ObservedResource};
use super::screen::style;
use crate::clock;
use crate::cluster::explained;
use crate::decide::Attention;

/// The field manager of these writes. It must differ from the operator's: each would treat the
/// other's fields as its own.
const FIELD_MANAGER: &str = "dbplane-cli";

/// The arguments that all these commands share.
#[derive(Debug, clap::Args)]
pub struct Common {
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Do not wait until the operator has completed the request
    #[arg(long)]
    no_wait: bool,
    /// How long to wait, such as 90s, 5m or 1h
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    timeout: Duration,
}

/// The same for actions that cannot be undone.
#[derive(Debug, clap::Args)]
pub struct Dangerous {
    #[command(flatten)]
    pub common: Common,
    /// Do not ask for confirmation; required without a terminal
    #[arg(long)]
    pub yes: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text
        .parse()
        .map_err(|error: jiff::Error| error.to_string())?;
    Duration::try_from(parsed).map_err(|error| error.to_string())
}

/// The reason why no request was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Target(#[from] NoTarget),
    #[error("{0}")]
    Usage(String),
    #[error("cannot read {what}: {}", explained(.cause))]
    Read { what: String, cause: kube::Error },
    #[error("nothing was changed:\n  {}", .0.join("\n  "))]
    Refused(Vec<String>),
    #[error(transparent)]
    Write(#[from] OutputError),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Write(OutputError::Output(error))
    }
}

impl Error {
    /// The exit status of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Target(_) => 2,
            Self::Refused(_) => 3,
            Self::Connection(_) | Self::Read { .. } | Self::Write(_) => 1,
        }
    }
}

/// The result for one resource.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultLine {
    kind: String,
    namespace: Option<String>,
    name: String,
    #[serde(flatten)]
    ended: RequestEnd,
}

/// The results for all resources.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultsDocument {
    kind: &'static str,
    verb: &'static str,
    results: Vec<ResultLine>,
}

/// Writes the requests, waits, and writes the results to `out`. `yes` is `None` if no confirmation
/// is needed.
///
/// # Errors
/// If nothing was changed, or the API server rejected a change.
pub async fn run(
    request: &ResourceRequest,
    common: &Common,
    yes: Option<bool>,
    out: &mut impl Write,
) -> Result<ExitCode, Error> {
    let connected = common.cluster.connect().await?;
    let client = &connected.client;
    let found = common.targets.find(request, &connected).await?;
    let refused: Vec<String> = found
        .iter()
        .filter_map(|found| {
            Some(format!(
                "{}: {}",
                found.resource,
                refusal(request, &found.resource)?
            ))
        })
        .collect();
    if !refused.is_empty() {
        return Err(Error::Refused(refused));
    }
    if let Some(yes) = yes {
        confirm(request, &found, yes)?;
    }
    let progress = Progress::waiting(request.verb());
    let requested = join_all(
        found
            .into_iter()
            .map(|found| carry_out(request, common, client, found, &progress)),
    );
    let results = requested.await;
    drop(progress);
    let code = results
        .iter()
        .map(|line| line.ended.exit_code())
        .max()
        .unwrap_or_default();
    let document = ResultsDocument {
        kind: "Results",
        verb: request.verb(),
        results,
    };
    common
        .output
        .output
        .write(out, &document, |out, _| text(&document, out))?;
    Ok(ExitCode::from(code))
}

/// The reason why the request cannot work, or would be reverted.
fn refusal(request: &ResourceRequest, resource: &ObservedResource) -> Option<String> {
    if let Some(refusal) = request.refusal(resource) {
        return Some(refusal);
    }
    let (place, field) = request.written_to();
    let manager = declared_by(resource, place, field)?;
    Some(format!(
        "{field} is declared by {manager}, which would change it back: change it there, for instance in Git"
    ))
}

/// The last manifest of kubectl apply and similar tools.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The manager that applied a field: a GitOps tool or kubectl apply. For kubectl apply, managed
/// fields also include defaults, so its own annotation decides.
fn declared_by(resource: &ObservedResource, place: &str, field: &str) -> Option<String> {
    let path: Vec<&str> = place.split('.').chain([field]).collect();
    for entry in resource.meta.managed_fields.iter().flatten() {
        if entry.operation.as_deref() != Some("Apply") {
            continue;
        }
        let mut fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        for part in &path {
            fields = fields.and_then(|value| value.get(format!("f:{part}")));
        }
        if fields.is_some() && entry.manager.is_some() {
            return entry.manager.clone();
        }
    }
    let declared: serde_json::Value =
        serde_json::from_str(resource.annotation(LAST_APPLIED)?).ok()?;
    let mut value = &declared;
    for part in path {
        value = value.get(part)?;
    }
    Some("kubectl apply".to_owned())
}

/// Asks the user to confirm an action that cannot be undone.
fn confirm(request: &ResourceRequest, found: &[RequestTarget], yes: bool) -> Result<(), Error> {
    if yes {
        return Ok(());
    }
    let (stdin, mut stderr) = (io::stdin(), io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return Err(Error::Usage(format!(
            "{} cannot be taken back: add --yes",
            request.verb()
        )));
    }
    for RequestTarget { resource, .. } in found {
        writeln!(
            stderr,
            "  {resource} in namespace {}",
            resource.meta.namespace.as_deref().unwrap_or_default()
        )?;
    }
    write!(
        stderr,
        "{}: this cannot be taken back. Continue? [y/N] ",
        request.verb()
    )?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Error::Refused(vec!["it was not confirmed".to_owned()])),
    }
}

async fn carry_out(
    request: &ResourceRequest,
    common: &Common,
    client: &Client,
    target: RequestTarget,
    progress: &Progress,
) -> ResultLine {
    let RequestTarget {
        kind,
        resource: before,
    } = target;
    let api = kind.api(client, before.meta.namespace.as_deref());
    let patch = Patch::Merge(request.patch(&before, clock::now()));
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patched: kube::Result<DynamicObject> = api.patch(before.name(), &params, &patch).await;
    let ended = match patched {
        Err(cause) => RequestEnd::NotChanged(explained(&cause)),
        Ok(_) if common.no_wait => RequestEnd::Requested,
        Ok(object) => {
            let wait = Wait {
                request,
                api,
                requested: ObservedResource::of(&kind, object),
                kind,
                before: &before,
            };
            wait.until_done(common.timeout, progress).await
        }
    };
    let (kind, namespace) = (before.kind.clone(), before.meta.namespace.clone());
    ResultLine {
        kind,
        namespace,
        name: before.name().to_owned(),
        ended,
    }
}

fn text(document: &ResultsDocument, out: &mut impl Write) -> io::Result<()> {
    for line in &document.results {
        let color = style(match line.ended.exit_code() {
            0 => Attention::Nothing,
            4 => Attention::Time,
            _ => Attention::User,
        });
        let target = format!("{}/{}", line.kind.to_lowercase(), line.name);
        writeln!(
            out,
            "{target} {color}{}{color:#}{}",
            line.ended.word(),
            line.ended.detail()
        )?;
    }
    Ok(())
}
