//! The pictures of the book: drawn from the sources beside them, with alternative texts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures")
}

/// The names of files with this extension, without the extension.
fn named(extension: &str) -> BTreeSet<String> {
    let paths = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let of_these = paths.filter(|path| path.extension().is_some_and(|found| found == extension));
    of_these
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

#[test]
fn each_picture_is_drawn_from_its_source() {
    let sources = named("mmd");
    assert!(sources.len() >= 4, "{sources:?}");
    assert_eq!(named("svg"), sources);
    for name in sources {
        let source = read(&format!("{name}.mmd")) + &read("theme.json");
        let hash: String = Sha256::digest(source.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let head = format!(
            "<!-- Made by make pictures, of a source and a theme with the SHA-256 {hash} -->\n<svg "
        );
        assert!(
            read(&format!("{name}.svg")).starts_with(&head),
            "{name}.svg is not up to date: run make pictures"
        );
    }
}

#[test]
fn each_picture_has_a_description() {
    for name in named("mmd") {
        let source = read(&format!("{name}.mmd"));
        let picture = read(&format!("{name}.svg"));
        for (keyword, element) in [("accTitle: ", "</title>"), ("accDescr: ", "</desc>")] {
            let text = source
                .lines()
                .find_map(|line| line.trim().strip_prefix(keyword))
                .unwrap();
            assert!(
                picture.contains(&format!(">{}{element}", text.replace('&', "&amp;"))),
                "{name}: {text}"
            );
        }
    }
}

/// A page shows each picture with its alternative text.
#[test]
fn each_picture_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let folders = [root.clone(), root.join("guide")];
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path());
    let pages = entries.filter(|path| path.extension().is_some_and(|found| found == "md"));
    let text: String = pages
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    assert!(
        !text.contains("```mermaid"),
        "a page has a picture's source, which the book would show as text"
    );
    for name in named("mmd") {
        let source = read(&format!("{name}.mmd"));
        let words = source
            .lines()
            .find_map(|line| line.trim().strip_prefix("accDescr: "))
            .unwrap();
        let shown = ["", "../"]
            .iter()
            .any(|up| text.contains(&format!("![{words}]({up}pictures/{name}.svg)")));
        assert!(shown, "no page shows {name}.svg as: {words}");
    }
}

/// A picture must work without a network and without scripts.
#[test]
fn a_picture_needs_nothing_else() {
    for name in named("svg") {
        let picture = read(&format!("{name}.svg"));
        for word in ["<script", "<foreignObject", "href=", "@import", "url(http"] {
            assert!(!picture.contains(word), "{name}: {word}");
        }
    }
}
