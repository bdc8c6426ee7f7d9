//! What people see: colours and columns.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use crate::decide::Needs;

pub const HEADING: Style = Style::new().bold();
pub const PLAIN: Style = Style::new();

/// The colour of what needs this. Whoever writes it to anything but a terminal takes it out again.
pub fn style(needs: Needs) -> Style {
    let color = match needs {
        Needs::Person => AnsiColor::Red,
        Needs::Time => AnsiColor::Yellow,
        Needs::Work => AnsiColor::Cyan,
        Needs::Nothing => AnsiColor::Green,
    };
    color.on_default()
}

/// Rows in columns; the last column may be of any width.
#[derive(Debug, Default)]
pub struct Table(Vec<Vec<(String, Style)>>);

impl Table {
    pub fn headed(heads: &[&str]) -> Self {
        Self(vec![heads.iter().map(|head| ((*head).to_owned(), HEADING)).collect()])
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = (String, Style)>) {
        self.0.push(cells.into_iter().collect());
    }

    pub fn plain(&mut self, cells: impl IntoIterator<Item = String>) {
        self.row(cells.into_iter().map(|text| (text, PLAIN)));
    }

    pub fn write(&self, out: &mut impl Write, indent: &str) -> io::Result<()> {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or_default();
        let wide = |column: usize| {
            self.0
                .iter()
                .filter_map(|row| row.get(column))
                .map(|(text, _)| text.chars().count())
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(wide).collect();
        for row in &self.0 {
            let mut line = String::new();
            for (column, (text, style)) in row.iter().enumerate() {
                let padding = if column + 1 < row.len() { widths[column] + 2 - text.chars().count() } else { 0 };
                line.push_str(&format!("{style}{text}{style:#}{:padding$}", ""));
            }
            writeln!(out, "{indent}{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Says on standard error why something was not done; the program ends with the code.
///
/// # Errors
/// Where it cannot be said.
pub fn tell(error: &impl Display, code: u8) -> Result<ExitCode, String> {
    writeln!(anstream::stderr(), "dbplane: {error}").map_err(|error| error.to_string())?;
    Ok(ExitCode::from(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::headed(&["KIND", "N"]);
        table.plain(["Compute".to_owned(), "2".to_owned()]);
        let mut out = Vec::new();
        table.write(&mut anstream::StripStream::new(&mut out), "  ").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "  KIND     N\n  Compute  2\n");
    }
}
