//! `dbplane crds`: prints the custom resource definitions as YAML, writes them to files together
//! with a JSON schema for editors, or checks committed files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::api::GROUP;
use crate::controller::definitions;
use crate::validate::{Checker, Unusable};

/// The JSON schema of all kinds.
const EDITOR_SCHEMA: &str = "dbplane.schema.json";

/// Print the custom resource definitions or their JSON schema, write them to files, or check such
/// files.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct CrdsArgs {
    /// Directory to write to: one file for each kind, a kustomization.yaml that lists them, and
    /// dbplane.schema.json, a JSON schema for editors.
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Only check: fail and list the files in the directory that are missing, different or
    /// unexpected.
    #[arg(long, requires = "dir")]
    check: bool,
    /// Print the JSON schema for editors instead.
    #[arg(long, conflicts_with = "dir")]
    schema: bool,
}

const HELP: &str = "Examples:
  dbplane crds | kubectl apply --server-side -f -
  dbplane crds --dir crds --check
  dbplane crds --schema >dbplane.schema.json

Exit status:
  0  they were printed or written, or the files are up to date
  1  they cannot be written, or with --check: the files differ
  2  the command line is wrong";

/// The reason why the definitions could not be printed or written, or how the files differ from
/// them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write the definitions as YAML: {0}")]
    Yaml(#[from] serde_saphyr::ser::Error),
    #[error("cannot write the JSON schema: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Schema(#[from] Unusable),
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    #[error("{}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error("{} is not up to date; run: dbplane crds --dir {}\n{}", dir.display(), dir.display(), differences.join("\n"))]
    Drift {
        dir: PathBuf,
        differences: Vec<String>,
    },
}

/// Runs the command. Everything that is not written to files goes to `out`.
pub fn run(args: &CrdsArgs, out: &mut dyn Write) -> Result<(), Error> {
    match (&args.dir, args.check) {
        (None, _) if args.schema => out
            .write_all(editor_schema()?.as_bytes())
            .map_err(Error::Output),
        (None, _) => out.write_all(stream()?.as_bytes()).map_err(Error::Output),
        (Some(dir), false) => write(dir),
        (Some(dir), true) => check(dir),
    }
}

/// All definitions as one YAML stream.
pub fn stream() -> Result<String, Error> {
    definitions()
        .iter()
        .map(|crd| Ok(format!("---\n{}", serde_saphyr::to_string(crd)?)))
        .collect()
}

/// The JSON schema for editors.
fn editor_schema() -> Result<String, Error> {
    let schema = Checker::new()?.editor_schema();
    Ok(format!("{}\n", serde_json::to_string_pretty(&schema)?))
}

/// The files of the directory of definitions, by name.
pub fn files() -> Result<BTreeMap<String, String>, Error> {
    let mut files = BTreeMap::new();
    for crd in definitions() {
        let name = format!("{GROUP}_{}.yaml", crd.spec.names.plural);
        files.insert(name, serde_saphyr::to_string(&crd)?);
    }
    let resources: String = files.keys().map(|name| format!("  - {name}\n")).collect();
    let kustomization = format!(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{resources}"
    );
    files.insert("kustomization.yaml".to_owned(), kustomization);
    files.insert(EDITOR_SCHEMA.to_owned(), editor_schema()?);
    Ok(files)
}

fn write(dir: &Path) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(|cause| unusable(dir, cause))?;
    for (name, text) in files()? {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|cause| unusable(&path, cause))?;
    }
    Ok(())
}

fn unusable(path: &Path, cause: io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        cause,
    }
}

fn check(dir: &Path) -> Result<(), Error> {
    let expected = files()?;
    let present = names_in(dir).map_err(|cause| unusable(dir, cause))?;
    let mut differences = Vec::new();
    for (name, text) in &expected {
        match fs::read_to_string(dir.join(name)) {
            Ok(found) if found == *text => {}
            Ok(_) => differences.push(format!("  differs:    {name}")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                differences.push(format!("  missing:    {name}"))
            }
            Err(cause) => return Err(unusable(&dir.join(name), cause)),
        }
    }
    let unexpected = present.iter().filter(|name| !expected.contains_key(*name));
    differences.extend(unexpected.map(|name| format!("  unexpected: {name}")));
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::Drift {
        dir: dir.to_owned(),
        differences,
    })
}

fn names_in(dir: &Path) -> io::Result<BTreeSet<String>> {
    fs::read_dir(dir)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}
