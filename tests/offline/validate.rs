//! The command `validate` as a process: its output in each format, and its exit codes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use quick_junit::{Report, TestCaseStatus};
use serde_json::Value;
use tempfile::TempDir;

use crate::table::cases;

const EXAMPLES: &str = "deploy/examples";
const BAD: &str = "examples/demo/bad-compute.yaml";
/// The mistakes in it: line, column and path.
const MISTAKES: [(u64, u64, &str); 3] = [
    (13, 17, "spec.size.fixed"),
    (27, 5, "spec.size.autoscaling"),
    (28, 3, "spec.scaleToZero"),
];

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn validate(args: &[&str]) -> Ran {
    validate_with(args, "")
}

fn validate_with(args: &[&str], input: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dbplane"))
        .arg("validate")
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A process that exits early because of a wrong command line reads nothing.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran {
        code: output.status.code().unwrap(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The line, column and path of each finding in a JSON report.
fn places(report: &Value) -> Vec<(u64, u64, &str)> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| {
            (
                finding["line"].as_u64().unwrap(),
                finding["column"].as_u64().unwrap(),
                finding["path"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn valid_files_pass() {
    let ran = validate(&[EXAMPLES]);
    // The others are four Secrets, three Namespaces, a Kustomization and the simulator's world.
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (0, "10 objects checked, 0 errors; 9 others skipped\n", "")
    );
}

#[test]
fn our_own_manifests_pass_and_templates_are_left_out() {
    let ran = validate(&["deploy/"]);
    assert_eq!(
        (ran.code, ran.err.lines().count()),
        (0, 1),
        "{}{}",
        ran.out,
        ran.err
    );
    assert!(ran.out.contains(" 0 errors"), "{}", ran.out);
    let advice = "templates of a Helm chart are not read; instead: helm template 'deploy/chart' | ";
    assert!(ran.err.contains(advice), "{}", ran.err);
}

#[test]
fn text_output_has_the_place_the_problem_and_the_advice() {
    let ran = validate(&[BAD]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    let lines: Vec<&str> = ran
        .out
        .lines()
        .filter(|line| !line.starts_with(' '))
        .collect();
    let size = "Compute shop/odd-size: spec.size.fixed: Invalid value: write a size in CU: 0.25, 0.5, 1 to 16";
    assert!(
        lines[0].starts_with(&format!("{BAD}:13:17: {size}")),
        "{}",
        ran.out
    );
    let range = "Compute shop/upside-down: spec.size.autoscaling: Invalid value: min is above max: exchange them";
    assert_eq!(lines[1], format!("{BAD}:27:5: {range}"));
    let zero = "Compute shop/upside-down: spec.scaleToZero: Invalid value: set exactly one of after and never";
    assert_eq!(
        lines[2..],
        [
            &format!("{BAD}:28:3: {zero}"),
            "2 objects checked, 3 errors; 0 others skipped"
        ]
    );
}

#[test]
fn json_output_has_the_same_contents() {
    let ran = validate(&["--output", "json", BAD]);
    let report = json(&ran.out);
    assert_eq!((ran.code, places(&report)), (1, MISTAKES.to_vec()));
    assert_eq!(
        (&report["checked"], &report["skipped"]),
        (&Value::from(2), &Value::from(0))
    );
    let first = &report["findings"][0];
    assert_eq!(
        (&first["file"], &first["object"]),
        (&BAD.into(), &"Compute shop/odd-size".into())
    );
    assert_eq!(first["check"], "rule");
}

#[test]
fn junit_has_a_case_for_each_object() {
    let ran = validate(&[
        "-o",
        "junit",
        BAD,
        "deploy/examples/account.yaml",
        "deploy/examples/namespace.yaml",
    ]);
    let report = Report::deserialize(ran.out.as_bytes()).unwrap();
    assert_eq!((ran.code, report.tests, report.failures), (1, 3, 2));
    let mut reported = String::new();
    let mut states = Vec::new();
    for (suite, case) in report
        .test_suites
        .iter()
        .flat_map(|suite| suite.test_cases.iter().map(move |case| (suite, case)))
    {
        let failed = matches!(case.status, TestCaseStatus::NonSuccess { .. });
        states.push((suite.name.as_str(), case.name.as_str(), failed));
        if let TestCaseStatus::NonSuccess { description, .. } = &case.status {
            reported.push_str(description.as_ref().unwrap());
            reported.push('\n');
        }
    }
    let expected = [
        (BAD, "Compute shop/odd-size", true),
        (BAD, "Compute shop/upside-down", true),
        ("deploy/examples/account.yaml", "Account shop/prod", false),
    ];
    assert_eq!(states, expected);
    for (line, column, path) in MISTAKES {
        assert!(
            reported.contains(&format!("{BAD}:{line}:{column}: {path}: ")),
            "{reported}"
        );
    }
}

#[test]
fn standard_input_is_read_and_lists_are_opened() {
    let manifests: Vec<Value> = serde_saphyr::from_multiple(
        &fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(BAD)).unwrap(),
    )
    .unwrap();
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": manifests});
    let text = serde_json::to_string_pretty(&list).unwrap();
    let ran = validate_with(&["-", "--output", "json"], &text);
    let report = json(&ran.out);
    assert_eq!(ran.code, 1);
    let lines: Vec<&str> = text.lines().collect();
    let found = places(&report);
    assert_eq!(found.len(), MISTAKES.len());
    for (line, _, path) in found {
        let key = path.rsplit('.').next().unwrap();
        assert!(
            lines[line as usize - 1].contains(&format!("\"{key}\"")),
            "{path} is not in line {line}:\n{text}"
        );
    }
    assert_eq!(report["findings"][0]["file"], "<stdin>");
}

#[test]
fn exactly_the_refused_manifests_of_the_table_fail_as_files() {
    let folder = TempDir::new().unwrap();
    let mut refused = Vec::new();
    for (index, case) in cases().iter().filter(|case| case.old.is_none()).enumerate() {
        let file = folder.path().join(format!("{index:03}.yaml"));
        fs::write(&file, serde_saphyr::to_string(&case.manifest).unwrap()).unwrap();
        if case.refusal.is_some() {
            refused.push(file.display().to_string());
        }
    }
    let ran = validate(&["--output", "json", folder.path().to_str().unwrap()]);
    let report = json(&ran.out);
    let findings = report["findings"].as_array().unwrap();
    let files: Vec<&str> = findings
        .iter()
        .map(|finding| finding["file"].as_str().unwrap())
        .collect();
    assert_eq!(
        (ran.code, files),
        (1, refused.iter().map(String::as_str).collect())
    );
}

#[test]
fn secrets_are_not_printed() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {key: hunter2}\n";
    let broken = "kind: Secret # for dbplane.dev\nstringData: {hunter2: a, hunter2: b}\n";
    let account = "apiVersion: dbplane.dev/v1alpha1\nkind: Account\nmetadata: {name: a}\nspec: {apiKeySecretRef: hunter2, \
                   baseURL: 'https://me:hunter2@platform.example/v2'}\n";
    for format in ["text", "json", "junit"] {
        let ran = validate_with(
            &["-", "-o", format],
            &format!("{secret}---\n{broken}---\n{account}"),
        );
        assert_eq!(ran.code, 1);
        assert!(
            !ran.out.contains("hunter2") && !ran.err.contains("hunter2"),
            "{}{}",
            ran.out,
            ran.err
        );
    }
}

#[test]
fn unreadable_files_are_distinguished_from_invalid_ones() {
    for format in ["text", "json", "junit"] {
        let ran = validate(&["no/such/file.yaml", BAD, "--output", format]);
        assert_eq!(ran.code, 2, "{format}");
        assert!(
            ran.err.contains("no/such/file.yaml: No such file"),
            "{}",
            ran.err
        );
        assert!(
            ran.out.contains("exchange them"),
            "what can be read is checked: {}",
            ran.out
        );
    }
    let report = json(&validate(&["no/such/file.yaml", "--output", "json"]).out);
    assert_eq!(report["unreadable"][0]["file"], "no/such/file.yaml");
    assert_eq!(validate(&[]).code, 2);
    assert_eq!(validate(&["--output", "xml", BAD]).code, 2);
    let help = validate(&["--help"]);
    assert_eq!(help.code, 0);
    for line in [
        "0  nothing is wrong",
        "1  something is wrong",
        "2  the command line is wrong",
    ] {
        assert!(help.out.contains(line), "{}", help.out);
    }
}

#[test]
fn an_unreadable_document_hides_no_other() {
    let text = "apiVersion: dbplane.dev/v1alpha1\nkind: [\n---\napiVersion: dbplane.dev/v1\nkind: Compute\n";
    let ran = validate_with(&["-"], text);
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("cannot be read as YAML") && ran.out.contains("<stdin>:4:13: "),
        "{}",
        ran.out
    );
    assert!(
        ran.out
            .ends_with("2 objects checked, 2 errors; 0 others skipped\n"),
        "{}",
        ran.out
    );
}

/// pre-commit appends the names of the files to `entry`.
#[test]
fn the_hook_runs_the_verb() {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".pre-commit-hooks.yaml"))
            .unwrap();
    let hooks: Value = serde_saphyr::from_str(&text).unwrap();
    let entry: Vec<&str> = hooks[0]["entry"].as_str().unwrap().split(' ').collect();
    assert_eq!(entry[..2], ["dbplane", "validate"]);
    assert_eq!(validate(&[&entry[2..], &[BAD]].concat()).code, 1);
}
