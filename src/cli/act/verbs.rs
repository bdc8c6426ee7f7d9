//! The verbs as the command line has them.

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;

use super::rules::Ask;
use super::{Common, Dangerous, Error, run};

macro_rules! help {
    ($($example:literal),+) => {
        concat!("Examples:\n", $("  dbplane ", $example, "\n",)+ "
Exit status:
  0  it was done; with --no-wait: requested
  1  the cluster cannot be reached, or refuses it
  2  the command line is wrong, or it has to be confirmed
  3  it cannot work and nothing was changed, or it failed
  4  the time is over; the operator goes on with it")
    };
}

#[derive(Debug, Subcommand)]
pub enum Verbs {
    /// Restart computes once
    ///
    /// A compute that waits for its window, or that is idle, is not woken: then this waits too. The annotation dbplane.dev/restart asks for it.
    #[command(after_help = help!["restart -n shop compute/orders", "restart -n shop compute -l app=shop --no-wait"])]
    Restart(Common),
    /// Replace keys once, before their time
    ///
    /// The key before stays valid for the overlap that the ProjectKey declares. The annotation dbplane.dev/rotate asks for it.
    #[command(after_help = help!["rotate -n shop dbkey/ci", "rotate -n shop dbkey --all --timeout 10m"])]
    Rotate(Common),
    /// Have a Compute manage a compute that exists already
    ///
    /// The primary of the branch that dbplane has found (reason PrimaryExists), or the one that --compute-id names: spec.existing, or spec.computeID.
    /// From then on it is changed to what is declared, and deleted with the Compute unless spec.deletion is Orphan.
    #[command(after_help = help!["adopt -n shop compute/orders", "adopt -n shop compute/orders --compute-id ep-cool-1 --yes"])]
    Adopt(Adopt),
    /// Stop every write for resources
    ///
    /// What is under way on the platform goes on. The annotation dbplane.dev/paused says so, until resume takes it off.
    #[command(after_help = help!["pause -n shop compute/orders", "pause -A compute --all"])]
    Pause(Common),
    /// Let dbplane write again for paused resources
    ///
    /// What was declared meanwhile is carried out then. The annotation dbplane.dev/paused is taken off.
    #[command(after_help = help!["resume -n shop compute/orders", "resume -A compute --all"])]
    Resume(Common),
    /// Look at the platform anew now, and try again what it has refused
    ///
    /// The annotation dbplane.dev/reconcile-requested-at asks for it.
    #[command(after_help = help!["reconcile -n shop compute/orders", "reconcile -n shop dbacct/prod"])]
    Reconcile(Common),
    /// Confirm deletions that the brake on mass deletion has paused
    ///
    /// What the resource has on the platform is deleted then. The annotation dbplane.dev/confirm-deletion says so.
    #[command(after_help = help!["confirm-deletion -n shop compute/orders", "confirm-deletion -n shop compute --all --yes"])]
    ConfirmDeletion(Dangerous),
    /// Say that keys were revoked by hand, which dbplane cannot revoke itself
    ///
    /// Revoke them in the platform's console first: dbplane forgets them. The annotation dbplane.dev/revoked-keys says so.
    #[command(after_help = help!["revoked -n shop dbkey/ci --key ci-c1u57e-vpzc5qrz22arf-000000ff", "revoked -n shop dbkey/ci --key all --yes"])]
    Revoked(Revoked),
    /// Say that computes in question were not created for a resource
    ///
    /// For the reasons AmbiguousCreate and StrayCompute. The annotation dbplane.dev/not-created says so.
    #[command(after_help = help!["not-created -n shop compute/orders --compute-id ep-cool-1"])]
    NotCreated(NotCreated),
}

#[derive(Debug, clap::Args)]
pub struct Adopt {
    #[command(flatten)]
    dangerous: Dangerous,
    /// The platform's identifier of the compute; the primary of the branch when absent
    #[arg(long, value_name = "ID")]
    compute_id: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct Revoked {
    #[command(flatten)]
    dangerous: Dangerous,
    /// Names or numbers of keys, separated by commas, or all
    #[arg(long = "key", value_name = "NAME", value_delimiter = ',', required = true)]
    keys: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct NotCreated {
    #[command(flatten)]
    common: Common,
    /// The platform's identifiers of the computes, separated by commas
    #[arg(long = "compute-id", value_name = "ID", value_delimiter = ',', required = true)]
    computes: Vec<String>,
}

impl Verbs {
    /// Does it, and writes to `out` how it came out.
    ///
    /// # Errors
    /// Where nothing was changed.
    pub async fn execute(self, out: &mut impl Write) -> Result<ExitCode, Error> {
        match self {
            Self::Restart(common) => run(&Ask::Restart, &common, None, out).await,
            Self::Rotate(common) => run(&Ask::Rotate, &common, None, out).await,
            Self::Pause(common) => run(&Ask::Pause, &common, None, out).await,
            Self::Resume(common) => run(&Ask::Resume, &common, None, out).await,
            Self::Reconcile(common) => run(&Ask::Reconcile, &common, None, out).await,
            Self::NotCreated(args) => run(&Ask::NotCreated(args.computes), &args.common, None, out).await,
            Self::Adopt(args) => confirmed(&Ask::Adopt(args.compute_id), &args.dangerous, out).await,
            Self::Revoked(args) => confirmed(&Ask::Revoked(args.keys), &args.dangerous, out).await,
            Self::ConfirmDeletion(args) => confirmed(&Ask::ConfirmDeletion, &args, out).await,
        }
    }
}

async fn confirmed(ask: &Ask, args: &Dangerous, out: &mut impl Write) -> Result<ExitCode, Error> {
    run(ask, &args.common, Some(args.yes), out).await
}
