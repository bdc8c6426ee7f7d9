//! What only a real API server can tell. Every test shares one control plane and has names or namespaces of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod kinds;
mod manifests;
mod statuses;
#[path = "../support/mod.rs"]
mod support;
#[path = "../manifests/table.rs"]
mod table;

use std::path::PathBuf;

use support::{ControlPlane, Options};
use tokio::sync::OnceCell;

/// The control plane of this process, with the committed definitions installed.
async fn cluster() -> &'static ControlPlane {
    static CLUSTER: OnceCell<ControlPlane> = OnceCell::const_new();
    CLUSTER
        .get_or_init(|| async {
            let options = Options { crds: definitions(), ..Options::default() };
            ControlPlane::start_with(options).await.unwrap()
        })
        .await
}

fn definitions() -> Vec<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/crds"));
    ["accounts", "clusteraccounts", "computes", "projectkeys"]
        .map(|plural| folder.join(format!("dbplane.dev_{plural}.yaml")))
        .to_vec()
}
