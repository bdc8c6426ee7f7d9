//! A replacement for source-controller: a repository whose revisions are served as archives on
//! loopback.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use sha2::{Digest, Sha256};

use crate::fixture::listener;

/// The archives by revision.
type Archives = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

pub struct Source {
    archives: Archives,
    url: String,
}

/// A revision as in `status.artifact` of a source.
pub struct Artifact {
    pub url: String,
    pub revision: String,
    pub digest: String,
    pub size: usize,
}

impl Source {
    pub fn serve() -> Self {
        let (archives, listener) = (Archives::default(), listener());
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/{name}", axum::routing::get(archive))
            .with_state(archives.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { archives, url }
    }

    /// Publishes a new revision that consists of these files.
    pub fn publish(&self, files: &[(String, String)]) -> Artifact {
        let bytes = packed(files);
        let digest = hex(&Sha256::digest(&bytes));
        let mut archives = self.archives.lock().unwrap();
        let revision = format!("main@sha1:{:040x}", archives.len() + 1);
        let name = format!("{}.tar.gz", archives.len() + 1);
        let (url, size) = (format!("{}/{name}", self.url), bytes.len());
        archives.insert(name, bytes);
        Artifact {
            url,
            revision,
            digest: format!("sha256:{digest}"),
            size,
        }
    }
}

async fn archive(
    State(archives): State<Archives>,
    Path(name): Path<String>,
) -> Result<Vec<u8>, StatusCode> {
    archives
        .lock()
        .unwrap()
        .get(&name)
        .cloned()
        .ok_or(StatusCode::NOT_FOUND)
}

fn packed(files: &[(String, String)]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let output = Command::new("tar")
        .args(["--create", "--gzip", "--directory"])
        .arg(folder.path())
        .arg(".")
        .output();
    let output = output.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
