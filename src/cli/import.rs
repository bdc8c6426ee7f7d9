//! `dbplane import`: writes manifests for what exists on the platform or in a Terraform state.

mod existing;
mod live;
mod terraform;
mod write;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use super::common::{ClusterArgs, ConnectionError};
use super::files::UnreadableFile;
use super::platform::{PlatformArgs, PlatformError, account_ref};
use crate::api::{self, AccountKind, AccountRef};
use crate::cluster::explained;
use crate::domain::{Fault, ProjectId};
use crate::import::terraform::StateError;
use crate::import::{Choices, Import, import};
use crate::validate::{Checker, Unusable};

/// Write manifests for existing computes: those of an account, or those in a Terraform state
///
/// The command only reads the platform, and changes nothing in the cluster. Applying the manifests
/// does not change the platform either: each Compute names its compute in computeID and declares
/// its current settings. Computes that resources of the cluster already manage are listed and left
/// out.
///
/// The API key is that of the account, which is read from the cluster of KUBECONFIG with your
/// rights. With --base-url it is in a file, and no cluster is read.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct ImportArgs {
    /// The account that the manifests refer to: NAME, or ClusterAccount/NAME
    #[arg(long, value_name = "NAME", value_parser = account_ref)]
    account: AccountRef,
    /// The account is a ClusterAccount
    #[arg(long)]
    cluster_account: bool,
    /// Namespace of the manifests and of the Account. When absent, the manifests name none, and the
    /// Account is in the namespace of the kubeconfig's context
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    platform: PlatformArgs,
    /// Only these projects, separated by commas or each with its own flag; all that the key can
    /// access when absent
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    project: Vec<ProjectId>,
    /// Read a Terraform or OpenTofu state (terraform state pull) instead of the platform: a file,
    /// or - for standard input
    #[arg(long, value_name = "STATE|-", conflicts_with_all = ["base_url", "kubeconfig", "context", "as_user"])]
    from_terraform: Option<PathBuf>,
    /// Directory for the files: a kustomization, with a directory for each project and a file for
    /// each compute; standard output when absent
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Overwrite files in the directory that have another content
    #[arg(long, requires = "out")]
    force: bool,
    /// Declare every field that the platform shows; otherwise only those that differ from a new
    /// compute
    #[arg(long)]
    all_fields: bool,
    /// The changes that dbplane may make to the computes. With Observe it makes none, and reports
    /// differences
    #[arg(long, value_enum, ignore_case = true, default_value_t = ImportedManagement::Observe)]
    management: ImportedManagement,
    /// How to handle a compute when its resource is deleted. Orphan keeps it: these computes are
    /// older than their manifests, and deleting a resource during a trial must not delete a
    /// database
    #[arg(long, value_enum, ignore_case = true, default_value_t = ImportedDeletion::Orphan)]
    deletion: ImportedDeletion,
}

const AFTER_HELP: &str = "Examples:
  # All computes of Account shop/prod, to look at first
  dbplane import -n shop --account prod --out computes && kubectl apply -k computes
  # Those of one project, to be managed from the beginning
  dbplane import -n shop --account prod --project a --management Full | kubectl apply -f -
  # Without a cluster: two projects, with the API key in a file
  dbplane import --account prod --base-url https://platform.example/api/v2 --organization org-1 --api-key ~/key --project a,b --out computes
  # From Terraform
  terraform state pull | dbplane import --account prod --from-terraform - --out computes

Exit status:
  0  the manifests are written
  1  nothing is written, or something could not be declared: standard error says what and why
  2  the command line is wrong";

/// In the spelling of the resources.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
enum ImportedManagement {
    Observe,
    Full,
}

/// In the spelling of the resources.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
enum ImportedDeletion {
    Orphan,
    Delete,
}

/// The reason why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Platform(#[from] PlatformError),
    #[error(
        "cannot list the projects: {0}. Nothing was written. A key of one project cannot list them everywhere: name it with --project"
    )]
    Projects(Fault),
    #[error(
        "cannot list the computes of project {project}: {fault}. Nothing was written. Name the projects to import with --project"
    )]
    Computes { project: ProjectId, fault: Fault },
    #[error("cannot list the Computes of the cluster: {}", explained(.0))]
    Resources(kube::Error),
    #[error("cannot read {}: {}", .0.file, .0.cause)]
    Unreadable(UnreadableFile),
    #[error("{file} is not what --from-terraform reads: {cause}")]
    State { file: String, cause: StateError },
    #[error(transparent)]
    Schema(#[from] Unusable),
    #[error(transparent)]
    Files(#[from] write::Error),
    #[error("cannot write to standard output or standard error: {0}")]
    Output(#[from] io::Error),
}

/// Writes the manifests to the directory or to `out`, and messages for the user to `notes`.
///
/// # Errors
/// If nothing was written.
pub async fn run(
    args: &ImportArgs,
    out: &mut impl Write,
    notes: &mut impl Write,
) -> Result<ExitCode, Error> {
    let checker = Checker::new()?;
    let subjects = match &args.from_terraform {
        Some(state) => terraform::subjects(args, state, notes)?,
        None => live::subjects(args, notes).await?,
    };
    let import = import(&subjects, &args.choices(), &checker);
    match &args.out {
        Some(folder) => write::to_folder(folder, &import.files, args.force, notes)?,
        None => write::to_output(&import.files, out, notes)?,
    }
    args.report(&import, notes)
}

impl ImportArgs {
    fn account(&self) -> AccountRef {
        let kind = if self.cluster_account {
            AccountKind::ClusterAccount
        } else {
            self.account.kind
        };
        AccountRef {
            name: self.account.name.clone(),
            kind,
        }
    }

    fn choices(&self) -> Choices {
        Choices {
            account: self.account(),
            namespace: self.namespace.clone(),
            management: match self.management {
                ImportedManagement::Observe => api::Management::Observe,
                ImportedManagement::Full => api::Management::Full,
            },
            deletion: match self.deletion {
                ImportedDeletion::Orphan => api::Deletion::Orphan,
                ImportedDeletion::Delete => api::Deletion::Delete,
            },
            all_fields: self.all_fields,
        }
    }

    fn report(&self, import: &Import, notes: &mut impl Write) -> Result<ExitCode, Error> {
        for undeclared in &import.undeclared {
            writeln!(notes, "not declared: {undeclared}")?;
        }
        let Choices {
            management,
            deletion,
            ..
        } = self.choices();
        let (computes, projects) = (
            counted(import.computes, "compute"),
            counted(import.projects, "project"),
        );
        writeln!(
            notes,
            "declared {computes} of {projects}, with management: {management:?} and deletion: {deletion:?}"
        )?;
        if let (Some(folder), 1..) = (&self.out, import.computes) {
            let folder = folder.display();
            writeln!(
                notes,
                "check them with \"dbplane validate {folder}\", and apply them with \"kubectl apply -k {folder}\""
            )?;
        }
        Ok(if import.undeclared.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}
