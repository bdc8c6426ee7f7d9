//! The pages of the book, and the blocks of code on them.

use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A fenced code block.
#[derive(Clone, Debug)]
pub struct Block {
    /// The line of its fence, counted from 1.
    pub line: usize,
    /// The first word after the fence.
    pub language: String,
    /// True if the last command is expected to fail: the second word after the fence is `fails`.
    pub fails: bool,
    pub text: String,
}

impl Block {
    pub fn first_line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// True for commands that readers type.
    pub fn is_command(&self) -> bool {
        ["sh", "bash", "console"].contains(&self.language.as_str())
    }

    pub fn is_manifest(&self) -> bool {
        self.language == "yaml"
    }

    /// The file name for the block's text, from a comment in its first line.
    pub fn file(&self) -> Option<&str> {
        let name = self.first_line().strip_prefix("# ")?;
        let is_name = name.ends_with(".yaml") && !name.contains([' ', '/']);
        (self.is_manifest() && is_name).then_some(name)
    }
}

/// The blocks of a page, given by its path in the repository.
pub fn blocks(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(repository().join(page))
        .unwrap_or_else(|error| panic!("{page}: {error}"));
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (event, range) in Parser::new(&text).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let line = text[..range.start].matches('\n').count() + 1;
                let mut words = info.split_whitespace();
                let language = words.next().unwrap_or_default().to_owned();
                open = Some(Block {
                    line,
                    language,
                    fails: words.next() == Some("fails"),
                    text: String::new(),
                });
            }
            Event::Text(text) => {
                if let Some(block) = &mut open {
                    block.text.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => found.extend(open.take()),
            _ => {}
        }
    }
    found
}

/// The paths of all pages in the summary.
pub fn book() -> Vec<String> {
    let summary = fs::read_to_string(repository().join("docs/SUMMARY.md")).unwrap();
    let links = Parser::new(&summary).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url.into_string()),
        _ => None,
    });
    links
        .map(|link| settled(&Path::new("docs").join(link)))
        .collect()
}

/// Resolves `..` in a path.
fn settled(path: &Path) -> String {
    let mut settled = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(settled.pop(), "{} leaves the tree", path.display()),
            part => settled.push(part),
        }
    }
    settled.display().to_string()
}
