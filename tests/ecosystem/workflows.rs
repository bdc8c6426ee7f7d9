//! The real actionlint checks the workflows.

use std::path::Path;
use std::process::Command;

use crate::tools;

#[test]
fn actionlint_has_no_remark_on_the_workflows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(".github/workflows");
    let files = std::fs::read_dir(folder).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 2, "{files:?}");
    let checked = Command::new(tools("actionlint").join("actionlint"))
        .arg("-no-color")
        .args(&files)
        .output()
        .unwrap();
    assert!(
        checked.status.success(),
        "{}{}",
        String::from_utf8_lossy(&checked.stdout),
        String::from_utf8_lossy(&checked.stderr)
    );
}
