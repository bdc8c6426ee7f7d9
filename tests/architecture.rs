//! Checks the structure of the code: imports between modules, lengths of files, uses of the clock,
//! and documentation.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use dbplane::decide::Reason;
use regex::Regex;

const LONGEST_FILE: usize = 500;

const SOURCES: [&str; 2] = ["src", "simulator/src"];

/// The modules that each module may import. `cli` and the two roots may import everything.
const ARROWS: &[(&str, &[&str])] = &[
    ("account_check", &["domain", "platform"]),
    ("api", &["domain"]),
    (
        "bug_report",
        &[
            "api",
            "cluster",
            "controller",
            "decide",
            "platform",
            "telemetry",
        ],
    ),
    ("clock", &[]),
    ("cluster", &["api", "clock", "decide", "leadership", "text"]),
    ("config", &["decide", "platform"]),
    (
        "controller",
        &[
            "api",
            "clock",
            "cluster",
            "config",
            "decide",
            "domain",
            "leadership",
            "platform",
            "spans",
            "telemetry",
            "text",
        ],
    ),
    ("decide", &["api", "domain", "text"]),
    ("domain", &[]),
    (
        "plan",
        &[
            "api",
            "cluster",
            "controller",
            "decide",
            "domain",
            "in_memory",
            "platform",
        ],
    ),
    ("import", &["api", "decide", "domain", "text", "validate"]),
    ("in_memory", &["api", "cluster", "controller", "decide"]),
    ("leadership", &["clock"]),
    (
        "platform",
        &["clock", "domain", "leadership", "spans", "text"],
    ),
    ("spans", &[]),
    ("telemetry", &["leadership", "platform", "spans", "text"]),
    ("text", &[]),
    ("validate", &["api", "controller", "decide"]),
];

fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty(), "no sources below {folder}");
    found
}

fn module(path: &Path) -> String {
    let below = path
        .strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
        .unwrap();
    below
        .iter()
        .next()
        .unwrap()
        .to_str()
        .unwrap()
        .trim_end_matches(".rs")
        .to_owned()
}

#[test]
fn modules_import_only_whom_they_may() {
    let import = Regex::new(r"\bcrate::([a-z_]+)").unwrap();
    for (path, text) in sources("src") {
        let from = module(&path);
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == from) else {
            assert!(
                ["cli", "lib", "main"].contains(&from.as_str()),
                "{from} is not in the table of arrows"
            );
            continue;
        };
        for found in import.captures_iter(&text) {
            let to = &found[1];
            assert!(
                to == from || allowed.contains(&to),
                "{}: {from} may not import {to}",
                path.display()
            );
        }
    }
}

/// The parts of the controller from top to bottom; each may import itself and lower parts.
const CONTROLLER: [&[&str]; 12] = [
    &["start"],
    &["finalizers", "live", "rights"],
    &["registry"],
    &["replica_set"],
    &["compute", "key"],
    &["account"],
    &["connection"],
    &["pass"],
    &["access"],
    &["environment"],
    &["index", "state"],
    &["labels", "object"],
];

#[test]
fn imports_in_the_controller_run_downwards() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/controller");
    let import = Regex::new(r"\b(crate::controller::|(?:super::)+)(\w+(?:::[a-z_]+)?)").unwrap();
    let level = |name: &str| CONTROLLER.iter().position(|level| level.contains(&name));
    let mut upwards = BTreeSet::new();
    for (path, text) in sources("src/controller") {
        let module = path.strip_prefix(&root).unwrap().with_extension("");
        let module: Vec<_> = module
            .iter()
            .filter_map(|part| part.to_str())
            .filter(|part| *part != "mod")
            .collect();
        let Some(from) = module
            .first()
            .filter(|_| module.iter().all(|part| !part.ends_with("tests")))
        else {
            continue;
        };
        for found in import.captures_iter(&text) {
            let (target, from_root) = (&found[2], &found[1] == "crate::controller::");
            let to = target.split("::").next().unwrap();
            if !from_root && found[1].len() != module.len() * "super::".len() || to == *from {
                continue;
            }
            let (Some(above), Some(below)) = (level(from), level(to)) else {
                panic!(
                    "{}: {from} or {to} has no place in the order",
                    path.display()
                );
            };
            if above >= below {
                upwards.insert(format!("{from} imports {target}"));
            }
        }
    }
    assert!(upwards.is_empty(), "{upwards:#?}");
}

/// The files that a file imports from its own folder and from the folders in it.
fn imports_beside(path: &Path, text: &str) -> BTreeSet<PathBuf> {
    let imported = Regex::new(r"(?m)^[^/]*\bsuper::(?:([a-z_:]+)|\{([^}]*)\})").unwrap();
    let name = Regex::new(r"\b[a-z_:]+\b").unwrap();
    let file = |name: &str| {
        let whole = path.with_file_name(name.replace("::", "/"));
        let mut above = whole.ancestors().map(|part| part.with_extension("rs"));
        above.find(|file| file.is_file())
    };
    imported
        .captures_iter(text)
        .flat_map(|found| name.find_iter(found.get(1).or(found.get(2)).unwrap().as_str()))
        .filter_map(|name| file(name.as_str()))
        .filter(|file| file != path && file.starts_with(path.parent().unwrap()))
        .collect()
}

#[test]
fn no_files_of_a_folder_import_each_other_in_a_circle() {
    let mut left: BTreeMap<PathBuf, BTreeSet<PathBuf>> = SOURCES
        .into_iter()
        .flat_map(sources)
        .map(|(path, text)| (path.clone(), imports_beside(&path, &text)))
        .collect();
    // A file that imports nothing that is left is in no circle.
    loop {
        let names: BTreeSet<PathBuf> = left.keys().cloned().collect();
        left.retain(|_, imports| !imports.is_disjoint(&names));
        if left.len() == names.len() {
            break;
        }
    }
    let circles: Vec<&PathBuf> = left.keys().collect();
    assert!(left.is_empty(), "{circles:#?}");
}

/// The compiler ensures that the two libraries do not import each other, provided that their
/// manifests allow it. The operator may depend on the simulator only for tests, and the simulator
/// not on the operator.
#[test]
fn the_packages_share_no_code() {
    let manifest =
        |path: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let operator = manifest("Cargo.toml");
    let (shipped, tests) = operator.split_once("[dev-dependencies]").unwrap();
    assert!(!shipped.contains("dbplane-simulator") && tests.contains("dbplane-simulator"));
    let names_the_operator = Regex::new(r"(?m)^dbplane[ .=]|path *=").unwrap();
    assert!(!names_the_operator.is_match(&manifest("simulator/Cargo.toml")));
}

#[test]
fn decisions_are_pure() {
    let impure = Regex::new(
        r"\b(tokio|kube|reqwest|tracing|rand|futures)::|std::(env|fs|net|process|thread)|Instant::now|SystemTime",
    )
    .unwrap();
    for (path, text) in sources("src/decide")
        .into_iter()
        .chain(sources("src/domain"))
        .chain(sources("src/leadership"))
    {
        if let Some(found) = impure.find(&text) {
            panic!(
                "{}: a decision reaches for {}",
                path.display(),
                found.as_str()
            );
        }
    }
}

/// Only the adapter reads and writes words of the platform's dialect. Other code uses types; the
/// words for users are defined beside them.
#[test]
fn only_the_adapter_speaks_the_dialect_of_the_platform() {
    let word =
        Regex::new(r#""(init|idle|active|read_write|read_only|pg_settings|org_id|ep-[^"]*)""#)
            .unwrap();
    let at_home = [
        "src/platform/http/",
        "src/platform/http.rs",
        "src/domain/compute_state.rs",
    ];
    let checked = ["cluster", "controller", "decide", "domain", "platform"];
    for (path, text) in sources("src") {
        let name = path.display().to_string();
        if !checked.contains(&module(&path).as_str())
            || at_home.iter().any(|home| name.contains(home))
            || name.contains("tests")
            || name.ends_with("/fake.rs")
        {
            continue;
        }
        let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let found = word.find(shipped).map(|found| found.as_str());
        assert_eq!(found, None, "{name} speaks the dialect of the platform");
    }
}

#[test]
fn one_file_of_each_package_reads_the_clock() {
    let reads = Regex::new(r"\b(Timestamp|Zoned|SystemTime|Utc|Local)::now\(").unwrap();
    for package in SOURCES {
        let readers: Vec<String> = sources(package)
            .into_iter()
            .filter(|(_, text)| reads.is_match(text))
            .map(|(path, _)| path.display().to_string())
            .collect();
        assert_eq!(readers.len(), 1, "{readers:?}");
        assert!(
            readers[0].ends_with(&format!("{package}/clock.rs")),
            "{readers:?}"
        );
    }
}

/// Tests control the operator's time; the shipped program cannot. The only constructor of an
/// operator uses the real clock, and only tests have adjustable timers.
#[test]
fn only_tests_move_the_time() {
    let given = Regex::new(r"\bclock: ([a-z_]+::[a-z_:]+)").unwrap();
    let makes = Regex::new(r"(?s)\bOperator \{.*\bclock: clock::now\b").unwrap();
    let moves = Regex::new(r"time::(pause|advance|resume)\(").unwrap();
    let (mut clocks, mut makers) = (BTreeSet::new(), Vec::new());
    for (path, text) in SOURCES.into_iter().flat_map(sources) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name.ends_with("tests") || path.components().any(|part| part.as_os_str() == "tests") {
            continue;
        }
        let shipped = text.split("#[cfg(test)]").next().unwrap();
        assert!(
            !moves.is_match(shipped),
            "{} moves the time",
            path.display()
        );
        clocks.extend(
            given
                .captures_iter(shipped)
                .map(|found| found[1].to_owned()),
        );
        makers.extend(makes.find(shipped).map(|_| path.clone()));
    }
    let real: BTreeSet<String> = ["clock::now", "crate::clock::now"]
        .map(str::to_owned)
        .into();
    assert_eq!(clocks, real);
    assert!(
        makers.len() == 1 && makers[0].ends_with("src/cli/run.rs"),
        "{makers:?}"
    );
    for manifest in ["Cargo.toml", "simulator/Cargo.toml"] {
        let text =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest)).unwrap();
        let (shipped, _) = text.split_once("[dev-dependencies]").unwrap();
        assert!(
            !shipped.contains("test-util"),
            "{manifest}: what ships has timers that can be moved"
        );
    }
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = ["src", "tests", "examples", "simulator"]
        .into_iter()
        .flat_map(sources)
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(path, lines)| format!("{} has {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn every_reason_is_documented_and_no_other() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/conditions.md"))
        .unwrap();
    let documented: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .map(str::trim)
        .collect();
    let reasons: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(documented, reasons);
}

/// The first column of the table below `heading` in docs/`page`, up to the next heading. A cell may
/// contain several names.
fn documented(page: &str, heading: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("docs")
            .join(page),
    )
    .unwrap();
    let below = text
        .split(&format!("\n## {heading}\n"))
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let name = Regex::new("`([^`]+)`").unwrap();
    let cells = below
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    cells
        .flat_map(|cell| {
            name.captures_iter(&format!("`{cell}"))
                .map(|found| found[1].to_owned())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Splits the arguments after an opening parenthesis at its top-level commas.
fn arguments(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth, mut quoted, mut escaped) =
        (Vec::new(), 0, 0, false, false);
    for (index, sign) in text.char_indices() {
        match sign {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth > 0 => depth -= 1,
            ')' | ',' => {
                parts.push(text[begin..index].trim());
                begin = index + 1;
                if sign == ')' {
                    return parts;
                }
            }
            _ => {}
        }
    }
    panic!(
        "a parenthesis has no partner: {}",
        &text[..80.min(text.len())]
    );
}

/// Covers the fields of log lines, and of the spans that log lines contain.
#[test]
fn every_field_of_a_log_line_is_documented_and_no_other() {
    let logs = Regex::new(r"\b(?:trace|debug|info|warn|error)(?:_span)?!\(").unwrap();
    let field = Regex::new(r"(?s)^[%?]?([a-z_][a-z_.]*)( = .*)?$").unwrap();
    let of_every_line = Regex::new(r#"line\.set\("([a-z_]+)""#).unwrap();
    let mut used = BTreeSet::new();
    for (path, text) in sources("src") {
        // Spans of traces do not appear in log lines.
        if path.ends_with("src/spans.rs") {
            continue;
        }
        for found in logs.find_iter(&text) {
            // A span begins with its name. In a line, the message and its values follow the fields.
            let parts = arguments(&text[found.end()..])
                .into_iter()
                .skip(usize::from(found.as_str().contains("_span")));
            let fields = parts
                .take_while(|part| !part.starts_with('"'))
                .filter_map(|part| field.captures(part));
            used.extend(fields.map(|found| found[1].to_owned()));
        }
        used.extend(
            of_every_line
                .captures_iter(&text)
                .map(|found| found[1].to_owned()),
        );
    }
    assert_eq!(documented("logs.md", "Fields"), used);
}

#[test]
fn every_action_in_a_log_line_is_documented_and_no_other() {
    let labels = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/controller/labels.rs");
    let text = fs::read_to_string(labels).unwrap();
    let word = Regex::new(r#"(?:Action::\w+ => |pub const \w+: &str = )"([a-z_]+)""#).unwrap();
    let words: BTreeSet<String> = word
        .captures_iter(&text)
        .map(|found| found[1].to_owned())
        .collect();
    assert_eq!(documented("logs.md", "Actions"), words);
}

#[test]
fn every_attribute_of_a_span_is_documented_and_no_other() {
    let attribute = Regex::new(r#""((?:dbplane|k8s|http|url|server|error)\.[a-z_.]+)""#).unwrap();
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/spans.rs")).unwrap();
    let set: BTreeSet<String> = attribute
        .captures_iter(&text)
        .map(|found| found[1].to_owned())
        .collect();
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/traces.md"))
            .unwrap();
    let named = Regex::new("`((?:dbplane|k8s|http|url|server|error)\\.[a-z_.]+)`").unwrap();
    let named: BTreeSet<String> = named
        .captures_iter(&page)
        .map(|found| found[1].to_owned())
        .collect();
    assert_eq!(named, set);
}
