//! Upgrades from the previous version and back: both programs on a real control plane with one
//! simulated platform.
//!
//! `make record-objects` stores the objects of the previous version in `tests/ecosystem/recorded`,
//! for tests that do not have its program.

mod bring_about;
mod rolling;
mod site;
mod taking_over;

use std::path::PathBuf;

use crate::tools;

/// An older version of the operator, or the one under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Of(&'static str),
    This,
}

impl Version {
    fn program(self) -> PathBuf {
        match self {
            Self::Of(commit) => tools(&format!("dbplane-{commit}")).join("dbplane"),
            Self::This => PathBuf::from(env!("CARGO_BIN_EXE_dbplane")),
        }
    }

    /// The files with the resource definitions of this version.
    fn definitions(self) -> Vec<PathBuf> {
        let this = crate::support::definition_files();
        match self {
            Self::This => this,
            Self::Of(commit) => {
                let folder = tools(&format!("dbplane-{commit}")).join("crds");
                this.iter()
                    .map(|file| folder.join(file.file_name().unwrap()))
                    .filter(|file| file.exists())
                    .collect()
            }
        }
    }
}
