//! Tests with real servers and clients, of dbplane's output and of the simulator's public profile.
//! They need Debian packages and language registries, which takes too long for every change: `make
//! ecosystem`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod chart;
mod clients;
mod command_line;
mod connection;
mod console;
#[allow(
    dead_code,
    unused_imports,
    reason = "the tests of the operator use all of it"
)]
#[path = "../operator/fixture/mod.rs"]
mod fixture;
mod gitops;
mod image;
mod monitoring;
mod postgres;
mod public;
#[path = "../upgrade/mod.rs"]
mod recorded;
mod release;
mod sdk;
mod upgrade;
mod workflows;

#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};

/// The folder in which tests/ecosystem/build installs a tool.
fn tools(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("target/ecosystem")
        .join(name);
    assert!(
        folder.exists(),
        "{} is not there: run make ecosystem",
        folder.display()
    );
    folder
}

/// The first file with this path from Debian's packages, unpacked or installed; * matches one name.
fn of_debian(path: &[&str]) -> PathBuf {
    of_packages("debian", path)
}

/// Like `of_debian`, for the packages that were unpacked under this name.
fn of_packages(name: &str, path: &[&str]) -> PathBuf {
    let roots = [tools(name), PathBuf::from("/")];
    let found = roots.into_iter().find_map(|root| below(root, path));
    found.unwrap_or_else(|| {
        panic!(
            "no package of Debian has {}: run make ecosystem",
            path.join("/")
        )
    })
}

fn below(folder: PathBuf, path: &[&str]) -> Option<PathBuf> {
    let Some((first, rest)) = path.split_first() else {
        return folder.exists().then_some(folder);
    };
    if *first != "*" {
        return below(folder.join(first), rest);
    }
    let entries = std::fs::read_dir(folder).ok()?;
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.into_iter().find_map(|entry| below(entry, rest))
}
