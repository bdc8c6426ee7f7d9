//! `dbplane remove-finalizers`: a way out where the operator was removed before its resources.

use std::io::{self, Write};

use super::common::{ClusterArgs, ConnectionError};
use crate::controller::held::held;
use crate::controller::led_by;
use crate::decide::lease::LEASE_DURATION;

/// Take dbplane's finalizers off, so that resources can be deleted where no operator runs any more
///
/// Nothing is changed on the platform: what stays there is listed. A running operator would put the finalizers back, so nothing is
/// done while one leads. It connects to the cluster of KUBECONFIG, as whoever may list and patch dbplane's resources and Secrets.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Only in this namespace; everywhere when absent
    #[arg(long, short)]
    namespace: Option<String>,
    /// The namespace that the operator ran in, with its Lease
    #[arg(long, default_value = "dbplane-system", value_name = "NAMESPACE")]
    operator_namespace: String,
    /// Take the finalizers off; without it they are only listed
    #[arg(long)]
    yes: bool,
}

const HELP: &str = "Examples:
  dbplane remove-finalizers                 only lists them
  dbplane remove-finalizers -n shop --yes

Exit status:
  0  they were listed or taken off
  1  an operator leads, or the cluster refuses something
  2  the command line is wrong";

/// Why finalizers could not be taken off.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error("cannot list what finalizers are on: {0}")]
    List(kube::Error),
    #[error("cannot read the operator's Lease in namespace {namespace}: {cause}")]
    Lease { namespace: String, cause: kube::Error },
    #[error(
        "an operator leads: {holder}, by the Lease in namespace {namespace}. Delete the resources and let it finish, or remove the operator first"
    )]
    Led { namespace: String, holder: String },
    #[error("{failed} of {all} objects kept their finalizers. Run the same command again")]
    Kept { failed: usize, all: usize },
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

/// Lists what is held to `out`, and lets it go where `args` say so; what is waited for, and what fails, goes to `notes`.
///
/// # Errors
/// Where an operator leads, or the API server refuses something.
pub async fn run(args: &Args, out: &mut impl Write, notes: &mut impl Write) -> Result<(), Error> {
    let client = args.cluster.connect().await?.client;
    let namespace = || args.operator_namespace.clone();
    writeln!(notes, "looking for an operator that leads; this takes up to {} s", LEASE_DURATION.as_secs() + 2)?;
    let holder = led_by(&client, &args.operator_namespace).await;
    if let Some(holder) = holder.map_err(|cause| Error::Lease { namespace: namespace(), cause })? {
        return Err(Error::Led { namespace: namespace(), holder });
    }
    let all = held(&client, args.namespace.as_deref()).await.map_err(Error::List)?;
    let mut failed = 0;
    for object in &all {
        writeln!(out, "{}", object.label)?;
        for thing in &object.has {
            writeln!(out, "  stays on the platform: {thing}")?;
        }
        if args.yes
            && let Err(error) = object.let_go(&client).await
        {
            failed += 1;
            writeln!(notes, "{} keeps its finalizers: {error}", object.label)?;
        }
    }
    match (all.len(), args.yes) {
        (_, true) if failed > 0 => return Err(Error::Kept { failed, all: all.len() }),
        (0, _) => writeln!(out, "No finalizer of dbplane is on any object.")?,
        (count, true) => writeln!(out, "The finalizers of {count} objects were taken off.")?,
        (count, false) => writeln!(out, "{count} objects have finalizers. To take them off, add --yes.")?,
    }
    Ok(())
}
