//! `dbplane plan`: shows what the operator would do, without doing it.

mod text;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::common::{
    ClusterArgs, Connected, ConnectionError, KeyError, OutputArgs, OutputError, ScopeArgs,
    bad_selector, read_key,
};
use super::files::{self, InputSource};
use super::platform::ReachArgs;
use super::progress::during;
use super::screen;
use crate::clock;
use crate::controller::environment::PassSettings;
use crate::decide::Limits;
use crate::decide::names::ClusterId;
use crate::plan::{
    self, Beginning, GivenKey, Id, ListOptions, ListedResources, Network, Plan, PlanError,
};
use crate::platform::{PlatformAlias, Platforms};
use crate::validate::{Check, Checked, Checker, ManifestProblem, Unusable, objects};

/// Show what the operator would do, for the resources in the cluster or for manifests that are not
/// applied yet
///
/// The command writes nothing to the cluster or the platform. It reads the cluster with your
/// rights, and the platform with GET requests only. It makes the same decisions as the operator. A
/// plan ends where the operator would have to wait, and shows the reason and the time limit of the
/// wait.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct PlanArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Manifests that are not in the cluster yet: a file, a directory (all its .yaml, .yml and
    /// .json files), or - for standard input. Only the resources in these files are planned
    #[arg(long, short = 'f', value_name = "FILE|DIR|-", conflicts_with_all = ["all_namespaces", "selector"])]
    filename: Vec<PathBuf>,
    /// File with the platform's API key, or - for standard input. When absent, the key of each
    /// account is read from its Secret
    #[arg(long, value_name = "FILE|-")]
    api_key: Option<PathBuf>,
    /// The platform of --api-key. Required if the accounts have several platforms, or if only a
    /// manifest names it
    #[arg(long, value_name = "URL", requires = "api_key")]
    base_url: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    /// Exit with status 2 if there is something to do
    #[arg(long)]
    detailed_exitcode: bool,
    /// --cluster-id of the operator; when absent, the beginning of the UID of namespace kube-system
    #[arg(long, value_name = "ID")]
    cluster_id: Option<ClusterId>,
    /// --platform-aliases of the operator
    #[arg(
        long,
        env = "DBPLANE_PLATFORM_ALIASES",
        value_name = "URLS",
        value_delimiter = ','
    )]
    platform_aliases: Vec<PlatformAlias>,
    /// --watch-namespaces of the operator
    #[arg(long, value_name = "NAMESPACES", value_delimiter = ',')]
    watch_namespaces: Vec<String>,
    /// --no-cluster-accounts of the operator
    #[arg(long)]
    no_cluster_accounts: bool,
    /// --settle-time of the operator, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    settle_time: u64,
    /// --deletes-per-minute of the operator
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().deletes_per_minute)]
    deletes_per_minute: u32,
    /// Timeout of one request to the platform, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=300))]
    request_timeout: u64,
    #[command(flatten)]
    reach: ReachArgs,
}

const AFTER_HELP: &str = "Examples:
  dbplane plan -n shop                                what the operator is about to do in namespace shop
  dbplane plan -n shop -f orders.yaml                 what it would do if this were applied
  kubectl kustomize . | dbplane plan -f - -o json     the same for a program
  dbplane plan -A --detailed-exitcode --api-key KEY   without the right to read the account's Secret

Exit status:
  0  the plan was made; with --detailed-exitcode: there is nothing to do
  1  there is no plan, or nothing can be said of some resource
  2  with --detailed-exitcode: there is something to do, or something waits
     (the command line is wrong: 2 as well, and nothing is written to standard output)";

/// The reason why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    List(plan::ListError),
    #[error("{0}")]
    Selector(String),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Schema(#[from] Unusable),
    #[error("cannot read {file}: {cause}")]
    File { file: String, cause: String },
    #[error("the API server would refuse what is to be planned:\n{0}")]
    Refused(String),
    #[error(
        "the operator would not follow what is to be planned, and report InvalidSchedule:\n{0}"
    )]
    NotFollowed(String),
    #[error("only one of -f and --api-key can be standard input")]
    OneStandardInput,
    #[error("there is no resource of dbplane in the manifests")]
    NoManifest,
    #[error(transparent)]
    Write(#[from] OutputError),
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
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

/// Makes the plan and writes it to `out`.
///
/// # Errors
/// If there is no plan.
pub async fn run(args: &PlanArgs, out: &mut impl Write) -> Result<ExitCode, Error> {
    let inputs = args.filename.iter().chain(&args.api_key);
    if inputs.filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Error::OneStandardInput);
    }
    let manifests = args.manifests()?;
    let connected = args.cluster.connect().await?;
    let listing = args.listing(&connected, &manifests);
    let reading = plan::list(&connected.client, &listing);
    let listed = during("reading the cluster", reading).await;
    let listed = listed.map_err(|error| match bad_selector(&listing.labels, error.cause()) {
        Some(message) => Error::Selector(message),
        None => Error::List(error),
    })?;
    args.check(&manifests, &listed, &connected)?;
    let given = args.given(&listed)?;
    let network = Network {
        client: connected.client.clone(),
        reach: args.reach.reach(),
        request_timeout: Duration::from_secs(args.request_timeout),
    };
    let plan = during(
        "reading the platform",
        plan::make(
            args.beginning(listed, manifests, given, &connected),
            Arc::new(network),
        ),
    )
    .await?;
    args.output
        .output
        .write(out, &plan, |out, wide| text::write(&plan, wide, out))?;
    Ok(exit_code(args.detailed_exitcode, &plan))
}

fn is_of_dbplane(manifest: &Value) -> bool {
    manifest["apiVersion"]
        .as_str()
        .is_some_and(|it| it.starts_with(crate::api::GROUP))
}

/// The ID of an object. `namespace` is the default of its namespace.
fn id_in(object: &Value, namespace: &str) -> Option<Id> {
    let mut id = Id::of_value(object)?;
    if plan::is_namespaced(&id.kind) {
        id.namespace.get_or_insert_with(|| namespace.to_owned());
    } else {
        id.namespace = None;
    }
    Some(id)
}

fn exit_code(detailed: bool, plan: &Plan) -> ExitCode {
    match (plan.is_incomplete(), detailed && plan.has_changes()) {
        (true, _) => ExitCode::FAILURE,
        (false, true) => ExitCode::from(2),
        (false, false) => ExitCode::SUCCESS,
    }
}

impl PlanArgs {
    fn manifests(&self) -> Result<Vec<Value>, Error> {
        let mut manifests = Vec::new();
        let sources = files::sources(&self.filename);
        for line in sources.left_out("dbplane plan -f -") {
            let _ = writeln!(screen::stderr(), "dbplane: {line}");
        }
        for source in sources.found {
            let read = source.and_then(InputSource::read);
            let (_, text) = read.map_err(|unread| Error::File {
                file: unread.file,
                cause: unread.cause,
            })?;
            let found = Checker::new()?.check_text(&text);
            refuse_invalid(&found.checked)?;
            manifests.extend(objects(&text));
        }
        if !self.filename.is_empty() && !manifests.iter().any(is_of_dbplane) {
            return Err(Error::NoManifest);
        }
        Ok(manifests)
    }

    fn namespace(&self, connected: &Connected) -> String {
        self.scope
            .namespace
            .clone()
            .unwrap_or_else(|| connected.namespace.clone())
    }

    fn listing(&self, connected: &Connected, manifests: &[Value]) -> ListOptions {
        let named = manifests
            .iter()
            .filter_map(|it| it["metadata"]["namespace"].as_str().map(str::to_owned));
        ListOptions {
            namespaces: named.chain([self.namespace(connected)]).collect(),
            watched: self.watch_namespaces.iter().cloned().collect(),
            selected: self.scope.namespace(connected).map(str::to_owned),
            labels: self.scope.list_params(),
        }
    }

    /// Checks that the API server would accept these manifests as updates of the existing objects.
    fn check(
        &self,
        manifests: &[Value],
        listed: &ListedResources,
        connected: &Connected,
    ) -> Result<(), Error> {
        let namespace = self.namespace(connected);
        let checker = Checker::new()?;
        let mut wrong = Vec::new();
        for manifest in manifests {
            let id = id_in(manifest, &namespace);
            let Some(old) = listed
                .objects
                .iter()
                .find(|object| id_in(object, &namespace) == id)
            else {
                continue;
            };
            let problems = checker.check(manifest, Some(old)).err().unwrap_or_default();
            let title = id.map(|id| id.to_string());
            wrong.extend(
                problems.iter().map(|problem: &ManifestProblem| {
                    describe(title.as_deref(), &problem.to_string())
                }),
            );
        }
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(Error::Refused(wrong.join("\n")))
        }
    }

    fn given(&self, listed: &ListedResources) -> Result<Option<GivenKey>, Error> {
        let Some(path) = &self.api_key else {
            return Ok(None);
        };
        Ok(Some(plan::given(
            read_key(path)?,
            self.base_url.as_ref(),
            &listed.objects,
        )?))
    }

    fn beginning(
        &self,
        listed: ListedResources,
        manifests: Vec<Value>,
        given: Option<GivenKey>,
        connected: &Connected,
    ) -> Beginning {
        let mut not_read = listed.not_read;
        let cluster = self.cluster_id.clone().or(listed.cluster).unwrap_or_else(|| {
            not_read.push(
                "Which cluster this is: you may not read namespace kube-system. Keys count as another cluster's unless you give --cluster-id."
                    .to_owned(),
            );
            ClusterId::unknown()
        });
        Beginning {
            now: clock::now(),
            settings: PassSettings {
                limits: Limits {
                    settle: Duration::from_secs(self.settle_time),
                    deletes_per_minute: self.deletes_per_minute,
                    ..Limits::default()
                },
                request_timeout: Duration::from_secs(self.request_timeout),
                platforms: Platforms::with_aliases(self.platform_aliases.clone()),
                cluster,
                namespaces: self.watch_namespaces.clone(),
                cluster_accounts: !self.no_cluster_accounts,
            },
            objects: listed.objects,
            namespaces: listed.namespaces,
            manifests,
            namespace: self.namespace(connected),
            selected: listed.selected,
            given,
            not_read,
        }
    }
}

/// Fails for manifests that the API server would reject, or whose schedules dbplane would ignore.
fn refuse_invalid(checked: &[Checked]) -> Result<(), Error> {
    let (mut not_followed, mut refused) = (Vec::new(), Vec::new());
    for object in checked {
        for finding in &object.findings {
            let help = finding.help.as_ref();
            let help = help
                .map(|help| format!("\n  help: {help}"))
                .unwrap_or_default();
            let line = describe(object.object.as_deref(), &format!("{finding}{help}"));
            if finding.check == Check::Schedule {
                not_followed.push(line);
            } else {
                refused.push(line);
            }
        }
    }
    if !refused.is_empty() {
        return Err(Error::Refused(refused.join("\n")));
    }
    if !not_followed.is_empty() {
        return Err(Error::NotFollowed(not_followed.join("\n")));
    }
    Ok(())
}

fn describe(object: Option<&str>, what: &str) -> String {
    object.map_or_else(|| what.to_owned(), |object| format!("{object}: {what}"))
}
