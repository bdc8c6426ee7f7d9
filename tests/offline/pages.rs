//! The Markdown pages: all their references are valid, and the book contains every page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use clap::Parser as _;
use dbplane::cli::Cli;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use regex::Regex;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// The checkable contents of a page.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
    /// Inline code.
    spans: Vec<String>,
    /// The language and the text of each code block.
    blocks: Vec<(String, String)>,
}

impl Page {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        let mut block: Option<(String, String)> = None;
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            if let Event::Code(code) = &event {
                page.spans.push(code.to_string());
            }
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading {
                    level: HeadingLevel::H1 | HeadingLevel::H2 | HeadingLevel::H3 | HeadingLevel::H4,
                    ..
                }) => {
                    heading = Some(String::new());
                }
                Event::End(TagEnd::Heading(_)) => {
                    let Some(text) = heading.take() else { continue };
                    let anchor = anchor(&text);
                    let before = times.entry(anchor.clone()).or_default();
                    page.anchors.insert(if *before == 0 {
                        anchor
                    } else {
                        format!("{anchor}-{before}")
                    });
                    *before += 1;
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    block = Some((language.into_string(), String::new()));
                }
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(block.take()),
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                    if let Some((_, code)) = &mut block {
                        code.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        page
    }
}

/// The anchor of a heading on code hosts and in mdBook.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// All pages in the repository by path.
fn pages() -> BTreeMap<PathBuf, Page> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::from(REPOSITORY)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !["target", "node_modules", ".git"].contains(&name.as_str()) {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let page = Page::read(&path);
                found.insert(path.strip_prefix(REPOSITORY).unwrap().to_owned(), page);
            }
        }
    }
    found
}

/// Resolves `..` in a path.
fn settled(path: &Path) -> PathBuf {
    let mut settled = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(settled.pop(), "{} leaves the tree", path.display()),
            Component::CurDir => {}
            part => settled.push(part),
        }
    }
    settled
}

#[test]
fn every_link_leads_to_an_existing_file_and_heading() {
    let pages = pages();
    let (mut checked, mut broken) = (0, Vec::new());
    for (from, page) in &pages {
        for link in page
            .links
            .iter()
            .filter(|link| !link.is_empty() && !link.contains("://"))
        {
            let (path, anchor) = link
                .split_once('#')
                .map_or((link.as_str(), None), |(path, anchor)| (path, Some(anchor)));
            let to = match path {
                "" => from.clone(),
                path => settled(&from.parent().unwrap().join(path)),
            };
            checked += 1;
            let has = |anchor| {
                pages
                    .get(&to)
                    .is_some_and(|page| page.anchors.contains(anchor))
            };
            if !Path::new(REPOSITORY).join(&to).exists()
                || anchor.is_some_and(|anchor| !has(anchor))
            {
                broken.push(format!("{}: {link}", from.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(checked > 300, "only {checked} links were found");
}

/// Decisions and the changelog are excluded, because they may mention removed files.
#[test]
fn every_file_named_on_a_page_exists() {
    let file = Regex::new(
        r"^(src|tests|simulator|deploy|docs|examples|crds|release|\.ci|\.cargo)/[\w./-]+$",
    )
    .unwrap();
    let (mut checked, mut missing) = (0, Vec::new());
    for (path, page) in pages() {
        if path.starts_with("docs/decisions") || path.ends_with("CHANGELOG.md") {
            continue;
        }
        for named in page.spans.iter().filter(|span| file.is_match(span)) {
            checked += 1;
            let is_there = |name: &str| Path::new(REPOSITORY).join(name).exists();
            if !is_there(named) && !is_there(&format!("{named}.rs")) {
                missing.push(format!("{}: {named}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(checked > 100, "only {checked} files are named");
}

#[test]
fn the_book_has_every_page_once() {
    let docs = Path::new("docs");
    let summary = Page::read(&Path::new(REPOSITORY).join("docs/SUMMARY.md"));
    let mut named: Vec<PathBuf> = summary
        .links
        .iter()
        .map(|link| settled(&docs.join(link)))
        .collect();
    named.sort();
    let beside = [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "deploy/chart/README.md",
    ]
    .map(PathBuf::from);
    let is_of_the_book = |path: &PathBuf| path.starts_with(docs) && !path.ends_with("SUMMARY.md");
    let mut all: Vec<PathBuf> = pages()
        .into_keys()
        .filter(is_of_the_book)
        .chain(beside)
        .collect();
    all.sort();
    assert_eq!(named, all);
}

/// Checks only the syntax; tests/book runs the commands and applies the manifests.
#[test]
fn every_command_of_the_program_on_a_page_is_valid() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for (path, page) in pages() {
        let commands = page
            .blocks
            .iter()
            .filter(|(language, _)| ["sh", "bash", "console", ""].contains(&language.as_str()));
        for line in commands.flat_map(|(_, code)| code.lines()) {
            let line = line.trim_start_matches("$ ");
            let line = line.strip_prefix("target/release/").unwrap_or(line);
            let Some(words) = line.strip_prefix("dbplane ").map(words) else {
                continue;
            };
            checked += 1;
            if let Err(error) =
                Cli::try_parse_from(std::iter::once("dbplane".to_owned()).chain(words))
                && error.use_stderr()
            {
                wrong.push(format!("{}: {line}: {error}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked >= 3, "only {checked} commands were found");
}

/// The words of a command before a pipe, a redirection or a comment.
fn words(command: &str) -> Vec<String> {
    let ends = |word: &&str| {
        !["|", ">", "<", "&&", ";", "#"].contains(word) && !word.starts_with(['>', '<', '#'])
    };
    command
        .split_whitespace()
        .take_while(ends)
        .map(|word| word.trim_matches(['"', '\'']).to_owned())
        .collect()
}
