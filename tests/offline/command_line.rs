//! The command line as a whole: help of all commands, completions and man pages.

use std::fs;
use std::path::Path;
use std::process::{Command as Process, Output};

use clap::Command;

/// All visible commands with their full names.
pub fn verbs(command: &Command, name: &str) -> Vec<(String, Command)> {
    let below = command
        .get_subcommands()
        .filter(|verb| verb.get_name() != "help");
    let mut all = Vec::new();
    for verb in below {
        let name = format!("{name} {}", verb.get_name());
        let more = verbs(verb, &name);
        if more.is_empty() {
            all.push((name, verb.clone()));
        } else {
            all.extend(more);
        }
    }
    all
}

fn dbplane(args: &[&str]) -> Output {
    Process::new(env!("CARGO_BIN_EXE_dbplane"))
        .args(args)
        .env_clear()
        .output()
        .unwrap()
}

#[test]
fn each_verb_shows_examples_and_exit_codes() {
    let all = verbs(&dbplane::cli::command(), "dbplane");
    assert!(all.len() >= 18, "{}", all.len());
    for (name, verb) in all {
        let help = verb
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let (examples, codes) = help
            .split_once("\n\nExit status:\n")
            .unwrap_or_else(|| panic!("{name}: {help}"));
        assert!(
            examples.starts_with("Examples:\n") && examples.contains(&format!("  {name}")),
            "{name}: {help}"
        );
        for code in ["  0  ", "  1  ", "  2  "] {
            assert!(codes.contains(code), "{name}: {help}");
        }
        assert!(verb.get_about().is_some(), "{name}");
        examples_are_accepted(&name, examples);
    }
}

/// Every example must parse as a command line.
fn examples_are_accepted(name: &str, examples: &str) {
    let lines = examples.lines().filter_map(|line| line.strip_prefix("  "));
    for line in lines.filter(|line| line.starts_with("dbplane ")) {
        let line = line
            .split("   ")
            .next()
            .unwrap()
            .split([';', '|', '>', '<', '&'])
            .next()
            .unwrap();
        let parsed = dbplane::cli::command().try_get_matches_from(line.split_whitespace());
        assert!(parsed.is_ok(), "{name}: {line}: {}", parsed.unwrap_err());
    }
}

/// The kubeconfig of a cluster at a closed port.
const NOWHERE: &str = r#"{
    "apiVersion": "v1", "kind": "Config", "current-context": "a",
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:9"}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "users": [{"name": "a", "user": {"token": "canary"}}]
}"#;

#[test]
fn an_unreachable_cluster_is_reported_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    fs::write(&kubeconfig, NOWHERE).unwrap();
    let run = |args: &str, kubeconfig: &Path| {
        let mut command = Process::new(env!("CARGO_BIN_EXE_dbplane"));
        let output = command
            .args(args.split(' '))
            .env_clear()
            .env("KUBECONFIG", kubeconfig)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for args in [
        "status",
        "plan",
        "bugreport",
        "remove-finalizers -A",
        "account check prod",
        "import --account prod",
        "restart compute/orders",
        "revoked projectkey/ci --key all --yes",
    ] {
        let (code, said) = run(args, &kubeconfig);
        assert_eq!(code, Some(1), "{args}: {said}");
        let (by_flag, same) = run(
            &format!("{args} --kubeconfig {}", kubeconfig.display()),
            Path::new("/nowhere"),
        );
        assert_eq!((by_flag, &same), (code, &said), "{args}");
        for words in ["https://127.0.0.1:9/", "Connection refused", "--context"] {
            assert!(said.contains(words), "{args}: {said}");
        }
        assert!(
            said.lines().count() == 1 && !said.contains("canary"),
            "{args}: {said}"
        );
        let (code, said) = run(args, &folder.path().join("none"));
        assert!(
            code == Some(1) && said.contains("Set KUBECONFIG"),
            "{args}: {said}"
        );
    }
}

#[test]
fn unreadable_proxy_exceptions_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    fs::write(&kubeconfig, NOWHERE).unwrap();
    for args in [&["status"][..], &["status", "--context", "a"]] {
        let mut command = Process::new(env!("CARGO_BIN_EXE_dbplane"));
        command
            .args(args)
            .env_clear()
            .env("KUBECONFIG", &kubeconfig);
        command
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("NO_PROXY", "a.example,");
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(1)
                && said.contains("NO_PROXY")
                && said.contains("last comma"),
            "{said}"
        );
    }
}

#[test]
fn there_are_completions_for_five_shells() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let printed = dbplane(&["completion", shell]);
        let text = String::from_utf8(printed.stdout).unwrap();
        assert!(
            printed.status.success() && text.contains("DBPLANE_COMPLETE"),
            "{shell}"
        );
        if shell == "bash" {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("dbplane");
            fs::write(&file, &text).unwrap();
            let checked = Process::new("bash").arg("-n").arg(&file).output().unwrap();
            assert!(
                checked.status.success(),
                "{}",
                String::from_utf8_lossy(&checked.stderr)
            );
        }
    }
    assert_eq!(dbplane(&["completion", "cmd"]).status.code(), Some(2));
}

#[test]
fn there_is_a_man_page_for_each_verb() {
    let folder = tempfile::tempdir().unwrap();
    let written = dbplane(&["man", "--dir", folder.path().join("man1").to_str().unwrap()]);
    assert!(
        written.status.success(),
        "{}",
        String::from_utf8_lossy(&written.stderr)
    );
    let page =
        |name: &str| fs::read_to_string(folder.path().join(format!("man1/{name}.1"))).unwrap();
    assert!(page("dbplane").contains("dbplane\\-status(1)"));
    for (name, _) in verbs(&dbplane::cli::command(), "dbplane") {
        let page = page(&name.replace(' ', "-"));
        for section in [".TH ", ".SH NAME", ".SH SYNOPSIS", "Exit status:"] {
            assert!(page.contains(section), "{name}: {section}");
        }
    }
}
