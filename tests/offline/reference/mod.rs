//! Compares docs/reference with pages generated from the program's own definitions. `make
//! reference` writes them.

mod commands;
mod deployed;
mod fields;
pub mod metrics;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use dbplane::controller::definitions;
use serde_json::Value;

use crate::crds::walk_schemas;

/// Set by `make reference` and `make metrics`.
const WRITE: &str = "DBPLANE_WRITE_REFERENCE";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference")
}

/// The pages by file name.
fn pages() -> Vec<(String, String)> {
    let kinds: Vec<Value> = definitions()
        .iter()
        .map(|definition| serde_json::to_value(definition).unwrap())
        .collect();
    let mut pages: Vec<_> = kinds
        .iter()
        .map(|kind| (fields::file(kind), fields::page(kind, &kinds)))
        .collect();
    pages.push(("commands.md".to_owned(), commands::operator()));
    pages.push(("simulator.md".to_owned(), commands::simulator()));
    pages
}

#[test]
fn the_pages_match_the_output_of_the_program() {
    let pages = pages();
    if std::env::var_os(WRITE).is_some() {
        pages
            .iter()
            .for_each(|(name, text)| fs::write(folder().join(name), text).unwrap());
    }
    let is_outdated = |(name, text): &&(String, String)| {
        fs::read_to_string(folder().join(name)).ok().as_ref() != Some(text)
    };
    let outdated: Vec<&String> = pages
        .iter()
        .filter(is_outdated)
        .map(|(name, _)| name)
        .collect();
    assert!(
        outdated.is_empty(),
        "docs/reference is not up to date, run make reference: {outdated:?}"
    );

    // names.md is written by hand.
    let made: BTreeSet<String> = pages
        .into_iter()
        .map(|(name, _)| name)
        .chain(["names.md".to_owned()])
        .collect();
    let names = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(
        names.collect::<BTreeSet<_>>(),
        made,
        "docs/reference has pages that are not made"
    );
}

/// Fields that a replica shares with a Compute are described there.
#[test]
fn every_field_has_a_heading() {
    let pages: BTreeMap<String, String> = pages().into_iter().collect();
    let mut seen = 0;
    walk_schemas(&mut |path, _| {
        let (kind, path) = path.split_once('.').unwrap_or((path, ""));
        if path.is_empty() || path.ends_with("[]") || path.ends_with("{}") {
            return;
        }
        seen += 1;
        let page = &pages[&format!("{}.md", kind.to_lowercase())];
        let of_replica = path
            .strip_prefix("spec.template.spec.")
            .and_then(|rest| rest.split(['.', '[', '{']).next());
        let is_linked =
            of_replica.is_some_and(|field| page.contains(&format!("[{field}](compute.md#spec")));
        assert!(
            is_linked || page.contains(&format!("# {path}\n")),
            "{kind}: {path}"
        );
    });
    assert!(seen > 200, "{seen}");
}
