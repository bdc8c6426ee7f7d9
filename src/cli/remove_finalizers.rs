//! `dbplane remove-finalizers`: a way out if the operator was removed before its resources.

use std::io::{self, Write};

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use serde::Serialize;

use super::common::{
    ClusterArgs, ConnectionError, OutputArgs, OutputError, OutputFormat, ScopeArgs, bad_selector,
};
use super::progress::{Progress, during};
use crate::cluster::explained;
use crate::controller::finalizers::{WithFinalizer, with_finalizer};
use crate::controller::led_by;
use crate::controller::rights::{self, Who};
use crate::leadership::lease::LEASE_DURATION;

/// Remove dbplane's finalizers, so that resources can be deleted without a running operator
///
/// Nothing changes on the platform; the command lists what stays there. A running operator would
/// add the finalizers again, so the command does nothing while one leads. The exception is a
/// namespace (-n) in which that operator has no rights any more: a namespace that is being deleted
/// loses its Roles. All namespaces (-A) include ClusterAccounts. Secrets with credentials are
/// selected by their own labels. The command connects to the cluster of KUBECONFIG, and needs the
/// rights to list and patch dbplane's resources and Secrets.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct RemoveFinalizersArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    /// The namespace that the operator ran in, with its Lease
    #[arg(long, default_value = "dbplane-system", value_name = "NAMESPACE")]
    operator_namespace: String,
    /// The operator's ServiceAccount in that namespace; that of its Pod when absent, if it runs in
    /// one
    #[arg(long, value_name = "NAME")]
    operator_service_account: Option<String>,
    /// Remove the finalizers; without this flag they are only listed
    #[arg(long)]
    yes: bool,
}

const HELP: &str = "Examples:
  dbplane remove-finalizers -A              only lists them
  dbplane remove-finalizers -n shop --yes
  dbplane remove-finalizers -n shop -l app=web --yes
  dbplane remove-finalizers -n shop --operator-service-account dbplane

Exit status:
  0  they were listed or taken off
  1  an operator leads, or the cluster refuses something
  2  the command line is wrong";

/// The reason why finalizers could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error("cannot list what finalizers are on: {}", explained(.0))]
    List(kube::Error),
    #[error("{0}")]
    Selector(String),
    #[error("cannot read the operator's Lease in namespace {namespace}: {}", explained(.cause))]
    Lease {
        namespace: String,
        cause: kube::Error,
    },
    #[error(
        "an operator leads: {holder}, by the Lease in namespace {namespace}. Delete the resources and let it finish, or remove the operator first"
    )]
    Led { namespace: String, holder: String },
    #[error(
        "an operator leads: {holder}, and may still do this in namespace {namespace}: {}. Delete the resources and let it finish, or remove the operator first",
        left.join(", ")
    )]
    StillServed {
        namespace: String,
        holder: String,
        left: Vec<String>,
    },
    #[error(
        "an operator leads: {holder}, and its Pod was not found. To have it looked up what it may do in namespace {namespace}, name its ServiceAccount: --operator-service-account"
    )]
    UnknownOperator { namespace: String, holder: String },
    #[error("cannot ask what the operator that leads may do in namespace {namespace}: {}", explained(.cause))]
    Rights {
        namespace: String,
        cause: kube::Error,
    },
    #[error("{failed} of {all} objects kept their finalizers. Run the same command again")]
    Kept { failed: usize, all: usize },
    #[error(transparent)]
    Write(#[from] OutputError),
    #[error("cannot write what was found: {0}")]
    Notes(#[from] io::Error),
}

impl Error {
    /// The exit status of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Selector(_) => 2,
            _ => 1,
        }
    }
}

/// The objects that were found, and the results.
#[derive(Debug, Serialize)]
struct FinalizersDocument {
    objects: Vec<ObjectLine>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectLine {
    /// The kind, and namespace/name.
    object: String,
    stays_on_platform: Vec<String>,
    finalizers: Finalizers,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Finalizers {
    On,
    TakenOff,
}

/// Lists the objects with finalizers, and removes these if `args` ask for it. Failures go to
/// `notes`.
///
/// # Errors
/// If an operator leads, or the API server rejects something.
pub async fn run(
    args: &RemoveFinalizersArgs,
    out: &mut impl Write,
    notes: &mut impl Write,
) -> Result<(), Error> {
    let connected = args.cluster.connect().await?;
    let client = &connected.client;
    let namespace = args.scope.namespace(&connected);
    args.check_leader(client, namespace).await?;
    let selected = args.scope.list_params();
    let all = with_finalizer(client, namespace, &selected).await;
    let all = all.map_err(|error| match bad_selector(&selected, &error) {
        Some(message) => Error::Selector(message),
        None => Error::List(error),
    })?;
    // Before any finalizer is removed, because the list cannot be made afterwards.
    match args.output.output {
        OutputFormat::Text | OutputFormat::Wide => list(out, &all)?,
        OutputFormat::Json | OutputFormat::Yaml => list(notes, &all)?,
    }
    let document = FinalizersDocument {
        objects: args.process(client, &all).await,
    };
    let failed = write_failures(&document, notes)?;
    let all = document.objects.len();
    args.output.output.write(out, &document, |out, _| {
        // If some failed, the error reports it.
        if failed == 0 {
            write_summary(out, all, args.yes)?;
        }
        Ok(())
    })?;
    if failed > 0 {
        return Err(Error::Kept { failed, all });
    }
    Ok(())
}

/// Returns the number of objects that keep their finalizers because of an error.
fn write_failures(document: &FinalizersDocument, notes: &mut impl Write) -> io::Result<usize> {
    let mut failed = 0;
    for line in &document.objects {
        if let Some(error) = &line.error {
            writeln!(notes, "{} keeps its finalizers: {error}", line.object)?;
            failed += 1;
        }
    }
    Ok(failed)
}

fn write_summary(out: &mut impl Write, count: usize, removed: bool) -> io::Result<()> {
    match (count, removed) {
        (0, _) => writeln!(out, "No finalizer of dbplane is on any object."),
        (1, true) => writeln!(out, "The finalizers of 1 object were taken off."),
        (count, true) => writeln!(out, "The finalizers of {count} objects were taken off."),
        (1, false) => writeln!(out, "1 object has finalizers. To take them off, add --yes."),
        (count, false) => writeln!(
            out,
            "{count} objects have finalizers. To take them off, add --yes."
        ),
    }
}

impl RemoveFinalizersArgs {
    /// Succeeds if no operator leads, or if it has no rights in this namespace any more.
    async fn check_leader(&self, client: &Client, served: Option<&str>) -> Result<(), Error> {
        let looking = format!(
            "looking for an operator that leads; this takes up to {} s",
            LEASE_DURATION.as_secs() + 2
        );
        let found = during(&looking, led_by(client, &self.operator_namespace)).await;
        let holder = found.map_err(|cause| Error::Lease {
            namespace: self.operator_namespace.clone(),
            cause,
        })?;
        match (holder, served) {
            (None, _) => Ok(()),
            (Some(holder), Some(namespace)) => {
                self.check_rights_of(holder, client, namespace).await
            }
            (Some(holder), None) => Err(Error::Led {
                namespace: self.operator_namespace.clone(),
                holder,
            }),
        }
    }

    /// Succeeds if the leading operator has no rights in this namespace any more.
    async fn check_rights_of(
        &self,
        holder: String,
        client: &Client,
        namespace: &str,
    ) -> Result<(), Error> {
        let unknown = |cause| Error::Rights {
            namespace: namespace.to_owned(),
            cause,
        };
        let account = match &self.operator_service_account {
            Some(name) => Some(name.clone()),
            None => account_of_pod(client, &self.operator_namespace, &holder)
                .await
                .map_err(unknown)?,
        };
        let Some(name) = account else {
            return Err(Error::UnknownOperator {
                namespace: namespace.to_owned(),
                holder,
            });
        };
        let who = Who::ServiceAccount {
            namespace: &self.operator_namespace,
            name: &name,
        };
        let left = rights::left(client, who, namespace)
            .await
            .map_err(unknown)?;
        if !left.is_empty() {
            return Err(Error::StillServed {
                namespace: namespace.to_owned(),
                holder,
                left,
            });
        }
        Ok(())
    }

    /// Removes the finalizers if the user confirmed it.
    async fn process(&self, client: &Client, all: &[WithFinalizer]) -> Vec<ObjectLine> {
        let mut lines = Vec::new();
        let progress = Progress::counting("objects", all.len());
        for object in all {
            let outcome = if self.yes {
                Some(object.remove_finalizer(client).await)
            } else {
                None
            };
            lines.push(line(object, outcome));
            progress.advance();
        }
        lines
    }
}

/// The ServiceAccount of the Pod that holds the Lease, or `None` if there is no such Pod.
async fn account_of_pod(
    client: &Client,
    namespace: &str,
    holder: &str,
) -> Result<Option<String>, kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    for name in pods_of(holder) {
        if let Some(pod) = pods.get_opt(name).await? {
            return Ok(pod.spec.and_then(|spec| spec.service_account_name));
        }
    }
    Ok(None)
}

/// The possible names of the holder's Pod. Its identity is the host name with the process ID, or
/// the value of --identity.
fn pods_of(holder: &str) -> Vec<&str> {
    let identity = holder
        .rsplit_once('_')
        .map_or(holder, |(identity, _)| identity);
    let host = identity
        .rsplit_once('-')
        .filter(|(_, process)| process.bytes().all(|byte| byte.is_ascii_digit()));
    let host = host.map(|(host, _)| host);
    host.into_iter()
        .chain([identity])
        .filter(|name| !name.is_empty())
        .collect()
}

fn list(out: &mut impl Write, all: &[WithFinalizer]) -> io::Result<()> {
    for object in all {
        writeln!(out, "{}", object.label)?;
        for thing in &object.has {
            writeln!(out, "  stays on the platform: {thing}")?;
        }
    }
    out.flush()
}

fn line(object: &WithFinalizer, outcome: Option<Result<(), kube::Error>>) -> ObjectLine {
    let finalizers = if matches!(outcome, Some(Ok(()))) {
        Finalizers::TakenOff
    } else {
        Finalizers::On
    };
    let error = outcome.and_then(Result::err).map(|error| explained(&error));
    ObjectLine {
        object: object.label.clone(),
        stays_on_platform: object.has.clone(),
        finalizers,
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_of_a_holder_is_found_by_its_identity() {
        assert_eq!(
            pods_of("dbplane-6d5f-x2v9k-1_0a1b2c3d"),
            ["dbplane-6d5f-x2v9k", "dbplane-6d5f-x2v9k-1"]
        );
        assert_eq!(pods_of("dbplane-0_0a1b2c3d"), ["dbplane", "dbplane-0"]);
        assert_eq!(pods_of("operator_0a1b2c3d"), ["operator"]);
        assert_eq!(pods_of("_0a1b2c3d"), Vec::<&str>::new());
    }
}
