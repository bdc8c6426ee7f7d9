//! The programs that the first build needs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// The programs that the script itself uses.
const BASE: [&str; 12] = [
    "awk",
    "bash",
    "cat",
    "cut",
    "dirname",
    "env",
    "head",
    "ln",
    "mkdir",
    "sha256sum",
    "sort",
    "uname",
];

fn found(program: &str) -> std::path::PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(program));
    places.find(|place| place.is_file()).unwrap()
}

/// Runs the script with these programs alone, and without a cache. Returns what it says.
fn said(programs: &[(&str, &str)]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for program in BASE {
        symlink(found(program), bin.join(program)).unwrap();
    }
    for (name, script) in programs {
        let file = bin.join(name);
        fs::write(&file, format!("#!/bin/bash\n{script}\n")).unwrap();
        let mut permissions = fs::metadata(&file).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        fs::set_permissions(&file, permissions).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control-plane/build");
    let output = Command::new(script)
        .arg("openssl")
        .env_clear()
        .env("PATH", &bin)
        .env("HOME", folder.path())
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn everything_that_is_missing_is_named_before_anything_is_built() {
    let (code, said) = said(&[]);
    assert_eq!(code, Some(1), "{said}");
    for need in [
        "\n  Rust 1.",
        "\n  Go 1.",
        "\n  a C compiler: ",
        "\n  openssl: ",
    ] {
        assert!(said.contains(need), "{need}: {said}");
    }
}

#[test]
fn an_old_rust_is_named_and_what_is_there_is_not() {
    let old = [
        ("cargo", "echo 'cargo 1.80.0 (a 2024-01-01)'"),
        ("cc", ""),
        ("openssl", ""),
    ];
    let (code, said) = said(&old);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("\n  Rust 1."), "{said}");
    assert!(
        !said.contains("openssl:") && !said.contains("C compiler"),
        "{said}"
    );
}
