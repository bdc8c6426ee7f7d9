//! The command-line definitions of the commands.

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;

use super::rules::ResourceRequest;
use super::{Common, Dangerous, Error, run};
use crate::domain::ComputeId;

macro_rules! help {
    ($($example:literal),+) => {
        concat!("Examples:\n", $("  dbplane ", $example, "\n",)+ "
Exit status:
  0  it was done; with --no-wait: requested
  1  the cluster cannot be reached, or refuses it
  2  the command line is wrong, or it has to be confirmed
  3  it cannot work and nothing was changed, or it failed
  4  timed out; the operator continues with it")
    };
}

#[derive(Debug, Subcommand)]
pub enum Verbs {
    /// Restart computes once
    ///
    /// A restart waits for the maintenance window, and an idle compute is not woken; the command
    /// then waits too. It sets the annotation dbplane.dev/restart.
    #[command(after_help = help!["restart -n shop compute/orders", "restart -n shop compute -l app=shop --no-wait"])]
    Restart(Common),
    /// Replace keys once, ahead of schedule
    ///
    /// The previous key stays valid for the overlap that the ProjectKey declares. The command sets
    /// the annotation dbplane.dev/rotate.
    #[command(after_help = help!["rotate -n shop dbkey/ci", "rotate -n shop dbkey --all --timeout 10m"])]
    Rotate(Common),
    /// Let a Compute manage an existing compute
    ///
    /// It is the primary of the branch that dbplane has found (reason PrimaryExists), or the
    /// compute of --compute-id. The command sets spec.existing or spec.computeID. From then on,
    /// dbplane changes the compute to match the spec, and deletes it with the Compute unless
    /// spec.deletion is Orphan.
    #[command(after_help = help!["adopt -n shop compute/orders", "adopt -n shop compute/orders --compute-id ep-cool-1 --yes"])]
    Adopt(Adopt),
    /// Stop all writes for resources
    ///
    /// Operations that are in progress on the platform continue. The command sets the annotation
    /// dbplane.dev/paused; resume removes it.
    #[command(after_help = help!["pause -n shop compute/orders", "pause -A compute --all"])]
    Pause(Common),
    /// Resume writes for paused resources
    ///
    /// dbplane then makes the changes that were declared meanwhile. The command removes the
    /// annotation dbplane.dev/paused.
    #[command(after_help = help!["resume -n shop compute/orders", "resume -A compute --all"])]
    Resume(Common),
    /// Re-read the platform now and retry refused changes
    ///
    /// The command sets the annotation dbplane.dev/reconcile-requested-at.
    #[command(after_help = help!["reconcile -n shop compute/orders", "reconcile -n shop dbacct/prod"])]
    Reconcile(Common),
    /// Confirm deletions that the brake on mass deletion has paused
    ///
    /// dbplane then deletes the compute or keys of the resource on the platform. The command sets
    /// the annotation dbplane.dev/confirm-deletion.
    #[command(after_help = help!["confirm-deletion -n shop compute/orders", "confirm-deletion -n shop compute --all --yes"])]
    ConfirmDeletion(Dangerous),
    /// Confirm that you revoked these keys yourself, because dbplane cannot
    ///
    /// Revoke them in the platform's console first: dbplane then drops them from its record. The
    /// command sets the annotation dbplane.dev/revoked-keys.
    #[command(after_help = help!["revoked -n shop dbkey/ci --key ci-c1u57e-vpzc5qrz22arf-000000ff", "revoked -n shop dbkey/ci --key all --yes"])]
    Revoked(Revoked),
    /// Confirm that these computes were not created for a resource
    ///
    /// Use it for the reasons AmbiguousCreate and StrayCompute. The command sets the annotation
    /// dbplane.dev/not-created.
    #[command(after_help = help!["not-created -n shop compute/orders --compute-id ep-cool-1"])]
    NotCreated(NotCreated),
}

#[derive(Debug, clap::Args)]
pub struct Adopt {
    #[command(flatten)]
    dangerous: Dangerous,
    /// The platform's identifier of the compute; the primary of the branch when absent
    #[arg(long, value_name = "ID")]
    compute_id: Option<ComputeId>,
}

#[derive(Debug, clap::Args)]
pub struct Revoked {
    #[command(flatten)]
    dangerous: Dangerous,
    /// Names or IDs of keys, separated by commas, or all
    #[arg(
        long = "key",
        value_name = "NAME",
        value_delimiter = ',',
        required = true
    )]
    keys: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct NotCreated {
    #[command(flatten)]
    common: Common,
    /// The platform's identifiers of the computes, separated by commas
    #[arg(
        long = "compute-id",
        value_name = "ID",
        value_delimiter = ',',
        required = true
    )]
    computes: Vec<ComputeId>,
}

impl Verbs {
    /// Runs the command and writes the results to `out`.
    ///
    /// # Errors
    /// If nothing was changed.
    pub async fn execute(self, out: &mut impl Write) -> Result<ExitCode, Error> {
        match self {
            Self::Restart(common) => run(&ResourceRequest::Restart, &common, None, out).await,
            Self::Rotate(common) => run(&ResourceRequest::Rotate, &common, None, out).await,
            Self::Pause(common) => run(&ResourceRequest::Pause, &common, None, out).await,
            Self::Resume(common) => run(&ResourceRequest::Resume, &common, None, out).await,
            Self::Reconcile(common) => run(&ResourceRequest::Reconcile, &common, None, out).await,
            Self::NotCreated(args) => {
                run(
                    &ResourceRequest::NotCreated(args.computes),
                    &args.common,
                    None,
                    out,
                )
                .await
            }
            Self::Adopt(args) => {
                confirmed(
                    &ResourceRequest::Adopt(args.compute_id),
                    &args.dangerous,
                    out,
                )
                .await
            }
            Self::Revoked(args) => {
                confirmed(&ResourceRequest::Revoked(args.keys), &args.dangerous, out).await
            }
            Self::ConfirmDeletion(args) => {
                confirmed(&ResourceRequest::ConfirmDeletion, &args, out).await
            }
        }
    }
}

async fn confirmed(
    request: &ResourceRequest,
    args: &Dangerous,
    out: &mut impl Write,
) -> Result<ExitCode, Error> {
    run(request, &args.common, Some(args.yes), out).await
}
