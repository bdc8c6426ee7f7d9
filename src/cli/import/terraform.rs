//! Imports computes from a Terraform state.

use std::io::Write;
use std::path::Path;

use super::{Error, ImportArgs};
use crate::cli::files::InputSource;
use crate::import::Subjects;
use crate::import::terraform::{self, StateContents};
use crate::text::quoted;

/// Everything to declare. Objects that stay with Terraform are listed in `notes`.
pub fn subjects(
    args: &ImportArgs,
    state: &Path,
    notes: &mut impl Write,
) -> Result<Subjects, Error> {
    let source = if state.as_os_str() == "-" {
        InputSource::Stdin
    } else {
        InputSource::File(state.to_owned())
    };
    let (file, text) = source.read().map_err(Error::Unreadable)?;
    let contents = terraform::read(&text).map_err(|cause| Error::State { file, cause })?;
    for unclear in &contents.unclear {
        writeln!(notes, "left out: {unclear}")?;
    }
    let preface = preface(&contents);
    for line in &preface {
        writeln!(notes, "{line}")?;
    }
    let StateContents {
        mut computes,
        mut keys,
        ..
    } = contents;
    if !args.project.is_empty() {
        computes.retain(|found| args.project.contains(&found.project));
        keys.retain(|key| args.project.contains(&key.project));
    }
    Ok(Subjects {
        computes,
        keys,
        preface,
        ..Subjects::default()
    })
}

fn preface(contents: &StateContents) -> Vec<String> {
    let mut lines = vec![
        "From a state of Terraform, by dbplane import. What is next: docs/guide/from-terraform.md"
            .to_owned(),
    ];
    let removed = contents
        .taken_over
        .iter()
        .map(|address| format!("terraform state rm {}", quoted(address)));
    let keys = contents.keys.iter().filter_map(|key| key.address.clone());
    lines.extend(titled(
        "Before management: Full, take these out of Terraform, which would otherwise change them back:",
        removed,
    ));
    lines.extend(titled(
        "Keys that a ProjectKey can replace, in the folders keys:",
        keys,
    ));
    lines.extend(titled(
        "Stays with Terraform:",
        contents.staying.iter().cloned(),
    ));
    lines
}

/// A title and its lines, or nothing if there are none.
fn titled(title: &str, addresses: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines = vec![title.to_owned()];
    lines.extend(addresses.map(|address| format!("  {address}")));
    if lines.len() == 1 {
        return Vec::new();
    }
    lines
}
