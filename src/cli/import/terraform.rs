//! Imports computes from a Terraform state.

use std::io::Write;
use std::path::Path;

use super::{Error, ImportArgs};
use crate::cli::files::InputSource;
use crate::import::terraform::{self, StateContents};
use crate::import::{Subjects, quoted};

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
    let is_meant = |project: &String| args.project.is_empty() || args.project.contains(project);
    computes.retain(|found| is_meant(&found.project));
    keys.retain(|key| is_meant(&key.project));
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
    let mut list = |title: &str, addresses: Vec<String>| {
        if !addresses.is_empty() {
            lines.push(title.to_owned());
            lines.extend(addresses.into_iter().map(|address| format!("  {address}")));
        }
    };
    let removed = contents
        .taken_over
        .iter()
        .map(|address| format!("terraform state rm {}", quoted(address)));
    list(
        "Before management: Full, take these out of Terraform, which would otherwise change them back:",
        removed.collect(),
    );
    let keys = contents.keys.iter().filter_map(|key| key.address.clone());
    list(
        "Keys that a ProjectKey can replace, in the folders keys:",
        keys.collect(),
    );
    list("Stays with Terraform:", contents.staying.clone());
    lines
}
