//! docs/reference/names.md must list exactly the names in the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dbplane::decide::names::{FIELD_MANAGER, LEASE, MANAGED_BY};
use regex::Regex;

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

#[test]
fn every_name_is_on_the_page_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let literal = Regex::new(r#""(dbplane\.dev/[a-z-]+)""#).unwrap();
    let mut used = BTreeSet::new();
    for path in files {
        let text = fs::read_to_string(path).unwrap();
        let shipped = text.split("#[cfg(test)]").next().unwrap();
        used.extend(
            literal
                .captures_iter(shipped)
                .map(|found| found[1].to_owned()),
        );
    }
    assert!(used.len() > 10, "{used:?}");
    let page = fs::read_to_string(root.join("docs/reference/names.md")).unwrap();
    let entry = Regex::new(r"(?m)^- `(dbplane\.dev/[a-z-]+)`").unwrap();
    let listed: BTreeSet<String> = entry
        .captures_iter(&page)
        .map(|found| found[1].to_owned())
        .collect();
    assert_eq!(listed, used);
    let others = [
        format!("`{}: {}`", MANAGED_BY.0, MANAGED_BY.1),
        format!("Field manager `{FIELD_MANAGER}`"),
        format!("Lease `{LEASE}`"),
    ];
    for name in others {
        assert!(page.contains(&name), "{name}");
    }
}
