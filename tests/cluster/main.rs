//! Tests that need a real API server. All tests share one control plane and use their own names or
//! namespaces.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod kinds;
mod kustomize;
mod manifests;
mod protection;
mod statuses;
#[path = "../support/mod.rs"]
mod support;
#[path = "../manifests/table.rs"]
mod table;

use support::{ControlPlane, Options, definition_files};
use tokio::sync::OnceCell;

/// The shared control plane with the committed definitions.
async fn cluster() -> &'static ControlPlane {
    static CLUSTER: OnceCell<ControlPlane> = OnceCell::const_new();
    CLUSTER
        .get_or_init(|| async {
            let options = Options {
                crds: definition_files(),
                ..Options::default()
            };
            ControlPlane::start_with(options).await.unwrap()
        })
        .await
}
