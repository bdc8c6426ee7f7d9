//! The picture of a terminal, made from a run of one page.

use std::fmt::Write as _;
use std::fs;

use crate::page::repository;

/// The page with the commands that the picture shows.
pub const PAGE: &str = "docs/start/lost-answer.md";
/// Set by `make terminal-picture`.
const RECORD: &str = "DBPLANE_RECORD_TERMINAL";
const TITLE: &str = "A terminal: the answer to a create is lost, and nothing is created twice";

const LETTER: usize = 9;
const LINE: usize = 21;
const MARGIN: usize = 16;
/// Longer lines end with `…`.
const WIDEST: usize = 110;

/// Commands of a block, and what they printed.
pub struct Shown {
    pub commands: String,
    pub printed: String,
}

/// Draws the picture if that was asked for.
pub fn record(page: &str, shown: &[Shown]) {
    if page == PAGE && std::env::var_os(RECORD).is_some() {
        fs::write(repository().join("docs/at-work.svg"), svg(shown)).unwrap();
    }
}

fn svg(shown: &[Shown]) -> String {
    let lines: Vec<(&str, String)> = shown
        .iter()
        .flat_map(|Shown { commands, printed }| {
            let commands = commands.lines().map(|line| match line {
                comment if comment.starts_with('#') => ("output", comment.to_owned()),
                command => ("command", format!("$ {command}")),
            });
            commands.chain(printed.lines().map(|line| ("output", line.to_owned())))
        })
        .map(|(class, line)| (class, cut(&line)))
        .collect();
    let widest = lines.iter().map(|(_, line)| line.chars().count()).max();
    let width = widest.unwrap_or_default() * LETTER + 2 * MARGIN;
    let height = lines.len() * LINE + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"title\">\n\
         <title id=\"title\">{TITLE}</title>\n\
         <style>text {{ font: 15px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre; fill: #c9d2dc }} \
         .command {{ fill: #ffffff; font-weight: 600 }}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#14191f\"/>\n"
    );
    for (number, (class, line)) in lines.iter().enumerate() {
        let y = MARGIN + (number + 1) * LINE - LINE / 4;
        let text = line.replace('&', "&amp;").replace('<', "&lt;");
        writeln!(
            svg,
            "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y}\">{text}</text>"
        )
        .unwrap();
    }
    svg + "</svg>\n"
}

fn cut(line: &str) -> String {
    if line.chars().count() <= WIDEST {
        return line.to_owned();
    }
    line.chars().take(WIDEST - 1).chain(['…']).collect()
}

#[test]
fn a_picture_has_each_line_and_nothing_that_breaks_it() {
    let long = "x".repeat(200);
    let shown = [Shown {
        commands: "kubectl get a <b\n".to_owned(),
        printed: format!("c & d\n{long}\n"),
    }];
    let picture = svg(&shown);
    assert_eq!(picture.matches("<text").count(), 3, "{picture}");
    assert!(
        picture.contains(">$ kubectl get a &lt;b</text>"),
        "{picture}"
    );
    assert!(picture.contains(">c &amp; d</text>"), "{picture}");
    assert!(
        picture.contains("x…</text>") && !picture.contains(&long),
        "{picture}"
    );
}
