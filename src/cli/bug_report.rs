//! `dbplane bugreport`: collects the data of a bug report, without names and secrets.

use std::io::{self, Write};

use super::common::{ClusterArgs, ConnectionError, MetricsArgs};
use super::progress::during;
use crate::bug_report::{self, BugReport, BugReportScope, Names};

/// Collect the data of a bug report: versions, the operator's Deployment and Lease, resources that
/// differ from their spec, events, metrics
///
/// Writes YAML to standard output, so that you can read it before you send it. The command changes
/// nothing and reads no Secret. It replaces the names of namespaces, objects, hosts and users, and
/// the platform's identifiers, by distinct placeholders, and leaves out labels, your own annotations and templates. It
/// connects to the cluster of KUBECONFIG. The report lists everything that you may not read as
/// missing.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct BugReportArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Only resources of this namespace; all when absent
    #[arg(long, short)]
    namespace: Option<String>,
    /// Also show resources that match their spec; otherwise they are only counted
    #[arg(long)]
    all: bool,
    /// The namespace that the operator runs in
    #[arg(long, default_value = "dbplane-system", value_name = "NAMESPACE")]
    operator_namespace: String,
    #[command(flatten)]
    metrics: MetricsArgs,
    /// Do not replace names
    #[arg(long)]
    keep_names: bool,
}

const HELP: &str = "Examples:
  dbplane bugreport > report.yaml
  dbplane bugreport -n shop --all --keep-names

Exit status:
  0  it was written; what could not be read is listed in it
  1  the cluster cannot be reached
  2  the command line is wrong";

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error("cannot write the report as YAML: {0}")]
    Yaml(#[from] serde_saphyr::ser::Error),
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

/// Collects the report and writes it to `out`.
///
/// # Errors
/// If the cluster cannot be reached. Anything else that cannot be read is listed in the report.
pub async fn run(args: &BugReportArgs, out: &mut impl Write) -> Result<(), Error> {
    let client = args.cluster.connect().await?.client;
    let scope = BugReportScope {
        namespace: args.namespace.clone(),
        all: args.all,
        operator_namespace: args.operator_namespace.clone(),
        metrics: args.metrics.source(),
    };
    let BugReport {
        sections,
        names,
        missing,
    } = during("collecting", bug_report::collect(&client, &scope)).await;
    let names = if args.keep_names {
        Names::default()
    } else {
        names
    };
    writeln!(
        out,
        "# A bug report of dbplane {}. Please read it before you send it.",
        env!("CARGO_PKG_VERSION")
    )?;
    writeln!(
        out,
        "# {}",
        if args.keep_names {
            "Names are as they are."
        } else {
            "Names are replaced by words that tell them apart."
        }
    )?;
    for (title, value) in &sections {
        write!(
            out,
            "\n# {title}\n{}",
            serde_saphyr::to_string(&names.redact(value))?
        )?;
    }
    let missing: Vec<_> = missing.iter().map(|text| names.text(text)).collect();
    write!(
        out,
        "\n{}",
        serde_saphyr::to_string(&serde_json::json!({"missing": missing}))?
    )?;
    Ok(())
}
