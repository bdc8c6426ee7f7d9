//! The workflows call only what a developer can run too, and with as few rights as possible.
//! tests/ecosystem checks them with actionlint.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use regex::Regex;
use serde_json::Value;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

fn read(path: &str) -> String {
    let path = Path::new(REPOSITORY).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of each workflow, by its path.
fn workflows() -> BTreeMap<String, String> {
    let folder = std::fs::read_dir(Path::new(REPOSITORY).join(".github/workflows")).unwrap();
    let names = folder.map(|file| file.unwrap().file_name().into_string().unwrap());
    names
        .map(|name| format!(".github/workflows/{name}"))
        .map(|path| (path.clone(), read(&path)))
        .collect()
}

/// Each job, by its workflow and name.
fn jobs() -> BTreeMap<String, Value> {
    let mut jobs = BTreeMap::new();
    for (path, text) in workflows() {
        let workflow: Value = serde_saphyr::from_str(&text).unwrap();
        for (name, job) in workflow["jobs"].as_object().unwrap() {
            jobs.insert(format!("{path}: {name}"), job.clone());
        }
    }
    jobs
}

fn steps(job: &Value) -> &[Value] {
    job["steps"].as_array().unwrap()
}

/// The shell commands of all jobs, with the job that has them.
fn commands() -> Vec<(String, String)> {
    let mut commands = Vec::new();
    for (name, job) in jobs() {
        let scripts = steps(&job).iter().filter_map(|step| step["run"].as_str());
        commands.extend(scripts.map(|script| (name.clone(), script.to_owned())));
    }
    commands
}

/// The values of this pattern's first group.
fn found<'a>(pattern: &str, text: &'a str) -> Vec<&'a str> {
    let pattern = Regex::new(pattern).unwrap();
    let found = pattern.captures_iter(text);
    found.map(|found| found.get(1).unwrap().as_str()).collect()
}

#[test]
fn every_target_and_script_that_a_workflow_calls_exists() {
    let makefile = read("Makefile");
    let calls =
        Regex::new(r"(?m)(?:^|[ (])((?:\.ci|release|tests|docs)/[a-z/-]+)(?: ([a-z]+))?").unwrap();
    let (mut targets, mut scripts) = (0, 0);
    for (job, command) in commands() {
        for target in found(r"(?m)(?:^|[ (])make ([a-z-]+)", &command) {
            let is_there = makefile
                .lines()
                .any(|line| line.starts_with(&format!(".PHONY: {target}")));
            assert!(is_there, "{job}: the Makefile has no target {target}");
            targets += 1;
        }
        for call in calls.captures_iter(&command) {
            let script = Path::new(REPOSITORY).join(&call[1]);
            let metadata = script.metadata();
            let is_program =
                metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0);
            assert!(is_program, "{job}: {} is no program", &call[1]);
            if let Some(verb) = call.get(2) {
                let case = Regex::new(&format!(
                    r"(?m)^ *(?:[a-z]+ \| )*{}(?: \| [a-z]+)*\) ",
                    verb.as_str()
                ));
                assert!(
                    case.unwrap().is_match(&read(&call[1])),
                    "{job}: {} has no {}",
                    &call[1],
                    verb.as_str()
                );
            }
            scripts += 1;
        }
    }
    assert!(targets >= 2 && scripts >= 10, "{targets} {scripts}");
}

#[test]
fn every_action_is_pinned_by_a_hash() {
    let pinned = Regex::new(r"^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$").unwrap();
    for (path, text) in workflows() {
        let uses = found(r"(?m)\buses: (.+)$", &text);
        assert!(!uses.is_empty(), "{path}");
        for action in uses {
            assert!(pinned.is_match(action), "{path}: {action}");
        }
    }
}

/// A registry is named by a variable of the repository.
#[test]
fn no_host_is_written_in_a_workflow() {
    for (path, text) in workflows() {
        let hosts = found(
            r"(?i)\b([a-z0-9-]+\.(?:app|cloud|com|dev|io|net|org))\b",
            &text,
        );
        assert!(hosts.is_empty(), "{path}: {hosts:?}");
    }
}

#[test]
fn each_job_has_few_rights_and_an_end() {
    for (path, text) in workflows() {
        assert!(text.contains("\npermissions: {}\n"), "{path}");
    }
    for (name, job) in jobs() {
        assert!(job["timeout-minutes"].is_u64(), "{name}");
        let rights = job["permissions"].as_object();
        let rights = rights.unwrap_or_else(|| panic!("{name}: no permissions"));
        let writes = rights.iter().filter(|(_, right)| *right == "write");
        let writes: Vec<_> = writes.map(|(name, _)| name.as_str()).collect();
        let expected: &[&str] = match name.rsplit(' ').next().unwrap() {
            "registry" => &["id-token"],
            "page" => &["contents"],
            _ => &[],
        };
        assert_eq!(writes, expected, "{name}");
        for step in steps(&job) {
            let is_checkout = step["uses"]
                .as_str()
                .is_some_and(|it| it.contains("/checkout@"));
            let keeps = step["with"]["persist-credentials"] != false;
            assert!(
                !(is_checkout && keeps),
                "{name}: the checkout keeps its token"
            );
        }
    }
}

/// Text from outside reaches a shell only in its environment, and so does a secret.
#[test]
fn no_expression_is_part_of_a_script() {
    for (job, command) in commands() {
        assert!(!command.contains("${{"), "{job}: {command}");
    }
}

/// krew's manifest has an entry for each archive that it finds.
#[test]
fn the_release_builds_an_archive_for_each_platform_of_the_plugin() {
    let jobs = jobs();
    let mut built = BTreeSet::new();
    for name in ["linux", "macos"] {
        let job = &jobs[&format!(".github/workflows/release.yml: {name}")];
        let machines = job["strategy"]["matrix"]["include"].as_array().unwrap();
        built.extend(
            machines
                .iter()
                .map(|it| it["platform"].as_str().unwrap().to_owned()),
        );
        assert!(
            steps(job)
                .iter()
                .any(|step| step["run"] == "release/make parts \"$VERSION\"")
        );
    }
    let made = read("release/make");
    let known = found(r"(?m)^    '.*'\) printf '([a-z0-9-]+)\\n' ;;$", &made);
    assert_eq!(built, known.into_iter().map(str::to_owned).collect());
    let expected =
        ["darwin", "linux"].map(|system| ["amd64", "arm64"].map(|it| format!("{system}-{it}")));
    assert_eq!(built, expected.into_iter().flatten().collect());
    let together = &jobs[".github/workflows/release.yml: together"];
    assert_eq!(
        together["needs"],
        serde_json::json!(["version", "linux", "macos"])
    );
    let template = read("deploy/krew/dbplane.yaml");
    assert!(
        template.contains("/dbplane-VERSION-SYSTEM-PROCESSOR.tar.gz"),
        "{template}"
    );
    assert!(made.contains("$dist/$1-$version-$platform.tar.gz"));
}

/// Programs are built with the Rust of Cargo.toml, on the Debian whose packages are in the images.
#[test]
fn the_container_has_the_rust_version_of_the_workspace() {
    let manifest = read("Cargo.toml");
    let version = found(r#"(?m)^rust-version = "(.+)"$"#, &manifest)[0];
    let linux = &jobs()[".github/workflows/release.yml: linux"];
    assert_eq!(linux["container"], format!("rust:{version}-bookworm"));
}

/// The job `version` compares the tag in this way.
#[test]
fn a_tag_that_is_no_version_of_the_commit_is_refused() {
    let version = |wanted: &str| {
        let make = Path::new(REPOSITORY).join("release/make");
        Command::new(make)
            .args(["version", wanted])
            .output()
            .unwrap()
    };
    for right in [
        env!("CARGO_PKG_VERSION"),
        concat!(env!("CARGO_PKG_VERSION"), "-rc.1"),
    ] {
        let output = version(right);
        assert!(output.status.success(), "{right}");
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), right);
    }
    for wrong in ["9.9.9", "", concat!(env!("CARGO_PKG_VERSION"), "0")] {
        assert!(!version(wrong).status.success(), "{wrong}");
    }
}
