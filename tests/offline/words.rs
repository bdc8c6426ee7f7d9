//! Pages and comments read well: short sentences and the usual words. A match is a pointer, not a
//! mistake. The limits may go down, and never up.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// The most words of a sentence. A cell of a table and an entry of a list are sentences too.
const LONGEST: usize = 35;
/// The beginnings of longer sentences, all from the descriptions of metrics.
const LONG: &str = "^(An outcome or a reason of|A step can also fail|Creations on the platform)";

/// A sentence with a clause as its subject begins with one of these.
const OPENINGS: &str = r"^(What|Who|Whose|Whom|Whoever|Whatever|Whether|Where|Those)\b";
/// Phrases with a private meaning.
const PHRASES: &str = r"\b(anew|lets? (it |them )?go|under way|has to say|is well|hears? of|comes? to rest|goes on|go on|gone on|went on|[Ww]hoever|of before)\b";

/// How many matches there may be at most.
const OPENINGS_OF_PAGES: usize = 6;
const PHRASES_OF_PAGES: usize = 2;
const OPENINGS_OF_COMMENTS: usize = 3;
const PHRASES_OF_COMMENTS: usize = 0;

/// The files of a folder with this extension, with paths from the root of the repository.
fn files(folder: &str, extension: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut folders, mut found) = (vec![root.join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == extension) {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root).unwrap().to_owned(), text));
            }
        }
    }
    found
}

/// Every sentence of every page. Code blocks and the targets of links are left out.
fn sentences() -> Vec<(PathBuf, String)> {
    let code = Regex::new(r"(?ms)^\s*```.*?^\s*```").unwrap();
    let link = Regex::new(r"!?\[([^\]]*)\]\([^)]*\)").unwrap();
    let end = Regex::new(r#"[.!?][*_)"]*\s+|\n\s*\n|\n\s*(?:[-*#>]|\d+\.)\s|\|"#).unwrap();
    let mut pages = files("docs", "md");
    for page in [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
        pages.push((page.into(), fs::read_to_string(path).unwrap()));
    }
    let mut sentences = Vec::new();
    for (path, text) in pages {
        let text = code.replace_all(&text, "");
        let text = link.replace_all(&text, "$1");
        for sentence in end.split(&text) {
            let words: Vec<_> = sentence.split_whitespace().collect();
            sentences.push((path.clone(), words.join(" ")));
        }
    }
    sentences
}

/// Every line of comments, without its marks.
fn comments() -> Vec<(PathBuf, String)> {
    let comment = Regex::new(r"(?m)^\s*//[/!]?[ \t]*(.*)$").unwrap();
    let mut lines = Vec::new();
    for folder in [
        "src",
        "simulator/src",
        "simulator/tests",
        "tests",
        "examples",
    ] {
        for (path, text) in files(folder, "rs") {
            let found = comment.captures_iter(&text);
            lines.extend(found.map(|line| (path.clone(), line[1].to_owned())));
        }
    }
    lines
}

fn assert_few(texts: &[(PathBuf, String)], pattern: &str, limit: usize) {
    let pattern = Regex::new(pattern).unwrap();
    let matches = texts.iter().filter(|(_, text)| pattern.is_match(text));
    let matches: Vec<_> = matches.collect();
    assert!(matches.len() <= limit, "more than {limit}: {matches:#?}");
}

#[test]
fn no_sentence_of_a_page_is_too_long() {
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    let listed = Regex::new(LONG).unwrap();
    let mut long = sentences();
    long.retain(|(_, text)| {
        text.split_whitespace().filter(is_word).count() > LONGEST && !listed.is_match(text)
    });
    assert!(long.is_empty(), "more than {LONGEST} words: {long:#?}");
}

#[test]
fn pages_use_the_usual_words() {
    let sentences = sentences();
    assert_few(&sentences, OPENINGS, OPENINGS_OF_PAGES);
    assert_few(&sentences, PHRASES, PHRASES_OF_PAGES);
}

#[test]
fn comments_use_the_usual_words() {
    let comments = comments();
    assert_few(&comments, OPENINGS, OPENINGS_OF_COMMENTS);
    assert_few(&comments, PHRASES, PHRASES_OF_COMMENTS);
}
