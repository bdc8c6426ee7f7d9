//! `dbplane status`: shows what a fleet, or one resource, needs.

mod collect;
mod fleet;
mod page;
mod text;
mod watch;

use std::io::{self, Write};
use std::process::ExitCode;

use self::collect::{Collector, NotRead};
use self::fleet::Fleet;
use self::page::ResourcePage;
use self::text::Layout;
use super::common::{
    ClusterArgs, ConnectionError, MetricsArgs, OutputArgs, OutputError, ScopeArgs,
};
use super::progress::during;
use super::resource::{NoTarget, ResourceKind};
use super::screen;
use crate::clock;
use crate::cluster::explained;

/// Show the resources that need attention, wait or are in progress, and the accounts; or everything
/// about one resource
///
/// Without a resource: the fleet of a namespace, or of all with -A; resources that need attention
/// come first. With a resource: its declared and observed state, the reason and the end of a wait,
/// its events, its account, and the commands that help. The command changes nothing and reads no
/// Secret. It reports what you may not read.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct StatusArgs {
    /// One resource, such as compute/orders or dbkey ci; the fleet when absent
    #[arg(value_name = "KIND/NAME", num_args = 1..=2, conflicts_with_all = ["all_namespaces", "selector"])]
    targets: Vec<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Update the output with every change, until Ctrl-C
    #[arg(long, short)]
    watch: bool,
    /// Exit with status 3 if something needs attention
    #[arg(long)]
    exit_status: bool,
    /// The namespace that the operator runs in, with its Lease
    #[arg(long, default_value = "dbplane-system", value_name = "NAMESPACE")]
    operator_namespace: String,
    #[command(flatten)]
    metrics: MetricsArgs,
}

const HELP: &str = "Examples:
  dbplane status -A                               the fleet of all namespaces
  dbplane status -n shop compute/orders           one compute, and the commands that help
  dbplane status compute orders --as jane         the same, as far as jane may see it
  dbplane status -A --watch                       the same, anew with each change
  dbplane status -A -o json | jq .needsPerson     for a program
  dbplane status -A --exit-status                 for a script: 3 where a person is needed

Exit status:
  0  it was shown
  1  there is no such resource, or the cluster cannot be reached
  2  the command line is wrong
  3  with --exit-status: something needs a person";

/// The reason why nothing can be shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Target(#[from] NoTarget),
    #[error("cannot read {what}: {}", explained(.cause))]
    Read { what: String, cause: kube::Error },
    #[error("{}", nothing_read(.namespace.as_deref(), .not_read))]
    NothingRead {
        namespace: Option<String>,
        not_read: Vec<NotRead>,
    },
    #[error("name one resource: its page fills a screen")]
    Several,
    #[error("{0}")]
    Selector(String),
    #[error("there is no {0}")]
    NotFound(String),
    #[error(transparent)]
    Write(#[from] OutputError),
    #[error("cannot wait for Ctrl-C: {0}")]
    Signal(String),
}

fn nothing_read(namespace: Option<&str>, not_read: &[NotRead]) -> String {
    if not_read.iter().all(NotRead::is_unknown) {
        return "the cluster does not know the kinds of dbplane: install its definitions, \
             or choose another cluster with --context"
            .to_owned();
    }
    if !not_read.iter().all(NotRead::is_forbidden) {
        let lines: Vec<String> = not_read.iter().map(NotRead::to_string).collect();
        return format!("nothing of dbplane can be read:\n  {}", lines.join("\n  "));
    }
    let (place, advice) = match namespace {
        Some(name) => (
            format!("namespace {name}"),
            "ask for the role view there, or name another one with -n",
        ),
        None => (
            "all namespaces".to_owned(),
            "name one that you may read with -n",
        ),
    };
    format!("you may not read the resources of dbplane in {place}: {advice}")
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
            Self::Target(_) | Self::Several | Self::Selector(_) => 2,
            _ => 1,
        }
    }
}

/// The subject of a status.
enum StatusSubject {
    Fleet,
    One { kind: ResourceKind, name: String },
}

/// The status at one moment.
enum Picture {
    Fleet(Box<Fleet>),
    One(Box<ResourcePage>),
}

impl Picture {
    fn needs_person(&self) -> bool {
        match self {
            Self::Fleet(fleet) => !fleet.needs_person.is_empty(),
            Self::One(page) => page.needs == fleet::StatusGroup::NeedsPerson,
        }
    }

    fn write(&self, output: OutputArgs, out: &mut impl Write) -> Result<(), OutputError> {
        let layout = |wide| Layout {
            wide,
            width: screen::width(),
            now: clock::now(),
        };
        match self {
            Self::Fleet(fleet) => output.output.write(out, fleet, |out, wide| {
                text::fleet(fleet, out, layout(wide))
            }),
            Self::One(page) => output
                .output
                .write(out, page, |out, wide| text::page(page, out, layout(wide))),
        }
    }

    fn document(&self) -> serde_json::Value {
        match self {
            Self::Fleet(fleet) => serde_json::json!(fleet),
            Self::One(page) => serde_json::json!(page),
        }
    }
}

/// Writes the status to `out`.
///
/// # Errors
/// If the resource does not exist, or nothing can be read.
pub async fn run(args: &StatusArgs, out: &mut impl Write) -> Result<ExitCode, Error> {
    let subject = match ResourceKind::and_names(&args.targets)?.as_slice() {
        [] => StatusSubject::Fleet,
        [(kind, name)] => StatusSubject::One {
            kind: kind.clone(),
            name: (*name).to_owned(),
        },
        _ => return Err(Error::Several),
    };
    let connected = args.cluster.connect().await?;
    let collector = Collector {
        namespace: args.scope.namespace(&connected).map(str::to_owned),
        client: connected.client,
        params: args.scope.list_params(),
        operator_namespace: args.operator_namespace.clone(),
        metrics: args.metrics.source(),
    };
    let picture = if args.watch {
        watch::watch(&collector, &subject, args.output, out).await?
    } else {
        let picture = during("reading the cluster", take(&collector, &subject)).await?;
        picture.write(args.output, out)?;
        picture
    };
    if args.exit_status && picture.needs_person() {
        return Ok(ExitCode::from(3));
    }
    Ok(ExitCode::SUCCESS)
}

async fn take(collector: &Collector, subject: &StatusSubject) -> Result<Picture, Error> {
    match subject {
        StatusSubject::Fleet => Ok(Picture::Fleet(Box::new(Fleet::of(
            collector.fleet().await?,
        )))),
        StatusSubject::One { kind, name } => {
            let found = collector.one(kind, name).await?;
            Ok(Picture::One(Box::new(ResourcePage::of(found))))
        }
    }
}
