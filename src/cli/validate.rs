//! `dbplane validate`: checks manifests as the API server would, without an API server.

mod json;
mod junit;
mod text;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use super::files::{self, InputSource, UnreadableFile};
use crate::validate::{Checked, Checker, Finding, Unusable};

/// Check manifests of dbplane as the API server would, without a cluster
///
/// Reads YAML and JSON, including lists and several documents per file. Objects of other kinds are
/// skipped and counted. In directories, templates of Helm charts and patches of kustomizations are
/// not read. Two checks need the cluster and are not made: if an update may change a
/// field, and if a named object exists.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct ValidateArgs {
    /// Files to check; directories (all their .yaml, .yml and .json files); or - for standard input
    #[arg(required = true, value_name = "FILE|DIR|-")]
    paths: Vec<PathBuf>,
    /// Format of the findings
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

const EXIT_CODES: &str = "Examples:\n  dbplane validate deploy/\n  kubectl kustomize . | dbplane validate - -o junit\n\n\
                          Exit status:\n  0  nothing is wrong\n  1  something is wrong with an object, or a document cannot be read as YAML\n  \
                          2  the command line is wrong, or a file or directory cannot be read";

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Format {
    /// Lines for users, in the format of compilers
    #[default]
    Text,
    /// One JSON object
    Json,
    /// JUnit XML: a suite for each file, a test case for each object
    Junit,
}

/// The reason why the manifests cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Schema(#[from] Unusable),
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("cannot write the report: {0}")]
    Json(#[from] serde_json::Error),
    #[error("cannot write the report: {0}")]
    Junit(#[from] quick_junit::SerializeError),
}

/// All results.
#[derive(Debug, Default)]
struct ValidationReport {
    files: Vec<CheckedFile>,
    unreadable: Vec<UnreadableFile>,
    skipped: usize,
}

/// A file with an object of dbplane, or standard input.
#[derive(Debug)]
struct CheckedFile {
    name: String,
    checked: Vec<Checked>,
}

impl ValidationReport {
    fn objects(&self) -> usize {
        self.files.iter().map(|file| file.checked.len()).sum()
    }

    /// Each finding with its file and object.
    fn findings(&self) -> impl Iterator<Item = (&CheckedFile, &Checked, &Finding)> {
        let checked = self
            .files
            .iter()
            .flat_map(|file| file.checked.iter().map(move |checked| (file, checked)));
        checked.flat_map(|(file, checked)| {
            checked
                .findings
                .iter()
                .map(move |finding| (file, checked, finding))
        })
    }

    fn exit_code(&self) -> ExitCode {
        match (self.unreadable.is_empty(), self.findings().next()) {
            (false, _) => ExitCode::from(2),
            (true, Some(_)) => ExitCode::FAILURE,
            (true, None) => ExitCode::SUCCESS,
        }
    }
}

/// Checks the sources in `args`, writes the findings to `out`, and the files that were not read to
/// `err`.
pub fn run(
    args: &ValidateArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<ExitCode, Error> {
    let checker = Checker::new()?;
    let mut report = ValidationReport::default();
    let sources = files::sources(&args.paths);
    let left_out = sources.left_out("dbplane validate -");
    for source in sources.found {
        match source.and_then(InputSource::read) {
            Ok((name, text)) => {
                let outcome = checker.check_text(&text);
                report.skipped += outcome.skipped;
                if !outcome.checked.is_empty() {
                    report.files.push(CheckedFile {
                        name,
                        checked: outcome.checked,
                    });
                }
            }
            Err(unreadable) => report.unreadable.push(unreadable),
        }
    }
    match args.output {
        Format::Text => text::write(&report, out)?,
        Format::Json => json::write(&report, out)?,
        Format::Junit => junit::write(&report, out)?,
    }
    for UnreadableFile { file, cause } in &report.unreadable {
        writeln!(err, "dbplane: {file}: {cause}")?;
    }
    for line in left_out {
        writeln!(err, "dbplane: {line}")?;
    }
    Ok(report.exit_code())
}
