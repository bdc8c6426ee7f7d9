//! A text table with columns as wide as their longest cell.

use std::fmt;

#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Starts a new part of the table with its own heads.
    pub fn part(&mut self, heads: [&str; 5]) {
        if !self.rows.is_empty() {
            self.rows.push(Vec::new());
        }
        self.rows.push(heads.map(str::to_owned).to_vec());
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(String::len)
                .max()
        };
        for row in &self.rows {
            if row.is_empty() {
                writeln!(f)?;
                continue;
            }
            for column in 0..columns {
                let (cell, width) = (
                    row.get(column).map_or("", String::as_str),
                    width(column).unwrap_or(0),
                );
                match column {
                    0 => write!(f, "{cell:width$}")?,
                    _ => write!(f, " | {cell:>width$}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
