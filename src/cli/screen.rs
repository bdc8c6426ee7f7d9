//! Output for users: colours and columns, without hidden characters in untrusted texts.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use textwrap::core::display_width;
use textwrap::{WordSeparator, WordSplitter};

use crate::decide::Attention;
use crate::text;

pub const HEADING: Style = Style::new().bold();
pub const PLAIN: Style = Style::new();

/// The colour of a need. The writer removes it if the output is not a terminal.
pub fn style(needs: Attention) -> Style {
    let color = match needs {
        Attention::User => AnsiColor::Red,
        Attention::Time => AnsiColor::Yellow,
        Attention::Work => AnsiColor::Cyan,
        Attention::Nothing => AnsiColor::Green,
    };
    color.on_default()
}

/// Rows in columns. The last column may have any width.
#[derive(Debug, Default)]
pub struct Table(Vec<Vec<(String, Style)>>);

impl Table {
    pub fn headed(heads: &[&str]) -> Self {
        Self(vec![
            heads
                .iter()
                .map(|head| ((*head).to_owned(), HEADING))
                .collect(),
        ])
    }

    /// Each cell is kept on one line, so that it cannot look like another row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = (String, Style)>) {
        let cells = cells
            .into_iter()
            .map(|(text, style)| (one_line(&text), style));
        self.0.push(cells.collect());
    }

    pub fn plain(&mut self, cells: impl IntoIterator<Item = String>) {
        self.row(cells.into_iter().map(|text| (text, PLAIN)));
    }

    /// With a width, the last column continues on lines of its own. A column that is too narrow for
    /// that begins on the next line.
    pub fn write(
        &self,
        out: &mut impl Write,
        indent: &str,
        width: Option<usize>,
    ) -> io::Result<()> {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or_default();
        let mut widths = vec![0; columns];
        for row in &self.0 {
            for (width, (text, _)) in widths.iter_mut().zip(row) {
                *width = display_width(text).max(*width);
            }
        }
        for row in &self.0 {
            let Some(((last, last_style), before)) = row.split_last() else {
                continue;
            };
            let mut line = indent.to_owned();
            for ((text, style), width) in before.iter().zip(&widths) {
                let padding = width + 2 - display_width(text);
                line.push_str(&format!("{style}{text}{style:#}{:padding$}", ""));
            }
            let mut column = display_width(&line);
            let is_narrow =
                width.is_some_and(|width| column + NARROWEST.min(display_width(last)) > width);
            if is_narrow && !before.is_empty() {
                writeln!(out, "{}", line.trim_end())?;
                column = indent.len() + 4;
                line = " ".repeat(column);
            }
            for part in wrapped(last, column, width) {
                line.push_str(&format!("{last_style}{part}{last_style:#}"));
                writeln!(out, "{}", line.trim_end())?;
                line = " ".repeat(column);
            }
        }
        Ok(())
    }
}

/// Below this width a column is hard to read.
const NARROWEST: usize = 30;

/// The width of the terminal; `None` if standard output is none.
pub fn width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(width.0.into())
}

/// The lines of a text after `indent` columns. Words stay whole, so that identifiers and commands
/// can be copied.
pub fn wrapped(text: &str, indent: usize, width: Option<usize>) -> Vec<Cow<'_, str>> {
    let Some(width) = width else {
        return vec![text.into()];
    };
    let options = textwrap::Options::new(width.saturating_sub(indent))
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation);
    textwrap::wrap(text, options)
}

/// Longer than any text of dbplane.
const LONGEST: usize = 16 * 1024;

/// A text from a manifest, the cluster or the platform, on one line.
pub fn one_line(text: &str) -> String {
    text::line(text, LONGEST).into_owned()
}

/// The colour codes that this file writes.
const STYLES: [&str; 6] = [
    "\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m",
];

/// Removes hidden characters from its output, except line breaks, tabs and the colours of this
/// file.
#[derive(Debug)]
pub struct Clean<W: Write> {
    out: W,
    /// The incomplete last line.
    line: Vec<u8>,
}

/// Standard output for users and programs.
pub fn stdout() -> Clean<impl Write> {
    Clean::new(anstream::stdout())
}

/// Standard error for users.
pub fn stderr() -> Clean<impl Write> {
    Clean::new(anstream::stderr())
}

impl<W: Write> Clean<W> {
    pub fn new(out: W) -> Self {
        Self {
            out,
            line: Vec::new(),
        }
    }

    fn pass_on(&mut self, length: usize) -> io::Result<()> {
        let lines: Vec<u8> = self.line.drain(..length).collect();
        self.out
            .write_all(cleaned(&String::from_utf8_lossy(&lines)).as_bytes())
    }
}

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
            self.pass_on(self.line.len() - bytes.len() + end + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on(self.line.len())?;
        self.out.flush()
    }
}

impl<W: Write> Drop for Clean<W> {
    fn drop(&mut self) {
        // Callers that need the result have flushed before.
        let _ = self.flush();
    }
}

fn cleaned(text: &str) -> String {
    let mut pieces = text.split('\x1b');
    let mut clean = text::lines(pieces.next().unwrap_or_default()).into_owned();
    for piece in pieces {
        let style = STYLES.iter().find(|style| piece.starts_with(&style[1..]));
        let (shown, rest) = style.map_or(("\u{fffd}", piece), |style| {
            (*style, &piece[style.len() - 1..])
        });
        clean.push_str(shown);
        clean.push_str(&text::lines(rest));
    }
    clean
}

/// Writes an error to standard error. The program ends with the code.
///
/// # Errors
/// If it cannot be written.
pub fn report_error(error: &impl Display, code: u8) -> Result<ExitCode, String> {
    writeln!(stderr(), "dbplane: {error}").map_err(|error| error.to_string())?;
    Ok(ExitCode::from(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_in_a_text_is_not_written() {
        let mut out = Vec::new();
        let mut clean = Clean::new(&mut out);
        write!(clean, "{HEADING}a{HEADING:#}\x1b[2Jb\x1b]0;title\x07\tc\r").unwrap();
        write!(clean, "\u{202e}d\u{9b}31m\n\x1b[3").unwrap();
        write!(clean, "1mred\x1b").unwrap();
        drop(clean);
        let expected = "\x1b[1ma\x1b[0m\u{fffd}[2Jb\u{fffd}]0;title\u{fffd}\tc \u{fffd}d\u{fffd}31m\n\x1b[31mred\u{fffd}";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_cell_is_one_line() {
        let mut table = Table::default();
        table.plain(["a\nb".to_owned(), "c".to_owned()]);
        let mut out = Vec::new();
        table.write(&mut out, "", None).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a b  c\n");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::headed(&["KIND", "N"]);
        table.plain(["Compute".to_owned(), "2".to_owned()]);
        let mut out = Vec::new();
        table
            .write(&mut anstream::StripStream::new(&mut out), "  ", None)
            .unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "  KIND     N\n  Compute  2\n"
        );
    }

    fn shown(table: &Table, width: usize) -> String {
        let mut out = Vec::new();
        let plain = &mut anstream::StripStream::new(&mut out);
        table.write(plain, "  ", Some(width)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_last_column_continues_below_itself() {
        let mut table = Table::default();
        let message = "the branch br-main-42 has compute ep-cool-darkness-123456 already";
        table.plain(["compute/orders".to_owned(), message.to_owned()]);
        assert_eq!(
            shown(&table, 51),
            "  compute/orders  the branch br-main-42 has compute\n                  ep-cool-darkness-123456 already\n"
        );
        assert_eq!(
            shown(&table, 40),
            "  compute/orders\n      the branch br-main-42 has compute\n      ep-cool-darkness-123456 already\n"
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_word_is_lost() {
        let words = "數據庫 ep-1 is not there: correct spec.computeID, or remove the resource";
        for width in 30..90 {
            let mut table = Table::default();
            table.plain(["orders".to_owned(), "Refused".to_owned(), words.to_owned()]);
            let shown = shown(&table, width);
            for line in shown.lines() {
                assert!(display_width(line) <= width, "{width}: {line}");
            }
            let found: Vec<_> = shown.split_whitespace().skip(2).collect();
            assert_eq!(found.join(" "), words);
        }
    }
}
