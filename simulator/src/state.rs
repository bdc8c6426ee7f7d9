//! The state file: an embedded database with the world and its clock.

use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use thiserror::Error;

use super::clock::Clock;
use super::world::rows::{RestoreError, Row, Table};
use super::world::{Profile, World};

/// Maps table and key to JSON.
const ROWS: TableDefinition<(&str, &str), &[u8]> = TableDefinition::new("world");
const CLOCK: (&str, &str) = ("clock", "");

#[derive(Debug, Error)]
pub enum StateError {
    #[error("the state file cannot be used: {0}")]
    Database(#[from] redb::Error),
    #[error("the state file cannot be understood: {0}")]
    Contents(#[from] RestoreError),
    #[error("the saved clock cannot be read: {0}")]
    Clock(#[from] serde_json::Error),
}

/// An open state file. No other process can open it at the same time.
#[derive(Debug)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens the state file, or creates an empty one.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        let database = Database::create(path).map_err(redb::Error::from)?;
        Ok(Self { database })
    }

    /// The saved world and its clock, or `None` if the file is new.
    pub fn load(&self, profile: Profile) -> Result<Option<(World, Clock)>, StateError> {
        let transaction = self.database.begin_read().map_err(redb::Error::from)?;
        let table = match transaction.open_table(ROWS) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(redb::Error::from(error).into()),
        };
        let mut clock: Option<Clock> = None;
        let mut rows = Vec::new();
        for entry in table.iter().map_err(redb::Error::from)? {
            let (key, value) = entry.map_err(redb::Error::from)?;
            match (key.value(), Table::parse(key.value().0)) {
                (CLOCK, _) => clock = Some(serde_json::from_slice(value.value())?),
                (_, Some(table)) => rows.push((table, value.value().to_vec())),
                (_, None) => {}
            }
        }
        let Some(clock) = clock else { return Ok(None) };
        Ok(Some((World::restore(rows, profile)?, clock)))
    }

    /// Writes all changes in one transaction and returns when they are on disk.
    pub fn save(&self, rows: Vec<Row>, clock: Option<&Clock>) -> Result<(), StateError> {
        if rows.is_empty() && clock.is_none() {
            return Ok(());
        }
        let clock = clock.map(serde_json::to_vec).transpose()?;
        self.write(rows, clock).map_err(StateError::Database)
    }

    fn write(&self, rows: Vec<Row>, clock: Option<Vec<u8>>) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut table = transaction.open_table(ROWS)?;
            for row in rows {
                let key = (row.table.name(), row.key.as_str());
                match &row.value {
                    Some(value) => table.insert(key, value.as_slice())?,
                    None => table.remove(key)?,
                };
            }
            if let Some(clock) = &clock {
                table.insert(CLOCK, clock.as_slice())?;
            }
        }
        transaction.commit()?;
        Ok(())
    }
}
