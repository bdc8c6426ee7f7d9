//! Runs the tools' own code to judge objects.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

/// The results of kstatus and Argo CD for an object.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Verdict {
    pub kstatus: String,
    pub health: String,
    pub message: String,
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The verdicts on these objects in order, with the health checks of the ConfigMap.
pub fn judge(config_map: &Value, objects: &[Value]) -> Vec<Verdict> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("argocd-cm.json"), config_map.to_string()).unwrap();
    let mut lines = File::create(path("objects")).unwrap();
    for object in objects {
        writeln!(lines, "{object}").unwrap();
    }
    let input = File::open(path("objects")).unwrap();
    let output = Command::new(program())
        .arg(path("argocd-cm.json"))
        .stdin(input)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8(output.stdout).unwrap();
    let verdicts: Vec<Verdict> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(verdicts.len(), objects.len());
    verdicts
}

/// Built once per process: half a minute the first time on a machine, then a second.
fn program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let output = Command::new(root().join("tests/ecosystem/status/build"))
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        root().join("target/ecosystem/status")
    });
    &PROGRAM
}
