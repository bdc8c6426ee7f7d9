//! deploy/ follows the program: what is built, and how it is started.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// Flags for tests, and for what the program finds out by itself in a Pod: `operator.extraArgs` has them.
const WITHOUT_VALUE: [&str; 2] = ["allow-insecure-platform", "identity"];

fn read(path: impl AsRef<Path>) -> String {
    let path = Path::new(REPOSITORY).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// No check builds that image: it needs a container engine.
#[test]
fn the_recipe_of_the_image_copies_every_file_that_the_program_includes() {
    let recipe = read("deploy/Containerfile");
    let copied: Vec<&str> = recipe
        .lines()
        .filter_map(|line| line.strip_prefix("COPY ").filter(|line| !line.starts_with("--")))
        .flat_map(str::split_whitespace)
        .collect();
    let includes = Regex::new(r#"include_(?:str|bytes)!\("([^"]+)"\)"#).unwrap();
    let top = Path::new(REPOSITORY).canonicalize().unwrap();
    let (mut files, mut outside) = (Vec::new(), 0);
    sources(&top.join("src"), &mut files);
    for file in files {
        for found in includes.captures_iter(&fs::read_to_string(&file).unwrap()) {
            let included = file.parent().unwrap().join(&found[1]).canonicalize().unwrap();
            let included = included.strip_prefix(&top).unwrap();
            outside += usize::from(!included.starts_with("src"));
            let is_copied = copied.iter().any(|copied| included.starts_with(copied));
            assert!(
                is_copied,
                "deploy/Containerfile copies no {}, which {} includes",
                included.display(),
                file.display()
            );
        }
    }
    assert!(outside > 0, "nothing outside of src is included: this test is not needed any more");
}

#[test]
fn every_flag_of_the_operator_is_a_value_of_the_chart() {
    let template = read("deploy/chart/templates/deployment.yaml");
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_dbplane")).args(["run", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let flag = Regex::new(r"(?m)^ +(?:-., )?--([a-z-]+)").unwrap();
    let flags: Vec<&str> = flag.captures_iter(&help).map(|found| found.get(1).unwrap().as_str()).collect();
    assert!(flags.len() > 15, "{flags:?}");
    for flag in flags {
        let set = template.contains(&format!("- --{flag}")) || template.contains(&format!("\"{flag}\" ."));
        let excused = flag == "help" || WITHOUT_VALUE.contains(&flag);
        assert!(
            set != excused,
            "--{flag}: {}",
            if set { "the chart sets it" } else { "the chart has no value for it" }
        );
    }
}
