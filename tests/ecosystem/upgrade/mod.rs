//! From the version before to this one, and back: the programs of both, on a real control plane, with one simulated platform.
//!
//! `make record-objects` keeps what the version before leaves behind in `tests/ecosystem/recorded`, for the tests that have no program of it.

mod bring_about;
mod rolling;
mod site;
mod taking_over;

use std::path::PathBuf;

use crate::tools;

/// The operator of a version, or the one that is tested.
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

    /// The definitions of its resources.
    fn definitions(self) -> Vec<PathBuf> {
        let this = crate::support::definition_files();
        match self {
            Self::This => this,
            Self::Of(commit) => {
                let folder = tools(&format!("dbplane-{commit}")).join("crds");
                this.iter().map(|file| folder.join(file.file_name().unwrap())).filter(|file| file.exists()).collect()
            }
        }
    }
}
