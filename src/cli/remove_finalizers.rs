//! `dbplane remove-finalizers`: a way out where the operator was removed before its resources.

use std::io::{self, Write};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, ResourceExt};

use crate::controller::held::held;
use crate::decide::lease::LEASE_DURATION;

/// Take dbplane's finalizers off, so that resources can be deleted where no operator runs any more
///
/// Nothing is changed on the platform: what stays there is listed. A running operator would put the finalizers back, so nothing is
/// done while one leads. It connects to the cluster of KUBECONFIG, as whoever may list and patch dbplane's resources and Secrets.
#[derive(Debug, clap::Args)]
pub struct Args {
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

/// Why finalizers could not be taken off.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot connect to the cluster: {0}")]
    Configuration(kube::Error),
    #[error("cannot list what finalizers are on: {0}")]
    List(kube::Error),
    #[error("cannot read Lease {namespace}/{LEASE}: {cause}")]
    Lease { namespace: String, cause: kube::Error },
    #[error(
        "an operator leads: {holder}, by Lease {namespace}/{LEASE}. Delete the resources and let it finish, or remove the operator first"
    )]
    Led { namespace: String, holder: String },
    #[error("{failed} of {all} objects kept their finalizers. Run the same command again")]
    Kept { failed: usize, all: usize },
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

const LEASE: &str = "dbplane";

/// Lists what is held to `out`, and lets it go where `args` say so; what is waited for, and what fails, goes to `notes`.
///
/// # Errors
/// Where an operator leads, or the API server refuses something.
pub async fn run(args: &Args, out: &mut impl Write, notes: &mut impl Write) -> Result<(), Error> {
    let client = Client::try_default().await.map_err(Error::Configuration)?;
    refuse_while_led(&client, &args.operator_namespace, notes).await?;
    let all = held(&client, args.namespace.as_deref()).await.map_err(Error::List)?;
    let mut failed = 0;
    for object in &all {
        writeln!(out, "{object}")?;
        for thing in &object.has {
            writeln!(out, "  stays on the platform: {thing}")?;
        }
        if args.yes
            && let Err(error) = object.let_go(&client).await
        {
            failed += 1;
            writeln!(notes, "{object} keeps its finalizers: {error}")?;
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

/// A lease that nobody renews for as long as it is valid is nobody's. Clocks are not compared.
async fn refuse_while_led(client: &Client, namespace: &str, notes: &mut impl Write) -> Result<(), Error> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let read = async || {
        let lease = leases.get_opt(LEASE).await;
        let lease = lease.map_err(|cause| Error::Lease { namespace: namespace.to_owned(), cause })?;
        let held = |lease: Lease| Some((lease.spec.as_ref()?.holder_identity.clone()?, lease.resource_version()));
        Ok::<_, Error>(lease.and_then(held).filter(|(holder, _)| !holder.is_empty()))
    };
    let Some(before) = read().await? else { return Ok(()) };
    writeln!(notes, "waiting {} s to see whether {} still leads", LEASE_DURATION.as_secs(), before.0)?;
    tokio::time::sleep(LEASE_DURATION).await;
    match read().await? {
        Some(now) if now != before => Err(Error::Led { namespace: namespace.to_owned(), holder: now.0 }),
        _ => Ok(()),
    }
}
