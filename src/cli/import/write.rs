//! Writes the manifests to a directory or to standard output.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::cli::files::{InputSource, sources};
use crate::import::{File, FileRole};

/// The reason why the files were not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "{0} files are there with another content, {1} for instance. Nothing was written. Name another folder, or overwrite them with --force"
    )]
    Exists(usize, String),
    #[error("cannot write {file}: {cause}")]
    File { file: String, cause: io::Error },
    #[error("cannot write to standard output or standard error: {0}")]
    Output(#[from] io::Error),
}

/// Maximum number of names in a message.
const NAMED: usize = 5;

/// Writes all files, or none if one would overwrite other content.
pub fn to_folder(
    folder: &Path,
    files: &[File],
    force: bool,
    notes: &mut impl Write,
) -> Result<(), Error> {
    let in_the_way: Vec<&File> = files
        .iter()
        .filter(|file| has_other_content(&folder.join(&file.path), &file.text))
        .collect();
    if let (Some(first), false) = (in_the_way.first(), force) {
        return Err(Error::Exists(
            in_the_way.len(),
            folder.join(&first.path).display().to_string(),
        ));
    }
    for file in files {
        let path = folder.join(&file.path);
        write_file(&path, &file.text).map_err(|cause| Error::File {
            file: path.display().to_string(),
            cause,
        })?;
    }
    let left = left_over(folder, files);
    for path in left.iter().take(NAMED) {
        writeln!(
            notes,
            "stays as it is, as this import has no such file: {}",
            path.display()
        )?;
    }
    if left.len() > NAMED {
        writeln!(notes, "and {} more", left.len() - NAMED)?;
    }
    Ok(())
}

fn has_other_content(path: &Path, text: &str) -> bool {
    path.symlink_metadata().is_ok() && fs::read(path).ok().as_deref() != Some(text.as_bytes())
}

fn write_file(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text)
}

/// Manifests in the directories of the projects that this import did not write. The kustomization
/// does not name them.
fn left_over(folder: &Path, files: &[File]) -> Vec<PathBuf> {
    let written: BTreeSet<PathBuf> = files.iter().map(|file| folder.join(&file.path)).collect();
    let folders: BTreeSet<PathBuf> = files
        .iter()
        .filter_map(|file| file.path.split_once('/'))
        .map(|(project, _)| folder.join(project))
        .collect();
    let found = sources(&folders.into_iter().collect::<Vec<_>>())
        .found
        .into_iter()
        .flatten();
    found
        .filter_map(|source| match source {
            InputSource::File(path) if !written.contains(&path) => Some(path),
            _ => None,
        })
        .collect()
}

/// Writes the manifests that can be applied as they are, as one stream of documents.
pub fn to_output(
    files: &[File],
    out: &mut impl Write,
    notes: &mut impl Write,
) -> Result<(), Error> {
    for file in files.iter().filter(|file| file.role == FileRole::Resource) {
        write!(out, "---\n{}", file.text)?;
    }
    let keys = files
        .iter()
        .filter(|file| file.role == FileRole::Replacement)
        .count();
    if keys > 0 {
        writeln!(
            notes,
            "{keys} ProjectKeys are not written: applying one creates a key. With --out they get files of their own"
        )?;
    }
    Ok(())
}
